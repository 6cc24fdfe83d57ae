-- Writing, when everything has been judged: here nothing is decided any more, and nothing can fail but the server.

local write_all

do

local function write_run(run)
  local fields = {'state', state_text(run)}
  if run.kept_changed then fields[3], fields[4] = 'run', run_text(run) end
  for name in pairs(run.texts_touched) do
    insert(fields, name)
    insert(fields, run.texts[name])
  end
  call('HSET', run_key('row', run), unpack(fields))
  if run.releases then
    call('DEL', run_key('releases', run))
    send_many('RPUSH', run_key('releases', run), run.releases)
  end
end

local function write_workers()
  for _, worker in pairs(S.workers) do
    if worker and worker.changed then
      call('HSET', MARKER, 'lease:' .. worker.id, pack_row(worker.lease_until, worker.renewed, worker.lease))
      if worker.info then call('SET', worker_key(worker.id), worker.info) end
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
  for _, claim in pairs(S.claims) do
    if claim and claim.changed then write_claim(claim) end
  end
  write_workers()
  for k = 1, #S.index_order do
    if S.index_order[k].size > 0 then write_index(S.index_order[k]) end
  end
  for name, difference in pairs(S.unfinished) do
    if difference ~= 0 and call('HINCRBY', P .. 'unfinished', name, difference) <= 0 then call('HDEL', P .. 'unfinished', name) end
  end
  for name in pairs(S.counters_changed) do call('HSET', MARKER, name, int(S.counters[name])) end
end

end
