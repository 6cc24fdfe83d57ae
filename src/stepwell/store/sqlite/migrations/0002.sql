-- Claims are two-level: runs in which something may be READY, then their nodes. So nobody scans the READY and WAITING nodes of
-- runs that are paused, failed or served by others.
DROP INDEX node_ready;
DROP INDEX node_due;
ALTER TABLE node DROP COLUMN urgency;
CREATE INDEX node_ready ON node (run, lane, rank) WHERE status = 1;
CREATE INDEX node_due ON node (run, due_at) WHERE status = 3;

-- A row for every lane in which a run with an open gate has a READY node. Some rows may be out of date (the nodes were taken,
-- the gate was closed, the run goes by another graph): a claim that comes across one removes it.
CREATE TABLE ready (
  lane     INTEGER NOT NULL,
  graph    INTEGER NOT NULL,
  workflow TEXT NOT NULL,                      -- two workflows may have one graph
  urgency  INTEGER NOT NULL,
  run      INTEGER NOT NULL,
  PRIMARY KEY (lane, graph, workflow, urgency, run)
) WITHOUT ROWID;
INSERT INTO ready
SELECT DISTINCT n.lane, r.graph, r.workflow, r.urgency, r.key FROM run r CROSS JOIN node n ON n.run = r.key AND n.status = 1
 WHERE r.gate = 0;

-- A lane for which the run certainly has a row in `ready`: what a chain releases next needs no other.
ALTER TABLE run ADD COLUMN marked INTEGER;

-- Not later than the time at which the first WAITING node of the run is due.
ALTER TABLE run ADD COLUMN due_at INTEGER;
UPDATE run SET due_at = (SELECT min(n.due_at) FROM node n WHERE n.run = run.key AND n.status = 3) WHERE status < 4;
CREATE INDEX run_due ON run (due_at) WHERE gate = 0 AND due_at IS NOT NULL;

-- How far the counters of a large run have been derived anew, behind its closed gate.
ALTER TABLE run ADD COLUMN derived INTEGER NOT NULL DEFAULT 0;

-- A key starts one run of a workflow.
DROP INDEX run_idempotency;
CREATE UNIQUE INDEX run_idempotency ON run (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Runs by status and by the time of their end, for people and for `gc`; and by graph, to know which graphs are not used.
CREATE INDEX run_status ON run (status);
CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX run_graph ON run (graph);

ALTER TABLE graph RENAME COLUMN needy TO has_needs;
-- `graph.registered_at` is the time at which somebody last stored the graph. Which is older, keys tell.

-- The graphs that a run had before: its history is read with them.
CREATE TABLE former_graph (
  run   INTEGER NOT NULL,
  graph INTEGER NOT NULL,
  PRIMARY KEY (run, graph)
) WITHOUT ROWID;
CREATE INDEX former_graph_graph ON former_graph (graph);
INSERT OR IGNORE INTO former_graph
SELECT j.run, g.key FROM journal j CROSS JOIN graph g ON g.digest = substr(j.detail, 1, instr(j.detail, ' ') - 1)
 WHERE j.kind = 13;

-- Attempts of a node that asked to be tried again later, since somebody last asked for it. They are no failures.
ALTER TABLE node ADD COLUMN postponed INTEGER NOT NULL DEFAULT 0;
