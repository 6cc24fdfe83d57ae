-- Graphs: a row for each node. Short lists of nodes stand in it; one that is missing there is long, and a row of `graph:lists`.

local INLINE = 8
local LISTS = {'parents', 'children', 'needs'}

local function graph_key(kind, digest) return P .. 'graph:' .. kind .. ':' .. digest end

local function refused(reason, detail) return {'Refused', reason, detail or ''} end

local function graph_in_use(digest)
  local known = S.graphs[digest]
  if not known then
    known = {
      digest = digest, layout = rows_of(graph_key('nodes', digest), read_layout, layout_text),
      lists = rows_of(graph_key('lists', digest)),
    }
    S.graphs[digest] = known
  end
  return known
end

-- The graph of a run is there: what says how much of it is loaded and used is read when somebody asks for it here.
local function get_graph(digest)
  local known = S.graphs[digest]
  if known == nil or known and not known.total then
    local f = call('HMGET', graph_key('row', digest), 'total', 'loaded', 'age', 'uses', 'workflow', 'edges')
    known = f[1] and graph_in_use(digest) or false
    if known then
      known.total, known.loaded, known.age, known.uses = tonumber(f[1]), tonumber(f[2]), tonumber(f[3]), tonumber(f[4])
      known.workflow, known.edges = f[5], f[6] or ''
    end
    S.graphs[digest] = known
  end
  return known
end

local function use_graph(graph, difference)
  graph.uses = graph.uses + difference
  graph.changed = true
  put(index('unused_graphs'), graph.digest, graph.uses == 0)
end

local function layout_of(graph, i) return get_row(graph.layout, i) end

-- A list of nodes of a node: four bytes for each.
local function list_of(graph, layout, name)
  local list = layout[name]
  if not list then
    list = get_row(graph.lists, name .. int(layout.i)) or ''
    layout[name] = list
  end
  local added = layout.added
  if added and name == 'children' then
    list = list .. concat(added)
    layout.children, layout.added = list, nil
  end
  return list
end

-- A list from numbers.
local function list_from(numbers)
  local parts = {}
  for k = 1, #numbers do parts[k] = pack('>I4', numbers[k]) end
  return concat(parts)
end

-- `most` of them, without the first `skip`.
local function some_of(list, most, skip)
  local nodes, count = {}, 0
  for at = 4 * (skip or 0) + 1, min(#list, 4 * ((skip or 0) + most)), 4 do
    count = count + 1
    nodes[count] = unpack_bytes('>I4', list, at)
  end
  return nodes
end

local function all_of(graph, layout, name) return some_of(list_of(graph, layout, name), math.huge) end

do

-- One more child of a node. Children come in order, so one that is not larger than the last was there before, when a graph
-- was deleted in part and stored again.
local function add_child(graph, parent, child)
  local layout = layout_of(graph, parent)
  if not layout.last then
    local list = list_of(graph, layout, 'children')
    layout.last = #list > 0 and unpack_bytes('>I4', list, #list - 3) or -1
  end
  if child <= layout.last then return end
  layout.added = layout.added or {}
  insert(layout.added, pack('>I4', child))
  layout.last, layout.many_children = child, layout.many_children + 1
  set_row(graph.layout, parent, layout)
end

-- Long lists are written apart from their rows.
local function keep_lists(graph)
  for i in pairs(graph.layout.changed or NONE) do
    local layout = graph.layout.known[i]
    for n = 1, layout and #LISTS or 0 do
      local name = LISTS[n]
      local list = (layout[name] or name == 'children' and layout.added) and list_of(graph, layout, name)
      if list and layout['many_' .. name] > INLINE then
        set_row(graph.lists, name .. int(layout.i), list)
        layout[name] = nil
      end
    end
  end
end

local function add_to_parents(graph, parents, child)
  want_rows(graph.layout, parents)
  for n = 1, #parents do add_child(graph, parents[n], child) end
end

-- The edges of a very wide node come before it, a part with each call, so that none takes long. How far that is stands in the
-- row of the graph; nobody can see it, as the graph is incomplete. Edges that are there already change nothing.

local function edges_text(child, count) return int(child) .. ' ' .. int(count) end

ops.AddEdges = function(op)
  local graph = get_graph(op.digest)
  if not graph or graph.loaded ~= op.child then return end
  if op.from > 0 and graph.edges ~= edges_text(op.child, op.from) then return end
  add_to_parents(graph, op.parents, op.child)
  keep_lists(graph)
  graph.edges, graph.changed = edges_text(op.child, op.from + #op.parents), true
end

local function new_graph(op)
  local graph = graph_in_use(op.digest)
  graph.total, graph.loaded, graph.age, graph.uses, graph.edges = op.total, 0, next_number('graphs'), 0, ''
  graph.workflow, graph.layout.fresh, graph.lists.fresh = op.workflow, true, true
  put(index('unused_graphs'), op.digest, true)
  later('HSET', graph_key('row', op.digest), 'total', int(op.total), 'age', int(graph.age), 'workflow', op.workflow,
    'signature', op.signature, 'document', payload(op.document) or '')
  return graph
end

ops.AddGraph = function(op)
  local graph = get_graph(op.digest)
  if op.start > (graph and graph.loaded or 0) then
    return refused('incomplete', 'the nodes before ' .. int(op.start) .. ' are not there yet')
  end
  if not graph then
    S.graphs[op.digest] = nil
    graph = new_graph(op)
  end
  graph.stored_at, graph.changed = now, true
  local first = graph.loaded
  for k = first - op.start + 1, #op.rows do
    local row, i = op.rows[k], graph.loaded
    set_row(graph.layout, i, {
      i = i, rank = row.rank, lane = new_lane(row.lane[1]), removed = row.removed or nil, careful = row.lane[3] == 1 or nil, id = row.id,
      parents = list_from(row.parents), children = '', needs = list_from(row.needs),
      many_parents = #row.parents, many_children = 0, many_needs = #row.needs,
    })
    graph.loaded = i + 1
  end
  for i = first, graph.loaded - 1 do
    local layout = layout_of(graph, i)
    -- Those of a very wide node have come before it. A parent may have a larger number than its child, in a run that was healed.
    if graph.edges ~= edges_text(i, layout.many_parents) then add_to_parents(graph, all_of(graph, layout, 'parents'), i) end
  end
  keep_lists(graph)
  return {'GraphAdded', op.digest, graph.loaded, graph.total}
end

ops.DeleteGraph = function(op)
  local graph = get_graph(op.digest)
  if not graph then return {'Deleted', 1} end
  if graph.uses > 0 then return refused('status', 'in use') end
  local left = max(0, graph.loaded - op.limit)
  if left == 0 then
    S.graphs[op.digest] = false
    put(index('unused_graphs'), op.digest, false)
    drop_rows(graph.layout)
    drop_rows(graph.lists)
    later('UNLINK', graph_key('row', op.digest))
    return {'Deleted', 1}
  end
  for i = left, graph.loaded - 1 do
    for k = 1, #LISTS do set_row(graph.lists, LISTS[k] .. int(i), false) end
    set_row(graph.layout, i, false)
  end
  graph.loaded, graph.edges, graph.changed = left, '', true
  return {'Deleted', 0}
end

end

local function write_graph(graph)
  if not graph.changed then return end
  local row = graph_key('row', graph.digest)
  call('HSET', row, 'loaded', int(graph.loaded), 'uses', int(graph.uses), 'edges', graph.edges)
  if graph.stored_at then call('HSET', row, 'stored_at', int(graph.stored_at)) end
end
