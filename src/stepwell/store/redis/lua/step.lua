-- What a chain commits, over and over: the completion of a node together with the claim of what follows in its run. It is the same
-- as `settle` and `claim_nodes` one after the other, without their tables, in a third of the time. Whatever is not as usual is
-- found before anything is written, and left to them.

local take_step

do

local function none_ready(ready)
  for at = 3, #ready, 6 do
    if sub(ready, at, at + 3) ~= '\0\0\0\0' then return false end
  end
  return true
end

-- The only child of the node, if this node is all that it waits for: its number, its cell, and what the graph says of it.
local function find_child(key, digest, i, cells)
  local graph = graph_key('cells', digest)
  local layout = call('GETRANGE', graph, i * GRAPH_CELL, (i + 2) * GRAPH_CELL - 1)
  local child = call('GETRANGE', graph_key('child', digest), 4 * i, 4 * i + 3)
  if #child < 4 or has(byte(layout, 7), REMOVED) then return nil end
  child = unpack_bytes('>I4', child)
  if child == 0 or child == MANY then return nil end
  child = child - 1
  local cell = child == i + 1 and sub(cells, NODE_CELL + 1) or call('GETRANGE', key, child * NODE_CELL, (child + 1) * NODE_CELL - 1)
  if byte(cell) ~= N.PENDING or sub(cell, 6, 9) ~= '\0\0\0\1' then return nil end
  layout = child == i + 1 and sub(layout, GRAPH_CELL + 1)
    or call('GETRANGE', graph, child * GRAPH_CELL, (child + 1) * GRAPH_CELL - 1)
  return child, cell, layout
end

-- op: claim, ordinal, output; then claim_id, worker, lane, run.
take_step = function(op)
  local old = call('GET', P .. 'claim:' .. op.claim)
  if not old then return nil end
  local claimed_at, claim_number, running, size = unpack_bytes(CLAIM_HEAD, old)
  local cell_from = CLAIM_HEAD_SIZE + size + op.ordinal * CLAIM_CELL + 1
  if #old < cell_from + CLAIM_CELL - 1 then return nil end
  local run_packed, number, i, attempt = sub(old, cell_from, cell_from + 5), unpack_bytes('>I6I4I4', old, cell_from)
  if number == 0 then return nil end
  local name = int(number)
  local row_key, nodes_key = P .. 'run:row:' .. name, P .. 'run:nodes:' .. name
  local attempts_key = P .. 'run:attempts:' .. name
  local row = call('HMGET', row_key, 'cell', 'ready', 'id', 'digest')
  if row[3] ~= op.run or not none_ready(row[2]) then return nil end
  local status, gate, flags, open, active, failed, run_running, tolerated, seq, loaded, heals, orders = unpack_bytes(RUN_CELL, row[1])
  if status ~= R.RUNNING or gate ~= G.OPEN or flags ~= 0 or failed > 0 or open < 2 then return nil end
  local attempt_key = attempt_name(i, attempt)
  local value = call('HGET', attempts_key, attempt_key)
  local cells = call('GETRANGE', nodes_key, i * NODE_CELL, (i + 2) * NODE_CELL - 1)
  if not value or byte(value) ~= A.RUNNING or byte(cells) ~= N.RUNNING then return nil end
  local child, child_cell, layout = find_child(nodes_key, row[4], i, cells)
  if not child then return nil end
  local _, lane, child_flags = unpack_bytes('>I4I2B', layout)
  if lane ~= tonumber(call('HGET', P .. 'lanes', op.lane) or '-1') then return nil end
  local inputs = nil
  if has(child_flags, HAS_NEEDS) then
    if call('HGET', graph_key('needs', row[4]), pack('>I4', child)) ~= pack('>I4', i) or not op.output then return nil end
    inputs = {i, op.output}
  end
  local counters = call('HMGET', P .. 'counters', 'claims', 'stopping', 'releasing')
  if (counters[2] or '0') ~= '0' or (counters[3] or '0') ~= '0' then return nil end
  local lease = call('HMGET', worker_key(op.worker), 'until')[1]
  if not lease or tonumber(lease) <= now then return nil end
  local new_key = P .. 'claim:' .. op.claim_id
  if call('EXISTS', new_key) == 1 then return nil end

  -- From here on it is written.
  local claims, next_attempt = tonumber(counters[1] or '0') + 1, unpack_bytes('>I4', child_cell, 2) + 1
  local next_key = attempt_name(child, next_attempt)
  local output, moment = op.output, pack('>I7', now)
  call('SET', new_key, pack(CLAIM_HEAD, now, claims, 1, #op.worker) .. op.worker .. run_packed .. next_key)
  call('ZADD', P .. 'holding:' .. op.worker, '0', pack('>I6', claims) .. op.claim_id)
  call('SETRANGE', P .. 'claim:' .. op.claim, 0, pack(CLAIM_HEAD, claimed_at, claim_number, running - 1, size))
  if running == 1 then
    local worker = sub(old, CLAIM_HEAD_SIZE + 1, CLAIM_HEAD_SIZE + size)
    call('ZREM', P .. 'holding:' .. worker, pack('>I6', claim_number) .. op.claim)
  end
  local done = char(N.COMPLETED) .. sub(cells, 2, NODE_CELL)
  local begun = char(N.RUNNING) .. pack('>I4I4', next_attempt, 0) .. sub(child_cell, 10)
  if child == i + 1 then
    call('SETRANGE', nodes_key, i * NODE_CELL, done .. begun)
  else
    call('SETRANGE', nodes_key, i * NODE_CELL, done)
    call('SETRANGE', nodes_key, child * NODE_CELL, begun)
  end
  call('HSET', attempts_key,
    attempt_key, char(A.COMPLETED, output and 1 or 0) .. sub(value, 3, 8) .. pack('>I7', now + 1)
      .. sub(value, 16, 16 + byte(value, 16)) .. (output and pack('>I4', #output) .. output or ''),
    next_key, pack('>BBI2I4I7B', A.RUNNING, 0, 0, orders, 0, #op.claim_id) .. op.claim_id)
  call('RPUSH', P .. 'run:journal:' .. name,
    char(A.COMPLETED + ENDS) .. moment .. attempt_key .. char(N.COMPLETED), char(K.claimed) .. moment .. next_key)
  call('HSET', row_key, 'cell', sub(row[1], 1, 3)
    .. pack('>I4I4I4I4I4I6I4I4I4', open - 1, active, failed, run_running, tolerated, seq + 2, loaded, heals, orders + 1) .. sub(row[1], 42))
  call('HSET', P .. 'counters', 'claims', int(claims))
  local news = {row[3], status, gate, false, open - 1, active, failed, seq + 1} -- before the claim
  local grant = inputs and {0, row[3], child, next_attempt, 0, 0, 0, heals, 0, inputs} or {row[3], heals, '\0\0' .. next_key}
  return {{'settled', 'a', '\0\1', {news}}, {'claimed', {grant}, {}}}
end

end
