-- Ops that move a run forward: settle, claim, append.

-- What later files use; the rest is of this file.
local release, release_any
local settled_as, is_removed, end_attempt, hold_back, close_gate, conclude, follow_up
local settle, append, worker_key, get_worker, update_marks, claim_nodes, run_row

do

settled_as = function(asked, run, removed)
  if removed then return asked == N.COMPLETED and asked or N.CANCELLED end
  if not run.stopping then return asked == N.CANCELLED and N.READY or asked end
  if asked == N.READY then return N.CANCELLED end
  if asked == N.WAITING then return run.status == R.CANCELLING and N.CANCELLED or N.FAILED end
  return asked
end

is_removed = function(run, i) return has(graph_cell(graph_of(run), i).flags, REMOVED) end

-- An attempt ends and its node moves with it. The journal calls it by what became of the attempt.
end_attempt = function(attempt, status, node_status)
  local run = attempt.run
  local node = get_node(run, attempt.i)
  attempt.status, attempt.ended = status, now
  touch_attempt(attempt)
  local claim = get_claim(attempt.claim)
  set_running(claim, claim.running - 1)
  change(run, node, node_status)
  node.reason = nil
  note(run, status + ENDS, node.i, attempt.number, pack('>B', node_status))
  return node
end

-- One parent fewer to wait for; at zero a child is READY. `fewer`: how many for each child.
local function lower(run, children, fewer)
  want_nodes(run, children)
  want_cells(graph_of(run), children)
  for k = 1, #children do
    local node = get_node(run, children[k])
    node.waiting = node.waiting - fewer[children[k]]
    if node.waiting == 0 and node.status == N.PENDING then change(run, node, N.READY) else touch(run, node) end
  end
end

-- The children of a very wide node are lowered in slices, so that no call takes long: the node waits in a list of its run, and
-- every claim and every sweep, whoever asks, lowers the next slice. Behind a closed gate nothing moves; when it opens, the
-- counters are derived from the rows and the list is dropped.

local function release_later(run, i)
  run.releases = run.releases or (run.releasing and call('LRANGE', run_key('releases', run), 0, -1)) or {}
  insert(run.releases, pack('>I4I4', i, 0))
  run.releasing, run.changed = true, true
end

release = function(run)
  if not run.releasing or run.gate ~= G.OPEN then return end
  run.releases = run.releases or call('LRANGE', run_key('releases', run), 0, -1)
  local i, from = unpack_bytes('>I4I4', run.releases[1])
  -- Only a slice of the list is taken apart.
  local graph, fewer = graph_of(run), {}
  local children = graph.more[i] and pack_numbers(graph.children[i]) or call('HGET', graph_key('children', run.digest), pack('>I4', i))
  local slice = read_numbers(sub(children, 4 * from + 1, 4 * (from + SLICE)))
  for k = 1, #slice do fewer[slice[k]] = 1 end
  lower(run, slice, fewer)
  if from + SLICE < #children / 4 then
    run.releases[1] = pack('>I4I4', i, from + SLICE)
  else
    table.remove(run.releases, 1)
  end
  run.releasing, run.changed = #run.releases > 0, true
end

-- One slice of whichever run has one.
release_any = function()
  if counter('releasing') == 0 then return end
  local first = first_of(index('releasing'), 1)[1]
  local run = first and get_numbered((unpack_bytes('>I6', first)))
  if run then release(run) end
end

-- A node that is to run again waits for a parent that a heal gave it while it ran.
hold_back = function(ended)
  for k = 1, #ended do
    local run = ended[k].run
    local node = get_node(run, ended[k].i)
    if run.gate == G.OPEN and node.status == N.READY and node.waiting > 0 then change(run, node, N.PENDING) end
  end
end

-- The gate is held by nobody: whoever sees it first finishes what it is held for.
close_gate = function(run, purpose, arguments)
  run.gate, run.expires, run.reported = G.HELD, now, 0
  set_token(run, nil)
  set_purpose(run, purpose)
  set_text(run, 'arguments', arguments or '')
  run.stopping = purpose == 'failed'
  note(run, K.gate, nil, nil, purpose)
end

-- What follows for a run after its nodes have moved.
conclude = function(run)
  if run.gate == G.OPEN then
    if run.open == 0 and run.failed == 0 then
      run.status, run.gate, run.ended = R.COMPLETED, G.SHUT, now
      note(run, K.run, nil, nil, RUN_NAMES[R.COMPLETED])
    elseif run.failed > run.tolerated and run.on_failure == 'pause' then
      run.status, run.gate = R.PAUSED, G.SHUT
      set_text(run, 'reason', NODE_FAILED)
      note(run, K.run, nil, nil, RUN_NAMES[R.PAUSED])
    elseif (run.active == 0 and not run.releasing) or (run.failed > run.tolerated and run.on_failure == 'fail_fast') then
      close_gate(run, 'failed')
    end
  elseif run.status == R.CANCELLING and run.active == 0 then
    run.status, run.gate, run.ended, run.cancel_at = R.CANCELLED, G.SHUT, now, nil
    note(run, K.run, nil, nil, RUN_NAMES[R.CANCELLED])
  end
end

-- hold_back and conclude for attempts that ended.
follow_up = function(ended)
  hold_back(ended)
  local seen = {}
  for k = 1, #ended do
    local run = ended[k].run
    if not seen[run] then
      seen[run] = true
      conclude(run)
    end
  end
end

local function accept(op, attempt)
  local run = attempt.run
  attempt.output, attempt.error, attempt.outcome = op.output, op.error, op.outcome
  keep_blob(run, op.output)
  keep_blob(run, op.error)
  keep_blob(run, op.outcome)
  for k = 1, #op.lines, 2 do add_line(attempt, RECORDED + (k - 1) / 2, op.lines[k], op.lines[k + 1], now) end
  local status = settled_as(op.node, run, is_removed(run, attempt.i))
  local node = end_attempt(attempt, op.status, status)
  set_due(run, node, status == N.WAITING and now + op.delay or nil)
  if op.status == A.FAILED or op.status == A.TIMED_OUT then
    if op.postponed then node.postponed = node.postponed + 1 else node.failures = node.failures + 1 end
  end
  return status
end

-- Read what a set of settlements is about in few commands.
local function prefetch(ops, found)
  local names, nodes = {}, {}
  for k = 1, #ops do
    local claim = get_claim(ops[k].claim)
    local number, i, attempt
    if claim then number, i, attempt = claim_cell(claim, ops[k].ordinal) end
    local run = number and get_numbered(number)
    if run then
      if not names[run] then names[run], nodes[run] = {}, {} end
      insert(names[run], attempt_name(i, attempt))
      insert(nodes[run], i)
      found[k] = {run, i, attempt}
    else
      found[k] = false
    end
  end
  for run, wanted in pairs(names) do
    want_attempts(run, wanted)
    want_nodes(run, nodes[run])
    want_cells(graph_of(run), nodes[run])
    want_child(graph_of(run), nodes[run])
  end
end

-- A set of settlements, judged against the gates as they stand before it.
settle = function(ops)
  local found, moving, verdicts, accepted, order, fewer, wide = {}, {}, {}, {}, {}, {}, {}
  prefetch(ops, found)
  for k = 1, #ops do
    local attempt = found[k] and get_attempt(found[k][1], found[k][2], found[k][3])
    found[k] = attempt or false
    if attempt and moving[attempt.run] == nil then moving[attempt.run] = attempt.run.gate == G.OPEN end
  end
  for k = 1, #ops do
    local op, attempt = ops[k], found[k]
    if not attempt then
      verdicts[k] = 'fenced'
    elseif attempt.status ~= A.RUNNING then
      local same = attempt.status == op.status and attempt.output == op.output and attempt.error == op.error
        and attempt.outcome == op.outcome
      verdicts[k] = same and 'repeated' or 'fenced'
    else
      verdicts[k] = 'accepted'
      accepted[#accepted + 1] = attempt
      local run = attempt.run
      if accept(op, attempt) == N.COMPLETED and moving[run] then
        local children = children_of(graph_of(run), attempt.i)
        if #children > SLICE then
          release_later(run, attempt.i)
          wide[run] = true
          children = {}
        end
        if #children > 0 and not fewer[run] then
          fewer[run] = {}
          order[#order + 1] = {run, {}}
          fewer[run].list = order[#order][2]
        end
        for n = 1, #children do
          local child = children[n]
          if not fewer[run][child] then
            fewer[run][child] = 0
            insert(fewer[run].list, child)
          end
          fewer[run][child] = fewer[run][child] + 1
        end
      end
    end
  end
  for k = 1, #order do lower(order[k][1], order[k][2], fewer[order[k][1]]) end
  for run in pairs(wide) do release(run) end
  follow_up(accepted)
  local receipts = {}
  for k = 1, #ops do
    receipts[k] = verdicts[k] == 'fenced' and refused('fenced')
      or {'settled', verdicts[k] == 'repeated' and 1 or 0, news_of(found[k].run)}
  end
  return receipts
end

append = function(op)
  local attempt = find_attempt(op.claim, op.ordinal)
  if not attempt or attempt.status ~= A.RUNNING then return refused('fenced') end
  if op.index < 0 or not has_line(attempt.run, line_name(attempt, op.index)) then
    add_line(attempt, op.index, op.kind, op.data, now)
  end
  return {'appended'}
end

-- Workers.

worker_key = function(id) return P .. 'worker:' .. id end

get_worker = function(id)
  local worker = S.workers[id]
  if worker == nil then
    local f = call('HMGET', worker_key(id), 'until', 'renewed', 'lease')
    worker = f[1] and {id = id, lease_until = tonumber(f[1]), renewed = tonumber(f[2]), lease = tonumber(f[3])} or false
    S.workers[id] = worker
  end
  return worker or nil
end

-- Claims.

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

-- Marks of runs whose changes are not written yet are brought up to date first, so that the sets say what is true.
update_marks = function()
  for k = 1, #S.run_order do
    local run = S.run_order[k]
    if run.changed then
      local marks = marks_of(run)
      for name in pairs(run.before.lanes) do
        if not marks.lanes[name] then put(index('lane:' .. name), run.order, false) end
      end
      for name in pairs(marks.lanes) do
        if not run.before.lanes[name] then put(index('lane:' .. name), run.order, true) end
      end
      run.before.lanes = marks.lanes
    end
  end
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

local function start(claim, run, node)
  node.attempt = node.attempt + 1
  change(run, node, N.RUNNING)
  if run.status == R.PENDING then
    run.status = R.RUNNING
  end
  run.started = run.started or now
  local ordinal = #claim.pieces
  claim.pieces[ordinal + 1] = pack('>I6I4I4', run.number, node.i, node.attempt)
  note(run, K.claimed, node.i, node.attempt)
  return new_attempt(run, claim, ordinal, node.i, node.attempt)
end

local function take(op)
  local claim, taken = nil, 0
  local named = not op.serves and named_runs(op)
  if op.serves then update_marks() end
  for k = 1, #op.lanes, 2 do
    local number, limit = lane_number(op.lanes[k].text), min(op.lanes[k + 1], LIMIT_NODES)
    local lane = 2 * number + op.lanes[k].suspect
    local wanted = limit - taken
    if number >= 0 and wanted > 0 then
      local runs = named or serving_runs(op, lane, wanted)
      for r = 1, #runs do
        local run = runs[r]
        if wanted <= 0 then break end
        if (run.ready[lane] or 0) > 0 then
          local indexes = first_ready(run, lane, wanted)
          want_nodes(run, indexes)
          want_cells(graph_of(run), indexes)
          if #indexes > 0 and not claim then claim = new_claim(op.claim, op.worker) end
          for n = 1, #indexes do start(claim, run, get_node(run, indexes[n])) end
          taken, wanted = taken + #indexes, wanted - #indexes
        end
      end
    end
  end
  if claim then set_running(claim, taken) end
end

-- The output of a completed node: its latest attempt is the completed one.
local function output_of(run, i)
  local node = get_node(run, i)
  if node.status ~= N.COMPLETED then return nil end
  local attempt = get_attempt(run, i, node.attempt)
  return attempt and attempt.output
end

local function grant_of(attempt)
  local run = attempt.run
  local node, inputs = get_node(run, attempt.i), {}
  local needs = needs_of(graph_of(run), attempt.i)
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
  return {
    attempt.ordinal, run.id, attempt.i, attempt.number, node.failures, node.losses, node.generation, run.heals, node.postponed,
    inputs,
  }
end

claim_nodes = function(op)
  local worker = get_worker(op.worker)
  if not worker or worker.lease_until <= now then return refused('lease_expired') end
  local claim = get_claim(op.claim)
  if not claim then
    release_any()
    take(op)
    claim = get_claim(op.claim)
  end
  local grants, rows, seen = {}, {}, {}
  if claim then
    local current = running_of(claim)
    for k = 1, #current do
      grants[k] = grant_of(current[k])
      local run = current[k].run
      if op.serves and not seen[run] then
        seen[run] = true
        insert(rows, run_row(run))
      end
    end
  end
  return {'claimed', grants, rows}
end

end
