-- Identifiers are the 16 bytes of their ULID; times are milliseconds since 1970 by Chips' clock.
-- A `pos` is a place in the log of one workspace: workspaces.no << 40 | seq.

CREATE TABLE meta (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    log_id      TEXT    NOT NULL, -- the name of this history of the log
    key_secret  BLOB    NOT NULL, -- keeps the hashes of keys from being foreseen
    admin_epoch INTEGER NOT NULL  -- goes up with each change to who may do or see what
) STRICT;

CREATE TABLE workspaces (
    no           INTEGER PRIMARY KEY,
    workspace_id BLOB    NOT NULL UNIQUE,
    name         TEXT    NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;

CREATE TABLE spaces (
    no         INTEGER PRIMARY KEY,
    ws_no      INTEGER NOT NULL REFERENCES workspaces,
    space_id   BLOB    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    closed     INTEGER NOT NULL, -- 0: everybody is in it; 1: its members are
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX spaces_of_workspace ON spaces (ws_no);

CREATE TABLE persons (
    no          INTEGER PRIMARY KEY,
    ws_no       INTEGER NOT NULL REFERENCES workspaces,
    person_id   BLOB    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    owner       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;
CREATE INDEX persons_of_workspace ON persons (ws_no);

CREATE TABLE members (
    space_no  INTEGER NOT NULL REFERENCES spaces,
    person_no INTEGER NOT NULL REFERENCES persons,
    PRIMARY KEY (space_no, person_no)
) STRICT;
CREATE INDEX members_by_person ON members (person_no);

CREATE TABLE harnesses (
    no          INTEGER PRIMARY KEY,
    ws_no       INTEGER NOT NULL REFERENCES workspaces,
    harness_id  BLOB    NOT NULL UNIQUE,
    name        TEXT    NOT NULL,
    open_limit  INTEGER, -- open asks; null: no limit
    hour_limit  INTEGER, -- asks in an hour; null: no limit
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;
CREATE INDEX harnesses_of_workspace ON harnesses (ws_no);

CREATE TABLE agents (
    ws_no      INTEGER NOT NULL REFERENCES workspaces,
    agent_id   BLOB    NOT NULL,
    harness_no INTEGER NOT NULL REFERENCES harnesses,
    PRIMARY KEY (ws_no, agent_id)
) STRICT;

CREATE TABLE tokens (
    sha256     BLOB    PRIMARY KEY,
    person_no  INTEGER REFERENCES persons,
    harness_no INTEGER REFERENCES harnesses,
    created_at INTEGER NOT NULL,
    ends_at    INTEGER, -- null: until it is rotated or disabled
    CHECK ((person_no IS NULL) <> (harness_no IS NULL))
) STRICT;
CREATE INDEX tokens_by_person ON tokens (person_no) WHERE person_no IS NOT NULL;
CREATE INDEX tokens_by_harness ON tokens (harness_no) WHERE harness_no IS NOT NULL;

-- One way to sign in: a link and the short code beside it. Using one uses up both.
CREATE TABLE grants (
    no          INTEGER PRIMARY KEY,
    person_no   INTEGER NOT NULL REFERENCES persons,
    link_sha256 BLOB    NOT NULL UNIQUE,
    code_sha256 BLOB    NOT NULL UNIQUE,
    ends_at     INTEGER NOT NULL,
    used_at     INTEGER
) STRICT;
CREATE INDEX grants_by_person ON grants (person_no);

CREATE TABLE sessions (
    no        INTEGER PRIMARY KEY AUTOINCREMENT, -- seen in settings, so never given twice
    person_no INTEGER NOT NULL REFERENCES persons,
    sha256    BLOB    NOT NULL UNIQUE,
    device    TEXT    NOT NULL,
    began     INTEGER NOT NULL,
    last_used INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_person ON sessions (person_no);

CREATE TABLE runs (
    no            INTEGER PRIMARY KEY,
    ws_no         INTEGER NOT NULL REFERENCES workspaces,
    run_id        BLOB    NOT NULL,
    harness_no    INTEGER NOT NULL REFERENCES harnesses,
    space_no      INTEGER REFERENCES spaces,
    title         TEXT,
    url           TEXT,
    parent_run_id BLOB,
    lease_seconds TEXT,    -- the number as it was given
    lease_ms      INTEGER,
    lease_until   INTEGER,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER,
    UNIQUE (ws_no, run_id)
) STRICT;

CREATE TABLE run_labels (
    run_no INTEGER NOT NULL REFERENCES runs,
    key    TEXT    NOT NULL,
    value  TEXT    NOT NULL,
    PRIMARY KEY (run_no, key)
) STRICT;

-- The log. Everything below can be built again from it and the runs.
CREATE TABLE events (
    pos        INTEGER PRIMARY KEY,
    ws_no      INTEGER NOT NULL,
    event_id   BLOB    NOT NULL,
    harness_no INTEGER NOT NULL, -- whose run it belongs to
    space_no   INTEGER,
    type       INTEGER NOT NULL, -- 1 question.ask, 2 question.answered
    ts         INTEGER NOT NULL,
    body       TEXT    NOT NULL  -- the event as JSON on one line, as every reader gets it
) STRICT;
CREATE UNIQUE INDEX events_by_id ON events (ws_no, event_id);
CREATE INDEX events_by_harness ON events (harness_no);

-- The idempotency keys, kept in memory while the store is open. Narrow and append-only: a unique index on random keys
-- would cost most of the speed of a long log.
CREATE TABLE keys (
    pos  INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL -- 64 bits of the SHA-256 of the secret, the sender and the key
) STRICT;

CREATE TABLE asks (
    pos             INTEGER PRIMARY KEY, -- of the question.ask
    ws_no           INTEGER NOT NULL,
    ask_id          BLOB    NOT NULL,
    run_no          INTEGER NOT NULL,
    harness_no      INTEGER NOT NULL,
    space_no        INTEGER,
    state           INTEGER NOT NULL, -- 0 open, 1 answered, 2 timed_out, 3 settled, 4 withdrawn
    tier            INTEGER NOT NULL, -- 0 time_sensitive, 1 active, 2 passive
    asked_at        INTEGER NOT NULL,
    deadline        INTEGER NOT NULL, -- the largest integer where it waits until it is answered
    closed_pos      INTEGER,          -- of the question.answered
    delivered_at    INTEGER,
    acknowledged_at INTEGER,
    late            TEXT              -- JSON: answers that came too late
) STRICT;
CREATE UNIQUE INDEX asks_by_id ON asks (ws_no, ask_id);
CREATE INDEX asks_by_run ON asks (run_no);
CREATE INDEX asks_by_harness ON asks (harness_no);
CREATE INDEX asks_open ON asks (ws_no, tier, deadline) WHERE state = 0;

-- Filled and emptied again to find out whether there is room for a write.
CREATE TABLE probe (pad BLOB NOT NULL) STRICT;
