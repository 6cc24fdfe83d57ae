-- A fork begins with what another run has done. Rows: [index, number], each node once.
CREATE FUNCTION share_attempts(p_op jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_origin bigint;
  v_claim bigint;
  v_ordinals integer[];
  v_theirs bigint[];
  v_fresh boolean[];
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  SELECT key INTO v_origin FROM run WHERE id = p_op ->> 'origin';
  IF v_run.key IS NULL OR v_origin IS NULL THEN
    RETURN jsonb_build_object('refused', 'unknown', 'detail', p_op ->> CASE WHEN v_run.key IS NULL THEN 'run' ELSE 'origin' END);
  ELSIF v_run.gate <> {G_HELD} OR v_run.token IS DISTINCT FROM p_op ->> 'token' THEN
    RETURN jsonb_build_object('refused', 'gate_lost', 'detail', '');
  END IF;
  SELECT array_agg(r.place - 1 ORDER BY r.place), array_agg(a.key ORDER BY r.place),
         array_agg(n.attempt = 0 AND n.status IN ({N_PENDING}, {N_READY}) ORDER BY r.place)
    INTO v_ordinals, v_theirs, v_fresh
    FROM jsonb_array_elements(p_op -> 'rows') WITH ORDINALITY r(row, place)
         JOIN attempt a ON a.run = v_origin AND a.idx = (r.row ->> 0)::int AND a.number = (r.row ->> 1)::int
                       AND a.status IN ({A_COMPLETED}, {A_SUPERSEDED})
         JOIN node n ON n.run = v_run.key AND n.idx = a.idx;
  IF true = ANY(v_fresh) AND NOT EXISTS (SELECT FROM claim WHERE id = p_op ->> 'claim') THEN
    INSERT INTO claim (id) VALUES (p_op ->> 'claim') RETURNING key INTO v_claim;
    PERFORM copy_attempts(v_run, v_origin, v_claim, v_ordinals, v_theirs, v_fresh, p_now);
  END IF;
  RETURN to_jsonb(coalesce(cardinality(v_theirs), 0));
END $$;

CREATE FUNCTION copy_attempts(p_run run, p_origin bigint, p_claim bigint, p_ordinals integer[], p_theirs bigint[], p_fresh boolean[],
                       p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_count integer;
BEGIN
  INSERT INTO attempt (key, run, idx, number, status, worker, started_at, ended_at, output, outcome)
  SELECT p_claim * {ORDINALS} + u.ordinal, p_run.key, a.idx, 1, {A_COMPLETED}, a.worker, a.started_at, a.ended_at, a.output, a.outcome
    FROM unnest(p_ordinals, p_theirs, p_fresh) u(ordinal, key, fresh) JOIN attempt a ON a.key = u.key WHERE u.fresh;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  INSERT INTO line (attempt, idx, at, kind, data)
  SELECT p_claim * {ORDINALS} + u.ordinal, l.idx, l.at, l.kind, l.data
    FROM unnest(p_ordinals, p_theirs, p_fresh) u(ordinal, key, fresh) JOIN line l ON l.attempt = u.key
   WHERE u.fresh AND l.kind IN ('effect', 'payload', 'checkpoint');
  INSERT INTO blob (run, hash, data)
  SELECT DISTINCT p_run.key, b.hash, b.data
    FROM (SELECT unnest(ARRAY[a.output, a.outcome]) AS value FROM unnest(p_theirs) u(key) JOIN attempt a ON a.key = u.key
          UNION SELECT l.data FROM unnest(p_theirs) u(key) JOIN line l ON l.attempt = u.key) v
         JOIN blob b ON b.run = p_origin AND b.hash = substr(v.value, 2)
   WHERE substr(v.value, 1, 1) = '\x00'
      ON CONFLICT DO NOTHING;
  DELETE FROM ready
   WHERE ctid = ANY(array(SELECT y.ctid
                            FROM attempt a JOIN node n ON n.run = a.run AND n.idx = a.idx CROSS JOIN LATERAL
                                 (SELECT ctid FROM ready
                                   WHERE run = n.run AND lane = n.lane AND rank = n.rank AND idx = n.idx OFFSET 0) y
                           WHERE a.key BETWEEN p_claim * {ORDINALS} AND p_claim * {ORDINALS} + {ORDINALS} - 1));
  WITH moved AS (
    UPDATE node n SET status = {N_COMPLETED}, attempt = 1
      FROM attempt a
     WHERE a.key BETWEEN p_claim * {ORDINALS} AND p_claim * {ORDINALS} + {ORDINALS} - 1 AND n.run = a.run AND n.idx = a.idx
    RETURNING n.idx)
  UPDATE run SET seq = seq + v_count, open = open - v_count WHERE key = p_run.key;
  UPDATE run SET active = (SELECT count(*) FROM node n WHERE n.run = p_run.key AND n.status BETWEEN {N_READY} AND {N_WAITING})
   WHERE key = p_run.key;
  INSERT INTO journal (run, seq, at, kind, idx, number, status)
  SELECT p_run.key, r.seq + 1 - row_number() OVER (ORDER BY a.key DESC), p_now, {K_SHARED}, a.idx, 1, {N_COMPLETED}
    FROM attempt a JOIN run r ON r.key = a.run
   WHERE a.key BETWEEN p_claim * {ORDINALS} AND p_claim * {ORDINALS} + {ORDINALS} - 1;
END $$;
