-- Graphs: a fixed cell for each node, and apart from it what does not fit: more than one parent or child, and needs.

local GRAPH_CELL = 20
local HAS_PARENTS, HAS_CHILDREN, HAS_NEEDS = 1, 2, 4 -- in the hashes
local REMOVED, CAREFUL = 8, 16

local function graph_key(kind, digest) return P .. 'graph:' .. kind .. ':' .. digest end

local function get_graph(digest)
  local known = S.graphs[digest]
  if known == nil then
    local f = call('HMGET', graph_key('row', digest), 'total', 'loaded', 'age', 'uses', 'workflow', 'early')
    known = f[1] and {
      digest = digest, total = tonumber(f[1]), loaded = tonumber(f[2]), stored = tonumber(f[2]), age = tonumber(f[3]),
      uses = tonumber(f[4]), workflow = f[5], early = tonumber(f[6]), cells = {}, parents = {}, children = {}, needs = {},
      touched = {}, more = {}, ids = {},
    } or false
    S.graphs[digest] = known
  end
  return known
end

local function use_graph(graph, difference)
  graph.uses = graph.uses + difference
  graph.changed = true
  put(index('unused_graphs'), graph.digest, graph.uses == 0)
end

local function read_cell(graph, text, at)
  local rank, lane, flags, parents, parent, child, _ = unpack_bytes('>I4I2BI4I4I4B', text, at)
  return {rank = rank, lane = lane, flags = flags, parents = parents, parent = parent, child = child}
end

local function graph_cell(graph, i)
  local known = graph.cells[i]
  if not known then
    local text = call('GETRANGE', graph_key('cells', graph.digest), i * GRAPH_CELL, (i + 2) * GRAPH_CELL - 1)
    known = read_cell(graph, text, 1)
    graph.cells[i] = known
    if i + 1 < graph.loaded and not graph.cells[i + 1] then graph.cells[i + 1] = read_cell(graph, text, GRAPH_CELL + 1) end
  end
  return known
end

-- Read many cells at once: one piece when they lie close together.
local function want_cells(graph, indexes)
  local missing, low, high = {}, math.huge, -1
  for k = 1, #indexes do
    local i = indexes[k]
    if not graph.cells[i] and i < graph.loaded then
      missing[#missing + 1] = i
      low, high = min(low, i), max(high, i)
    end
  end
  if #missing < 2 or high - low > 4 * #missing + 32 then return end
  local text = call('GETRANGE', graph_key('cells', graph.digest), low * GRAPH_CELL, (high + 1) * GRAPH_CELL - 1)
  for k = 1, #missing do
    local i = missing[k]
    graph.cells[i] = read_cell(graph, text, (i - low) * GRAPH_CELL + 1)
  end
end

local function has(flags, flag) return floor(flags / flag) % 2 == 1 end

local function read_numbers(text)
  local numbers = {}
  for at = 1, #text, 4 do numbers[#numbers + 1] = (unpack_bytes('>I4', text, at)) end
  return numbers
end

local function related(graph, kind, i)
  local known = graph[kind][i]
  if not known then
    known = read_numbers(call('HGET', graph_key(kind, graph.digest), pack('>I4', i)) or '')
    graph[kind][i] = known
  end
  return known
end

local function parents_of(graph, i)
  local cell = graph_cell(graph, i)
  if has(cell.flags, HAS_PARENTS) then return related(graph, 'parents', i) end
  return cell.parents == 0 and {} or {cell.parent}
end

local function children_of(graph, i)
  local cell = graph_cell(graph, i)
  if has(cell.flags, HAS_CHILDREN) then return related(graph, 'children', i) end
  return cell.child == 0 and {} or {cell.child - 1}
end

local function needs_of(graph, i)
  if has(graph_cell(graph, i).flags, HAS_NEEDS) then return related(graph, 'needs', i) end
  return {}
end

local function refused(reason, detail) return {'refused', reason, detail or ''} end

local add_graph

do

-- One more child of a node. Children come in order, so one that is not larger than the last was there before, when a graph
-- was deleted in part and stored again.
local function add_child(graph, parent, child, loaded_before)
  local children = graph.children[parent]
  if not children then
    local cell = parent < graph.loaded and graph_cell(graph, parent)
    if cell and not has(cell.flags, HAS_CHILDREN) then
      if cell.child == 0 then
        cell.child = child + 1
        graph.touched[parent] = true
        return
      end
      if cell.child > child then return end
      children = {cell.child - 1}
      graph.children[parent] = children
    else
      children = related(graph, 'children', parent)
    end
  end
  if children[#children] and children[#children] >= child then return end
  children[#children + 1] = child
  graph.more[parent] = true
  if parent < graph.loaded then
    local cell = graph_cell(graph, parent)
    if not has(cell.flags, HAS_CHILDREN) then cell.flags = cell.flags + HAS_CHILDREN end
    graph.touched[parent] = true
  else
    graph.early = 1 -- its number is larger than that of a child, as a run that was healed may have it
  end
end

local function new_graph(op)
  local graph = {
    digest = op.digest, total = op.total, loaded = 0, stored = 0, age = next_number('graphs'), uses = 0, early = 0,
    workflow = op.workflow, cells = {}, parents = {}, children = {}, needs = {}, touched = {}, more = {}, ids = {},
  }
  S.graphs[op.digest] = graph
  put(index('unused_graphs'), op.digest, true)
  later('HSET', graph_key('row', op.digest), 'total', int(op.total), 'age', int(graph.age), 'workflow', op.workflow,
    'signature', op.signature, 'document', op.document or '')
  return graph
end

add_graph = function(op)
  local graph = get_graph(op.digest)
  if op.start > (graph and graph.loaded or 0) then
    return refused('incomplete', 'the nodes before ' .. int(op.start) .. ' are not there yet')
  end
  graph = graph or new_graph(op)
  graph.stored_at, graph.changed = now, true
  local parents, needs, first = {}, {}, graph.loaded
  for k = graph.loaded - op.start + 1, #op.rows do
    local row, i, flags = op.rows[k], graph.loaded, op.rows[k].flags
    if #row.parents > 4 then
      flags = flags + HAS_PARENTS
      insert(parents, pack('>I4', i))
      insert(parents, row.parents)
    end
    if #row.needs > 0 then
      flags = flags + HAS_NEEDS
      insert(needs, pack('>I4', i))
      insert(needs, row.needs)
    end
    if graph.early == 1 and #related(graph, 'children', i) > 0 then flags = flags + HAS_CHILDREN end
    local of = read_numbers(row.parents)
    graph.cells[i] =
      {rank = row.rank, lane = new_lane(row.lane), flags = flags, parents = #of, parent = of[1] or 0, child = 0}
    graph.parents[i], graph.needs[i], graph.touched[i] = of, read_numbers(row.needs), true
    if not has(flags, HAS_CHILDREN) then graph.children[i] = nil end
    insert(graph.ids, row.id)
    graph.loaded = graph.loaded + 1
  end
  for i = first, graph.loaded - 1 do
    local of = graph.parents[i]
    want_cells(graph, of)
    for n = 1, #of do add_child(graph, of[n], i) end
  end
  if #parents > 0 then later('many', 'HSET', graph_key('parents', op.digest), parents) end
  if #needs > 0 then later('many', 'HSET', graph_key('needs', op.digest), needs) end
  return {'graph_added', graph.loaded, graph.total}
end

end

local function pack_numbers(numbers)
  local packed = {}
  for k = 1, #numbers do packed[k] = pack('>I4', numbers[k]) end
  return concat(packed)
end

-- Neighbouring cells are written as one piece.
local function write_cells(key, width, touched, packed)
  local indexes = {}
  for i in pairs(touched) do indexes[#indexes + 1] = i end
  sort(indexes)
  local k = 1
  while k <= #indexes do
    local first, piece = indexes[k], {}
    repeat
      piece[#piece + 1] = packed(indexes[k])
      k = k + 1
    until indexes[k] ~= first + #piece
    call('SETRANGE', key, first * width, concat(piece))
  end
end

local function write_graph(graph)
  if not graph.changed then return end
  local row = graph_key('row', graph.digest)
  call('HSET', row, 'loaded', int(graph.loaded), 'uses', int(graph.uses), 'early', int(graph.early))
  if graph.stored_at then call('HSET', row, 'stored_at', int(graph.stored_at)) end
  if #graph.ids > 0 then send_many('RPUSH', graph_key('ids', graph.digest), graph.ids) end
  write_cells(graph_key('cells', graph.digest), GRAPH_CELL, graph.touched, function(i)
    local cell = graph.cells[i]
    return pack('>I4I2BI4I4I4B', cell.rank, cell.lane, cell.flags, cell.parents, cell.parent, cell.child, 0)
  end)
  local more = {}
  for i in pairs(graph.more) do
    insert(more, pack('>I4', i))
    insert(more, pack_numbers(graph.children[i]))
  end
  send_many('HSET', graph_key('children', graph.digest), more)
end

-- Write what is pending of a graph in its turn, before a command that takes a part of it away.
local function write_graph_now(graph)
  local pending = {}
  for name, value in pairs(graph) do pending[name] = value end
  graph.ids, graph.touched, graph.more = {}, {}, {}
  later(function() write_graph(pending) end)
end

local function delete_graph(op)
  local graph = get_graph(op.digest)
  if not graph then return {'deleted', 1} end
  if graph.uses > 0 then return refused('status', 'in use') end
  local left = max(0, graph.loaded - op.limit)
  write_graph_now(graph)
  if left == 0 then
    S.graphs[op.digest] = false
    put(index('unused_graphs'), op.digest, false)
    for _, kind in ipairs({'row', 'cells', 'ids', 'parents', 'children', 'needs'}) do
      later('UNLINK', graph_key(kind, op.digest))
    end
    return {'deleted', 1}
  end
  for i = left, graph.loaded - 1 do graph.cells[i] = nil end
  graph.loaded, graph.early, graph.changed = left, 1, true
  later('LTRIM', graph_key('ids', op.digest), '0', int(left - 1))
  return {'deleted', 0}
end
