-- Versions of stored definitions. Their names are locked already.

CREATE FUNCTION active_version(p_kind integer, p_name text) RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT number FROM chosen_version WHERE kind = p_kind AND name = p_name),
                  (SELECT max(number) FROM version WHERE kind = p_kind AND name = p_name))
$$;

CREATE FUNCTION save_version(p_op jsonb, p_body bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_kind integer := (p_op ->> 'kind')::int;
  v_name text := p_op ->> 'name';
  v_number integer;
  v_existed boolean;
BEGIN
  SELECT number INTO v_number FROM version WHERE kind = v_kind AND name = v_name AND digest = p_op ->> 'digest';
  v_existed := v_number IS NOT NULL;
  IF NOT v_existed THEN
    SELECT coalesce(max(number), 0) + 1 INTO v_number FROM version WHERE kind = v_kind AND name = v_name;
    INSERT INTO version (kind, name, number, digest, body, stored_at)
    VALUES (v_kind, v_name, v_number, p_op ->> 'digest', p_body, p_now);
  END IF;
  RETURN jsonb_build_array(v_number, v_existed, active_version(v_kind, v_name));
END $$;

-- The version that is active now; 'null' if there is no such version.
CREATE FUNCTION activate_version(p_op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_kind integer := (p_op ->> 'kind')::int;
  v_name text := p_op ->> 'name';
  v_number integer := (p_op ->> 'number')::int;
  v_newest integer;
BEGIN
  SELECT max(number) INTO v_newest FROM version WHERE kind = v_kind AND name = v_name;
  IF v_newest IS NULL OR v_number NOT BETWEEN 1 AND v_newest THEN
    RETURN 'null';
  END IF;
  DELETE FROM chosen_version WHERE kind = v_kind AND name = v_name;
  IF v_number IS NOT NULL THEN
    INSERT INTO chosen_version (kind, name, number) VALUES (v_kind, v_name, v_number);
  END IF;
  RETURN to_jsonb(coalesce(v_number, v_newest));
END $$;
