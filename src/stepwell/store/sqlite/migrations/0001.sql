-- Statuses are integers (see store/sqlite/codes.py).
-- Times are microseconds since 1970 by the store's clock. Payloads are opaque bytes.

-- The store's clock: microseconds since boot plus this shift. One row per boot of the machine.
CREATE TABLE boot (
  id    TEXT PRIMARY KEY,
  shift INTEGER NOT NULL
) WITHOUT ROWID;

-- A lane is a line that READY nodes stand in: queue and kind of body. `careful` lanes are never claimed ahead and their
-- nodes are interrupted, not run again, when the worker is lost.
CREATE TABLE lane (
  key     INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  careful INTEGER NOT NULL
);

CREATE TABLE graph (
  key           INTEGER PRIMARY KEY AUTOINCREMENT,
  digest        TEXT NOT NULL UNIQUE,
  workflow      TEXT NOT NULL,
  signature     TEXT NOT NULL,
  total         INTEGER NOT NULL,
  loaded        INTEGER NOT NULL DEFAULT 0,
  roots         INTEGER NOT NULL DEFAULT 0,
  needy         INTEGER NOT NULL DEFAULT 0,   -- some node takes outputs as parameters
  registered_at INTEGER NOT NULL
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
  seq             INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  started_at      INTEGER,
  ended_at        INTEGER,
  deadline_at     INTEGER,
  cancel_at       INTEGER,
  reason          TEXT,
  heals           INTEGER NOT NULL DEFAULT 0,
  fork            BLOB                         -- of which run, and from where
);
-- Forks are few: those of one run are found among them.
CREATE INDEX run_forks ON run (fork) WHERE fork IS NOT NULL;
-- The same key starts the same run, also when two processes ask at once.
CREATE UNIQUE INDEX run_idempotency ON run (idempotency_key) WHERE idempotency_key IS NOT NULL;
-- What needs somebody to serve it.
CREATE INDEX run_unfinished ON run (workflow, target, graph) WHERE status < 4;
-- What the sweeper looks for: gates left held, deadlines, cancelled runs whose time to stop is over.
CREATE INDEX run_held ON run (expires_at) WHERE gate = 1;
CREATE INDEX run_deadline ON run (deadline_at) WHERE gate = 0 AND deadline_at IS NOT NULL;
CREATE INDEX run_cancel ON run (cancel_at) WHERE cancel_at IS NOT NULL;

CREATE TABLE node (
  run      INTEGER NOT NULL,
  idx      INTEGER NOT NULL,
  status   INTEGER NOT NULL,
  waiting  INTEGER NOT NULL,
  live     INTEGER NOT NULL,
  lane     INTEGER NOT NULL,
  urgency  INTEGER NOT NULL,
  rank     INTEGER NOT NULL,                   -- its place in the order of the run
  attempt  INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  losses   INTEGER NOT NULL DEFAULT 0,
  due_at   INTEGER,
  reason   TEXT,
  generation INTEGER NOT NULL DEFAULT 0,       -- how often its completion was superseded
  PRIMARY KEY (run, idx),
  CHECK (waiting >= 0)
) WITHOUT ROWID;
-- The order in which nodes are claimed: lane, priority, admission of the run, place in the run.
CREATE INDEX node_ready ON node (lane, urgency, run, rank) WHERE status = 1;
CREATE INDEX node_due ON node (due_at) WHERE status = 3;

-- The unguessable id of a claim is the first half of the ids, and so of the fences, of the attempts it was granted.
CREATE TABLE claim (
  key INTEGER PRIMARY KEY,
  id  TEXT NOT NULL UNIQUE
);

-- `key` is the key of the claim times 65,536 plus the ordinal: later attempts have larger keys.
CREATE TABLE attempt (
  key        INTEGER PRIMARY KEY,
  run        INTEGER NOT NULL,
  idx        INTEGER NOT NULL,
  number     INTEGER NOT NULL,
  status     INTEGER NOT NULL,
  worker     TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at   INTEGER,
  output     BLOB,
  error      BLOB,
  outcome    BLOB,
  record     BLOB,                             -- lines that came with its settlement, if they are small and it came alone
  slot       INTEGER GENERATED ALWAYS AS (CASE status WHEN 0 THEN -1 WHEN 1 THEN 0 ELSE number END) VIRTUAL
);
-- One index keeps three promises, because a node has one slot -1, one slot 0 and one for each number: at most one attempt
-- of a node runs at any time; a node's completion is recorded exactly once; attempts are numbered without repetition.
CREATE UNIQUE INDEX attempt_slot ON attempt (run, idx, slot);
-- What a worker holds, for its renewal and for the sweeper.
CREATE INDEX attempt_held ON attempt (worker) WHERE status = 0;

CREATE TABLE worker (
  id          TEXT PRIMARY KEY,
  lease_until INTEGER NOT NULL,
  renewed_at  INTEGER NOT NULL,
  info        BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX worker_lease ON worker (lease_until);

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

-- Large payloads, each stored once; `uses` counts the rows that point at it.
CREATE TABLE blob (
  hash BLOB PRIMARY KEY,
  data BLOB NOT NULL,
  uses INTEGER NOT NULL
);
