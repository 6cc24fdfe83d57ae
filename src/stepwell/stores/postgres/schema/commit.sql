-- The one door: a batch comes in as one call and is answered by one row.
--
-- Locks are taken in one order, all of them before anything is decided, and the clock is read after that:
--   1. workers, by id: claims share the row, a renewal changes it, who ends or begins one has it alone;
--   2. names that may be new (ids and idempotency keys of runs, graphs, versions, records, claims, workers), by number, as advisory locks;
--   3. lanes that are new;
--   4. the runs that are named or settled, by key. All of these are waited for.
-- What a claim or a sweep finds for itself is locked after that, and never waited for (SKIP LOCKED).

-- Workers, in order: [id, how] with how 0 claims for it, 1 renews it, 2 ends or begins it.
CREATE FUNCTION lock_workers(p_workers jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_worker jsonb;
BEGIN
  FOR v_worker IN SELECT jsonb_array_elements(p_workers) LOOP
    CASE v_worker ->> 1
      WHEN '0' THEN PERFORM FROM worker WHERE id = v_worker ->> 0 FOR KEY SHARE;
      WHEN '1' THEN PERFORM FROM worker WHERE id = v_worker ->> 0 FOR NO KEY UPDATE;
      ELSE PERFORM FROM worker WHERE id = v_worker ->> 0 FOR UPDATE;
    END CASE;
  END LOOP;
END $$;

-- Lanes that are not there yet, and those of their suspects: [queue, body, careful].
CREATE FUNCTION add_lanes(p_lanes jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  IF (SELECT count(*) FROM jsonb_array_elements(p_lanes) l
       WHERE NOT EXISTS (SELECT FROM lane WHERE queue = l ->> 0 AND body = l ->> 1 AND careful = (l ->> 2)::boolean)) = 0 THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(current_schema() || ' lanes', 0));
  INSERT INTO lane (queue, body, careful, suspect)
  SELECT DISTINCT l ->> 0, l ->> 1, (l ->> 2)::boolean, s.suspect
    FROM jsonb_array_elements(p_lanes) l CROSS JOIN (VALUES (false), (true)) s(suspect)
   ORDER BY 1, 2, 3, 4
      ON CONFLICT DO NOTHING;
END $$;

-- The attempts of a batch, once more: one of its own claims may have made them.
CREATE FUNCTION find_attempts(p_claims text[], p_ordinals integer[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT array_agg(c.key * {ORDINALS} + s.ordinal ORDER BY s.place)
            FROM unnest(p_claims, p_ordinals) WITH ORDINALITY s(claim, ordinal, place) LEFT JOIN claim c ON c.id = s.claim);
END $$;

-- The runs that are named, or have these attempts, or attempts of these workers; and the keys of the attempts, in order.
CREATE FUNCTION lock_runs(p_ids jsonb, p_claims text[], p_ordinals integer[], p_dismissed jsonb,
                            OUT o_runs bigint[], OUT o_attempts bigint[]) LANGUAGE plpgsql AS $$
BEGIN
  IF p_claims IS NOT NULL THEN
    SELECT array_agg(key), array_remove(array_agg(run), NULL) INTO o_attempts, o_runs
      FROM (SELECT a.key, a.run
              FROM unnest(p_claims, p_ordinals) WITH ORDINALITY s(claim, ordinal, place)
                   LEFT JOIN claim c ON c.id = s.claim LEFT JOIN attempt a ON a.key = c.key * {ORDINALS} + s.ordinal
             ORDER BY s.place) found;
  END IF;
  IF p_ids IS NOT NULL THEN
    o_runs := o_runs || array(SELECT r.key FROM jsonb_array_elements_text(p_ids) i(id) JOIN run r ON r.id = i.id);
  END IF;
  IF p_dismissed IS NOT NULL THEN
    o_runs := o_runs || array(SELECT DISTINCT h.run FROM jsonb_array_elements_text(p_dismissed) w(id) JOIN held h ON h.worker = w.id);
  END IF;
  IF cardinality(o_runs) > 0 THEN
    PERFORM FROM run WHERE key = ANY(o_runs) ORDER BY key FOR NO KEY UPDATE;
  END IF;
END $$;

CREATE FUNCTION commit_batch(p_batch jsonb, p_claims text[], p_ordinals integer[], p_codes integer[], p_numbers bigint[], p_kinds text[],
                         p_first bytea[], p_second bytea[], p_third bytea[], p_large bytea[], p_time bigint, p_shift bigint,
                         OUT o_receipts jsonb, OUT o_now bigint, OUT o_bytes bytea[], OUT o_stop jsonb)
LANGUAGE plpgsql
SET search_path FROM CURRENT
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $$
DECLARE
  v_op jsonb;
  v_receipt jsonb;
  v_bytes bytea[];
  v_mine bigint[];   -- the runs that are locked
  v_attempts bigint[];
  v_stale boolean := false;   -- attempts were made since they were looked up
  v_lost bytea := convert_to('{WORKER_LOST_ERROR}', 'UTF8');
  f integer;   -- the rows of a set are the elements f to t of the arrays
  t integer;
BEGIN
  IF p_batch ? 'workers' THEN
    PERFORM lock_workers(p_batch -> 'workers');
  END IF;
  IF p_batch ? 'names' THEN
    PERFORM CASE WHEN (n ->> 1)::boolean THEN pg_advisory_xact_lock_shared(hashtextextended(current_schema(), (n ->> 0)::bigint))
                 ELSE pg_advisory_xact_lock(hashtextextended(current_schema(), (n ->> 0)::bigint)) END
       FROM jsonb_array_elements(p_batch -> 'names') n;   -- [number, shared], in order
  END IF;
  IF p_batch ? 'lanes' THEN
    PERFORM add_lanes(p_batch -> 'lanes');
  END IF;
  IF p_claims IS NOT NULL OR p_batch ? 'runs' OR p_batch ? 'dismissed' THEN
    SELECT o_runs, o_attempts INTO v_mine, v_attempts
      FROM lock_runs(p_batch -> 'runs', p_claims, p_ordinals, p_batch -> 'dismissed');
  END IF;
  o_now := coalesce(p_time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) + p_shift;
  o_receipts := '[]';
  FOR v_op IN SELECT jsonb_array_elements(p_batch -> 'ops') LOOP
    f := (v_op ->> 'from')::int;
    t := (v_op ->> 'to')::int;
    v_bytes := NULL;
    IF v_stale AND v_op ->> 'op' IN ('settle', 'append') THEN
      v_attempts := find_attempts(p_claims, p_ordinals);
      v_stale := false;
    ELSIF v_op ->> 'op' IN ('claim', 'share', 'restore') THEN
      v_stale := true;
    END IF;
    CASE v_op ->> 'op'
      WHEN 'settle' THEN
        v_receipt := settle(v_attempts[f:t], p_codes[f:t], p_numbers[f:t], p_first[f:t], p_second[f:t],
                              p_third[f:t], o_now);
      WHEN 'claim' THEN
        SELECT c.o_receipt, c.o_bytes INTO v_receipt, v_bytes FROM claim_nodes(v_op, v_mine, o_now) c;
      WHEN 'append' THEN
        v_receipt := append_lines(v_attempts[f:t], p_numbers[f:t], p_kinds[f:t], p_first[f:t], o_now);
      WHEN 'renew' THEN
        v_receipt := renew(v_op, o_now);
      WHEN 'sweep' THEN
        SELECT s.o_receipt, s.o_bytes INTO v_receipt, v_bytes FROM sweep(v_op, v_lost, o_now) s;
      WHEN 'create' THEN
        v_receipt := create_runs(v_op -> 'rows', p_first[f:t], p_second[f:t], o_now);
      WHEN 'add_nodes' THEN
        v_receipt := add_nodes(v_op, o_now);
      WHEN 'add_graph' THEN
        v_receipt := add_graph(v_op, p_first[f], o_now);
      WHEN 'enlist' THEN
        INSERT INTO worker (id, lease_until, renewed_at, lease, info)
        VALUES (v_op ->> 'worker', o_now + (v_op ->> 'lease')::bigint, o_now, (v_op ->> 'lease')::bigint, p_first[f])
            ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until, renewed_at = excluded.renewed_at,
                                           lease = excluded.lease, info = excluded.info;
        v_receipt := to_jsonb(o_now + (v_op ->> 'lease')::bigint);
      WHEN 'dismiss' THEN
        v_receipt := dismiss(v_op, v_lost, o_now);
      WHEN 'gate' THEN
        v_receipt := take_gate(v_op, p_first[f], o_now);
      WHEN 'rewrite' THEN
        v_receipt := rewrite(v_op, p_first[f], o_now);
      WHEN 'switch_graph' THEN
        v_receipt := switch_graph(v_op, o_now);
      WHEN 'share' THEN
        v_receipt := share_attempts(v_op, o_now);
      WHEN 'restore' THEN
        v_receipt := restore_rows(v_op, p_first[f], p_second[f], p_claims[f + 1:t], p_ordinals[f + 1:t], p_first[f + 1:t],
                               p_second[f + 1:t], p_third[f + 1:t], p_claims[t + 1:(v_op ->> 'end')::int],
                               p_ordinals[t + 1:(v_op ->> 'end')::int], p_first[t + 1:(v_op ->> 'end')::int], o_now);
      WHEN 'delete' THEN
        v_receipt := delete_run(v_op);
      WHEN 'delete_graph' THEN
        v_receipt := delete_graph(v_op);
      WHEN 'save_version' THEN
        v_receipt := save_version(v_op, p_first[f], o_now);
      WHEN 'activate_version' THEN
        v_receipt := activate_version(v_op);
      WHEN 'put_record' THEN
        v_receipt := put_record(v_op, p_first[f], o_now);
    END CASE;
    IF v_op ? 'large' THEN
      PERFORM keep_large(v_op, v_receipt, p_large);
    END IF;
    o_receipts := o_receipts || jsonb_build_array(v_receipt);
    o_bytes := o_bytes || v_bytes;
  END LOOP;
  IF p_batch ? 'watched' AND EXISTS (SELECT FROM run WHERE stopping AND ended_as IS NULL) THEN
    SELECT jsonb_agg(stops(w, 10000)) INTO o_stop FROM jsonb_array_elements_text(p_batch -> 'watched') w;
  END IF;
END $$;

-- Large payloads that came with a set, [row, number in p_large]: kept if the row was applied. The receipt says for which run.
CREATE FUNCTION keep_large(p_op jsonb, p_receipt jsonb, p_large bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_pair jsonb;
  v_place integer;
  v_run bigint;
BEGIN
  FOR v_pair IN SELECT jsonb_array_elements(p_op -> 'large') LOOP
    v_place := (v_pair ->> 0)::int;
    v_run := CASE p_op ->> 'op'
               WHEN 'settle' THEN (p_receipt -> 'runs' ->> v_place)::bigint
               WHEN 'append' THEN (p_receipt ->> v_place)::bigint
               WHEN 'create' THEN (p_receipt -> v_place ->> 5)::bigint
               ELSE (p_receipt ->> 'key')::bigint END;
    IF v_run IS NOT NULL AND NOT (p_op ->> 'op' = 'settle' AND p_receipt -> 'verdicts' ->> v_place = '0')
       AND NOT (p_op ->> 'op' = 'create' AND p_receipt -> v_place ->> 1 = 'true') THEN
      PERFORM keep_payload(v_run, p_large[(v_pair ->> 1)::int]);
    END IF;
  END LOOP;
END $$;
