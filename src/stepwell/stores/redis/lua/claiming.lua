-- Claims: which READY nodes a worker is granted, and under which lease.

local worker_key, get_worker, named_runs, serving_runs, more_urgent, run_row -- what later files use; the rest is of this file

do

worker_key = function(id) return P .. 'worker:' .. id end

get_worker = function(id)
  local worker = S.workers[id]
  if worker == nil then
    local lease = S.leases[id]
    if lease == nil then lease = call('HGET', MARKER, 'lease:' .. id) end
    worker = false
    if lease then
      worker = {id = id}
      worker.lease_until, worker.renewed, worker.lease = unpack_row(lease)
    end
    S.workers[id] = worker
  end
  return worker or nil
end

more_urgent = function(a, b) return sorts_before(a.order, b.order) end

-- Runs that a claim may take from, the most urgent first, one lane at a time.
named_runs = function(op)
  local runs, numbers = {}, {}
  for k = 1, #op.runs do
    local run = get_run(op.runs[k])
    if run and run.gate == G.OPEN and not numbers[run.number] then
      numbers[run.number] = true
      runs[#runs + 1] = run
    end
  end
  if #runs > 1 then sort(runs, more_urgent) end
  return runs
end

serving_runs = function(op, lane, count)
  local orders, seen = {}, {}
  for _, pair in ipairs(op.serves) do
    local name = int(lane) .. ':' .. pair[2] .. '\0' .. pair[1]
    if not seen[name] then
      seen[name] = true
      local found = first_of(index('lane:' .. name), count)
      for n = 1, #found do orders[#orders + 1] = found[n] end
    end
  end
  sort(orders, sorts_before)
  local runs = {}
  for k = 1, min(count, #orders) do
    local run = get_numbered((unpack_bytes('>I6', orders[k], 17)))
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

-- What a worker is told of an attempt: `past` and `inputs` only if it has any.
local function add_grant(grants, run, ordinal, i, number)
  local node, inputs = get_node(run, i), nil
  if node.needs then
    local needs = all_of(graph_of(run), layout_of(graph_of(run), i), 'needs')
    inputs = {}
    sort(needs)
    for k = 1, #needs do
      local output = output_of(run, needs[k])
      if output then
        ask_blob(run, output)
        insert(inputs, needs[k])
        insert(inputs, output)
      end
    end
  end
  local past = node.wakes or node.failures + node.losses + node.generation + node.postponed + node.skipped > 0
  local count = #grants
  grants[count + 1], grants[count + 2], grants[count + 3] = ordinal, i, number
  grants[count + 4] = past and {node.failures, node.losses, node.generation, node.postponed, node.skipped, node.wakes or 0} or false
  grants[count + 5] = inputs or false
end

-- The grants of a run, which follow each other.
local function grants_in(found, run)
  local last = found[#found]
  if not last or last[1] ~= run.id then
    last = {run.id, run.heals, {}}
    insert(found, last)
  end
  return last[3]
end

-- Start the next nodes of a run.
local function start(claim, run, indexes, found)
  want_rows(run.nodes, indexes)
  local grants = grants_in(found, run)
  for n = 1, #indexes do
    local i = indexes[n]
    local node, ordinal = get_node(run, i), #claim.cells / CELL
    if node.claim then touch_attempt(get_attempt(run, i, node.attempt)) end -- a rewrite has let go of it while it ran
    node.attempt, node.claim, node.ordinal = node.attempt + 1, claim.id, ordinal
    change(run, node, N.RUNNING)
    place_attempt(run, claim, ordinal, i, node.attempt)
    note(run, K.claimed, i, node.attempt)
    add_grant(grants, run, ordinal, i, node.attempt)
  end
  if run.status == R.PENDING then run.status = R.RUNNING end
  run.started_at = run.started_at or now
end

-- What is granted, and in which runs.
local function take(op)
  local claim, taken, grants, granted = nil, 0, {}, {}
  local named = not op.serves and named_runs(op)
  if op.serves then update_marks() end
  for _, lane_limit in ipairs(op.lanes) do
    local text, suspect, limit = unpack(lane_limit)
    local number = lane_number(text)
    local lane, wanted = 2 * number + suspect, min(limit, LIMIT.nodes) - taken
    if number >= 0 and wanted > 0 then
      local runs = named or serving_runs(op, lane, wanted)
      for r = 1, #runs do
        local run = runs[r]
        if wanted <= 0 then break end
        if (run.ready[lane] or 0) > 0 then
          local indexes = first_ready(run, lane, wanted)
          if #indexes > 0 then
            claim = claim or new_claim(op.claim_id, op.worker)
            start(claim, run, indexes, grants)
            granted[#granted + 1] = run
          end
          taken, wanted = taken + #indexes, wanted - #indexes
        end
      end
    end
  end
  if claim then count_running(claim, taken) end
  return grants, granted
end

ops.Claim = function(op)
  local worker = get_worker(op.worker)
  if not worker or worker.lease_until <= now then return refused('lease_expired') end
  local claim, grants, granted, rows, seen = get_claim(op.claim_id), nil, nil, {}, {}
  if claim then -- it was asked before
    grants, granted = {}, {}
    for k, attempt in ipairs(running_of({claim})) do
      add_grant(grants_in(grants, attempt.run), attempt.run, attempt.ordinal, attempt.i, attempt.number)
      granted[k] = attempt.run
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
  return {'Claimed', grants, rows}
end

end
