-- Nodes that are performed by runs: handing a node over to a child run, and waking it when that has ended.

-- What becomes of a node that is parked: READY, if it was woken since it was claimed.
CREATE FUNCTION parked_as(p_run bigint, p_idx integer, p_wakes bigint) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT CASE wakes WHEN p_wakes THEN {N_WAITING} ELSE {N_READY} END FROM node WHERE run = p_run AND idx = p_idx);
END $$;

-- Why a run cannot be created, or null. The row is one of those that create_runs is given.
CREATE FUNCTION refuse_create(p_row jsonb, p_input bytea) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_run run;
  v_complete boolean;
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_row ->> 0 OR (workflow = p_row ->> 1 AND idempotency_key = p_row ->> 8)
   ORDER BY id = p_row ->> 0 DESC LIMIT 1;
  IF v_run.workflow = p_row ->> 1 AND v_run.input = p_input THEN
    RETURN NULL;
  ELSIF v_run.key IS NOT NULL THEN
    RETURN jsonb_build_object('refused', 'conflict', 'detail', v_run.id);
  END IF;
  SELECT loaded = total INTO v_complete FROM graph WHERE digest = p_row ->> 3;
  IF v_complete THEN
    RETURN NULL;
  END IF;
  RETURN jsonb_build_object('refused', CASE WHEN v_complete IS NULL THEN 'unknown' ELSE 'incomplete' END,
                            'detail', 'graph ' || (p_row ->> 3));
END $$;

-- An attempt hands its node over to a child run: both, or neither. The op consists of those that record the attempt's lines, settle
-- it and create the run.
CREATE FUNCTION hand_over(p_op jsonb, p_claims text[], p_ordinals integer[], p_codes integer[], p_numbers bigint[], p_kinds text[],
                          p_first bytea[], p_second bytea[], p_third bytea[], p_large bytea[], p_now bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_lines jsonb := p_op -> 'lines';
  v_settlement jsonb := p_op -> 'settlement';
  v_child jsonb := p_op -> 'child';
  v_attempt attempt;
  v_receipt jsonb;
  v_created jsonb;
  f integer := (v_settlement ->> 'from')::int;
  c integer := (v_child ->> 'from')::int;
  l integer := (v_lines ->> 'from')::int;
  t integer := (v_lines ->> 'to')::int;
BEGIN
  SELECT a.* INTO v_attempt FROM claim i JOIN attempt a ON a.key = i.key * {ORDINALS} + p_ordinals[f]
   WHERE i.id = p_claims[f] AND a.status = {A_RUNNING};
  IF v_attempt.key IS NOT NULL THEN
    v_receipt := refuse_create(v_child -> 'rows' -> 0, p_first[c]);
    IF v_receipt IS NOT NULL THEN
      RETURN v_receipt;
    END IF;
  END IF;
  IF v_lines IS NOT NULL THEN
    v_receipt := append_lines(p_claims[l:t], p_ordinals[l:t], p_numbers[l:t], p_kinds[l:t], p_first[l:t], p_now);
    PERFORM keep_large(v_lines, v_receipt, p_large);
  END IF;
  v_receipt := settle(p_claims[f:f], p_ordinals[f:f], p_codes[f:f], p_numbers[f:f], p_first[f:f], p_second[f:f], p_third[f:f],
                      p_kinds[f:f], p_now);
  PERFORM keep_large(v_settlement, v_receipt, p_large);
  UPDATE node SET wakes = wakes + 1
   WHERE run = v_attempt.run AND idx = v_attempt.idx AND status < {N_TERMINAL};
  IF FOUND THEN
    v_created := create_runs(v_child -> 'rows', p_first[c:c], p_second[c:c], p_now);
    PERFORM keep_large(v_child, v_created, p_large);
    IF NOT (v_created -> 0 ->> 1)::boolean AND EXISTS (SELECT FROM run WHERE key = v_attempt.run AND status = {R_PAUSED}) THEN
      UPDATE run SET status = {R_PAUSED}, reason = '{PARENT_PAUSED}', gate = CASE gate WHEN {G_OPEN} THEN {G_SHUT} ELSE gate END
       WHERE key = (v_created -> 0 ->> 5)::bigint;
      DELETE FROM offer WHERE run = (v_created -> 0 ->> 5)::bigint;
    END IF;
  END IF;
  RETURN v_receipt;
END $$;

-- How the run stands and, if the node is READY now, its queue; 'null' if there is no such node.
CREATE FUNCTION wake(p_op jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_node node;
BEGIN
  UPDATE run SET gate = {G_SHUT}, purpose = NULL, expires_at = NULL WHERE id = p_op ->> 'ended' AND purpose = '{ENDED}';
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  SELECT * INTO v_node FROM node WHERE run = v_run.key AND idx = (p_op ->> 'index')::bigint;
  IF v_node.run IS NULL THEN
    RETURN 'null';
  END IF;
  IF v_node.status = {N_RUNNING} THEN
    UPDATE node SET wakes = wakes + 1 WHERE run = v_run.key AND idx = v_node.idx AND wakes > 0;
  ELSIF v_node.status = {N_WAITING} AND v_node.wakes > 0 AND v_node.due_at IS NULL THEN
    IF v_run.gate <> {G_OPEN} AND NOT v_run.stopping THEN
      UPDATE node SET due_at = p_now WHERE run = v_run.key AND idx = v_node.idx;
      INSERT INTO due (run, at, idx) VALUES (v_run.key, p_now, v_node.idx);
    ELSE
      v_node.status := CASE WHEN v_run.stopping THEN {N_CANCELLED} WHEN v_node.waiting > 0 THEN {N_PENDING} ELSE {N_READY} END;
      UPDATE node SET status = v_node.status, reason = CASE WHEN v_run.stopping THEN 'run_cancelled' END
       WHERE run = v_run.key AND idx = v_node.idx;
      UPDATE run
         SET seq = seq + 1, open = open - (v_node.status = {N_CANCELLED})::int,
             active = active - (v_node.status <> {N_READY})::int, low_rank = least(low_rank, v_node.rank)
       WHERE key = v_run.key;
      INSERT INTO journal (run, seq, at, kind, idx, number, status)
      VALUES (v_run.key, v_run.seq + 1, p_now, {K_WOKEN}, v_node.idx, v_node.attempt, v_node.status);
      IF v_node.status = {N_READY} THEN
        INSERT INTO ready (run, lane, rank, idx) VALUES (v_run.key, v_node.lane, v_node.rank, v_node.idx);
        PERFORM offer_runs(ARRAY[v_run.key]);
      END IF;
      PERFORM conclude(ARRAY[v_run.key], p_now);
    END IF;
  END IF;
  RETURN jsonb_build_object('news', news_of(ARRAY[v_run.key]),
                            'queue', (SELECT queue FROM lane WHERE key = v_node.lane AND v_node.status = {N_READY}));
END $$;
