"""A link of a chain: the only active node of a run completes, and its only child is claimed in the same commit.

The result is that of a settlement and then a claim (`single`, `claiming`), without the writes of the first that the second
undoes. A chain commits nothing else, so this is one query and two statements, one of them the program of a trigger.
"""

from __future__ import annotations

from ....ids import attempt_id, split_attempt_id
from ....model import (
    AttemptStatus,
    Claim,
    Claimed,
    GateState,
    Grant,
    NodeStatus,
    Receipt,
    RunNews,
    RunStatus,
    Settle,
    Settled,
)
from ...rules.codes import (
    A_COMPLETED,
    A_RUNNING,
    ENDS,
    G_OPEN,
    KIND_CODE,
    N_COMPLETED,
    N_PENDING,
    N_RUNNING,
    ORDINALS,
    R_RUNNING,
)
from ...rules.payloads import LARGE, is_large
from ..payloads import pack, resolve
from .attempts import NEW_CLAIM
from .ending import ANY_STOPS, Transaction
from .single import START_ATTEMPT

LINK_TRIGGER = f"""
CREATE TEMP VIEW link AS
SELECT 0 AS at, 0 AS run, 0 AS seq, 0 AS attempt, 0 AS node, 0 AS number, 0 AS output, 0 AS outcome, 0 AS record,
       0 AS child, 0 AS next, 0 AS claim, 0 AS key;
CREATE TEMP TRIGGER apply_link INSTEAD OF INSERT ON link BEGIN
  UPDATE OR IGNORE attempt
     SET status = {A_COMPLETED}, ended_at = new.at, output = new.output, outcome = new.outcome, record = new.record
   WHERE key = new.attempt;
  UPDATE OR IGNORE node SET status = {N_COMPLETED}, due_at = NULL, reason = NULL WHERE run = new.run AND idx = new.node;
  UPDATE OR IGNORE node SET waiting = 0, status = {N_RUNNING}, attempt = 1, last = new.next
   WHERE run = new.run AND idx = new.child;
  UPDATE OR IGNORE run SET open = open - 1, seq = new.seq + 2, derived = 0 WHERE key = new.run;
  INSERT OR IGNORE INTO journal (run, seq, at, kind, idx, number, status)
  VALUES (new.run, new.seq + 1, new.at, {A_COMPLETED + ENDS}, new.node, new.number, {N_COMPLETED});
  INSERT OR IGNORE INTO journal (run, seq, at, kind, idx, number)
  VALUES (new.run, new.seq + 2, new.at, {KIND_CODE["claimed"]}, new.child, 1);
  INSERT OR IGNORE INTO claim (id, key) VALUES (new.claim, new.key);
END;
"""
"""With OR IGNORE, without calls of functions and without a key that is given, SQLite keeps no copies of pages in case a later
statement of the trigger fails. So the attempt, whose key is given, is a statement of its own. The number of changed rows shows
that none was ignored."""
_LINK_ROWS = 8
# At most two rows, to see whether there is exactly one child. It also checks the worker's lease and that the claim is new.
_FIND_LINK = f"""
SELECT a.key, a.run, a.idx, a.number, r.open, r.seq, e.child,
       n.lane, n.waiting = 1 AND n.status = {N_PENDING} AND n.attempt = 0,
       r.graph, (SELECT has_needs FROM graph WHERE key = r.graph), ({ANY_STOPS}), {NEW_CLAIM}
  FROM claim c CROSS JOIN attempt a ON a.key = c.key * {ORDINALS} + ?2 CROSS JOIN run r ON r.key = a.run
       CROSS JOIN edge e ON e.graph = r.graph AND e.parent = a.idx CROSS JOIN node n ON n.run = a.run AND n.idx = e.child
 WHERE c.id = ?1 AND a.status = {A_RUNNING} AND a.worker = ?4
   AND r.id = ?3 AND r.gate = {G_OPEN} AND r.status = {R_RUNNING} AND r.active = 1
   AND NOT (r.failed OR r.stopping OR r.heals)
   AND (r.fork IS NULL OR NOT (SELECT l.removed FROM layout l WHERE l.graph = r.graph AND l.idx = a.idx))
   AND EXISTS (SELECT 1 FROM worker WHERE id = ?4 AND lease_until > ?5) AND NOT EXISTS (SELECT 1 FROM claim WHERE id = ?6)
 LIMIT 2
"""
_OUTPUTS = f"""
SELECT need.ancestor, p.output
  FROM need CROSS JOIN node n ON n.run = ?1 AND n.idx = need.ancestor
       CROSS JOIN attempt p ON p.key = n.last AND p.status = {A_COMPLETED}
 WHERE need.graph = ?2 AND need.child = ?3 AND p.output IS NOT NULL ORDER BY need.ancestor
"""
_APPLY_LINK = "INSERT INTO temp.link VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def settle_and_claim(tx: Transaction, settle: Settle, claim: Claim) -> list[Receipt] | None:
    """Apply both ops and return their receipts. None if it changed nothing: the caller then applies them one by one."""
    ended, ends, becomes, output, error, outcome, _, _, lines = settle
    claim_id, worker, lanes, runs, _ = claim
    if ends is not AttemptStatus.COMPLETED or becomes is not NodeStatus.COMPLETED or len(runs) != 1:
        return None
    if error is not None or (output and is_large(output)) or (outcome and is_large(outcome)):
        return None
    record = pack(lines) if lines else None
    if record is not None and len(record) >= LARGE:
        return None
    (run_id,), db, now = runs, tx.db, tx.now
    earlier, ordinal = split_attempt_id(ended)
    found = tx.all(_FIND_LINK, (earlier, ordinal, run_id, worker, now, claim_id))
    if len(found) != 1:
        return None
    ((key, run, node, number, opened, seq, child, lane, starts, graph, has_needs, stops, claim_key),) = found
    if not starts:
        return None
    for wanted, limit in lanes:
        if limit and tx.lanes.key(db, wanted) == lane:
            break
    else:
        return None
    changed = db.total_changes()
    following = claim_key * ORDINALS
    given = (now, run, seq, key, node, number, output, outcome, record, child, following, claim_id, claim_key)
    tx.execute(_APPLY_LINK, given)
    tx.execute(START_ATTEMPT, (following, run, child, 1, claim_id, worker, now))
    assert db.total_changes() - changed == _LINK_ROWS, f"a link of run {run_id} at seq {seq} could not be written"
    tx.nothing_stops = stops is None
    news = RunNews(run_id, RunStatus.RUNNING, GateState.OPEN, None, opened - 1, 1, 0, seq + 1)
    inputs = _outputs(tx, run, graph, child) if has_needs else ()
    return [Settled(False, news), Claimed((Grant(attempt_id(claim_id, 0), run_id, child, 1, 0, 0, inputs),))]


def _outputs(tx: Transaction, run: int, graph: int, child: int) -> tuple[tuple[int, bytes], ...]:
    """The outputs that the body of the child takes."""
    found = tx.all(_OUTPUTS, (run, graph, child))
    return tuple((ancestor, resolve(tx.db, run, output) or b"") for ancestor, output in found)
