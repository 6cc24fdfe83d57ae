-- Small records that are no part of a run. A field of the hash has the version and the value.

do

local NO_RECORD = {version = 0}

local function records_of(kind) return rows_of(P .. 'records:' .. kind, read_record, record_text) end

local CHANGES = {GateTaken = true, Rewritten = true, Deleted = true, RecordPut = true}

-- Whether an op has changed something, by its answer.
local function changes(answer)
  local kind = answer[1]
  if kind == 'Created' then return answer[3] == 0 end
  return CHANGES[kind]
end

function ops.PutRecord(op, before)
  if op.follows and not changes(before) then return refused('conflict') end
  local rows, value = records_of(op.kind), payload(op.value)
  local record = get_row(rows, op.key) or NO_RECORD
  if value == record.value then return {'RecordPut', record.version} end
  if op.expected and op.expected ~= record.version then return refused('conflict', int(record.version)) end
  local version = value and max(now, record.version + 1) or 0
  set_row(rows, op.key, value and {version = version, value = value} or false)
  put(index('record_keys:' .. op.kind), op.key, value ~= nil)
  return {'RecordPut', version}
end

function reading.GetRecord(q)
  local record = get_row(records_of(q.kind), q.key)
  return record and {q.key, record.version, record.value}
end

function reading.ListRecords(q)
  local rows = {}
  for _, key in ipairs(first_of(index('record_keys:' .. q.kind), q.limit, q.after)) do
    insert(rows, reading.GetRecord({kind = q.kind, key = key}))
  end
  return rows
end

end
