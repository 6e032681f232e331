//! The commands against a server behind TLS.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use desk::{Desk, end, text};
use serde_json::json;
use serving::{Machine, Terminal};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");

/// Ends TLS before a server, as a reverse proxy does, on a thread that lives as long as the test's process.
fn tls_before(server: SocketAddr) -> SocketAddr {
    tls_before_what_comes(Arc::new(OnceLock::from(server)))
}

/// The same before a server that may come later.
fn tls_before_what_comes(server: Arc<OnceLock<SocketAddr>>) -> SocketAddr {
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
                let (acceptor, server) = (acceptor.clone(), server.get().copied());
                tokio::spawn(async move {
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let Some(server) = server else { return };
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

#[test]
fn a_phone_is_let_in_as_soon_as_the_public_address_leads_to_the_server() {
    let leads_to = Arc::new(OnceLock::new());
    let url = format!("https://{}", tls_before_what_comes(leads_to.clone()));
    let machine = Machine::new();
    machine.json(&["init"]);
    let mut command = machine.command(&["serve", "--phone", "--listen", "127.0.0.1:0", "--public-url", &url]);
    let (server, shown) = Terminal::new(100).spawn(command.env("SSL_CERT_FILE", format!("{DATA}/authority.pem")));
    let server = server.wait_until_it_listens();
    let text =
        shown.wait_for("what is in the way", |text| text.contains("does not lead here yet").then(|| text.to_owned()));
    assert!(!text.contains('▀') && text.contains(&format!("--to {}", server.address())), "{text}");

    leads_to.set(server.address()).unwrap();
    let text = shown.wait_for("the home screen", |text| text.contains("Add to Home Screen").then(|| text.to_owned()));
    assert!(text.contains(&format!("A phone can reach {url}: it answers over https.")), "{text}");
    assert!(text.contains('▀') && text.contains(&format!("{url}/sign-in")) && !text.contains("plain http"), "{text}");
    assert_eq!(server.terminate().code(), Some(0));
}
