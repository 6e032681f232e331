//! Following the log: M17, M18, M31.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::events::chosen;
use crate::support::http::Conn;
use crate::support::scene::{Api, Scene, seq};
use crate::support::stream::{Message, Stream};
use crate::support::{LIMIT, Request, Serve, ask_with, question, until};

#[test]
fn m17_a_stream_that_is_cut_and_resumed_has_each_event_once() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let ask = || scene.asked(&scene.harness.plain_ask(&run));
    let mut stream = scene.person.stream();
    assert_eq!(stream.header("cache-control"), Some("no-store"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert!(stream.header("content-encoding").is_none());

    let first = ask();
    let seen = stream.expect();
    assert_eq!((seen.seq(), seen.event.as_str(), seen.json()), (1, "question.ask", first));
    drop(stream);
    let missed = [ask(), ask()];

    let mut stream = Stream::open(scene.person.addr, &scene.person.token, "", Some(seen.seq()));
    for event in &missed {
        assert_eq!(stream.expect().json(), *event);
    }
    let live = ask();
    assert_eq!(stream.expect().json(), live);

    // `Last-Event-ID` wins over `after`: a browser that reconnects sends both.
    let mut both = Stream::open(scene.person.addr, &scene.person.token, "?after=0", Some(3));
    assert_eq!(both.expect().json(), live);
    // Over a restart it is the same log.
    drop((stream, both));
    let scene = scene.restart(Serve::kill);
    let mut stream = Stream::open(scene.person.addr, &scene.person.token, "?after=0", None);
    let all: Vec<_> = (0..4).map(|_| stream.expect().seq()).collect();
    assert_eq!(all, [1, 2, 3, 4]);
    assert!(stream.next(Duration::from_millis(300)).unwrap().is_none(), "nothing comes twice");
}

#[test]
fn m18_a_text_with_line_ends_forges_no_event() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let mut stream = scene.person.stream();
    let forged = "calm\r\n\r\nevent: x\r\ndata: forged\n\nid: 99\u{2028}data: more\u{2029}";
    let mut fields = question("fence");
    fields["prompt"] = json!(forged);
    let stored = scene.asked(&scene.harness.event(&run, ask_with(&[fields])));

    let message = stream.expect();
    assert_eq!(message.event, "question.ask");
    assert_eq!(message.data.len(), 1);
    assert_eq!(message.json()["questions"][0]["prompt"], json!(forged));
    let in_log = scene.person.get("/v1/events?after=0");
    assert_eq!(message.json(), in_log.json()["events"][0]);
    assert_eq!(message.json(), stored);
    assert!(in_log.text().contains(&message.data[0]), "the same bytes on every way out");
    assert!(stream.next(Duration::from_millis(300)).unwrap().is_none());
}

/// Writes asks with long prompts and closes each, on eight connections, until there are this many events.
fn write_events(harness: &Api, run: &str, events: usize) {
    let prompt = "Is this long enough? ".repeat(100);
    let clients = 8;
    std::thread::scope(|scope| {
        for client in 0..clients {
            let prompt = &prompt;
            scope.spawn(move || {
                let mut conn = Conn::open(harness.addr).unwrap();
                let mut send =
                    |event: &Value| conn.send(&harness.event_request(event.to_string())).unwrap().expect(201);
                for _ in (client..events / 2).step_by(clients) {
                    let mut fields = question("fence");
                    fields["prompt"] = json!(prompt);
                    let ask = send(&harness.event(run, ask_with(&[fields])));
                    send(&harness.answer(&ask, &[chosen("fence", &["leave"])]));
                }
            });
        }
    });
}

#[test]
fn m31_a_reader_that_stops_reading_is_cut_off_and_misses_nothing() {
    const EVENTS: u64 = 10_000;
    let scene = Scene::new();
    scene.lift_budget();
    let run = scene.harness.open_run();

    // One reader takes the first event and then stops; another goes on.
    let mut stuck = Conn::open(scene.person.addr).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size(stuck.socket(), 4096).unwrap();
    Stream::send(&mut stuck, scene.person.addr, &scene.person.token, "?after=0", None).unwrap();
    let mut stuck = Stream::on(stuck);
    let mut reader = Stream::open(scene.person.addr, &scene.person.token, "?after=0", None);
    let follows = std::thread::spawn(move || (1..=EVENTS).all(|seq| reader.expect().seq() == seq));

    let first = scene.asked(&scene.harness.plain_ask(&run));
    scene.harness.send(&scene.harness.answer(&first, &[])).expect(201);
    let mut last = stuck.expect().seq();
    write_events(&scene.harness, &run, EVENTS as usize - 2);
    assert_eq!(scene.harness.head(), EVENTS);
    assert!(follows.join().unwrap(), "the reader that goes on gets all, in order");

    // It must not read again before it is cut off, so the server is asked: both streams are gone by then.
    let streams = || {
        let metrics = scene.person.get("/metrics").text();
        metrics.lines().find_map(|line| line.strip_prefix("chips_streams ")?.trim().parse::<u32>().ok())
    };
    until(LIMIT * 4, "the reader that stopped to be cut off", || (streams() == Some(0)).then_some(()));

    // The one that stopped finds what the network held for it, and then the end.
    let cut_off = until(LIMIT, "the end of what the network held", || match stuck.next(Duration::from_secs(5)) {
        Ok(Some(message)) => {
            assert_eq!(message.seq(), last + 1);
            last += 1;
            None
        }
        Ok(None) => None,
        Err(error) => Some(error),
    });
    let broken = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::ConnectionAborted];
    assert!(broken.contains(&cut_off.kind()), "{cut_off}");
    assert!(last < EVENTS, "it was waited for");
    let mut resumed = Stream::open(scene.person.addr, &scene.person.token, "", Some(last));
    for seq in last + 1..=EVENTS {
        assert_eq!(resumed.expect().seq(), seq);
    }
}

#[test]
fn a_stream_is_kept_alive_by_comments() {
    let scene = Scene::new();
    let request = Request::get("/v1/events/stream").bearer(&scene.person.token);
    let mut conn = Conn::open(scene.person.addr).unwrap();
    conn.write(&request.wire(scene.person.addr, true)).unwrap();
    let (head, mut body) = conn.into_body().unwrap();
    assert_eq!(head.status, 200);
    let mut seen = Vec::new();
    until(LIMIT, "a comment", || {
        let mut some = [0; 256];
        if let Ok(read) = std::io::Read::read(&mut body, &mut some) {
            seen.extend_from_slice(&some[..read]);
        }
        let text = String::from_utf8_lossy(&seen);
        text.lines().any(|line| line.starts_with(':')).then_some(())
    });
}

#[test]
fn a_cursor_that_this_log_can_not_know_is_told_so() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let page = scene.person.get("/v1/events").expect(200);
    let log = page["log"].as_str().unwrap();
    for path in ["/v1/events", "/v1/events/stream"] {
        let get = |query: &str| scene.person.get(&format!("{path}?{query}"));
        get(&format!("after={}", seq(&ask) + 1)).expect_problem(410, "cursor_ahead");
        get("after=0&log=another").expect_problem(410, "log_changed");
        for query in ["after=-1", "after=x", "after=1&after=1", "type=question", "run_id=x", "limit=0", "limit=1001"] {
            if path.ends_with("stream") && query.starts_with("limit") {
                continue;
            }
            get(query).expect_problem(400, "bad_query");
        }
    }
    let same = scene.person.get(&format!("/v1/events?after=1&log={log}")).expect(200);
    assert_eq!(same, json!({"events": [], "head": 1, "log": log}));
}

#[test]
fn a_stream_and_a_page_take_the_same_filters() {
    let scene = Scene::new();
    let (one, two) = (scene.open_ask(), scene.open_ask());
    let answer = scene.person.send(&scene.person.answer(&one, &[chosen("fence", &["paint"])])).expect(201);
    let other = scene.add_harness("another");
    let foreign = other.plain_ask(&other.open_run());
    other.send(&foreign).expect(201);

    let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
    let cases = [
        (String::new(), vec![&one, &two, &answer]),
        ("&type=question.answered".into(), vec![&answer]),
        (format!("&run_id={}", text(&one, "run_id")), vec![&one, &answer]),
        (format!("&ask_id={}", text(&two, "ask_id")), vec![&two]),
        (format!("&ask_id={}&type=question.answered", text(&two, "ask_id")), vec![]),
        (format!("&run_id={}", text(&foreign, "run_id")), vec![]),
    ];
    for (filter, wanted) in cases {
        let page = scene.harness.events(&filter);
        assert_eq!(page.iter().collect::<Vec<_>>(), wanted, "{filter}");
        let mut stream = Stream::open(scene.harness.addr, &scene.harness.token, &format!("?after=0{filter}"), None);
        for event in wanted {
            assert_eq!(stream.expect().json(), *event, "{filter}");
        }
        assert_eq!(stream.next(Duration::from_millis(150)).unwrap(), None::<Message>, "{filter}");
    }
}

#[test]
fn a_stop_of_the_server_ends_streams_and_waits_well() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let mut stream = scene.person.stream();
    let (harness, path) = (scene.harness.clone(), crate::support::scene::ask_path(&ask));
    let mut waiting = Conn::open(harness.addr).unwrap();
    let request = Request::get(&format!("{path}?wait=300")).bearer(&harness.token);
    waiting.write(&request.wire(harness.addr, false)).unwrap();
    // Time enough for the wait to begin; the stream has nothing to say meanwhile.
    assert_eq!(stream.next(Duration::from_millis(500)).unwrap(), None);

    let began = Instant::now();
    scene.serve.stop();
    assert!(began.elapsed() < Duration::from_secs(10), "a stop takes less than 10 s");
    let answered = waiting.read_response(false).unwrap();
    assert_eq!(answered.expect(200)["state"], "open", "the wait ends with the ask as it stands");
    assert!(stream.next(Duration::from_secs(1)).is_err(), "the stream has ended");
}
