-- How rows are stored: their fields in this order, as MessagePack. A node has the claim of its running attempt; an attempt has a row
-- once it has ended, or if it comes from elsewhere.

local read_node, node_text, read_attempt, attempt_text

do

read_node = function(value, i)
  local status, rank, lane, attempt, waiting, live, failures, losses, postponed, generation, due, suspect, needs, reason, claim, ordinal =
    unpack_row(value)
  return {
    i = i, status = status, rank = rank, lane = lane, attempt = attempt, waiting = waiting, live = live, failures = failures,
    losses = losses, postponed = postponed, generation = generation, due = due, suspect = suspect, needs = needs, reason = reason,
    claim = claim, ordinal = ordinal,
  }
end

node_text = function(n)
  return pack_row(n.status, n.rank, n.lane, n.attempt, n.waiting, n.live, n.failures, n.losses, n.postponed, n.generation, n.due, n.suspect,
    n.needs, n.reason, n.claim, n.ordinal)
end

-- `started` and `worker`: of an attempt that comes from elsewhere.
read_attempt = function(value, name)
  local status, claim, ordinal, ended, output, err, outcome, started, worker = unpack_row(value)
  local i, number = unpack_bytes('>I4I4', name)
  return {
    name = name, i = i, number = number, status = status, claim = claim, ordinal = ordinal, ended = ended, output = output, error = err,
    outcome = outcome, started = started, worker = worker,
  }
end

attempt_text = function(a)
  return pack_row(a.status, a.claim, a.ordinal, a.ended, a.output, a.error, a.outcome, a.started, a.worker)
end

end
