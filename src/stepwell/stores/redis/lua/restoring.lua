-- Runs that come from another store, part by part, with their ids, times and seq.

do

local function restored_run(op, graph)
  local run = admit(op, graph, 'restore')
  if op.idempotency_key then keep_key(run, op) end
  return run
end

-- Nodes are counted as they come; the run shows the counts when it is whole.
local function restore_nodes(run, rows)
  for k = 1, #rows do
    local row = rows[k]
    if row.index == run.loaded then
      local node, status = new_node(layout_of(graph_of(run), row.index), row.status, row.lane[2] == 1), row.status
      for _, name in ipairs({'attempt', 'waiting', 'skipped', 'failures', 'losses', 'reason', 'generation', 'postponed'}) do
        node[name] = row[name]
      end
      if row.wakes > 0 then node.wakes = row.wakes end
      run.loaded = run.loaded + 1
      touch(run, node)
      set_due(run, node, row.due_at)
      if status == N.READY then mark_ready(run, node, true) end
      count_node(run, status, 1)
    end
  end
end

local function restore_attempts(run, rows)
  for k = 1, #rows do
    local row = rows[k]
    local claim = get_claim(row.claim) or new_claim(row.claim, '')
    if not claim_cell(claim, row.ordinal) then
      local attempt = new_attempt(run, claim, row.ordinal, row.index, row.number)
      attempt.status, attempt.worker, attempt.started_at, attempt.ended_at = row.status, row.worker, row.started_at, row.ended_at
      for _, name in ipairs(PAYLOADS) do attempt[name] = kept(run, row[name]) end
    end
  end
end

local function restore_journal(run, rows)
  for k = 1, #rows do
    local row = rows[k]
    if row.seq == journal_size(run) + 1 then insert(run.journal, pack_row(row.kind, row.at, row.index, row.attempt, row.status)) end
  end
end

local function restore_lines(run, rows)
  for k = 1, #rows do
    local row = rows[k]
    local attempt = find_attempt(row.claim, row.ordinal)
    if attempt and attempt.run == run and not lines.find(attempt, row.index) then
      lines.add(attempt, row.index, row.kind, args[row.data], row.at)
    end
  end
end

local function restore_former(run, digests)
  for _, digest in ipairs(digests) do
    run.former = run.former or {}
    if not run.former[digest] then
      run.former[digest] = true
      local graph = get_graph(digest)
      if graph and digest ~= run.digest then use_graph(graph, 1) end
    end
  end
end

ops.Restore = function(op)
  op.input, op.fork = args[op.input], op.fork and args[op.fork]
  local graph, run = get_graph(op.digest), get_run(op.run_id)
  if run and run.purpose ~= 'restore' and run.created_at == op.created_at and run.seed == op.seed then
    return {'Restored', run.loaded, 1} -- it is this run: it was asked before
  end
  if not graph then return refused('unknown', 'graph ' .. op.digest) end
  if graph.loaded < graph.total then return refused('incomplete', 'graph ' .. op.digest) end
  if run and run.purpose ~= 'restore' then return refused('conflict', run.id) end
  if op.illegal then return refused('status', op.illegal) end
  if not run and op.idempotency_key and run_of_key(op) then return refused('conflict', op.run_id) end
  run = run or restored_run(op, graph)
  run.expires, run.changed = now + LOAD_LEASE, true
  restore_nodes(run, op.nodes)
  restore_attempts(run, op.attempts)
  restore_journal(run, op.journal)
  restore_lines(run, op.lines)
  restore_former(run, op.former_graphs)
  if not op.finish then return {'Restored', run.loaded, 0} end
  if run.loaded < graph.total or journal_size(run) < op.seq then
    return refused('incomplete', int(run.loaded) .. ' nodes and ' .. int(journal_size(run)) .. ' entries are there')
  end
  add_up(run)
  run.status, run.gate, run.expires, run.seq, run.heals, run.tolerated = op.status, op.gate, nil, op.seq, op.heals, op.tolerated
  run.stopping = op.stopping and op.gate ~= G.OPEN
  run.started_at, run.ended_at, run.deadline_at = op.started_at, op.ended_at, op.deadline_at
  run.purpose = nil
  run.reason, run.error = op.reason, op.error
  return {'Restored', run.loaded, 1}
end

end
