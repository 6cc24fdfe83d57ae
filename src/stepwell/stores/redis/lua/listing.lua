-- Which runs there are. A query looks through the smallest of the sets that hold all it asks for, newest first.

local listing = {}

do

local PAGE, FEW = 100, 1000

local function status_set(status) return 'runs:status:' .. int(status) end

local function tag_set(tag) return 'runs:tag:' .. tag[1] .. '\0' .. tag[2] end

-- Runs are mostly created in the order of their numbers, so that a span of time is one of numbers. After a run was restored, or the
-- clock was set back, that no longer holds, which the marker says.
local function note_order(created)
  if not S.last_created then
    local last = call('ZREVRANGEBYLEX', P .. 'created', '+', '-', 'LIMIT', 0, 1)[1]
    S.last_created = last and time_of(last) or 0
  end
  if created < S.last_created then later('HSET', MARKER, 'disordered', '1') else S.last_created = created end
end

function listing.put_digest(run, there) put(index('runs:digest:' .. run.digest), run.packed, there) end

-- In these a run is as long as it is there, in that of its digest as long as it has it; in that of its status by `marks_of`.
function listing.put(run, there)
  put(index('runs:workflow:' .. run.workflow), run.packed, there)
  listing.put_digest(run, there)
  for _, tag in ipairs(run.tags or NONE) do put(index(tag_set(tag)), run.packed, there) end
  if run.origin then put(index('runs:origin:' .. run.origin), run.packed, there) end
  if run.parent then put(index('runs:parent:' .. run.parent), run.packed, there) end
  if there then note_order(run.created_at) end
  put(index('created'), timed(run.created_at, run.packed), there)
  put(index('run_ids'), run.id .. '\0' .. run.packed, there)
end

listing.status_set = status_set

local function smallest(q)
  local best
  local function offer(names)
    local size = 0
    for k = 1, #names do size = size + call('ZCARD', P .. names[k]) end
    if not best or size < best.size then best = {names = names, size = size} end
  end
  local statuses = {}
  if #q.statuses > 0 then
    for k = 1, #q.statuses do statuses[k] = status_set(q.statuses[k]) end
  else
    for _, status in pairs(R) do insert(statuses, status_set(status)) end
  end
  offer(statuses)
  if q.workflow then offer({'runs:workflow:' .. q.workflow}) end
  if q.digest then offer({'runs:digest:' .. q.digest}) end
  if q.origin then offer({'runs:origin:' .. q.origin}) end
  if q.parent then offer({'runs:parent:' .. q.parent}) end
  if q.error then offer({'runs:error:' .. q.error}) end
  for k = 1, #q.tags do offer({tag_set(q.tags[k])}) end
  return best
end

-- Bounds of times in a set whose members begin with one.
local function between(set, since, before)
  if not since and not before then return nil end
  return {set = set, from = since and '[' .. pack('>I7', max(0, since)) or '-', to = before and '(' .. pack('>I7', max(0, before)) or '+'}
end

-- Numbers of runs in a set that is not ordered by them, if these are few.
local function few_of(range, most)
  if not range or call('ZLEXCOUNT', P .. range.set, range.from, range.to) >= most then return nil end
  local members = call('ZRANGEBYLEX', P .. range.set, range.from, range.to)
  for k = 1, #members do members[k] = unpack_bytes('>I6', members[k], #members[k] - 5) end
  sort(members, function(a, b) return a > b end)
  return members
end

local function page_of(numbers, before)
  local page = {}
  for k = 1, #numbers do
    if #page == PAGE then break end
    if not before or numbers[k] < before then page[#page + 1] = numbers[k] end
  end
  return page
end

-- The numbers that a span of time goes through, if runs were created in their order: below which, and from which on.
local function numbers_between(q)
  local range = between('created', q.since, q['until'])
  if not range or call('HGET', MARKER, 'disordered') then return math.huge, 0 end
  local first = call('ZRANGEBYLEX', P .. 'created', range.from, range.to, 'LIMIT', 0, 1)[1]
  local last = call('ZREVRANGEBYLEX', P .. 'created', range.to, range.from, 'LIMIT', 0, 1)[1]
  if not first then return 0, 0 end
  return unpack_bytes('>I6', last, 8) + 1, (unpack_bytes('>I6', first, 8))
end

-- A function that gives the next runs below a number, at most PAGE of them, newest first.
local function candidates(q)
  local best = smallest(q)
  local ranges = {between('created', q.since, q['until']), between('ended', q.ended_since, q.ended_before)}
  local prefix = q.prefix and {set = 'run_ids', from = '[' .. q.prefix, to = '(' .. q.prefix .. '\255'}
  for _, range in pairs({ranges[1] or false, ranges[2] or false, prefix or false}) do
    local few = few_of(range, min(FEW, best.size))
    if few then return function(before) return page_of(few, before) end end
  end
  return function(before)
    local numbers, bound = {}, before and '(' .. pack('>I6', before) or '+'
    for k = 1, #best.names do
      local members = call('ZREVRANGEBYLEX', P .. best.names[k], bound, '-', 'LIMIT', 0, PAGE)
      for n = 1, #members do numbers[#numbers + 1] = (unpack_bytes('>I6', members[n])) end
    end
    if #best.names > 1 then sort(numbers, function(a, b) return a > b end) end
    return page_of(numbers)
  end
end

-- Whatever the case of ASCII letters, the only ones that `lower` knows.
local function contains(value, text) return string.find(string.lower(value), text, 1, true) ~= nil end

local function matches(run, q)
  if q.workflow and run.workflow ~= q.workflow then return false end
  if q.digest and run.digest ~= q.digest then return false end
  if #q.statuses > 0 then
    local found = false
    for k = 1, #q.statuses do found = found or q.statuses[k] == run.status end
    if not found then return false end
  end
  if q.ended_before and not (run.ended_at and run.ended_at < q.ended_before) then return false end
  if q.ended_since and not (run.ended_at and run.ended_at >= q.ended_since) then return false end
  if q.prefix and sub(run.id, 1, #q.prefix) ~= q.prefix then return false end
  if q.origin and run.origin ~= q.origin then return false end
  if q.parent and run.parent ~= q.parent or q.roots and run.parent then return false end
  if q.error and run.error ~= q.error then return false end
  if q.since or q['until'] then
    if q.since and run.created_at < q.since or q['until'] and run.created_at >= q['until'] then return false end
  end
  local tags = {}
  for _, tag in ipairs(run.tags or NONE) do tags[tag[1]] = tag[2] end
  if q.text then
    local found = contains(run.id, q.text) or contains(run.workflow, q.text) or contains(run.error or '', q.text)
    for name, value in pairs(tags) do found = found or contains(name .. '=' .. value, q.text) end
    if not found then return false end
  end
  for _, tag in ipairs(q.tags) do
    if tags[tag[1]] ~= tag[2] then return false end
  end
  return true
end

-- Nearly all runs that are looked through are told apart by their status, which is the first value of their row.
local function may_match(number, q)
  if #q.statuses == 0 then return true end
  local state = call('HGET', P .. 'run:row:' .. int(number), 'state')
  local status = state and unpack_row(state)
  for k = 1, #q.statuses do
    if q.statuses[k] == status then return true end
  end
  return false
end

local function number_before(q) return max(0, min(q.before[2], 2 ^ 48 - 1)) end

-- Calls a function with the runs of a set of (time, run) that are asked for, from one bound to the other, until it returns true. At most
-- LIMIT.runs are looked at; then the place behind which to go on is returned.
local function walk(command, set, from, to, q, use)
  local looked, at, number = 0, nil, nil
  while true do
    local members = call(command, P .. set, from, to, 'LIMIT', 0, PAGE)
    for k = 1, #members do
      from, looked, at, number = '(' .. members[k], looked + 1, unpack_bytes('>I7I6', members[k])
      local run = may_match(number, q) and get_numbered(number)
      if run and matches(run, q) and use(run) then return false end
    end
    S.runs, S.run_order = {}, {}
    if #members < PAGE then return false end
    if looked >= LIMIT.runs then return {at, number} end
  end
end

-- The same of all runs that are asked for, in their order.
local function search(q, use)
  if q.order ~= 'created' then
    local from = q.before and '(' .. pack('>I7I6', max(0, q.before[1]), number_before(q)) or '+'
    return walk('ZREVRANGEBYLEX', q.order, from, '-', q, use)
  end
  local looked, before, more_of = 0, q.before and number_before(q), candidates(q)
  local below, first = numbers_between(q)
  if below < (before or math.huge) then before = below end
  while true do
    local page = more_of(before)
    for k = 1, #page do
      before, looked = page[k], looked + 1
      if before < first then return false end
      local run = may_match(before, q) and get_numbered(before)
      if run and matches(run, q) and use(run) then return false end
    end
    S.runs, S.run_order = {}, {}
    if #page < PAGE then return false end
    if looked >= LIMIT.runs then return {0, before} end
  end
end

function reading.ListRuns(q)
  local rows, more = {}, 0
  local stopped = search(q, function(run)
    if #rows == q.limit then
      more = 1
      return true
    end
    insert(rows, run_row(run))
    return false
  end)
  return {rows, more, stopped}
end

-- What runs are counted by, and how many. By status alone (`plain`), the sizes of sets say it.
function reading.CountRuns(q)
  local wanted, counts, keys, flat, stopped = q.runs, {}, {}, {}, false
  local function add(key, count)
    if not counts[key] then insert(keys, key) end
    counts[key] = (counts[key] or 0) + count
  end
  if q.by == 'status' and q.plain then
    for _, status in pairs(R) do
      local asked = #wanted.statuses == 0
      for k = 1, #wanted.statuses do asked = asked or wanted.statuses[k] == status end
      local count = asked and call('ZCARD', P .. status_set(status)) or 0
      if count > 0 then add(int(status), count) end
    end
  else
    stopped = search(wanted, function(run)
      if q.by == 'status' then
        add(int(run.status), 1)
      elseif q.by == 'workflow' then
        add(run.workflow, 1)
      else
        add(int(floor(run.created_at / q.unit) * q.unit), 1)
      end
      return false
    end)
  end
  for k = 1, #keys do
    insert(flat, keys[k])
    insert(flat, counts[keys[k]])
  end
  return {flat, stopped}
end

-- In the order in which they ended.
function reading.ListEnded(q)
  local rows, from = {}, q.after and '(' .. pack('>I7I6', unpack(q.after)) or '[' .. pack('>I7', max(0, q.since))
  q.since, q.tags = nil, NONE -- of its end, not of its creation
  local place = walk('ZRANGEBYLEX', 'ended', from, '+', q, function(run)
    if #rows < q.limit then insert(rows, run_row(run)) end
    return #rows >= q.limit
  end)
  return {rows, unpack(place or {false, false})}
end

end
