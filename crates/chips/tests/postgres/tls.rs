//! TLS to PostgreSQL: what each `sslmode` asks of the server, and how a refusal is told.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::Server;
use crate::support::process::output;
use crate::support::{Folder, LIMIT, until};
use crate::team::{Team, command};

/// An authority of the test's own.
struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let authority = Self { dir: tempfile::tempdir().unwrap() };
        authority.openssl(&[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=Authority",
            "-keyout",
            "ca.key",
            "-out",
            "ca.pem",
        ]);
        authority
    }

    fn openssl(&self, args: &[&str]) {
        let told = Command::new("openssl").args(args).current_dir(self.dir.path()).output().unwrap();
        assert!(told.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&told.stderr));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A key, and a certificate for the name `localhost`.
    fn vouches(&self) -> (Vec<u8>, Vec<u8>) {
        std::fs::write(self.file("names"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
        self.openssl(&[
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ]);
        self.openssl(&[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-days",
            "2",
            "-extfile",
            "names",
            "-out",
            "server.pem",
        ]);
        (std::fs::read(self.file("server.key")).unwrap(), std::fs::read(self.file("server.pem")).unwrap())
    }
}

/// The URL of a server with this host name, with an `sslmode` and more of the kind.
fn url(server: &Server, host: &str, tls: &str) -> String {
    let (_, port) = server.host().rsplit_once(':').map(|(host, port)| (host.to_owned(), port.to_owned())).unwrap();
    format!("postgres://chips@{host}:{port}/postgres?sslmode={tls}")
}

/// What a command says on standard error where it is refused: one line, without the password.
fn refused(url: &str) -> String {
    let told = output(command(&Folder::empty(), url, &["person", "list"]));
    let said = String::from_utf8(told.stderr).unwrap();
    assert_eq!(told.status.code(), Some(1), "{url}: {said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
    assert!(!said.contains("pass-word"), "{said}");
    said
}

fn takes(url: &str) {
    let told = output(command(&Folder::empty(), url, &["person", "list"]));
    assert!(told.status.success(), "{url}: {}", String::from_utf8_lossy(&told.stderr));
}

#[test]
fn each_sslmode_asks_of_the_server_what_it_says_and_tells_in_one_line_what_is_missing() {
    let server = Server::new();
    let team = Team::new(&server.url());
    let by = |tls: &str| url(&server, "localhost", tls);
    let vouching = |file: &Path| by(&format!("verify-full&sslrootcert={}", file.display()));

    // A server without TLS.
    for mode in ["disable", "prefer"] {
        takes(&by(mode));
    }
    for mode in ["require", "verify-full"] {
        let said = refused(&by(mode));
        assert!(said.contains("server does not support TLS"), "{said}");
    }

    let authority = Authority::new();
    let (key, certificate) = authority.vouches();
    let (key, certificate) = (server.put("chips.key", &key), server.put("chips.pem", &certificate));
    server.set("ssl_key_file", &key.display().to_string());
    server.set("ssl_cert_file", &certificate.display().to_string());
    server.set("ssl", "on");

    // Whether what is said goes through TLS.
    let ca = authority.file("ca.pem");
    for (url, hidden) in [(by("disable"), "f"), (by("prefer"), "t"), (by("require"), "t"), (vouching(&ca), "t")] {
        let serve = team.serve_by(&url);
        team.harness(&serve).open_run();
        let sessions = "SELECT string_agg(DISTINCT ssl::text, ' ') FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                        WHERE application_name = 'chips'";
        assert!(server.sql(sessions).starts_with(hidden), "{url}: {}", server.sql(sessions));
        serve.stop();
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'chips'";
        until(LIMIT, "the sessions to end", || (server.sql(gone) == "0").then_some(()));
    }
    // Without a look at the certificate the name does not count either.
    takes(&url(&server, "127.0.0.1", "require"));

    let here = url(&server, "127.0.0.1", &format!("verify-full&sslrootcert={}", ca.display()));
    let stranger = Authority::new();
    let nothing = authority.file("nothing.pem");
    std::fs::write(authority.file("empty.pem"), "").unwrap();
    for (url, says) in [
        (here, "the server's certificate is not for the name 127.0.0.1".to_owned()),
        (vouching(&stranger.file("ca.pem")), "vouches for the server's certificate".to_owned()),
        (by("verify-full"), "name a file that does with sslrootcert".to_owned()),
        (vouching(&nothing), format!("sslrootcert {}: ", nothing.display())),
        (vouching(&authority.file("empty.pem")), "there is no certificate in it".to_owned()),
    ] {
        let said = refused(&url);
        assert!(said.contains(&says), "{says}: {said}");
    }

    // The password travels through TLS, and stands in no error.
    server.sql("CREATE ROLE asked LOGIN SUPERUSER PASSWORD 'the-pass-word'");
    let rules = "host all asked 127.0.0.1/32 scram-sha-256\nhost all asked ::1/128 scram-sha-256\nhost all all 127.0.0.1/32 trust\n";
    server.put("pg_hba.conf", rules.as_bytes());
    server.sql("SELECT pg_reload_conf()");
    let asked = |password: &str| vouching(&ca).replace("chips@", &format!("asked{password}@"));
    let wrong = || refused(&asked(":another-pass-word"));
    until(LIMIT, "the server to ask for passwords", || {
        let told = output(command(&Folder::empty(), &asked(":another-pass-word"), &["person", "list"]));
        (!told.status.success()).then_some(())
    });
    assert!(wrong().contains("password authentication failed for user \"asked\""), "{}", wrong());
    assert!(refused(&asked("")).contains("password"), "{}", refused(&asked("")));
    takes(&asked(":the-pass-word"));
}
