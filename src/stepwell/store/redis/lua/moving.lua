-- Ops that move a run forward: settle, append.

-- What later files use; the rest is of this file.
local release, release_any
local settled_as, is_removed, end_attempt, hold_back, close_gate, conclude, follow_up
local update_marks

do

settled_as = function(asked, run, removed)
  if removed then return asked == N.COMPLETED and asked or N.CANCELLED end
  if not run.stopping then return asked == N.CANCELLED and N.READY or asked end
  if asked == N.READY then return N.CANCELLED end
  if asked == N.WAITING then return run.status == R.CANCELLING and N.CANCELLED or N.FAILED end
  return asked
end

is_removed = function(run, i) return has(flags_of(graph_of(run), i), REMOVED) end

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
    local i, text, at = children[k], nil, nil
    if not run.nodes[i] then text, at = node_at(run, i) end
    if not text or byte(text, at) ~= N.PENDING then
      local node = get_node(run, i)
      node.waiting = node.waiting - fewer[i]
      if node.waiting == 0 and node.status == N.PENDING then change(run, node, N.READY) else touch(run, node) end
    else
      local waiting = unpack_bytes('>I4', text, at + 5) - fewer[i]
      local status = waiting == 0 and N.READY or N.PENDING
      run.cells[i] = char(status) .. sub(text, at + 1, at + 4) .. pack('>I4', waiting) .. sub(text, at + 9, at + 12)
      run.touched[i] = true
      if waiting == 0 then
        run.active = run.active + 1
        mark_ready(run, i, false, true)
      end
    end
  end
  run.changed = true
end

-- The children of a very wide node are lowered in slices, so that no call takes long: the node waits in a list of its run, and
-- every claim and every sweep, whoever asks, lowers the next slice. Behind a closed gate nothing moves; when it opens, the
-- counters are derived from the rows and the list is dropped.

local function release_later(run, i)
  run.releases = run.releases or (run.releasing and call('LRANGE', run_key('releases', run), 0, -1)) or {}
  insert(run.releases, pack('>I4I4I4', i, 1, 0))
  run.releasing, run.changed = true, true
end

release = function(run)
  if not run.releasing or run.gate ~= G.OPEN then return end
  run.releases = run.releases or call('LRANGE', run_key('releases', run), 0, -1)
  local i, at, skip = unpack_bytes('>I4I4I4', run.releases[1])
  local children, fewer, slice = related_text(graph_of(run), 'children', i), {}, nil
  slice, at, skip = lists.read(children, SLICE, at, skip)
  for k = 1, #slice do fewer[slice[k]] = 1 end
  lower(run, slice, fewer)
  if at <= #children then
    run.releases[1] = pack('>I4I4I4', i, at, skip)
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
  for k = 1, #op.lines, 2 do lines.add(attempt, RECORDED + (k - 1) / 2, op.lines[k], op.lines[k + 1], now) end
  local status = settled_as(op.node, run, is_removed(run, attempt.i))
  local node = end_attempt(attempt, op.status, status)
  set_due(run, node, status == N.WAITING and now + op.delay or nil)
  if op.status == A.FAILED or op.status == A.TIMED_OUT then
    if op.postponed then node.postponed = node.postponed + 1 else node.failures = node.failures + 1 end
  end
  return status
end

-- What nearly all settlements are, a completion with nothing but an output behind an open gate, done on the bytes of the rows.
-- Whether it was one.
-- The attempt need not be read: the node runs and its latest attempt is this one, so it is RUNNING, and its claim has all
-- that is kept of it.
local function accept_plain(op, run, i, number, name)
  if not op.plain or run.stopping or run.gate ~= G.OPEN or run.attempts[name] ~= nil or run.nodes[i] then return false end
  local text, at = node_at(run, i)
  if byte(text, at) ~= N.RUNNING or sub(text, at + 1, at + 4) ~= sub(name, 5) or is_removed(run, i) then return false end
  local output = op.output
  keep_blob(run, output)
  run.values[name] = completed_value(op.ordinal, op.claim, output)
  run.values_touched[name] = true
  run.cells[i] = char(N.COMPLETED) .. sub(text, at + 1, at + 12)
  run.touched[i], run.changed = true, true
  run.open, run.active, run.running, run.seq = run.open - 1, run.active - 1, run.running - 1, run.seq + 1
  run.journal[#run.journal + 1] = pack('>BI7I4I4B', A.COMPLETED + ENDS, now, i, number, N.COMPLETED)
  local claim = S.claims[op.claim]
  set_running(claim, claim.running - 1)
  return true
end

-- What settlements are about, read in few commands: for each the run, the node, and the number and the name of the attempt.
local function find_all(ops)
  local runs, nodes, numbers, names, of_run = {}, {}, {}, {}, {}
  for k = 1, #ops do
    local claim = get_claim(ops[k].claim)
    local run_number, i, number
    if claim then run_number, i, number = claim_cell(claim, ops[k].ordinal) end
    local run = run_number and get_numbered(run_number) or false
    runs[k] = run
    if run then
      nodes[k], numbers[k], names[k] = i, number, attempt_name(i, number)
      local of = of_run[run]
      if not of then
        of = {{}, {}}
        of_run[run] = of
      end
      of[1][#of[1] + 1] = i
      if not ops[k].plain then of[2][#of[2] + 1] = names[k] end
    end
  end
  for run, of in pairs(of_run) do
    want_values(run, of[2])
    if #of[1] > 1 then
      want_nodes(run, of[1])
      want_cells(graph_of(run), of[1])
      want_child(graph_of(run), of[1])
    end
  end
  return runs, nodes, numbers, names
end

-- Children of completed nodes: counted for each run, so that each is lowered once.
local function count_children(lowered, run, i)
  local graph = graph_of(run)
  local child = child_of(graph, i)
  if child == 0 then return end
  local of = lowered[run]
  if not of then
    of = {order = {}, fewer = {}}
    lowered[run] = of
    lowered[#lowered + 1] = run
  end
  local children = child == MANY and graph.children[i] or {child - 1}
  if child == MANY and not graph.children[i] then
    local text = related_text(graph, 'children', i)
    if lists.size(text) > SLICE then
      release_later(run, i)
      of.wide = true
      return
    end
    children = lists.read(text, SLICE)
    graph.children[i] = children
  end
  for n = 1, #children do
    local each = children[n]
    if not of.fewer[each] then
      of.fewer[each] = 0
      of.order[#of.order + 1] = each
    end
    of.fewer[each] = of.fewer[each] + 1
  end
end

local function judge(op, attempt)
  if not attempt then return 'f' end
  if attempt.status == A.RUNNING then return 'a' end
  local same = attempt.status == op.status and attempt.output == op.output and attempt.error == op.error
    and attempt.outcome == op.outcome
  return same and 'r' or 'f'
end

-- A set of settlements, judged against the gates as they stand before it: one letter for each (accepted, repeated, fenced), which of
-- the runs it was about, and how these stand now.
ops.settle = function(ops)
  local runs, nodes, numbers, names = find_all(ops)
  local verdicts, ended, moving, lowered, changed = {}, {}, {}, {}, {}
  for k = 1, #ops do
    if runs[k] and moving[runs[k]] == nil then moving[runs[k]] = runs[k].gate == G.OPEN end
  end
  for k = 1, #ops do
    local run, i = runs[k], nodes[k]
    if not run then
      verdicts[k] = 'f'
    elseif accept_plain(ops[k], run, i, numbers[k], names[k]) then
      verdicts[k] = 'a'
      changed[run] = true
      count_children(lowered, run, i)
    else
      local attempt = get_attempt(run, i, numbers[k])
      verdicts[k] = judge(ops[k], attempt)
      if verdicts[k] == 'a' then
        ended[#ended + 1] = attempt
        changed[run] = true
        if accept(ops[k], attempt) == N.COMPLETED and moving[run] then count_children(lowered, run, i) end
      end
    end
  end
  for k = 1, #lowered do
    local run = lowered[k]
    lower(run, lowered[run].order, lowered[run].fewer)
    if lowered[run].wide then release(run) end
  end
  hold_back(ended)
  local news, places, which = {}, {}, {}
  for k = 1, #ops do
    local run = runs[k]
    if run and not places[run] then
      if changed[run] then conclude(run) end
      news[#news + 1] = run
      places[run] = #news
    end
    which[k] = pack('>I2', run and places[run] or 0)
  end
  for k = 1, #news do news[k] = news_of(news[k]) end
  return {'settled', concat(verdicts), concat(which), news}
end

ops.append = function(op)
  local attempt = find_attempt(op.claim, op.ordinal)
  if not attempt or attempt.status ~= A.RUNNING then return refused('fenced') end
  if op.index < 0 or not lines.has(attempt.run, lines.name(attempt, op.index)) then
    lines.add(attempt, op.index, op.kind, op.data, now)
  end
  return {'appended'}
end

end
