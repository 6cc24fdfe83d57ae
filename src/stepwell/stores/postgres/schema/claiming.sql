-- Claims: READY nodes become RUNNING, each as a new attempt under the worker's lease.
--
-- First the runs are found, most urgent first, and locked as far as nobody else holds them; then, in a later statement, which
-- sees what others have committed meanwhile, their nodes are taken in the order of the graph.

-- The runs that a claim takes from, locked, in order. `p_mine` are locked already. `o_contended`: others hold some.
-- If others hold some of what is found, it is looked again without those.
CREATE FUNCTION lock_claimed(p_lanes integer[], p_limits integer[], p_most integer, p_runs text[], p_workflows text[], p_digests text[],
                             p_mine bigint[], OUT o_runs bigint[], OUT o_contended boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_mine bigint[] := p_mine;
  v_theirs bigint[] := '{}';
  v_graphs bigint[];   -- those that are served
  v_new bigint[];
  v_locked bigint[];
  v_changed bigint[];   -- before they were locked: the gate was closed, or the graph is another
  v_found bigint;       -- nodes
  v_passed bigint;      -- offers that were passed by, because they are out of date
  v_stale integer;
  v_forgotten integer;
  v_behind boolean := false;   -- there may be runs that were not looked at
  v_waited boolean := false;
BEGIN
  IF p_runs IS NULL THEN
    v_graphs := array(SELECT key FROM graph WHERE digest = ANY(p_digests));
  END IF;
  LOOP
    -- Of each lane the first runs, as many as have the nodes that are wanted.
    IF cardinality(p_runs) = 1 THEN   -- which need not be counted
      o_runs := (SELECT ARRAY[r.key] FROM run r
                  WHERE r.id = p_runs[1] AND r.gate = {G_OPEN} AND r.key <> ALL(v_theirs)
                    AND (r.key = ANY(v_mine)
                         OR EXISTS (SELECT FROM unnest(p_lanes) l(lane)
                                     WHERE EXISTS (SELECT FROM ready y
                                                    WHERE y.run = r.key AND y.lane = l.lane
                                                      AND y.rank >= CASE r.low_lane WHEN l.lane THEN r.low_rank ELSE {LOWEST} END
                                                   OFFSET 0))));
    ELSIF p_runs IS NOT NULL THEN
      SELECT array_agg(run ORDER BY urgency, run) INTO o_runs
        FROM (SELECT DISTINCT g.run, g.urgency
                FROM (SELECT f.run, f.urgency, f.most, sum(f.ready) OVER (ORDER BY f.place, f.urgency, f.run) - f.ready AS before
                        FROM (SELECT r.key AS run, r.urgency, l.place, l.most,
                                     (SELECT count(*) FROM (SELECT FROM ready y
                                                             WHERE y.run = r.key AND y.lane = l.lane
                                                               AND y.rank >= CASE r.low_lane WHEN l.lane THEN r.low_rank
                                                                                             ELSE {LOWEST} END
                                                             LIMIT p_most) y) AS ready
                                FROM run r CROSS JOIN unnest(p_lanes, p_limits) WITH ORDINALITY l(lane, most, place)
                               WHERE r.id = ANY(p_runs) AND r.gate = {G_OPEN} AND r.key <> ALL(v_theirs)) f
                       WHERE f.ready > 0) g
               WHERE g.before < g.most) h;
    ELSE
      SELECT array_agg(run ORDER BY urgency, run), sum(ready), max(passed) - count(*) INTO o_runs, v_found, v_passed
        FROM (SELECT g.run, g.urgency, sum(g.ready) AS ready, max(g.passed) AS passed
                FROM (SELECT f.*, sum(f.ready) OVER (ORDER BY f.place, f.urgency, f.run) - f.ready AS before
                        FROM (SELECT o.run, o.urgency, o.passed, l.place, l.most,
                                     (SELECT count(*) FROM (SELECT FROM ready y
                                                             WHERE y.run = o.run AND y.lane = l.lane AND y.rank >= o.low
                                                             LIMIT p_most) y) AS ready
                                FROM unnest(p_lanes, p_limits) WITH ORDINALITY l(lane, most, place)
                                     CROSS JOIN unnest(p_workflows, p_digests) s(workflow, digest)
                                     JOIN graph g ON g.digest = s.digest
                                     CROSS JOIN LATERAL
                                     (SELECT q.urgency, q.run, q.passed, r.low
                                        FROM (SELECT o.urgency, o.run, row_number() OVER (ORDER BY o.urgency, o.run) AS passed
                                                FROM offer o
                                               WHERE o.lane = l.lane AND o.graph = g.key AND o.workflow = s.workflow
                                                 AND o.run <> ALL(v_theirs)
                                               ORDER BY o.urgency, o.run LIMIT p_most + {STALE}) q
                                             CROSS JOIN LATERAL
                                             (SELECT CASE r.low_lane WHEN l.lane THEN r.low_rank ELSE {LOWEST} END AS low FROM run r
                                               WHERE r.key = q.run AND r.gate = {G_OPEN} AND r.graph = g.key OFFSET 0) r
                                       WHERE EXISTS (SELECT FROM ready y WHERE y.run = q.run AND y.lane = l.lane AND y.rank >= r.low
                                                     OFFSET 0)
                                       LIMIT p_most) o) f) g
               WHERE g.before < g.most
               GROUP BY g.run, g.urgency) h;
      IF v_found IS NULL OR v_found < p_most OR v_passed > {STALE} / 4 THEN
        SELECT o_found, o_forgotten INTO v_stale, v_forgotten FROM forget_offers(p_lanes, p_workflows, p_digests, v_mine);
        CONTINUE WHEN v_stale = {STALE} AND v_forgotten > 0;   -- there may be more, and others behind them
        v_behind := v_stale = {STALE};
      END IF;
    END IF;
    IF o_runs IS NULL AND cardinality(v_theirs) > 0 AND cardinality(v_mine) = 0 AND NOT v_waited THEN
      -- Whoever would go away with nothing waits for one run that others hold, or those who have it would keep it among themselves.
      v_waited := true;
      v_mine := lock_patiently(v_theirs[1]);
      v_theirs := array_remove(v_theirs, v_mine[1]);
      CONTINUE WHEN cardinality(v_mine) > 0;
    END IF;
    EXIT WHEN o_runs <@ v_mine;
    v_new := array(SELECT run FROM unnest(o_runs) u(run) WHERE run <> ALL(v_mine));
    EXIT WHEN cardinality(v_new) = 0;
    SELECT coalesce(array_agg(key), '{}'), coalesce(array_agg(key) FILTER (WHERE changed), '{}') INTO v_locked, v_changed
      FROM (SELECT key, gate <> {G_OPEN} OR p_runs IS NULL AND graph <> ALL(v_graphs) AS changed
              FROM run WHERE key = ANY(v_new) ORDER BY key FOR NO KEY UPDATE SKIP LOCKED) q;
    v_mine := v_mine || v_locked;
    EXIT WHEN cardinality(v_locked) = cardinality(v_new) AND cardinality(v_changed) = 0;
    v_theirs := v_theirs || array(SELECT run FROM unnest(v_new) u(run) WHERE run <> ALL(v_locked));
  END LOOP;
  o_contended := v_behind OR cardinality(v_theirs) > 0;
END $$;

-- A run, locked, if those who hold it are done with it in a moment. No other run may be locked: there would be no order.
CREATE FUNCTION lock_patiently(p_run bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
  v_usual text := current_setting('lock_timeout');
BEGIN
  PERFORM set_config('lock_timeout', '{PATIENCE}', true);
  PERFORM FROM run WHERE key = p_run FOR NO KEY UPDATE;
  PERFORM set_config('lock_timeout', v_usual, true);
  RETURN ARRAY[p_run];
EXCEPTION WHEN lock_not_available THEN
  RETURN '{}';   -- which also undoes the setting
END $$;

-- Offers that are out of date are removed, as far as nobody else holds their runs. `p_mine` are locked already.
CREATE FUNCTION forget_offers(p_lanes integer[], p_workflows text[], p_digests text[], p_mine bigint[],
                                OUT o_found integer, OUT o_forgotten integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_runs bigint[];
BEGIN
  o_forgotten := 0;
  v_runs := array(
    SELECT o.run
      FROM unnest(p_lanes) l(lane) CROSS JOIN unnest(p_workflows, p_digests) s(workflow, digest) JOIN graph g ON g.digest = s.digest
           CROSS JOIN LATERAL (SELECT o.run FROM offer o WHERE o.lane = l.lane AND o.graph = g.key AND o.workflow = s.workflow
                                ORDER BY o.urgency, o.run LIMIT 2 * {STALE}) o
     WHERE NOT EXISTS (SELECT FROM run r
                        WHERE r.key = o.run AND r.gate = {G_OPEN} AND r.graph = g.key
                          AND EXISTS (SELECT FROM ready y
                                       WHERE y.run = r.key AND y.lane = l.lane
                                         AND y.rank >= CASE r.low_lane WHEN l.lane THEN r.low_rank ELSE {LOWEST} END OFFSET 0)
                       OFFSET 0)
     LIMIT {STALE});
  o_found := cardinality(v_runs);
  IF o_found > 0 THEN
    v_runs := array(SELECT run FROM unnest(v_runs) u(run) WHERE run = ANY(p_mine))
              || lock_free(array(SELECT run FROM unnest(v_runs) u(run) WHERE run <> ALL(p_mine)));
    DELETE FROM offer o USING run r
     WHERE o.run = ANY(v_runs) AND o.lane = ANY(p_lanes) AND r.key = o.run
       AND (r.gate <> {G_OPEN} OR r.graph <> o.graph
            OR NOT EXISTS (SELECT FROM ready y
                            WHERE y.run = o.run AND y.lane = o.lane
                              AND y.rank >= CASE r.low_lane WHEN o.lane THEN r.low_rank ELSE {LOWEST} END OFFSET 0));
    GET DIAGNOSTICS o_forgotten = ROW_COUNT;
  END IF;
END $$;

-- Which nodes of these runs a claim takes, lane by lane; the limits are cumulative.
CREATE FUNCTION choose_ready(p_lanes integer[], p_limits integer[], p_most integer, p_total bigint, p_runs bigint[])
RETURNS chosen[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_found chosen[];
  v_chosen chosen[] := '{}';
BEGIN
  v_found := array(
    SELECT ROW(l.place, y.ctid, y.run, y.lane, y.rank, y.idx)::chosen
      FROM unnest(p_lanes) WITH ORDINALITY l(lane, place) CROSS JOIN unnest(p_runs) WITH ORDINALITY k(run, place)
           JOIN run r ON r.key = k.run
           CROSS JOIN LATERAL (SELECT y.ctid, y.run, y.lane, y.rank, y.idx FROM ready y
                                WHERE y.run = k.run AND y.lane = l.lane
                                  AND y.rank >= CASE r.low_lane WHEN l.lane THEN r.low_rank ELSE {LOWEST} END
                                ORDER BY y.rank LIMIT p_most) y
     ORDER BY l.place, k.place, y.rank LIMIT p_total);
  IF v_found[1].turn = v_found[cardinality(v_found)].turn THEN   -- one lane, as nearly always
    RETURN v_found[:p_limits[v_found[1].turn]];
  END IF;
  FOR i IN 1 .. cardinality(v_found) LOOP
    IF cardinality(v_chosen) < p_limits[v_found[i].turn] THEN
      v_chosen := v_chosen || v_found[i];
    END IF;
  END LOOP;
  RETURN v_chosen;
END $$;

-- The nodes become RUNNING, in the order of their ordinals. What their claim is answered: "idxs" and "runs", with commas; "ids" and
-- "heals" of the runs, by key, as far as they were healed; "past" of the nodes that have one: [ordinal, number, failures, losses,
-- generation, postponed, skipped, wakes]. `o_needs`: in some of the runs bodies take outputs as parameters. (Rows in JSON took longer than
-- all writing.)
CREATE FUNCTION start_nodes(p_claim bigint, p_worker text, p_chosen chosen[], p_now bigint,
                            OUT o_taken jsonb, OUT o_needs boolean, OUT o_runs bigint[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_started bigint;
BEGIN
  WITH picked AS (
    SELECT place, run, lane, rank, idx, ordinal, row_number() OVER (PARTITION BY run ORDER BY ordinal) AS nth
      FROM unnest(p_chosen) WITH ORDINALITY u(turn, place, run, lane, rank, idx, ordinal)),
  emptied AS (
    DELETE FROM ready WHERE ctid = ANY(array(SELECT place FROM picked))),
  taken AS (
    SELECT run, count(*)::int AS started, min(lane) AS lane, max(lane) AS last_lane, max(rank) AS rank FROM picked GROUP BY run),
  holding AS (
    INSERT INTO held (worker, claim, run, running) SELECT p_worker, p_claim, run, started FROM taken),
  counted AS (
    UPDATE run r SET seq = r.seq + t.started, started_at = coalesce(r.started_at, p_now),
                     status = CASE r.status WHEN {R_PENDING} THEN {R_RUNNING} ELSE r.status END,
                     low_lane = CASE WHEN t.lane = t.last_lane THEN t.lane END, low_rank = t.rank
      FROM taken t WHERE r.key = t.run
    RETURNING r.key, r.id, r.graph, r.heals),
  started AS (
    UPDATE node n SET status = {N_RUNNING}, attempt = n.attempt + 1
      FROM picked p WHERE n.run = p.run AND n.idx = p.idx
    RETURNING p.ordinal, p.nth, n.run, n.idx, n.attempt, n.failures, n.losses, n.generation, n.postponed, n.skipped, n.wakes),
  attempts AS (
    INSERT INTO attempt (key, run, idx, number, status, worker, started_at)
    SELECT p_claim * {ORDINALS} + ordinal - 1, run, idx, attempt, {A_RUNNING}, p_worker, p_now FROM started),
  noted AS (
    INSERT INTO journal (run, seq, at, kind, idx, number)
    SELECT s.run, r.seq + s.nth, p_now, {K_CLAIMED}, s.idx, s.attempt FROM started s JOIN run r ON r.key = s.run)
  SELECT n.started, c.has_needs, c.keys, jsonb_build_object('ids', c.ids, 'heals', c.heals, 'past', n.past)
    INTO v_started, o_needs, o_runs, o_taken
    FROM (SELECT count(*) AS started,
                 jsonb_agg(jsonb_build_array(ordinal - 1, attempt, failures, losses, generation, postponed, skipped, wakes))
                   FILTER (WHERE attempt > 1 OR failures + losses + generation + postponed + skipped > 0) AS past FROM started) n
         CROSS JOIN
         (SELECT bool_or(g.has_needs) AS has_needs, array_agg(c.key) AS keys, jsonb_object_agg(c.key, c.id) AS ids,
                 jsonb_object_agg(c.key, c.heals) FILTER (WHERE c.heals > 0) AS heals
            FROM counted c JOIN graph g ON g.key = c.graph) c;
  ASSERT v_started = cardinality(p_chosen), 'a READY node is not there';
  SELECT o_taken || jsonb_build_object('idxs', string_agg(idx::text, ','), 'runs', string_agg(run::text, ','))
    INTO o_taken FROM unnest(p_chosen);
END $$;

-- The payload that a row of a run holds or refers to.
CREATE FUNCTION whole_payload(p_run bigint, p_value bytea) RETURNS bytea LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  IF substr(p_value, 1, 1) = '\x00' THEN
    RETURN (SELECT data FROM blob WHERE run = p_run AND hash = substr(p_value, 2));
  END IF;
  RETURN p_value;
END $$;

-- A claim by runs (`p_runs`) or by what is served. What it takes it answers; a repeat answers what is still current.
CREATE FUNCTION claim_nodes(p_op jsonb, p_mine bigint[], p_now bigint, OUT o_receipt jsonb, OUT o_bytes bytea[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_claim bigint;
  v_lanes integer[];
  v_limits integer[];
  v_most integer;
  v_total bigint;
  v_named text[] := (p_op ->> 'runs')::text[];
  v_locked record;
  v_started record;
  v_runs bigint[];
  v_contended boolean := false;
  v_alive boolean;
  v_chosen chosen[];
  v_grants jsonb;   -- of a repeat
  v_taken jsonb;
  v_needs boolean;
  v_inputs jsonb;
  v_rows jsonb;
  v_more bytea[];
BEGIN
  SELECT EXISTS (SELECT FROM worker WHERE id = p_op ->> 'worker' AND lease_until > p_now),
         (SELECT key FROM claim WHERE id = p_op ->> 'claim'), array_agg(key), array_agg(most), max(most), sum(most)
    INTO v_alive, v_claim, v_lanes, v_limits, v_most, v_total
    FROM (SELECT l.key, least((a.lane ->> 4)::int, {NODES}) AS most
            FROM jsonb_array_elements(p_op -> 'lanes') WITH ORDINALITY a(lane, place)
                 JOIN lane l ON l.queue = a.lane ->> 0 AND l.body = a.lane ->> 1 AND l.careful = (a.lane ->> 2)::boolean
                            AND l.suspect = (a.lane ->> 3)::boolean
           WHERE (a.lane ->> 4)::int > 0 ORDER BY a.place) asked;
  IF NOT v_alive THEN
    o_receipt := 'null';
    RETURN;
  END IF;
  IF v_claim IS NULL THEN
    IF v_lanes IS NOT NULL THEN
      v_locked := lock_claimed(v_lanes, v_limits, v_most, v_named, (p_op ->> 'workflows')::text[], (p_op ->> 'digests')::text[], p_mine);
      v_runs := v_locked.o_runs;
      v_contended := v_locked.o_contended;
    END IF;
    IF cardinality(v_runs) > 0 THEN
      v_chosen := choose_ready(v_lanes, v_limits, v_most, v_total, v_runs);
      IF NOT v_contended AND cardinality(v_chosen) < v_most AND NOT v_runs <@ p_mine THEN
        -- Others may have emptied a run after it was found and before it was locked: then there may be more behind it.
        v_contended := EXISTS (SELECT FROM unnest(v_runs) u(run) JOIN run r ON r.key = u.run
                                WHERE u.run <> ALL(p_mine)
                                  AND NOT EXISTS (SELECT FROM unnest(v_lanes) l(lane)
                                                   WHERE EXISTS (SELECT FROM ready y
                                                                  WHERE y.run = r.key AND y.lane = l.lane
                                                                    AND y.rank >= CASE r.low_lane WHEN l.lane THEN r.low_rank ELSE {LOWEST} END
                                                                 OFFSET 0)));
      END IF;
    END IF;
    IF coalesce(cardinality(v_chosen), 0) = 0 THEN
      o_receipt := jsonb_build_object('grants', '[]'::jsonb, 'contended', v_contended);
      RETURN;
    END IF;
    INSERT INTO claim (id) VALUES (p_op ->> 'claim') RETURNING key INTO v_claim;
    v_started := start_nodes(v_claim, p_op ->> 'worker', v_chosen, p_now);
    v_taken := v_started.o_taken;
    v_needs := v_started.o_needs;
    v_runs := v_started.o_runs;
  ELSE
    SELECT coalesce(jsonb_agg(jsonb_build_array(a.key % {ORDINALS}, r.id, a.idx, a.number, n.failures, n.losses, n.generation,
                                                r.heals, n.postponed, n.skipped, n.wakes) ORDER BY a.key), '[]'),
           bool_or(g.has_needs), array_agg(DISTINCT a.run)
      INTO v_grants, v_needs, v_runs
      FROM attempt a JOIN node n ON n.run = a.run AND n.idx = a.idx JOIN run r ON r.key = a.run JOIN graph g ON g.key = r.graph
     WHERE a.key BETWEEN v_claim * {ORDINALS} AND v_claim * {ORDINALS} + {ORDINALS} - 1 AND a.status = {A_RUNNING};
  END IF;
  IF v_needs THEN
    SELECT jsonb_agg(jsonb_build_array(ordinal, ancestor) ORDER BY ordinal, ancestor),
           array_agg(output ORDER BY ordinal, ancestor)
      INTO v_inputs, o_bytes
      FROM (SELECT a.key % {ORDINALS} AS ordinal, d.ancestor, whole_payload(a.run, p.output) AS output
              FROM attempt a JOIN run r ON r.key = a.run
                   CROSS JOIN LATERAL (SELECT ancestor FROM need WHERE graph = r.graph AND child = a.idx OFFSET 0) d
                   JOIN attempt p ON p.run = a.run AND p.idx = d.ancestor AND p.status = {A_COMPLETED}
             WHERE a.key BETWEEN v_claim * {ORDINALS} AND v_claim * {ORDINALS} + {ORDINALS} - 1 AND a.status = {A_RUNNING}
               AND p.output IS NOT NULL) i;
  END IF;
  IF v_named IS NULL AND v_runs IS NOT NULL THEN
    SELECT o_rows, o_bytes INTO v_rows, v_more FROM run_rows(v_runs);
    o_bytes := coalesce(o_bytes, '{}') || v_more;
  END IF;
  o_receipt := jsonb_build_object('grants', v_grants, 'taken', v_taken, 'inputs', v_inputs, 'runs', v_rows, 'contended', v_contended);
END $$;

-- Rows of runs, by id; of each its input and its fork are apart.
CREATE FUNCTION run_rows(p_runs bigint[], OUT o_rows jsonb, OUT o_bytes bytea[]) LANGUAGE sql STABLE AS $$
  SELECT jsonb_agg(jsonb_build_array(r.id, r.workflow, r.target, g.digest, r.status, r.on_failure, NULL, r.seed::text, -r.urgency,
                                     r.idempotency_key, r.gate, r.purpose, r.stopping, r.total, r.open, r.active, r.failed, r.seq,
                                     r.created_at, r.started_at, r.ended_at, r.deadline_at, r.reason, r.heals, NULL, r.tolerated,
                                     r.origin, r.tags, r.timeout, r.error, r.parent, r.parent_node, r.depth) ORDER BY r.id),
         array_agg(whole_payload(r.key, r.input) ORDER BY r.id) || array_agg(r.fork ORDER BY r.id)
    FROM run r JOIN graph g ON g.key = r.graph WHERE r.key = ANY(p_runs)
$$;
