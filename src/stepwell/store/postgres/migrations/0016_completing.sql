-- Many attempts complete, all of them current, in runs whose gates are open and in which nothing has failed: what a wide graph and many
-- small runs commit over and over. The same rules as settle_1, end_attempts_1 and conclude_1, which the same tests compare, with
-- every run touched once. Null: it is something else, and nothing has changed.
CREATE FUNCTION complete_1(p_attempts bigint[], p_output bytea[], p_outcome bytea[], p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_runs bigint[];
  v_idxs integer[];
  v_numbers integer[];
  v_graphs bigint[];
  v_seqs bigint[];
  v_plain boolean;
  v_released bigint[];   -- the run of every child that became READY
  v_lanes integer[];
  v_ended bigint[];
  v_last bigint[];
  v_stuck bigint[];
  v_news jsonb;
BEGIN
  -- Sorted once, below, and not by each aggregate; that holds as long as none of them has an ORDER BY or a DISTINCT.
  SELECT array_agg(run), array_agg(idx), array_agg(number), array_agg(graph), array_agg(seq), bool_and(plain)
    INTO v_runs, v_idxs, v_numbers, v_graphs, v_seqs, v_plain
    FROM (SELECT s.place, a.run, a.idx, a.number, r.graph, r.seq + row_number() OVER (PARTITION BY a.run ORDER BY s.place) AS seq,
                 a.status = {A_RUNNING} AND r.gate = {G_OPEN} AND r.failed = 0 AND NOT r.stopping AND r.heals = 0
                 AND r.fork IS NULL AS plain
            FROM unnest(p_attempts) WITH ORDINALITY s(attempt, place)
                 JOIN attempt a ON a.key = s.attempt JOIN run r ON r.key = a.run
           ORDER BY s.place) judged;
  IF v_plain IS NOT TRUE OR cardinality(v_runs) < cardinality(p_attempts) THEN
    RETURN NULL;
  END IF;

  WITH ended AS (
    UPDATE attempt a SET status = {A_COMPLETED}, ended_at = p_now, output = e.output, error = NULL, outcome = e.outcome
      FROM unnest(p_attempts, p_output, p_outcome) e(attempt, output, outcome)
     WHERE a.key = e.attempt
    RETURNING a.worker, a.key)
  DELETE FROM held h USING ended WHERE h.worker = ended.worker AND h.attempt = ended.key;

  UPDATE node n SET status = {N_COMPLETED}, due_at = NULL, reason = NULL
    FROM unnest(v_runs, v_idxs) e(run, idx) WHERE n.run = e.run AND n.idx = e.idx;

  WITH moved AS (
    UPDATE node n
       SET waiting = n.waiting - l.by,
           status = CASE WHEN n.waiting = l.by AND n.status = {N_PENDING} THEN {N_READY} ELSE n.status END
      FROM (SELECT e.run, c.child, count(*)::int AS by
              FROM unnest(v_runs, v_idxs, v_graphs) e(run, idx, graph)
                   CROSS JOIN LATERAL (SELECT child FROM edge WHERE graph = e.graph AND parent = e.idx OFFSET 0) c
             GROUP BY e.run, c.child) l
     WHERE n.run = l.run AND n.idx = l.child
    RETURNING n.run, n.lane, n.rank, n.idx, n.status, n.waiting),
  marked AS (
    INSERT INTO ready (run, lane, rank, idx)
    SELECT run, lane, rank, idx FROM moved WHERE status = {N_READY} AND waiting = 0
        ON CONFLICT DO NOTHING)
  SELECT array_agg(run), array_agg(lane) INTO v_released, v_lanes FROM moved WHERE status = {N_READY} AND waiting = 0;

  WITH total AS (
    SELECT run, sum(ended) AS ended, sum(released) AS released
      FROM (SELECT run, 1 AS ended, 0 AS released FROM unnest(v_runs) e(run)
            UNION ALL SELECT run, 0, 1 FROM unnest(v_released) r(run)) t
     GROUP BY run),
  counted AS (
    UPDATE run r
       SET seq = seq + t.ended + (open = t.ended)::int, open = open - t.ended, active = active - t.ended + t.released,
           status = CASE WHEN open = t.ended THEN {R_COMPLETED} ELSE status END,
           gate = CASE WHEN open = t.ended THEN {G_SHUT} ELSE gate END,
           ended_at = CASE WHEN open = t.ended THEN p_now ELSE ended_at END
      FROM total t WHERE r.key = t.run
    RETURNING r.key, r.id, r.status, r.gate, r.purpose, r.open, r.active, r.failed, r.seq)
  SELECT jsonb_agg(jsonb_build_array(key, id, status, gate, purpose, open, active, failed, seq)),
         array_agg(key) FILTER (WHERE open = 0), array_agg(seq) FILTER (WHERE open = 0),
         array_agg(key) FILTER (WHERE active = 0 AND open > 0)
    INTO v_news, v_ended, v_last, v_stuck FROM counted;

  INSERT INTO journal (run, seq, at, kind, idx, number, status)
  SELECT run, seq, p_now, {A_COMPLETED} + {ENDS}, idx, number, {N_COMPLETED}
    FROM unnest(v_runs, v_seqs, v_idxs, v_numbers) e(run, seq, idx, number);
  IF v_ended IS NOT NULL THEN
    INSERT INTO journal (run, seq, at, kind, status)
    SELECT run, seq, p_now, {K_RUN}, {R_COMPLETED} FROM unnest(v_ended, v_last) e(run, seq);
    DELETE FROM offer WHERE run = ANY(v_ended);
  END IF;
  IF v_released IS NOT NULL THEN
    INSERT INTO offer (lane, graph, workflow, urgency, run)
    SELECT u.lane, r.graph, r.workflow, r.urgency, r.key
      FROM (SELECT DISTINCT run, lane FROM unnest(v_released, v_lanes) u(run, lane)) u JOIN run r ON r.key = u.run
        ON CONFLICT DO NOTHING;
  END IF;
  IF v_stuck IS NOT NULL THEN
    PERFORM conclude_1(v_stuck, p_now);
    v_news := news_1(array(SELECT DISTINCT run FROM unnest(v_runs) r(run)));
  END IF;
  RETURN jsonb_build_object('verdicts', array_fill(1, ARRAY[cardinality(v_runs)]), 'runs', v_runs, 'news', v_news);
END $$;
