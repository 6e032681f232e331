-- When a question was first before the eyes of a person: told by a page of the inbox that was visible, and by nothing else.
CREATE TABLE seen (
    ask_pos   INTEGER NOT NULL,
    person_no INTEGER NOT NULL REFERENCES persons,
    at        INTEGER NOT NULL,
    PRIMARY KEY (ask_pos, person_no)
) STRICT, WITHOUT ROWID;
