-- The doors: `commit` applies a batch, `step` what a chain commits over and over, `read` answers queries. Arguments are a flat list, each op with its fields in order.
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

-- A settlement that is more than a completion with a small output.
local function settlement()
  local head = arg()
  local ordinal, status, node = unpack_bytes('>I2BB', head)
  return {
    claim = sub(head, 5), ordinal = ordinal, status = status, node = node, output = payload(), delay = number(), postponed = flag(),
    error = payload(), outcome = payload(), lines = list(arg),
  }
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

local OPS = {
  restore = function(receipts)
    insert(receipts, ops.restore({
      run = arg(), workflow = arg(), target = maybe(arg), digest = arg(), input = arg(), seed = arg(), on_failure = arg(),
      priority = arg(), urgency = arg(), timeout = maybe(arg), key = maybe(arg), fork = maybe(arg), origin = maybe(arg),
      tags = maybe(arg), created_at = arg(), status = number(), gate = number(), stopping = flag(), seq = number(),
      heals = number(), tolerated = number(), started = maybe(number), ended = maybe(number), deadline = maybe(number),
      reason = maybe(arg), illegal = maybe(arg), nodes = list(restored_node), attempts = list(restored_attempt),
      journal = list(restored_entry), lines = list(restored_line), former = list(arg), finish = flag(),
    }))
  end,
  settle = function(receipts)
    insert(receipts, ops.settle({heads = arg(), outputs = arg(), claims = list(arg), others = list(settlement)}))
  end,
  claim = function(receipts)
    insert(receipts, ops.claim_nodes({
      claim = arg(), worker = arg(), lanes = lane_and_limit(), runs = list(arg), serves = maybe(function() return list(arg) end),
    }))
  end,
  append = function(receipts)
    insert(receipts, ops.append({claim = arg(), ordinal = number(), index = number(), kind = arg(), data = arg()}))
  end,
  add_graph = function(receipts)
    insert(receipts, ops.add_graph({
      digest = arg(), workflow = arg(), signature = arg(), document = maybe(arg), total = number(), start = number(),
      rows = list(layout_row),
    }))
  end,
  add_edges = function()
    ops.add_edges({digest = arg(), child = number(), from = number(), count = number(), first = number(), parents = arg()})
  end,
  create = function(receipts)
    insert(receipts, ops.create({
      run = arg(), workflow = arg(), target = maybe(arg), digest = arg(), input = arg(), seed = arg(), on_failure = arg(),
      priority = arg(), urgency = arg(), timeout = maybe(number), key = maybe(arg), fork = maybe(arg), origin = maybe(arg),
      tags = maybe(arg),
    }))
  end,
  add_nodes = function(receipts) insert(receipts, ops.add_nodes({run = arg(), start = number()})) end,
  switch_graph = function(receipts)
    insert(receipts, ops.switch_graph({run = arg(), token = arg(), digest = arg(), start = number()}))
  end,
  share = function(receipts)
    insert(receipts, ops.share({run = arg(), token = arg(), origin = arg(), claim = arg(), rows = list(number)}))
  end,
  enlist = function(receipts) insert(receipts, ops.enlist({worker = arg(), lease = number(), info = arg()})) end,
  renew = function(receipts)
    insert(receipts, ops.renew({
      worker = arg(), lease = number(), held = maybe(function() return list(arg) end), since = maybe(number),
    }))
  end,
  dismiss = function(receipts) insert(receipts, ops.dismiss({worker = arg()})) end,
  sweep = function(receipts) insert(receipts, ops.sweep({limit = number(), run = maybe(arg)})) end,
  gate = function(receipts)
    insert(receipts, ops.hold_gate({
      run = arg(), token = arg(), purpose = arg(), arguments = arg(), lease = number(), stop = flag(), allowed = list(number),
      resume = flag(),
    }))
  end,
  rewrite = function(receipts)
    insert(receipts, ops.rewrite({
      run = arg(), token = arg(), illegal = maybe(arg), rows = list(change_row), finish = maybe(finish_fields),
    }))
  end,
  forget_old = function() forget_old(number()) end,
  delete = function(receipts) insert(receipts, ops.delete_run({run = arg(), limit = number()})) end,
  delete_graph = function(receipts) insert(receipts, ops.delete_graph({digest = arg(), limit = number()})) end,
  save_version = function(receipts)
    insert(receipts, versions.save({kind = arg(), name = arg(), digest = arg(), body = arg()}))
  end,
  activate_version = function(receipts)
    insert(receipts, versions.activate({kind = arg(), name = arg(), number = maybe(number)}))
  end,
  put_record = function(receipts)
    insert(receipts, records.put({kind = arg(), key = arg(), value = maybe(arg), expected = maybe(arg)}))
  end,
}

local QUERIES = {
  get_run = function()
    local run = get_run(arg())
    return run and run_row(run) or false
  end,
  list_runs = function()
    local q = {
      limit = number(), before = maybe(number), workflow = maybe(arg), statuses = list(number), ended_before = maybe(number),
      digest = maybe(arg), origin = maybe(arg), prefix = maybe(arg), tags = list(arg), since = maybe(number), until_ = maybe(number),
      ended_since = maybe(number),
    }
    return listing.list_runs(q, number())
  end,
  list_ended = function()
    local q = {limit = number(), at = number(), number = number(), workflow = maybe(arg), statuses = list(number), tags = {}}
    return listing.list_ended(q, number())
  end,
  list_nodes = function() return reading.list_nodes({run = arg(), after = number(), count = number()}) end,
  count_nodes = function() return reading.count_nodes({run = arg()}) end,
  list_attempts = function()
    return reading.list_attempts({run = arg(), index = maybe(number), after = number(), after_number = number(), limit = number()})
  end,
  get_outputs = function()
    return reading.get_outputs({run = arg(), indexes = maybe(function() return list(number) end), after = number(), limit = number()})
  end,
  list_journal = function() return reading.list_journal({run = arg(), after = number(), count = number()}) end,
  list_lines = function()
    return reading.list_lines({
      run = arg(), claim = maybe(arg), ordinal = number(), line = number(), from = maybe(arg), count = number(),
    })
  end,
  list_stops = function() return stops_of(arg()) end,
  list_workers = function() return reading.list_workers({after = maybe(arg), limit = number()}) end,
  ready_runs = function() return reading.ready_runs({runs = list(arg)}) end,
  list_ready = function()
    return reading.list_ready({lanes = list(lane), runs = list(arg), serves = list(arg), limit = number()})
  end,
  list_unfinished = function() return call('HGETALL', P .. 'unfinished') end,
  get_graph = function() return reading.get_graph_document({digest = arg()}) end,
  graph_ages = function() return reading.graph_ages({digests = list(arg)}) end,
  unused_graphs = function() return reading.unused_graphs({after = maybe(arg), limit = number(), before = maybe(number)}) end,
  get_version = function()
    return reading.get_version({kind = arg(), name = arg(), number = maybe(number), digest = maybe(arg)})
  end,
  list_versions = function() return reading.list_versions({kind = arg(), name = arg(), after = number(), limit = number()}) end,
  list_names = function() return reading.list_names({kind = arg(), after = maybe(arg), limit = number()}) end,
  get_record = function() return records.get({kind = arg(), key = arg()}) end,
  list_records = function() return records.list({kind = arg(), after = maybe(arg), limit = number()}) end,
}

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
  local receipts, stops, workers = {}, {}, list(arg)
  while at < #args do OPS[arg()](receipts) end
  for k = 1, #workers do
    local found = stops_of(workers[k])
    for n = 1, #found do insert(stops, found[n]) end
  end
  write_all()
  return leave(now, receipts, stops, asked_blobs())
end

-- A settlement with a small output, and a claim in one run and one lane: `marker`, `offset`, the rest packed, the output.
local function step(keys, given)
  begin(keys[1], given[2])
  local op = {output = given[4]}
  op.ordinal, op.limit, op.claim, op.claim_id, op.worker, op.lane, op.run = unpack_bytes('>I2I4Bc0Bc0I2c0I2c0I2c0', given[3])
  local taken = take_step(op, given[1])
  if taken then return taken end
  if not enter(keys, given) then return replaced() end
  local settled = ops.settle_one(op.claim, op.ordinal, op.output)
  local claimed = ops.claim_nodes({
    claim = op.claim_id, worker = op.worker, lanes = {{text = op.lane, suspect = 0}, op.limit}, runs = {op.run},
  })
  local stops = stops_of(op.worker)
  write_all()
  return leave(now, {settled, claimed}, stops, asked_blobs())
end

local function read(keys, given)
  if not enter(keys, given) then return replaced() end
  local answers = {}
  while at < #args do answers[#answers + 1] = QUERIES[arg()]() end
  return leave(now, answers, asked_blobs())
end

redis.register_function({function_name = NAME .. '_commit', callback = commit})
redis.register_function({function_name = NAME .. '_step', callback = step})
redis.register_function({function_name = NAME .. '_read', callback = read, flags = {'no-writes'}})

end

offer()
