-- Attempts, claims, lines and large payloads.

-- Attempts: found by node and number.

local function attempt_name(i, number) return pack('>I4I4', i, number) end

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

-- Claims: by whom and when, and for each ordinal which attempt it is.

local CLAIM_HEAD = '>I7I6I4B' -- at, number, running, length of the worker's id
local CLAIM_HEAD_SIZE, CLAIM_CELL = 18, 18

local function get_claim(id)
  local claim = S.claims[id]
  if claim == nil then
    local value = call('GET', P .. 'claim:' .. id)
    claim = false
    if value then
      local at, number, running, size = unpack_bytes(CLAIM_HEAD, value)
      claim = {
        id = id, at = at, number = number, running = running, worker = sub(value, CLAIM_HEAD_SIZE + 1, CLAIM_HEAD_SIZE + size),
        cells = sub(value, CLAIM_HEAD_SIZE + size + 1),
      }
    end
    S.claims[id] = claim
  end
  return claim or nil
end

local function new_claim(id, worker)
  local claim = {id = id, at = now, number = next_number('claims'), running = 0, worker = worker, cells = '', fresh = true, pieces = {}}
  S.claims[id] = claim
  return claim
end

local function claim_size(claim) return claim.pieces and #claim.pieces or #claim.cells / CLAIM_CELL end

-- Run, node, number of the attempt, its place in the run.
local function claim_cell(claim, ordinal)
  local text, at = claim.cells, ordinal * CLAIM_CELL + 1
  if claim.pieces then text, at = claim.pieces[ordinal + 1] or '', 1 end
  if #text < at + CLAIM_CELL - 1 then return nil end
  local number, i, attempt, place = unpack_bytes('>I6I4I4I4', text, at)
  if number > 0 then return number, i, attempt, place end
end

-- Cells that are changed are kept apart, one by one, and the claim is written whole.
local function set_claim_cell(claim, ordinal, cell)
  if not claim.pieces then
    claim.pieces = {}
    for from = 1, #claim.cells, CLAIM_CELL do insert(claim.pieces, sub(claim.cells, from, from + CLAIM_CELL - 1)) end
  end
  for k = #claim.pieces + 1, ordinal do claim.pieces[k] = rep('\0', CLAIM_CELL) end
  claim.pieces[ordinal + 1], claim.changed = cell, true
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
  for ordinal = 0, claim_size(claim) - 1 do
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

-- The next place of a claim is that of this attempt.
local function place_attempt(run, claim, ordinal, i, number)
  set_claim_cell(claim, ordinal, run.packed .. attempt_name(i, number) .. pack('>I4', run.orders))
  run.orders = run.orders + 1
end

-- An attempt that did not run here.
local function new_attempt(run, claim, ordinal, i, number)
  local attempt = {run = run, i = i, number = number, name = attempt_name(i, number), ordinal = ordinal, claim = claim.id}
  place_attempt(run, claim, ordinal, i, number)
  touch_attempt(attempt)
  return attempt
end

-- Lines: data by (place of the attempt in its run, index), and an index of what there is.

local lines = {}

local function place_of(attempt)
  local _, _, _, place = claim_cell(get_claim(attempt.claim), attempt.ordinal)
  return place
end

function lines.name(attempt, line_index) return pack('>I4I4', place_of(attempt), line_index + 2147483648) end

function lines.has(run, name) return get_row(run.lines, name) ~= false end

function lines.add(attempt, line_index, kind, data, at)
  local run, name = attempt.run, lines.name(attempt, line_index)
  set_row(run.lines, name,
    pack('>I7I4I4I2BB', at, attempt.i, attempt.number, attempt.ordinal, #attempt.claim, #kind) .. attempt.claim .. kind .. data)
  put(index('run:line_index:' .. run.name), name, true)
  run.changed = true
end

-- Large payloads are kept once for each run; rows hold a reference, which begins with a NUL.
local function keep_blob(run, reference)
  if not reference or byte(reference) ~= 0 then return end
  if S.blobs[reference] then set_row(run.blobs, reference, S.blobs[reference]) end
end

-- What an answer refers to is sent along, once.
local function ask_blob(run, reference)
  if not reference or byte(reference) ~= 0 or S.asked[reference] then return end
  S.asked[reference] = get_row(run.blobs, reference)
end
