//! The API under `/v1`: one file per resource. Handlers parse, call the store and answer; there are no rules here.
