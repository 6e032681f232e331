-- Keeping and forgetting: how far each log was dropped, and what was erased.

ALTER TABLE workspaces ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 1; -- the log begins with this `seq`: all before was dropped
ALTER TABLE workspaces ADD COLUMN dropped_ts INTEGER NOT NULL DEFAULT 0; -- of the last event that was dropped

-- What was erased and when, by identifier alone.
CREATE TABLE erasures (
    no      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    what    TEXT    NOT NULL, -- person, ask, run, workspace
    id      TEXT    NOT NULL,
    done_at INTEGER           -- null: it was cut short, and is to be run again
) STRICT;

ALTER TABLE meta ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0; -- goes up with each transaction that overwrites texts
ALTER TABLE meta ADD COLUMN erasures_seen INTEGER NOT NULL DEFAULT 0; -- up to here the server has let go of what it held in memory
ALTER TABLE meta ADD COLUMN scrub INTEGER NOT NULL DEFAULT 0; -- 1: erased text may be left in free pages of the file
