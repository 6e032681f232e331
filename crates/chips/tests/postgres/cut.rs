//! Connections to PostgreSQL break at a COMMIT.

use std::collections::HashSet;
use std::net::ToSocketAddrs;

use crate::home::Home;
use crate::support::scene::{ask_path, seq};
use crate::support::{LIMIT, until};
use crate::team::{Team, Told};
use crate::wire::{Cut, Wire};

#[test]
fn a_connection_cut_at_a_commit_is_acknowledged_and_there_once_or_503_and_safe_to_repeat() {
    let home = Home::schema();
    let team = Team::new(home.url());
    let (before, after) = home.url().split_once('@').unwrap();
    let (host, rest) = after.split_once('/').unwrap();
    let wire = Wire::to(host.to_socket_addrs().unwrap().next().unwrap());
    let cut = team.serve_by(&format!("{before}@{}/{rest}", wire.address()));
    let beside = team.serve();
    let (harness, other) = (team.harness(&cut), team.harness(&beside));
    let run = harness.open_run();
    let told = Told::default();
    let (mut acknowledged, mut turned_away) = (0, 0);

    // Two and three in a row break the session that looks the commit up as well.
    let plans =
        [Cut::Before, Cut::After].into_iter().flat_map(|cut| [1, 1, 1, 2, 1, 3, 1, 1].map(|times| (cut, times)));
    for (cut, times) in plans {
        let cuts = wire.cuts();
        let ask = harness.plain_ask(&run);
        wire.cut_next(cut, times);
        let answer = harness.send(&ask);
        until(LIMIT, "the connection to be cut", || (wire.cuts() > cuts).then_some(()));
        assert!(matches!(answer.status, 201 | 503), "{}", answer.text());
        if answer.status == 201 {
            acknowledged += 1;
            told.acknowledged.lock().unwrap().push(answer.json());
            // The other server has it, or will within a moment.
            until(LIMIT, "the ask at the other server", || (other.get(&ask_path(&ask)).status == 200).then_some(()));
        } else {
            turned_away += 1;
            assert!(answer.header("retry-after").is_some());
        }
        // What is left of the plan may meet the repeat.
        let again = until(LIMIT, "the repeat to get through", || {
            let again = harness.send(&ask);
            (again.status != 503).then_some(again)
        });
        assert!(matches!(again.status, 200 | 201), "{}", again.text());
        assert_eq!(again.replayed(), again.status == 200);
        assert!(answer.status != 201 || again.status == 200, "what was acknowledged is a replay");
        if answer.status == 201 {
            assert_eq!(again.json(), answer.json());
        }
        told.acknowledged.lock().unwrap().push(again.json());
    }
    assert!(acknowledged > 0 && turned_away > 0, "{acknowledged} acknowledged, {turned_away} turned away");
    told.hold_against(&harness);
    told.hold_against(&other);
    let seqs: HashSet<u64> = told.acknowledged.lock().unwrap().iter().map(seq).collect();
    assert_eq!(seqs.len(), 16, "nothing stands twice");
}
