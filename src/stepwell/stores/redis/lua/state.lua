-- What a call works on: rows are read when they are first asked for, changed here, and written at the very end.
--
-- Redis does not roll back. So nothing is written before the last op of the batch has been applied to these tables: an error
-- in any line above `write_all` leaves the server exactly as it was.
--
-- Two traps are avoided by hand. Numbers are turned into text by `int` and never by `..`, which keeps 14 digits. Texts are
-- compared by `sorts_before` and never by `<`, which follows the locale that the server was started in.

-- While a library is loaded it sees none of what Lua and the server offer, so these are set when a call begins.
local call, pack, unpack_bytes, pack_row, unpack_row
local byte, sub, rep, char, format, floor, min, max, insert, concat, sort
local P, MARKER, now -- the prefix of every key, the one that every call names, and the time of this call
local S      -- everything that was read or changed
local args   -- those of this call
local ops, reading = {}, {} -- what a batch may ask for, and what can be read: a chunk of Lua has at most 200 local names

local function begin(marker, offset)
  if not call then
    call, pack, unpack_bytes = redis.call, struct.pack, struct.unpack
    pack_row, unpack_row = cmsgpack.pack, cmsgpack.unpack
    byte, sub, rep, char, format = string.byte, string.sub, string.rep, string.char, string.format
    floor, min, max, insert, concat, sort = math.floor, math.min, math.max, table.insert, table.concat, table.sort
  end
  P, MARKER = sub(marker, 1, -7), marker
  if byte(offset) == 64 then -- '@': a test says what time it is
    now = tonumber(sub(offset, 2))
  else
    local time = call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2]) + tonumber(offset)
  end
end

-- Tables of what a call works on, each made when it is first used: most calls use few of them.
local AT_FIRST_USE = {__index = function(tables, name)
  local empty = {}
  tables[name] = empty
  return empty
end}

local function new_state()
  S = setmetatable({counters_changed = false, commits = false, last_created = false}, AT_FIRST_USE)
end

-- A payload by its place among the arguments. A large one comes after its reference, which is what rows hold.
local function payload(place)
  local value = place and args[place] or nil
  if value and byte(value) == 0 then S.blobs[value] = args[place + 1] end
  return value
end

local NONE = {}

local function int(number) return format('%d', number) end

local function sorts_before(a, b)
  for i = 1, min(#a, #b) do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return x < y end
  end
  return #a < #b
end

-- A command that is sent once everything has been judged.
local function later(...) S.later[#S.later + 1] = {...} end

-- `unpack` fails near 8,000 values, so lists of arguments are sent in parts; 960 is a multiple of what is sent together.
local function send_many(command, key, values)
  for from = 1, values and #values or 0, 960 do call(command, key, unpack(values, from, min(from + 959, #values))) end
end

-- Rows are fields of a hash: decoded when they are first asked for, and written at the end if they were changed.

local function same(value) return value end

local function rows_of(key, read, write)
  local rows = S.rows[key]
  if not rows then
    rows = {key = key, read = read or same, write = write or same, known = {}, changed = nil, fresh = nil}
    S.rows[key] = rows
  end
  return rows
end

-- False: there is none.
local function get_row(rows, field)
  local row = rows.known[field]
  if row == nil then
    local value = not rows.fresh and call('HGET', rows.key, field)
    row = value and rows.read(value, field) or false
    rows.known[field] = row
  end
  return row
end

-- Read many rows in few commands.
local function want_rows(rows, fields)
  if rows.fresh then return end
  local missing = {}
  for k = 1, #fields do
    if rows.known[fields[k]] == nil then missing[#missing + 1] = fields[k] end
  end
  for from = 1, #missing, 960 do
    local to = min(from + 959, #missing)
    local values = call('HMGET', rows.key, unpack(missing, from, to))
    for k = from, to do
      local value = values[k - from + 1]
      rows.known[missing[k]] = value and rows.read(value, missing[k]) or false
    end
  end
end

-- `row` is to be written; false: it is to be removed.
local function set_row(rows, field, row)
  rows.known[field] = row
  if not rows.changed then
    rows.changed = {}
    insert(S.changed, rows)
  end
  rows.changed[field] = true
end

-- All of them are gone, and what was to be written of them.
local function drop_rows(rows)
  rows.known, rows.changed, rows.fresh = {}, rows.changed and {}, true
  later('UNLINK', rows.key)
end

local function write_rows(rows)
  local known, write, values, gone, count = rows.known, rows.write, {}, nil, 0
  for field in pairs(rows.changed) do
    local row = known[field]
    if row then
      values[count + 1], values[count + 2] = field, write(row)
      count = count + 2
    else
      gone = gone or {}
      gone[#gone + 1] = field
    end
  end
  send_many('HDEL', rows.key, gone)
  send_many('HSET', rows.key, values)
end

-- Counters of the namespace: one field of the marker.

local function set_counter(name, value)
  S.counters[name], S.counters_changed = value, true
end

local function next_number(name)
  local value = S.counters[name] + 1
  set_counter(name, value)
  return value
end

-- How many of something there are, as fields of a hash: a field that is down to 0 is removed.

local function count(key, field, difference)
  local counts = S.counts[key] or {}
  S.counts[key] = counts
  counts[field] = (counts[field] or 0) + difference
end

local function write_counts(key, counts)
  for field, difference in pairs(counts) do
    if difference ~= 0 and call('HINCRBY', key, field, difference) <= 0 then call('HDEL', key, field) end
  end
end

-- Sets that are ordered as bytes. `put` says what this call has added (true) or removed (false), `order` in which order.

local function index(name)
  local known = S.indexes[name]
  if not known then
    known = {key = P .. name, put = {}, order = {}, size = 0}
    S.indexes[name] = known
  end
  return known
end

local function put(set, member, there)
  if set.put[member] == nil then
    set.size = set.size + 1
    set.order[#set.order + 1] = member
  end
  set.put[member] = there
end

-- Its key is gone, and what was to be written to it.
local function drop_index(name)
  local set = index(name)
  set.put, set.order, set.size, set.added = {}, {}, 0, nil
end

-- What a call has added to a set between two bounds, in order. Mostly it comes in order; to sort it in Lua takes long.
local function added_to(set, after, below)
  local added, sorted = {}, true
  for k = 1, #set.order do
    local member = set.order[k]
    if set.put[member] and not (after and not sorts_before(after, member)) and not (below and not sorts_before(member, below)) then
      sorted = sorted and (#added == 0 or sorts_before(added[#added], member))
      added[#added + 1] = member
    end
  end
  if not sorted then sort(added, sorts_before) end
  return added
end

-- The first `count` members between two bounds, which are left out themselves.
local function first_of(set, count, after, below)
  local from, to = after and '(' .. after or '-', below and '(' .. below or '+'
  local stored = set.fresh and {} or call('ZRANGEBYLEX', set.key, from, to, 'LIMIT', 0, count + set.size)
  if set.size == 0 then return stored end
  local added, found, s, a = added_to(set, after, below), {}, 1, 1
  while #found < count and (stored[s] or added[a]) do
    local member = stored[s]
    if not member or added[a] and not sorts_before(member, added[a]) then
      member, a = added[a], a + 1
    else
      s = s + 1
    end
    if set.put[member] ~= false and member ~= found[#found] then found[#found + 1] = member end
  end
  return found
end

-- The last `count` members, the last one first; for reading, which adds none.
local function last_of(set, count, below)
  return call('ZREVRANGEBYLEX', set.key, below and '(' .. below or '+', '-', 'LIMIT', 0, count)
end

local function write_index(set)
  local added, removed = nil, nil
  for member, there in pairs(set.put) do
    if there then
      added = added or {}
      added[#added + 1], added[#added + 2] = '0', member
    else
      removed = removed or {}
      removed[#removed + 1] = member
    end
  end
  send_many('ZREM', set.key, removed)
  send_many('ZADD', set.key, added)
end

-- A time in front of what it is about, so that the earliest comes first.
local function timed(at, rest) return pack('>I7', at) .. rest end
local function time_of(member) return (unpack_bytes('>I7', member)) end
local function up_to_now() return pack('>I7', now + 1) end

-- Lanes have numbers: twice that of the lane, and one more when its nodes are suspect.

local function lane_number(text)
  local known = S.lanes[text]
  if known == nil then
    known = tonumber(call('HGET', MARKER, 'lane:' .. text) or '-1')
    S.lanes[text] = known
  end
  return known
end

local function lane_text(number)
  if #S.lane_texts == 0 then S.lane_texts = call('LRANGE', P .. 'lane_texts', 0, -1) end
  return S.lane_texts[number + 1]
end

local function new_lane(text)
  local number = lane_number(text)
  if number < 0 then
    number = S.counters.lanes
    set_counter('lanes', number + 1)
    S.lanes[text] = number
    later('HSET', MARKER, 'lane:' .. text, int(number))
    later('RPUSH', P .. 'lane_texts', text)
  end
  return number
end
