-- Statuses and kinds are integers (see core/store/rules/codes.py). Times are microseconds since 1970 by the server's clock.
-- Payloads are opaque bytes; large ones are kept once for each run, and rows hold references to them.
--
-- What changes all the time is in rows that no index but the primary key covers, with room on their pages, so that updates are
-- HOT. READY and due nodes, and what workers hold, are found by narrow tables of their own: a status in an index would make every
-- update a cold one.
--
-- Those tables are empty now and then. If they are analysed just then, the server takes a walk through one of them for cheaper than
-- looking ten rows up, and joins it from there. So they are not joined: rows are looked up by subqueries with OFFSET 0, which are not
-- turned into joins, and deleted by their places (ctid), which nobody changes who does not have the run.

-- The version of this schema (`VERSION`). One row.
CREATE TABLE schema_version (
  one    boolean PRIMARY KEY DEFAULT true CHECK (one),
  number integer NOT NULL
);

-- A lane is what READY nodes are found by. Every lane has one for its suspects.
CREATE TABLE lane (
  key     integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue   text COLLATE "C" NOT NULL,
  body    text COLLATE "C" NOT NULL,
  careful boolean NOT NULL,
  suspect boolean NOT NULL,
  UNIQUE (queue, body, careful, suspect)
);

CREATE TABLE graph (
  key           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  digest        text COLLATE "C" NOT NULL UNIQUE,
  workflow      text COLLATE "C" NOT NULL,
  signature     text COLLATE "C" NOT NULL,
  document      bytea NOT NULL,
  total         integer NOT NULL,
  loaded        integer NOT NULL DEFAULT 0,
  roots         integer NOT NULL DEFAULT 0,
  has_needs     boolean NOT NULL DEFAULT false,   -- some node takes outputs as parameters
  registered_at bigint NOT NULL                   -- when somebody last stored it
);

-- How a graph numbers its nodes. Shared by all runs of the graph.
CREATE TABLE layout (
  graph   bigint NOT NULL,
  idx     integer NOT NULL,
  id      text COLLATE "C" NOT NULL,
  parents integer NOT NULL,
  lane    integer NOT NULL,
  rank    integer NOT NULL,
  removed boolean NOT NULL,
  PRIMARY KEY (graph, idx)
);

CREATE TABLE edge (
  graph  bigint NOT NULL,
  parent integer NOT NULL,
  child  integer NOT NULL,
  PRIMARY KEY (graph, parent, child)
);

-- Which outputs a body takes as parameters.
CREATE TABLE need (
  graph    bigint NOT NULL,
  child    integer NOT NULL,
  ancestor integer NOT NULL,
  PRIMARY KEY (graph, child, ancestor)
);

-- `key` is the run's admission number. Columns that change with every commit are in no index.
CREATE TABLE run (
  key             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id              text COLLATE "C" NOT NULL UNIQUE,
  workflow        text COLLATE "C" NOT NULL,
  target          text COLLATE "C",
  graph           bigint NOT NULL,
  status          smallint NOT NULL,
  on_failure      text COLLATE "C" NOT NULL,
  input           bytea NOT NULL,
  seed            numeric NOT NULL,                 -- unsigned 64 bits
  urgency         bigint NOT NULL,                  -- minus the priority, so that indexes ascend
  idempotency_key text COLLATE "C",
  timeout         bigint,
  gate            smallint NOT NULL,
  token           text COLLATE "C",
  last_token      text COLLATE "C",
  purpose         text COLLATE "C",
  arguments       bytea NOT NULL DEFAULT '',
  expires_at      bigint,
  reported_until  bigint NOT NULL DEFAULT 0,
  stopping        boolean NOT NULL DEFAULT false,
  total           integer NOT NULL,
  loaded          integer NOT NULL,
  open            integer NOT NULL,
  active          integer NOT NULL,
  failed          integer NOT NULL DEFAULT 0,
  tolerated       integer NOT NULL DEFAULT 0,
  error           text COLLATE "C",                 -- the class of the first error of the nodes that failed
  seq             bigint NOT NULL,
  created_at      bigint NOT NULL,
  started_at      bigint,
  ended_at        bigint,
  deadline_at     bigint,
  cancel_at       bigint,
  due_at          bigint,                           -- not later than the first of its WAITING nodes is due
  -- In this lane no READY node has a lower rank. What was claimed lies before it, and as long as an old transaction is open
  -- every claim would walk through all of that again. Null: nothing is known.
  low_lane        integer,
  low_rank        integer,
  reason          text COLLATE "C",
  heals           integer NOT NULL DEFAULT 0,
  fork            bytea,
  origin          text COLLATE "C",
  tags            text COLLATE "C",                 -- JSON, in order of the names
  parent          text COLLATE "C",                 -- of a child run the id of the run of which it performs a node
  parent_node     integer,
  depth           integer NOT NULL DEFAULT 0,
  -- For indexes, in place of the status: that a run begins changes no index.
  ended_as        smallint GENERATED ALWAYS AS (CASE WHEN status >= 4 THEN status END) STORED,
  duration        bigint GENERATED ALWAYS AS (greatest(0, ended_at - coalesce(started_at, created_at))) STORED
) WITH (fillfactor = 45);
CREATE UNIQUE INDEX run_idempotency ON run (workflow, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX run_unfinished ON run (workflow, (coalesce(target, '')), graph) WHERE ended_as IS NULL;
CREATE INDEX run_held ON run (expires_at) WHERE gate = 1;
CREATE INDEX run_deadline ON run (deadline_at) WHERE gate = 0 AND deadline_at IS NOT NULL;
CREATE INDEX run_due ON run (due_at) WHERE gate = 0 AND due_at IS NOT NULL;
CREATE INDEX run_cancel ON run (cancel_at) WHERE cancel_at IS NOT NULL;
CREATE INDEX run_stopping ON run (key) WHERE stopping AND ended_as IS NULL;
CREATE INDEX run_ended_as ON run (ended_as, key) WHERE ended_as IS NOT NULL;
CREATE INDEX run_ended ON run (ended_at, key) WHERE ended_at IS NOT NULL;
CREATE INDEX run_duration ON run (duration, key) WHERE ended_at IS NOT NULL;
CREATE INDEX run_error ON run (error, key) WHERE error IS NOT NULL;
CREATE INDEX run_graph ON run (graph);
CREATE INDEX run_workflow ON run (workflow, key);
CREATE INDEX run_origin ON run (origin) WHERE origin IS NOT NULL;
CREATE INDEX run_parent ON run (parent, key) WHERE parent IS NOT NULL;

CREATE TABLE tag (
  name  text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  run   bigint NOT NULL,
  PRIMARY KEY (name, value, run)
);
CREATE INDEX tag_run ON tag (run);

-- The graphs that a run had before: its history is read with them.
CREATE TABLE former_graph (
  run   bigint NOT NULL,
  graph bigint NOT NULL,
  PRIMARY KEY (run, graph)
);
CREATE INDEX former_graph_graph ON former_graph (graph);

CREATE TABLE node (
  run        bigint NOT NULL,
  idx        integer NOT NULL,
  status     smallint NOT NULL,
  waiting    integer NOT NULL CHECK (waiting >= 0),
  skipped    integer NOT NULL DEFAULT 0,   -- parents that were skipped, but for those that a heal has added too late
  lane       integer NOT NULL,
  rank       integer NOT NULL,
  attempt    integer NOT NULL DEFAULT 0,
  failures   integer NOT NULL DEFAULT 0,
  losses     integer NOT NULL DEFAULT 0,
  due_at     bigint,
  reason     text COLLATE "C",
  generation integer NOT NULL DEFAULT 0,
  postponed  integer NOT NULL DEFAULT 0,
  wakes      integer NOT NULL DEFAULT 0,
  PRIMARY KEY (run, idx)
) WITH (fillfactor = 45);

-- Every READY node, in the order in which a run's nodes are claimed.
CREATE TABLE ready (
  run  bigint NOT NULL,
  lane integer NOT NULL,
  rank integer NOT NULL,
  idx  integer NOT NULL,
  PRIMARY KEY (run, lane, rank, idx)
);

-- Every WAITING node that is due some time.
CREATE TABLE due (
  run bigint NOT NULL,
  at  bigint NOT NULL,
  idx integer NOT NULL,
  PRIMARY KEY (run, at, idx)
);

-- A row for every lane in which a run with an open gate has a READY node. Some may be out of date (the nodes were taken, the
-- gate was closed): a claim that comes across one removes it.
CREATE TABLE offer (
  lane     integer NOT NULL,
  graph    bigint NOT NULL,
  workflow text COLLATE "C" NOT NULL,
  urgency  bigint NOT NULL,
  run      bigint NOT NULL,
  PRIMARY KEY (lane, graph, workflow, urgency, run)
);
CREATE INDEX offer_run ON offer (run);

-- The unguessable id of a claim is the first half of the ids, and so of the fences, of the attempts it was granted.
CREATE TABLE claim (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id  text COLLATE "C" NOT NULL UNIQUE
);

-- `key` is the key of the claim times 65,536 plus the ordinal: later attempts of a run have larger keys.
CREATE TABLE attempt (
  key        bigint PRIMARY KEY,
  run        bigint NOT NULL,
  idx        integer NOT NULL,
  number     integer NOT NULL,
  status     smallint NOT NULL,
  worker     text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  ended_at   bigint,
  output     bytea,
  error      bytea,
  outcome    bytea,
  UNIQUE (run, idx, number)
) WITH (fillfactor = 45);

-- What a worker holds, for its renewal and for the sweeper: of a claim, how many attempts of each run are RUNNING. (A row for each
-- attempt cost a wide run a tenth of its time. One for the whole claim would be changed by those who have different runs.)
CREATE TABLE held (
  worker  text COLLATE "C" NOT NULL,
  claim   bigint NOT NULL,
  run     bigint NOT NULL,
  running integer NOT NULL CHECK (running > 0),
  PRIMARY KEY (worker, claim, run)
);

CREATE TABLE worker (
  id          text COLLATE "C" PRIMARY KEY,
  lease_until bigint NOT NULL,
  renewed_at  bigint NOT NULL,
  lease       bigint NOT NULL,
  info        bytea NOT NULL
) WITH (fillfactor = 45);

-- The history of a run; `seq` counts without a gap.
CREATE TABLE journal (
  run    bigint NOT NULL,
  seq    bigint NOT NULL,
  at     bigint NOT NULL,
  kind   smallint NOT NULL,
  idx    integer,
  number integer,
  status smallint,
  detail text COLLATE "C",
  PRIMARY KEY (run, seq)
);

-- What attempts record: log lines, progress, durable effects.
CREATE TABLE line (
  attempt bigint NOT NULL,
  idx     integer NOT NULL,
  at      bigint NOT NULL,
  kind    text COLLATE "C" NOT NULL,
  data    bytea NOT NULL,
  PRIMARY KEY (attempt, idx)
);

-- Large payloads, each once for a run.
CREATE TABLE blob (
  run  bigint NOT NULL,
  hash bytea NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (run, hash)
);

-- When somebody last swept. One row.
CREATE TABLE swept (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  at  bigint NOT NULL
);

-- Small records that are no part of a run: tokens of the server, stored definitions, triggers.
CREATE TABLE record (
  kind    text COLLATE "C" NOT NULL,
  key     text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  value   bytea NOT NULL,
  PRIMARY KEY (kind, key)
);

-- A READY node that a claim takes.
CREATE TYPE chosen AS (
  turn  integer,   -- the place of its lane among those that are asked for
  place tid,       -- in `ready`
  run   bigint,
  lane  integer,
  rank  integer,
  idx   integer
);

-- An attempt that ends, for whatever reason: settled, lost, released or fenced.
CREATE TYPE ending AS (
  attempt   bigint,
  run       bigint,
  idx       integer,
  number    integer,
  graph     bigint,
  status    smallint,     -- what becomes of the attempt
  node      smallint,     -- and of its node
  due_at    bigint,
  loss      integer,
  lane      integer,      -- the lane it moves to, if it does
  reason    text,
  moving    boolean,      -- the gate stood open
  postponed boolean,
  output    bytea,
  error     bytea,
  outcome   bytea,
  error_type text
);
