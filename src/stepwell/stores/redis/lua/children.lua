-- Nodes that are performed by runs: handing one over to a child run, and waking it when that has ended.

do

-- An attempt hands its node over to a child run: both, or neither.
ops.HandOver = function(op)
  local attempt, child = find_attempt(op.claim[1], op.ordinal[1]), op.child
  local running = attempt and attempt.status == A.RUNNING
  local why = running and refuse_create(child)
  if why then return why end
  local receipt = ops.Settle(op)
  if running and get_node(attempt.run, attempt.i).status < N.COMPLETED then
    create(child, attempt.run.status == R.PAUSED and PARENT_PAUSED or nil)
  end
  return receipt
end

-- A node that is parked goes on; behind a closed gate it is due when that opens.
local function wake(run, node)
  if not run.stopping and run.gate ~= G.OPEN then return set_due(run, node, now) end
  change(run, node, run.stopping and N.CANCELLED or node.waiting > 0 and N.PENDING or N.READY)
  node.reason = run.stopping and 'run_cancelled' or nil
  note(run, K.woken, node.i, node.attempt, node.status)
  conclude(run)
end

ops.Wake = function(op)
  local ended, run = op.ended and get_run(op.ended), get_run(op.run_id)
  if ended and ended.purpose == ENDED then
    ended.gate, ended.purpose, ended.expires, ended.changed = G.SHUT, nil, nil, true
  end
  local node = run and op.index >= 0 and op.index < run.loaded and get_node(run, op.index)
  if not node then return {'Woken', false, false} end
  if node.wakes and node.status == N.RUNNING then
    node.wakes = node.wakes + 1
    touch(run, node)
  elseif node.wakes and node.status == N.WAITING and not node.due_at then
    wake(run, node)
  end
  local queue = node.status == N.READY and string.match(lane_text(layout_of(graph_of(run), node.i).lane), '^%Z*')
  return {'Woken', news_of(run), queue}
end

end
