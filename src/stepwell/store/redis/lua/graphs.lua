-- Graphs: a fixed cell for each node, and apart from it what does not fit: more than one parent or child, and needs.

local GRAPH_CELL = 16
local HAS_PARENTS, HAS_NEEDS = 1, 4 -- in the hashes
local MANY = 4294967295
local REMOVED, CAREFUL = 8, 16

local function graph_key(kind, digest) return P .. 'graph:' .. kind .. ':' .. digest end

-- Most calls only look at a graph: what is added to it has tables of its own (`for_adding`).
local NOTHING = {}

local function bare_graph(digest)
  return {
    digest = digest, cells = {}, low = 1, high = 0, text = '', child = {}, child_low = 1, child_high = 0, child_text = '',
    parents = {}, children = {}, needs = {}, touched = NOTHING, child_touched = NOTHING, more = NOTHING, ids = NOTHING,
    joins = NOTHING, wide = NOTHING, edges = '',
  }
end

local function for_adding(graph)
  if graph.touched ~= NOTHING then return end
  graph.touched, graph.child_touched, graph.more, graph.ids, graph.joins, graph.wide = {}, {}, {}, {}, {}, {}
end

local function get_graph(digest)
  local known = S.graphs[digest]
  if known == nil or known and not known.total then
    local f = call('HMGET', graph_key('row', digest), 'total', 'loaded', 'age', 'uses', 'workflow', 'edges')
    known = f[1] and (known or bare_graph(digest)) or false
    if known then
      known.total, known.loaded, known.age, known.uses = tonumber(f[1]), tonumber(f[2]), tonumber(f[3]), tonumber(f[4])
      known.workflow, known.edges = f[5], f[6] or ''
    end
    S.graphs[digest] = known
  end
  return known
end

-- The graph of a run is there: its row is not read before somebody asks for it with get_graph.
local function graph_in_use(digest)
  local known = S.graphs[digest]
  if not known then
    known = bare_graph(digest)
    S.graphs[digest] = known
  end
  return known
end

local function use_graph(graph, difference)
  graph.uses = graph.uses + difference
  graph.changed = true
  put(index('unused_graphs'), graph.digest, graph.uses == 0)
end

-- Cells are bytes: rank (4), lane (2), flags (1), count of parents (4), first parent (4), whether the next node is the only child (1). Where that of a node stands: a text and a
-- position in it. Of those that are asked for one by one, the next is read along: it is often the child.
local function cell_at(graph, i)
  local own = graph.cells[i]
  if own then return own, 1 end
  if i >= graph.low and i <= graph.high then return graph.text, (i - graph.low) * GRAPH_CELL + 1 end
  local text = call('GETRANGE', graph_key('cells', graph.digest), i * GRAPH_CELL, (i + 2) * GRAPH_CELL - 1)
  own = sub(text, 1, GRAPH_CELL)
  graph.cells[i] = own
  if #text > GRAPH_CELL and not graph.cells[i + 1] then graph.cells[i + 1] = sub(text, GRAPH_CELL + 1) end
  return own, 1
end

local function flags_of(graph, i)
  if not graph.cells[i] and i >= graph.low and i <= graph.high then return byte(graph.text, (i - graph.low) * GRAPH_CELL + 7) end
  local text, at = cell_at(graph, i)
  return byte(text, at + 6)
end

local function parent_count(graph, i)
  local text, at = cell_at(graph, i)
  return (unpack_bytes('>I4', text, at + 7))
end

-- From the smallest to the largest of some numbers, if they lie close together.
local function span_of(indexes)
  local low, high = math.huge, -1
  for k = 1, #indexes do
    local i = indexes[k]
    if i < low then low = i end
    if i > high then high = i end
  end
  if #indexes < 2 or high - low > 4 * #indexes + 32 then return 1, 0 end
  return low, high
end

-- Read many cells in one piece.
local function want_cells(graph, indexes, all_between)
  local low, high = span_of(indexes)
  if all_between then low, high = indexes[1], indexes[2] end
  if low > high or low >= graph.low and high <= graph.high then return end
  graph.text = call('GETRANGE', graph_key('cells', graph.digest), low * GRAPH_CELL, (high + 1) * GRAPH_CELL - 1)
  graph.low, graph.high = low, low + floor(#graph.text / GRAPH_CELL) - 1
end

local function has(flags, flag) return floor(flags / flag) % 2 == 1 end

local function read_numbers(text)
  local numbers = {}
  for at = 1, #text, 4 do numbers[#numbers + 1] = (unpack_bytes('>I4', text, at)) end
  return numbers
end

-- Lists of nodes, in which neighbours are one piece, so that a very wide node has a short one.

local lists = {RANGE = 2147483648} -- one name for all of them, because one function has at most 200 local names

function lists.size(text)
  local size, at = 0, 1
  while at <= #text do
    if byte(text, at) >= 128 then
      size, at = size + unpack_bytes('>I4', text, at + 4), at + 8
    else
      size, at = size + 1, at + 4
    end
  end
  return size
end

-- At most `most` of its nodes from a position on, and the position after them: a byte, and how many of its range are left out.
function lists.read(text, most, at, skip)
  local nodes, count = {}, 0
  at, skip = at or 1, skip or 0
  while at <= #text and count < most do
    local first, size = unpack_bytes('>I4', text, at), 1
    if first >= lists.RANGE then first, size = first - lists.RANGE, unpack_bytes('>I4', text, at + 4) end
    local stop = min(size, skip + most - count)
    for k = skip, stop - 1 do
      count = count + 1
      nodes[count] = first + k
    end
    skip = stop
    if stop == size then at, skip = at + (size > 1 and 8 or 4), 0 end
  end
  return nodes, at, skip
end

function lists.piece(first, size)
  return size > 1 and pack('>I4I4', first + lists.RANGE, size) or pack('>I4', first)
end

-- A list to which nodes are added: `done` and a last piece.
function lists.open(text)
  local size = #text
  if size >= 8 and byte(text, size - 7) >= 128 then
    local first, count = unpack_bytes('>I4I4', text, size - 7)
    return {done = {sub(text, 1, size - 8)}, first = first - lists.RANGE, count = count}
  end
  return {done = {sub(text, 1, size - 4)}, first = (unpack_bytes('>I4', text, size - 3)), count = 1}
end

function lists.text(list) return concat(list.done) .. lists.piece(list.first, list.count) end

-- Parents, children or needs of a node, as they are stored.
local function related_text(graph, kind, i)
  if kind == 'children' and graph.more[i] then return lists.text(graph.more[i]) end
  if kind == 'parents' and graph.wide[i] then return graph.wide[i] end
  return not graph.fresh and call('HGET', graph_key(kind, graph.digest), pack('>I4', i)) or ''
end

local function related(graph, kind, i)
  local known = graph[kind][i]
  if not known then
    known = lists.read(related_text(graph, kind, i), math.huge)
    graph[kind][i] = known
  end
  return known
end

local function parents_of(graph, i)
  local text, at = cell_at(graph, i)
  local flags, count, parent = unpack_bytes('>BI4I4', text, at + 6)
  if has(flags, HAS_PARENTS) then return related(graph, 'parents', i) end
  return count == 0 and NOTHING or {parent}
end

-- The next parents of a node, and the position after them: a very long list is not taken apart whole.
local function some_parents(graph, i, most, at, skip)
  if parent_count(graph, i) <= most then return parents_of(graph, i), 1, 0 end
  return lists.read(related_text(graph, 'parents', i), most, at, skip)
end

-- The only child of a node, one too large; 0: it has none; MANY: they are in the hash.
local function child_of(graph, i)
  local known = graph.child[i]
  if known then return known end
  for k = 1, #graph.joins do
    local join = graph.joins[k]
    if join[1] <= i and i <= join[2] then return join[3] end
  end
  if i >= graph.child_low and i <= graph.child_high then
    return (unpack_bytes('>I4', graph.child_text, 4 * (i - graph.child_low) + 1))
  end
  local text = graph.fresh and '' or call('GETRANGE', graph_key('child', graph.digest), 4 * i, 4 * i + 3)
  known = text ~= '' and unpack_bytes('>I4', text) or 0
  graph.child[i] = known
  return known
end

local function want_child(graph, indexes)
  if #graph.joins > 0 or graph.fresh then return end
  local low, high = span_of(indexes)
  if low > high then return end
  graph.child_text = call('GETRANGE', graph_key('child', graph.digest), 4 * low, 4 * high + 3)
  graph.child_low, graph.child_high = low, low + floor(#graph.child_text / 4) - 1
end

local function needs_of(graph, i)
  if has(flags_of(graph, i), HAS_NEEDS) then return related(graph, 'needs', i) end
  return NOTHING
end

local function refused(reason, detail) return {'refused', reason, detail or ''} end

do

-- The last byte of a cell: whether the next node is the only child.
local function mark_next(graph, i, mark)
  local text, at = cell_at(graph, i)
  graph.cells[i], graph.touched[i] = sub(text, at, at + GRAPH_CELL - 2) .. mark, true
end

-- One more child of a node. Children come in order, so one that is not larger than the last was there before, when a graph
-- was deleted in part and stored again. A parent may have a larger number than its child, in a run that was healed.
local function add_child(graph, parent, child)
  local first = child_of(graph, parent)
  if first == 0 then
    graph.child[parent], graph.child_touched[parent] = child + 1, true
    if child == parent + 1 then mark_next(graph, parent, '\1') end
    return
  end
  local list = graph.more[parent] -- of a long one only the end is looked at
  if first ~= MANY then
    if first > child then return end
    list = {done = {}, first = first - 1, count = 1}
    graph.child[parent], graph.child_touched[parent] = MANY, true
    if first == parent + 2 then mark_next(graph, parent, '\0') end
  elseif not list then
    list = lists.open(call('HGET', graph_key('children', graph.digest), pack('>I4', parent)))
  end
  local after = list.first + list.count
  if child < after then return end
  if child == after then
    list.count = list.count + 1
  else
    insert(list.done, lists.piece(list.first, list.count))
    list.first, list.count = child, 1
  end
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

ops.add_edges = function(op)
  local graph = get_graph(op.digest)
  if not graph or graph.loaded ~= op.child then return end
  for_adding(graph)
  if op.from > 0 and graph.edges ~= edges_text(op.child, op.from) then return end
  if op.first < 0 then
    add_to_parents(graph, read_numbers(op.parents), op.child)
  elseif not add_join(graph, op.first, op.count, op.child) then
    for i = op.first, op.first + op.count - 1 do add_child(graph, i, op.child) end
  end
  graph.edges, graph.changed = edges_text(op.child, op.from + op.count), true
end

local function new_graph(op)
  local graph = bare_graph(op.digest)
  graph.total, graph.loaded, graph.age, graph.uses, graph.fresh = op.total, 0, next_number('graphs'), 0, true
  graph.workflow = op.workflow
  S.graphs[op.digest] = graph
  make_text(graph_key('cells', op.digest), GRAPH_CELL * op.total)
  make_text(graph_key('child', op.digest), 4 * op.total)
  put(index('unused_graphs'), op.digest, true)
  later('HSET', graph_key('row', op.digest), 'total', int(op.total), 'age', int(graph.age), 'workflow', op.workflow,
    'signature', op.signature, 'document', op.document or '')
  return graph
end

ops.add_graph = function(op)
  local graph = get_graph(op.digest)
  if op.start > (graph and graph.loaded or 0) then
    return refused('incomplete', 'the nodes before ' .. int(op.start) .. ' are not there yet')
  end
  graph = graph or new_graph(op)
  for_adding(graph)
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
    local of, parent, count = nil, 0, lists.size(row.parents)
    if edges_are_there(graph, i, count) then -- a list that is too long to be taken apart
      graph.wide[i] = row.parents
    else
      of = lists.read(row.parents, math.huge)
      parent = of[1] or 0
    end
    graph.cells[i] = pack('>I4I2BI4I4B', row.rank, new_lane(row.lane), flags, count, parent, 0)
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
  local indexes, count = {}, 0
  for i in pairs(touched) do
    count = count + 1
    indexes[count] = i
  end
  local low, high = span_of(indexes)
  if low > high then
    sort(indexes)
  else -- they lie close together: nothing is to be sorted
    count = 0
    for i = low, high do
      if touched[i] then
        count = count + 1
        indexes[count] = i
      end
    end
  end
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
  write_cells(graph_key('cells', graph.digest), GRAPH_CELL, graph.touched, function(i) return graph.cells[i] end)
  write_cells(graph_key('child', graph.digest), 4, graph.child_touched, function(i) return pack('>I4', graph.child[i]) end)
  local more = {}
  for i, list in pairs(graph.more) do
    insert(more, pack('>I4', i))
    insert(more, lists.text(list))
  end
  send_many('HSET', graph_key('children', graph.digest), more)
end

do

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

ops.delete_graph = function(op)
  local graph = get_graph(op.digest)
  if not graph then return {'deleted', 1} end
  if graph.uses > 0 then return refused('status', 'in use') end
  local left = max(0, graph.loaded - op.limit)
  for_adding(graph)
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
  graph.low, graph.high, graph.child_low, graph.child_high = 1, 0, 1, 0
  graph.loaded, graph.changed = left, true
  later('LTRIM', graph_key('ids', op.digest), '0', int(left - 1))
  return {'deleted', 0}
end

end
