-- Claims: which READY nodes a worker is granted, and under which lease.

local worker_key, get_worker, run_row -- what later files use; the rest is of this file

do

worker_key = function(id) return P .. 'worker:' .. id end

get_worker = function(id)
  local worker = S.workers[id]
  if worker == nil then
    local lease_until = call('HGET', MARKER, 'lease:' .. id)
    worker = false
    if lease_until then
      local f = call('HMGET', worker_key(id), 'renewed', 'lease')
      worker = {id = id, lease_until = tonumber(lease_until), renewed = tonumber(f[1]), lease = tonumber(f[2])}
    end
    S.workers[id] = worker
  end
  return worker or nil
end

-- Runs that a claim may take from, the most urgent first, one lane at a time.
local function named_runs(op)
  local runs, numbers = {}, {}
  for k = 1, #op.runs do
    local run = get_run(op.runs[k])
    if run and run.gate == G.OPEN and not numbers[run.number] then
      numbers[run.number] = true
      runs[#runs + 1] = run
    end
  end
  if #runs > 1 then sort(runs, function(a, b) return sorts_before(a.order, b.order) end) end
  return runs
end

local function serving_runs(op, lane, count)
  local orders, seen = {}, {}
  for k = 1, #op.serves, 2 do
    local name = int(lane) .. ':' .. op.serves[k + 1] .. '\0' .. op.serves[k]
    if not seen[name] then
      seen[name] = true
      local found = first_of(index('lane:' .. name), count)
      for n = 1, #found do orders[#orders + 1] = found[n] end
    end
  end
  sort(orders, sorts_before)
  local runs = {}
  for k = 1, min(count, #orders) do
    local run = get_numbered((unpack_bytes('>I6', orders[k], 9)))
    if run then runs[#runs + 1] = run end
  end
  return runs
end

-- The output of a completed node: its latest attempt is the completed one.
local function output_of(run, i)
  local node = get_node(run, i)
  if node.status ~= N.COMPLETED then return nil end
  local attempt = get_attempt(run, i, node.attempt)
  return attempt and attempt.status == A.COMPLETED and attempt.output or nil
end

local function grant_of(run, i, number, ordinal)
  local node, inputs = get_node(run, i), {}
  local needs = needs_of(graph_of(run), i)
  if #needs > 1 then
    needs = {unpack(needs)}
    sort(needs)
  end
  for k = 1, #needs do
    local output = output_of(run, needs[k])
    if output then
      ask_blob(run, output)
      insert(inputs, needs[k])
      insert(inputs, output)
    end
  end
  return {ordinal, run.id, i, number, node.failures, node.losses, node.generation, run.heals, node.postponed, inputs}
end

-- Start the next nodes of a run. Grants of nodes that have neither a past nor needs and follow each other are one text, that of
-- their cells in the claim; the others are lists. Cells of neighbours are mostly alike, so what becomes of one is kept for the next.
local function start(claim, run, indexes, grants)
  local graph, last, claimed = graph_of(run), '\0\0\0\0\0\0\0' .. char(#claim.id) .. claim.id, pack('>BI7', K.claimed, now)
  local journal, pieces, order, orders, cells = run.journal, claim.pieces, run.values_order, run.orders, run.cells
  local entries, size, written = #journal, #pieces, #order
  local plain, was, begun, number = size, nil, nil, nil
  local function together()
    if size > plain then grants[#grants + 1] = {run.id, run.heals, plain, concat(pieces, '', plain + 1, size)} end
  end
  for n = 1, #indexes do
    local i, simple, attempt = indexes[n], false, nil
    if not run.nodes[i] then
      local cell = cell_of(run, i)
      if cell ~= was then
        was, begun = cell, nil
        if byte(cell) == N.READY then
          number = unpack_bytes('>I4', cell, 2) + 1
          begun = pack('>BI4c0', N.RUNNING, number, sub(cell, 6))
        end
      end
      simple = begun ~= nil
    end
    if simple then
      cells[i], attempt = begun, number
    else
      local node = get_node(run, i)
      attempt = node.attempt + 1
      node.attempt, node.status = attempt, N.RUNNING
    end
    local name = attempt_name(i, attempt)
    run.touched[i] = true
    if run.attempts[name] ~= nil then run.attempts[name] = nil end
    run.values[name] = pack('>BBI2c0', A.RUNNING, 0, size, last)
    order[written + n], journal[entries + n] = name, claimed .. name
    pieces[size + 1] = pack('>I6I4I4I4', run.number, i, attempt, orders)
    orders = orders + 1
    if not simple or has(flags_of(graph, i), HAS_NEEDS) then
      together()
      plain = size + 1
      grants[#grants + 1] = grant_of(run, i, attempt, size)
    end
    size = size + 1
  end
  together()
  run.orders, run.seq = orders, run.seq + #indexes
  run.running, run.changed = run.running + #indexes, true
  if run.status == R.PENDING then run.status = R.RUNNING end
  run.started = run.started or now
end

-- What is granted, and in which runs.
local function take(op)
  local claim, taken, grants, granted = nil, 0, {}, {}
  local named = not op.serves and named_runs(op)
  if op.serves then update_marks() end
  for k = 1, #op.lanes, 2 do
    local number, limit = lane_number(op.lanes[k].text), min(op.lanes[k + 1], LIMIT.nodes)
    local lane = 2 * number + op.lanes[k].suspect
    local wanted = limit - taken
    if number >= 0 and wanted > 0 then
      local runs = named or serving_runs(op, lane, wanted)
      for r = 1, #runs do
        local run = runs[r]
        if wanted <= 0 then break end
        if (run.ready[lane] or 0) > 0 then
          local indexes = take_ready(run, lane, wanted)
          want_nodes(run, indexes)
          want_cells(graph_of(run), indexes)
          if #indexes > 0 then
            claim = claim or new_claim(op.claim, op.worker)
            start(claim, run, indexes, grants)
            granted[#granted + 1] = run
          end
          taken, wanted = taken + #indexes, wanted - #indexes
        end
      end
    end
  end
  if claim then set_running(claim, taken) end
  return grants, granted
end

ops.claim = function(op)
  local worker = get_worker(op.worker)
  if not worker or worker.lease_until <= now then return refused('lease_expired') end
  local claim, grants, granted, rows, seen = get_claim(op.claim), nil, nil, {}, {}
  if claim then -- it was asked before
    grants, granted = {}, {}
    for k, attempt in ipairs(running_of(claim)) do
      grants[k], granted[k] = grant_of(attempt.run, attempt.i, attempt.number, attempt.ordinal), attempt.run
    end
  else
    release_any()
    grants, granted = take(op)
  end
  for k = 1, op.serves and #granted or 0 do
    if not seen[granted[k]] then
      seen[granted[k]] = true
      insert(rows, run_row(granted[k]))
    end
  end
  return {'claimed', grants, rows}
end

end
