-- The hot ops: settle and append. The runs are locked already.

-- Lines of attempts. What is there is not changed; a mark (below 0) takes the place of the one before.
CREATE FUNCTION append_lines(p_claims text[], p_ordinals integer[], p_indexes bigint[], p_kinds text[], p_data bytea[], p_now bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_attempts bigint[];   -- of every line its attempt, or null if that does not run
  v_runs bigint[];
BEGIN
  SELECT array_agg(a.key ORDER BY l.place), array_agg(a.run ORDER BY l.place) INTO v_attempts, v_runs
    FROM unnest(p_claims, p_ordinals) WITH ORDINALITY l(claim, ordinal, place) LEFT JOIN claim c ON c.id = l.claim
         LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + l.ordinal AND a.status = {A_RUNNING};
  INSERT INTO line (attempt, idx, at, kind, data)
  SELECT attempt, idx, p_now, kind, data
    FROM unnest(v_attempts, p_indexes, p_kinds, p_data) l(attempt, idx, kind, data) WHERE attempt IS NOT NULL AND idx >= 0
      ON CONFLICT DO NOTHING;
  INSERT INTO line (attempt, idx, at, kind, data)
  SELECT attempt, idx, p_now, kind, data
    FROM unnest(v_attempts, p_indexes, p_kinds, p_data) l(attempt, idx, kind, data) WHERE attempt IS NOT NULL AND idx < 0
      ON CONFLICT (attempt, idx) DO UPDATE SET at = excluded.at, kind = excluded.kind, data = excluded.data;
  RETURN to_jsonb(v_runs);
END $$;

-- Answers the verdict on each (none: all were accepted), its run ("run": that of all), and how the runs stand.
-- A code is the attempt's status, 32 times the node's, and 512 if the body asked to be tried again later. A type is that of the
-- error, or of a skipped node the reason. What stands for the delay of a node that is parked is how often it had been woken.
CREATE FUNCTION settle(p_claims text[], p_ordinals integer[], p_codes integer[], p_delays bigint[],
                       p_output bytea[], p_error bytea[], p_outcome bytea[], p_types text[], p_now bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_verdicts integer[];   -- 0 fenced, 1 accepted, 2 repeated
  v_runs bigint[];
  v_changed bigint[];
  v_ending ending[];
BEGIN
  -- Sorted once, below, and not by each aggregate; that holds as long as none of them has an ORDER BY or a DISTINCT.
  SELECT array_agg(verdict), array_agg(run),
         array_agg(ROW(attempt, run, idx, number, graph, status, node,
                       CASE WHEN node = {N_WAITING} AND status <> {A_PARKED} THEN p_now + coalesce(delay, 0) END,
                       0, NULL, CASE node WHEN {N_SKIPPED} THEN type END, moving, postponed, output, error, outcome, type)::ending) FILTER (WHERE verdict = 1)
    INTO v_verdicts, v_runs, v_ending
    FROM (
      SELECT s.place, a.key AS attempt, a.run, a.idx, a.number, r.graph, s.code & 31 AS status, s.delay, s.output, s.error,
             s.outcome, s.type, r.gate = {G_OPEN} AS moving, s.code & 512 > 0 AS postponed,
             CASE WHEN a.key IS NULL THEN 0 WHEN a.status = {A_RUNNING} THEN 1
                  WHEN a.status = s.code & 31 AND a.output IS NOT DISTINCT FROM s.output
                   AND a.error IS NOT DISTINCT FROM s.error AND a.outcome IS NOT DISTINCT FROM s.outcome THEN 2
                  ELSE 0 END AS verdict,
             CASE WHEN l.removed THEN CASE s.code >> 5 & 15 WHEN {N_COMPLETED} THEN {N_COMPLETED} ELSE {N_CANCELLED} END
                  WHEN NOT r.stopping AND s.code & 31 = {A_PARKED} THEN parked_as(a.run, a.idx, s.delay)
                  WHEN NOT r.stopping THEN CASE s.code >> 5 & 15 WHEN {N_CANCELLED} THEN {N_READY} ELSE s.code >> 5 & 15 END
                  WHEN s.code >> 5 & 15 = {N_READY} THEN {N_CANCELLED}
                  WHEN s.code >> 5 & 15 <> {N_WAITING} THEN s.code >> 5 & 15
                  WHEN r.status = {R_CANCELLING} OR s.code & 31 = {A_PARKED} THEN {N_CANCELLED}
                  ELSE {N_FAILED} END AS node
        FROM unnest(p_claims, p_ordinals, p_codes, p_delays, p_output, p_error, p_outcome, p_types) WITH ORDINALITY
             s(claim, ordinal, code, delay, output, error, outcome, type, place)
             LEFT JOIN claim c ON c.id = s.claim
             LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + s.ordinal
             LEFT JOIN run r ON r.key = a.run
             LEFT JOIN layout l ON l.graph = r.graph AND l.idx = a.idx AND (r.heals > 0 OR r.fork IS NOT NULL)
       ORDER BY s.place) judged;
  IF v_ending IS NOT NULL THEN
    v_changed := end_attempts(v_ending, p_now);
  END IF;
  RETURN jsonb_build_object('verdicts', v_verdicts, 'runs', v_runs,
                            'news', news_of(v_runs));
END $$;
