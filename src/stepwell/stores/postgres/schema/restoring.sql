-- Runs that come from another store, in parts. The name of the run is locked already.
--
-- Nodes: [idx, status, waiting, skipped, queue, body, careful, suspect, attempt, failures, losses, due_at, reason, generation,
-- postponed, wakes]; attempts: [idx, number, status, worker, started_at, ended_at], beside their ids and payloads; journal: [seq, at,
-- kind, idx, number, status, detail]; lines: [idx, at, kind], beside the ids of their attempts and their data.
CREATE FUNCTION restore_rows(p_op jsonb, p_input bytea, p_fork bytea, p_claims text[], p_ordinals integer[], p_output bytea[],
                          p_error bytea[], p_outcome bytea[], p_line_claims text[], p_line_ordinals integer[], p_data bytea[],
                          p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_graph graph;
  v_nodes bigint;
  v_entries bigint;
  v_seq bigint := (p_op ->> 'seq')::bigint;
BEGIN
  SELECT * INTO v_graph FROM graph WHERE digest = p_op ->> 'digest';
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  IF v_run.key IS NOT NULL AND v_run.purpose IS DISTINCT FROM 'restore' AND v_run.created_at = (p_op ->> 'created_at')::bigint
     AND v_run.seed = (p_op ->> 'seed')::numeric THEN
    RETURN jsonb_build_object('nodes', (SELECT count(*) FROM node WHERE run = v_run.key), 'finished', true);
  ELSIF v_graph.key IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', 'graph ' || (p_op ->> 'digest'));
  ELSIF v_graph.loaded < v_graph.total THEN
    RETURN jsonb_build_object('refused', 'incomplete', 'detail', 'graph ' || (p_op ->> 'digest'));
  ELSIF v_run.key IS NOT NULL AND v_run.purpose IS DISTINCT FROM 'restore' THEN
    RETURN jsonb_build_object('refused', 'conflict', 'detail', p_op ->> 'run');
  ELSIF p_op ? 'refusal' THEN
    RETURN p_op -> 'refusal';
  ELSIF v_run.key IS NULL AND EXISTS (SELECT FROM run WHERE workflow = p_op ->> 'workflow' AND idempotency_key = p_op ->> 'key') THEN
    RETURN jsonb_build_object('refused', 'conflict', 'detail', p_op ->> 'run');
  END IF;
  IF v_run.key IS NULL THEN
    INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, idempotency_key, timeout, gate, purpose,
                     total, loaded, open, active, seq, created_at, deadline_at, fork, origin, tags, parent, parent_node, depth)
    VALUES (p_op ->> 'run', p_op ->> 'workflow', p_op ->> 'target', v_graph.key, (p_op ->> 'status')::int, p_op ->> 'on_failure',
            p_input, (p_op ->> 'seed')::numeric, (p_op ->> 'urgency')::bigint, p_op ->> 'key', (p_op ->> 'timeout')::bigint,
            {G_HELD}, 'restore', v_graph.total, 0, 0, 0, 0, (p_op ->> 'created_at')::bigint, (p_op ->> 'deadline_at')::bigint,
            p_fork, p_op ->> 'origin', p_op ->> 'tags', p_op ->> 'parent', (p_op ->> 'parent_node')::int, (p_op ->> 'depth')::int)
    RETURNING * INTO v_run;
    INSERT INTO tag (name, value, run) SELECT t ->> 0, t ->> 1, v_run.key FROM jsonb_array_elements((p_op ->> 'tags')::jsonb) t;
  END IF;
  PERFORM restore_nodes(v_run, p_op -> 'nodes');
  INSERT INTO claim (id)
  SELECT claim FROM unnest(p_claims) WITH ORDINALITY c(claim, place) GROUP BY claim ORDER BY min(place)
      ON CONFLICT DO NOTHING;
  INSERT INTO attempt (key, run, idx, number, status, worker, started_at, ended_at, output, error, outcome)
  SELECT c.key * {ORDINALS} + a.ordinal, v_run.key, (a.row ->> 0)::int, (a.row ->> 1)::int, (a.row ->> 2)::int, a.row ->> 3,
         (a.row ->> 4)::bigint, (a.row ->> 5)::bigint, a.output, a.error, a.outcome
    FROM ROWS FROM (jsonb_array_elements(p_op -> 'attempts'), unnest(p_claims), unnest(p_ordinals), unnest(p_output),
                    unnest(p_error), unnest(p_outcome)) AS a(row, claim, ordinal, output, error, outcome)
         JOIN claim c ON c.id = a.claim
      ON CONFLICT DO NOTHING;
  INSERT INTO journal (run, seq, at, kind, idx, number, status, detail)
  SELECT v_run.key, (j ->> 0)::bigint, (j ->> 1)::bigint, (j ->> 2)::int, (j ->> 3)::int, (j ->> 4)::int, (j ->> 5)::int, j ->> 6
    FROM jsonb_array_elements(p_op -> 'journal') j
      ON CONFLICT DO NOTHING;
  INSERT INTO line (attempt, idx, at, kind, data)
  SELECT c.key * {ORDINALS} + l.ordinal, (l.row ->> 0)::int, (l.row ->> 1)::bigint, l.row ->> 2, l.data
    FROM ROWS FROM (jsonb_array_elements(p_op -> 'lines'), unnest(p_line_claims), unnest(p_line_ordinals), unnest(p_data))
         AS l(row, claim, ordinal, data)
         JOIN claim c ON c.id = l.claim
      ON CONFLICT DO NOTHING;
  INSERT INTO former_graph (run, graph)
  SELECT v_run.key, g.key FROM jsonb_array_elements_text(p_op -> 'former') d(digest) JOIN graph g ON g.digest = d.digest
      ON CONFLICT DO NOTHING;
  SELECT count(*) INTO v_nodes FROM node WHERE run = v_run.key;
  SELECT count(*) INTO v_entries FROM journal WHERE run = v_run.key;
  UPDATE run SET loaded = v_nodes, expires_at = p_now + {LOAD_LEASE} WHERE key = v_run.key;
  IF NOT (p_op ->> 'finish')::boolean THEN
    RETURN jsonb_build_object('nodes', v_nodes, 'finished', false, 'key', v_run.key);
  ELSIF v_nodes < v_graph.total OR v_entries < v_seq THEN
    RETURN jsonb_build_object('refused', 'incomplete', 'detail', format('%s nodes and %s entries are there', v_nodes, v_entries),
                              'key', v_run.key);
  END IF;
  UPDATE run r
     SET status = (p_op ->> 'status')::int, gate = (p_op ->> 'gate')::int, purpose = NULL, expires_at = NULL,
         stopping = (p_op ->> 'stopping')::boolean AND (p_op ->> 'gate')::int <> {G_OPEN}, seq = v_seq,
         heals = (p_op ->> 'heals')::int, tolerated = (p_op ->> 'tolerated')::int, started_at = (p_op ->> 'started_at')::bigint,
         ended_at = (p_op ->> 'ended_at')::bigint, deadline_at = (p_op ->> 'deadline_at')::bigint, reason = p_op ->> 'reason',
         error = p_op ->> 'error', open = t.open, active = t.active, failed = t.failed, due_at = (SELECT min(at) FROM due WHERE run = v_run.key)
    FROM (SELECT count(*) FILTER (WHERE status < {N_TERMINAL}) AS open,
                 count(*) FILTER (WHERE status BETWEEN {N_READY} AND {N_WAITING}) AS active,
                 count(*) FILTER (WHERE status IN ({N_FAILED}, {N_INTERRUPTED})) AS failed FROM node WHERE run = v_run.key) t
   WHERE r.key = v_run.key;
  PERFORM offer_runs(ARRAY[v_run.key]);
  RETURN jsonb_build_object('nodes', v_nodes, 'finished', true, 'key', v_run.key);
END $$;

CREATE FUNCTION restore_nodes(p_run run, p_nodes jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  WITH added AS (
    INSERT INTO node (run, idx, status, waiting, skipped, lane, rank, attempt, failures, losses, due_at, reason, generation, postponed,
                      wakes)
    SELECT p_run.key, (n ->> 0)::int, (n ->> 1)::int, (n ->> 2)::int, (n ->> 3)::int, l.key, y.rank, (n ->> 8)::int, (n ->> 9)::int,
           (n ->> 10)::int, (n ->> 11)::bigint, n ->> 12, (n ->> 13)::int, (n ->> 14)::int,
           (n ->> 15)::int
      FROM jsonb_array_elements(p_nodes) n
           JOIN lane l ON l.queue = n ->> 4 AND l.body = n ->> 5 AND l.careful = (n ->> 6)::boolean AND l.suspect = (n ->> 7)::boolean
           JOIN layout y ON y.graph = p_run.graph AND y.idx = (n ->> 0)::int
        ON CONFLICT DO NOTHING
    RETURNING run, lane, rank, idx, status, due_at),
  waits AS (
    INSERT INTO due (run, at, idx) SELECT run, due_at, idx FROM added WHERE status = {N_WAITING} AND due_at IS NOT NULL)
  INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM added WHERE status = {N_READY};
END $$;
