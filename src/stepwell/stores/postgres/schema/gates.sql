-- What needs a closed gate: holding it, rewriting rows behind it, switching graphs, opening and shutting it.

-- [] and how the run stands, or why not: [reason, detail]. core/store/rules/verdicts.py says the same in Python.
CREATE FUNCTION take_gate(p_op jsonb, p_arguments bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_held boolean;
  v_token text := p_op ->> 'token';
  v_resume boolean := (p_op ->> 'resume')::boolean;
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  IF v_run.key IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', p_op ->> 'run');
  END IF;
  v_held := v_run.gate = {G_HELD};
  IF NOT (v_held AND v_run.token IS NOT DISTINCT FROM v_token) THEN
    IF v_token = v_run.last_token THEN
      RETURN jsonb_build_object('refused', 'gate_lost', 'detail', 'what this request was for is done');
    ELSIF v_held AND v_run.purpose IN ('load', 'delete', 'restore') THEN
      RETURN jsonb_build_object('refused', 'incomplete', 'detail', v_run.purpose);
    ELSIF jsonb_array_length(p_op -> 'allowed') > 0 AND NOT p_op -> 'allowed' @> to_jsonb(v_run.status) THEN
      RETURN jsonb_build_object('refused', 'status', 'status', v_run.status);
    ELSIF v_resume AND (NOT v_held OR v_run.purpose IS DISTINCT FROM p_op ->> 'purpose') THEN
      RETURN jsonb_build_object('refused', 'status', 'status', v_run.status);
    ELSIF v_held AND v_run.token IS NOT NULL AND v_run.expires_at > p_now THEN
      RETURN jsonb_build_object('refused', 'gate_held', 'detail', coalesce(v_run.purpose, ''));
    ELSIF v_held AND NOT v_resume THEN
      RETURN jsonb_build_object('refused', 'incomplete', 'detail', coalesce(v_run.purpose, ''));
    END IF;
    UPDATE run SET gate = {G_HELD}, token = v_token, purpose = p_op ->> 'purpose', arguments = p_arguments,
                   expires_at = p_now + (p_op ->> 'lease')::bigint, reported_until = 0,
                   stopping = stopping OR (p_op ->> 'stop')::boolean, seq = seq + 1
     WHERE key = v_run.key;
    INSERT INTO journal (run, seq, at, kind, detail) VALUES (v_run.key, v_run.seq + 1, p_now, {K_GATE}, p_op ->> 'purpose');
  END IF;
  RETURN jsonb_build_object('news', news_of(ARRAY[v_run.key]));
END $$;

-- Change the nodes that still are what the kernel saw; the others are returned.
-- Rows: [index, was, was attempt, status, reason, fresh, the first of its node, anew].
CREATE FUNCTION change_nodes(p_run bigint, p_graph bigint, p_rows jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_wrong jsonb;
  v_idx integer[];
  v_was integer[];
  v_status integer[];
  v_reason text[];
  v_fresh boolean[];
  v_anew boolean[];
BEGIN
  SELECT jsonb_agg((c.row ->> 0)::int ORDER BY c.place) FILTER (WHERE NOT c.ok),
         array_agg((c.row ->> 0)::int ORDER BY c.place) FILTER (WHERE c.moves),
         array_agg((c.row ->> 1)::int ORDER BY c.place) FILTER (WHERE c.moves),
         array_agg((c.row ->> 3)::int ORDER BY c.place) FILTER (WHERE c.moves),
         array_agg(c.row ->> 4 ORDER BY c.place) FILTER (WHERE c.moves),
         array_agg((c.row ->> 5)::boolean ORDER BY c.place) FILTER (WHERE c.moves),
         array_agg((c.row ->> 7)::boolean ORDER BY c.place) FILTER (WHERE c.moves)
    INTO v_wrong, v_idx, v_was, v_status, v_reason, v_fresh, v_anew
    FROM (SELECT f.*, f.ok AND f.row ->> 1 <> f.row ->> 3 AS moves
            FROM (SELECT r.row, r.place,
                         coalesce(n.status = (r.row ->> 1)::int AND n.attempt = (r.row ->> 2)::int AND (r.row ->> 6)::boolean, false) AS ok
                    FROM jsonb_array_elements(p_rows) WITH ORDINALITY r(row, place)
                         LEFT JOIN node n ON n.run = p_run AND n.idx = (r.row ->> 0)::int) f) c;
  IF v_idx IS NOT NULL THEN
    DELETE FROM ready
     WHERE ctid = ANY(array(SELECT y.ctid FROM node n CROSS JOIN LATERAL
                            (SELECT ctid FROM ready
                              WHERE run = n.run AND lane = n.lane AND rank = n.rank AND idx = n.idx OFFSET 0) y
                             WHERE n.run = p_run AND n.idx = ANY(v_idx) AND n.status = {N_READY}));
    DELETE FROM due
     WHERE ctid = ANY(array(SELECT d.ctid FROM node n CROSS JOIN LATERAL
                            (SELECT ctid FROM due WHERE run = n.run AND at = n.due_at AND idx = n.idx OFFSET 0) d
                             WHERE n.run = p_run AND n.idx = ANY(v_idx) AND n.due_at IS NOT NULL));
    UPDATE node n
       SET status = c.status, reason = c.reason, due_at = NULL, generation = n.generation + (c.was = {N_COMPLETED})::int,
           failures = CASE WHEN c.fresh THEN 0 ELSE n.failures END, postponed = CASE WHEN c.fresh THEN 0 ELSE n.postponed END,
           losses = CASE WHEN c.fresh THEN 0 ELSE n.losses END, wakes = CASE WHEN c.anew THEN 0 ELSE n.wakes END,
           lane = CASE WHEN c.fresh THEN (SELECT l.lane FROM layout l WHERE l.graph = p_graph AND l.idx = n.idx) ELSE n.lane END
      FROM unnest(v_idx, v_was, v_status, v_reason, v_fresh, v_anew) c(idx, was, status, reason, fresh, anew)
     WHERE n.run = p_run AND n.idx = c.idx;
    UPDATE attempt a SET status = {A_SUPERSEDED} FROM unnest(v_idx) c(idx)
     WHERE a.run = p_run AND a.idx = c.idx AND a.status = {A_COMPLETED};
    UPDATE run r
       SET seq = r.seq + t.changed, open = r.open + t.open, active = r.active + t.active, failed = r.failed + t.failed
      FROM (SELECT count(*) AS changed, sum((status < {N_TERMINAL})::int - (was < {N_TERMINAL})::int) AS open,
                   sum((status BETWEEN {N_READY} AND {N_WAITING})::int - (was BETWEEN {N_READY} AND {N_WAITING})::int) AS active,
                   sum((status IN ({N_FAILED}, {N_INTERRUPTED}))::int - (was IN ({N_FAILED}, {N_INTERRUPTED}))::int) AS failed
              FROM unnest(v_was, v_status) c(was, status)) t
     WHERE r.key = p_run;
    INSERT INTO journal (run, seq, at, kind, idx, number, status)
    SELECT p_run, r.seq - cardinality(v_idx) + c.place, p_now, {K_REWROTE}, c.idx, n.attempt, c.status
      FROM unnest(v_idx, v_status) WITH ORDINALITY c(idx, status, place) JOIN run r ON r.key = p_run
           JOIN node n ON n.run = p_run AND n.idx = c.idx;
  END IF;
  RETURN v_wrong;
END $$;

-- Both counters of every node, and which unstarted ones are READY, derived anew from the rows.
-- Where statistics are old, the server takes a large run for a small one, and its plan would compare every node with every count.
CREATE FUNCTION derive_nodes(p_run bigint, p_graph bigint) RETURNS void LANGUAGE plpgsql SET enable_nestloop = off AS $$
#variable_conflict use_column
BEGIN
  WITH counted AS (
    SELECT c.child, count(*) FILTER (WHERE p.status NOT IN ({N_COMPLETED}, {N_SKIPPED}))::int AS waiting,
           count(*) FILTER (WHERE p.status = {N_SKIPPED} AND p.reason IS DISTINCT FROM '{HEALED_LATE}')::int AS skipped
      FROM node p CROSS JOIN LATERAL (SELECT child FROM edge WHERE graph = p_graph AND parent = p.idx OFFSET 0) c
     WHERE p.run = p_run GROUP BY c.child)
  UPDATE node n SET waiting = t.waiting, skipped = t.skipped
    FROM counted t
   WHERE n.run = p_run AND n.idx = t.child AND (n.waiting, n.skipped) <> (t.waiting, t.skipped);
  UPDATE node n SET waiting = 0, skipped = 0
   WHERE n.run = p_run AND (n.waiting > 0 OR n.skipped > 0)
     AND EXISTS (SELECT FROM layout l WHERE l.graph = p_graph AND l.idx = n.idx AND l.parents = 0);
  UPDATE node SET status = CASE waiting WHEN 0 THEN {N_READY} ELSE {N_PENDING} END
   WHERE run = p_run AND status = CASE waiting WHEN 0 THEN {N_PENDING} ELSE {N_READY} END;
  DELETE FROM ready WHERE run = p_run;
  INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM node WHERE run = p_run AND status = {N_READY};
  UPDATE run SET due_at = (SELECT min(at) FROM due d WHERE d.run = p_run), low_lane = NULL WHERE key = p_run;
END $$;

-- The end of a rewrite: [status, open, reason, grace, tolerate].
CREATE FUNCTION finish(p_run run, p_finish jsonb, p_input bytea, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_status integer := (p_finish ->> 0)::int;
  v_open boolean := (p_finish ->> 1)::boolean;
  v_ended boolean := p_run.parent IS NOT NULL AND v_status >= {R_TERMINAL} AND p_run.status <> v_status;   -- to be handed on
BEGIN
  UPDATE run
     SET last_token = token, token = NULL, purpose = CASE WHEN v_ended THEN '{ENDED}' END, arguments = '',
         expires_at = CASE WHEN v_ended THEN p_now END, reported_until = CASE WHEN v_ended THEN 0 ELSE reported_until END,
         status = v_status,
         reason = p_finish ->> 2, input = coalesce(p_input, input),
         ended_at = CASE WHEN status = v_status THEN ended_at WHEN v_status >= {R_TERMINAL} THEN p_now END,
         cancel_at = CASE v_status WHEN {R_CANCELLING} THEN p_now + coalesce((p_finish ->> 3)::bigint, 0) END,
         gate = CASE WHEN v_open THEN {G_OPEN} WHEN v_ended THEN {G_HELD} ELSE {G_SHUT} END, stopping = stopping AND NOT v_open,
         deadline_at = CASE WHEN v_open AND timeout IS NOT NULL AND status <> v_status THEN p_now + timeout ELSE deadline_at END,
         seq = seq + 1
   WHERE key = p_run.key;
  INSERT INTO journal (run, seq, at, kind, status) SELECT key, seq, p_now, {K_RUN}, v_status FROM run WHERE key = p_run.key;
  IF v_open THEN
    PERFORM derive_nodes(p_run.key, p_run.graph);
  END IF;
  UPDATE run r
     SET open = t.open, active = t.active, failed = t.failed,
         tolerated = CASE WHEN (p_finish ->> 4)::boolean THEN t.failed ELSE least(r.tolerated, t.failed) END,
         error = CASE WHEN t.failed > 0 THEN r.error END
    FROM (SELECT count(*) FILTER (WHERE status < {N_TERMINAL}) AS open,
                 count(*) FILTER (WHERE status BETWEEN {N_READY} AND {N_WAITING}) AS active,
                 count(*) FILTER (WHERE status IN ({N_FAILED}, {N_INTERRUPTED})) AS failed
            FROM node WHERE run = p_run.key) t
   WHERE r.key = p_run.key;
  IF v_open THEN
    PERFORM offer_runs(ARRAY[p_run.key]);
  ELSE
    DELETE FROM offer WHERE run = p_run.key;
  END IF;
  PERFORM conclude(ARRAY[p_run.key], p_now);
END $$;

-- Whether the moves are legal was looked at before; whether the run may become what is asked is in `allowed`, by its status.
CREATE FUNCTION rewrite(p_op jsonb, p_input bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_wrong jsonb;
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  IF v_run.key IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', p_op ->> 'run');
  ELSIF v_run.gate <> {G_HELD} OR v_run.token IS DISTINCT FROM p_op ->> 'token' THEN
    RETURN jsonb_build_object('refused', 'gate_lost', 'detail', '');
  ELSIF p_op -> 'illegal' ->> v_run.status::text IS NOT NULL THEN
    RETURN jsonb_build_object('refused', 'status', 'detail', p_op -> 'illegal' ->> v_run.status::text);
  END IF;
  IF jsonb_array_length(p_op -> 'rows') > 0 THEN
    v_wrong := change_nodes(v_run.key, v_run.graph, p_op -> 'rows', p_now);
    IF v_wrong IS NOT NULL THEN
      RETURN jsonb_build_object('refused', 'changed', 'rows', v_wrong);
    END IF;
  END IF;
  IF p_op ? 'finish' THEN
    PERFORM finish(v_run, p_op -> 'finish', p_input, p_now);
  END IF;
  RETURN jsonb_build_object('news', news_of(ARRAY[v_run.key]), 'key', v_run.key);
END $$;

-- The run switches to another stored graph, which numbers the nodes it has as they were.
CREATE FUNCTION switch_graph(p_op jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_graph graph;
  v_old text;
  v_added integer;
  v_start integer := (p_op ->> 'start')::int;
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  SELECT * INTO v_graph FROM graph WHERE digest = p_op ->> 'digest';
  IF v_run.key IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', p_op ->> 'run');
  ELSIF v_graph.key IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', 'graph ' || (p_op ->> 'digest'));
  ELSIF v_run.gate <> {G_HELD} OR v_run.token IS DISTINCT FROM p_op ->> 'token' THEN
    RETURN jsonb_build_object('refused', 'gate_lost', 'detail', '');
  ELSIF v_graph.loaded < v_graph.total OR v_start > v_run.loaded THEN
    RETURN jsonb_build_object('refused', 'incomplete', 'detail', format('the nodes before %s are not there yet', v_start));
  ELSIF v_graph.total < v_run.loaded THEN
    RETURN jsonb_build_object('refused', 'conflict',
                              'detail', format('graph %s does not number every node of the run', p_op ->> 'digest'));
  END IF;
  IF v_run.graph <> v_graph.key THEN
    SELECT digest INTO v_old FROM graph WHERE key = v_run.graph;
    UPDATE run SET graph = v_graph.key, total = v_graph.total, heals = heals + 1, seq = seq + 1, low_lane = NULL
     WHERE key = v_run.key;
    INSERT INTO former_graph (run, graph) VALUES (v_run.key, v_run.graph) ON CONFLICT DO NOTHING;
    INSERT INTO journal (run, seq, at, kind, detail)
    VALUES (v_run.key, v_run.seq + 1, p_now, {K_HEALED}, v_old || ' ' || v_graph.digest);
    DELETE FROM offer WHERE run = v_run.key;
    -- A suspect stays one, in the queue it is in now.
    UPDATE node n SET rank = l.rank, lane = CASE WHEN was.suspect THEN suspect.key ELSE l.lane END
      FROM layout l JOIN lane home ON home.key = l.lane
           JOIN lane suspect ON suspect.queue = home.queue AND suspect.body = home.body AND suspect.careful = home.careful
                            AND suspect.suspect, lane was
     WHERE n.run = v_run.key AND l.graph = v_graph.key AND l.idx = n.idx AND was.key = n.lane
       AND (l.rank, l.lane) <> (n.rank, n.lane);
    DELETE FROM ready WHERE run = v_run.key;
    INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM node WHERE run = v_run.key AND status = {N_READY};
  END IF;
  IF v_start = v_run.loaded AND v_run.loaded < v_graph.total THEN
    INSERT INTO node (run, idx, status, waiting, lane, rank)
    SELECT v_run.key, idx, {N_PENDING}, parents, lane, rank
      FROM layout WHERE graph = v_graph.key AND idx >= v_run.loaded AND idx < v_run.loaded + {NODES};
    GET DIAGNOSTICS v_added = ROW_COUNT;
    UPDATE run SET loaded = loaded + v_added, open = open + v_added WHERE key = v_run.key;
    v_run.loaded := v_run.loaded + v_added;
  END IF;
  RETURN jsonb_build_array(v_run.loaded, v_graph.total);
END $$;
