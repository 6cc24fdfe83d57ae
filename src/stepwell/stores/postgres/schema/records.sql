-- Small records. Their names are locked already.

-- [whether it is as asked now, the version that is there]
CREATE FUNCTION put_record(p_op jsonb, p_value bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_kind text := p_op ->> 'kind';
  v_key text := p_op ->> 'key';
  v_expected bigint := (p_op ->> 'expected')::bigint;
  v_version bigint;
  v_value bytea;
BEGIN
  SELECT version, value INTO v_version, v_value FROM record WHERE kind = v_kind AND key = v_key;
  v_version := coalesce(v_version, 0);
  IF v_value IS NOT DISTINCT FROM p_value THEN
    RETURN jsonb_build_array(true, v_version);
  END IF;
  IF v_expected <> v_version THEN
    RETURN jsonb_build_array(false, v_version);
  END IF;
  IF p_value IS NULL THEN
    DELETE FROM record WHERE kind = v_kind AND key = v_key;
    RETURN jsonb_build_array(true, 0);
  END IF;
  v_version := greatest(p_now, v_version + 1);
  INSERT INTO record (kind, key, version, value) VALUES (v_kind, v_key, v_version, p_value)
      ON CONFLICT (kind, key) DO UPDATE SET version = excluded.version, value = excluded.value;
  RETURN jsonb_build_array(true, v_version);
END $$;
