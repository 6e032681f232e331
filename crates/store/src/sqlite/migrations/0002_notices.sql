-- Telling people outside the inbox, and harnesses by webhook: where, how they want it, what is to be said, and what
-- the other side made of it.

ALTER TABLE spaces ADD COLUMN private INTEGER NOT NULL DEFAULT 0; -- 1: what is said outside carries no word of a question
ALTER TABLE harnesses ADD COLUMN owner_no INTEGER REFERENCES persons; -- told alone of what is asked outside any space
ALTER TABLE asks ADD COLUMN told INTEGER; -- 0: nobody could be told; 1: somebody was; null: not known

CREATE TABLE preferences (
    person_no INTEGER PRIMARY KEY REFERENCES persons,
    body      TEXT NOT NULL -- JSON
) STRICT;

CREATE TABLE endpoints (
    no          INTEGER PRIMARY KEY AUTOINCREMENT, -- seen in settings, so never given twice
    ws_no       INTEGER NOT NULL REFERENCES workspaces,
    person_no   INTEGER REFERENCES persons,
    harness_no  INTEGER REFERENCES harnesses,
    session_no  INTEGER REFERENCES sessions ON DELETE CASCADE, -- a browser's subscription ends with its session
    channel     TEXT    NOT NULL,
    address     TEXT    NOT NULL,
    secret      TEXT    NOT NULL, -- JSON; what the channel needs to speak to the address
    name        TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER,
    trouble     TEXT, -- what the other side said last, where it did not accept
    CHECK ((person_no IS NULL) <> (harness_no IS NULL))
) STRICT;
CREATE INDEX endpoints_of_workspace ON endpoints (ws_no);
CREATE UNIQUE INDEX endpoints_once ON endpoints (channel, address, coalesce(person_no, 0), coalesce(harness_no, 0));
CREATE INDEX endpoints_by_person ON endpoints (person_no) WHERE person_no IS NOT NULL;
CREATE INDEX endpoints_by_harness ON endpoints (harness_no) WHERE harness_no IS NOT NULL;
CREATE INDEX endpoints_by_session ON endpoints (session_no) WHERE session_no IS NOT NULL;

-- How far the log was gone through for what is to be said. A workspace without endpoints has none.
CREATE TABLE outbox_cursors (
    ws_no INTEGER PRIMARY KEY REFERENCES workspaces,
    seq   INTEGER NOT NULL
) STRICT;

CREATE TABLE outbox (
    no            INTEGER PRIMARY KEY AUTOINCREMENT, -- names the message to the other side
    ws_no         INTEGER NOT NULL,
    ask_pos       INTEGER NOT NULL,
    endpoint_no   INTEGER NOT NULL REFERENCES endpoints ON DELETE CASCADE,
    kind          INTEGER NOT NULL, -- 0 asked, 1 reminder, 2 last_call, 3 closed, 4 answered
    round         INTEGER NOT NULL, -- of a reminder, from 1; of a message that was sent again by hand, from 1
    due_at        INTEGER NOT NULL,
    claimed_until INTEGER NOT NULL, -- somebody sends it until then
    tries         INTEGER NOT NULL,
    state         INTEGER NOT NULL, -- 0 waits, 1 accepted, 2 given up, 3 not needed any more
    UNIQUE (ask_pos, endpoint_no, kind, round)
) STRICT;
CREATE INDEX outbox_due ON outbox (due_at) WHERE state = 0;
CREATE INDEX outbox_by_endpoint ON outbox (endpoint_no, claimed_until);

-- Every try, kept though its endpoint is gone.
CREATE TABLE attempts (
    no          INTEGER PRIMARY KEY,
    ask_pos     INTEGER NOT NULL,
    endpoint_no INTEGER NOT NULL,
    channel     TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    person_no   INTEGER,
    kind        INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    outcome     TEXT    NOT NULL, -- accepted, gone, refused, failed, timed_out
    detail      TEXT    NOT NULL
) STRICT;
CREATE INDEX attempts_by_ask ON attempts (ask_pos);

-- What Chips made for itself and keeps: the key that push services know it by, and the like.
CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
