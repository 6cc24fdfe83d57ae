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

-- One parent fewer to wait for; at zero a child is READY. `fewer`: how many for each child, or nothing: one.
local function lower(run, children, fewer)
  want_nodes(run, children)
  want_cells(graph_of(run), children)
  local was, less, lowered, waiting -- the last cell, by how much it was lowered, and what became of it: the next is mostly alike
  for k = 1, #children do
    local i, cell = children[k], nil
    local by = fewer and fewer[i] or 1
    if not run.nodes[i] then cell = cell_of(run, i) end
    if not cell or byte(cell) ~= N.PENDING then
      local node = get_node(run, i)
      node.waiting = node.waiting - by
      if node.waiting == 0 and node.status == N.PENDING then change(run, node, N.READY) else touch(run, node) end
    else
      if cell ~= was or by ~= less then
        was, less, waiting = cell, by, unpack_bytes('>I4', cell, 6) - by
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
  local children, slice = related_text(graph_of(run), 'children', i), nil
  slice, at, skip = lists.read(children, LIMIT.slice, at, skip)
  lower(run, slice)
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
  return {claim = claim, ordinal = ordinal, status = A.COMPLETED, node = N.COMPLETED, output = output, delay = 0, lines = NOTHING}
end

-- Children of completed nodes: counted for each run, so that each is lowered once.
local function lowered_in(lowered, run)
  local of = lowered[run]
  if not of then
    of = {order = {}, fewer = {}}
    lowered[run] = of
    lowered[#lowered + 1] = run
  end
  return of
end

local function count_child(of, child)
  local fewer = of.fewer[child]
  if not fewer then of.order[#of.order + 1] = child end
  of.fewer[child] = (fewer or 0) + 1
end

local function count_children(of, run, i)
  local graph = graph_of(run)
  local child = child_of(graph, i)
  if child == 0 then return end
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

-- What nearly all settlements are: completions with nothing but an output behind an open gate, those of one run after the other,
-- from the kth on, done on the bytes of the rows. Which is the first that is something else, and where its output begins.
-- The attempt need not be read: the node runs and its latest attempt is this one, so it is RUNNING, and its claim has all
-- that is kept of it. Cells of neighbours are mostly alike, so what becomes of one is kept for the next.
local function complete_many(set, k, from, runs, nodes, numbers, of)
  local run, first, heads, outputs, claims = runs[k], k, set.heads, set.outputs, set.claims
  if run.stopping or run.gate ~= G.OPEN then return k, from end
  local cells, touched, values, order, journal, of_claims = run.cells, run.touched, run.values, run.values_order, run.journal, set.completed
  local graph, entries, written = graph_of(run), #journal - k + 1, #order - k + 1
  local entry, completed = pack('>BI7', A.COMPLETED + ENDS, now), char(N.COMPLETED)
  local was, was_number, done
  while runs[k] == run do
    local kind, place, ordinal, size = unpack_bytes(HEAD, heads, (k - 1) * HEAD_SIZE + 1)
    local i, number = nodes[k], numbers[k]
    local name, cell = attempt_name(i, number), cells[i] or cell_of(run, i)
    if cell ~= was or number ~= was_number then
      local status, attempt = unpack_bytes('>BI4', cell)
      was, was_number, done = cell, number, status == N.RUNNING and attempt == number and completed .. sub(cell, 2)
    end
    if kind == AS_OTHER or not done or run.nodes[i] or run.attempts[name] ~= nil or has(flags_of(graph, i), REMOVED) then break end
    local output = kind == WITH_OUTPUT and sub(outputs, from, from + size - 1) or nil
    values[name] = completed_value(ordinal, claims[place], output)
    order[written + k], journal[entries + k] = name, entry .. name .. completed
    cells[i], touched[i] = done, true
    of_claims[place] = (of_claims[place] or 0) + 1
    count_children(of, run, i)
    k, from = k + 1, from + size
  end
  local count = k - first
  run.open, run.active, run.running, run.seq = run.open - count, run.active - count, run.running - count, run.seq + count
  run.changed = run.changed or count > 0
  return k, from
end

-- What settlements are about, read in few commands: for each the run, the node, and the number of the attempt.
local function find_all(set, count)
  local runs, nodes, numbers, of_run, other = {}, {}, {}, {}, 0
  local last, of
  for k = 1, count do
    local kind, place, ordinal = unpack_bytes(HEAD, set.heads, (k - 1) * HEAD_SIZE + 1)
    local id, run_number, i, number = set.claims[place], nil, nil, nil
    if kind == AS_OTHER then
      other = other + 1
      id, ordinal = set.others[other].claim, set.others[other].ordinal
    end
    local claim = get_claim(id)
    if claim then run_number, i, number = claim_cell(claim, ordinal) end
    local run = run_number and get_numbered(run_number) or false
    runs[k], nodes[k], numbers[k] = run, i or false, number or false
    if run then
      if run ~= last then
        of = of_run[run] or {{}, {}, count = 0}
        of_run[run], last = of, run
      end
      of.count = of.count + 1
      of[1][of.count] = i
      if kind == AS_OTHER then of[2][#of[2] + 1] = attempt_name(i, number) end
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
  local verdicts, ended, moving, lowered, changed = {}, {}, {}, {}, {}
  for k = 1, #runs do
    if runs[k] and moving[runs[k]] == nil then moving[runs[k]] = runs[k].gate == G.OPEN end
  end
  local k, other, from = 1, 0, 1
  set.completed = {}
  while k <= #runs do
    local run, done = runs[k], k
    local of = run and lowered_in(lowered, run)
    if run then done, from = complete_many(set, k, from, runs, nodes, numbers, of) end
    if done > k then
      verdicts[#verdicts + 1], changed[run] = rep('a', done - k), true
      k = done
    else
      local kind, place, ordinal, size = unpack_bytes(HEAD, set.heads, (k - 1) * HEAD_SIZE + 1)
      local op
      if kind == AS_OTHER then
        other = other + 1
        op = set.others[other]
      else
        op = completion(set.claims[place], ordinal, kind == WITH_OUTPUT and sub(set.outputs, from, from + size - 1) or nil)
      end
      local attempt = run and get_attempt(run, nodes[k], numbers[k])
      local verdict = judge(op, attempt)
      if verdict == 'a' then
        ended[#ended + 1], changed[run] = attempt, true
        if accept(op, attempt) == N.COMPLETED and moving[run] then count_children(of, run, nodes[k]) end
      end
      verdicts[#verdicts + 1], k, from = verdict, k + 1, from + size
    end
  end
  for place, count in pairs(set.completed) do
    local claim = S.claims[set.claims[place]]
    set_running(claim, claim.running - count)
  end
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
    if #lowered[run].order > 0 then lower(run, lowered[run].order, lowered[run].fewer) end
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
