-- A link of a chain: the only node at work in its run completes, and its only child is claimed with that. It is what a chain commits
-- over and over, and the price of sets is most of what that costs. The same rules as settle_1 and claim_1, which the same tests
-- compare.

-- A lane is written "body careful suspect queue". `o_child` is null if this is no such link: then nothing has changed, and who sent
-- it sends the batch to commit_1. The locks are those of commit_1, in the same order; the run's is what a copy of this batch waits for.
CREATE FUNCTION link_1(p_claim text, p_ordinal integer, p_output bytea, p_outcome bytea, p_next text, p_worker text, p_run text,
                       p_lanes text[], p_time bigint, p_shift bigint,
                       OUT o_child integer, OUT o_number integer, OUT o_failures integer, OUT o_losses integer,
                       OUT o_generation integer, OUT o_postponed integer, OUT o_status smallint, OUT o_purpose text,
                       OUT o_open integer, OUT o_seq bigint, OUT o_now bigint, OUT o_ancestors integer[], OUT o_inputs bytea[],
                       OUT o_stop jsonb)
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  v_lease bigint;
  v_attempt bigint;
  v_run bigint;
  v_idx integer;
  v_number integer;
  v_worker text;
  v_graph bigint;
  v_child integer;
  v_needs boolean;
BEGIN
  SELECT lease_until INTO v_lease FROM worker WHERE id = p_worker FOR KEY SHARE;
  -- What is read of the run is as it was locked; the rest may be older, and is looked at again below.
  SELECT a.key, a.run, a.idx, a.number, a.worker, r.graph, r.status, r.purpose, r.open - 1, r.seq + 1
    INTO v_attempt, v_run, v_idx, v_number, v_worker, v_graph, o_status, o_purpose, o_open, o_seq
    FROM claim c JOIN attempt a ON a.key = c.key * {ORDINALS} + p_ordinal JOIN run r ON r.key = a.run
   WHERE c.id = p_claim AND r.id = p_run AND r.gate = {G_OPEN} AND r.active = 1 AND r.failed = 0 AND NOT r.stopping AND r.heals = 0
     AND r.fork IS NULL
     FOR NO KEY UPDATE OF r;
  o_now := coalesce(p_time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) + p_shift;
  IF v_run IS NULL OR v_lease IS NULL OR v_lease <= o_now THEN
    RETURN;
  END IF;

  SELECT n.idx, n.attempt + 1, n.failures, n.losses, n.generation, n.postponed, g.has_needs
    INTO v_child, o_number, o_failures, o_losses, o_generation, o_postponed, v_needs
    FROM (SELECT min(child) AS child, count(*) AS children
            FROM (SELECT child FROM edge WHERE graph = v_graph AND parent = v_idx LIMIT 2) e) e
         JOIN node n ON n.run = v_run AND n.idx = e.child
         JOIN lane l ON l.key = n.lane JOIN graph g ON g.key = v_graph
   WHERE e.children = 1 AND n.waiting = 1 AND n.status = {N_PENDING}
     AND concat(l.body, ' ', l.careful::int, ' ', l.suspect::int, ' ', l.queue) = ANY(p_lanes)
     AND NOT EXISTS (SELECT FROM claim WHERE id = p_next);
  IF v_child IS NULL THEN
    RETURN;
  END IF;
  UPDATE attempt SET status = {A_COMPLETED}, ended_at = o_now, output = p_output, outcome = p_outcome
   WHERE key = v_attempt AND status = {A_RUNNING};
  IF NOT FOUND THEN
    RETURN;
  END IF;

  o_child := v_child;
  UPDATE node
     SET status = CASE idx WHEN v_child THEN {N_RUNNING} ELSE {N_COMPLETED} END, waiting = CASE idx WHEN v_child THEN 0 ELSE waiting END,
         attempt = attempt + (idx = v_child)::int, due_at = NULL, reason = CASE idx WHEN v_child THEN reason END
   WHERE run = v_run AND idx IN (v_idx, v_child);
  WITH made AS (
    INSERT INTO claim (id) VALUES (p_next) RETURNING key * {ORDINALS} AS attempt),
  started AS (
    INSERT INTO attempt (key, run, idx, number, status, worker, started_at)
    SELECT attempt, v_run, v_child, o_number, {A_RUNNING}, p_worker, o_now FROM made),
  noted AS (
    INSERT INTO journal (run, seq, at, kind, idx, number, status)
    VALUES (v_run, o_seq, o_now, {A_COMPLETED} + {ENDS}, v_idx, v_number, {N_COMPLETED}),
           (v_run, o_seq + 1, o_now, {K_CLAIMED}, v_child, o_number, NULL)),
  counted AS (
    UPDATE run SET seq = o_seq + 1, open = o_open WHERE key = v_run)
  -- It is the only node at work, so the old claim holds no other of this run.
  UPDATE held SET worker = p_worker, claim = made.attempt / {ORDINALS} FROM made
   WHERE worker = v_worker AND claim = v_attempt / {ORDINALS} AND run = v_run;

  IF v_needs THEN
    SELECT array_agg(ancestor), array_agg(output) INTO o_ancestors, o_inputs
      FROM (SELECT d.ancestor, payload_1(v_run, p.output) AS output
              FROM need d JOIN attempt p ON p.run = v_run AND p.idx = d.ancestor AND p.status = {A_COMPLETED} AND p.output IS NOT NULL
             WHERE d.graph = v_graph AND d.child = v_child
             ORDER BY d.ancestor) i;
  END IF;
  IF EXISTS (SELECT FROM run WHERE stopping AND ended_as IS NULL) THEN
    o_stop := stops_1(p_worker, 10000);
  END IF;
END $$;
