-- The one door: a batch comes in as one call and is answered by one row.
--
-- Locks are taken in one order, all of them before anything is decided, and the clock is read after that:
--   1. workers, by id: claims share the row, a renewal changes it, who ends or begins one has it alone;
--   2. names that may be new (ids and idempotency keys of runs, graphs, records, claims, workers), by number, as advisory locks;
--   3. lanes that are new;
--   4. the runs that are named or settled, by key. All of these are waited for.
-- What a claim or a sweep finds for itself is locked after that, and never waited for (SKIP LOCKED).

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
  v_answer record;
  v_bytes bytea[];
  v_mine bigint[] := '{}';   -- the runs that are locked
  v_lost bytea := convert_to('{WORKER_LOST_ERROR}', 'UTF8');
  f integer;   -- the rows of a set are the elements f to t of the arrays
  t integer;
BEGIN
  FOR i IN 0 .. coalesce(jsonb_array_length(p_batch -> 'workers'), 0) - 1 LOOP   -- [id, how], in order
    v_op := p_batch -> 'workers' -> i;
    CASE v_op ->> 1
      WHEN '0' THEN PERFORM FROM worker WHERE id = v_op ->> 0 FOR KEY SHARE;            -- claims for it
      WHEN '1' THEN PERFORM FROM worker WHERE id = v_op ->> 0 FOR NO KEY UPDATE;        -- renews it
      ELSE PERFORM FROM worker WHERE id = v_op ->> 0 FOR UPDATE;                        -- ends or begins it
    END CASE;
  END LOOP;
  IF p_batch ? 'names' THEN
    PERFORM CASE WHEN (n ->> 1)::boolean THEN pg_advisory_xact_lock_shared(hashtextextended(current_schema(), (n ->> 0)::bigint))
                 ELSE pg_advisory_xact_lock(hashtextextended(current_schema(), (n ->> 0)::bigint)) END
       FROM jsonb_array_elements(p_batch -> 'names') n;   -- [number, shared], in order
  END IF;
  IF p_batch ? 'lanes' THEN
    PERFORM add_lanes(p_batch -> 'lanes');
  END IF;
  IF p_batch ? 'runs' THEN
    v_mine := array(SELECT r.key FROM jsonb_array_elements_text(p_batch -> 'runs') i(id) JOIN run r ON r.id = i.id);
  END IF;
  IF p_batch ? 'dismissed' THEN
    v_mine := v_mine || array(SELECT h.run FROM jsonb_array_elements_text(p_batch -> 'dismissed') w(id) JOIN held h ON h.worker = w.id);
  END IF;
  IF p_claims IS NOT NULL OR cardinality(v_mine) > 0 THEN
    v_mine := array(SELECT key FROM run
                     WHERE key = ANY(v_mine || array(SELECT a.run FROM unnest(p_claims, p_ordinals) s(claim, ordinal)
                                                            JOIN claim c ON c.id = s.claim
                                                            JOIN attempt a ON a.key = c.key * {ORDINALS} + s.ordinal))
                     ORDER BY key FOR NO KEY UPDATE);
  END IF;
  o_now := coalesce(p_time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) + p_shift;
  o_receipts := '[]';
  FOR i IN 0 .. jsonb_array_length(p_batch -> 'ops') - 1 LOOP
    v_op := p_batch -> 'ops' -> i;
    f := (v_op ->> 'from')::int;
    t := (v_op ->> 'to')::int;
    v_bytes := NULL;
    CASE v_op ->> 'op'
      WHEN 'settle' THEN
        v_receipt := settle(p_claims[f:t], p_ordinals[f:t], p_codes[f:t], p_numbers[f:t], p_first[f:t], p_second[f:t],
                            p_third[f:t], p_kinds[f:t], o_now);
      WHEN 'hand_over' THEN
        v_receipt := hand_over(v_op, p_claims, p_ordinals, p_codes, p_numbers, p_kinds, p_first, p_second, p_third, p_large, o_now);
      WHEN 'claim' THEN
        v_answer := claim_nodes(v_op, v_mine, o_now);
        v_receipt := v_answer.o_receipt;
        v_bytes := v_answer.o_bytes;
      WHEN 'append' THEN
        v_receipt := append_lines(p_claims[f:t], p_ordinals[f:t], p_numbers[f:t], p_kinds[f:t], p_first[f:t], o_now);
      WHEN 'wake' THEN
        v_receipt := wake(v_op, o_now);
      WHEN 'renew' THEN
        v_receipt := renew(v_op, o_now);
      WHEN 'sweep' THEN
        v_answer := sweep(v_op, v_lost, o_now);
        v_receipt := v_answer.o_receipt;
        v_bytes := v_answer.o_bytes;
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
      WHEN 'put_record' THEN
        IF v_op ? 'follows' AND NOT changes(p_batch -> 'ops' -> (i - 1) ->> 'op', v_receipt) THEN
          v_receipt := jsonb_build_object('refused', 'conflict', 'detail', '');
        ELSE
          v_receipt := put_record(v_op, p_first[f], o_now);
        END IF;
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

-- Whether an op has changed something, by its answer; of a set the last one.
CREATE FUNCTION changes(p_op text, p_answer jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(CASE
           WHEN p_op = 'create' THEN NOT (p_answer -> -1 ->> 1)::boolean
           WHEN p_op = 'add_nodes' THEN NOT (p_answer ->> 2)::boolean
           WHEN p_op = 'put_record' THEN (p_answer ->> 0)::boolean   -- none if it was refused for another reason
           WHEN p_op IN ('gate', 'rewrite', 'delete', 'delete_graph') THEN NOT p_answer ? 'refused'
         END, false);
$$;

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
