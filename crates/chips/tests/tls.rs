//! The commands against a server behind TLS.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use desk::{Desk, end, text};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");

/// Ends TLS before a server, as a reverse proxy does, on a thread that lives as long as the test's process.
fn tls_before(server: SocketAddr) -> SocketAddr {
    let folder = Path::new(DATA);
    let chain = CertificateDer::pem_file_iter(folder.join("server.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
    });
    address
}

#[test]
fn the_authorities_that_the_machine_trusts_are_trusted_and_no_others() {
    let desk = Desk::with(&["--allow-host", "127.0.0.1"]);
    let url = format!("https://{}", tls_before(desk.server().address()));
    let folder = desk.machine.home().join("configuration");
    let authority = format!("{DATA}/authority.pem");
    let connect = |trusted: Option<&str>, token: &str| {
        let mut command = desk.machine.command(&["connect", &url]);
        command.env("XDG_CONFIG_HOME", &folder);
        if let Some(trusted) = trusted {
            command.env("SSL_CERT_FILE", trusted).env("SSL_CERT_DIR", "/nowhere");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(token.as_bytes()).unwrap();
        text(&child.wait_with_output().unwrap())
    };
    let (code, _, err) = connect(None, &desk.harness);
    assert_eq!(code, Some(1));
    assert!(
        err.contains(&format!("can't reach {url}")) && err.contains("certificate is not trusted (UnknownIssuer)"),
        "{err}"
    );
    assert!(!folder.exists());

    let (code, _, err) = connect(Some("/nowhere.pem"), &desk.harness);
    assert_eq!(code, Some(1));
    assert!(err.contains("ca-certificates") && err.contains("SSL_CERT_FILE"), "{err}");

    let (code, _, err) = connect(Some(&authority), &desk.harness);
    assert_eq!(code, Some(0), "{err}");
    let mut ask = desk.machine.command(&["ask", "Deploy?", "-o", "yes", "-o", "no"]);
    ask.env("XDG_CONFIG_HOME", &folder).env("SSL_CERT_FILE", &authority);
    let ask = desk.start(ask);
    desk.answer(json!({ "question_id": "question", "values": ["yes"] }));
    assert_eq!(end(ask).1, "yes\n");
}
