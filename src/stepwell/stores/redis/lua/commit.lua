-- The doors: `commit` applies a batch, `read` answers queries. Arguments: the marker, the time, JSON, and payloads, which the JSON names
-- by their places.

do

-- Read what every call needs, and what the request says it will: the leases of its workers, the numbers of its lanes. The first key is
-- the marker; what it holds tells this store from every other that was or will be under its name.
local function enter(keys, given)
  args = given
  begin(keys[1], given[2])
  new_state()
  local request, names = cjson.decode(given[3]), {'marker', 'counters'}
  local workers, lanes = request.workers or NONE, request.lanes or NONE
  for k = 1, #workers do insert(names, 'lease:' .. workers[k]) end
  for k = 1, #lanes do insert(names, 'lane:' .. lanes[k]) end
  local found = call('HMGET', MARKER, unpack(names))
  if found[1] ~= given[1] then return nil end
  S.counters = read_counters(found[2] or pack_row(0, 0, 0, 0, 0, 0, 0))
  for k = 1, #workers do S.leases[workers[k]] = found[2 + k] end
  for k = 1, #lanes do S.lanes[lanes[k]] = tonumber(found[2 + #workers + k] or '-1') end
  return request
end

-- Have all that is asked for done by these functions; an op that is only a part of another gives nothing. Each is given the answer
-- to the one before it.
local function apply_all(functions, requests)
  local results = {}
  for k = 1, #requests do results[#results + 1] = functions[requests[k].op](requests[k], results[#results]) end
  return results
end

local function asked_blobs()
  local blobs = {}
  for reference, blob in pairs(S.asked) do
    insert(blobs, reference)
    insert(blobs, blob)
  end
  return blobs
end

local function leave(...)
  S, args = nil, nil
  return {...}
end

local REPLACED = 'REPLACED the store is another one, or gone'

local function commit(keys, given)
  local batch, stops = enter(keys, given), {}
  if not batch then return redis.error_reply(REPLACED) end
  S.commits = true
  local receipts = apply_all(ops, batch.ops)
  for k = 1, #batch.workers do
    local attempts = stops_of(batch.workers[k])
    for n = 1, #attempts do insert(stops, attempts[n]) end
  end
  write_all()
  return leave(now, receipts, stops, asked_blobs())
end

local function read(keys, given)
  local request = enter(keys, given)
  if not request then return redis.error_reply(REPLACED) end
  return leave(now, apply_all(reading, request.queries), asked_blobs())
end

redis.register_function({function_name = NAME .. '_commit', callback = commit})
redis.register_function({function_name = NAME .. '_read', callback = read, flags = {'no-writes'}})

end
