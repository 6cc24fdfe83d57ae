-- Attempts, claims, lines and large payloads.

-- Attempts: found by node and number.

local function attempt_name(i, number) return pack('>I4I4', i, number) end

local function attempt_id(attempt) return attempt.claim .. '.' .. int(attempt.ordinal) end

-- A running attempt is in its node.
local function get_attempt(run, i, number)
  local name = attempt_name(i, number)
  local attempt, node = run.attempts.known[name], nil
  if not attempt and i < run.loaded then
    node = get_node(run, i)
    if node and node.claim and node.attempt == number then
      attempt = {
        run = run, i = i, number = number, name = name, status = A.RUNNING, ordinal = node.ordinal, claim = node.claim, ended_at = nil,
        output = nil,
      }
      run.attempts.known[name] = attempt
    end
  end
  return attempt or get_row(run.attempts, name) or nil
end

local function touch_attempt(attempt)
  set_row(attempt.run.attempts, attempt.name, attempt)
  attempt.run.changed = true
end

-- Claims: when, by whom, and which attempts they granted (`cells`): for each ordinal the run, the node, the number of the attempt, and its
-- place among all attempts of the run. `left`: how many of these are not deleted.

local CELL = 4

local function claims() return rows_of(P .. 'claims', read_claim, claim_text) end

local function get_claim(id) return get_row(claims(), id) or nil end

local function new_claim(id, worker)
  local claim = {id = id, at = now, number = next_number('claims'), left = 0, worker = worker, cells = {}}
  set_row(claims(), id, claim)
  return claim
end

-- Run, node, number of the attempt, its place in the run.
local function claim_cell(claim, ordinal)
  local at = CELL * ordinal
  if claim.cells[at + 1] then return unpack(claim.cells, at + 1, at + CELL) end
end

-- A cell of a claim is that of this attempt, which comes next in its run.
local function place_attempt(run, claim, ordinal, i, number)
  local cells, at = claim.cells, CELL * ordinal
  cells[at + 1], cells[at + 2], cells[at + 3], cells[at + 4] = run.number, i, number, run.orders
  claim.left = claim.left + 1
  set_row(claims(), claim.id, claim)
  run.orders = run.orders + 1
end

-- The attempts that these are of claims, read in few commands; false where there is none. `with_layout`: with what the graph says of
-- their nodes.
local function find_attempts(ids, ordinals, with_layout)
  local attempts, indexes, numbers, nodes = {}, {}, {}, {}
  for k = 1, #ids do
    local claim, run, number = get_claim(ids[k]), nil, nil
    if claim then number, indexes[k], numbers[k] = claim_cell(claim, ordinals[k]) end
    run = number and get_numbered(number) or false
    attempts[k] = run
    if run then
      local wanted = nodes[run] or {}
      nodes[run] = wanted
      wanted[#wanted + 1] = indexes[k]
    end
  end
  for run, wanted in pairs(nodes) do
    want_rows(run.nodes, wanted)
    if with_layout then want_rows(graph_of(run).layout, wanted) end
  end
  local ended = nil
  for k = 1, #ids do
    local run = attempts[k]
    if run and (get_node(run, indexes[k]) or NONE).claim ~= ids[k] then
      ended = ended or {}
      ended[run] = ended[run] or {}
      insert(ended[run], attempt_name(indexes[k], numbers[k]))
    end
  end
  for run, names in pairs(ended or NONE) do want_rows(run.attempts, names) end
  for k = 1, #ids do attempts[k] = attempts[k] and get_attempt(attempts[k], indexes[k], numbers[k]) or false end
  return attempts
end

local function find_attempt(claim, ordinal) return find_attempts({claim}, {ordinal})[1] end

-- So many more attempts of a claim run.
local function count_running(claim, difference) count(P .. 'holding:' .. claim.worker, claim.id, difference) end

-- The running attempts of claims, in order of their ordinals.
local function running_of(granted)
  local ids, ordinals, running = {}, {}, {}
  for _, claim in ipairs(granted) do
    for ordinal = 0, #claim.cells / CELL - 1 do
      insert(ids, claim.id)
      insert(ordinals, ordinal)
    end
  end
  for _, attempt in ipairs(find_attempts(ids, ordinals)) do
    if attempt and attempt.status == A.RUNNING then insert(running, attempt) end
  end
  return running
end

-- The running attempts of a worker, in the order in which they were claimed.
local function running_under(worker)
  local key, ids, granted = P .. 'holding:' .. worker, {}, {}
  for _, id in ipairs(call('HKEYS', key)) do ids[id] = true end
  for id in pairs(S.counts[key] or NONE) do ids[id] = true end
  for id in pairs(ids) do granted[#granted + 1] = get_claim(id) end
  sort(granted, function(a, b) return a.number < b.number end)
  return running_of(granted)
end

-- An attempt that did not run here.
local function new_attempt(run, claim, ordinal, i, number)
  local attempt = {run = run, i = i, number = number, name = attempt_name(i, number), ordinal = ordinal, claim = claim.id}
  place_attempt(run, claim, ordinal, i, number)
  touch_attempt(attempt)
  return attempt
end

-- Lines: members of a set, which begin with the place of their attempt in its run, and their index.

local lines = {}

function lines.set(run) return index('run:lines:' .. run.name) end

local function line_name(place, line_index) return pack('>I4I4', place, line_index + 2147483648) end

local function place_of(attempt)
  local _, _, _, place = claim_cell(get_claim(attempt.claim), attempt.ordinal)
  return place
end

function lines.name(attempt, line_index) return line_name(place_of(attempt), line_index) end

-- The member that a line is, or false.
function lines.find(attempt, line_index)
  local run, place = attempt.run, place_of(attempt)
  local name = line_name(place, line_index)
  run.lines = run.lines or {}
  local member = run.lines[name]
  if member == nil then
    member = call('ZRANGEBYLEX', lines.set(run).key, '(' .. name, '(' .. line_name(place, line_index + 1), 'LIMIT', 0, 1)[1] or false
    run.lines[name] = member
  end
  return member
end

function lines.add(attempt, line_index, kind, data, at)
  local run, name = attempt.run, line_name(place_of(attempt), line_index)
  run.lines = run.lines or {}
  local before = line_index < 0 and lines.find(attempt, line_index)
  if before then put(lines.set(run), before, false) end
  run.lines[name] = name .. pack_row(at, attempt.i, attempt.number, attempt.ordinal, attempt.claim, kind, data)
  put(lines.set(run), run.lines[name], true)
  run.changed = true
end

-- Those of an attempt.
function lines.of(attempt)
  local place = place_of(attempt)
  return first_of(lines.set(attempt.run), 100000, pack('>I4', place), pack('>I4', place + 1))
end

function lines.read(member)
  local _, line_index = unpack_bytes('>I4I4', member)
  local at, i, number, ordinal, claim, kind, data = unpack_row(sub(member, 9))
  return {index = line_index - 2147483648, at = at, i = i, number = number, ordinal = ordinal, claim = claim, kind = kind, data = data}
end

-- Large payloads are kept once for each run; rows hold a reference, which begins with a NUL.
local function keep_blob(run, reference)
  if not reference or byte(reference) ~= 0 then return end
  if S.blobs[reference] then set_row(blobs_of(run), reference, S.blobs[reference]) end
end

-- The payload at this place among the arguments, as the rows of a run hold it.
local function kept(run, place)
  local value = payload(place)
  keep_blob(run, value)
  return value
end

-- What an answer refers to is sent along, once.
local function ask_blob(run, reference)
  if not reference or byte(reference) ~= 0 or S.asked[reference] then return end
  S.asked[reference] = get_row(blobs_of(run), reference)
end
