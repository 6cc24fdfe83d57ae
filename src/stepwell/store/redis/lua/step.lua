-- What a chain commits, over and over: the completion of a node together with the claim of what follows in its run. It is the same
-- as `settle` and `claim` one after the other, without their tables, in a third of the time. Whatever is not as usual is
-- found before anything is written, and left to them.

local take_step

do

local RUN_HEAD = '>BBBI4I4I4I4I4I6I4I4I4' -- how RUN_CELL begins
local STEP = '>I8I4I4I8I4I4I4BI4' -- now, open, active, seq, child, attempt, heals, whether it needs the output, of which node

local function none_ready(ready)
  for at = 3, #ready, 6 do
    if sub(ready, at, at + 3) ~= '\0\0\0\0' then return false end
  end
  return true
end

-- The only child of the node, if this node is all that it waits for: its number, its cell, and what the graph says of it.
local function find_child(key, digest, i, cells)
  local graph = graph_key('cells', digest)
  local layout, child = call('GETRANGE', graph, int(i * GRAPH_CELL), int((i + 2) * GRAPH_CELL - 1)), i + 1
  if has(byte(layout, 7), REMOVED) then return nil end
  if byte(layout, GRAPH_CELL) == 0 then
    child = call('GETRANGE', graph_key('child', digest), 4 * i, 4 * i + 3)
    child = #child == 4 and unpack_bytes('>I4', child) or 0
    if child == 0 or child == MANY then return nil end
    child = child - 1
  end
  if child == i + 1 then
    layout, cells = sub(layout, GRAPH_CELL + 1), sub(cells, NODE_CELL + 1)
  else
    cells = call('GETRANGE', key, child * NODE_CELL, (child + 1) * NODE_CELL - 1)
    layout = call('GETRANGE', graph, child * GRAPH_CELL, (child + 1) * GRAPH_CELL - 1)
  end
  local status, attempt, waiting = unpack_bytes('>BI4I4', cells)
  if status ~= N.PENDING or waiting ~= 1 then return nil end
  return child, attempt + 1, sub(cells, 10), layout
end

-- op: claim, ordinal, output; then claim_id, worker, lane, run.
take_step = function(op, marker)
  local world = call('HMGET', MARKER, 'marker', 'claims', 'stopping', 'releasing', 'lane:' .. op.lane, 'lease:' .. op.worker)
  if world[1] ~= marker or (world[3] or '0') ~= '0' or (world[4] or '0') ~= '0' then return nil end
  if not world[5] or not world[6] or tonumber(world[6]) <= now then return nil end
  local old_key = P .. 'claim:' .. op.claim
  local old = call('GET', old_key)
  if not old then return nil end
  local claimed_at, claim_number, running, size = unpack_bytes(CLAIM_HEAD, old)
  local cell_from = CLAIM_HEAD_SIZE + size + op.ordinal * CLAIM_CELL + 1
  if #old < cell_from + CLAIM_CELL - 1 then return nil end
  local number, i, attempt = unpack_bytes('>I6I4I4', old, cell_from)
  if number == 0 then return nil end
  local name = int(number)
  local row_key, nodes_key = P .. 'run:row:' .. name, P .. 'run:nodes:' .. name
  local row = call('HMGET', row_key, 'cell', 'ready', 'id', 'digest')
  if row[3] ~= op.run or not none_ready(row[2]) then return nil end
  local status, gate, flags, open, active, failed, run_running, tolerated, seq, loaded, heals, orders = unpack_bytes(RUN_HEAD, row[1])
  if status ~= R.RUNNING or gate ~= G.OPEN or flags ~= 0 or failed > 0 or open < 2 then return nil end
  local cells = call('GETRANGE', nodes_key, int(i * NODE_CELL), int((i + 2) * NODE_CELL - 1))
  local attempt_key = sub(old, cell_from + 6, cell_from + 13)
  if byte(cells) ~= N.RUNNING or sub(cells, 2, 5) ~= sub(attempt_key, 5) then return nil end
  local child, next_attempt, child_rest, layout = find_child(nodes_key, row[4], i, cells)
  if not child then return nil end
  local _, lane, child_flags = unpack_bytes('>I4I2B', layout)
  if lane ~= tonumber(world[5]) then return nil end
  local needs = has(child_flags, HAS_NEEDS)
  if needs and call('HGET', graph_key('needs', row[4]), pack('>I4', child)) ~= pack('>I4', i) then return nil end
  local claims, next_key = tonumber(world[2] or '0') + 1, attempt_name(child, next_attempt)
  local claim = pack(CLAIM_HEAD, now, claims, 1, #op.worker) .. op.worker .. sub(old, cell_from, cell_from + 5) .. next_key .. pack('>I4', orders)
  if not call('SET', P .. 'claim:' .. op.claim_id, claim, 'NX') then return nil end

  -- From here on it is written.
  local moment, holding = pack('>I7', now), P .. 'holding:'
  call('ZADD', holding .. op.worker, '0', pack('>I6', claims) .. op.claim_id)
  if running == 1 then
    call('ZREM', holding .. sub(old, CLAIM_HEAD_SIZE + 1, CLAIM_HEAD_SIZE + size), pack('>I6', claim_number) .. op.claim)
  end
  if #old > CLAIM_HEAD_SIZE + size + CLAIM_CELL then
    call('SETRANGE', old_key, 0, pack(CLAIM_HEAD, claimed_at, claim_number, running - 1, size))
  end
  local done = char(N.COMPLETED) .. sub(cells, 2, NODE_CELL)
  local begun = pack('>BI4I4', N.RUNNING, next_attempt, 0) .. child_rest
  if child == i + 1 then
    call('SETRANGE', nodes_key, int(i * NODE_CELL), done .. begun)
  else
    call('SETRANGE', nodes_key, i * NODE_CELL, done)
    call('SETRANGE', nodes_key, child * NODE_CELL, begun)
  end
  call('HSET', P .. 'run:attempts:' .. name, attempt_key, completed_value(op.ordinal, op.claim, op.output),
    next_key, pack(ATTEMPT_HEAD, A.RUNNING, 0, 0, 0, #op.claim_id) .. op.claim_id)
  call('RPUSH', P .. 'run:journal:' .. name,
    char(A.COMPLETED + ENDS) .. moment .. attempt_key .. char(N.COMPLETED), char(K.claimed) .. moment .. next_key)
  call('HSET', row_key, 'cell', sub(row[1], 1, 3)
    .. pack('>I4I4I4I4I4I6I4I4I4', open - 1, active, failed, run_running, tolerated, seq + 2, loaded, heals, orders + 1) .. sub(row[1], 42))
  call('HSET', MARKER, 'claims', int(claims))
  -- The run as it was between the two.
  return pack(STEP, now, open - 1, active, seq + 1, child, next_attempt, heals, needs and 1 or 0, i)
end

end
