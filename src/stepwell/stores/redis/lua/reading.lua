-- What can be read. One answer looks at few rows (LIMIT.scanned), so that nobody else has to wait for long: a page may be short.

do

-- In the order of `RunRow`, and its number.
run_row = function(run)
  local row, payloads = {}, {input = text(run, 'input'), fork = text(run, 'fork')}
  for k, name in ipairs(RUN_FIELDS) do row[k] = run[name] or payloads[name] or false end
  insert(row, run.number)
  return row
end

function reading.GetRun(q)
  local run = get_run(q.run_id)
  return run and run_row(run) or false
end

function reading.ListStops(q) return stops_of(q.worker) end

function reading.ListUnfinished() return call('HGETALL', P .. 'unfinished') end

-- The nodes that a query names, or those that follow, at most LIMIT.scanned; and after which to go on, if there are more.
local function chosen(run, q)
  local indexes, first = {}, max(0, q.after + 1)
  local stop = min(run.loaded, first + LIMIT.scanned)
  for _, i in ipairs(q.indexes or numbers_from(first, stop)) do
    if i < run.loaded then insert(indexes, i) end
  end
  return indexes, not q.indexes and stop < run.loaded and stop - 1
end

-- Call a function with some nodes, until it returns true. `want` reads what it needs of them.
local function each_node(run, indexes, step, want, use)
  for from = 1, #indexes, step do
    local some = {unpack(indexes, from, min(from + step - 1, #indexes))}
    want_rows(run.nodes, some)
    want(some)
    for k = 1, #some do
      if use(get_node(run, some[k])) then return end
    end
  end
end

function reading.ListNodes(q)
  local run, rows, wanted = get_run(q.run_id), {}, nil
  if not run or q.limit == 0 then return {rows, false} end
  local indexes, last = chosen(run, q)
  local graph = graph_of(run)
  for _, status in ipairs(q.statuses or NONE) do
    wanted = wanted or {}
    wanted[status] = true
  end
  each_node(run, indexes, 500, function(some) want_rows(graph.layout, some) end, function(n)
    if wanted and not wanted[n.status] then return false end
    local layout = layout_of(graph, n.i)
    insert(rows, {
      n.i, layout.id, n.status, n.attempt, n.waiting, n.skipped, n.failures, n.losses, {lane_text(layout.lane), is_suspect(n)},
      n.due_at or false, n.reason or false, n.generation, n.postponed, n.wakes or 0,
    })
    if #rows >= q.limit then last = n.i end
    return #rows >= q.limit
  end)
  return {rows, last}
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
  local row = {
    attempt_id(attempt), attempt.i, attempt.number, attempt.status, attempt.worker or get_claim(attempt.claim).worker,
    started_of(attempt), attempt.ended_at or false,
  }
  for _, name in ipairs(PAYLOADS) do
    ask_blob(attempt.run, attempt[name])
    insert(row, attempt[name] or false)
  end
  return row
end

local function list_attempts(run, q, row_of)
  local rows = {}
  if not run then return rows end
  local after, after_number = unpack(q.after)
  local first, last = max(0, after), run.loaded - 1
  if q.index then first, last = max(first, q.index), min(last, q.index) end
  local chosen = nil
  if q.indexes then
    chosen = {}
    for _, i in ipairs(q.indexes) do
      if i < run.loaded then insert(chosen, i) end
    end
  end
  for from = 0, (chosen and #chosen or last - first + 1) - 1, 500 do
    local names, indexes = {}, nil
    if chosen then
      indexes = {unpack(chosen, from + 1, min(from + 500, #chosen))}
    else
      indexes = numbers_from(first + from, min(first + from + 500, last + 1))
    end
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
    local row = {attempt.i, attempt.number, attempt.status, started_of(attempt), attempt.ended_at or false}
    if q.details then
      ask_blob(attempt.run, attempt.error)
      insert(row, attempt.worker or get_claim(attempt.claim).worker)
      insert(row, attempt.error or false)
    end
    return row
  end)}
end

function reading.GetOutputs(q)
  local run, rows = get_run(q.run_id), {}
  if not run or q.limit == 0 then return {rows, false} end
  local indexes, last = chosen(run, q)
  local function want(some)
    local names = {}
    for _, i in ipairs(some) do insert(names, attempt_name(i, get_node(run, i).attempt)) end
    want_rows(run.attempts, names)
  end
  each_node(run, indexes, min(500, q.limit), want, function(n)
    local attempt = n.status == N.COMPLETED and get_attempt(run, n.i, n.attempt)
    if attempt and attempt.status == A.COMPLETED then -- a rewrite may have completed a node without one
      ask_blob(run, attempt.output)
      insert(rows, {attempt.i, attempt.number, attempt.output or ''})
      if #rows >= q.limit then last = n.i end
    end
    return #rows >= q.limit
  end)
  return {rows, last}
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

-- Lines that follow one, or precede it; Python chooses among them.
function reading.ListLines(q)
  local run, rows = get_run(q.run_id), {}
  if not run then return rows end
  local attempt = q.claim and find_attempt(q.claim, q.ordinal)
  if attempt and attempt.run ~= run then attempt = nil end
  local page
  if q.newest_first then
    page = last_of(lines.set(run), q.limit, attempt and lines.name(attempt, q.index))
  else
    page = first_of(lines.set(run), q.limit, attempt and lines.name(attempt, q.index + 1))
  end
  for _, member in ipairs(page) do
    local line = lines.read(member)
    insert(rows, {attempt_id(line), line.index, line.at, line.kind, line.data, line.i, line.number})
  end
  return rows
end

function reading.ListWorkers(q)
  local rows = {}
  for _, id in ipairs(first_of(index('workers'), q.limit, q.after)) do
    local worker = get_worker(id)
    insert(rows, {id, worker.lease_until, worker.renewed, call('GET', worker_key(id))})
  end
  return rows
end

function reading.ListReady(q)
  local runs, seen, ids = {}, {}, {}
  local function add(some, lane)
    for _, run in ipairs(some) do
      if not seen[run] and (run.ready[lane] or 0) > 0 then
        seen[run] = true
        insert(runs, run)
      end
    end
  end
  for _, wanted in ipairs(q.lanes) do
    local lane = 2 * lane_number(wanted[1]) + wanted[2]
    if lane >= 0 then
      add(named_runs(q), lane)
      add(serving_runs(q, lane, q.limit), lane)
    end
  end
  sort(runs, more_urgent)
  for k = 1, min(q.limit, #runs) do ids[k] = runs[k].id end
  return ids
end

function reading.ListUnusedGraphs(q)
  local rows, after = {}, q.after
  while #rows < q.limit do
    local page = first_of(index('unused_graphs'), 100, after)
    for _, digest in ipairs(page) do
      after = digest
      local f = call('HMGET', graph_key('row', digest), 'workflow', 'stored_at')
      if #rows < q.limit and not (q.stored_before and tonumber(f[2]) >= q.stored_before) then
        insert(rows, {digest, f[1]})
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

end
