-- Versions of stored definitions: numbered for each name, one of them active.

local versions = {} -- one name for all of them, because one function has at most 200 local names

function versions.key(kind, name) return P .. 'version:' .. kind .. ':' .. name end

function versions.find(kind, name)
  local key = versions.key(kind, name)
  local known = S.names[key]
  if not known then
    local f = call('HMGET', key, 'newest', 'chosen')
    known = {key = key, newest = tonumber(f[1] or '0'), chosen = tonumber(f[2] or '0'), fresh = {}}
    S.names[key] = known
  end
  return known
end

function versions.active(record) return record.chosen > 0 and record.chosen or record.newest end

function versions.save(op)
  local record = versions.find(op.kind, op.name)
  local number = record.fresh[op.digest] or call('HGET', record.key, 'digest:' .. op.digest)
  if number then return {'version_saved', tonumber(number), 1, versions.active(record)} end
  record.newest = record.newest + 1
  record.fresh[op.digest] = record.newest
  local name = int(record.newest)
  later('HSET', record.key, 'newest', name, 'digest:' .. op.digest, name, 'row:' .. name,
    pack('>I7I4I2', now, #op.body, #op.digest) .. op.digest, 'body:' .. name, op.body)
  put(index('names:' .. op.kind), op.name, true)
  return {'version_saved', record.newest, 0, versions.active(record)}
end

function versions.activate(op)
  local record = versions.find(op.kind, op.name)
  if record.newest == 0 or (op.number and (op.number < 1 or op.number > record.newest)) then
    return refused('unknown', op.number and op.name .. '@' .. int(op.number) or op.name)
  end
  record.chosen = op.number or 0
  later('HSET', record.key, 'chosen', int(record.chosen))
  return {'version_activated', versions.active(record)}
end
