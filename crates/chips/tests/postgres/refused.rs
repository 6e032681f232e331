//! Servers that would lose what was acknowledged are refused at the start.

use crate::server::Server;
use crate::support::Folder;
use crate::support::process::output;
use crate::team::{Team, command};

#[test]
fn a_server_that_would_lose_what_was_acknowledged_is_refused_with_the_reason() {
    let server = Server::new();
    let team = Team::new(&server.url());
    for (setting, reason) in [("fsync", "fsync is off"), ("full_page_writes", "full_page_writes is off")] {
        server.set(setting, "off");
        refuses(&server.url(), reason);
        server.set(setting, "on");
    }
    let standby = server.standby();
    refuses(&standby.url(), "is a standby");

    // Of several hosts the one that takes writes is found, and everything is right again.
    let both = format!(
        "postgres://chips@{},{}/postgres?sslmode=disable&target_session_attrs=read-write",
        standby.host(),
        server.host()
    );
    let serve = team.serve_by(&both);
    team.harness(&serve).open_run();
    // By its socket in the file system, TLS wanted or not.
    for mode in ["disable", "prefer"] {
        let serve = team.serve_by(&format!("postgres://chips@{}/postgres?sslmode={mode}", server.socket()));
        team.harness(&serve).open_run();
    }

    server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    refuses(&server.url().replace("/postgres?", "/latin?"), "this database has the encoding LATIN1");
}

fn refuses(url: &str, reason: &str) {
    for args in [&["init"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let told = output(command(&Folder::empty(), url, args));
        let said = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(reason), "{args:?}: {said}");
    }
}
