-- Attempts, claims, lines and large payloads.

-- Attempts: found by node and number.

local function attempt_name(i, number) return pack('>I4I4', i, number) end

local ATTEMPT_HEAD = '>BBI2I7B' -- status, which payloads it has, ordinal, ended, length of the claim's id
local read_attempt, packed_attempt

do

local function read_payload(value, flags, flag, at)
  if floor(flags / flag) % 2 == 0 then return nil, at end
  local size
  size, at = unpack_bytes('>I4', value, at)
  return sub(value, at, at + size - 1), at + size
end

read_attempt = function(value)
  local attempt, flags, at, size = {}
  attempt.status, flags, attempt.ordinal, attempt.ended, size, at = unpack_bytes(ATTEMPT_HEAD, value)
  attempt.ended = time_or_nil(attempt.ended)
  attempt.claim, at = sub(value, at, at + size - 1), at + size
  attempt.output, at = read_payload(value, flags, 1, at)
  attempt.error, at = read_payload(value, flags, 2, at)
  attempt.outcome, at = read_payload(value, flags, 4, at)
  if flags >= 8 then -- shared with a fork: begun elsewhere
    attempt.started, size, at = unpack_bytes('>I7B', value, at)
    attempt.worker = sub(value, at, at + size - 1)
  end
  return attempt
end

local function pack_payload(parts, payload)
  if not payload then return end
  parts[#parts + 1] = pack('>I4', #payload)
  parts[#parts + 1] = payload
end

packed_attempt = function(attempt)
  local flags = (attempt.output and 1 or 0) + (attempt.error and 2 or 0) + (attempt.outcome and 4 or 0) + (attempt.worker and 8 or 0)
  local parts = {
    pack(ATTEMPT_HEAD, attempt.status, flags, attempt.ordinal, packed_time(attempt.ended), #attempt.claim),
    attempt.claim,
  }
  pack_payload(parts, attempt.output)
  pack_payload(parts, attempt.error)
  pack_payload(parts, attempt.outcome)
  if attempt.worker then
    parts[#parts + 1] = pack('>I7B', attempt.started, #attempt.worker)
    parts[#parts + 1] = attempt.worker
  end
  return concat(parts)
end

end

-- A completed attempt with at most an output, as it is stored.
local function completed_value(ordinal, claim, output)
  if not output then return pack(ATTEMPT_HEAD, A.COMPLETED, 0, ordinal, now + 1, #claim) .. claim end
  return pack('>BBI2I7Bc0I4c0', A.COMPLETED, 1, ordinal, now + 1, #claim, claim, #output, output)
end

-- An attempt is a table when somebody asks for it with get_attempt; what can be done with its bytes (`values`) is done with them,
-- which hold as long as there is no table. False: there is none.
local function value_of(run, name)
  local value = run.values[name]
  if value == nil then
    value = call('HGET', run_key('attempts', run), name)
    run.values[name] = value
  end
  return value
end

local function get_attempt(run, i, number)
  local name = attempt_name(i, number)
  local attempt = run.attempts[name]
  if attempt == nil then
    local value = value_of(run, name)
    attempt = value and read_attempt(value) or false
    if attempt then attempt.i, attempt.number, attempt.name, attempt.run = i, number, name, run end
    run.attempts[name] = attempt
  end
  return attempt or nil
end

local function want_values(run, names)
  local missing = {}
  for k = 1, #names do
    if run.attempts[names[k]] == nil and run.values[names[k]] == nil then missing[#missing + 1] = names[k] end
  end
  for from = 1, #missing, 960 do
    local to = min(from + 959, #missing)
    local values = call('HMGET', run_key('attempts', run), unpack(missing, from, to))
    for k = from, to do run.values[missing[k]] = values[k - from + 1] end
  end
end

local function want_attempts(run, names)
  want_values(run, names)
  for k = 1, #names do get_attempt(run, unpack_bytes('>I4I4', names[k])) end
end

local function touch_attempt(attempt)
  attempt.run.attempts_touched[attempt.name] = attempt
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
  local names, order = {}, {}
  for ordinal = 0, claim_size(claim) - 1 do
    local number, i, attempt = claim_cell(claim, ordinal)
    local run = number and get_numbered(number)
    if run then
      names[run] = names[run] or {}
      local name = attempt_name(i, attempt)
      insert(names[run], name)
      order[#order + 1] = {run, name}
    end
  end
  for run, wanted in pairs(names) do want_attempts(run, wanted) end
  for k = 1, #order do
    local attempt = order[k][1].attempts[order[k][2]]
    if attempt and attempt.status == A.RUNNING then found[#found + 1] = attempt end
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

local function new_attempt(run, claim, ordinal, i, number)
  local attempt = {
    run = run, i = i, number = number, name = attempt_name(i, number), status = A.RUNNING, ordinal = ordinal, claim = claim.id,
  }
  set_claim_cell(claim, ordinal, run.packed .. attempt.name .. pack('>I4', run.orders))
  run.orders = run.orders + 1
  run.attempts[attempt.name] = attempt
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

function lines.packed(attempt, kind, data, at)
  return pack('>I7I4I4I2BB', at, attempt.i, attempt.number, attempt.ordinal, #attempt.claim, #kind) .. attempt.claim .. kind .. data
end

function lines.has(run, name)
  if run.lines[name] ~= nil then return true end
  return call('HEXISTS', run_key('lines', run), name) == 1
end

function lines.add(attempt, line_index, kind, data, at)
  local run, name = attempt.run, lines.name(attempt, line_index)
  run.lines[name] = lines.packed(attempt, kind, data, at)
  put(index('run:line_index:' .. run.name), name, true)
  run.changed = true
end

-- Large payloads are kept once for each run; rows hold a reference, which begins with a NUL.
local function keep_blob(run, reference)
  if not reference or byte(reference) ~= 0 then return end
  local blob = S.blobs[reference]
  if blob then
    later('HSET', run_key('blobs', run), reference, blob)
    run.blobs = run.blobs or {}
    run.blobs[reference] = blob
  end
end

-- What an answer refers to is sent along, once.
local function ask_blob(run, reference)
  if not reference or byte(reference) ~= 0 or S.asked[reference] then return end
  S.asked[reference] = run.blobs and run.blobs[reference] or call('HGET', run_key('blobs', run), reference)
end
