-- Attempts, claims, lines and large payloads.

-- Attempts: found by node and number.

local function attempt_name(i, number) return pack('>I4I4', i, number) end

local function attempt_id(attempt) return attempt.claim .. '.' .. int(attempt.ordinal) end

-- The running attempt of a node, if its number is this one.
local function running_attempt(run, node, number)
  if not node or not node.claim or node.attempt ~= number then return nil end
  if not node.running then
    node.running = {
      run = run, i = node.i, number = number, name = attempt_name(node.i, number), status = A.RUNNING, ordinal = node.ordinal,
      claim = node.claim,
    }
  end
  return node.running
end

local function get_attempt(run, i, number)
  return running_attempt(run, i < run.loaded and get_node(run, i), number) or get_row(run.attempts, attempt_name(i, number)) or nil
end

local function touch_attempt(attempt)
  set_row(attempt.run.attempts, attempt.name, attempt)
  attempt.run.changed = true
end

-- Claims: by whom and when (`head`), and which attempts they granted (`cells`): for each ordinal the run, the node, the number of the
-- attempt, and its place among all attempts of the run. `left`: how many of these are not deleted.

local CELL = 4

local function claim_key(id) return P .. 'claim:' .. id end

local function get_claim(id)
  local claim = S.claims[id]
  if claim == nil then
    local f = call('HMGET', claim_key(id), 'head', 'cells')
    claim = false
    if f[1] then
      claim = {id = id, cells = unpack_row(f[2])}
      claim.at, claim.number, claim.running, claim.left, claim.size, claim.worker = unpack_row(f[1])
    end
    S.claims[id] = claim
  end
  return claim or nil
end

local function new_claim(id, worker)
  local claim = {id = id, at = now, number = next_number('claims'), running = 0, left = 0, size = 0, worker = worker, cells = {}, changed = true}
  S.claims[id] = claim
  return claim
end

-- Run, node, number of the attempt, its place in the run.
local function claim_cell(claim, ordinal)
  local at = CELL * ordinal
  if claim.cells[at + 1] then return unpack(claim.cells, at + 1, at + CELL) end
end

-- A cell of a claim is that of this attempt, which comes next in its run.
local function place_attempt(run, claim, ordinal, i, number)
  local cells, at = claim.cells, CELL * ordinal
  cells[at + 1], cells[at + 2], cells[at + 3], cells[at + 4] = run.number, i, number, run.orders
  claim.size, claim.left, claim.changed, claim.placed = max(claim.size, ordinal + 1), claim.left + 1, true, true
  run.orders = run.orders + 1
end

local function write_claim(claim)
  local head = pack_row(claim.at, claim.number, claim.running, claim.left, claim.size, claim.worker)
  call('HSET', claim_key(claim.id), 'head', head, unpack(claim.placed and {'cells', pack_row(claim.cells)} or NONE))
end

-- The attempts that these are of claims, read in few commands; false where there is none. `with_layout`: with what the graph says of
-- their nodes.
local function find_attempts(claims, ordinals, with_layout)
  local runs, indexes, numbers, nodes, ended, attempts = {}, {}, {}, {}, {}, {}
  for k = 1, #claims do
    local claim, number = get_claim(claims[k]), nil
    if claim then number, indexes[k], numbers[k] = claim_cell(claim, ordinals[k]) end
    local run = number and get_numbered(number) or false
    runs[k] = run
    if run then
      nodes[run], ended[run] = nodes[run] or {}, {}
      insert(nodes[run], indexes[k])
    end
  end
  for run, wanted in pairs(nodes) do
    want_rows(run.nodes, wanted)
    if with_layout then want_rows(graph_of(run).layout, wanted) end
  end
  for k, run in ipairs(runs) do
    if run and not running_attempt(run, get_node(run, indexes[k]), numbers[k]) then
      insert(ended[run], attempt_name(indexes[k], numbers[k]))
    end
  end
  for run, names in pairs(ended) do want_rows(run.attempts, names) end
  for k, run in ipairs(runs) do attempts[k] = run and get_attempt(run, indexes[k], numbers[k]) or false end
  return attempts
end

local function find_attempt(claim, ordinal) return find_attempts({claim}, {ordinal})[1] end

local function holding_name(claim) return pack('>I6', claim.number) .. claim.id end

local function set_running(claim, running)
  if (claim.running > 0) ~= (running > 0) then
    put(index('holding:' .. claim.worker), holding_name(claim), running > 0)
  end
  claim.running, claim.changed = running, true
end

-- The running attempts of a claim, in order of their ordinals.
local function running_of(claim, found)
  local claims, ordinals = {}, {}
  for ordinal = 0, claim.running > 0 and claim.size - 1 or -1 do
    insert(claims, claim.id)
    insert(ordinals, ordinal)
  end
  found = found or {}
  for _, attempt in ipairs(find_attempts(claims, ordinals)) do
    if attempt and attempt.status == A.RUNNING then insert(found, attempt) end
  end
  return found
end

-- The running attempts of a worker, in the order in which they were claimed.
local function running_under(worker)
  local found = {}
  for _, name in ipairs(first_of(index('holding:' .. worker), 100000)) do
    local claim = get_claim(sub(name, 7))
    if claim then running_of(claim, found) end
  end
  return found
end

-- An attempt that did not run here.
local function new_attempt(run, claim, ordinal, i, number)
  local attempt = {run = run, i = i, number = number, name = attempt_name(i, number), ordinal = ordinal, claim = claim.id}
  place_attempt(run, claim, ordinal, i, number)
  touch_attempt(attempt)
  return attempt
end

-- Lines: members of a set, which begin with the place of their attempt in its run, and their index.

local lines = {}

function lines.set(run) return index('run:lines:' .. run.name) end

local function line_name(place, line_index) return pack('>I4I4', place, line_index + 2147483648) end

local function place_of(attempt)
  local _, _, _, place = claim_cell(get_claim(attempt.claim), attempt.ordinal)
  return place
end

function lines.name(attempt, line_index) return line_name(place_of(attempt), line_index) end

-- The member that a line is, or false.
function lines.find(attempt, line_index)
  local run, place = attempt.run, place_of(attempt)
  local name = line_name(place, line_index)
  local member = run.lines[name]
  if member == nil then
    member = call('ZRANGEBYLEX', lines.set(run).key, '(' .. name, '(' .. line_name(place, line_index + 1), 'LIMIT', 0, 1)[1] or false
    run.lines[name] = member
  end
  return member
end

function lines.add(attempt, line_index, kind, data, at)
  local run, name = attempt.run, line_name(place_of(attempt), line_index)
  local before = line_index < 0 and lines.find(attempt, line_index)
  if before then put(lines.set(run), before, false) end
  run.lines[name] = name .. pack_row(at, attempt.i, attempt.number, attempt.ordinal, attempt.claim, kind, data)
  put(lines.set(run), run.lines[name], true)
  run.changed = true
end

-- Those of an attempt.
function lines.of(attempt)
  local place = place_of(attempt)
  return first_of(lines.set(attempt.run), 100000, pack('>I4', place), pack('>I4', place + 1))
end

function lines.read(member)
  local _, line_index = unpack_bytes('>I4I4', member)
  local at, i, number, ordinal, claim, kind, data = unpack_row(sub(member, 9))
  return {index = line_index - 2147483648, at = at, i = i, number = number, ordinal = ordinal, claim = claim, kind = kind, data = data}
end

-- Large payloads are kept once for each run; rows hold a reference, which begins with a NUL.
local function keep_blob(run, reference)
  if not reference or byte(reference) ~= 0 then return end
  if S.blobs[reference] then set_row(run.blobs, reference, S.blobs[reference]) end
end

-- The payload at this place among the arguments, as the rows of a run hold it.
local function kept(run, place)
  local value = payload(place)
  keep_blob(run, value)
  return value
end

-- What an answer refers to is sent along, once.
local function ask_blob(run, reference)
  if not reference or byte(reference) ~= 0 or S.asked[reference] then return end
  S.asked[reference] = get_row(run.blobs, reference)
end
