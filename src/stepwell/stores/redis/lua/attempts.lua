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

-- Claims: by whom and when, and which attempts they granted: a cell for each ordinal. `left`: how many of these are not deleted.

local CLAIM_HEAD, CLAIM_CELL = '>I7I6I4I4B', '>I6I4I4I4' -- of the head the last is the length of the worker's id, which follows
local HEAD_SIZE, CELL_SIZE = 22, 18

local function claim_key(id) return P .. 'claim:' .. id end

local function get_claim(id)
  local claim = S.claims[id]
  if claim == nil then
    local value = call('GET', claim_key(id))
    claim = false
    if value then
      claim = {id = id, stored = value, cells = {}, changed_cells = {}}
      local size
      claim.at, claim.number, claim.running, claim.left, size = unpack_bytes(CLAIM_HEAD, value)
      claim.worker, claim.offset = sub(value, HEAD_SIZE + 1, HEAD_SIZE + size), HEAD_SIZE + size
      claim.size = (#value - claim.offset) / CELL_SIZE
    end
    S.claims[id] = claim
  end
  return claim or nil
end

local function new_claim(id, worker)
  local claim = {
    id = id, at = now, number = next_number('claims'), running = 0, left = 0, worker = worker, offset = HEAD_SIZE + #worker, size = 0,
    stored = '', cells = {}, changed_cells = {}, changed = true,
  }
  S.claims[id] = claim
  return claim
end

-- Run, node, number of the attempt, its place in the run.
local function claim_cell(claim, ordinal)
  local cell, at = claim.cells[ordinal], 1
  if not cell then
    cell, at = claim.stored, claim.offset + ordinal * CELL_SIZE + 1
    if #cell < at + CELL_SIZE - 1 then return nil end
  end
  local number, i, attempt, place = unpack_bytes(CLAIM_CELL, cell, at)
  if number > 0 then return number, i, attempt, place end
end

-- A cell of a claim is that of this attempt, which comes next in its run.
local function place_attempt(run, claim, ordinal, i, number)
  claim.cells[ordinal] = pack(CLAIM_CELL, run.number, i, number, run.orders)
  claim.changed_cells[#claim.changed_cells + 1] = ordinal
  claim.size, claim.left, claim.changed = max(claim.size, ordinal + 1), claim.left + 1, true
  run.orders = run.orders + 1
end

-- Cells that follow each other are written together.
local function write_claim(claim)
  local head = pack(CLAIM_HEAD, claim.at, claim.number, claim.running, claim.left, #claim.worker) .. claim.worker
  local at, size, parts = 0, #head, {head}
  local function send()
    if at == 0 and claim.stored == '' then call('SET', claim_key(claim.id), concat(parts)) else
      call('SETRANGE', claim_key(claim.id), at, concat(parts))
    end
  end
  for k = 1, #claim.changed_cells do
    local ordinal = claim.changed_cells[k]
    local place = claim.offset + ordinal * CELL_SIZE
    if place ~= at + size then
      send()
      at, size, parts = place, 0, {}
    end
    parts[#parts + 1], size = claim.cells[ordinal], size + CELL_SIZE
  end
  send()
end

-- The attempt of an id, or nil.
local function find_attempt(claim_id, ordinal)
  local claim = get_claim(claim_id)
  if not claim then return nil end
  local number, i, attempt = claim_cell(claim, ordinal)
  local run = number and get_numbered(number)
  return run and get_attempt(run, i, attempt) or nil
end

-- What attempts of several runs are asked for, so that they can be read in few commands: by run.
local function want_attempts(runs)
  for run, wanted in pairs(runs) do
    want_rows(run.nodes, wanted.nodes)
    local names = {}
    for k = 1, #wanted.nodes do
      local i, number = wanted.nodes[k], wanted.numbers[k]
      if not running_attempt(run, get_node(run, i), number) then insert(names, attempt_name(i, number)) end
    end
    want_rows(run.attempts, names)
  end
end

local function want_attempt(runs, run, i, number)
  local wanted = runs[run]
  if not wanted then
    wanted = {nodes = {}, numbers = {}, count = 0}
    runs[run] = wanted
  end
  local count = wanted.count + 1
  wanted.nodes[count], wanted.numbers[count], wanted.count = i, number, count
end

local function holding_name(claim) return pack('>I6', claim.number) .. claim.id end

local function set_running(claim, running)
  if (claim.running > 0) ~= (running > 0) then
    put(index('holding:' .. claim.worker), holding_name(claim), running > 0)
  end
  claim.running, claim.changed = running, true
end

-- The running attempts of a claim, in order of their ordinals.
local function running_of(claim, found)
  found = found or {}
  if claim.running == 0 then return found end
  local wanted, order = {}, {}
  for ordinal = 0, claim.size - 1 do
    local number, i, attempt = claim_cell(claim, ordinal)
    local run = number and get_numbered(number)
    if run then
      want_attempt(wanted, run, i, attempt)
      insert(order, {run, i, attempt})
    end
  end
  want_attempts(wanted)
  for k = 1, #order do
    local attempt = get_attempt(unpack(order[k]))
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
