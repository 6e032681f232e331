//! The live stream of the inbox: what it tells, how it resumes, and when it ends.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{App, Browser, plain, within};
use chips_protocol::api::NewRun;

/// Reads a stream event by event.
struct Stream {
    response: reqwest::Response,
    text: String,
}

impl Stream {
    async fn open(browser: &Browser, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = browser.open(path, headers).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-store");
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        Self { response, text: String::new() }
    }

    /// The next event: id, name and data. Nothing once the stream has ended.
    async fn next(&mut self) -> Option<(Option<u64>, String, Value)> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
                let Some(data) = field("data: ") else { continue };
                let id = field("id: ").map(|id| id.parse().unwrap());
                return Some((id, field("event: ").unwrap(), serde_json::from_str(&data).unwrap()));
            }
            match within(self.response.chunk()).await {
                Ok(Some(chunk)) => self.text.push_str(std::str::from_utf8(&chunk).unwrap()),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// The next event that is about an ask.
    async fn ask(&mut self) -> (u64, Value) {
        loop {
            let (id, name, data) = self.next().await.expect("the stream goes on");
            if name == "ask" {
                assert_eq!(data["seq"], json!(id));
                return (id.unwrap(), data);
            }
        }
    }

    /// Waits for the end.
    async fn end(&mut self) {
        while self.next().await.is_some() {}
    }
}

#[tokio::test]
async fn it_tells_that_something_happened_and_resumes_without_a_gap() {
    let app = App::start().await;
    let kim = app.kim().await;
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    let (_, name, hello) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &hello["head"], &hello["resync"]), ("hello", &json!(0), &json!(false)));
    assert!(hello["now"].as_i64().is_some() && hello["log"].is_string());

    let ask_id = app.ask(plain()).await;
    let (opened, data) = stream.ask().await;
    assert_eq!(data, json!({ "seq": opened, "ask_id": ask_id, "state": "open" }));
    drop(stream);
    app.settle(ask_id, json!([])).await;
    let other = app.ask(plain()).await;
    app.settle(other, json!([{ "question_id": "when", "values": ["19"] }])).await;

    let id = opened.to_string();
    for (path, headers) in [
        ("/live".to_owned(), vec![("last-event-id", id.as_str())]),
        (format!("/live?after={opened}"), vec![]),
        ("/live?after=0".to_owned(), vec![("last-event-id", id.as_str())]),
    ] {
        let mut stream = Stream::open(&kim, &path, &headers).await;
        let told = [stream.ask().await.1, stream.ask().await.1, stream.ask().await.1];
        assert_eq!(
            told,
            [
                json!({ "seq": opened + 1, "ask_id": ask_id, "state": "withdrawn" }),
                json!({ "seq": opened + 2, "ask_id": other, "state": "open" }),
                json!({ "seq": opened + 3, "ask_id": other, "state": "settled" }),
            ]
        );
    }
    // A place past the end is another log's, after a restore: the page is told to look anew.
    let mut stream = Stream::open(&kim, "/live?after=999999", &[]).await;
    assert_eq!(stream.next().await.unwrap().2["resync"], json!(true));
    app.ask(plain()).await;
    stream.ask().await;
}

#[tokio::test]
async fn it_tells_nothing_of_what_may_not_be_seen() {
    let app = App::start().await;
    let kim = app.kim().await;
    let board = app.admin().add_space(app.workspace_id, "Board", &[app.robin]).unwrap();
    let run = app.open_run(NewRun { space_id: Some(board), ..NewRun::default() }).await;
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    app.ask_in(run.run_id, plain()).await;
    let seen = app.ask(plain()).await;
    assert_eq!(stream.ask().await.1["ask_id"], json!(seen));
}

#[tokio::test]
async fn it_beats_so_that_a_silent_proxy_is_noticed() {
    let app = App::configured(|config| config.limits.comment = std::time::Duration::from_millis(20)).await;
    let kim = app.kim().await;
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    assert_eq!(stream.next().await.unwrap().1, "hello");
    for _ in 0..2 {
        let (id, name, data) = stream.next().await.unwrap();
        assert_eq!((id, name.as_str()), (None, "beat"));
        assert!(data["now"].as_i64().is_some());
    }
}

#[tokio::test]
async fn it_ends_with_the_session() {
    let app = App::start().await;
    let kim = app.kim().await;
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    stream.next().await.unwrap();
    let form = kim.get("/settings").await.form("/sign-out");
    let stale = kim.twin();
    kim.submit(&form, &[]).await;
    stream.end().await;
    assert_eq!(stale.open("/live", &[]).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn it_ends_when_the_person_may_see_something_else() {
    let app = App::start().await;
    let kim = app.kim().await;
    let board = app.admin().add_space(app.workspace_id, "Board", &[app.robin]).unwrap();
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    stream.next().await.unwrap();
    app.admin().set_member(board, app.kim, true).unwrap();
    stream.end().await;
    // Whoever is disabled gets no new one.
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    app.admin().disable(chips_protocol::ParticipantId::Person(app.kim)).unwrap();
    stream.end().await;
    assert_eq!(kim.open("/live", &[]).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn it_ends_when_the_server_stops() {
    let mut app = App::start().await;
    let kim = app.kim().await;
    let mut stream = Stream::open(&kim, "/live", &[]).await;
    stream.next().await.unwrap();
    let (_, ()) = tokio::join!(app.stop(), stream.end());
}
