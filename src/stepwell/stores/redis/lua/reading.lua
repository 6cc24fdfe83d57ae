-- What can be read. One answer looks at few rows (LIMIT.scanned), so that nobody else has to wait for long: a page may be short.

do

local ROW_TEXTS = {
  'target', 'input', 'seed', 'priority', 'idempotency_key', 'created_at', 'reason', 'fork', 'origin', 'tags', 'timeout',
}

-- In the order of `RunRow`, and its number.
run_row = function(run)
  local missing = {}
  if not run.fresh then
    for _, name in ipairs(ROW_TEXTS) do
      if run.texts[name] == nil then insert(missing, name) end
    end
  end
  if #missing > 0 then
    local found = call('HMGET', run_key('row', run), unpack(missing))
    for k = 1, #missing do run.texts[missing[k]] = found[k] end
  end
  local t = run.texts
  return {
    run.id, run.workflow, t.target or false, run.digest, run.status, run.on_failure, t.input or false, t.seed or false,
    t.priority or false, t.idempotency_key or false, run.gate, run.purpose or false, run.stopping and 1 or 0, get_graph(run.digest).total,
    run.open, run.active, run.failed, run.seq, t.created_at or false, run.started or false, run.ended or false,
    run.deadline or false, t.reason or false, run.heals, t.fork or false, run.tolerated, t.origin or false, t.tags or false,
    t.timeout or false, run.releasing and 1 or 0, run.number,
  }
end

function reading.GetRun(q)
  local run = get_run(q.run_id)
  return run and run_row(run) or false
end

function reading.ListStops(q) return stops_of(q.worker) end

function reading.ListUnfinished() return call('HGETALL', P .. 'unfinished') end

-- Call a function with the nodes and layouts of some indexes, until it returns true.
local function each_node(run, indexes, use)
  local layout = graph_of(run).layout
  for from = 1, #indexes, 500 do
    local some = {unpack(indexes, from, min(from + 499, #indexes))}
    want_rows(run.nodes, some)
    want_rows(layout, some)
    for k = 1, #some do
      if use(get_node(run, some[k]), get_row(layout, some[k])) then return end
    end
  end
end

-- The nodes of some indexes, or those that follow; of these the ones with some statuses. And the index after which to go on.
function reading.ListNodes(q)
  local run, rows, last = get_run(q.run_id), {}, false
  if not run or q.limit == 0 then return {rows, false} end
  local first = max(0, q.after + 1)
  local stop = min(run.loaded, first + LIMIT.scanned)
  local indexes, wanted = {}, nil
  for _, status in ipairs(q.statuses or NONE) do
    wanted = wanted or {}
    wanted[status] = true
  end
  for _, i in ipairs(q.indexes or numbers_from(first, stop)) do
    if i >= 0 and i < run.loaded then insert(indexes, i) end
  end
  each_node(run, indexes, function(n, layout)
    last = n.i
    if wanted and not wanted[n.status] then return false end
    insert(rows, {
      n.i, layout.id, n.status, n.attempt, n.waiting, n.live, n.failures, n.losses, layout.lane, n.suspect and 1 or 0, n.due or false,
      n.reason or false, n.generation, n.postponed,
    })
    return #rows >= q.limit
  end)
  return {rows, (#rows >= q.limit or not q.indexes and stop < run.loaded) and last}
end

function reading.CountNodes(q)
  local run = get_run(q.run_id)
  return run and run.counts or false
end

function reading.GetNodeColumns(q)
  local run = get_run(q.run_id)
  return {run and run.seq or 0, reading.ListNodes(q)}
end

local function attempt_row(attempt)
  ask_blob(attempt.run, attempt.output)
  ask_blob(attempt.run, attempt.error)
  ask_blob(attempt.run, attempt.outcome)
  return {
    attempt_id(attempt), attempt.i, attempt.number, attempt.status,
    attempt.worker or get_claim(attempt.claim).worker, started_of(attempt), attempt.ended or false,
    attempt.output or false, attempt.error or false, attempt.outcome or false,
  }
end

local function list_attempts(run, q, row_of)
  local rows = {}
  if not run then return rows end
  local after, after_number = unpack(q.after)
  local first, last = max(0, after), run.loaded - 1
  if q.index then first, last = max(first, q.index), min(last, q.index) end
  for from = first, last, 500 do
    local names, indexes = {}, numbers_from(from, min(from + 500, last + 1))
    want_rows(run.nodes, indexes)
    for _, i in ipairs(indexes) do
      for number = i == after and max(0, after_number) + 1 or 1, get_node(run, i).attempt do
        if #rows + #names < q.limit then insert(names, attempt_name(i, number)) end
      end
    end
    want_rows(run.attempts, names)
    for k = 1, #names do insert(rows, row_of(get_attempt(run, unpack_bytes('>I4I4', names[k])))) end
    if #rows >= q.limit then break end
  end
  return rows
end

function reading.ListAttempts(q) return list_attempts(get_run(q.run_id), q, attempt_row) end

function reading.GetAttemptColumns(q)
  local run = get_run(q.run_id)
  return {run and run.seq or 0, list_attempts(run, q, function(attempt)
    return {attempt.i, attempt.number, attempt.status, started_of(attempt), attempt.ended or false}
  end)}
end

function reading.GetOutputs(q)
  local run = get_run(q.run_id)
  local rows, indexes = {}, {}
  if not run then return {rows, false} end
  local stopped, first = false, max(0, q.after + 1)
  if q.indexes then
    for _, i in ipairs(q.indexes) do
      if i >= first and i < run.loaded then insert(indexes, i) end
    end
    sort(indexes)
  else
    local last = min(run.loaded - 1, first - 1 + 4 * q.limit)
    for i = first, last do insert(indexes, i) end
    if last < run.loaded - 1 then stopped = last end
  end
  for from = 1, #indexes, 500 do
    local names, some = {}, {}
    for k = from, min(from + 499, #indexes) do insert(some, indexes[k]) end
    want_rows(run.nodes, some)
    for _, i in ipairs(some) do
      local node = get_node(run, i)
      if node.status == N.COMPLETED and #rows / 3 + #names < q.limit then insert(names, attempt_name(i, node.attempt)) end
    end
    want_rows(run.attempts, names)
    for k = 1, #names do
      local attempt = get_row(run.attempts, names[k])
      if attempt.status == A.COMPLETED then -- a rewrite may have completed a node without one
        ask_blob(run, attempt.output)
        insert(rows, attempt.i)
        insert(rows, attempt.number)
        insert(rows, attempt.output or '')
      end
    end
    if #rows / 3 >= q.limit then return {rows, rows[#rows - 2]} end
  end
  return {rows, stopped}
end

function reading.ListJournal(q)
  local run, rows = get_run(q.run_id), {}
  if not run then return rows end
  local first = min(max(0, q.after), run.seq) -- LRANGE counts negative numbers from the end, and refuses those beyond 2^53
  local entries = call('LRANGE', run_key('journal', run), int(first), int(min(first + q.limit, run.seq) - 1))
  for k = 1, #entries do
    local kind, at, i, attempt, status = unpack_row(entries[k])
    rows[k] = {kind, at, i or false, attempt or false, status or false}
  end
  return rows
end

-- Lines that follow one; Python chooses among them.
function reading.ListLines(q)
  local run, rows, after = get_run(q.run_id), {}, nil
  if not run then return rows end
  local attempt = q.claim and find_attempt(q.claim, q.ordinal)
  if attempt and attempt.run == run then after = lines.name(attempt, q.index + 1) end
  for _, member in ipairs(first_of(lines.set(run), q.limit, after)) do
    local line = lines.read(member)
    insert(rows, {attempt_id(line), line.index, line.at, line.kind, line.data, line.i, line.number})
  end
  return rows
end

function reading.ListWorkers(q)
  local rows = {}
  for _, id in ipairs(first_of(index('workers'), q.limit, q.after)) do
    local f = call('HMGET', worker_key(id), 'renewed', 'info')
    insert(rows, {id, call('HGET', MARKER, 'lease:' .. id), f[1], f[2]})
  end
  return rows
end

local function has_ready(run, lanes)
  if run.gate ~= G.OPEN then return false end
  if not lanes then
    for _, count in pairs(run.ready) do
      if count > 0 then return true end
    end
    return false
  end
  for _, lane in ipairs(lanes) do
    if (run.ready[lane] or 0) > 0 then return true end
  end
  return false
end

function reading.ListReady(q)
  local lanes, orders, seen, ids = {}, {}, {}, {}
  for k = 1, #q.lanes do
    local number = lane_number(q.lanes[k][1])
    if number >= 0 then insert(lanes, 2 * number + q.lanes[k][2]) end
  end
  local function add(order, id)
    if not seen[order] then
      seen[order] = id
      insert(orders, order)
    end
  end
  for _, id in ipairs(q.runs) do
    local run = get_run(id)
    if run and has_ready(run, lanes) then add(run.order, run.id) end
  end
  for _, pair in ipairs(q.serves) do
    for _, lane in ipairs(lanes) do
      local name = 'lane:' .. int(lane) .. ':' .. pair[2] .. '\0' .. pair[1]
      for _, order in ipairs(first_of(index(name), q.limit)) do add(order, get_numbered((unpack_bytes('>I6', order, 17))).id) end
    end
  end
  sort(orders, sorts_before)
  for k = 1, min(q.limit, #orders) do ids[k] = seen[orders[k]] end
  return ids
end

function reading.ListUnusedGraphs(q)
  local rows, after = {}, q.after
  while #rows / 2 < q.limit do
    local page = first_of(index('unused_graphs'), 100, after)
    for _, digest in ipairs(page) do
      after = digest
      local f = call('HMGET', graph_key('row', digest), 'workflow', 'stored_at')
      if #rows / 2 < q.limit and not (q.stored_before and tonumber(f[2]) >= q.stored_before) then
        insert(rows, digest)
        insert(rows, f[1])
      end
    end
    if #page < 100 then break end
  end
  return rows
end

function reading.GetGraph(q)
  local graph = get_graph(q.digest)
  return graph and graph.loaded == graph.total and call('HGET', graph_key('row', q.digest), 'document') or false
end

function reading.GetGraphAges(q)
  local ages = {}
  for k, digest in ipairs(q.digests) do
    local graph = get_graph(digest)
    ages[k] = graph and graph.age or false
  end
  return ages
end

function reading.ReadyRuns(q)
  local ids = {}
  for _, id in ipairs(q.runs) do
    local run = get_run(id)
    if run and has_ready(run) then insert(ids, id) end
  end
  return ids
end

end
