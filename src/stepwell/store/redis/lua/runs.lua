-- Runs, their journal and their nodes.

local NODE_CELL = 13
local NOBODY = 4294967295 -- the index of a journal entry that is about no node
local SUSPECT, MORE = 16, 32 -- beside the status of a node: in a suspect lane; has a field in the hash of rare values
local RUN_CELL = '>BBBI4I4I4I4I4I6I4I4I4I7I7I7I7I7I7I7'

local function run_key(kind, run) return P .. 'run:' .. kind .. ':' .. run.name end

-- Times that may be missing are kept one too large.
local function time_or_nil(value) return value > 0 and value - 1 or nil end
local function packed_time(value) return value and value + 1 or 0 end

local function new_run(number)
  return {
    number = number, name = int(number), packed = pack('>I6', number), nodes = {}, cells = {}, low = 1, high = 0, text = '',
    touched = {}, attempts = {}, attempts_touched = {}, values = {}, values_order = {},
    journal = {}, texts = {}, texts_touched = {}, ready = {}, queues = {}, lane_names = {}, lines = {}, derived = '', was_derived = '',
  }
end

local function remember(run)
  S.runs[run.number] = run
  S.run_order[#S.run_order + 1] = run
  return run
end

-- What marks are made of: as they are stored, to be compared with what the row says at the end.
local MARKED = {
  'gate', 'status', 'stopping', 'releasing', 'serving', 'due_first', 'deadline', 'cancel_at', 'expires', 'reported', 'ended',
}

local function snapshot(run)
  local was = {packed = run.packed, digest = run.digest, workflow = run.workflow, running = run.running, ready = {}, lane_names = {}}
  for lane, count in pairs(run.ready) do was.ready[lane] = count end
  for k = 1, #MARKED do was[MARKED[k]] = run[MARKED[k]] end
  return was
end

local function get_numbered(number)
  local known = S.runs[number]
  if known ~= nil then return known end
  local run = new_run(number)
  local f = call('HMGET', run_key('row', run), 'cell', 'ready', 'id', 'workflow', 'digest', 'order', 'on_failure', 'purpose',
    'token', 'serving', 'derived')
  if not f[1] then
    S.runs[number] = false
    return false
  end
  local flags
  run.status, run.gate, flags, run.open, run.active, run.failed, run.running, run.tolerated, run.seq, run.loaded, run.heals,
    run.orders, run.started, run.ended, run.deadline, run.cancel_at, run.expires, run.reported, run.due_first =
    unpack_bytes(RUN_CELL, f[1])
  run.stopping, run.releasing, run.requeue = flags % 2 == 1, flags % 4 >= 2, flags >= 4
  run.started, run.ended, run.deadline = time_or_nil(run.started), time_or_nil(run.ended), time_or_nil(run.deadline)
  run.cancel_at, run.expires, run.due_first = time_or_nil(run.cancel_at), time_or_nil(run.expires), time_or_nil(run.due_first)
  for at = 1, #f[2], 6 do
    local lane, count = unpack_bytes('>I2I4', f[2], at)
    run.ready[lane] = count
  end
  run.id, run.workflow, run.digest, run.order, run.on_failure = f[3], f[4], f[5], f[6], f[7]
  run.purpose, run.token, run.ready_text = f[8] or nil, f[9] or nil, f[2]
  run.serving, run.derived, run.was_derived = f[10], f[11] or '', f[11] or ''
  run.was = snapshot(run)
  S.numbers[run.id] = number
  return remember(run)
end

local function get_run(id)
  local number = S.numbers[id]
  if number == nil then
    number = tonumber(call('HGET', P .. 'runs', id) or '0')
    S.numbers[id] = number
  end
  return number > 0 and get_numbered(number) or nil
end

-- Rare texts of a run: read when asked for.
local function text(run, name)
  local known = run.texts[name]
  if known == nil then
    known = not run.fresh and call('HGET', run_key('row', run), name) or false
    run.texts[name] = known
  end
  return known or nil
end

local function set_text(run, name, value)
  run.texts[name] = value or false
  run.texts_touched[name] = true
  run.changed = true
end

local function set_purpose(run, purpose)
  run.purpose = purpose
  set_text(run, 'purpose', purpose)
end

local function set_token(run, token)
  run.token = token
  set_text(run, 'token', token)
end

local function serving_of(run)
  local target = text(run, 'target')
  return run.workflow .. '\0' .. (target and '1' .. target or '0') .. '\0' .. run.digest
end

local function graph_of(run) return graph_in_use(run.digest) end

-- Add to the journal; `seq` numbers the entries without a gap.
local function note(run, kind, i, attempt, status)
  run.seq = run.seq + 1
  run.journal[#run.journal + 1] = pack('>BI7I4I4', kind, now, i or NOBODY, attempt or 0) .. (status or '')
  run.changed = true
end

-- How many entries the journal has: fewer than `seq` while the run is restored or deleted.
local function journal_size(run)
  if run.stored_journal == nil then run.stored_journal = run.fresh and 0 or call('LLEN', run_key('journal', run)) end
  return run.stored_journal + #run.journal
end

local function news_of(run)
  return {run.id, run.status, run.gate, run.purpose or false, run.open, run.active, run.failed, run.seq}
end

-- Nodes.

local function read_node(run, i, text, at)
  local flags, attempt, waiting, live = unpack_bytes('>BI4I4I4', text, at)
  local node = {
    i = i, status = flags % 16, attempt = attempt, waiting = waiting, live = live, suspect = floor(flags / SUSPECT) % 2 == 1,
    failures = 0, losses = 0, postponed = 0, generation = 0, due = nil, reason = nil,
  }
  if flags >= MORE then
    local more = call('HGET', run_key('rare', run), pack('>I4', i))
    local due, reason
    node.failures, node.losses, node.postponed, node.generation, due, reason = unpack_bytes('>I4I4I4I4I7B', more)
    node.due, node.rare = time_or_nil(due), true
    if reason == 1 then node.reason = sub(more, 25) end
  end
  return node
end

-- A node is a table when somebody asks for it with get_node; what can be done with its bytes is done with them (`cells`), which
-- hold as long as there is no table. Where they stand: a text and a position in it.
local function node_at(run, i)
  local own = run.cells[i]
  if own then return own, 1 end
  if i >= run.low and i <= run.high then return run.text, (i - run.low) * NODE_CELL + 1 end
  local text = call('GETRANGE', run_key('nodes', run), i * NODE_CELL, (i + 2) * NODE_CELL - 1) -- the next one is often its child
  own = sub(text, 1, NODE_CELL)
  run.cells[i] = own
  if #text > NODE_CELL and not run.cells[i + 1] then run.cells[i + 1] = sub(text, NODE_CELL + 1) end
  return own, 1
end

local function cell_of(run, i)
  local own = run.cells[i]
  if own then return own end
  if i < run.low or i > run.high then return (node_at(run, i)) end
  local at = (i - run.low) * NODE_CELL
  return sub(run.text, at + 1, at + NODE_CELL)
end

local function get_node(run, i)
  local node = run.nodes[i]
  if not node then
    local text, at = node_at(run, i)
    node = read_node(run, i, text, at)
    run.nodes[i] = node
  end
  return node
end

local function status_of(run, i)
  local node = run.nodes[i]
  if node then return node.status end
  local text, at = node_at(run, i)
  return byte(text, at) % 16
end

local function want_nodes(run, indexes, all_between)
  local low, high = span_of(indexes)
  if all_between then low, high = indexes[1], indexes[2] end
  if low > high or low >= run.low and high <= run.high then return end
  run.text = call('GETRANGE', run_key('nodes', run), low * NODE_CELL, (high + 1) * NODE_CELL - 1)
  run.low, run.high = low, low + floor(#run.text / NODE_CELL) - 1
end

local function touch(run, node)
  run.touched[node.i] = true
  run.changed = true
end

-- READY nodes of a run in one lane, by rank, as (rank, node). What this call has put there or taken away is kept apart: `first` is the
-- lowest rank that it has put there, `taken` how many it has taken out one by one, `cut` how many at the beginning.
local function queue_of(run, lane)
  local queue = run.queues[lane]
  if not queue then
    queue = {
      key = run_key('ready:' .. int(lane), run), put = {}, order = {}, size = 0, added = 0, cut = 0, taken = 0, first = math.huge,
    }
    run.queues[lane] = queue
  end
  return queue
end

local function mark_ready(run, i, suspect, there)
  if run.requeue then return end -- they are filled when the gate opens
  local text, at = cell_at(graph_of(run), i)
  local rank, lane = unpack_bytes('>I4I2', text, at)
  lane = 2 * lane + (suspect and 1 or 0)
  local queue, member = run.queues[lane] or queue_of(run, lane), pack('>I4I4', rank, i)
  if queue.put[member] == not there then -- it is as it was before this call
    queue.put[member], queue.size = nil, queue.size - 1
  else
    put(queue, member, there)
  end
  if not there then queue.taken = queue.taken + 1 elseif rank < queue.first then queue.first = rank end
  queue.added = queue.added + (there and 1 or -1)
  run.ready[lane] = (run.ready[lane] or 0) + (there and 1 or -1)
end

-- A run that has switched to another graph: its queues are filled anew when its gate opens.
local function drop_queues(run)
  for lane in pairs(run.ready) do later('UNLINK', run_key('ready:' .. int(lane), run)) end
  run.queues, run.ready, run.changed = {}, {}, true
end

local function queue_again(run, node)
  run.requeue = false
  mark_ready(run, node.i, node.suspect, true)
  run.requeue = true
end

local take_ready

do

-- Nodes at the beginning of what is stored, if all of them come before what this call has put there. They are cut off together.
local function cut_ready(run, lane, queue, count)
  if queue.taken > 0 then return nil end
  local stored, indexes = call('ZRANGE', queue.key, queue.cut, queue.cut + count - 1), {}
  if queue.size > 0 and (#stored < count or unpack_bytes('>I4', stored[count]) >= queue.first) then return nil end
  for k = 1, #stored do indexes[k] = unpack_bytes('>I4', stored[k], 5) end
  queue.cut = queue.cut + #stored
  queue.added = queue.added - #stored
  run.ready[lane] = run.ready[lane] - #stored
  return indexes
end

-- The first nodes of a queue, which are taken out of it. Ranks are sorted as numbers: that is fast, and no two nodes of a graph
-- have the same.
take_ready = function(run, lane, count)
  local queue = queue_of(run, lane)
  -- When all that is READY came in this call, nothing is stored.
  local fresh = queue.size == queue.added and queue.added == run.ready[lane] and queue.cut == 0
  local indexes = not fresh and cut_ready(run, lane, queue, count) or nil
  if indexes then return indexes end
  indexes = {}
  local stored = fresh and NOTHING or call('ZRANGE', queue.key, queue.cut, queue.cut + count + queue.size - 1)
  local ranks, found = {}, {}
  for k = 1, #stored do
    local rank, i = unpack_bytes('>I4I4', stored[k])
    if queue.put[stored[k]] == nil then
      ranks[#ranks + 1] = rank
      found[rank] = i
    end
  end
  for member, there in pairs(queue.put) do
    if there then
      local rank, i = unpack_bytes('>I4I4', member)
      ranks[#ranks + 1] = rank
      found[rank] = i
    end
  end
  if #ranks > 1 then sort(ranks) end
  for k = 1, min(count, #ranks) do
    indexes[k] = found[ranks[k]]
    mark_ready(run, indexes[k], lane % 2 == 1, false)
  end
  return indexes
end

end

local function is_active(status) return status >= N.READY and status <= N.WAITING end
local function is_failed(status) return status == N.FAILED or status == N.INTERRUPTED end

local function set_due(run, node, due)
  if node.due == due then return end
  local set = index('run:due:' .. run.name)
  if node.due then put(set, timed(node.due, pack('>I4', node.i)), false) end
  if due then put(set, timed(due, pack('>I4', node.i)), true) end
  node.due = due
  run.due_changed = true
  touch(run, node)
end

-- Move a node and keep the counts of its run equal to what a recount would say.
local function change(run, node, status)
  local was = node.status
  if was ~= status then
    run.derived = '' -- what was derived so far may no longer hold
    if was == N.READY then mark_ready(run, node.i, node.suspect, false) end
    if was >= N.COMPLETED then run.open = run.open + 1 end
    if status >= N.COMPLETED then run.open = run.open - 1 end
    run.active = run.active + (is_active(status) and 1 or 0) - (is_active(was) and 1 or 0)
    run.failed = run.failed + (is_failed(status) and 1 or 0) - (is_failed(was) and 1 or 0)
    run.running = run.running + (status == N.RUNNING and 1 or 0) - (was == N.RUNNING and 1 or 0)
    node.status = status
    if status == N.READY then mark_ready(run, node.i, node.suspect, true) end
  end
  touch(run, node)
end
