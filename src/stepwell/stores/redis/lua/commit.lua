-- The doors: `commit` applies a batch, `read` answers queries. Arguments are a flat list, each op with its fields in order.
-- They are in a function of their own, because one function has at most 200 local names.

local function offer()

local args, at

local function arg()
  at = at + 1
  return args[at]
end

local function number() return tonumber(arg()) end
local function flag() return arg() == '1' end
local function maybe(read) if flag() then return read() end end

-- A large payload comes with its reference, which is what rows hold.
local function payload()
  local kind = arg()
  if kind == '0' then return nil end
  if kind == '1' then return arg() end
  local reference = arg()
  S.blobs[reference] = arg()
  return reference
end

local function list(read)
  local values = {}
  for k = 1, number() do values[k] = read() end
  return values
end

local function lane() return {text = arg(), suspect = number()} end

local function layout_row()
  return {id = arg(), parents = arg(), needs = arg(), lane = arg(), rank = number(), flags = number()}
end

-- A settlement: `head`, the output, and the rest if it has more than that.
local function settlement()
  local head = arg()
  local ordinal, status, node, more = unpack_bytes('>I2BBB', head)
  local op = {claim = sub(head, 6), ordinal = ordinal, status = status, node = node, output = payload(), delay = 0, lines = {}}
  if more == 1 then
    op.delay, op.postponed, op.error, op.outcome, op.lines = number(), flag(), payload(), payload(), list(arg)
  end
  return op
end

local function change_row()
  return {i = number(), was = number(), was_attempt = number(), status = number(), reason = maybe(arg), fresh = flag()}
end

local function finish_fields()
  return {
    status = number(), open = flag(), reason = maybe(arg), grace = number(), tolerate = flag(), input = maybe(arg),
  }
end

local function lane_and_limit()
  local lanes = {}
  for _ = 1, number() do
    insert(lanes, lane())
    insert(lanes, number())
  end
  return lanes
end

local function restored_node()
  return {
    i = number(), status = number(), attempt = number(), waiting = number(), live = number(), failures = number(),
    losses = number(), suspect = flag(), due = maybe(number), reason = maybe(arg), generation = number(), postponed = number(),
  }
end

local function restored_attempt()
  return {
    claim = arg(), ordinal = number(), i = number(), number = number(), status = number(), worker = arg(), started = number(),
    ended = maybe(number), output = payload(), error = payload(), outcome = payload(),
  }
end

local function restored_entry() return {seq = number(), entry = arg()} end

local function restored_line()
  return {claim = arg(), ordinal = number(), index = number(), at = number(), kind = arg(), data = arg()}
end

local function texts() return list(arg) end

-- What ops and queries come with, in this order.
local FIELDS = {
  restore = function() return {
    run = arg(), workflow = arg(), target = maybe(arg), digest = arg(), input = arg(), seed = arg(), on_failure = arg(),
    priority = arg(), urgency = arg(), timeout = maybe(arg), key = maybe(arg), fork = maybe(arg), origin = maybe(arg),
    tags = maybe(arg), created_at = arg(), status = number(), gate = number(), stopping = flag(), seq = number(),
    heals = number(), tolerated = number(), started = maybe(number), ended = maybe(number), deadline = maybe(number),
    reason = maybe(arg), illegal = maybe(arg), nodes = list(restored_node), attempts = list(restored_attempt),
    journal = list(restored_entry), lines = list(restored_line), former = list(arg), finish = flag(),
  } end,
  settle = function() return list(settlement) end,
  claim = function() return {
    claim = arg(), worker = arg(), lanes = lane_and_limit(), runs = list(arg), serves = maybe(texts),
  } end,
  append = function() return {claim = arg(), ordinal = number(), index = number(), kind = arg(), data = arg()} end,
  add_graph = function() return {
    digest = arg(), workflow = arg(), signature = arg(), document = maybe(arg), total = number(), start = number(),
    rows = list(layout_row),
  } end,
  add_edges = function() return {digest = arg(), child = number(), from = number(), parents = arg()} end,
  create = function() return {
    run = arg(), workflow = arg(), target = maybe(arg), digest = arg(), input = arg(), seed = arg(), on_failure = arg(),
    priority = arg(), urgency = arg(), timeout = maybe(number), key = maybe(arg), fork = maybe(arg), origin = maybe(arg),
    tags = maybe(arg),
  } end,
  add_nodes = function() return {run = arg(), start = number()} end,
  switch_graph = function() return {run = arg(), token = arg(), digest = arg(), start = number()} end,
  share = function() return {run = arg(), token = arg(), origin = arg(), claim = arg(), rows = list(number)} end,
  enlist = function() return {worker = arg(), lease = number(), info = arg()} end,
  renew = function() return {worker = arg(), lease = number(), held = maybe(texts), since = maybe(number)} end,
  dismiss = function() return {worker = arg()} end,
  sweep = function() return {limit = number(), run = maybe(arg)} end,
  gate = function() return {
    run = arg(), token = arg(), purpose = arg(), arguments = arg(), lease = number(), stop = flag(), allowed = list(number),
    resume = flag(),
  } end,
  rewrite = function() return {
    run = arg(), token = arg(), illegal = maybe(arg), rows = list(change_row), finish = maybe(finish_fields),
  } end,
  forget_old = function() return {keep = number()} end,
  delete = function() return {run = arg(), limit = number()} end,
  delete_graph = function() return {digest = arg(), limit = number()} end,
  save_version = function() return {kind = arg(), name = arg(), digest = arg(), body = arg()} end,
  activate_version = function() return {kind = arg(), name = arg(), number = maybe(number)} end,
  put_record = function() return {kind = arg(), key = arg(), value = maybe(arg), expected = maybe(arg)} end,

  get_run = function() return {run = arg()} end,
  list_runs = function() return {
    limit = number(), before = maybe(number), workflow = maybe(arg), statuses = list(number), ended_before = maybe(number),
    digest = maybe(arg), origin = maybe(arg), prefix = maybe(arg), tags = list(arg), since = maybe(number), until_ = maybe(number),
    ended_since = maybe(number), most = number(),
  } end,
  list_ended = function() return {
    limit = number(), at = number(), number = number(), workflow = maybe(arg), statuses = list(number), most = number(), tags = {},
  } end,
  list_nodes = function() return {run = arg(), after = number(), count = number()} end,
  node_columns = function() return {run = arg(), after = number(), count = number()} end,
  attempt_columns = function() return {run = arg(), after = number(), after_number = number(), limit = number()} end,
  count_nodes = function() return {run = arg()} end,
  list_attempts = function() return {
    run = arg(), index = maybe(number), after = number(), after_number = number(), limit = number(),
  } end,
  get_outputs = function() return {
    run = arg(), indexes = maybe(function() return list(number) end), after = number(), limit = number(),
  } end,
  list_journal = function() return {run = arg(), after = number(), count = number()} end,
  list_lines = function() return {
    run = arg(), claim = maybe(arg), ordinal = number(), line = number(), from = maybe(arg), count = number(),
  } end,
  list_stops = function() return {worker = arg()} end,
  list_workers = function() return {after = maybe(arg), limit = number()} end,
  ready_runs = function() return {runs = list(arg)} end,
  list_ready = function() return {lanes = list(lane), runs = list(arg), serves = list(arg), limit = number()} end,
  list_unfinished = function() end,
  get_graph = function() return {digest = arg()} end,
  graph_ages = function() return {digests = list(arg)} end,
  unused_graphs = function() return {after = maybe(arg), limit = number(), before = maybe(number)} end,
  get_version = function() return {kind = arg(), name = arg(), number = maybe(number), digest = maybe(arg)} end,
  list_versions = function() return {kind = arg(), name = arg(), after = number(), limit = number()} end,
  list_names = function() return {kind = arg(), after = maybe(arg), limit = number()} end,
  get_record = function() return {kind = arg(), key = arg()} end,
  list_records = function() return {kind = arg(), after = maybe(arg), limit = number()} end,
}

-- Have all that is asked for done by these functions; an op that is no more than a part of another gives nothing.
local function apply_all(functions)
  local found = {}
  while at < #args do
    local name = arg()
    found[#found + 1] = functions[name](FIELDS[name]())
  end
  return found
end

-- The first key is the marker; what it holds tells this store from every other that was or will be under its name.
local function enter(keys, given)
  args, at = given, 2
  begin(keys[1], given[2])
  local found = call('HMGET', keys[1], 'marker', unpack(COUNTERS))
  new_state(found)
  return found[1] == given[1]
end

local function replaced() return redis.error_reply('REPLACED the store is another one, or gone') end

local function asked_blobs()
  local blobs = {}
  for reference, blob in pairs(S.asked) do
    insert(blobs, reference)
    insert(blobs, blob)
  end
  return blobs
end

local function leave(...)
  S, args = nil, nil
  return {...}
end

local function commit(keys, given)
  if not enter(keys, given) then return replaced() end
  local workers, stops = list(arg), {}
  local receipts = apply_all(ops)
  for k = 1, #workers do
    local found = stops_of(workers[k])
    for n = 1, #found do insert(stops, found[n]) end
  end
  write_all()
  return leave(now, receipts, stops, asked_blobs())
end

local function read(keys, given)
  if not enter(keys, given) then return replaced() end
  return leave(now, apply_all(reading), asked_blobs())
end

redis.register_function({function_name = NAME .. '_commit', callback = commit})
redis.register_function({function_name = NAME .. '_read', callback = read, flags = {'no-writes'}})

end

offer()
