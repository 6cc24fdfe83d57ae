-- Writing, when everything has been judged: here nothing is decided any more, and nothing can fail but the server.

local write_all

do

local function write_run(run)
  set_row(run.row, 'state', state_text(run))
  if run.kept_changed then set_row(run.row, 'run', run_text(run)) end
  if run.releases then
    call('DEL', run_key('releases', run))
    send_many('RPUSH', run_key('releases', run), run.releases)
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
  for k = 1, #S.changed do write_rows(S.changed[k]) end
  for _, set in pairs(S.indexes) do
    if set.size > 0 then write_index(set) end
  end
  for key, counts in pairs(S.counts) do write_counts(key, counts) end
  if S.counters_changed then call('HSET', MARKER, 'counters', counters_text(S.counters)) end
end

end
