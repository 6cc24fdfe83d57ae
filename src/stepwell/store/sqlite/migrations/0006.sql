-- A node names its latest attempt: the only one of it that may be running or completed. So the attempts that most runs have are
-- found through their nodes, and no index of them is written for each attempt.
ALTER TABLE node ADD COLUMN last INTEGER;
UPDATE node SET last = (SELECT a.key FROM attempt a WHERE a.run = node.run AND a.idx = node.idx AND a.number = node.attempt)
 WHERE attempt > 0;

-- Runs in which a worker may have running attempts. A row is there as long as it has any; some rows may be out of date, and
-- whoever looks for what a worker holds deletes them. Not written for each attempt: a chain is claimed by one worker.
CREATE TABLE held (
  run    INTEGER NOT NULL,
  worker TEXT NOT NULL,
  PRIMARY KEY (run, worker)
) WITHOUT ROWID;
INSERT INTO held SELECT DISTINCT run, worker FROM attempt WHERE status = 0;

-- An attempt holds the id of its claim, so that a claim need not be found by its key.
CREATE TABLE attempt_6 (
  key        INTEGER PRIMARY KEY,
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
INSERT INTO attempt_6
SELECT a.key, a.run, a.idx, a.number, a.status, c.id, a.worker, a.started_at, a.ended_at, a.output, a.error, a.outcome, a.record
  FROM attempt a JOIN claim c ON c.key = a.key / 65536 ORDER BY a.key;
DROP TABLE attempt;
ALTER TABLE attempt_6 RENAME TO attempt;
-- The attempts that ended in another way than by completing. Attempts are numbered without repetition.
CREATE UNIQUE INDEX attempt_former ON attempt (run, idx, number) WHERE status >= 2;

CREATE TABLE claim_6 (
  id  TEXT PRIMARY KEY,
  key INTEGER NOT NULL                         -- of its attempts: this, times 65,536, plus the ordinal
) WITHOUT ROWID;
INSERT INTO claim_6 SELECT id, key FROM claim;
DROP TABLE claim;
ALTER TABLE claim_6 RENAME TO claim;
