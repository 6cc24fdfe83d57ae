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
  local was, less, lowered, waiting -- the last cell, by how much it was lowered, and what became of it: the next is mostly alike
  for k = 1, #children do
    local i, cell = children[k], nil
    if not run.nodes[i] then cell = cell_of(run, i) end
    if not cell or byte(cell) ~= N.PENDING then
      local node = get_node(run, i)
      node.waiting = node.waiting - fewer[i]
      if node.waiting == 0 and node.status == N.PENDING then change(run, node, N.READY) else touch(run, node) end
    else
      if cell ~= was or fewer[i] ~= less then
        was, less, waiting = cell, fewer[i], unpack_bytes('>I4', cell, 6) - fewer[i]
        lowered = char(waiting == 0 and N.READY or N.PENDING) .. sub(cell, 2, 5) .. pack('>I4', waiting) .. sub(cell, 10)
      end
      run.cells[i], run.touched[i] = lowered, true
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
  slice, at, skip = lists.read(children, LIMIT.slice, at, skip)
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

-- Settlements come as `heads`, nine bytes each, and the `outputs` one after the other; of which claim an attempt is stands in a
-- list of claims. What is more than a completion with a small output, or none, is in `others`, in order.
local HEAD, HEAD_SIZE = '>BI2I2I4', 9 -- how it comes, place of its claim, ordinal, size of its output
local AS_OTHER, WITH_OUTPUT = 0, 1

local function completion(claim, ordinal, output)
  return {
    claim = claim, ordinal = ordinal, status = A.COMPLETED, node = N.COMPLETED, output = output, plain = true, delay = 0, lines = NOTHING,
  }
end

-- What nearly all settlements are, a completion with nothing but an output behind an open gate, done on the bytes of the rows.
-- Whether it was one. `last`: the last cell of a node, and what became of it; those of neighbours are mostly alike.
-- The attempt need not be read: the node runs and its latest attempt is this one, so it is RUNNING, and its claim has all
-- that is kept of it.
local function accept_plain(run, i, number, claim, ordinal, output, last)
  if run.stopping or run.gate ~= G.OPEN or run.nodes[i] then return false end
  local name, cell = attempt_name(i, number), cell_of(run, i)
  if run.attempts[name] ~= nil then return false end
  if cell ~= last.cell or number ~= last.number then
    local status, attempt = unpack_bytes('>BI4', cell)
    last.cell, last.number = cell, number
    last.completed = status == N.RUNNING and attempt == number and char(N.COMPLETED) .. sub(cell, 2)
  end
  if not last.completed or is_removed(run, i) then return false end
  if output and byte(output) == 0 then keep_blob(run, output) end
  run.values[name] = completed_value(ordinal, claim, output)
  run.values_order[#run.values_order + 1] = name
  run.cells[i], run.touched[i] = last.completed, true
  run.journal[#run.journal + 1] = last.entry .. name .. last.status
  return true
end

-- What settlements are about, read in few commands: for each the run, the node, and the number of the attempt.
local function find_all(set, count)
  local runs, nodes, numbers, of_run, other = {}, {}, {}, {}, 0
  local last, of
  for k = 1, count do
    local kind, place, ordinal = unpack_bytes(HEAD, set.heads, (k - 1) * HEAD_SIZE + 1)
    local id, plain, run_number, i, number = set.claims[place], true, nil, nil, nil
    if kind == AS_OTHER then
      other = other + 1
      id, ordinal, plain = set.others[other].claim, set.others[other].ordinal, set.others[other].plain
    end
    local claim = get_claim(id)
    if claim then run_number, i, number = claim_cell(claim, ordinal) end
    local run = run_number and get_numbered(run_number) or false
    runs[k], nodes[k], numbers[k] = run, i or false, number or false
    if run then
      if run ~= last then
        of = of_run[run] or {{}, {}}
        of_run[run], last = of, run
      end
      of[1][#of[1] + 1] = i
      if not plain then of[2][#of[2] + 1] = attempt_name(i, number) end
    end
  end
  for run, wanted in pairs(of_run) do
    want_values(run, wanted[2])
    if #wanted[1] > 1 then
      want_nodes(run, wanted[1])
      want_cells(graph_of(run), wanted[1])
      want_child(graph_of(run), wanted[1])
    end
  end
  return runs, nodes, numbers
end

-- Children of completed nodes: counted for each run, so that each is lowered once.
local function count_child(of, child)
  local fewer = of.fewer[child]
  if not fewer then of.order[#of.order + 1] = child end
  of.fewer[child] = (fewer or 0) + 1
end

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
  if child ~= MANY then return count_child(of, child - 1) end
  local children = graph.children[i]
  if not children then
    local text = related_text(graph, 'children', i)
    if lists.size(text) > LIMIT.slice then
      release_later(run, i)
      of.wide = true
      return
    end
    children = lists.read(text, LIMIT.slice)
    graph.children[i] = children
  end
  for n = 1, #children do count_child(of, children[n]) end
end

-- The counts of runs and claims for the completions that `accept_plain` took.
local function count_completed(runs, claims)
  for run, count in pairs(runs) do
    run.open, run.active, run.running, run.seq = run.open - count, run.active - count, run.running - count, run.seq + count
    run.changed = true
  end
  for id, count in pairs(claims) do
    local claim = S.claims[id]
    set_running(claim, claim.running - count)
  end
end

local function judge(op, attempt)
  if not attempt then return 'f' end
  if attempt.status == A.RUNNING then return 'a' end
  local same = attempt.status == op.status and attempt.output == op.output and attempt.error == op.error
    and attempt.outcome == op.outcome
  return same and 'r' or 'f'
end

-- Apply what `find_all` found: a letter for each (accepted, repeated, fenced), what ended in the long way, which children are to be
-- lowered, and which runs have changed.
local function apply_all(set, runs, nodes, numbers)
  local verdicts, ended, moving, lowered, changed, of_claims = {}, {}, {}, {}, {}, {}
  local last = {entry = pack('>BI7', A.COMPLETED + ENDS, now), status = char(N.COMPLETED)}
  local other, from = 0, 1
  for k = 1, #runs do
    if runs[k] and moving[runs[k]] == nil then moving[runs[k]] = runs[k].gate == G.OPEN end
  end
  for k = 1, #runs do
    local run, i, number, op = runs[k], nodes[k], numbers[k], nil
    local kind, place, ordinal, size = unpack_bytes(HEAD, set.heads, (k - 1) * HEAD_SIZE + 1)
    local id, output = set.claims[place], kind == WITH_OUTPUT and sub(set.outputs, from, from + size - 1) or nil
    from = from + size
    if kind == AS_OTHER then
      other = other + 1
      op = set.others[other]
      id, ordinal, output = op.claim, op.ordinal, op.output
    end
    if not run then
      verdicts[k] = 'f'
    elseif (not op or op.plain) and accept_plain(run, i, number, id, ordinal, output, last) then
      verdicts[k] = 'a'
      changed[run], of_claims[id] = (changed[run] or 0) + 1, (of_claims[id] or 0) + 1
      count_children(lowered, run, i)
    else
      local attempt = get_attempt(run, i, number)
      op = op or completion(id, ordinal, output)
      verdicts[k] = judge(op, attempt)
      if verdicts[k] == 'a' then
        ended[#ended + 1] = attempt
        changed[run] = changed[run] or 0
        if accept(op, attempt) == N.COMPLETED and moving[run] then count_children(lowered, run, i) end
      end
    end
  end
  count_completed(changed, of_claims)
  return concat(verdicts), ended, lowered, changed
end

-- A set of settlements, judged against the gates as they stand before it: the letters, which of the runs each was about (nothing, if
-- all are about one), and how these stand now.
ops.settle = function(set)
  local count = #set.heads / HEAD_SIZE
  local runs, nodes, numbers = find_all(set, count)
  local verdicts, ended, lowered, changed = apply_all(set, runs, nodes, numbers)
  for k = 1, #lowered do
    local run = lowered[k]
    lower(run, lowered[run].order, lowered[run].fewer)
    if lowered[run].wide then release(run) end
  end
  hold_back(ended)
  local news, places, which = {}, {}, {}
  for k = 1, count do
    local run = runs[k]
    if run and not places[run] then
      if changed[run] then conclude(run) end
      news[#news + 1] = run
      places[run] = #news
    end
  end
  for k = 1, #news > 1 and count or 0 do which[k] = pack('>I2', runs[k] and places[runs[k]] or 0) end
  for k = 1, #news do news[k] = news_of(news[k]) end
  return {'settled', verdicts, concat(which), news}
end

-- What a single completion is as a set.
ops.settle_one = function(claim, ordinal, output)
  return ops.settle({heads = pack(HEAD, WITH_OUTPUT, 1, ordinal, #output), outputs = output, claims = {claim}, others = NOTHING})
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
