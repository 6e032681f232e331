-- Whose workspace it is, where a row said that by its place or its run alone: in a database of several servers every key begins
-- with it. What is added here is filled at once; the default is what SQLite wants to see, and nothing's.

ALTER TABLE run_labels ADD COLUMN ws_no INTEGER NOT NULL DEFAULT 0;
UPDATE run_labels SET ws_no = (SELECT ws_no FROM runs WHERE no = run_no);

ALTER TABLE attempts ADD COLUMN ws_no INTEGER NOT NULL DEFAULT 0;
UPDATE attempts SET ws_no = ask_pos >> 40;

ALTER TABLE seen ADD COLUMN ws_no INTEGER NOT NULL DEFAULT 0;
UPDATE seen SET ws_no = ask_pos >> 40;
