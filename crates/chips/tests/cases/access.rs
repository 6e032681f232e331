//! Who may see and do what: H01 to H07, H12, H15 to H18.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::events::chosen;
use crate::support::process::{output, text};
use crate::support::scene::{Api, Scene, ask_path, seq};
use crate::support::{Conn, Folder, LIMIT, Request, Serve, new_id, until};

#[test]
fn h01_every_wrong_credential_gets_the_same_refusal_and_is_in_no_log() {
    let scene = Scene::new();
    let addr = scene.harness.addr;
    let token = &scene.harness.token;
    let old = scene.add_harness("rotated");
    scene.folder.admin(&["harness", "rotate", &old.id]);
    let gone = scene.add_harness("disabled");
    scene.folder.admin(&["harness", "disable", &gone.id]);
    let flipped = {
        let (start, last) = token.split_at(token.len() - 1);
        format!("{start}{}", if last == "a" { "b" } else { "a" })
    };
    // Right in form and checksum, but of another folder.
    let unknown = Folder::new().text("/harness/token");
    let wrong = [
        "Bearer".to_owned(),
        "Bearer ".into(),
        format!("Bearer {flipped}"),
        format!("Bearer {unknown}"),
        format!("Bearer {}", old.token),
        format!("Bearer {}", gone.token),
        format!("Bearer {token} {token}"),
        format!("Bearer {}", token.to_uppercase()),
        format!("Basic {token}"),
        format!("Basic {}", "dXNlcjpwYXNz"),
        token.clone(),
        "Bearer chips_hk_".into(),
        format!("Bearer {}", "x".repeat(5000)),
    ];
    // New requests feel administration at once; what a running server still held of it has gone after this.
    until(LIMIT, "the disabled token to be refused", || {
        (gone.get("/v1/me").status == 401 && old.get("/v1/me").status == 401).then_some(())
    });

    let bare = Request::get("/v1/me").send(addr);
    bare.expect_problem(401, "unauthenticated");
    assert_eq!(bare.header("www-authenticate"), Some("Bearer"));
    for header in &wrong {
        let answer = Request::get("/v1/me").header("Authorization", header).send(addr);
        assert_eq!(answer.text(), bare.text(), "{header}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{header}");
    }
    for (path, status, code) in [
        (format!("/v1/me?token={token}"), 400, "token_in_query"),
        (format!("/v1/events?access_token={token}"), 400, "token_in_query"),
        (format!("/v1/events?after={token}"), 400, "token_in_query"),
    ] {
        let answer = Request::get(&path).send(addr);
        answer.expect_problem(status, code);
        assert!(!answer.text().contains(token.as_str()));
    }
    let in_body = json!({"token": token, "access_token": token}).to_string();
    Request::post_json("/v1/events", in_body).send(addr).expect_problem(401, "unauthenticated");
    scene.harness.get("/v1/me").expect(200);

    let log = scene.serve.log();
    for secret in [token, &flipped, &unknown, &old.token, &gone.token, &scene.person.token] {
        assert!(!log.contains(secret.as_str()), "a token is in the log");
    }
}

#[test]
fn h01_a_token_that_overlaps_ends_when_it_was_said_to() {
    let scene = Scene::new();
    let old = scene.add_harness("rotated");
    let made = scene.folder.admin(&["harness", "rotate", &old.id, "--overlap", "2s"]);
    let new = Api { token: text(&made, "/token"), ..old.clone() };
    new.get("/v1/me").expect(200);
    until(LIMIT, "the old token to end", || (old.get("/v1/me").status == 401).then_some(()));
    new.get("/v1/me").expect(200);
}

#[test]
fn h02_what_is_anothers_can_not_be_told_from_what_is_not() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let (run, space) = (text(&ask, "/run_id"), scene.folder.text("/space_id"));
    let (their_person, their_harness) = scene.add_workspace("Next door");

    for who in [&their_person, &their_harness] {
        let of = |path: &str, id: &str| who.get(&path.replace("ID", id));
        for (path, real, prefix) in [("/v1/asks/ID", text(&ask, "/ask_id"), "qst"), ("/v1/runs/ID", run.clone(), "run")]
        {
            let (real, random) = (of(path, &real), of(path, &new_id(prefix)));
            real.expect_problem(404, "not_found");
            assert_eq!(real.text(), random.text(), "{path}");
        }
        for (path, real, prefix) in
            [("/v1/asks/ID/ack", text(&ask, "/ask_id"), "qst"), ("/v1/runs/ID/end", run.clone(), "run")]
        {
            let post = |id: &str| who.post_empty(&path.replace("ID", id));
            let (real, random) = (post(&real), post(&new_id(prefix)));
            assert!(matches!(real.status, 403 | 404), "{}", real.text());
            assert_eq!(real.text(), random.text(), "{path}");
        }
        for filter in ["run_id", "ask_id"] {
            let id = text(&ask, &format!("/{filter}"));
            assert_eq!(who.events(&format!("&{filter}={id}")), Vec::<Value>::new());
        }
        for filter in [("space_id", &space), ("run_id", &run), ("harness_id", &scene.harness.id)] {
            let page = who.get(&format!("/v1/asks?{}={}", filter.0, filter.1)).expect(200);
            assert_eq!(page["asks"], json!([]));
        }
        let page = who.get("/v1/events").expect(200);
        assert_eq!((page["events"].clone(), page["head"].clone()), (json!([]), json!(0)));

        // In a body, the ask of a stranger is as unknown as any.
        let answer = |ask: &Value| who.send(&who.answer(ask, &[chosen("fence", &["paint"])]));
        let mut random = ask.clone();
        random["ask_id"] = json!(new_id("qst"));
        let (real, random) = (answer(&ask), answer(&random));
        real.expect_problem(404, "not_found");
        assert_eq!(real.text(), random.text());
    }
    // Nor does a harness open a run in their space, or under their run.
    for (field, real, prefix, code) in
        [("space_id", &space, "spc", "unknown_space"), ("parent_run_id", &run, "run", "unknown_run")]
    {
        let open = |id: &str| their_harness.post("/v1/runs", &json!({field: id}));
        let (real, random) = (open(real), open(&new_id(prefix)));
        real.expect_fault(&format!("/{field}"), code);
        assert_eq!(real.text(), random.text());
    }
    let mut posted = their_harness.plain_ask(&run);
    their_harness.send(&posted).expect_fault("/run_id", "unknown_run");
    posted["workspace_id"] = json!(scene.harness.workspace);
    their_harness.send(&posted).expect_fault("/workspace_id", "mismatch");
    assert_eq!(scene.harness.head(), seq(&ask));
}

#[test]
fn h03_another_harness_learns_nothing_by_using_ones_ids() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let other = scene.add_harness("another");
    let in_foreign_run = other.plain_ask(ask["run_id"].as_str().unwrap());
    other.send(&in_foreign_run).expect_fault("/run_id", "unknown_run");

    let mut same_ask = ask.clone();
    for field in ["ts", "seq", "space_id"] {
        same_ask.as_object_mut().unwrap().remove(field);
    }
    same_ask["id"] = json!(new_id("evt"));
    same_ask["actor"] = json!({"kind": "harness", "id": other.id});
    same_ask["run_id"] = json!(other.open_run());
    same_ask["idempotency_key"] = json!(new_id("key"));
    let refused = other.send(&same_ask);
    refused.expect_problem(409, "ask_id_conflict");
    for secret in [&scene.harness.id, &text(&ask, "/run_id"), &text(&ask, "/id"), &text(&ask, "/questions/0/prompt")] {
        assert!(!refused.text().contains(secret.as_str()), "{}", refused.text());
    }
    let mut same_event = other.plain_ask(&other.open_run());
    same_event["id"] = ask["id"].clone();
    other.send(&same_event).expect_problem(409, "event_id_conflict");
    other.post("/v1/runs", &json!({"run_id": ask["run_id"]})).expect_problem(409, "run_id_conflict");
    scene.harness.post("/v1/runs", &json!({"run_id": ask["run_id"]})).expect(200);
    assert_eq!(scene.harness.log(), [ask]);
}

#[test]
fn h04_ids_are_unique_within_a_workspace_only() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let (person, harness) = scene.add_workspace("Next door");
    let run = harness.post("/v1/runs", &json!({"run_id": ask["run_id"]})).expect(201);
    let mut same = harness.plain_ask(run["run_id"].as_str().unwrap());
    for field in ["ask_id", "id", "idempotency_key"] {
        same[field] = ask[field].clone();
    }
    let theirs = harness.send(&same).expect(201);
    assert_eq!(seq(&theirs), 1);
    person.send(&person.answer(&theirs, &[chosen("fence", &["paint"])])).expect(201);
    assert_eq!(scene.harness.state(&ask), "open", "their answer closes theirs");
}

#[test]
fn h05_a_thousand_agents_have_the_budget_of_their_one_harness() {
    let scene = Scene::new();
    let run = scene.harness.open_run();
    let mut conn = Conn::open(scene.harness.addr).unwrap();
    let mut taken = 0;
    for _ in 0..1000 {
        let mut ask = scene.harness.plain_ask(&run);
        ask["actor"] = json!({"kind": "agent", "id": new_id("agt")});
        let answer = conn.send(&scene.harness.event_request(ask.to_string())).unwrap();
        if answer.status == 201 {
            taken += 1;
            assert_eq!(answer.json()["actor"]["harness_id"], json!(scene.harness.id));
        } else {
            answer.expect_problem(429, "over_budget");
            assert_eq!(answer.header("retry-after"), Some("5"));
        }
    }
    assert_eq!(taken, 100);
    let budget = scene.harness.get("/v1/me").expect(200)["budget"].clone();
    assert_eq!(budget, json!({"open": 100, "open_limit": 100, "hour": 100, "hour_limit": 600}));

    // Neither a replay nor an answer counts, and another harness has a budget of its own.
    let mut first = scene.harness.log()[0].clone();
    for field in ["ts", "seq"] {
        first.as_object_mut().unwrap().remove(field);
    }
    first["actor"].as_object_mut().unwrap().remove("harness_id");
    assert!(scene.harness.send(&first).replayed());
    let other = scene.add_harness("another");
    other.send(&other.plain_ask(&other.open_run())).expect(201);
    scene.harness.send(&scene.harness.answer(&first, &[])).expect(201);
    scene.asked(&scene.harness.plain_ask(&run));
    scene.harness.send(&scene.harness.plain_ask(&run)).expect_problem(429, "over_budget");

    // The agent of one harness speaks for no other.
    let mut stolen = other.plain_ask(&other.open_run());
    stolen["actor"] = first["actor"].clone();
    other.send(&stolen).expect_problem(403, "actor_mismatch");
}

#[test]
fn h06_a_person_who_left_a_space_sees_no_more_of_it() {
    let scene = Scene::new();
    let (insider, other) = (scene.add_person("Insider"), scene.add_person("Other"));
    let made = scene.folder.admin(&["space", "add", "Payroll", "--member", &insider.id, "--member", &other.id]);
    let space = text(&made, "/id");
    let run = scene.harness.open_run_with(&json!({"space_id": space}));
    let ask = scene.asked(&scene.harness.plain_ask(&run));
    assert_eq!(ask["space_id"], json!(space));

    // A closed space has its members in it, and not even the owner beside them.
    scene.person.get(&ask_path(&ask)).expect_problem(404, "not_found");
    assert_eq!(scene.person.log(), Vec::<Value>::new());
    let (mut stream, mut others) = (insider.stream(), other.stream());
    let second = scene.asked(&scene.harness.plain_ask(&run));
    assert_eq!(stream.expect().json(), second);
    assert_eq!(others.expect().json(), second);

    scene.folder.admin(&["space", "member", "remove", &space, &insider.id]);
    insider.get(&ask_path(&ask)).expect_problem(404, "not_found");
    let answer = insider.send(&insider.answer(&ask, &[chosen("fence", &["paint"])]));
    answer.expect_problem(404, "not_found");
    assert_eq!(other.state(&ask), "open");

    // Five seconds later at the latest the stream has nothing of it any more.
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(5) {
        let _ = stream.next(Duration::from_secs(1));
    }
    let third = scene.asked(&scene.harness.plain_ask(&run));
    loop {
        let message = others.expect();
        if message.json() == third {
            break;
        }
    }
    assert!(!matches!(stream.next(Duration::from_millis(500)), Ok(Some(_))));
    assert_eq!(insider.log(), Vec::<Value>::new());
    scene.folder.admin(&["space", "member", "add", &space, &insider.id]);
    assert_eq!(insider.log().len(), 3);
}

#[test]
fn h07_a_revoked_harness_hears_nothing_more_and_its_question_is_still_answered() {
    let scene = Scene::new();
    let ask = scene.open_ask();
    let mut stream = scene.harness.stream();
    scene.folder.admin(&["harness", "disable", &scene.harness.id]);
    scene.harness.get("/v1/me").expect_problem(401, "unauthenticated");
    // Promised within five seconds; a busy machine gets some more to notice it in.
    assert!(stream.ends_within(Duration::from_secs(8)), "the stream goes on");
    scene.person.send(&scene.person.answer(&ask, &[chosen("fence", &["paint"])])).expect(201);
    assert_eq!(scene.person.state(&ask), "answered");
}

#[test]
fn h12_a_request_for_another_host_is_turned_away() {
    let scene = Scene::new();
    let addr = scene.harness.addr;
    let asked_for = |host: &str, path: &str| Request::get(path).header("Host", host).send(addr);
    let port = addr.port();
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example", "", "127.0.0.2", "[::1]:1"]
    {
        for path in ["/v1/me", "/healthz", "/", "/sign-in", "/v1/anything-else"] {
            let answer = asked_for(host, path);
            assert!(matches!(answer.status, 421 | 400), "{host} {path}: {}", answer.status);
        }
    }
    asked_for("evil.example", "/v1/me").expect_problem(421, "misdirected");
    assert_eq!(asked_for(&format!("localhost:{port}"), "/healthz").status, 200);
    assert_eq!(asked_for(&addr.to_string(), "/healthz").status, 200);
}

#[test]
fn h15_a_name_with_line_ends_and_escape_codes_makes_no_line_of_its_own() {
    let scene = Scene::new();
    let name = "x\n{\"level\":\"ERROR\"}\u{1b}[31m\u{202e}";
    let added = scene.folder.run_admin(&["harness", "add", name]);
    if added.status.success() {
        let made: Value = serde_json::from_slice(&added.stdout).unwrap();
        let harness = Api { token: text(&made, "/token"), id: text(&made, "/id"), ..scene.harness.clone() };
        let ask = harness.send(&harness.plain_ask(&harness.open_run())).expect(201);
        harness.send_raw("{").expect(400);
        scene.person.send(&scene.person.answer(&ask, &[chosen("fence", &["paint"])])).expect(201);
    } else {
        assert_eq!(added.status.code(), Some(1));
    }
    // What a client sends gets into no log unescaped either.
    let path = "/v1/x%0a%7b%22level%22:%22ERROR%22%7d%1b[31m";
    Request::get(path).header("User-Agent", "x\u{1b}[31my").send(scene.harness.addr);
    let shown = scene.serve.log() + &String::from_utf8_lossy(&added.stderr);
    assert!(!shown.lines().any(|line| line.trim_start().starts_with("{\"level\":\"ERROR\"}")), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(!shown.contains('\u{202e}'), "{shown}");
}

#[test]
fn h16_a_thousand_connections_that_dawdle_are_closed_and_delay_nobody() {
    // The server inherits the limit.
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).unwrap();
    let scene = Scene::new();
    let wanted = 1000;

    let mut idle: Vec<Conn> = (0..wanted).filter_map(|_| Conn::open(scene.harness.addr).ok()).collect();
    for conn in &mut idle {
        // A connection cap may have closed some already.
        let _ = conn.write(b"GET /v1/me HTTP/1.1\r\nX: ");
        let _ = conn.socket().set_read_timeout(Some(Duration::from_millis(1)));
    }
    let run = scene.harness.open_run();
    scene.asked(&scene.harness.plain_ask(&run));

    let began = Instant::now();
    let mut last_byte = Instant::now();
    until(LIMIT * 2, "all of them to be closed", || {
        if last_byte.elapsed() > Duration::from_secs(5) {
            last_byte = Instant::now();
            for conn in &idle {
                let _ = conn.socket().write_all(b"x");
            }
        }
        idle.retain_mut(|conn| !conn.closes_within(Duration::from_millis(1)));
        idle.is_empty().then_some(())
    });
    println!("{wanted} dawdling connections were closed within {:?}", began.elapsed());
    scene.asked(&scene.harness.plain_ask(&run));
}

#[test]
fn h17_what_a_peer_says_of_where_it_comes_from_is_not_believed() {
    let scene = Scene::new();
    let guess = |n: usize| {
        let from = format!("203.0.113.{n}");
        let request = Request::get("/v1/me").bearer(&format!("chips_hk_{n:038}"));
        let request = request.header("X-Forwarded-For", &from).header("X-Real-IP", &from);
        request.header("Forwarded", &format!("for={from}")).send(scene.serve.addr)
    };
    // Whoever guesses tokens is slowed down, whatever address each guess claims to come from.
    let slowed = (0..250).map(guess).find(|answer| answer.status != 401).expect("an end to the guessing");
    slowed.expect_problem(429, "rate_limited");
    assert!(slowed.header("retry-after").is_some_and(|wait| wait.parse::<u64>().is_ok_and(|wait| wait > 0)));
    // A good token from the same place is not held up.
    scene.harness.get("/v1/me").expect(200);
}

#[test]
fn h18_an_open_address_without_https_is_refused_with_the_ways_out() {
    let folder = Folder::new();
    let refused = output(Serve::command(&folder, "0.0.0.0:0"));
    assert!(matches!(refused.status.code(), Some(1 | 2)), "{:?}", refused.status);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    for way in ["--public-url", "https", "--insecure"] {
        assert!(said.contains(way), "{way} is not in: {said}");
    }
    let mut plain = Serve::command(&folder, "0.0.0.0:0");
    plain.args(["--public-url", "http://chips.example"]);
    assert!(!output(plain).status.success(), "a public URL without https is no way out");
}
