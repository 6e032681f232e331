//! What one server has told counts at the others at once.

use crate::home::Home;
use crate::support::Request;
use crate::support::scene::seq;
use crate::support::stream::Stream;
use crate::team::Team;

#[test]
fn a_cursor_counts_at_every_server_as_soon_as_one_of_them_has_told_it() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let (one, two) = (team.serve(), team.serve());
    let (harness, other) = (team.harness(&one), team.harness(&two));
    let run = harness.open_run();
    for _ in 0..40 {
        // The client goes on elsewhere with what it was told, before that server has read it.
        let head = seq(&harness.send(&harness.plain_ask(&run)).expect(201));
        other.get(&format!("/v1/events?after={head}")).expect(200);
        let head = seq(&harness.send(&harness.plain_ask(&run)).expect(201));
        let mut stream = Stream::open(other.addr, &other.token, "", Some(head));
        let next = harness.send(&harness.plain_ask(&run)).expect(201);
        assert_eq!(stream.expect().seq(), seq(&next), "nothing before it, and nothing after it first");
    }
    // What nobody has told is refused as ever.
    let head = other.head();
    other.get(&format!("/v1/events?after={}", head + 1)).expect_problem(410, "cursor_ahead");
    let stream = Request::get("/v1/events/stream").header("last-event-id", &(head + 1).to_string());
    stream.bearer(&other.token).send(other.addr).expect_problem(410, "cursor_ahead");
}
