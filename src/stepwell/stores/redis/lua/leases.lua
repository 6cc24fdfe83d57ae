-- Leases of workers, and what time changes.

local stops_of, started_of -- what later files use; the rest is of this file

do

local SWEEP = {nodes = 20000, attempts = 2000} -- that it looks at, and that it ends, when a run is cancelled

local function write_lease(worker, lease_until)
  local leases = index('leases')
  if worker.lease_until then put(leases, timed(worker.lease_until, worker.id), false) end
  worker.lease_until = lease_until
  put(leases, timed(lease_until, worker.id), true)
  later('HSET', MARKER, 'lease:' .. worker.id, pack_row(lease_until, worker.renewed, worker.lease))
end

ops.Enlist = function(op)
  local worker = get_worker(op.worker) or {id = op.worker}
  S.workers[op.worker] = worker
  worker.renewed, worker.lease = now, op.lease
  write_lease(worker, now + op.lease)
  put(index('workers'), op.worker, true)
  if op.info then later('SET', worker_key(op.worker), args[op.info]) end
  return {'Enlisted', worker.lease_until}
end

local function forget_worker(worker)
  put(index('leases'), timed(worker.lease_until, worker.id), false)
  put(index('workers'), worker.id, false)
  S.workers[worker.id] = false
  later('HDEL', MARKER, 'lease:' .. worker.id)
  later('UNLINK', worker_key(worker.id))
end

-- What a worker should stop. Few runs are stopping, and mostly none is.
stops_of = function(worker)
  local stops = {}
  local any = S.counters.stopping > 0
  if not any then
    for k = 1, #S.run_order do any = any or S.run_order[k].stopping end
  end
  if not any then return stops end
  for _, attempt in ipairs(running_under(worker)) do
    if attempt.run.stopping then
      insert(stops, attempt_id(attempt))
    end
  end
  return stops
end

started_of = function(attempt) return attempt.started_at or get_claim(attempt.claim).at end

ops.Renew = function(op)
  local worker = get_worker(op.worker)
  if not worker or worker.lease_until <= now then return refused('lease_expired') end
  local heard = op.since and min(worker.renewed, op.since) or worker.renewed
  local stray = {}
  if op.held then
    local held = {}
    for k = 1, #op.held do held[op.held[k]] = true end
    for _, attempt in ipairs(running_under(op.worker)) do
      if started_of(attempt) < heard and not held[attempt_id(attempt)] then insert(stray, attempt) end
    end
  end
  for k = 1, #stray do
    local run = stray[k].run
    end_attempt(stray[k], A.RELEASED, settled_as(N.READY, run, is_removed(run, stray[k].i)))
  end
  follow_up(stray)
  worker.renewed, worker.lease = now, op.lease
  write_lease(worker, now + op.lease)
  return {'Renewed', worker.lease_until, stops_of(op.worker), #stray}
end

-- The worker is gone. The node runs again, unless it promised not to, or it has taken too many workers with it.
local function lose(attempt)
  local run = attempt.run
  local node, layout = get_node(run, attempt.i), layout_of(graph_of(run), attempt.i)
  local status, reason = N.READY, nil
  attempt.error, attempt.error_type = WORKER_LOST_ERROR, WORKER_LOST
  node.losses = node.losses + 1
  if run.stopping or layout.removed then
    status, reason = N.CANCELLED, 'worker_lost'
  elseif node.wakes then -- no body of it was running
    status = N.READY
  elseif layout.careful then
    status, reason = N.INTERRUPTED, 'worker_lost'
  elseif node.losses >= MAX_LOSSES then
    status, reason = N.FAILED, 'worker_lost'
  elseif node.losses >= SUSPECT_AFTER then
    node.lane = lane_of(layout, true) -- a running node is in no queue, so its lane may change
  end
  end_attempt(attempt, A.LOST, status)
  node.reason = reason
end

ops.Dismiss = function(op)
  local held = running_under(op.worker)
  for k = 1, #held do lose(held[k]) end
  follow_up(held)
  local worker = get_worker(op.worker)
  if worker then forget_worker(worker) end
  return {'Dismissed', #held}
end

-- Nobody could renew or sweep for a while: leases that ran out meanwhile are given once more.
local function forgive_an_outage()
  local before = S.counters.swept_at
  set_counter('swept_at', now)
  if before == 0 or now - before <= OUTAGE then return end
  for _, member in ipairs(first_of(index('leases'), 100000, pack('>I7', before + 1), up_to_now())) do
    local worker = get_worker(sub(member, 8))
    write_lease(worker, now + worker.lease)
  end
end

-- Attempts of workers whose lease ran out; a worker with none left is forgotten.
local function lose_expired(op, lost)
  for _, member in ipairs(first_of(index('leases'), 100000, nil, up_to_now())) do
    local worker = get_worker(sub(member, 8))
    local held, taken = running_under(worker.id), 0
    for k = 1, #held do
      if #lost < op.limit and (not op.run or held[k].run.id == op.run) then
        lose(held[k])
        insert(lost, held[k])
        taken = taken + 1
      end
    end
    if taken == #held and not op.run then forget_worker(worker) end
  end
end

local function by_number(runs)
  sort(runs, function(a, b) return a.number < b.number end)
  return runs
end

-- Runs of a timed set that are due, or the one that is asked for.
local function due_runs(name, run, at, most)
  if run ~= nil then return run and at(run) and at(run) <= now and {run} or {} end
  local runs = {}
  for _, member in ipairs(first_of(index(name), most, nil, up_to_now())) do
    insert(runs, get_numbered((unpack_bytes('>I6', member, 8))))
  end
  return runs
end

-- The running attempts of a run, in the order in which they were claimed. The rest of a large run comes with the next sweeps.
local function running_in(run)
  local found, places = {}, {}
  local i, wanted = run.fenced or 0, min(SWEEP.attempts, run.running)
  local first, stop = i, min(run.loaded, i + SWEEP.nodes)
  while i < stop and #found < wanted do
    local wanted_nodes = numbers_from(i, min(stop, i + 500))
    want_rows(run.nodes, wanted_nodes)
    for k = 1, #wanted_nodes do
      local node = get_node(run, wanted_nodes[k])
      if node.status == N.RUNNING and #found < wanted then insert(found, get_attempt(run, node.i, node.attempt)) end
    end
    i = i + #wanted_nodes
  end
  if first > 0 or #found < run.running then run.fenced, run.changed = i < run.loaded and #found < run.running and i or nil, true end
  for k = 1, #found do places[found[k]] = place_of(found[k]) end
  sort(found, function(a, b) return places[a] < places[b] end)
  return found
end

-- Cancelled runs whose attempts had time enough to stop: what still runs can no longer write.
local function fence_cancelled(only, limit, touched)
  local fenced = {}
  for _, run in ipairs(by_number(due_runs('cancelling', only, function(r) return r.cancel_at end, 10000))) do
    for _, attempt in ipairs(#fenced < limit and running_in(run) or {}) do
      if #fenced < limit then insert(fenced, attempt) end
    end
  end
  for k = 1, #fenced do
    end_attempt(fenced[k], A.CANCELLED, N.CANCELLED)
    touched[fenced[k].run] = true
  end
end

local function update_due(run)
  if not run.due_changed then return end
  local first = first_of(index('run:due:' .. run.name), 1)[1]
  run.due_first, run.due_changed, run.changed = first and time_of(first), false, true
end

-- Under which name a run with READY nodes in a lane is found.
local function lane_name(run, lane) return 'lane:' .. int(lane) .. ':' .. run.digest .. '\0' .. run.workflow end

-- In which sets a run is, and as what: decided by its row, so that this can be compared before and after. `unfinished` counts instead.
marks_of = function(run)
  local marks = {}
  if run.gone then return marks end
  if run.gate == G.OPEN then
    if run.due_first then marks.due = timed(run.due_first, run.packed) end
    if run.deadline_at then marks.deadlines = timed(run.deadline_at, run.packed) end
    if run.releasing then marks.releasing = run.packed end
    for lane, count in pairs(run.ready) do
      if count > 0 then marks[lane_name(run, lane)] = run.order end
    end
  elseif run.gate == G.HELD and run.expires then
    marks.held = timed(max(run.expires, run.reported), run.packed)
  end
  if run.cancel_at then marks.cancelling = timed(run.cancel_at, run.packed) end
  if run.status < R.COMPLETED then marks.unfinished = run.serving elseif run.ended_at then
    marks.ended = timed(run.ended_at, run.packed)
    marks.duration = timed(max(0, run.ended_at - (run.started_at or run.created_at)), run.packed)
  end
  if run.error then marks['runs:error:' .. run.error] = run.packed end
  if run.stopping and run.running > 0 then marks.stopping = run.packed end
  marks[listing.status_set(run.status)] = run.packed
  return marks
end

local COUNTED = {stopping = true, releasing = true} -- so that every call knows whether there is any

local function mark(name, member, there)
  if name == 'unfinished' then
    count(P .. name, member, there and 1 or -1)
  else
    put(index(name), member, there)
    if COUNTED[name] then set_counter(name, S.counters[name] + (there and 1 or -1)) end
  end
end

-- The sets say what the rows say: of runs whose changes are not written yet too.
update_marks = function()
  for k = 1, #S.run_order do
    local run = S.run_order[k]
    if run.changed then
      if run.moved then add_up(run) end
      update_due(run)
      local before, marks = run.marks or NONE, marks_of(run)
      for name, member in pairs(before) do
        if marks[name] ~= member then mark(name, member, false) end
      end
      for name, member in pairs(marks) do
        if before[name] ~= member then mark(name, member, true) end
      end
      run.marks = marks
    end
  end
end

local function wake_due(only, limit, touched)
  update_marks()
  local due = {}
  local open = function(run) return run.gate == G.OPEN and run.due_first or nil end
  for _, run in ipairs(due_runs('due', only, open, limit)) do
    for _, member in ipairs(first_of(index('run:due:' .. run.name), limit, nil, up_to_now())) do
      insert(due, {order = sub(member, 1, 7) .. run.packed .. sub(member, 8), run = run, i = unpack_bytes('>I4', member, 8)})
    end
  end
  sort(due, more_urgent)
  local woken = min(limit, #due)
  for k = 1, woken do
    local run = due[k].run
    local node = get_node(run, due[k].i)
    change(run, node, node.waiting > 0 and N.PENDING or N.READY)
    set_due(run, node, nil)
    note(run, K.woken, node.i, node.attempt, N.READY)
    touched[run] = true
  end
  return woken
end

local function pass_deadlines(only, limit, touched)
  update_marks()
  local open = function(run) return run.gate == G.OPEN and run.deadline_at or nil end
  local overdue = due_runs('deadlines', only, open, limit)
  for k = 1, min(limit, #overdue) do
    overdue[k].reason = 'deadline'
    close_gate(overdue[k], 'failed')
    touched[overdue[k]] = true
  end
end

local function left_held(only, op)
  update_marks()
  local left, gates = {}, {}
  if op.run then
    if only and only.gate == G.HELD and only.expires and only.expires <= now then left = {only} end
  else
    left = by_number(due_runs('held', nil, nil, 10000))
  end
  for k = 1, min(op.limit, #left) do
    local run = left[k]
    run.reported, run.changed = now + HAND_OUT, true
    gates[k] = {run.id, run.purpose or '', text(run, 'arguments') or ''}
  end
  return gates
end

local function next_due()
  local earliest
  for _, name in ipairs({'leases', 'due', 'deadlines', 'held', 'cancelling'}) do
    local first = first_of(index(name), 1)[1]
    if first and (not earliest or time_of(first) < earliest) then earliest = time_of(first) end
  end
  return earliest
end

ops.Sweep = function(op)
  if not op.run then forgive_an_outage() end
  local only = nil
  if op.run then only = get_run(op.run) or false end
  local lost, touched = {}, {}
  lose_expired(op, lost)
  hold_back(lost)
  for k = 1, #lost do touched[lost[k].run] = true end
  update_marks()
  fence_cancelled(only, op.limit, touched)
  for run in pairs(touched) do conclude(run) end
  release_any()
  local woken = wake_due(only, op.limit, touched)
  pass_deadlines(only, op.limit, touched)
  local runs, news = {}, {}
  for run in pairs(touched) do insert(runs, run) end
  for k, run in ipairs(by_number(runs)) do news[k] = news_of(run) end
  local gates = left_held(only, op)
  update_marks()
  local alive = #first_of(index('leases'), 100000, pack('>I7', now + 1))
  local soon = #first_of(index('releasing'), 1) > 0 and now or next_due()
  return {'Swept', #lost, woken, news, gates, soon or false, alive}
end

end
