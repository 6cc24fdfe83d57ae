-- Graphs: a fixed cell for each node, and apart from it what does not fit: more than one parent or child, and needs.

local GRAPH_CELL = 16
local HAS_PARENTS, HAS_NEEDS = 1, 4 -- in the hashes
local MANY = 4294967295
local REMOVED, CAREFUL = 8, 16

local function graph_key(kind, digest) return P .. 'graph:' .. kind .. ':' .. digest end

local function get_graph(digest)
  local known = S.graphs[digest]
  if known == nil then
    local f = call('HMGET', graph_key('row', digest), 'total', 'loaded', 'age', 'uses', 'workflow', 'edges')
    known = f[1] and {
      digest = digest, total = tonumber(f[1]), loaded = tonumber(f[2]), stored = tonumber(f[2]), age = tonumber(f[3]),
      uses = tonumber(f[4]), workflow = f[5], cells = {}, child = {}, parents = {}, children = {}, needs = {},
      child_touched = {}, touched = {}, more = {}, ids = {}, joins = {}, wide = {}, edges = f[6] or '',
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
  local rank, lane, flags, parents, parent = unpack_bytes('>I4I2BI4I4', text, at)
  return {rank = rank, lane = lane, flags = flags, parents = parents, parent = parent}
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
    local added = kind == 'children' and graph.more[i] and concat(graph.more[i]) or kind == 'parents' and graph.wide[i]
    if not added then added = not graph.fresh and call('HGET', graph_key(kind, graph.digest), pack('>I4', i)) or '' end
    known = read_numbers(added)
    graph[kind][i] = known
  end
  return known
end

local function parents_of(graph, i)
  local cell = graph_cell(graph, i)
  if has(cell.flags, HAS_PARENTS) then return related(graph, 'parents', i) end
  return cell.parents == 0 and {} or {cell.parent}
end

-- The next parents of a node: a very long list is not taken apart whole.
local function some_parents(graph, i, from, count)
  local known, all = graph.parents[i], graph_cell(graph, i).parents
  if all <= count or known then
    known = known or parents_of(graph, i)
    return from == 0 and all <= count and known or {unpack(known, from + 1, min(all, from + count))}
  end
  local text = graph.wide[i] or call('HGET', graph_key('parents', graph.digest), pack('>I4', i))
  return read_numbers(sub(text, 4 * from + 1, 4 * (from + count)))
end

-- The only child of a node, one too large; 0: it has none; MANY: they are in the hash.
local function child_of(graph, i)
  local known = graph.child[i]
  if not known then
    for _, join in ipairs(graph.joins) do
      if join[1] <= i and i <= join[2] then return join[3] end
    end
    local text = graph.fresh and '' or call('GETRANGE', graph_key('child', graph.digest), 4 * i, 4 * i + 3)
    known = text ~= '' and unpack_bytes('>I4', text) or 0
    graph.child[i] = known
  end
  return known
end

local function want_child(graph, indexes)
  local low, high = math.huge, -1
  for k = 1, #indexes do low, high = min(low, indexes[k]), max(high, indexes[k]) end
  if #indexes < 2 or high - low > 4 * #indexes + 32 or #graph.joins > 0 or graph.fresh then return end
  local text = call('GETRANGE', graph_key('child', graph.digest), 4 * low, 4 * high + 3)
  for k = 1, #indexes do
    local i = indexes[k]
    local from = 4 * (i - low) + 1
    if not graph.child[i] then graph.child[i] = from < #text and unpack_bytes('>I4', text, from) or 0 end
  end
end

local function children_of(graph, i)
  local child = child_of(graph, i)
  if child == MANY then return related(graph, 'children', i) end
  return child == 0 and {} or {child - 1}
end

local function needs_of(graph, i)
  if has(graph_cell(graph, i).flags, HAS_NEEDS) then return related(graph, 'needs', i) end
  return {}
end

local function refused(reason, detail) return {'refused', reason, detail or ''} end

local add_graph, add_edges

do

-- One more child of a node. Children come in order, so one that is not larger than the last was there before, when a graph
-- was deleted in part and stored again. A parent may have a larger number than its child, in a run that was healed.
local function add_child(graph, parent, child)
  local first = child_of(graph, parent)
  if first == 0 then
    graph.child[parent], graph.child_touched[parent] = child + 1, true
    return
  end
  local list = graph.more[parent] -- as it is stored: of a long one only the end is looked at
  if first ~= MANY then
    if first > child then return end
    list = {pack('>I4', first - 1)}
    graph.child[parent], graph.child_touched[parent] = MANY, true
  elseif not list then
    list = {call('HGET', graph_key('children', graph.digest), pack('>I4', parent))}
  end
  if unpack_bytes('>I4', list[#list], #list[#list] - 3) >= child then return end
  list[#list + 1] = pack('>I4', child)
  graph.more[parent], graph.children[parent] = list, nil
end

-- The join of a wide fan: neighbours that have no child yet are told in one piece.
local function add_join(graph, first, count, child)
  for i = first, first + count - 1 do
    if graph.child[i] ~= nil then return false end
  end
  for _, join in ipairs(graph.joins) do
    if first <= join[2] and join[1] < first + count then return false end
  end
  local text = graph.fresh and '' or call('GETRANGE', graph_key('child', graph.digest), 4 * first, 4 * (first + count) - 1)
  if text ~= rep('\0', #text) then return false end
  later('SETRANGE', graph_key('child', graph.digest), int(4 * first), rep(pack('>I4', child + 1), count))
  insert(graph.joins, {first, first + count - 1, child + 1})
  return true
end

local function add_to_parents(graph, parents, child)
  for n = 1, #parents do add_child(graph, parents[n], child) end
end

-- The edges of a very wide node come before it, a part with each call, so that none takes long. How far that is stands in the
-- row of the graph; nobody can see it, as the graph is incomplete. Edges that are there already change nothing.

local function edges_text(child, count) return int(child) .. ' ' .. int(count) end

local function edges_are_there(graph, child, count) return count > 0 and graph.edges == edges_text(child, count) end

add_edges = function(op)
  local graph = get_graph(op.digest)
  if not graph or graph.loaded ~= op.child then return end
  if op.from > 0 and graph.edges ~= edges_text(op.child, op.from) then return end
  if op.first < 0 then
    add_to_parents(graph, read_numbers(op.parents), op.child)
  elseif not add_join(graph, op.first, op.count, op.child) then
    for i = op.first, op.first + op.count - 1 do add_child(graph, i, op.child) end
  end
  graph.edges, graph.changed = edges_text(op.child, op.from + op.count), true
end

local function new_graph(op)
  local graph = {
    digest = op.digest, total = op.total, loaded = 0, stored = 0, age = next_number('graphs'), uses = 0, fresh = true,
    workflow = op.workflow, cells = {}, child = {}, parents = {}, children = {}, needs = {}, child_touched = {}, touched = {}, more = {},
    ids = {}, joins = {}, wide = {}, edges = '',
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
    local of, parent = nil, 0
    if edges_are_there(graph, i, #row.parents / 4) then -- a list that is too long to be taken apart
      parent, graph.wide[i] = unpack_bytes('>I4', row.parents), row.parents
    else
      of = read_numbers(row.parents)
      parent = of[1] or 0
    end
    graph.cells[i] =
      {rank = row.rank, lane = new_lane(row.lane), flags = flags, parents = #row.parents / 4, parent = parent}
    graph.parents[i], graph.needs[i], graph.touched[i] = of, read_numbers(row.needs), true
    insert(graph.ids, row.id)
    graph.loaded = graph.loaded + 1
  end
  for i = first, graph.loaded - 1 do
    if graph.parents[i] then add_to_parents(graph, graph.parents[i], i) end
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
  call('HSET', row, 'loaded', int(graph.loaded), 'uses', int(graph.uses))
  if graph.edges ~= '' then call('HSET', row, 'edges', graph.edges) end
  if graph.stored_at then call('HSET', row, 'stored_at', int(graph.stored_at)) end
  if #graph.ids > 0 then send_many('RPUSH', graph_key('ids', graph.digest), graph.ids) end
  write_cells(graph_key('cells', graph.digest), GRAPH_CELL, graph.touched, function(i)
    local cell = graph.cells[i]
    return pack('>I4I2BI4I4B', cell.rank, cell.lane, cell.flags, cell.parents, cell.parent, 0)
  end)
  write_cells(graph_key('child', graph.digest), 4, graph.child_touched, function(i) return pack('>I4', graph.child[i]) end)
  local more = {}
  for i, list in pairs(graph.more) do
    insert(more, pack('>I4', i))
    insert(more, concat(list))
  end
  send_many('HSET', graph_key('children', graph.digest), more)
end

-- Write what is pending of a graph in its turn, before a command that takes a part of it away.
local function write_graph_now(graph)
  local pending = {}
  for name, value in pairs(graph) do pending[name] = value end
  pending.cells, pending.child = {}, {}
  for i in pairs(graph.touched) do pending.cells[i] = graph.cells[i] end
  for i in pairs(graph.child_touched) do pending.child[i] = graph.child[i] end
  graph.ids, graph.touched, graph.child_touched = {}, {}, {} -- lists of children are written again, which changes nothing
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
    for _, kind in ipairs({'row', 'cells', 'child', 'ids', 'parents', 'children', 'needs'}) do
      later('UNLINK', graph_key(kind, op.digest))
    end
    return {'deleted', 1}
  end
  for i = left, graph.loaded - 1 do graph.cells[i] = nil end
  graph.loaded, graph.changed = left, true
  later('LTRIM', graph_key('ids', op.digest), '0', int(left - 1))
  return {'deleted', 0}
end
