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
  v_size integer := cardinality(p_attempts);
  v_run bigint;
  v_other bigint;   -- another, if there are several
  v_released bigint[];   -- the run of every child that became READY
  v_lanes integer[];
  v_ranks integer[];
  v_ended bigint[];
  v_last bigint[];
  v_stuck bigint[];
  v_news jsonb;
  v_workers text[];   -- who held the attempts, by which claims, of which runs
  v_claims bigint[];
  v_held bigint[];
BEGIN
  -- Sorted once, below, and not by each aggregate; that holds as long as none of them has an ORDER BY or a DISTINCT.
  SELECT array_agg(run), array_agg(idx), array_agg(number), bool_and(status = {A_RUNNING}), min(run), max(run)
    INTO v_runs, v_idxs, v_numbers, v_plain, v_run, v_other
    FROM (SELECT a.run, a.idx, a.number, a.status
            FROM unnest(p_attempts) WITH ORDINALITY s(attempt, place) JOIN attempt a ON a.key = s.attempt
           ORDER BY s.place) judged;
  IF v_plain IS NOT TRUE OR cardinality(v_runs) < v_size THEN
    RETURN NULL;
  END IF;
  IF v_run = v_other THEN
    SELECT array_fill(graph, ARRAY[v_size]), array(SELECT generate_series(seq + 1, seq + v_size)),
           gate = {G_OPEN} AND failed = 0 AND NOT stopping AND heals = 0 AND fork IS NULL
      INTO v_graphs, v_seqs, v_plain FROM run WHERE key = v_run;
  ELSE
    SELECT array_agg(graph), array_agg(seq), bool_and(plain) INTO v_graphs, v_seqs, v_plain
      FROM (SELECT r.graph, r.seq + row_number() OVER (PARTITION BY s.run ORDER BY s.place) AS seq,
                   r.gate = {G_OPEN} AND r.failed = 0 AND NOT r.stopping AND r.heals = 0 AND r.fork IS NULL AS plain
              FROM unnest(v_runs) WITH ORDINALITY s(run, place) JOIN run r ON r.key = s.run
             ORDER BY s.place) judged;
  END IF;
  IF NOT v_plain THEN
    RETURN NULL;
  END IF;

  WITH ended AS (
    UPDATE attempt a SET status = {A_COMPLETED}, ended_at = p_now, output = e.output, error = NULL, outcome = e.outcome
      FROM unnest(p_attempts, p_output, p_outcome) e(attempt, output, outcome)
     WHERE a.key = e.attempt
    RETURNING a.worker, a.key / {ORDINALS} AS claim, a.run)
  SELECT array_agg(worker), array_agg(claim), array_agg(run) INTO v_workers, v_claims, v_held FROM ended;
  PERFORM let_go_1(v_workers, v_claims, v_held);

  UPDATE node n SET status = {N_COMPLETED}, due_at = NULL, reason = NULL
    FROM unnest(v_runs, v_idxs) e(run, idx) WHERE n.run = e.run AND n.idx = e.idx;

  WITH moved AS (
    UPDATE node n
       SET waiting = n.waiting - l.by,
           status = CASE WHEN n.waiting = l.by AND n.status = {N_PENDING} THEN {N_READY} ELSE n.status END
      FROM (SELECT e.run, c.child, count(*)::int AS by
              FROM unnest(v_runs, v_idxs, v_graphs) e(run, idx, graph)
                   CROSS JOIN LATERAL (SELECT child FROM edge WHERE graph = e.graph AND parent = e.idx OFFSET 0) c
             GROUP BY e.run, c.child ORDER BY e.run, c.child) l   -- in the order of the indexes
     WHERE n.run = l.run AND n.idx = l.child
    RETURNING n.run, n.lane, n.rank, n.idx, n.status, n.waiting),
  marked AS (
    INSERT INTO ready (run, lane, rank, idx)
    SELECT run, lane, rank, idx FROM moved m
     WHERE status = {N_READY} AND waiting = 0   -- asked, because ON CONFLICT writes twice, and nobody else has the run
       AND NOT EXISTS (SELECT FROM ready y WHERE y.run = m.run AND y.lane = m.lane AND y.rank = m.rank AND y.idx = m.idx OFFSET 0))
  SELECT array_agg(run), array_agg(lane), array_agg(rank) INTO v_released, v_lanes, v_ranks
    FROM moved WHERE status = {N_READY} AND waiting = 0;

  WITH total AS (
    SELECT run, sum(ended) AS ended, sum(released) AS released, min(rank) AS lowest
      FROM (SELECT run, 1 AS ended, 0 AS released, NULL::integer AS rank FROM unnest(v_runs) e(run)
            UNION ALL SELECT run, 0, 1, rank FROM unnest(v_released, v_ranks) r(run, rank)) t
     GROUP BY run),
  counted AS (
    UPDATE run r
       SET seq = seq + t.ended + (open = t.ended)::int, open = open - t.ended, active = active - t.ended + t.released,
           status = CASE WHEN open = t.ended THEN {R_COMPLETED} ELSE status END,
           gate = CASE WHEN open = t.ended THEN {G_SHUT} ELSE gate END,
           ended_at = CASE WHEN open = t.ended THEN p_now ELSE ended_at END,
           low_rank = least(low_rank, t.lowest)
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
  RETURN CASE WHEN v_run = v_other THEN jsonb_build_object('run', v_run, 'news', v_news)
              ELSE jsonb_build_object('runs', v_runs, 'news', v_news) END;
END $$;
