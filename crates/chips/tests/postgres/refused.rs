//! Servers that would lose what was acknowledged are refused at the start.

use crate::server::Server;
use crate::support::process::output;
use crate::support::{Folder, LIMIT, Request, Serve, until};
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
    // One that runs sees it with its next session, and takes writes again when it is mended.
    let serve = team.serve();
    server.set("fsync", "off");
    says(&serve, &server, 503, "PostgreSQL is not as Chips needs it: fsync is off");
    server.set("fsync", "on");
    says(&serve, &server, 200, "");
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    says(&serve, &server, 503, "PostgreSQL is not as Chips needs it: it takes no writes");
    server.sql("SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only");
    says(&serve, &server, 200, "");
    serve.stop();

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

    for sql in [
        "CREATE ROLE app LOGIN",
        "CREATE SCHEMA closed",
        "GRANT USAGE ON SCHEMA closed TO app",
        "CREATE SCHEMA taken AUTHORIZATION app CREATE TABLE runs (one INT)",
        "CREATE SCHEMA secret",
    ] {
        server.sql(sql);
    }
    let app = server.url().replace("chips@", "app@");
    refuses(&app, "permission denied for table meta (42501); give Chips the role that made the tables");
    let closed = format!("{app}&options=-csearch_path%3Dclosed");
    refuses(&closed, "may not make tables there; its owner can allow it: GRANT CREATE ON SCHEMA closed TO app");
    doctor_finds(&closed, "GRANT CREATE ON SCHEMA closed TO app");
    // Nor may it make a schema that is not there, nor look into one that is, though it comes first.
    let missing = format!("{app}&options=-csearch_path%3Dmissing");
    refuses(&missing, "may not make tables there; its owner can allow it: GRANT CREATE ON DATABASE postgres TO app");
    let secret = format!("{app}&options=-csearch_path%3Dsecret%2Cclosed");
    refuses(&secret, "GRANT USAGE, CREATE ON SCHEMA secret TO app");
    doctor_finds(&secret, "GRANT USAGE, CREATE ON SCHEMA secret TO app");
    let folder = Folder::new();
    for (url, what) in [(&closed, "CREATE ON SCHEMA closed"), (&missing, "CREATE ON DATABASE postgres")] {
        let told = output(command(&folder, url, &["migrate", "--data", folder.data().to_str().unwrap()]));
        let said = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("its owner can allow it: GRANT {what} TO app")), "{said}");
    }
    let taken = format!("{app}&options=-csearch_path%3Dtaken");
    refuses(&taken, "something else is in this schema already (a table runs); give Chips a schema of its own");
    doctor_finds(&taken, "something else is in this schema already (a table runs)");
    // As somebody does it who wants nothing to change for a while.
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    refuses(&server.url(), "set to be read alone (default_transaction_read_only is on)");
    doctor_finds(&server.url(), "default_transaction_read_only");
    server.sql("SET transaction_read_only = off; ALTER DATABASE postgres RESET default_transaction_read_only");

    server.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    refuses(&server.url().replace("/postgres?", "/latin?"), "this database has the encoding LATIN1");
}

/// What readyz says once the server has had to begin its sessions anew.
fn says(serve: &Serve, server: &Server, status: u16, what: &str) {
    server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'chips'");
    until(LIMIT, what, || {
        let told = Request::get("/readyz").send(serve.addr);
        (told.status == status && told.text().contains(what)).then_some(())
    });
}

fn doctor_finds(url: &str, what: &str) {
    let told = output(command(&Folder::empty(), url, &["doctor"]));
    let said = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(1), "{said}");
    assert!(said.contains("  wrong  ") && said.contains(what), "{said}");
}

fn refuses(url: &str, reason: &str) {
    for args in [&["init"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let told = output(command(&Folder::empty(), url, args));
        let said = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(reason), "{args:?}: {said}");
    }
}
