-- Forgetting ended runs, in parts, from the end.

do

-- With the last of its attempts a claim is gone.
local function forget_in_claim(attempt)
  local claim = get_claim(attempt.claim)
  if not claim then return end
  claim.left = claim.left - 1
  if attempt.status == A.RUNNING then count_running(claim, -1) end
  set_row(claims(), claim.id, claim.left > 0 and claim)
end

local function forget_nodes(run, left)
  local names, indexes = {}, numbers_from(left, run.loaded)
  want_rows(run.nodes, indexes)
  for _, i in ipairs(indexes) do
    local node = get_node(run, i)
    if node.status == N.RUNNING then run.running = run.running - 1 end
    count_node(run, node.status, -1)
    for number = 1, node.attempt do insert(names, attempt_name(i, number)) end
  end
  want_rows(run.attempts, names)
  for k = 1, #names do
    local attempt = get_attempt(run, unpack_bytes('>I4I4', names[k]))
    if attempt then
      for _, member in ipairs(lines.of(attempt)) do put(lines.set(run), member, false) end
      forget_in_claim(attempt)
      set_row(run.attempts, names[k], false)
    end
  end
  for _, i in ipairs(indexes) do set_row(run.nodes, i, false) end
end

-- Whether nothing is left of it.
local function forget_journal(run, count)
  journal_size(run)
  local stored = run.stored_journal
  while count > 0 and #run.journal > 0 do
    run.journal[#run.journal] = nil
    count = count - 1
  end
  if count > 0 and stored > 0 then
    stored = max(0, stored - count)
    if stored > 0 then
      later('LTRIM', run_key('journal', run), '0', int(stored - 1))
    else
      later('UNLINK', run_key('journal', run))
    end
  end
  run.stored_journal = stored
  return stored == 0 and #run.journal == 0
end

local RUN_KEYS = {'journal', 'lines', 'due', 'releases'}

local function forget_run(run)
  drop_queues(run)
  for _, kind in ipairs(RUN_KEYS) do later('UNLINK', run_key(kind, run)) end
  for _, rows in ipairs({run.row, run.nodes, run.attempts, blobs_of(run)}) do drop_rows(rows) end
  drop_index('run:due:' .. run.name)
  drop_index('run:lines:' .. run.name)
  local key = run.idempotency_key
  if key then
    S.keys[run.workflow .. '\0' .. key] = 0
    later('HDEL', P .. 'keys', run.workflow .. '\0' .. key)
  end
  S.numbers[run.id] = 0
  later('HDEL', P .. 'runs', run.id)
  listing.put(run, false)
  local used = run.former or {}
  used[run.digest] = true
  for digest in pairs(used) do
    local graph = get_graph(digest)
    if graph then use_graph(graph, -1) end
  end
  run.gone, run.changed = true, true
  S.runs[run.number] = false
end

-- The run that ended first, if that is long enough ago: a part of it, with each sweep.
ops.ForgetOld = function(op)
  update_marks()
  local first = first_of(index('ended'), 1, nil, pack('>I7', max(0, now - op.keep)))[1]
  local run = first and get_numbered((unpack_bytes('>I6', first, 8)))
  if run then ops.Delete({run_id = run.id, limit = LIMIT.nodes}) end
end

ops.Delete = function(op)
  local run = get_run(op.run_id)
  if not run then return {'Deleted', 1} end
  if run.purpose == ENDED then return refused('incomplete', ENDED) end
  if run.purpose ~= 'delete' and run.purpose ~= 'restore' and run.status < R.COMPLETED then return refused('status', RUN_NAMES[run.status]) end
  run.gate, run.expires, run.changed = G.HELD, 0, true
  run.purpose, run.token = 'delete', nil
  set_text(run, 'arguments', '')
  local left = max(0, run.loaded - op.limit)
  forget_nodes(run, left)
  run.loaded = left
  local empty = forget_journal(run, ENTRIES_A_NODE * op.limit)
  if left > 0 or not empty then return {'Deleted', 0} end
  forget_run(run)
  return {'Deleted', 1}
end

end
