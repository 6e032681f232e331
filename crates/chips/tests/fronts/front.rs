//! A proxy that ends TLS in front of a server, and a way to it that speaks TLS for clients that don't.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::process::{Process, clean};
use crate::support::{LIMIT, Request, until};

/// A certificate for 127.0.0.1, and the authority that gave it.
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls");

/// A file of `deploy/`.
pub fn deployed(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)).unwrap()
}

/// A program that may lie where only administrators look.
pub fn command(program: &str, folder: &Path) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = dirs.map(|dir| dir.join(program)).find(|found| found.is_file());
    let found = found.unwrap_or_else(|| panic!("{program} is not installed: ./test installs it where there is apt"));
    let mut command = Command::new(found);
    clean(&mut command, folder);
    command
}

/// A port that was free a moment ago.
fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A text of a file that is there once; in its place another.
#[track_caller]
fn put(text: &str, place: &str, other: &str) -> String {
    assert!(text.contains(place), "{place:?} is not in\n{text}");
    text.replace(place, other)
}

/// nginx on this address before this server.
pub fn nginx(folder: &Path, at: SocketAddr, server: SocketAddr) -> Process {
    nginx_by("nginx.conf", folder, at, &[("127.0.0.1:7070", server)])
}

/// nginx with a file of `deploy/`, on this address before these servers, each in the place of one that the file names; its port for
/// plain http is a free one.
pub fn nginx_by(name: &str, folder: &Path, at: SocketAddr, servers: &[(&str, SocketAddr)]) -> Process {
    let mut site = deployed(name);
    for (place, server) in servers {
        site = put(&site, place, &server.to_string());
    }
    for (place, other) in [
        ("listen 443 ssl http2;", format!("listen {at} ssl http2;")),
        ("    listen [::]:443 ssl http2;\n", String::new()),
        ("listen 80;", format!("listen {};", free_port())),
        ("    listen [::]:80;\n", String::new()),
        ("/etc/letsencrypt/live/chips.example.com/fullchain.pem", format!("{TLS}/server.pem")),
        ("/etc/letsencrypt/live/chips.example.com/privkey.pem", format!("{TLS}/server.key.pem")),
    ] {
        site = put(&site, place, &other);
    }
    let scratch = folder.join("nginx");
    std::fs::create_dir_all(&scratch).unwrap();
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {}/{kind};\n", scratch.display()))
        .concat();
    let conf = folder.join("nginx.conf");
    std::fs::write(folder.join("site.conf"), site).unwrap();
    std::fs::write(
        &conf,
        format!(
            "daemon off;\nmaster_process off;\npid {0}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n    access_log off;\n{paths}    \
             include {1}/site.conf;\n}}\n",
            scratch.display(),
            folder.display()
        ),
    )
    .unwrap();
    let mut nginx = command("nginx", folder);
    nginx.arg("-p").arg(folder).arg("-c").arg(conf).args(["-e", "stderr"]);
    Process::spawn(nginx)
}

/// The port for plain http of the nginx in this folder.
pub fn plain_port(folder: &Path) -> SocketAddr {
    let site = std::fs::read_to_string(folder.join("site.conf")).unwrap();
    let mut ports =
        site.lines().filter_map(|line| line.trim().strip_prefix("listen ")?.strip_suffix(';')?.parse().ok());
    ports.next_back().unwrap()
}

/// Caddy on this address before this server.
pub fn caddy(folder: &Path, at: SocketAddr, server: SocketAddr) -> Process {
    let site = put(
        &put(
            &deployed("Caddyfile"),
            "chips.example.com {",
            &format!("https://{at} {{\n\ttls {TLS}/server.pem {TLS}/server.key.pem"),
        ),
        "127.0.0.1:7070",
        &server.to_string(),
    );
    let alone = "{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n}\n";
    let file = folder.join("Caddyfile");
    std::fs::write(&file, format!("{alone}{site}")).unwrap();
    let mut caddy = command("caddy", folder);
    caddy.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
    Process::spawn(caddy)
}

/// A way to a proxy for clients that speak no TLS: what they send goes to it encrypted and from their own address, and it must
/// show a certificate for 127.0.0.1 that the tests' authority gave. Its address is the one that people use.
pub struct Way {
    addr: SocketAddr,
    leads_to: Arc<OnceLock<SocketAddr>>,
}

impl Way {
    /// One that leads nowhere yet.
    pub fn open() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(format!("{TLS}/authority.pem")).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        let leads_to = Arc::new(OnceLock::new());
        let target = Arc::clone(&leads_to);
        std::thread::spawn(move || {
            runtime.block_on(async {
                while let Ok((mut client, from)) = listener.accept().await {
                    let (connector, target) = (connector.clone(), target.get().copied());
                    tokio::spawn(async move {
                        let Ok(proxy) = connect(from.ip(), target?).await else { return None };
                        let name = ServerName::from(IpAddr::from([127, 0, 0, 1]));
                        let mut proxy = match connector.connect(name, proxy).await {
                            Ok(proxy) => proxy,
                            Err(error) => panic!("no TLS with what stands in front: {error}"),
                        };
                        tokio::io::copy_bidirectional(&mut client, &mut proxy).await.ok()
                    });
                }
            });
        });
        Self { addr, leads_to }
    }

    /// The address that people use.
    pub fn url(&self) -> String {
        format!("https://{}", self.addr)
    }
}

/// A connection to an address from another one of this machine.
async fn connect(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// The status of the reply to a request that comes from this address of the loopback network, as from another machine.
pub fn status_from(from: Ipv4Addr, to: SocketAddr, request: &Request) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let exchange = async {
        let mut connection = connect(from.into(), to).await.unwrap();
        connection.write_all(&request.wire(to, false)).await.unwrap();
        let mut reply = Vec::new();
        connection.read_to_end(&mut reply).await.unwrap();
        String::from_utf8_lossy(&reply).split(' ').nth(1).unwrap().parse().unwrap()
    };
    runtime.block_on(async { tokio::time::timeout(LIMIT, exchange).await.expect("a reply") })
}

/// A proxy, and the way to it.
pub struct Front {
    way: Way,
    _proxy: Process,
}

impl Front {
    /// Starts a proxy on a free port; should somebody else take that port first, on another.
    pub fn start(way: Way, start: impl Fn(SocketAddr) -> Process) -> Self {
        let (proxy, at) = until(LIMIT, "a proxy on a free port", || {
            let at = free_port();
            let mut proxy = start(at);
            let up = until(LIMIT, "the proxy", || match (proxy.ended(), std::net::TcpStream::connect(at)) {
                (Some(_), _) => Some(false),
                (None, Ok(_)) => Some(true),
                (None, Err(_)) => None,
            });
            let said = proxy.stderr();
            assert!(up || said.contains("in use"), "{said}");
            up.then_some((proxy, at))
        });
        way.leads_to.set(at).unwrap();
        Self { way, _proxy: proxy }
    }

    /// Where clients that speak no TLS reach it.
    pub fn addr(&self) -> SocketAddr {
        self.way.addr
    }

    /// The address that people use.
    pub fn url(&self) -> String {
        self.way.url()
    }
}
