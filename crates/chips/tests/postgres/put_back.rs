//! The database is put back to an earlier moment under servers that run.

use crate::home::Home;
use crate::support::LIMIT;
use crate::support::scene::seq;
use crate::team::Team;

#[test]
fn a_server_does_not_go_on_with_a_history_that_the_database_does_not_have_any_more() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let mut serve = team.serve();
    let harness = team.harness(&serve);
    let run = harness.open_run();
    let kept = seq(&harness.send(&harness.plain_ask(&run)).expect(201));
    for _ in 0..3 {
        harness.send(&harness.plain_ask(&run)).expect(201);
    }
    // What a recovery to an earlier moment does, as far as the log goes.
    let back: String = ["events", "asks", "keys"]
        .iter()
        .map(|table| format!("DELETE FROM {table} WHERE (pos & 1099511627775) > {kept};"))
        .collect();
    home.sql(&format!("BEGIN; {back} UPDATE workspaces SET head = {kept}; COMMIT"));
    assert_eq!(serve.process.wait(LIMIT).code(), Some(70));
    assert!(serve.log().contains("put back to an earlier moment"), "{}", serve.log());

    let mut serve = team.serve();
    let harness = team.harness(&serve);
    assert_eq!(harness.head(), kept);
    let next = harness.send(&harness.plain_ask(&run)).expect(201);
    assert_eq!(seq(&next), kept + 1);
    assert_eq!(harness.log().last(), Some(&next));

    // It is given a new name, so that readers begin anew: a server that runs has the old one in its memory.
    home.sql("UPDATE meta SET log_id = 'log_' || upper(md5(random()::text))");
    assert_eq!(serve.process.wait(LIMIT).code(), Some(70));
    let serve = team.serve();
    assert_eq!(team.harness(&serve).head(), kept + 1);
}
