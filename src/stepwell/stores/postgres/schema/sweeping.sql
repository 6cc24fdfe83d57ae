-- Sweeps: what time has changed. They wait for nobody: workers and runs that somebody holds are left for the next one.

-- Nobody could renew or sweep for a while: leases that ran out meanwhile are given once more.
CREATE FUNCTION forgive(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_before bigint;
BEGIN
  SELECT at INTO v_before FROM swept FOR UPDATE SKIP LOCKED;
  IF v_before IS NULL THEN
    IF NOT EXISTS (SELECT FROM swept) THEN
      INSERT INTO swept (at) VALUES (p_now) ON CONFLICT DO NOTHING;
    END IF;
    RETURN;
  END IF;
  IF p_now - v_before > {OUTAGE} THEN
    UPDATE worker SET lease_until = p_now + lease
     WHERE id IN (SELECT id FROM worker WHERE lease_until > v_before AND lease_until <= p_now ORDER BY id
                     FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  UPDATE swept SET at = p_now;
END $$;

-- Attempts of workers whose lease ran out; a worker with none left is forgotten.
CREATE FUNCTION lose_expired(p_run bigint, p_limit bigint, p_error bytea, p_now bigint, OUT o_count integer, OUT o_runs bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_workers text[];
  v_attempts bigint[];
  v_free bigint[];
BEGIN
  SELECT array_agg(id ORDER BY lease_until, id) INTO v_workers
    FROM (SELECT id, lease_until FROM worker WHERE lease_until <= p_now ORDER BY id FOR UPDATE SKIP LOCKED) w;
  o_count := 0;
  IF v_workers IS NULL THEN
    RETURN;
  END IF;
  SELECT array_agg(key ORDER BY place, key) INTO v_attempts
    FROM (SELECT a.key, w.place
            FROM unnest(v_workers) WITH ORDINALITY w(id, place) CROSS JOIN LATERAL attempts_held(w.id) a
           WHERE p_run IS NULL OR a.run = p_run
           ORDER BY w.place, a.key LIMIT p_limit) f;
  v_free := lock_free(array(SELECT run FROM attempt WHERE key = ANY(v_attempts)));
  SELECT e.o_count, e.o_runs INTO o_count, o_runs
    FROM end_free(lost_endings(array(SELECT k.key FROM unnest(v_attempts) WITH ORDINALITY k(key, place) JOIN attempt a ON a.key = k.key
                                  WHERE a.run = ANY(v_free) ORDER BY k.place), p_error), p_now) e;
  IF p_run IS NULL THEN
    DELETE FROM worker WHERE id = ANY(v_workers) AND NOT EXISTS (SELECT FROM held h WHERE h.worker = worker.id);
  END IF;
END $$;

-- Cancelled runs whose attempts had time enough to stop: what still runs can no longer write.
CREATE FUNCTION fence_cancelled(p_run bigint, p_limit bigint, p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_free bigint[];
  v_ending ending[];
  v_runs bigint[];
BEGIN
  v_free := lock_free(array(SELECT key FROM run
                               WHERE cancel_at <= p_now AND (p_run IS NULL OR key = p_run)   -- and not one that waits for child runs
                                 AND EXISTS (SELECT FROM attempt a WHERE a.run = run.key AND a.status = {A_RUNNING} OFFSET 0)
                               ORDER BY key LIMIT p_limit));
  IF cardinality(v_free) = 0 THEN
    RETURN NULL;
  END IF;
  SELECT array_agg(ROW(key, run, idx, number, graph, {A_CANCELLED}, {N_CANCELLED}, NULL, 0, NULL, NULL, false, false,
                       NULL, NULL, NULL, NULL)::ending
                   ORDER BY run, key)
    INTO v_ending
    FROM (SELECT a.key, a.run, a.idx, a.number, r.graph
            FROM unnest(v_free) k(key) JOIN run r ON r.key = k.key AND r.cancel_at <= p_now JOIN attempt a ON a.run = r.key
           WHERE a.status = {A_RUNNING} ORDER BY a.run, a.key LIMIT p_limit) f;
  SELECT o_runs INTO v_runs FROM end_free(v_ending, p_now);
  RETURN v_runs;
END $$;

-- Nodes that are due become READY; a heal may have given one a parent while it waited, and then it waits for that.
CREATE FUNCTION wake_nodes(p_run bigint, p_limit bigint, p_now bigint, OUT o_count integer, OUT o_runs bigint[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_free bigint[];
  v_runs bigint[];
  v_idxs integer[];
BEGIN
  o_count := 0;
  v_free := lock_free(array(SELECT key FROM run
                               WHERE gate = {G_OPEN} AND due_at IS NOT NULL AND due_at <= p_now AND (p_run IS NULL OR key = p_run)
                               ORDER BY due_at, key LIMIT p_limit));
  IF cardinality(v_free) = 0 THEN
    RETURN;
  END IF;
  v_free := array(SELECT key FROM run WHERE key = ANY(v_free) AND gate = {G_OPEN});
  WITH waking AS (
    SELECT d.ctid FROM unnest(v_free) k(key) CROSS JOIN LATERAL
           (SELECT ctid, run, at, idx FROM due WHERE run = k.key AND at <= p_now ORDER BY at, idx LIMIT p_limit) d
     ORDER BY d.at, d.run, d.idx LIMIT p_limit),
  gone AS (
    DELETE FROM due WHERE ctid = ANY(array(SELECT ctid FROM waking)) RETURNING run, at, idx)
  SELECT array_agg(run ORDER BY at, run, idx), array_agg(idx ORDER BY at, run, idx) INTO v_runs, v_idxs FROM gone;
  IF v_runs IS NOT NULL THEN
    o_count := cardinality(v_runs);
    WITH woken AS (
      UPDATE node n SET status = CASE WHEN n.waiting > 0 THEN {N_PENDING} ELSE {N_READY} END, due_at = NULL
        FROM unnest(v_runs, v_idxs) w(run, idx) WHERE n.run = w.run AND n.idx = w.idx
      RETURNING n.run, n.lane, n.rank, n.idx, n.status)
    INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM woken WHERE status = {N_READY}
        ON CONFLICT DO NOTHING;
    UPDATE run r SET seq = r.seq + t.woken, active = r.active - t.held_back, low_rank = least(r.low_rank, t.lowest)
      FROM (SELECT n.run, count(*) AS woken, count(*) FILTER (WHERE n.status = {N_PENDING}) AS held_back, min(n.rank) AS lowest
              FROM unnest(v_runs, v_idxs) w(run, idx) JOIN node n ON n.run = w.run AND n.idx = w.idx GROUP BY n.run) t
     WHERE r.key = t.run;
    INSERT INTO journal (run, seq, at, kind, idx, number, status)
    SELECT w.run, r.seq + 1 - row_number() OVER (PARTITION BY w.run ORDER BY w.place DESC), p_now, {K_WOKEN}, w.idx, n.attempt,
           {N_READY}
      FROM unnest(v_runs, v_idxs) WITH ORDINALITY w(run, idx, place) JOIN run r ON r.key = w.run
           JOIN node n ON n.run = w.run AND n.idx = w.idx;
    o_runs := array(SELECT DISTINCT run FROM unnest(v_runs) u(run));
    PERFORM offer_runs(o_runs);
  END IF;
  UPDATE run SET due_at = (SELECT min(at) FROM due d WHERE d.run = run.key) WHERE key = ANY(v_free);
END $$;

CREATE FUNCTION sweep(p_op jsonb, p_error bytea, p_now bigint, OUT o_receipt jsonb, OUT o_bytes bytea[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_limit bigint := (p_op ->> 'limit')::bigint;
  v_run bigint;
  v_lost integer;
  v_woken integer;
  v_touched bigint[] := '{}';
  v_runs bigint[];
  v_gates jsonb;
  v_left bigint[];
  v_next bigint;
BEGIN
  IF p_op ->> 'run' IS NULL THEN
    PERFORM forgive(p_now);
  ELSE
    v_run := coalesce((SELECT key FROM run WHERE id = p_op ->> 'run'), -1);
  END IF;
  SELECT o_count, o_runs INTO v_lost, v_runs FROM lose_expired(v_run, v_limit, p_error, p_now);
  v_touched := v_touched || v_runs || fence_cancelled(v_run, v_limit, p_now);
  SELECT o_count, o_runs INTO v_woken, v_runs FROM wake_nodes(v_run, v_limit, p_now);
  v_touched := v_touched || v_runs;

  v_runs := lock_free(array(SELECT key FROM run WHERE gate = {G_OPEN} AND deadline_at IS NOT NULL AND deadline_at <= p_now
                                 AND (v_run IS NULL OR key = v_run) ORDER BY deadline_at, key LIMIT v_limit));
  IF cardinality(v_runs) > 0 THEN
    v_runs := array(SELECT key FROM run WHERE key = ANY(v_runs) AND gate = {G_OPEN} AND deadline_at <= p_now);
    PERFORM close_gates(v_runs, 'failed', 'deadline', p_now);
    v_touched := v_touched || v_runs;
  END IF;

  -- Gates that somebody must finish the work of are left to who asked, for a while.
  v_left := array(SELECT key FROM (SELECT key FROM run
                   WHERE gate = {G_HELD} AND expires_at <= p_now AND (v_run IS NOT NULL OR reported_until <= p_now)
                     AND (v_run IS NULL OR key = v_run)
                   ORDER BY key LIMIT v_limit FOR NO KEY UPDATE SKIP LOCKED) q);
  IF cardinality(v_left) > 0 THEN
    WITH reported AS (
      UPDATE run SET reported_until = p_now + {HAND_OUT}
       WHERE key = ANY(v_left) AND gate = {G_HELD} AND expires_at <= p_now AND (v_run IS NOT NULL OR reported_until <= p_now)
      RETURNING key, id, purpose, arguments)
    SELECT jsonb_agg(jsonb_build_array(id, purpose) ORDER BY key), array_agg(arguments ORDER BY key) INTO v_gates, o_bytes
      FROM reported;
  END IF;

  SELECT least((SELECT min(lease_until) FROM worker),
               (SELECT min(due_at) FROM run WHERE gate = {G_OPEN} AND due_at IS NOT NULL),
               (SELECT min(deadline_at) FROM run WHERE gate = {G_OPEN} AND deadline_at IS NOT NULL),
               (SELECT min(greatest(expires_at, reported_until)) FROM run WHERE gate = {G_HELD}),
               (SELECT min(cancel_at) FROM run WHERE cancel_at IS NOT NULL)) INTO v_next;
  o_receipt := jsonb_build_object(
    'lost', v_lost, 'woken', v_woken, 'news', news_of(v_touched), 'gates', coalesce(v_gates, '[]'), 'next_due', v_next,
    'workers', (SELECT count(*) FROM worker WHERE lease_until > p_now));
END $$;
