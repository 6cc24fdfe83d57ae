-- Stored definitions: documents, pipelines, triggers (codes.py has their numbers). A version never changes.
CREATE TABLE version (
  kind      INTEGER NOT NULL,
  name      TEXT NOT NULL,
  number    INTEGER NOT NULL,
  digest    TEXT NOT NULL,
  body      BLOB NOT NULL,
  stored_at INTEGER NOT NULL,
  UNIQUE (kind, name, number),
  UNIQUE (kind, name, digest)
);

-- The version that somebody has chosen; without a row it is the newest.
CREATE TABLE chosen_version (
  kind   INTEGER NOT NULL,
  name   TEXT NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
