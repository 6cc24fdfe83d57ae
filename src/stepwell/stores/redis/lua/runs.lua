-- Runs, their journal, their nodes and the queues of those that are READY.

local function run_key(kind, run) return P .. 'run:' .. kind .. ':' .. run.name end

-- What a call knows of a run beside its rows.
local function use_run(run)
  run.name, run.packed = int(run.number), pack('>I6', run.number)
  run.journal, run.row = {}, rows_of(run_key('row', run))
  run.nodes = rows_of(run_key('nodes', run), read_node, node_text)
  run.attempts = rows_of(run_key('attempts', run), function(value, name)
    local attempt = read_attempt(value, name)
    attempt.run, attempt.i, attempt.number = run, unpack_bytes('>I4I4', name)
    return attempt
  end, attempt_text)
  S.runs[run.number] = run
  S.run_order[#S.run_order + 1] = run
  return run
end

local function blobs_of(run) return rows_of(run_key('blobs', run)) end

local marks_of -- see `leases.lua`

local function get_numbered(number)
  local known = S.runs[number]
  if known ~= nil then return known end
  local f = call('HMGET', P .. 'run:row:' .. int(number), 'state', 'run')
  if not f[1] then
    S.runs[number] = false
    return false
  end
  local run = use_run(read_run(f[1], f[2], number))
  S.numbers[run.id] = number
  if S.commits then run.marks = marks_of(run) end
  return run
end

local function get_run(id)
  local number = S.numbers[id]
  if number == nil then
    number = tonumber(call('HGET', P .. 'runs', id) or '0')
    S.numbers[id] = number
  end
  return number > 0 and get_numbered(number) or nil
end

-- Those of RAW: read when asked for.
local function text(run, name) return get_row(run.row, name) or nil end

local function set_text(run, name, value)
  set_row(run.row, name, value)
  run.changed = true
end

-- The run has this graph.
local function set_graph(run, graph)
  run.digest, run.total, run.kept_changed, run.changed = graph.digest, graph.total, true, true
  run.serving = run.workflow .. '\0' .. (run.target and '1' .. run.target or '0') .. '\0' .. run.digest
end

local function graph_of(run) return graph_in_use(run.digest) end

-- Add to the journal: what, when, about which node and attempt, and what became of them. `seq` numbers the entries without a gap.
local function note(run, kind, i, attempt, status)
  run.seq = run.seq + 1
  run.journal[#run.journal + 1] = pack_row(kind, now, i, attempt, status)
  run.changed = true
end

-- How many entries the journal has: fewer than `seq` while the run is restored or deleted.
local function journal_size(run)
  if run.stored_journal == nil then run.stored_journal = run.fresh and 0 or call('LLEN', run_key('journal', run)) end
  return run.stored_journal + #run.journal
end

local add_up -- below

local function news_of(run)
  if run.moved then add_up(run) end
  return {run.id, run.status, run.gate, run.purpose or false, run.open, run.active, run.failed, run.seq}
end

-- Nodes.

-- The number of a lane in which a node waits: twice that of its lane, and one more when it is suspect.
local function lane_of(layout, suspect) return 2 * layout.lane + (suspect and 1 or 0) end

local function is_suspect(node) return node.lane % 2 == 1 end

-- What a node has of its graph.
local function place_node(node, layout, suspect)
  node.rank, node.lane, node.needs = layout.rank, lane_of(layout, suspect), layout.many_needs > 0 or nil
  return node
end

local function new_node(layout, status, suspect)
  local parents = layout.many_parents
  return place_node({
    i = layout.i, status = status, attempt = 0, waiting = parents, skipped = 0, failures = 0, losses = 0, postponed = 0, generation = 0,
  }, layout, suspect)
end

local function get_node(run, i) return get_row(run.nodes, i) end

local function touch(run, node)
  set_row(run.nodes, node.i, node)
  run.changed = true
end

local function numbers_from(first, stop)
  local numbers = {}
  for i = first, stop - 1 do numbers[#numbers + 1] = i end
  return numbers
end

-- READY nodes of a run in one lane, as (rank, node): what is first is claimed first.
local function queue_of(run, lane) return index('run:ready:' .. int(lane) .. ':' .. run.name) end

local function mark_ready(run, node, there)
  if run.requeue then return end -- they are filled when the gate opens
  local lane, member = node.lane, pack('>I4I4', node.rank, node.i)
  local queue = queue_of(run, lane)
  if queue.put[member] == not there then -- it is as it was before this call
    queue.put[member], queue.size = nil, queue.size - 1
  else
    put(queue, member, there)
  end
  queue.added = (queue.added or 0) + (there and 1 or -1)
  run.ready[lane] = (run.ready[lane] or 0) + (there and 1 or -1)
end

-- A run that has switched to another graph: its queues are filled anew when its gate opens.
local function drop_queues(run)
  for lane in pairs(run.ready) do
    later('UNLINK', queue_of(run, lane).key)
    drop_index('run:ready:' .. int(lane) .. ':' .. run.name)
  end
  run.ready, run.changed = {}, true
end

local function queue_again(run, node)
  run.requeue = false
  mark_ready(run, node, true)
  run.requeue = true
end

local function first_ready(run, lane, most)
  local queue = queue_of(run, lane)
  queue.fresh = queue.added == run.ready[lane] -- all that is READY came in this call
  local indexes = first_of(queue, most)
  for k = 1, #indexes do indexes[k] = unpack_bytes('>I4', indexes[k], 5) end
  return indexes
end

-- How many nodes have a status.
local function count_node(run, status, difference) run.counts[status + 1] = run.counts[status + 1] + difference end

-- What a run says of its nodes, from how many have each status.
add_up = function(run)
  run.moved = false
  local counts = run.counts
  run.active = counts[N.READY + 1] + counts[N.RUNNING + 1] + counts[N.WAITING + 1]
  run.open, run.failed, run.running = counts[N.PENDING + 1] + run.active, counts[N.FAILED + 1] + counts[N.INTERRUPTED + 1], counts[N.RUNNING + 1]
end

local function set_due(run, node, due)
  if node.due_at == due then return end
  local set = index('run:due:' .. run.name)
  if node.due_at then put(set, timed(node.due_at, pack('>I4', node.i)), false) end
  if due then put(set, timed(due, pack('>I4', node.i)), true) end
  node.due_at = due
  run.due_changed = true
  touch(run, node)
end

-- Move a node and keep the counts of its run.
local function change(run, node, status)
  local was = node.status
  if was ~= status then
    run.derived = nil -- what was derived so far may no longer hold
    if was == N.READY then mark_ready(run, node, false) end
    count_node(run, was, -1)
    count_node(run, status, 1)
    run.moved, node.status = true, status
    if status == N.READY then mark_ready(run, node, true) end
  end
  touch(run, node)
end
