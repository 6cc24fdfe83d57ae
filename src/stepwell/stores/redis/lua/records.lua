-- Small records that are no part of a run. A field of the hash has the version and the value.

do

local function find(kind, key)
  local name = kind .. '\0' .. key
  local record = S.records[name]
  if record == nil then
    local stored = call('HGET', P .. 'records:' .. kind, key)
    record = {version = 0}
    if stored then record.version, record.value = unpack_row(stored) end
    S.records[name] = record
  end
  return record
end

function ops.PutRecord(op)
  local record, value = find(op.kind, op.key), payload(op.value)
  if value == record.value then return {'RecordPut', record.version} end
  if op.expected and op.expected ~= record.version then return refused('conflict', int(record.version)) end
  record.value = value
  record.version = value and max(now, record.version + 1) or 0
  put(index('record_keys:' .. op.kind), op.key, value ~= nil)
  if value then
    later('HSET', P .. 'records:' .. op.kind, op.key, pack_row(record.version, value))
  else
    later('HDEL', P .. 'records:' .. op.kind, op.key)
  end
  return {'RecordPut', record.version}
end

function reading.GetRecord(q)
  local record = find(q.kind, q.key)
  return record.value and {q.key, record.version, record.value} or false
end

function reading.ListRecords(q)
  local rows = {}
  for _, key in ipairs(first_of(index('record_keys:' .. q.kind), q.limit, q.after)) do
    insert(rows, reading.GetRecord({kind = q.kind, key = key}))
  end
  return rows
end

end
