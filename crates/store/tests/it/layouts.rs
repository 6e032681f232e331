//! A schema that the version before this one made: it is brought along, nothing of it is lost, and a server of that version may go on.

use chips_store::{AskFilter, AsksQuery, EventsQuery};

use crate::support::*;

/// Somebody in the schema that is kept.
const PERSON: &str = "chips_uk_gvTBUP1Z4n6vFySKffSUVkkj71p06Qlv2XmUQj";

/// A schema as a version left it, told by `pg_dump`.
fn kept(dump: &str) -> Home {
    let home = Home::schema();
    let (_, schema) = home.url().rsplit_once("%3D").unwrap();
    let dump = dump.replace("CREATE SCHEMA chips;", &format!("CREATE SCHEMA {schema};"));
    home.sql(&dump.replace("chips.", &format!("{schema}.")));
    home
}

#[tokio::test]
async fn a_schema_of_layout_4_is_brought_along_and_a_version_of_it_may_go_on_writing() {
    let home = kept(include_str!("../../../../tests/golden/0.1.0/postgres-4.sql"));
    let store = open(home.path());
    assert_eq!(home.sql("SELECT layout, runs_from FROM meta"), "5|4");
    let person = identity(&store, PERSON).await;
    let log = store.events(&person, &EventsQuery { limit: 10, ..EventsQuery::default() }).await.unwrap();
    assert_eq!(log.records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3]);
    let labelled = AsksQuery {
        filter: AskFilter::All,
        label: Some(("team".to_owned(), "billing".to_owned())),
        limit: 10,
        ..AsksQuery::default()
    };
    let asks = store.asks(&person, &labelled).await.unwrap().asks;
    assert_eq!(asks.len(), 2);
    for ask in &asks {
        assert_eq!(store.seen(&person, ask.ask_id).await.unwrap().unwrap().len(), 1);
        assert_eq!(store.attempts(&person, ask.ask_id).await.unwrap().unwrap().len(), 1);
    }

    // What a server of layout 4 writes beside this one says no workspace.
    home.sql(
        "DELETE FROM seen; DELETE FROM attempts; DELETE FROM run_labels;
         INSERT INTO seen (ask_pos, person_no, at) SELECT pos, 1, 7 FROM asks ON CONFLICT DO NOTHING;
         INSERT INTO attempts (ask_pos, endpoint_no, channel, name, person_no, kind, at, outcome, detail)
             SELECT pos, 1, 'ntfy', 'Phone', 1, 0, 7, 'accepted', '' FROM asks;
         INSERT INTO run_labels (run_no, key, value) SELECT no, 'team', 'billing' FROM runs WHERE title = 'Nightly'",
    );
    assert_eq!(store.asks(&person, &labelled).await.unwrap().asks.len(), 2);
    for ask in &asks {
        assert_eq!(store.seen(&person, ask.ask_id).await.unwrap().unwrap().len(), 1);
        assert_eq!(store.attempts(&person, ask.ask_id).await.unwrap().unwrap().len(), 1);
    }
    store.close().await;
}

#[tokio::test]
async fn every_key_of_what_belongs_to_a_log_begins_with_the_workspace() {
    let (home, world) = world().await;
    let keys = home.sql(
        "SELECT count(*), count(*) FILTER (WHERE a.attname <> 'ws_no') FROM pg_index i
         JOIN pg_class t ON t.oid = i.indrelid JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = i.indkey[0]
         WHERE t.relnamespace = current_schema()::regnamespace AND i.indisunique AND t.relname IN ('events', 'asks', 'keys', 'runs',
             'run_labels', 'agents', 'seen', 'outbox', 'outbox_cursors', 'attempts')",
    );
    let (keys, others) = keys.split_once('|').unwrap();
    assert!(keys.parse::<u32>().unwrap() >= 14, "{keys}");
    assert_eq!(others, "0");
    world.store.close().await;
}
