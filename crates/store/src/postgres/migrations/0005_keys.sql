-- Every key of what belongs to a log begins with the workspace's number, so that the schema can be distributed by it. A version of
-- layout 4 may go on working on this: what it leaves out is filled in by triggers, and where it looks something up by its
-- place alone it goes through an index from end to end.

-- Whoever writes takes a row of the first before all else, and whoever reads takes the others in about this order: so few are
-- met half way.
LOCK TABLE workspaces IN EXCLUSIVE MODE;
LOCK TABLE runs, run_labels, asks, events, seen, outbox, attempts, keys IN ACCESS EXCLUSIVE MODE;

ALTER TABLE run_labels ADD COLUMN ws_no BIGINT;
UPDATE run_labels l SET ws_no = r.ws_no FROM runs r WHERE r.no = l.run_no;
ALTER TABLE run_labels ALTER COLUMN ws_no SET NOT NULL, DROP CONSTRAINT run_labels_run_no_fkey, DROP CONSTRAINT run_labels_pkey;
ALTER TABLE runs DROP CONSTRAINT runs_pkey, ADD PRIMARY KEY (ws_no, no);
ALTER TABLE run_labels ADD PRIMARY KEY (ws_no, run_no, key), ADD FOREIGN KEY (ws_no, run_no) REFERENCES runs (ws_no, no);
-- Runs that are over are looked for by their number, whatever their workspace.
CREATE INDEX runs_by_no ON runs (no);

ALTER TABLE events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (ws_no, pos);
DROP INDEX events_by_harness;
CREATE INDEX events_by_harness ON events (ws_no, harness_no, pos);

DROP INDEX keys_by_pos;
CREATE INDEX keys_by_pos ON keys (ws_no, pos);

ALTER TABLE asks DROP CONSTRAINT asks_pkey, ADD PRIMARY KEY (ws_no, pos);
DROP INDEX asks_by_run, asks_by_harness, asks_in_an_hour, asks_open_of_harness, asks_by_close;
CREATE INDEX asks_by_run ON asks (ws_no, run_no, pos);
CREATE INDEX asks_by_harness ON asks (ws_no, harness_no, pos);
CREATE INDEX asks_in_an_hour ON asks (ws_no, harness_no, asked_at);
CREATE INDEX asks_open_of_harness ON asks (ws_no, harness_no) WHERE state = 0;
CREATE UNIQUE INDEX asks_by_close ON asks (ws_no, closed_pos) WHERE closed_pos IS NOT NULL;

ALTER TABLE seen ADD COLUMN ws_no BIGINT;
UPDATE seen SET ws_no = ask_pos >> 40;
ALTER TABLE seen ALTER COLUMN ws_no SET NOT NULL, DROP CONSTRAINT seen_pkey, ADD PRIMARY KEY (ws_no, ask_pos, person_no);

-- What is due is looked for by its time, and what goes with an endpoint by that, whatever their workspace.
ALTER TABLE outbox DROP CONSTRAINT outbox_pkey, DROP CONSTRAINT outbox_ask_pos_endpoint_no_kind_round_key,
    ADD PRIMARY KEY (ws_no, no), ADD UNIQUE (ws_no, ask_pos, endpoint_no, kind, round);

ALTER TABLE attempts ADD COLUMN ws_no BIGINT;
UPDATE attempts SET ws_no = ask_pos >> 40;
ALTER TABLE attempts ALTER COLUMN ws_no SET NOT NULL, DROP CONSTRAINT attempts_pkey, ADD PRIMARY KEY (ws_no, no);
DROP INDEX attempts_by_ask;
CREATE INDEX attempts_by_ask ON attempts (ws_no, ask_pos);

-- What a version of layout 4 leaves out.
CREATE FUNCTION chips_workspace_of_ask() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.ws_no := NEW.ask_pos >> 40;
    RETURN NEW;
END $$;
CREATE FUNCTION chips_workspace_of_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT ws_no FROM %I.runs WHERE no = $1', TG_TABLE_SCHEMA) INTO NEW.ws_no USING NEW.run_no;
    RETURN NEW;
END $$;
CREATE TRIGGER workspace BEFORE INSERT ON seen FOR EACH ROW WHEN (NEW.ws_no IS NULL) EXECUTE FUNCTION chips_workspace_of_ask();
CREATE TRIGGER workspace BEFORE INSERT ON attempts FOR EACH ROW WHEN (NEW.ws_no IS NULL) EXECUTE FUNCTION chips_workspace_of_ask();
CREATE TRIGGER workspace BEFORE INSERT ON run_labels FOR EACH ROW WHEN (NEW.ws_no IS NULL) EXECUTE FUNCTION chips_workspace_of_run();
