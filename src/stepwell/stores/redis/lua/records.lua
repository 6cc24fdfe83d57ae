-- Small records that are no part of a run. A field of the hash is the version, in 8 bytes, and the value.

do

local function find(kind, key)
  local name = kind .. '\0' .. key
  local known = S.records[name]
  if known == nil then
    local stored = call('HGET', P .. 'records:' .. kind, key)
    known = stored and {version = unpack_bytes('>I8', stored), value = sub(stored, 9)} or {version = 0}
    S.records[name] = known
  end
  return known
end

function ops.put_record(op)
  local there = find(op.kind, op.key)
  if op.value == there.value then return {'record_put', there.version} end
  if op.expected and op.expected ~= int(there.version) then return refused('conflict', int(there.version)) end
  there.value = op.value
  there.version = op.value and max(now, there.version + 1) or 0
  put(index('record_keys:' .. op.kind), op.key, op.value ~= nil)
  if op.value then
    later('HSET', P .. 'records:' .. op.kind, op.key, pack('>I8', there.version) .. op.value)
  else
    later('HDEL', P .. 'records:' .. op.kind, op.key)
  end
  return {'record_put', there.version}
end

function reading.get_record(q)
  local there = find(q.kind, q.key)
  return there.value and {q.key, there.version, there.value} or false
end

function reading.list_records(q)
  local rows = {}
  for _, key in ipairs(first_of(index('record_keys:' .. q.kind), q.limit, q.after)) do
    insert(rows, reading.get_record({kind = q.kind, key = key}))
  end
  return rows
end

end
