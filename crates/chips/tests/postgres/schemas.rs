//! A store stays where it is, whoever makes another one in the same database.

use crate::home::Home;
use crate::support::Folder;
use crate::support::process::output;
use crate::team::{Team, command};

#[test]
fn a_schema_that_comes_later_does_not_lead_a_server_to_another_store() {
    let home = Home::schema();
    let (_, name) = home.url().rsplit_once("%3D").unwrap();
    let late = format!("{name}_late");
    home.sql(&format!("CREATE SCHEMA {name}"));
    // As with `"$user", public`, where nobody has made a schema of the user's name so far.
    let either = home.url().replace(name, &format!("{late}%2C{name}"));
    let team = Team::new(&either);
    // Its sessions under a name of their own: other tests have theirs on the same PostgreSQL.
    let serve = team.serve_by(&format!("{either}&application_name={name}"));
    let harness = team.harness(&serve);
    let run = harness.open_run();

    let later = Team::new(&home.url().replace(name, &late));
    // Its sessions end and come again: all of them come back to the same store.
    let ended =
        format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{name}'");
    assert_ne!(home.sql(&ended), "0");
    crate::support::until(crate::support::LIMIT, "the server to have sessions again", || {
        let answer = harness.send(&harness.plain_ask(&run));
        assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
        (answer.status == 201).then_some(())
    });
    for _ in 0..8 {
        assert_eq!(harness.log().len(), 1);
        assert_eq!(later.harness(&serve).get("/v1/me").status, 401);
    }

    // Who has to choose anew is asked which one is meant.
    let told = output(command(&Folder::empty(), &either, &["person", "list"]));
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("{late} and {name}")) && said.contains("csearch_path"), "{said}");
    drop(serve);
    home.sql(&format!("DROP SCHEMA {late} CASCADE"));
}
