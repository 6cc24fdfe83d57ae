-- Attempts that end, for whatever reason: settled, lost, released or fenced. One path for all of them.

-- How runs stand, as news. (Functions are in PL/pgSQL because those in SQL are planned anew with every call.)
CREATE FUNCTION news_of(p_runs bigint[]) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(key, id, status, gate, purpose, open, active, failed, seq) ORDER BY key), '[]')
    FROM run WHERE key = ANY(p_runs));
END $$;

-- The READY nodes of runs can be found, as far as their gates are open.
CREATE FUNCTION offer_runs(p_runs bigint[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO offer (lane, graph, workflow, urgency, run)
  SELECT l.key, r.graph, r.workflow, r.urgency, r.key
    FROM unnest(p_runs) k(key) JOIN run r ON r.key = k.key AND r.gate = {G_OPEN} CROSS JOIN lane l
   WHERE EXISTS (SELECT FROM ready y WHERE y.run = r.key AND y.lane = l.key OFFSET 0)
      ON CONFLICT DO NOTHING;
END $$;

-- What follows for runs whose nodes have moved (core/store/rules/verdicts.py says the same in Python).
CREATE FUNCTION conclude(p_runs bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_ended bigint[];
  v_changed bigint[];
BEGIN
  WITH judged AS (
    SELECT r.key, r.parent,
           CASE WHEN r.gate = {G_OPEN} THEN
                  CASE WHEN r.open = 0 AND r.failed = 0 THEN 1
                       WHEN r.failed > r.tolerated AND r.on_failure = 'pause' THEN 2
                       WHEN r.active = 0 OR (r.failed > r.tolerated AND r.on_failure = 'fail_fast') THEN 3 ELSE 0 END
                WHEN r.status = {R_CANCELLING} AND r.active = 0 THEN 4 ELSE 0 END AS verdict
      FROM run r WHERE r.key = ANY(p_runs)),
  verdict AS (   -- `held`: for what its gate is held by nobody. That a child run has ended is to be handed on
    SELECT key, verdict, CASE WHEN verdict = 3 THEN 'failed' WHEN verdict IN (1, 4) AND parent IS NOT NULL THEN '{ENDED}' END AS held
      FROM judged WHERE verdict > 0),
  changed AS (
    UPDATE run r
       SET status = CASE v.verdict WHEN 1 THEN {R_COMPLETED} WHEN 2 THEN {R_PAUSED} WHEN 4 THEN {R_CANCELLED} ELSE status END,
           gate = CASE WHEN v.held IS NULL THEN {G_SHUT} ELSE {G_HELD} END,
           ended_at = CASE WHEN v.verdict IN (1, 4) THEN p_now ELSE ended_at END,
           cancel_at = CASE v.verdict WHEN 4 THEN NULL ELSE cancel_at END,
           reason = CASE v.verdict WHEN 2 THEN '{NODE_FAILED}' ELSE reason END,
           token = CASE WHEN v.held IS NULL THEN token END,
           purpose = coalesce(v.held, purpose),
           arguments = CASE WHEN v.held IS NULL THEN arguments ELSE '' END,
           expires_at = CASE WHEN v.held IS NULL THEN expires_at ELSE p_now END,
           stopping = CASE v.verdict WHEN 3 THEN true ELSE stopping END,
           reported_until = CASE WHEN v.held IS NULL THEN reported_until ELSE 0 END,
           seq = seq + 1
      FROM verdict v WHERE v.key = r.key
    RETURNING r.key, r.seq, r.status, v.verdict),
  noted AS (
    INSERT INTO journal (run, seq, at, kind, status, detail)
    SELECT key, seq, p_now, CASE verdict WHEN 3 THEN {K_GATE} ELSE {K_RUN} END, CASE verdict WHEN 3 THEN NULL ELSE status END,
           CASE verdict WHEN 3 THEN 'failed' END
      FROM changed)
  SELECT array_agg(key) FILTER (WHERE verdict IN (1, 4)), array_agg(key) INTO v_ended, v_changed FROM changed;
  IF v_ended IS NOT NULL THEN
    DELETE FROM offer WHERE run = ANY(v_ended);
  END IF;
END $$;

-- Gates are closed and held by nobody: whoever sees one first finishes what it is held for.
CREATE FUNCTION close_gates(p_runs bigint[], p_purpose text, p_reason text, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  WITH closed AS (
    UPDATE run SET gate = {G_HELD}, token = NULL, purpose = p_purpose,
                   arguments = CASE p_purpose WHEN 'fork' THEN fork ELSE '' END,
                   expires_at = p_now, stopping = (p_purpose = 'failed'), reported_until = 0,
                   reason = coalesce(p_reason, reason), seq = seq + 1
     WHERE key = ANY(p_runs)
    RETURNING key, seq)
  INSERT INTO journal (run, seq, at, kind, detail) SELECT key, seq, p_now, {K_GATE}, p_purpose FROM closed;
END $$;

-- The RUNNING attempts of a worker.
CREATE FUNCTION attempts_held(p_worker text) RETURNS SETOF attempt LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT a.* FROM (SELECT DISTINCT claim FROM held WHERE worker = p_worker) h CROSS JOIN LATERAL
           (SELECT * FROM attempt WHERE key BETWEEN h.claim * {ORDINALS} AND h.claim * {ORDINALS} + {ORDINALS} - 1 OFFSET 0) a
     WHERE a.status = {A_RUNNING};
END $$;

-- Attempts end, and what follows: workers hold them no longer, their nodes move, children are lowered; runs are counted, noted
-- and concluded. Answers the runs.
CREATE FUNCTION end_attempts(p_ending ending[], p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_runs bigint[];
  v_again boolean;     -- some node is to run again
  v_turning boolean;   -- some run may be at its end, or is not moving
  v_failing boolean;   -- some run has failed nodes
BEGIN
  WITH ended AS (
    UPDATE attempt a
       SET status = e.status, ended_at = p_now, output = e.output, error = e.error, outcome = e.outcome
      FROM unnest(p_ending) e
     WHERE a.key = e.attempt
    RETURNING a.worker, a.key / {ORDINALS} AS claim, a.run),
  gone AS (
    SELECT h.ctid AS place, h.running - e.ended AS running
      FROM (SELECT worker, claim, run, count(*)::int AS ended FROM ended GROUP BY worker, claim, run) e
           CROSS JOIN LATERAL (SELECT ctid, running FROM held WHERE worker = e.worker AND claim = e.claim AND run = e.run OFFSET 0) h),
  fewer AS (
    UPDATE held SET running = g.running FROM gone g WHERE held.ctid = g.place AND g.running > 0),
  dropped AS (
    DELETE FROM held WHERE ctid = ANY(array(SELECT place FROM gone WHERE running = 0)))
  UPDATE node n
     SET status = e.node, due_at = e.due_at, reason = e.reason, losses = n.losses + e.loss, lane = coalesce(e.lane, n.lane),
         failures = n.failures + (e.status IN ({A_FAILED}, {A_TIMED_OUT}) AND NOT e.postponed)::int,
         postponed = n.postponed + (e.status IN ({A_FAILED}, {A_TIMED_OUT}) AND e.postponed)::int
    FROM unnest(p_ending) e WHERE n.run = e.run AND n.idx = e.idx;

  -- In a statement of its own: a heal may have made one of these nodes the child of another.
  WITH lowered AS (
    SELECT e.run, c.child, count(*)::int AS by, count(*) FILTER (WHERE e.node = {N_SKIPPED})::int AS skipped
      FROM unnest(p_ending) e
           CROSS JOIN LATERAL (SELECT child FROM edge WHERE graph = e.graph AND parent = e.idx OFFSET 0) c
     WHERE e.node IN ({N_COMPLETED}, {N_SKIPPED}) AND e.moving
     GROUP BY e.run, c.child ORDER BY e.run, c.child),   -- in the order of the indexes
  moved AS (
    UPDATE node n
       SET waiting = n.waiting - l.by, skipped = n.skipped + l.skipped,
           status = CASE WHEN n.waiting = l.by AND n.status = {N_PENDING} THEN {N_READY} ELSE n.status END
      FROM lowered l WHERE n.run = l.run AND n.idx = l.child
    RETURNING n.run, n.lane, n.rank, n.idx, n.status = {N_READY} AND n.waiting = 0 AS released),
  marked AS (
    INSERT INTO ready (run, lane, rank, idx)
    SELECT run, lane, rank, idx FROM moved m
     WHERE released   -- asked, because ON CONFLICT writes twice, and no other transaction has the run
       AND NOT EXISTS (SELECT FROM ready y WHERE y.run = m.run AND y.lane = m.lane AND y.rank = m.rank AND y.idx = m.idx OFFSET 0)),
  offered AS (
    INSERT INTO offer (lane, graph, workflow, urgency, run)
    SELECT DISTINCT m.lane, r.graph, r.workflow, r.urgency, r.key FROM moved m JOIN run r ON r.key = m.run WHERE m.released
        ON CONFLICT DO NOTHING),
  noted AS (
    INSERT INTO journal (run, seq, at, kind, idx, number, status)
    SELECT e.run, r.seq + row_number() OVER (PARTITION BY e.run ORDER BY e.place), p_now, e.status + {ENDS}, e.idx, e.number, e.node
      FROM unnest(p_ending) WITH ORDINALITY
           AS e(attempt, run, idx, number, graph, status, node, due_at, loss, lane, reason, moving, postponed, output, error, outcome, error_type, place)
           JOIN run r ON r.key = e.run),
  total AS (
    SELECT run, sum(ended) AS ended, sum(closed) AS closed, sum(failed) AS failed, sum(released) AS released, min(due_at) AS due_at,
           min(rank) AS lowest, bool_or(again) AS again
      FROM (SELECT run, 1 AS ended, (node >= {N_TERMINAL})::int AS closed, (node IN ({N_FAILED}, {N_INTERRUPTED}))::int AS failed,
                   0 AS released, due_at, NULL::integer AS rank, node IN ({N_READY}, {N_WAITING}) AS again FROM unnest(p_ending)
            UNION ALL SELECT run, 0, 0, 0, 1, NULL, rank, false FROM moved WHERE released) t
     GROUP BY run),
  counted AS (
    UPDATE run r
       SET seq = seq + t.ended, open = open - t.closed, failed = r.failed + t.failed, active = active - t.closed + t.released,
           due_at = least(r.due_at, t.due_at), low_rank = least(r.low_rank, t.lowest)
      FROM total t WHERE r.key = t.run
    RETURNING r.key, t.again, r.gate <> {G_OPEN} OR r.open = 0 OR r.active = 0 OR r.failed > 0 AS turning, r.failed > 0 AS failing)
  SELECT array_agg(key), bool_or(again), bool_or(turning), bool_or(failing) INTO v_runs, v_again, v_turning, v_failing FROM counted;

  IF v_failing THEN
    PERFORM note_errors(p_ending);
  END IF;
  IF v_again THEN
    PERFORM run_again(p_ending);
  END IF;
  IF v_again OR v_turning THEN
    PERFORM conclude(v_runs, p_now);
  END IF;
  RETURN v_runs;
END $$;

-- The first error of each run in which a node has failed. Apart from the counts, because it updates an index.
CREATE FUNCTION note_errors(p_ending ending[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  UPDATE run r SET error = f.error_type
    FROM (SELECT DISTINCT ON (e.run) e.run, e.error_type
            FROM unnest(p_ending) WITH ORDINALITY
                 AS e(attempt, run, idx, number, graph, status, node, due_at, loss, lane, reason, moving, postponed, output, error, outcome,
                      error_type, place)
           WHERE e.node IN ({N_FAILED}, {N_INTERRUPTED}) AND e.error_type IS NOT NULL
           ORDER BY e.run, e.place) f
   WHERE r.key = f.run AND r.error IS NULL;
END $$;

-- Those that ended and are to run again can be claimed, unless a heal gave them a parent while they ran; those that wait, and are
-- not parked, are due some time.
CREATE FUNCTION run_again(p_ending ending[]) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_healed bigint[];
BEGIN
  INSERT INTO due (run, at, idx) SELECT run, due_at, idx FROM unnest(p_ending) WHERE node = {N_WAITING} AND due_at IS NOT NULL
      ON CONFLICT DO NOTHING;
  SELECT array_agg(DISTINCT e.run) INTO v_healed
    FROM unnest(p_ending) e JOIN run r ON r.key = e.run AND r.heals > 0 AND r.gate = {G_OPEN} WHERE e.node = {N_READY};
  IF v_healed IS NOT NULL THEN
    UPDATE node n SET status = {N_PENDING}
      FROM unnest(p_ending) e
     WHERE e.node = {N_READY} AND e.run = ANY(v_healed) AND n.run = e.run AND n.idx = e.idx AND n.status = {N_READY}
       AND n.waiting > 0;
    UPDATE run SET active = (SELECT count(*) FROM node n WHERE n.run = run.key AND n.status BETWEEN {N_READY} AND {N_WAITING})
     WHERE key = ANY(v_healed);
  END IF;
  WITH again AS (
    SELECT n.run, n.lane, n.rank, n.idx
      FROM unnest(p_ending) e JOIN node n ON n.run = e.run AND n.idx = e.idx AND n.status = {N_READY}
     WHERE e.node = {N_READY}),
  marked AS (
    INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM again
        ON CONFLICT DO NOTHING)
  UPDATE run r SET low_rank = a.lowest FROM (SELECT run, min(rank) AS lowest FROM again GROUP BY run) a
   WHERE r.key = a.run AND r.low_rank > a.lowest;
  PERFORM offer_runs(array(SELECT DISTINCT run FROM unnest(p_ending) WHERE node = {N_READY}));
END $$;
