-- Versions of stored definitions: numbered for each name, one of them active.

do

local function find(kind, name)
  local key = P .. 'version:' .. kind .. ':' .. name
  local known = S.names[key]
  if not known then
    local f = call('HMGET', key, 'newest', 'chosen')
    known = {key = key, newest = tonumber(f[1] or '0'), chosen = tonumber(f[2] or '0'), fresh = {}}
    S.names[key] = known
  end
  return known
end

local function active_of(record) return record.chosen > 0 and record.chosen or record.newest end

function ops.SaveVersion(op)
  local record = find(op.kind, op.name)
  local number = record.fresh[op.digest] or call('HGET', record.key, 'digest:' .. op.digest)
  if number then return {'VersionSaved', tonumber(number), 1, active_of(record)} end
  record.newest = record.newest + 1
  record.fresh[op.digest] = record.newest
  local name, body = int(record.newest), payload(op.body)
  later('HSET', record.key, 'newest', name, 'digest:' .. op.digest, name, 'row:' .. name,
    pack_row(now, #body, op.digest), 'body:' .. name, body)
  put(index('names:' .. op.kind), op.name, true)
  return {'VersionSaved', record.newest, 0, active_of(record)}
end

function ops.ActivateVersion(op)
  local record = find(op.kind, op.name)
  if record.newest == 0 or (op.number and (op.number < 1 or op.number > record.newest)) then
    return refused('unknown', op.number and op.name .. '@' .. int(op.number) or op.name)
  end
  record.chosen = op.number or 0
  later('HSET', record.key, 'chosen', int(record.chosen))
  return {'VersionActivated', active_of(record)}
end

local function version_row(record, name, number, body)
  if number < 1 or number > record.newest then return false end
  local at, size, digest = unpack_row(call('HGET', record.key, 'row:' .. int(number)))
  local stored = body and call('HGET', record.key, 'body:' .. int(number)) or false
  return {name, number, digest, size, at, number == active_of(record) and 1 or 0, stored}
end

function reading.GetVersion(q)
  local record = find(q.kind, q.name)
  local number = q.number or active_of(record)
  if q.digest then number = tonumber(call('HGET', record.key, 'digest:' .. q.digest) or '0') end
  return version_row(record, q.name, number, true)
end

function reading.ListVersions(q)
  local record, rows = find(q.kind, q.name), {}
  for number = max(q.after, 0) + 1, min(record.newest, max(q.after, 0) + q.limit) do
    insert(rows, version_row(record, q.name, number, false))
  end
  return rows
end

function reading.ListNames(q)
  local rows = {}
  for _, name in ipairs(first_of(index('names:' .. q.kind), q.limit, q.after)) do
    local record = find(q.kind, name)
    local newest, active = version_row(record, name, record.newest), version_row(record, name, active_of(record))
    insert(rows, {name, newest[2], active[2], active[3], newest[5]})
  end
  return rows
end

end
