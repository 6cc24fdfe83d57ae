-- Small records that are no part of a run: tokens of the server, triggers. `version` is compared before one is changed.
CREATE TABLE record (
  kind    TEXT NOT NULL,
  key     TEXT NOT NULL,
  version INTEGER NOT NULL,
  value   BLOB NOT NULL,
  PRIMARY KEY (kind, key)
) WITHOUT ROWID;
