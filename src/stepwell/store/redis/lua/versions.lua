-- Versions of stored definitions: numbered for each name, one of them active.

local function version_key(kind, name) return P .. 'version:' .. kind .. ':' .. name end

local function get_name(kind, name)
  local key = version_key(kind, name)
  local known = S.names[key]
  if not known then
    local f = call('HMGET', key, 'newest', 'chosen')
    known = {key = key, newest = tonumber(f[1] or '0'), chosen = tonumber(f[2] or '0'), fresh = {}}
    S.names[key] = known
  end
  return known
end

local function active_version(record) return record.chosen > 0 and record.chosen or record.newest end

local function save_version(op)
  local record = get_name(op.kind, op.name)
  local number = record.fresh[op.digest] or call('HGET', record.key, 'digest:' .. op.digest)
  if number then return {'version_saved', tonumber(number), 1, active_version(record)} end
  record.newest = record.newest + 1
  record.fresh[op.digest] = record.newest
  local name = int(record.newest)
  later('HSET', record.key, 'newest', name, 'digest:' .. op.digest, name, 'row:' .. name,
    pack('>I7I4I2', now, #op.body, #op.digest) .. op.digest, 'body:' .. name, op.body)
  put(index('names:' .. op.kind), op.name, true)
  return {'version_saved', record.newest, 0, active_version(record)}
end

local function activate_version(op)
  local record = get_name(op.kind, op.name)
  if record.newest == 0 or (op.number and (op.number < 1 or op.number > record.newest)) then
    return refused('unknown', op.number and op.name .. '@' .. int(op.number) or op.name)
  end
  record.chosen = op.number or 0
  later('HSET', record.key, 'chosen', int(record.chosen))
  return {'version_activated', active_version(record)}
end
