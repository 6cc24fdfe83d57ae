-- Statuses are integers (see core/store/rules/codes.py).
-- Times are microseconds since 1970 by the store's clock. Payloads are opaque bytes.

-- The store's clock: microseconds since boot plus this shift. One row per boot of the machine.
CREATE TABLE boot (
  id    TEXT PRIMARY KEY,
  shift INTEGER NOT NULL
) WITHOUT ROWID;

-- Where READY nodes wait to be claimed. `careful` lanes are never claimed ahead and their nodes are interrupted, not run again, when
-- the worker is lost. A suspect keeps its kind of body.
CREATE TABLE lane (
  key     INTEGER PRIMARY KEY,
  queue   TEXT NOT NULL,
  body    TEXT NOT NULL,
  careful INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  UNIQUE (queue, body, careful, suspect)
);

CREATE TABLE graph (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  digest        TEXT NOT NULL UNIQUE,
  workflow      TEXT NOT NULL,
  signature     TEXT NOT NULL,
  total         INTEGER NOT NULL,
  loaded        INTEGER NOT NULL DEFAULT 0,
  roots         INTEGER NOT NULL DEFAULT 0,
  has_needs     INTEGER NOT NULL DEFAULT 0,   -- some node takes outputs as parameters
  registered_at INTEGER NOT NULL              -- when it was last stored; which is older, keys tell
);

-- Apart from its row, which changes while the graph is loaded: SQLite would write the whole document again each time.
CREATE TABLE document (
  graph INTEGER PRIMARY KEY,
  data  BLOB NOT NULL
);

-- How a graph numbers its nodes, in (level, order key, id) order. Shared by all runs of the graph.
CREATE TABLE layout (
  graph   INTEGER NOT NULL,
  idx     INTEGER NOT NULL,
  id      TEXT NOT NULL,
  parents INTEGER NOT NULL,
  lane    INTEGER NOT NULL,
  rank    INTEGER NOT NULL,                    -- its place in the order, which is not its number in a healed graph
  removed INTEGER NOT NULL,                    -- a node of earlier versions of the graph
  PRIMARY KEY (graph, idx)
) WITHOUT ROWID;

CREATE TABLE edge (
  graph  INTEGER NOT NULL,
  parent INTEGER NOT NULL,
  child  INTEGER NOT NULL,
  PRIMARY KEY (graph, parent, child)
) WITHOUT ROWID;

-- Which outputs a body takes as parameters.
CREATE TABLE need (
  graph    INTEGER NOT NULL,
  child    INTEGER NOT NULL,
  ancestor INTEGER NOT NULL,
  PRIMARY KEY (graph, child, ancestor)
) WITHOUT ROWID;

-- `key` is the run's admission number and is never used again.
CREATE TABLE run (
  key             INTEGER PRIMARY KEY AUTOINCREMENT,
  id              TEXT NOT NULL UNIQUE,
  workflow        TEXT NOT NULL,
  target          TEXT,
  graph           INTEGER NOT NULL,
  status          INTEGER NOT NULL,
  on_failure      TEXT NOT NULL,
  input           BLOB NOT NULL,
  seed            TEXT NOT NULL,               -- unsigned 64 bits
  urgency         INTEGER NOT NULL,            -- minus the priority, so that indexes ascend
  idempotency_key TEXT,
  timeout         INTEGER,
  gate            INTEGER NOT NULL,
  token           TEXT,
  purpose         TEXT,
  arguments       BLOB NOT NULL DEFAULT x'',
  expires_at      INTEGER,
  stopping        INTEGER NOT NULL DEFAULT 0,
  total           INTEGER NOT NULL,
  loaded          INTEGER NOT NULL,
  open            INTEGER NOT NULL,
  active          INTEGER NOT NULL,
  failed          INTEGER NOT NULL DEFAULT 0,
  tolerated       INTEGER NOT NULL DEFAULT 0,  -- of those that failed, how many the run goes on in spite of
  error           TEXT,                        -- the class of the first error of those that failed
  seq             INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  ended_at        INTEGER,
  deadline_at     INTEGER,
  cancel_at       INTEGER,
  reason          TEXT,
  heals           INTEGER NOT NULL DEFAULT 0,
  fork            BLOB,                        -- of which run, and from where
  marked          INTEGER,                     -- a lane for which `ready` certainly has a row: what is released next needs no other
  due_at          INTEGER,                     -- not later than the time at which the first WAITING node is due
  derived         INTEGER NOT NULL DEFAULT 0,  -- how far the counters of a large run have been derived, behind its closed gate
  origin          TEXT,
  tags            TEXT,                        -- JSON, in order of the names
  parent          TEXT,                        -- the id of the run of which it performs a node
  parent_node     INTEGER,
  depth           INTEGER NOT NULL DEFAULT 0,  -- how many runs are above it
  last_token      TEXT,                        -- of the gate that was finished last: a late copy of that request is refused
  reported_until  INTEGER NOT NULL DEFAULT 0,  -- until when the gate is left to the sweeper that it was reported to
  duration        INTEGER AS (max(0, ended_at - coalesce(started_at, created_at)))
);
-- The same key starts the same run of a workflow, also when two processes ask at once.
CREATE UNIQUE INDEX run_idempotency ON run (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
-- What needs somebody to serve it.
CREATE INDEX run_unfinished ON run (workflow, target, graph) WHERE status < 4;
-- What the sweeper looks for: gates left held, deadlines, cancelled runs whose time to stop is over.
CREATE INDEX run_held ON run (expires_at) WHERE gate = 1;
CREATE INDEX run_deadline ON run (deadline_at) WHERE gate = 0 AND deadline_at IS NOT NULL;
CREATE INDEX run_cancel ON run (cancel_at) WHERE cancel_at IS NOT NULL;
CREATE INDEX run_due ON run (due_at) WHERE gate = 0 AND due_at IS NOT NULL;
-- Runs whose attempts are asked to stop.
CREATE INDEX run_stopping ON run (key) WHERE stopping AND status < 4;
-- For people, for `gc`, and to know which graphs are not used.
CREATE INDEX run_status ON run (status);
CREATE INDEX run_ended ON run (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX run_duration ON run (duration) WHERE duration IS NOT NULL;
CREATE INDEX run_error ON run (error) WHERE error IS NOT NULL;
CREATE INDEX run_graph ON run (graph);
CREATE INDEX run_origin ON run (origin) WHERE origin IS NOT NULL;
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_workflow ON run (workflow);
CREATE INDEX run_created ON run (created_at);

-- The same as `run.tags`.
CREATE TABLE tag (
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  run   INTEGER NOT NULL,
  PRIMARY KEY (name, value, run)
) WITHOUT ROWID;
CREATE INDEX tag_run ON tag (run);

-- The graphs that a run had before: its history is read with them.
CREATE TABLE former_graph (
  run   INTEGER NOT NULL,
  graph INTEGER NOT NULL,
  PRIMARY KEY (run, graph)
) WITHOUT ROWID;
CREATE INDEX former_graph_graph ON former_graph (graph);

CREATE TABLE node (
  run      INTEGER NOT NULL,
  idx      INTEGER NOT NULL,
  status   INTEGER NOT NULL,
  waiting  INTEGER NOT NULL,
  skipped  INTEGER NOT NULL DEFAULT 0,         -- parents that were skipped, but for those that a heal has added too late
  lane     INTEGER NOT NULL,
  rank     INTEGER NOT NULL,                   -- its place in the order of the run
  attempt  INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  losses   INTEGER NOT NULL DEFAULT 0,
  due_at   INTEGER,
  reason   TEXT,
  generation INTEGER NOT NULL DEFAULT 0,       -- how often its completion was superseded
  postponed  INTEGER NOT NULL DEFAULT 0,       -- attempts that asked to be tried again later: no failures
  wakes      INTEGER NOT NULL DEFAULT 0,       -- not 0 if a run performs it; it is parked if it is WAITING and never due
  last       INTEGER,                          -- its latest attempt: the only one of it that may be running or completed
  PRIMARY KEY (run, idx),
  CHECK (waiting >= 0)
) WITHOUT ROWID;
-- Claims find runs first, in `ready`, then their nodes, in order of rank.
CREATE INDEX node_ready ON node (run, lane, rank) WHERE status = 1;
CREATE INDEX node_due ON node (run, due_at) WHERE status = 3;

-- A row for every lane in which a run with an open gate has a READY node. Some rows may be out of date (the nodes were taken,
-- the gate was closed, the run has another graph now): a claim that finds one removes it.
CREATE TABLE ready (
  lane     INTEGER NOT NULL,
  graph    INTEGER NOT NULL,
  workflow TEXT NOT NULL,                      -- two workflows may have one graph
  urgency  INTEGER NOT NULL,
  run      INTEGER NOT NULL,
  PRIMARY KEY (lane, graph, workflow, urgency, run)
) WITHOUT ROWID;

-- The unguessable id of a claim is the first half of the ids, and so of the fences, of the attempts it was granted.
CREATE TABLE claim (
  id  TEXT PRIMARY KEY,
  key INTEGER NOT NULL                         -- of its attempts: this, times 65,536, plus the ordinal
) WITHOUT ROWID;

-- Attempts that run or completed are found through their nodes, so no index of them is written for each attempt.
CREATE TABLE attempt (
  key        INTEGER PRIMARY KEY,              -- later attempts have larger keys
  run        INTEGER NOT NULL,
  idx        INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  status     INTEGER NOT NULL,
  claim      TEXT NOT NULL,
  worker     TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  output     BLOB,
  error      BLOB,
  outcome    BLOB,
  record     BLOB                              -- lines that came with its settlement, if they are small and it came alone
);
-- The attempts that ended in another way than by completing. Attempts are numbered without repetition.
CREATE UNIQUE INDEX attempt_former ON attempt (run, idx, number) WHERE status >= 2;

-- Runs in which a worker may have running attempts. A row is there as long as it has any; some rows may be out of date, and
-- whoever looks for what a worker holds deletes them. Not written for each attempt: a chain is claimed by one worker.
CREATE TABLE held (
  run    INTEGER NOT NULL,
  worker TEXT NOT NULL,
  PRIMARY KEY (run, worker)
) WITHOUT ROWID;

CREATE TABLE worker (
  id          TEXT PRIMARY KEY,
  lease_until INTEGER NOT NULL,
  renewed_at  INTEGER NOT NULL,
  info        BLOB NOT NULL,
  lease       INTEGER NOT NULL DEFAULT 30000000  -- how long it is: what the worker is given when nobody could renew
) WITHOUT ROWID;
CREATE INDEX worker_lease ON worker (lease_until);

-- When somebody last swept. One row.
CREATE TABLE swept (
  at INTEGER NOT NULL
);

-- The history of a run; `seq` counts without a gap.
CREATE TABLE journal (
  run    INTEGER NOT NULL,
  seq    INTEGER NOT NULL,
  at     INTEGER NOT NULL,
  kind   INTEGER NOT NULL,
  idx    INTEGER,
  number INTEGER,
  status INTEGER,
  detail TEXT,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID;

-- What running attempts append: log lines, progress, durable effects.
CREATE TABLE line (
  attempt INTEGER NOT NULL,
  idx     INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  data    BLOB NOT NULL,
  PRIMARY KEY (attempt, idx)
) WITHOUT ROWID;

-- Large payloads, once for each run.
CREATE TABLE blob (
  run  INTEGER NOT NULL,
  hash BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (run, hash)
);

-- Small records that are no part of a run: tokens of the server, stored definitions, triggers. `version` is compared before one is changed.
CREATE TABLE record (
  kind    TEXT NOT NULL,
  key     TEXT NOT NULL,
  version INTEGER NOT NULL,
  value   BLOB NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
