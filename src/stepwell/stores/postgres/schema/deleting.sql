-- Runs and graphs are forgotten in chunks. True: it is gone.

CREATE FUNCTION delete_run(p_op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_limit integer := (p_op ->> 'limit')::int;
  v_first integer;
  v_attempts bigint[];
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  IF v_run.key IS NULL THEN
    RETURN 'true';
  ELSIF v_run.purpose = '{ENDED}' THEN
    RETURN jsonb_build_object('refused', 'incomplete', 'detail', v_run.purpose);
  ELSIF coalesce(v_run.purpose, '') NOT IN ('delete', 'restore') AND v_run.status < {R_COMPLETED} THEN
    RETURN jsonb_build_object('refused', 'status', 'status', v_run.status);
  END IF;
  UPDATE run SET gate = {G_HELD}, purpose = 'delete', token = NULL, arguments = '', expires_at = 0,
                 loaded = greatest(0, loaded - v_limit)
   WHERE key = v_run.key;
  SELECT max(idx) + 1 - v_limit INTO v_first FROM node WHERE run = v_run.key;
  IF v_first IS NOT NULL THEN
    v_attempts := array(SELECT key FROM attempt WHERE run = v_run.key AND idx >= v_first);
    DELETE FROM line WHERE attempt = ANY(v_attempts);
    DELETE FROM held WHERE run = v_run.key AND (worker, claim) IN (
      SELECT worker, key / {ORDINALS} FROM attempt WHERE key = ANY(v_attempts) AND status = {A_RUNNING});
    DELETE FROM attempt WHERE key = ANY(v_attempts);
    DELETE FROM claim c WHERE c.key = ANY(array(SELECT DISTINCT a / {ORDINALS} FROM unnest(v_attempts) u(a)))
       AND NOT EXISTS (SELECT FROM attempt a WHERE a.key BETWEEN c.key * {ORDINALS} AND c.key * {ORDINALS} + {ORDINALS} - 1);
    DELETE FROM ready WHERE run = v_run.key AND idx >= v_first;
    DELETE FROM due WHERE run = v_run.key AND idx >= v_first;
    DELETE FROM node WHERE run = v_run.key AND idx >= v_first;
  END IF;
  DELETE FROM journal WHERE run = v_run.key
     AND seq > (SELECT max(seq) FROM journal WHERE run = v_run.key) - {ENTRIES_A_NODE} * v_limit;
  IF v_first > 0 OR EXISTS (SELECT FROM journal WHERE run = v_run.key) THEN
    RETURN 'false';
  END IF;
  DELETE FROM blob WHERE run = v_run.key AND hash IN (SELECT hash FROM blob WHERE run = v_run.key LIMIT v_limit);
  IF EXISTS (SELECT FROM blob WHERE run = v_run.key) THEN
    RETURN 'false';
  END IF;
  DELETE FROM offer WHERE run = v_run.key;
  DELETE FROM tag WHERE run = v_run.key;
  DELETE FROM former_graph WHERE run = v_run.key;
  DELETE FROM run WHERE key = v_run.key;
  RETURN 'true';
END $$;

CREATE FUNCTION delete_graph(p_op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_graph bigint;
  v_left integer;
BEGIN
  SELECT key, greatest(0, loaded - (p_op ->> 'limit')::int) INTO v_graph, v_left FROM graph WHERE digest = p_op ->> 'digest';
  IF v_graph IS NULL THEN
    RETURN 'true';
  ELSIF EXISTS (SELECT FROM run WHERE graph = v_graph) OR EXISTS (SELECT FROM former_graph WHERE graph = v_graph) THEN
    RETURN jsonb_build_object('refused', 'status', 'detail', 'in use');
  END IF;
  UPDATE graph
     SET loaded = v_left,
         roots = roots - (SELECT count(*) FROM layout l WHERE l.graph = v_graph AND l.idx >= v_left AND l.parents = 0)
   WHERE key = v_graph;
  DELETE FROM edge WHERE graph = v_graph AND child >= v_left;
  DELETE FROM need WHERE graph = v_graph AND child >= v_left;
  DELETE FROM layout WHERE graph = v_graph AND idx >= v_left;
  IF v_left > 0 THEN
    RETURN 'false';
  END IF;
  DELETE FROM graph WHERE key = v_graph;
  RETURN 'true';
END $$;
