-- Attempts of a node that asked to be tried again later, since somebody last asked for it. They are no failures.
ALTER TABLE node ADD COLUMN postponed INTEGER NOT NULL DEFAULT 0;
