-- Writing, when everything has been judged: here nothing is decided any more, and nothing can fail but the server.

local write_all

do

local function write_run(run)
  local ready = {}
  for lane, count in pairs(run.ready) do ready[#ready + 1] = pack('>I2I4', lane, count) end
  ready = concat(ready)
  local fields = {
    'numbers', pack(RUN, run.status, run.gate, (run.stopping and 1 or 0) + (run.releasing and 2 or 0) + (run.requeue and 4 or 0), run.open, run.active, run.failed, run.running,
      run.tolerated, run.seq, run.loaded, run.heals, run.orders, packed_time(run.started), packed_time(run.ended),
      packed_time(run.deadline), packed_time(run.cancel_at), packed_time(run.expires), run.reported, packed_time(run.due_first)),
    'counts', pack(COUNTS, unpack(run.counts)),
  }
  if ready ~= run.ready_text then
    insert(fields, 'ready')
    insert(fields, ready)
  end
  local gone = {}
  if run.derived ~= run.was_derived then set_text(run, 'derived', run.derived ~= '' and run.derived or nil) end
  for name in pairs(run.texts_touched) do
    if run.texts[name] then
      insert(fields, name)
      insert(fields, run.texts[name])
    else
      insert(gone, name)
    end
  end
  call('HSET', run_key('row', run), unpack(fields))
  if run.releases then
    call('DEL', run_key('releases', run))
    send_many('RPUSH', run_key('releases', run), run.releases)
  end
  if #gone > 0 and not run.fresh then call('HDEL', run_key('row', run), unpack(gone)) end
end

local function write_claims()
  for id, claim in pairs(S.claims) do
    if claim and claim.changed then
      local head = pack(CLAIM_HEAD, claim.at, claim.number, claim.running, #claim.worker)
      if claim.pieces then
        call('SET', P .. 'claim:' .. id, head .. claim.worker .. concat(claim.pieces))
      else
        call('SETRANGE', P .. 'claim:' .. id, 0, head)
      end
    end
  end
end

local function write_workers()
  for _, worker in pairs(S.workers) do
    if worker and worker.changed then
      call('HSET', MARKER, 'lease:' .. worker.id, int(worker.lease_until))
      call('HSET', worker_key(worker.id), 'renewed', int(worker.renewed), 'lease', int(worker.lease))
      if worker.info then call('HSET', worker_key(worker.id), 'info', worker.info) end
    end
  end
end

write_all = function()
  update_marks()
  for k = 1, #S.later do
    local command = S.later[k]
    call(unpack(command))
  end
  for _, graph in pairs(S.graphs) do
    if graph then write_graph(graph) end
  end
  for k = 1, #S.run_order do
    local run = S.run_order[k]
    if run.changed and not run.gone then
      write_run(run)
      send_many('RPUSH', run_key('journal', run), run.journal)
    end
  end
  for k = 1, #S.rows_order do
    if #S.rows_order[k].order > 0 then write_rows(S.rows_order[k]) end
  end
  write_claims()
  write_workers()
  for k = 1, #S.index_order do
    if S.index_order[k].size > 0 then write_index(S.index_order[k]) end
  end
  for name, difference in pairs(S.unfinished) do
    if difference ~= 0 and call('HINCRBY', P .. 'unfinished', name, difference) <= 0 then call('HDEL', P .. 'unfinished', name) end
  end
  if S.counters_changed then
    local fields = {}
    for name, value in pairs(S.counters) do
      insert(fields, name)
      insert(fields, int(value))
    end
    call('HSET', MARKER, unpack(fields))
  end
end

end
