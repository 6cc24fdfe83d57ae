-- How nodes and attempts are stored. Python reads nodes as they are here (`reading.py`). A node has the claim of its running attempt;
-- an attempt has a row once it has ended.

-- Times that may be missing are kept one too large.
local function time_or_nil(value) return value > 0 and value - 1 or nil end
local function packed_time(value) return value and value + 1 or 0 end

local read_node, packed_node, read_attempt, packed_attempt

do

local NODE = '>BI4I2I4I4I4I4I4I4I4I7' -- status and flags; then numbers in the order in which they are read
local SUSPECT, REASON, CLAIM, NEEDS = 16, 32, 64, 128 -- a reason and a claim follow; it takes outputs

read_node = function(value, i)
  local flags, rank, lane, attempt, waiting, live, failures, losses, postponed, generation, due, at = unpack_bytes(NODE, value)
  local node = {
    i = i, status = flags % SUSPECT, rank = rank, lane = lane, attempt = attempt, waiting = waiting, live = live, failures = failures,
    losses = losses, postponed = postponed, generation = generation, due = due > 0 and due - 1 or nil, claim = nil, ordinal = nil,
    suspect = nil,
  }
  if flags < SUSPECT then return node end
  local size
  node.suspect, node.needs = has(flags, SUSPECT), has(flags, NEEDS)
  if has(flags, CLAIM) then
    node.ordinal, size, at = unpack_bytes('>I2B', value, at)
    node.claim, at = sub(value, at, at + size - 1), at + size
  end
  if has(flags, REASON) then node.reason = sub(value, at) end
  return node
end

packed_node = function(node)
  local flags = node.status + (node.suspect and SUSPECT or 0) + (node.reason and REASON or 0) + (node.claim and CLAIM or 0)
    + (node.needs and NEEDS or 0)
  local row = pack(NODE, flags, node.rank, node.lane, node.attempt, node.waiting, node.live, node.failures, node.losses, node.postponed,
    node.generation, node.due and node.due + 1 or 0)
  if node.claim then row = row .. pack('>I2B', node.ordinal, #node.claim) .. node.claim end
  return node.reason and row .. node.reason or row
end

local ATTEMPT = '>BBI2I7B' -- status, which payloads it has, ordinal, ended, length of the claim's id
local PAYLOADS = {'output', 'error', 'outcome'}
local SHARED = 8 -- with a fork: begun elsewhere

read_attempt = function(value, name)
  local attempt, flags, size, at = {name = name}
  attempt.i, attempt.number = unpack_bytes('>I4I4', name)
  attempt.status, flags, attempt.ordinal, attempt.ended, size, at = unpack_bytes(ATTEMPT, value)
  attempt.ended = time_or_nil(attempt.ended)
  attempt.claim, at = sub(value, at, at + size - 1), at + size
  for k = 1, #PAYLOADS do
    if has(flags, 2 ^ (k - 1)) then
      size, at = unpack_bytes('>I4', value, at)
      attempt[PAYLOADS[k]], at = sub(value, at, at + size - 1), at + size
    end
  end
  if has(flags, SHARED) then attempt.started, attempt.worker = unpack_bytes('>I7', value, at), sub(value, at + 7) end
  return attempt
end

packed_attempt = function(attempt)
  local flags, parts = attempt.worker and SHARED or 0, {'', attempt.claim}
  for k = 1, #PAYLOADS do
    local payload = attempt[PAYLOADS[k]]
    if payload then
      flags = flags + 2 ^ (k - 1)
      parts[#parts + 1] = pack('>I4', #payload)
      parts[#parts + 1] = payload
    end
  end
  if attempt.worker then parts[#parts + 1] = pack('>I7', attempt.started) .. attempt.worker end
  parts[1] = pack(ATTEMPT, attempt.status, flags, attempt.ordinal, packed_time(attempt.ended), #attempt.claim)
  return concat(parts)
end

end
