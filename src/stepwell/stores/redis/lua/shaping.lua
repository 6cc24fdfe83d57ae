-- Ops that change what a run is: creation, switching graphs, sharing, gates, rewrites, deletion.

local admit, run_of_key, keep_key, refuse_create, create -- what later files use; the rest is of this file

do

-- A run that begins here, with all that the op says of it.
admit = function(op, graph, purpose)
  local run = {number = next_number('runs'), fresh = true, counts = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, ready = {}}
  for _, name in ipairs(KEPT) do run[name] = op[name] end
  use_run(run)
  run.id, run.order = op.run_id, op.urgency .. run.packed
  run.status, run.gate, run.purpose, run.stopping, run.reported, run.deadline_at = op.status, G.HELD, purpose, false, 0, op.deadline_at
  run.open, run.active, run.failed, run.running, run.tolerated, run.seq, run.loaded, run.heals, run.orders = 0, 0, 0, 0, 0, 0, 0, 0, 0
  for _, name in ipairs(RAW) do
    if op[name] then set_text(run, name, op[name]) end
  end
  set_graph(run, graph)
  S.numbers[op.run_id] = run.number
  later('HSET', P .. 'runs', op.run_id, run.name)
  run.row.fresh, run.nodes.fresh, run.attempts.fresh = true, true, true
  listing.put(run, true)
  use_graph(graph, 1)
  return run
end

-- Add the next nodes of its graph, at most LIMIT.nodes. Behind the gate of a heal all are PENDING.
local function add_nodes(run, graph)
  local first, stop = run.loaded, min(run.loaded + LIMIT.nodes, graph.total)
  want_rows(graph.layout, numbers_from(first, stop))
  for i = first, stop - 1 do
    local layout = layout_of(graph, i)
    local node = new_node(layout, (run.requeue or layout.many_parents > 0) and N.PENDING or N.READY)
    count_node(run, node.status, 1)
    touch(run, node)
    if node.status == N.READY then mark_ready(run, node, true) end
  end
  run.loaded, run.moved = stop, true
end

-- After the last of its nodes open the gate, or hold it for what a fork shares.
local function load_nodes(run, graph)
  add_nodes(run, graph)
  if run.loaded == graph.total then
    add_up(run)
    run.gate, run.expires, run.purpose = run.status == R.PAUSED and G.SHUT or G.OPEN, nil, nil
    local fork = text(run, 'fork')
    if fork then close_gate(run, 'fork', fork) end
  end
end

-- The run that has this idempotency key in its workflow, if there is one.
run_of_key = function(op)
  local key = op.workflow .. '\0' .. op.idempotency_key
  local number = S.keys[key]
  if number == nil then
    number = tonumber(call('HGET', P .. 'keys', key) or '0')
    S.keys[key] = number
  end
  return number > 0 and get_numbered(number) or nil
end

keep_key = function(run, op)
  local key = op.workflow .. '\0' .. op.idempotency_key
  S.keys[key] = run.number
  later('HSET', P .. 'keys', key, run.name)
end

local function existing(op) return get_run(op.run_id) or op.idempotency_key and run_of_key(op) end

-- Why this run cannot be created.
refuse_create = function(op)
  local run = existing(op)
  if run then
    local same = run.workflow == op.workflow and text(run, 'input') == args[op.input]
    return not same and refused('conflict', run.id)
  end
  local graph = get_graph(op.digest)
  if not graph then return refused('unknown', 'graph ' .. op.digest) end
  return graph.loaded < graph.total and refused('incomplete', 'graph ' .. op.digest)
end

-- `reason`: why it is paused from the beginning, if it is.
create = function(op, reason)
  local run = existing(op)
  if run then return {'Created', run.id, 1, run.loaded, get_graph(run.digest).total} end
  local graph = get_graph(op.digest)
  op.input, op.fork = args[op.input], op.fork and args[op.fork]
  op.status, op.created_at, op.deadline_at = reason and R.PAUSED or R.PENDING, now, op.timeout and now + op.timeout
  run = admit(op, graph, 'load')
  run.reason, run.expires = reason, now + LOAD_LEASE
  if op.idempotency_key then keep_key(run, op) end
  note(run, K.created)
  load_nodes(run, graph)
  return {'Created', run.id, 0, run.loaded, graph.total}
end

ops.Create = function(op) return refuse_create(op) or create(op) end

ops.AddNodes = function(op)
  local run = get_run(op.run_id)
  if not run then return refused('unknown', op.run_id) end
  if op.start > run.loaded then return refused('incomplete', 'the nodes before ' .. int(op.start) .. ' are not there yet') end
  local repeated = op.start < run.loaded
  if not repeated and run.purpose == 'load' then load_nodes(run, get_graph(run.digest)) end
  return {'Created', run.id, repeated and 1 or 0, run.loaded, get_graph(run.digest).total}
end

local function held_by(run, token) return run.gate == G.HELD and run.token == token end

ops.SwitchGraph = function(op)
  local run, graph = get_run(op.run_id), get_graph(op.digest)
  if not run or not graph then return refused('unknown', not run and op.run_id or 'graph ' .. op.digest) end
  if not held_by(run, op.token) then return refused('gate_lost') end
  if graph.loaded < graph.total or op.start > run.loaded then
    return refused('incomplete', 'the nodes before ' .. int(op.start) .. ' are not there yet')
  end
  if graph.total < run.loaded then
    return refused('conflict', 'graph ' .. op.digest .. ' does not number every node of the run')
  end
  if run.digest ~= op.digest then
    note(run, K.healed, nil, nil, run.digest .. ' ' .. op.digest)
    drop_queues(run) -- lanes and ranks are those of the new graph from now on
    run.requeue = true
    run.former = run.former or {}
    run.former[run.digest] = true
    if not run.former[op.digest] then use_graph(graph, 1) end
    listing.put_digest(run, false)
    run.heals = run.heals + 1
    set_graph(run, graph)
    listing.put_digest(run, true)
  end
  run.derived, run.changed = nil, true
  if op.start == run.loaded then
    add_nodes(run, graph)
    add_up(run)
  end
  return {'GraphSwitched', run.loaded, graph.total}
end

do

local SHARED_PAYLOADS = {'output', 'outcome'}
local SHARED_LINES = {effect = true, payload = true, checkpoint = true}

local function copy_blob(from, to, reference)
  if not reference or byte(reference) ~= 0 then return end
  S.blobs[reference] = S.blobs[reference] or get_row(blobs_of(from), reference)
  keep_blob(to, reference)
end

local function share_one(run, node, theirs, claim, ordinal)
  local ours = new_attempt(run, claim, ordinal, node.i, 1)
  ours.status, ours.ended_at = A.COMPLETED, theirs.ended_at
  ours.worker, ours.started_at = theirs.worker or get_claim(theirs.claim).worker, started_of(theirs)
  for _, name in ipairs(SHARED_PAYLOADS) do
    ours[name] = theirs[name]
    copy_blob(theirs.run, run, theirs[name])
  end
  node.attempt = 1
  change(run, node, N.COMPLETED)
  note(run, K.shared, node.i, 1, N.COMPLETED)
  for _, member in ipairs(lines.of(theirs)) do
    local line = lines.read(member)
    if SHARED_LINES[line.kind] then lines.add(ours, line.index, line.kind, line.data, line.at) end
  end
end

-- rows: index and number of attempts, each index once.
ops.Share = function(op)
  local run, origin = get_run(op.run_id), get_run(op.origin)
  if not run or not origin then return refused('unknown', not run and op.run_id or op.origin) end
  if not held_by(run, op.token) then return refused('gate_lost') end
  local claim = get_claim(op.claim_id)
  local repeated, shared = claim ~= nil, 0
  for k = 1, #op.rows do
    local i, number = op.rows[k][1], op.rows[k][2]
    local theirs = i >= 0 and number >= 1 and get_attempt(origin, i, number)
    if theirs and i < run.loaded and (theirs.status == A.COMPLETED or theirs.status == A.SUPERSEDED) then
      shared = shared + 1
      local node = get_node(run, i)
      if not repeated and node.attempt == 0 and node.status <= N.READY then
        claim = claim or new_claim(op.claim_id, '')
        share_one(run, node, theirs, claim, k - 1)
      end
    end
  end
  return {'Shared', shared}
end

end

local function refuse_gate(op, run)
  local held = run.gate == G.HELD
  if op.token == run.last_token then return refused('gate_lost', 'what this request was for is done') end
  if held and (run.purpose == 'load' or run.purpose == 'delete' or run.purpose == 'restore') then return refused('incomplete', run.purpose) end
  if #op.allowed > 0 then
    local allowed = false
    for k = 1, #op.allowed do allowed = allowed or op.allowed[k] == run.status end
    if not allowed then return refused('status', RUN_NAMES[run.status]) end
  end
  if op.resume and (not held or run.purpose ~= op.purpose) then return refused('status', RUN_NAMES[run.status]) end
  if held and run.token and run.expires and run.expires > now then return refused('gate_held', run.purpose or '') end
  if held and not op.resume then return refused('incomplete', run.purpose or '') end
end

ops.Gate = function(op)
  local run = get_run(op.run_id)
  if not run then return refused('unknown', op.run_id) end
  if held_by(run, op.token) then return {'GateTaken', news_of(run)} end
  local why = refuse_gate(op, run)
  if why then return why end
  run.gate, run.expires, run.reported, run.derived, run.token, run.purpose = G.HELD, now + op.lease, 0, nil, op.token, op.purpose
  set_text(run, 'arguments', args[op.arguments])
  run.stopping = run.stopping or op.stop
  note(run, K.gate, nil, nil, op.purpose)
  return {'GateTaken', news_of(run)}
end

-- Change one node if it still is what the kernel saw. Its completion, if it has one, no longer counts.
local function rewrite_node(run, row)
  if row.index < 0 or row.index >= run.loaded then return false end
  local node = get_node(run, row.index)
  if node.status ~= row.was or node.attempt ~= row.was_attempt then return false end
  if row.status == row.was then return true end
  if node.status == N.COMPLETED then
    node.generation = node.generation + 1
    local attempt = get_attempt(run, row.index, node.attempt)
    if attempt and attempt.status == A.COMPLETED then
      attempt.status = A.SUPERSEDED
      touch_attempt(attempt)
    end
  end
  change(run, node, row.status)
  node.reason = row.reason
  set_due(run, node, nil)
  if row.fresh then node.failures, node.postponed, node.losses, node.lane = 0, 0, 0, node.lane - node.lane % 2 end
  if row.anew then node.wakes = nil end
  note(run, K.rewrote, row.index, node.attempt, row.status)
  return true
end

-- Before a gate opens both parent counters of every node are computed from the rows, and from them which unstarted ones are
-- READY. A large run takes several calls, each of which looks at LIMIT.derived nodes and edges. How far it is stands in the row of the
-- run: the next node, how many of its parents have been counted, and what they gave. Whatever moves meanwhile sets it back to the
-- beginning.

local CHANGED = 4 -- a node that is changed takes as long as so many that are not
local AT_ONCE = 500 -- parents, and nodes

-- Of some parents of a node: how many are to be waited for, and how many were skipped.
local function count_parents(run, parents)
  local waiting, skipped = 0, 0
  want_rows(run.nodes, parents)
  for k = 1, #parents do
    local parent = get_node(run, parents[k])
    if parent.status == N.SKIPPED then
      if parent.reason ~= HEALED_LATE then skipped = skipped + 1 end
    elseif parent.status ~= N.COMPLETED then
      waiting = waiting + 1
    end
  end
  return waiting, skipped
end

-- Whether that changed anything.
local function set_counters(run, i, waiting, skipped)
  local node = get_node(run, i)
  if run.requeue then touch(run, place_node(node, layout_of(graph_of(run), i), is_suspect(node))) end
  local right = node.status > N.READY or (node.status == N.READY) == (waiting == 0) and not (node.status == N.READY and run.requeue)
  if right and node.waiting == waiting and node.skipped == skipped then return false end
  node.waiting, node.skipped = waiting, skipped
  touch(run, node)
  if node.status <= N.READY then
    change(run, node, waiting > 0 and N.PENDING or N.READY)
    if run.requeue and waiting == 0 then queue_again(run, node) end
  end
  return true
end

-- Whether it is done.
local function derive(run)
  local graph, i, waiting, skipped, counted = graph_of(run), 0, 0, 0, 0
  if not run.derived then
    run.releases, run.releasing = {}, false
    if run.requeue then drop_queues(run) end
  else
    i, waiting, skipped, counted = unpack(run.derived)
  end
  local left, stop = LIMIT.derived, i
  while i < run.loaded and left > 0 do
    if i == stop then
      stop = min(run.loaded, i + AT_ONCE)
      want_rows(run.nodes, numbers_from(i, stop))
      want_rows(graph.layout, numbers_from(i, stop))
    end
    local layout = layout_of(graph, i)
    local parents = some_of(list_of(graph, layout, 'parents'), AT_ONCE, counted)
    local more_waiting, more_skipped = count_parents(run, parents)
    waiting, skipped, left, counted = waiting + more_waiting, skipped + more_skipped, left - 1 - #parents, counted + #parents
    if counted == layout.many_parents then
      if set_counters(run, i, waiting, skipped) then left = left - CHANGED end
      i, waiting, skipped, counted = i + 1, 0, 0, 0
    end
  end
  run.changed = true
  if i < run.loaded then
    run.derived = {i, waiting, skipped, counted}
    return false
  end
  run.derived, run.requeue = nil, nil
  return true
end

local function finish(run, op)
  if run.moved then add_up(run) end
  set_text(run, 'arguments', '')
  run.last_token, run.token, run.purpose, run.expires = run.token, nil, nil, nil
  local moved = run.status ~= op.status
  run.status = op.status
  run.reason = op.reason
  if op.input then set_text(run, 'input', args[op.input]) end
  if moved then run.ended_at = op.status >= R.COMPLETED and now or nil end
  run.cancel_at = op.status == R.CANCELLING and now + (op.grace or 0) or nil
  note(run, K.run, nil, nil, RUN_NAMES[op.status])
  if op.open_gate then
    run.gate, run.stopping = G.OPEN, false
    if moved and run.timeout then run.deadline_at = now + run.timeout end
  else
    run.gate = G.SHUT
    if moved and op.status >= R.COMPLETED then shut_gate(run) end
  end
  run.tolerated = op.tolerate and run.failed or min(run.tolerated, run.failed)
  if run.failed == 0 then run.error = nil end
  conclude(run)
end

local function illegal_finish(run, op)
  if op.status == R.COMPLETED and run.status ~= R.COMPLETED then
    return 'a run completes with the last of its nodes, and by nothing else'
  end
  if op.status ~= run.status and not RUN_MOVES[run.status][op.status] then
    return RUN_NAMES[run.status] .. ' -> ' .. RUN_NAMES[op.status]
  end
  if op.open_gate ~= (op.status == R.PENDING or op.status == R.RUNNING) then
    return RUN_NAMES[op.status] .. ' behind ' .. (op.open_gate and 'an open' or 'a shut') .. ' gate'
  end
end

ops.Rewrite = function(op)
  local run = get_run(op.run_id)
  if not run then return refused('unknown', op.run_id) end
  if not held_by(run, op.token) then return refused('gate_lost') end
  local illegal = op.illegal or (op.finish and illegal_finish(run, op.finish))
  if illegal then return refused('status', illegal) end
  local seen, changed, indexes = {}, {}, {}
  for k = 1, #op.rows do
    if op.rows[k].index >= 0 and op.rows[k].index < run.loaded then insert(indexes, op.rows[k].index) end
  end
  want_rows(run.nodes, indexes)
  for k = 1, #op.rows do
    local row = op.rows[k]
    if seen[row.index] or not rewrite_node(run, row) then insert(changed, int(row.index)) end
    seen[row.index] = true
  end
  if #changed > 0 then return refused('changed', concat(changed, ',')) end
  if op.finish and op.finish.open_gate and not derive(run) then return {'Rewritten', news_of(run), 0} end
  if op.finish then finish(run, op.finish) end
  return {'Rewritten', news_of(run), 1}
end

end
