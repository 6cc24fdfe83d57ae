-- A lane is what its fields say, not what its name spells. A suspect keeps its kind of body.
CREATE TABLE lane_4 (
  key     INTEGER PRIMARY KEY,
  queue   TEXT NOT NULL,
  body    TEXT NOT NULL,
  careful INTEGER NOT NULL,
  suspect INTEGER NOT NULL,
  UNIQUE (queue, body, careful, suspect)
);
INSERT INTO lane_4
SELECT key, substr(name, 1, instr(name, '/') - 1), rtrim(substr(name, instr(name, '/') + 1), '!'), careful, 0
  FROM lane WHERE substr(name, instr(name, '/') + 1) <> 'suspect';
INSERT INTO lane_4 (queue, body, careful, suspect) SELECT queue, body, careful, 1 FROM lane_4 WHERE NOT suspect;
UPDATE node
   SET lane = (SELECT s.key FROM run r JOIN layout l ON l.graph = r.graph AND l.idx = node.idx JOIN lane_4 home ON home.key = l.lane
                 JOIN lane_4 s ON (s.queue, s.body, s.careful, s.suspect) = (home.queue, home.body, home.careful, 1)
                WHERE r.key = node.run)
 WHERE lane NOT IN (SELECT key FROM lane_4 WHERE NOT suspect);
DROP TABLE lane;
ALTER TABLE lane_4 RENAME TO lane;
DELETE FROM ready;
INSERT INTO ready
SELECT DISTINCT n.lane, r.graph, r.workflow, r.urgency, r.key FROM run r CROSS JOIN node n ON n.run = r.key AND n.status = 1
 WHERE r.gate = 0;
UPDATE run SET marked = NULL;

-- Forks are found by the run they are of.
ALTER TABLE run ADD COLUMN origin TEXT;
UPDATE run SET origin = iif(json_valid(CAST(fork AS TEXT)), CAST(fork AS TEXT) ->> '$.origin', NULL) WHERE fork IS NOT NULL;
DROP INDEX run_forks;
CREATE INDEX run_origin ON run (origin) WHERE origin IS NOT NULL;

-- What people find runs by. `tags` is the same as JSON, in order of the names.
ALTER TABLE run ADD COLUMN tags TEXT;
CREATE TABLE tag (
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  run   INTEGER NOT NULL,
  PRIMARY KEY (name, value, run)
) WITHOUT ROWID;
CREATE INDEX tag_run ON tag (run);
CREATE INDEX run_workflow ON run (workflow);
CREATE INDEX run_created ON run (created_at);

-- The token of the request that was finished last: a late copy of it is not to hold the gate again.
ALTER TABLE run ADD COLUMN last_token TEXT;

-- Until when the gate is left to the sweeper that it was reported to.
ALTER TABLE run ADD COLUMN reported_until INTEGER NOT NULL DEFAULT 0;

-- How long a worker's lease is: what it is given when nobody could renew.
ALTER TABLE worker ADD COLUMN lease INTEGER NOT NULL DEFAULT 30000000;
-- When somebody last swept. One row.
CREATE TABLE swept (
  at INTEGER NOT NULL
);

-- Runs whose attempts are asked to stop.
CREATE INDEX run_stopping ON run (key) WHERE stopping AND status < 4;

-- Large payloads belong to a run: no count is shared by all.
CREATE TABLE blob_4 (
  run  INTEGER NOT NULL,
  hash BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (run, hash)
);
INSERT OR IGNORE INTO blob_4 (run, hash, data)
SELECT u.run, b.hash, b.data
  FROM (SELECT key AS run, input AS value FROM run
        UNION SELECT run, output FROM attempt UNION SELECT run, error FROM attempt UNION SELECT run, outcome FROM attempt
        UNION SELECT a.run, l.data FROM line l JOIN attempt a ON a.key = l.attempt) u
       JOIN blob b ON b.hash = substr(u.value, 2)
 WHERE substr(u.value, 1, 1) = x'00';
DROP TABLE blob;
ALTER TABLE blob_4 RENAME TO blob;
