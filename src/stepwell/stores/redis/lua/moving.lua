-- Ops that move a run forward: settle, append.

-- What later files use; the rest is of this file.
local release, release_any
local settled_as, is_removed, end_attempt, hold_back, close_gate, shut_gate, conclude, follow_up
local update_marks

do

settled_as = function(asked, run, removed)
  if removed then return asked == N.COMPLETED and asked or N.CANCELLED end
  if not run.stopping then return asked == N.CANCELLED and N.READY or asked end
  if asked == N.READY then return N.CANCELLED end
  if asked == N.WAITING then return run.status == R.CANCELLING and N.CANCELLED or N.FAILED end
  return asked
end

is_removed = function(run, i) return layout_of(graph_of(run), i).removed end

-- An attempt ends and its node moves with it. The journal calls it by what became of the attempt.
end_attempt = function(attempt, status, node_status)
  local run = attempt.run
  local node = get_node(run, attempt.i)
  attempt.status, attempt.ended_at = status, now
  touch_attempt(attempt)
  count_running(get_claim(attempt.claim), -1)
  node.claim = nil
  change(run, node, node_status)
  if node_status == N.FAILED or node_status == N.INTERRUPTED then run.error = run.error or attempt.error_type end
  node.reason = nil
  note(run, status + ENDS, node.i, attempt.number, node_status)
  return node
end

-- Fewer parents to wait for: how many fewer, and how many of these were skipped, by child; at zero a child is READY.
local function lower(run, children, fewer, skipped)
  want_rows(run.nodes, children)
  for k = 1, #children do
    local child = children[k]
    local node = get_node(run, child)
    node.waiting = node.waiting - (fewer[child] or 1)
    node.skipped = node.skipped + (skipped[child] or 0)
    if node.waiting == 0 and node.status == N.PENDING then change(run, node, N.READY) else touch(run, node) end
  end
end

-- The children of a very wide node are lowered in slices, so that no call takes long: the node waits in a list of its run, and
-- every claim and every sweep, whoever asks, lowers the next slice. Behind a closed gate nothing moves; when it opens, the
-- counters are derived from the rows and the list is dropped.

local function releases_of(run)
  run.releases = run.releases or (run.releasing and call('LRANGE', run_key('releases', run), 0, -1)) or {}
  return run.releases
end

local function release_later(run, i)
  insert(releases_of(run), pack('>I4I4', i, 0))
  run.releasing, run.changed = true, true
end

release = function(run)
  if not run.releasing or run.gate ~= G.OPEN then return end
  local releases = releases_of(run)
  local i, done = unpack_bytes('>I4I4', releases[1])
  local graph = graph_of(run)
  local slice = some_of(list_of(graph, layout_of(graph, i), 'children'), LIMIT.slice, done)
  local skipped = {}
  for k = 1, get_node(run, i).status == N.SKIPPED and #slice or 0 do skipped[slice[k]] = 1 end
  lower(run, slice, NONE, skipped)
  if #slice == LIMIT.slice then
    releases[1] = pack('>I4I4', i, done + #slice)
  else
    table.remove(releases, 1)
  end
  run.releasing, run.changed = #releases > 0, true
end

-- One slice of whichever run has one.
release_any = function()
  if S.counters.releasing == 0 then return end
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
  run.token, run.purpose = nil, purpose
  set_text(run, 'arguments', arguments or '')
  run.stopping = purpose == 'failed'
  note(run, K.gate, nil, nil, purpose)
end

-- The gate of a run that has ended. That of a child run is held by nobody, until its end is handed on.
shut_gate = function(run)
  run.gate = G.SHUT
  if not run.parent then return end
  run.gate, run.expires, run.reported, run.token, run.purpose = G.HELD, now, 0, nil, ENDED
  set_text(run, 'arguments', '')
end

-- What follows for a run after its nodes have moved.
conclude = function(run)
  if run.moved then add_up(run) end
  if run.gate == G.OPEN then
    if run.open == 0 and run.failed == 0 then
      run.status, run.ended_at = R.COMPLETED, now
      shut_gate(run)
      note(run, K.run, nil, nil, RUN_NAMES[R.COMPLETED])
    elseif run.failed > run.tolerated and run.on_failure == 'pause' then
      run.status, run.gate = R.PAUSED, G.SHUT
      run.reason = NODE_FAILED
      note(run, K.run, nil, nil, RUN_NAMES[R.PAUSED])
    elseif (run.active == 0 and not run.releasing) or (run.failed > run.tolerated and run.on_failure == 'fail_fast') then
      close_gate(run, 'failed')
    end
  elseif run.status == R.CANCELLING and run.active == 0 then
    run.status, run.ended_at, run.cancel_at = R.CANCELLED, now, nil
    shut_gate(run)
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

-- What the k-th settlement of a set says: they come as columns, and a column that none needs is missing.
local function settled(op, name, k)
  local column = op[name]
  return column and column[k] or nil
end

local function judge(op, k, attempt)
  if not attempt then return 'f' end
  if attempt.status == A.RUNNING then return 'a' end
  local same = attempt.status == op.status[k]
  for n = 1, #PAYLOADS do same = same and attempt[PAYLOADS[n]] == payload(settled(op, PAYLOADS[n], k)) end
  return same and 'r' or 'f'
end

-- What becomes of a node that is parked, and `asked` without that.
local function park(op, k, node, asked)
  if asked ~= N.WAITING then return N.CANCELLED end
  local wakes = node.wakes or 0
  if op.child then node.wakes = wakes + 1 end
  return wakes == (settled(op, 'wakes', k) or 0) and N.WAITING or N.READY
end

local function accept(op, k, attempt)
  local run, ended_as, due = attempt.run, op.status[k], nil
  for n = 1, #PAYLOADS do attempt[PAYLOADS[n]] = kept(run, settled(op, PAYLOADS[n], k)) end
  local class = settled(op, 'error_type', k)
  attempt.error_type = class ~= '' and class or nil
  for n, line in ipairs(settled(op, 'lines', k) or NONE) do lines.add(attempt, RECORDED + n - 1, line[1], args[line[2]], now) end
  local status = settled_as(op.node[k], run, is_removed(run, attempt.i))
  if ended_as == A.PARKED then
    status = park(op, k, get_node(run, attempt.i), status)
  elseif status == N.WAITING then
    due = now + (settled(op, 'delay', k) or 0)
  end
  local node = end_attempt(attempt, ended_as, status)
  if status == N.SKIPPED then node.reason = settled(op, 'reason', k) or nil end
  set_due(run, node, due)
  if ended_as == A.FAILED or ended_as == A.TIMED_OUT then
    if settled(op, 'postponed', k) then node.postponed = node.postponed + 1 else node.failures = node.failures + 1 end
  end
  return status
end

-- The children of a completed or skipped node are counted for its run, so that each is lowered once; those of a very wide node come
-- later.
local function count_children(lowered, run, i, was_skipped)
  local of, graph = lowered[run], graph_of(run)
  local layout = layout_of(graph, i)
  if not of then
    of = {order = {}, fewer = {}, skipped = {}}
    lowered[run] = of
  end
  if layout.many_children > LIMIT.slice then
    of.wide = true
    return release_later(run, i)
  end
  local children = all_of(graph, layout, 'children')
  for n = 1, #children do
    local child = children[n]
    if not of.fewer[child] then insert(of.order, child) end
    of.fewer[child] = (of.fewer[child] or 0) + 1
    if was_skipped then of.skipped[child] = (of.skipped[child] or 0) + 1 end
  end
end

-- A set of settlements, judged against the gates as they stand before it: a letter for each (accepted, repeated, fenced), which of the
-- runs each was about, and how these stand now.
ops.Settle = function(op)
  local verdicts, ended, lowered, changed = {}, {}, {}, {}
  local attempts = find_attempts(op.claim, op.ordinal, true)
  for k = 1, #attempts do
    local attempt = attempts[k]
    verdicts[k] = judge(op, k, attempt)
    if verdicts[k] == 'a' then
      ended[#ended + 1] = attempt
      changed[attempt.run] = true
      local status, run = accept(op, k, attempt), attempt.run
      if (status == N.COMPLETED or status == N.SKIPPED) and run.gate == G.OPEN then
        count_children(lowered, run, attempt.i, status == N.SKIPPED)
      end
    end
  end
  for run, of in pairs(lowered) do
    lower(run, of.order, of.fewer, of.skipped)
    if of.wide then release(run) end
  end
  hold_back(ended)
  local news, places, which = {}, {}, {}
  for k = 1, #attempts do
    local run = attempts[k] and attempts[k].run
    if run and not places[run] then
      if changed[run] then conclude(run) end
      insert(news, news_of(run))
      places[run] = #news
    end
    which[k] = run and places[run] or 0
  end
  return {'Settled', concat(verdicts), which, news}
end

ops.Append = function(op)
  local attempt = find_attempt(op.claim, op.ordinal)
  if not attempt or attempt.status ~= A.RUNNING then return refused('fenced') end
  if op.index < 0 or not lines.find(attempt, op.index) then
    lines.add(attempt, op.index, op.kind, args[op.data], now)
  end
  return {'Appended'}
end

end
