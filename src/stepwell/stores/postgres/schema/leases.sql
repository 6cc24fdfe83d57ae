-- Workers, their leases, and what time changes: enlist, renew, dismiss, sweep.

CREATE FUNCTION stops(p_worker text, p_limit bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  IF NOT EXISTS (SELECT FROM run WHERE stopping AND ended_as IS NULL) THEN
    RETURN '[]';   -- as nearly always; looking through all that a worker holds takes milliseconds
  END IF;
  RETURN (SELECT coalesce(jsonb_agg(jsonb_build_array(id, ordinal) ORDER BY key), '[]')
    FROM (SELECT c.id, a.key % {ORDINALS} AS ordinal, a.key
            FROM attempts_held(p_worker) a JOIN run r ON r.key = a.run AND r.stopping JOIN claim c ON c.key = a.key / {ORDINALS}
           ORDER BY a.key LIMIT p_limit) s);
END $$;

-- Attempts end whose runs nobody else holds at this moment; the others are left for the next time.
CREATE FUNCTION end_free(p_ending ending[], p_now bigint, OUT o_count integer, OUT o_runs bigint[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  o_count := coalesce(cardinality(p_ending), 0);
  IF o_count > 0 THEN
    o_runs := end_attempts(p_ending, p_now);
  END IF;
END $$;

-- Those of these runs that nobody else holds, locked.
CREATE FUNCTION lock_free(p_runs bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  RETURN (SELECT coalesce(array_agg(key), '{}')
    FROM (SELECT key FROM run WHERE key = ANY(p_runs) ORDER BY key FOR NO KEY UPDATE SKIP LOCKED) q);
END $$;

-- Null: the lease is over.
CREATE FUNCTION renew(p_op jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_worker worker;
  v_heard bigint;
  v_stray bigint[];
  v_free bigint[];
  v_ending ending[];
BEGIN
  SELECT * INTO v_worker FROM worker WHERE id = p_op ->> 'worker';
  IF v_worker.id IS NULL OR v_worker.lease_until <= p_now THEN
    RETURN 'null';
  END IF;
  IF p_op ? 'held' THEN
    v_heard := least(v_worker.renewed_at, (p_op ->> 'since')::bigint);
    SELECT array_agg(a.key) INTO v_stray
      FROM attempts_held(v_worker.id) a
     WHERE a.started_at < v_heard
       AND a.key <> ALL(array(SELECT c.key * {ORDINALS} + (j ->> 1)::bigint
                                FROM jsonb_array_elements(p_op -> 'held') j JOIN claim c ON c.id = j ->> 0));
    IF v_stray IS NOT NULL THEN
      v_free := lock_free(array(SELECT run FROM attempt WHERE key = ANY(v_stray)));
      SELECT array_agg(ROW(a.key, a.run, a.idx, a.number, r.graph, {A_RELEASED},
                           CASE WHEN r.stopping OR l.removed THEN {N_CANCELLED} ELSE {N_READY} END,
                           NULL, 0, NULL, NULL, false, false, NULL, NULL, NULL, NULL)::ending ORDER BY a.key)
        INTO v_ending
        FROM attempt a JOIN run r ON r.key = a.run JOIN layout l ON l.graph = r.graph AND l.idx = a.idx
       WHERE a.key = ANY(v_stray) AND a.run = ANY(v_free) AND a.status = {A_RUNNING};
      PERFORM end_free(v_ending, p_now);
    END IF;
  END IF;
  UPDATE worker SET lease_until = p_now + (p_op ->> 'lease')::bigint, renewed_at = p_now, lease = (p_op ->> 'lease')::bigint
   WHERE id = v_worker.id;
  RETURN jsonb_build_array(p_now + (p_op ->> 'lease')::bigint, stops(v_worker.id, 10000), coalesce(cardinality(v_ending), 0));
END $$;

-- What becomes of attempts whose worker is gone: the node runs again, unless it promised not to, or it has taken too many
-- workers with it; of one that a run performs no body was running. In the order of the attempts that are given.
CREATE FUNCTION lost_endings(p_attempts bigint[], p_error bytea) RETURNS ending[] LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN (SELECT array_agg(ROW(a.key, a.run, a.idx, a.number, r.graph, {A_LOST},
                       CASE WHEN r.stopping OR l.removed THEN {N_CANCELLED} WHEN n.wakes > 0 THEN {N_READY}
                            WHEN home.careful THEN {N_INTERRUPTED}
                            WHEN n.losses + 1 >= {MAX_LOSSES} THEN {N_FAILED} ELSE {N_READY} END,
                       NULL, 1,
                       CASE WHEN r.stopping OR l.removed OR home.careful OR n.wakes > 0 THEN NULL
                            WHEN n.losses + 1 < {SUSPECT_AFTER} OR n.losses + 1 >= {MAX_LOSSES} THEN NULL
                            ELSE (SELECT s.key FROM lane s WHERE s.queue = home.queue AND s.body = home.body
                                                             AND s.careful = home.careful AND s.suspect) END,
                       CASE WHEN r.stopping OR l.removed OR (home.careful OR n.losses + 1 >= {MAX_LOSSES}) AND n.wakes = 0
                            THEN 'worker_lost' END,
                       false, false, NULL, p_error, NULL, '{WORKER_LOST}')::ending ORDER BY k.place)
    FROM unnest(p_attempts) WITH ORDINALITY k(key, place) JOIN attempt a ON a.key = k.key AND a.status = {A_RUNNING}
         JOIN run r ON r.key = a.run JOIN node n ON n.run = a.run AND n.idx = a.idx
         JOIN layout l ON l.graph = r.graph AND l.idx = a.idx JOIN lane home ON home.key = l.lane);
END $$;

-- A worker ends. Its row and its runs are locked already.
CREATE FUNCTION dismiss(p_op jsonb, p_error bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_lost integer;
BEGIN
  SELECT o_count INTO v_lost
    FROM end_free(lost_endings(array(SELECT key FROM attempts_held(p_op ->> 'worker') ORDER BY key), p_error), p_now);
  DELETE FROM worker WHERE id = p_op ->> 'worker';
  RETURN to_jsonb(v_lost);
END $$;
