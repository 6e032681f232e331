//! Which host names are answered for, on loopback too.

use chips_server::{Config, StartError, bind};

use crate::support::{Raw, Reply, Setup, TestApp};

#[tokio::test]
async fn h18_an_address_that_others_reach_is_not_served_in_the_clear() {
    let app = TestApp::start().await;
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let config = Config::on(listen.parse().unwrap());
        let Err(StartError::Config(refusal)) = bind(config, app.store.clone()).await else { panic!("it was served") };
        for way in ["127.0.0.1", "--public-url", "--insecure"] {
            assert!(refusal.contains(way), "{refusal}");
        }
    }
    let taken = bind(Config::on(app.address), app.store.clone()).await;
    let Err(error @ StartError::Listen { .. }) = taken else { panic!("the address is taken") };
    assert!(error.to_string().contains("--listen"));
}

#[tokio::test]
async fn h12_another_host_s_request_is_misdirected_whatever_it_asks_for() {
    let app = TestApp::start().await;
    for path in ["/v1/me", "/v1/nothing", "/", "/healthz", "/metrics", "/sign-in"] {
        for host in ["evil.example", "localhost", "127.0.0.1:1"] {
            let request = app.person.request(reqwest::Method::GET, path).header("host", host);
            Reply::to(request).await.problem(421, "misdirected");
        }
    }
    for host in [format!("localhost:{}", app.address.port()), format!("LOCALHOST:{}", app.address.port())] {
        Reply::to(app.person.request(reqwest::Method::GET, "/v1/me").header("host", host)).await.expect(200);
    }
}

#[tokio::test]
async fn the_public_url_s_host_and_allowed_ones_are_answered_for() {
    let mut setup = Setup::default();
    setup.config.public_url = Some("https://chips.example.com".parse().unwrap());
    setup.config.allow_hosts = vec!["chips.lan".into()];
    let app = TestApp::with(setup).await;
    for host in ["chips.example.com", "chips.example.com:443", "chips.lan", "chips.lan:7070"] {
        Reply::to(app.person.request(reqwest::Method::GET, "/v1/me").header("host", host)).await.expect(200);
    }
    app.person.get("/v1/me").await.expect(200);
}

#[tokio::test]
async fn a_request_names_one_host() {
    let app = TestApp::start().await;
    let own = app.address;
    for (request, status) in [
        ("GET /healthz HTTP/1.1\r\n\r\n".to_owned(), 400),
        (format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nHost: {own}\r\n\r\n"), 400),
        (format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\nHost: evil.example\r\n\r\n"), 400),
        ("GET /healthz HTTP/1.0\r\n\r\n".to_owned(), 400),
        (format!("GET http://evil.example/healthz HTTP/1.1\r\nHost: {own}\r\n\r\n"), 421),
        (format!("GET http://{own}/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421),
        (format!("GET http://{own}/healthz HTTP/1.1\r\nHost: {own}\r\n\r\n"), 200),
        (format!("GET http://user@{own}/healthz HTTP/1.1\r\nHost: {own}\r\n\r\n"), 421),
        (format!("GET /healthz HTTP/1.1\r\nHost: {own}\r\n\r\n"), 200),
        (format!("GET /healthz HTTP/1.1\r\nHost:\r\nX: {own}\r\n\r\n"), 421),
    ] {
        let mut raw = Raw::connect(app.address).await;
        raw.send(&request).await;
        let reply = raw.reply().await;
        assert_eq!(reply.status, status, "{request:?}");
        if status != 200 {
            assert!(reply.body.contains("\"misdirected\""), "{request:?}: {}", reply.body);
            assert!(reply.body.contains(&format!("\"status\":{status}")), "{request:?}: {}", reply.body);
        }
    }
}
