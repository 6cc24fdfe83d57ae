-- Ops that make graphs and runs. Their names are locked already: nobody else stores the same graph or creates the same run.

-- The nodes of a graph from `start` on, column by column, arrays as texts (payloads.py): rows in JSON took most of the time.
CREATE FUNCTION add_graph(p_op jsonb, p_document bytea, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_graph bigint;
  v_loaded integer;
  v_total integer;
  v_start integer := (p_op ->> 'start')::int;
  v_lanes integer[];
  v_removed integer[] := (p_op ->> 'removed')::int[];
  v_new integer;
  v_roots integer;
  v_needs integer;
BEGIN
  SELECT key, loaded, total INTO v_graph, v_loaded, v_total FROM graph WHERE digest = p_op ->> 'digest';
  IF v_graph IS NULL AND v_start > 0 OR v_start > v_loaded THEN
    RETURN 'null';
  END IF;
  IF v_graph IS NULL THEN
    INSERT INTO graph (digest, workflow, signature, document, total, registered_at)
    VALUES (p_op ->> 'digest', p_op ->> 'workflow', p_op ->> 'signature', coalesce(p_document, ''), (p_op ->> 'total')::int, p_now)
    RETURNING key, loaded, total INTO v_graph, v_loaded, v_total;
  ELSE
    UPDATE graph SET registered_at = p_now WHERE key = v_graph;
  END IF;
  v_new := greatest(0, v_start + (p_op ->> 'size')::int - v_loaded);
  IF v_new > 0 THEN
    v_lanes := array(SELECT l.key
                       FROM jsonb_array_elements(p_op -> 'lanes') WITH ORDINALITY r(lane, place)
                            JOIN lane l ON l.queue = r.lane ->> 0 AND l.body = r.lane ->> 1 AND l.careful = (r.lane ->> 2)::boolean
                                       AND NOT l.suspect
                      ORDER BY r.place);
    WITH added AS (
      INSERT INTO layout (graph, idx, id, parents, lane, rank, removed)
      SELECT v_graph, v_start + r.place - 1, r.id, r.parents, v_lanes[r.lane], r.rank, v_start + r.place - 1 = ANY(v_removed)
        FROM unnest((p_op ->> 'ids')::text[], (p_op ->> 'counts')::int[], (p_op ->> 'lane')::int[], (p_op ->> 'ranks')::int[])
             WITH ORDINALITY r(id, parents, lane, rank, place)
       WHERE v_start + r.place - 1 >= v_loaded
      RETURNING parents)
    SELECT count(*) FILTER (WHERE parents = 0) INTO v_roots FROM added;
    INSERT INTO edge (graph, parent, child)   -- none of these children is there
    SELECT v_graph, parent, child FROM unnest((p_op -> 'parents' ->> 0)::int[], (p_op -> 'parents' ->> 1)::int[]) e(parent, child)
     WHERE child >= v_loaded;
    INSERT INTO need (graph, child, ancestor)
    SELECT v_graph, child, ancestor FROM unnest((p_op -> 'needs' ->> 0)::int[], (p_op -> 'needs' ->> 1)::int[]) n(ancestor, child)
     WHERE child >= v_loaded;
    GET DIAGNOSTICS v_needs = ROW_COUNT;
    UPDATE graph SET loaded = v_loaded + v_new, roots = roots + v_roots, has_needs = has_needs OR v_needs > 0 WHERE key = v_graph;
  END IF;
  RETURN jsonb_build_array(v_loaded + v_new, v_total);
END $$;

-- The next nodes of runs, or those from `p_start` on. Answers in which lanes of which runs some are READY.
CREATE FUNCTION lay_out(p_runs bigint[], p_start integer, OUT o_runs bigint[], OUT o_lanes integer[]) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  WITH added AS (
    INSERT INTO node (run, idx, status, waiting, lane, rank)
    SELECT r.key, l.idx, CASE l.parents WHEN 0 THEN {N_READY} ELSE {N_PENDING} END, l.parents, l.lane, l.rank
      FROM unnest(p_runs) k(key) JOIN run r ON r.key = k.key
           CROSS JOIN LATERAL (SELECT idx, parents, lane, rank FROM layout l
                                WHERE l.graph = r.graph AND l.idx >= coalesce(p_start, r.loaded)
                                  AND l.idx < coalesce(p_start, r.loaded) + {NODES} OFFSET 0) l
    RETURNING run, lane, rank, idx, status),
  marked AS (
    INSERT INTO ready (run, lane, rank, idx) SELECT run, lane, rank, idx FROM added WHERE status = {N_READY})
  SELECT array_agg(run), array_agg(lane) INTO o_runs, o_lanes
    FROM (SELECT DISTINCT run, lane FROM added WHERE status = {N_READY}) a;
END $$;

-- The next nodes of runs; with the last of them the gate opens, is shut because the parent run is paused, or is held for what a
-- fork shares.
CREATE FUNCTION load_nodes(p_runs bigint[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_forks bigint[];
BEGIN
  PERFORM lay_out(p_runs, NULL);
  UPDATE run SET loaded = least(loaded + {NODES}, total) WHERE key = ANY(p_runs);
  UPDATE run r SET gate = CASE r.status WHEN {R_PAUSED} THEN {G_SHUT} ELSE {G_OPEN} END, purpose = NULL, expires_at = NULL,
                   open = r.total, active = g.roots
    FROM graph g WHERE r.key = ANY(p_runs) AND r.loaded = r.total AND g.key = r.graph;
  v_forks := array(SELECT key FROM run WHERE key = ANY(p_runs) AND fork IS NOT NULL AND loaded = total);
  IF cardinality(v_forks) > 0 THEN
    PERFORM close_gates(v_forks, 'fork', NULL, p_now);
  END IF;
  PERFORM offer_runs(p_runs);
END $$;

-- Rows: [id, workflow, target, digest, seed, on_failure, urgency, timeout, idempotency key, origin, tags, parent, parent_node, depth].
-- Of each is answered: [run, existed, same content, loaded, total] or, without a run, whether the graph is there.
CREATE FUNCTION create_runs(p_rows jsonb, p_input bytea[], p_fork bytea[], p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_existing bigint[];
  v_small bigint[];
  v_new bigint[];
  v_answer jsonb;
BEGIN
  SELECT array_agg(coalesce((SELECT key FROM run WHERE id = r.row ->> 0),
                            (SELECT key FROM run WHERE workflow = r.row ->> 1 AND idempotency_key = r.row ->> 8
                                AND idempotency_key IS NOT NULL)) ORDER BY r.place)
    INTO v_existing
    FROM jsonb_array_elements(p_rows) WITH ORDINALITY r(row, place);
  WITH made AS (
    INSERT INTO run (id, workflow, target, graph, status, on_failure, input, seed, urgency, timeout, idempotency_key, origin, tags,
                     parent, parent_node, depth, fork, gate, purpose, expires_at, total, loaded, open, active, seq, created_at, deadline_at)
    SELECT r.row ->> 0, r.row ->> 1, r.row ->> 2, g.key, {R_PENDING}, r.row ->> 5, r.input, (r.row ->> 4)::numeric,
           (r.row ->> 6)::bigint, (r.row ->> 7)::bigint, r.row ->> 8, r.row ->> 9, r.row ->> 10, r.row ->> 11,
           (r.row ->> 12)::int, (r.row ->> 13)::int, r.fork,
           CASE WHEN s.small THEN {G_OPEN} ELSE {G_HELD} END, CASE WHEN s.small THEN NULL ELSE 'load' END,
           CASE WHEN s.small THEN NULL ELSE p_now + {LOAD_LEASE} END, g.total, CASE WHEN s.small THEN g.total ELSE 0 END,
           CASE WHEN s.small THEN g.total ELSE 0 END, CASE WHEN s.small THEN g.roots ELSE 0 END, 1, p_now,
           p_now + (r.row ->> 7)::bigint
      FROM ROWS FROM (jsonb_array_elements(p_rows), unnest(p_input), unnest(p_fork), unnest(v_existing)) WITH ORDINALITY
             AS r(row, input, fork, existing, place)
           JOIN graph g ON g.digest = r.row ->> 3 AND g.loaded = g.total
           CROSS JOIN LATERAL (SELECT g.total <= {NODES} AND r.fork IS NULL AS small) s   -- it is loaded in this commit
     WHERE r.existing IS NULL
     ORDER BY r.place
    RETURNING key, tags, gate),
  tagged AS (
    INSERT INTO tag (name, value, run)
    SELECT t.tag ->> 0, t.tag ->> 1, m.key FROM made m CROSS JOIN LATERAL jsonb_array_elements(m.tags::jsonb) t(tag)
     WHERE m.tags IS NOT NULL),
  noted AS (
    INSERT INTO journal (run, seq, at, kind) SELECT key, 1, p_now, {K_CREATED} FROM made)
  SELECT array_agg(key ORDER BY key) FILTER (WHERE gate = {G_OPEN}), array_agg(key ORDER BY key) FILTER (WHERE gate <> {G_OPEN})
    INTO v_small, v_new FROM made;
  IF v_small IS NOT NULL THEN
    INSERT INTO offer (lane, graph, workflow, urgency, run)
    SELECT u.lane, r.graph, r.workflow, r.urgency, r.key
      FROM lay_out(v_small, 0) o CROSS JOIN LATERAL unnest(o.o_runs, o.o_lanes) u(run, lane) JOIN run r ON r.key = u.run
        ON CONFLICT DO NOTHING;
  END IF;
  IF v_new IS NOT NULL THEN
    PERFORM load_nodes(v_new, p_now);
  END IF;
  SELECT jsonb_agg(CASE WHEN r.key IS NULL THEN to_jsonb(g.key IS NOT NULL)
                        ELSE jsonb_build_array(r.id, o.existing IS NOT NULL, r.workflow = o.row ->> 1 AND r.input = o.input,
                                               r.loaded, r.total, r.key) END ORDER BY o.place)
    INTO v_answer
    FROM ROWS FROM (jsonb_array_elements(p_rows), unnest(p_input), unnest(v_existing)) WITH ORDINALITY AS o(row, input, existing, place)
         LEFT JOIN graph g ON g.digest = o.row ->> 3
         LEFT JOIN LATERAL (SELECT * FROM run WHERE key = coalesce(o.existing, (SELECT n.key FROM run n WHERE n.id = o.row ->> 0))
                            OFFSET 0) r ON true;
  RETURN v_answer;
END $$;

-- [loaded, total, repeated]; 'null' if there is no such run, a number if nodes before are missing.
CREATE FUNCTION add_nodes(p_op jsonb, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_run run;
  v_start integer := (p_op ->> 'start')::int;
BEGIN
  SELECT * INTO v_run FROM run WHERE id = p_op ->> 'run';
  IF v_run.key IS NULL THEN
    RETURN 'null';
  END IF;
  IF v_start > v_run.loaded THEN
    RETURN to_jsonb(v_start);
  END IF;
  IF v_start = v_run.loaded AND v_run.purpose = 'load' THEN
    PERFORM load_nodes(ARRAY[v_run.key], p_now);
    RETURN jsonb_build_array(least(v_run.loaded + {NODES}, v_run.total), v_run.total, false);
  END IF;
  RETURN jsonb_build_array(v_run.loaded, v_run.total, v_start < v_run.loaded);
END $$;

-- Large payloads of a run, each once.
CREATE FUNCTION keep_payload(p_run bigint, p_payload bytea) RETURNS void LANGUAGE sql AS $$
  INSERT INTO blob (run, hash, data) VALUES (p_run, sha256(p_payload), p_payload) ON CONFLICT DO NOTHING
$$;
