//! The log of the server: whom a line belongs to, and what is in none of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::browser::{Browser, forms, unescape};
use crate::support::events::{chosen, typed};
use crate::support::process::{output, text};
use crate::support::scene::{Scene, ask_path};
use crate::support::{Conn, Folder, LIMIT, Request, Response, Serve, ask_with, question, until};

/// A scene whose server logs by this filter and may send to these origins; at the first of them is Telegram, too.
fn logging(folder: Folder, filter: &str, origins: &[&str]) -> Scene {
    let mut command = Serve::command(&folder, "127.0.0.1:0");
    command.env("CHIPS_LOG", filter).args(["--mcp-slice", "1s"]);
    if let [telegram, ..] = origins {
        command.env("CHIPS_TELEGRAM_TOKEN", bot_token()).args(["--telegram-api", telegram]);
    }
    for origin in origins {
        command.args(["--allow-outbound", origin]);
    }
    let serve = Serve::spawn(command);
    Scene::of(folder, serve)
}

/// Ends the server by this signal; gives the folder and all that it has logged.
fn end(scene: Scene, signal: Signal) -> (Folder, String) {
    let Scene { serve, folder, .. } = scene;
    serve.process.signal(signal);
    let output = serve.process.finish(LIMIT);
    (folder, String::from_utf8(output.stderr).unwrap())
}

/// Each line of a log; all of them are JSON.
fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The one line that fits.
#[track_caller]
fn only<'a>(lines: &'a [Value], what: &str, fits: impl Fn(&Value) -> bool) -> &'a Value {
    let found: Vec<_> = lines.iter().filter(|line| fits(line)).collect();
    assert_eq!(found.len(), 1, "{what}: {found:#?} of {lines:#?}");
    found[0]
}

#[test]
fn one_number_leads_from_a_request_to_the_store_and_its_ask_to_the_workers() {
    let folder = Folder::new();
    folder.admin(&["harness", "budget", &folder.text("/harness/id"), "--open", "1"]);
    let scene = logging(folder, "debug", &[]);
    let run = scene.harness.open_run();
    let mut ask = scene.harness.plain_ask(&run);
    ask["timeout_seconds"] = json!(1);
    let with_id = |id: &str, body: &Value| {
        scene.harness.event_request(body.to_string()).header("X-Request-Id", id).send(scene.serve.addr)
    };
    let reply = with_id("deploy-17.first", &ask);
    assert_eq!(reply.header("x-request-id"), Some("deploy-17.first"));
    reply.expect(201);
    with_id("deploy-17.second", &scene.harness.plain_ask(&run)).expect_problem(429, "over_budget");
    scene.harness.closed(&ask);
    for path in ["/healthz", "/sign-in/no-such-secret", "/nowhere?with=query"] {
        Request::get(path).send(scene.serve.addr);
    }
    let forged = Request::get("/v1/me").header("X-Request-Id", "x\",\"level\":\"ERROR").send(scene.serve.addr);
    assert_eq!(forged.header("x-request-id").map(str::len), Some(16));

    // Whoever waits and ends their side of the connection is answered, though nobody may read it.
    let open = scene.asked(&scene.harness.plain_ask(&scene.harness.open_run()));
    let mut leaving = TcpStream::connect(scene.serve.addr).unwrap();
    let (path, host) = (format!("{}?wait=300", ask_path(&open)), scene.serve.addr);
    let token = &scene.harness.token;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nX-Request-Id: deploy-17.left\r\n\r\n"
    );
    leaving.write_all(request.as_bytes()).unwrap();
    leaving.shutdown(std::net::Shutdown::Write).unwrap();
    leaving.read_to_end(&mut Vec::new()).unwrap();

    let harness = scene.harness.id.clone();
    let (_folder, log) = end(scene, Signal::TERM);
    let lines = lines(&log);
    let is_access = |line: &Value| line["target"] == "chips_server::access";
    let of = |id: &'static str| move |line: &Value| line["span"]["request_id"] == id;

    let asked = only(&lines, "the ask", |line| is_access(line) && of("deploy-17.first")(line));
    assert_eq!((&asked["level"], &asked["status"]), (&json!("INFO"), &json!(201)), "{asked}");
    assert!(asked["ms"].as_f64().is_some_and(|ms| ms > 0.0), "{asked}");
    let span = &asked["span"];
    assert_eq!((&span["method"], &span["route"]), (&json!("POST"), &json!("/v1/events")));
    assert_eq!((&span["participant"], &span["ask_id"]), (&json!(harness), &ask["ask_id"]));

    let refused =
        only(&lines, "what the store says of the second", |line| !is_access(line) && of("deploy-17.second")(line));
    assert!(refused["target"].as_str().unwrap().starts_with("chips_store"), "{refused}");
    assert_eq!(refused["code"], "over_budget");
    assert_eq!(
        only(&lines, "the refusal", |line| is_access(line) && of("deploy-17.second")(line))["code"],
        "over_budget"
    );

    let left = only(&lines, "the wait", |line| is_access(line) && of("deploy-17.left")(line));
    assert_eq!((&left["span"]["left"], &left["status"]), (&json!(true), &json!(200)), "{left}");
    assert_eq!(asked["span"]["left"], Value::Null);

    let closed = only(&lines, "the close", |line| line["message"] == "closed at its deadline");
    assert_eq!(closed["ask_id"], ask["ask_id"]);
    let route = |route: &'static str| move |line: &Value| is_access(line) && line["span"]["route"] == route;
    assert_eq!(only(&lines, "the probe", route("/healthz"))["level"], "DEBUG");
    assert_eq!(only(&lines, "the link", route("/sign-in/{secret}"))["status"], 404);
    assert_eq!(only(&lines, "the path", route("unmatched"))["status"], 404);
    assert!(!lines.iter().any(|line| line["level"] == "ERROR"), "{lines:#?}");
}

/// A peer that messages are sent to. It answers those that name a canary of failing with 500 and a canary of its own, and calls
/// of Telegram's Bot API as that does.
struct Peer {
    origin: String,
    bodies: Receiver<String>,
    /// What happens on Telegram next.
    updates: Arc<Mutex<Vec<Value>>>,
}

fn bot_token() -> String {
    format!("77:{}", canary("bot"))
}

/// Who is told on Telegram.
const CHAT: i64 = 7_000_123_456_789;

impl Peer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (tell, bodies) = channel();
        let updates = Arc::<Mutex<Vec<Value>>>::default();
        let happens = Arc::clone(&updates);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                connection.set_read_timeout(Some(LIMIT)).unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 8192];
                while let Ok(read @ 1..) = connection.read(&mut buffer) {
                    request.extend_from_slice(&buffer[..read]);
                    if is_whole(&String::from_utf8_lossy(&request)) {
                        break;
                    }
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let said = canary("peer");
                let reply = if request.contains("fails") {
                    format!("HTTP/1.1 500 {said}\r\nX-Said: {said}\r\nContent-Length: {}\r\n\r\n{said}", said.len())
                } else if let Some((_, call)) = request.split_once(&format!("/bot{}/", bot_token())) {
                    let result = match call.split_once(' ').unwrap().0 {
                        "getMe" => json!({ "username": "chips_bot" }),
                        "getUpdates" => json!(happens.lock().unwrap().drain(..).collect::<Vec<_>>()),
                        _ => json!({ "message_id": 5, "said": said }),
                    };
                    let body = json!({ "ok": true, "result": result }).to_string();
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                } else {
                    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned()
                };
                let _ = connection.write_all(reply.as_bytes());
                if tell.send(request).is_err() {
                    return;
                }
            }
        });
        Self { origin, bodies, updates }
    }

    /// Waits for a message with this in it, and gives its JSON.
    fn message(&self, with: &str) -> Value {
        loop {
            let request = self.bodies.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("no message with {with}"));
            if request.contains(with) {
                return serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
            }
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// A word that is nowhere by accident, for a place where somebody's text or secret stands.
fn canary(place: &str) -> String {
    format!("canary{place}q7x1z")
}

/// An ask with a canary in every text that a harness may write.
fn singing_ask(scene: &Scene, run: &str) -> Value {
    let mut question = question(&canary("questionid"));
    question["prompt"] = canary("prompt").into();
    question["options"] = json!([
        {"value": canary("value"), "label": canary("label"), "description": canary("description")},
        {"value": "other", "label": canary("second")},
    ]);
    question["allow_free_text"] = json!(true);
    let mut ask = scene.harness.event(run, ask_with(&[question]));
    ask["idempotency_key"] = canary(&format!("key{}", text(&ask, "/ask_id"))).into();
    ask
}

fn mcp(scene: &Scene, session: Option<&str>, message: &Value) -> Response {
    let mut request = Request::post_json("/mcp", message.to_string())
        .bearer(&scene.harness.token)
        .header("Accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("Mcp-Session-Id", session);
    }
    request.send(scene.serve.addr)
}

fn play_mcp(scene: &Scene) -> String {
    let call =
        |method: &str, id: u32, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let info = json!({"name": canary("mcpclient"), "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let session = mcp(scene, None, &call("initialize", 1, hello)).header("mcp-session-id").unwrap().to_owned();
    mcp(scene, Some(&session), &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let option = json!({"label": canary("mcplabel"), "description": canary("mcpdescription")});
    let asked = json!({"questions": [{"prompt": canary("mcpprompt"), "options": [option, {"label": "Beans"}]}]});
    let reply = mcp(scene, Some(&session), &call("tools/call", 2, json!({"name": "ask_person", "arguments": asked})));
    assert_eq!(reply.status, 200, "{}", reply.text());
    for arguments in [json!({canary("mcpfield"): canary("mcpwrong")}), json!(canary("mcpnothing"))] {
        mcp(scene, Some(&session), &call("tools/call", 3, json!({"name": "ask_person", "arguments": arguments})));
    }
    mcp(scene, Some(&session), &call(&canary("mcpmethod"), 4, json!({})));
    mcp(
        scene,
        Some(&session),
        &json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": canary("mcperror")}}),
    );
    session
}

/// Bodies, heads and paths of somebody who means no good.
fn play_hostile(scene: &Scene, run: &str) {
    let addr = scene.serve.addr;
    let broken = format!("{{\"{0}\": \"{0}\", \"{0}\"", canary("brokenjson"));
    let deep = format!("{}\"{}\"", "[".repeat(300), canary("deepjson"));
    for body in [broken.as_bytes(), deep.as_bytes(), b"\xff\xfe canaryutf8q7x1z"] {
        scene.harness.send_raw(body);
    }
    let mut wrong = scene.harness.plain_ask(run);
    wrong[canary("fieldname")] = canary("fieldvalue").into();
    wrong["questions"][0]["options"] = json!([{"value": canary("wrongvalue"), "label": "\u{202e}"}]);
    wrong["questions"][0]["default_value"] = canary("nodefault").into();
    scene.harness.send(&wrong).expect_problem(422, "invalid_event");
    scene.harness.post("/v1/runs", &json!({"title": [canary("wrongtitle")]}));
    let bad = [
        Request::get("/v1/me").bearer(&canary("chips_hk_wrong")),
        Request::get("/v1/me").header("Authorization", &canary("scheme")),
        Request::get(&format!("/v1/me?token={}", canary("query"))),
        Request::get(&format!("/v1/asks?state={}", canary("state"))).bearer(&scene.harness.token),
        Request::get(&format!("/v1/asks/{}", canary("askid"))).bearer(&scene.harness.token),
        Request::get(&format!("/{}", canary("path"))).header("Accept", "text/html"),
        Request::get(&format!("/sign-in/{}", canary("link"))).header("X-Request-Id", &canary("chips_uk_requestid")),
        Request::new("POST", &format!("/a/{}", canary("tap"))).body(""),
        Request::get("/settings").header("Cookie", &format!("chips={0}; {0}={0}", canary("cookie"))),
        Request::get("/").header("User-Agent", &canary("agent")).header("X-Other", &canary("header")),
        Request::new(&canary("method").to_uppercase(), "/v1/me"),
    ];
    for request in bad {
        request.send(addr);
    }
    let mut junk = Conn::open(addr).unwrap();
    junk.write(format!("{} HTTP/9.9\r\n{}\r\n\r\n", canary("junkline"), canary("junkhead")).as_bytes()).unwrap();
    assert!(junk.closes_within(LIMIT));
}

/// A person signs in by both ways, sets up where they are told, and gives all that must stay unknown.
fn play_person(scene: &Scene, peer: &Peer, closed: SocketAddr) -> (Browser, Vec<String>) {
    let link = scene.folder.admin(&["person", "link", &scene.person.id]);
    let (url, code) = (text(&link, "/sign_in_url"), text(&link, "/sign_in_code"));
    let mut browser = Browser::new(scene.serve.addr);
    browser.sign_in(&url);
    let mut secrets = vec![Browser::path(&url).rsplit('/').next().unwrap().to_owned()];
    secrets.extend([code.clone(), code.replace('-', "")]);

    let other = scene.folder.admin(&["person", "link", &scene.person.id]);
    let good = text(&other, "/sign_in_code");
    let mut second = Browser::new(scene.serve.addr);
    for code in [canary("wrongcode"), "AAAA-AAAA".to_owned(), good.clone()] {
        let page = second.visit("/sign-in");
        let form = forms(&page.text(), "/sign-in").into_iter().find(|form| !form.texts.is_empty()).unwrap();
        second.submit(&form, &[(&form.texts[0], &code)]);
    }
    assert_eq!(second.get("/settings").status, 200, "the right code signs in");
    secrets.extend([good.replace('-', ""), good]);

    let add = |browser: &mut Browser, action: &str, fields: &[(&str, &str)]| {
        let page = browser.visit("/settings");
        let form = forms(&page.text(), "/settings").into_iter().find(|form| form.action == action).unwrap();
        browser.submit(&form, fields).text()
    };
    let (topic, access) = (canary("topic"), canary("access"));
    let (fails, nobody) = (canary("topicthatfails"), canary("topicofnobody"));
    let ntfy = "/settings/told/ntfy";
    add(&mut browser, ntfy, &[("server", &peer.origin), ("topic", &topic), ("access", &access)]);
    add(&mut browser, ntfy, &[("server", &peer.origin), ("topic", &fails), ("access", &access)]);
    add(&mut browser, ntfy, &[("server", &format!("http://{closed}")), ("topic", &nobody), ("access", "")]);
    add(
        &mut browser,
        ntfy,
        &[("server", &format!("https://{}.invalid", canary("host"))), ("topic", &topic), ("access", "")],
    );
    let hook = format!("{}/{}?{}", peer.origin, canary("hookpath"), canary("hookquery"));
    let shown = add(&mut browser, "/settings/told/webhook", &[("url", &hook), ("name", &canary("hookname"))]);
    let key = shown.split("whsec_").nth(1).unwrap_or_else(|| panic!("no key: {shown}"));
    secrets.push(key.chars().take_while(|c| c.is_ascii_alphanumeric() || "+/=".contains(*c)).collect());

    // A chat is connected; somebody writes what is no link, and what Chips can't read.
    let shown = add(&mut browser, "/settings/told/telegram", &[]);
    let link = shown.split("start=").nth(1).unwrap_or_else(|| panic!("no link: {shown}")).split('"').next().unwrap();
    let writes = |number: i64, text: &str| {
        let from = json!({ "id": CHAT, "first_name": canary("firstname"), "username": canary("username") });
        let chat = json!({ "id": CHAT, "type": "private" });
        json!({ "update_id": number, "message": { "message_id": 1, "from": from, "chat": chat, "text": text } })
    };
    *peer.updates.lock().unwrap() = vec![
        writes(1, &format!("/start {link}")),
        writes(2, &format!("/start {}", canary("badlink"))),
        writes(3, &canary("written")),
        json!({ "update_id": 4, "message": canary("unreadable") }),
        json!({ "update_id": 5, "callback_query": { "id": canary("tapid"), "from": { "id": CHAT }, "data": canary("tapdata") } }),
    ];
    until(LIMIT, "a chat is connected", || {
        browser.visit("/settings").text().contains(&canary("username")).then_some(())
    });
    secrets.extend([link.to_owned(), CHAT.to_string(), bot_token()]);

    let page = browser.visit("/settings");
    let mut push = forms(&page.text(), "/settings").into_iter().find(|form| form.action == ntfy).unwrap();
    push.action = "/settings/told/web-push".to_owned();
    push.fields.retain(|(name, _)| name == "token");
    let service = format!("{}/{}", peer.origin, canary("pushservice"));
    // The keys of RFC 8291, appendix A: nothing less is taken.
    let (key, auth) = (
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "BTBZMqHH6r4Tts7J_aSIgg",
    );
    let kept = browser.submit_only(&push, &[("endpoint", &service), ("p256dh", key), ("auth", auth)]);
    assert_eq!(kept.status, 204, "{}", kept.text());
    secrets.extend([key, auth].map(str::to_owned));

    let page = browser.visit("/settings");
    let tests: Vec<_> =
        forms(&page.text(), "/settings").into_iter().filter(|form| form.action == "/settings/told/test").collect();
    assert_eq!(tests.len(), 7, "{}", unescape(&page.text()));
    for form in tests {
        browser.submit(&form, &[]);
    }
    secrets.extend(browser.cookies.values().chain(second.cookies.values()).cloned());
    (browser, secrets)
}

#[test]
fn nothing_secret_and_nobody_s_words_are_in_the_log_however_much_is_asked_for() {
    let folder = Folder::new();
    let peer = Peer::start();
    // Whoever gives a port back can't be connected to there.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed_origin = format!("http://{closed}");
    folder.admin(&["person", "add", &canary("person")]);
    folder.admin(&["harness", "add", &canary("harness")]);
    folder.admin(&["space", "add", &canary("space")]);
    let harness = folder.text("/harness/id");
    folder.admin(&["harness", "budget", &harness, "--open", "none", "--hour", "none"]);
    let mut secrets: Vec<String> = ["/harness/token", "/person/token"].map(|token| folder.text(token)).into();
    for path in ["harnesshook", "harnesshookthatfails"] {
        let url = format!("{}/{}", peer.origin, canary(path));
        let key = text(&folder.admin(&["harness", "webhook", "add", &harness, &url]), "/key");
        secrets.push(key.strip_prefix("whsec_").unwrap().to_owned());
    }
    let origins = [peer.origin.as_str(), closed_origin.as_str()];
    let scene = logging(folder, "trace", &origins);

    let labels = json!({ canary("runlabel"): canary("runlabelvalue") });
    let run = scene.harness.open_run_with(&json!({"title": canary("title"), "labels": labels}));
    play_hostile(&scene, &run);
    let (mut browser, more) = play_person(&scene, &peer, closed);
    secrets.extend(more);

    // Tapped beside a message; too late; typed in the inbox; chosen over the API; nobody at all.
    let tapped = scene.asked(&singing_ask(&scene, &run));
    let message = peer.message("actions\":[{");
    for action in message["actions"].as_array().unwrap() {
        let path = Browser::path(action["url"].as_str().unwrap()).to_owned();
        secrets.push(path.strip_prefix("/a/").unwrap().to_owned());
        Request::new("POST", &path).body("").send(scene.serve.addr);
    }
    scene.harness.closed(&tapped);
    let typed_in = scene.asked(&singing_ask(&scene, &run));
    let path = format!("/asks/{}", text(&typed_in, "/ask_id"));
    let page = browser.visit(&path);
    let form = forms(&page.text(), &path)
        .into_iter()
        .find(|form| form.method == "post" && form.action.starts_with("/asks/") && !form.texts.is_empty())
        .unwrap_or_else(|| panic!("no form to answer: {}", page.text()));
    let field = form.texts[0].clone();
    browser.submit(&form, &[(&field, &canary("freetext"))]);
    assert_eq!(scene.harness.state(&typed_in), "answered");
    let over_the_api = scene.asked(&singing_ask(&scene, &run));
    let answers = [typed(&canary("questionid"), &canary("apitext"))];
    scene.person.send(&scene.person.answer(&over_the_api, &answers)).expect(201);
    scene.person.send(&scene.person.answer(&over_the_api, &[chosen(&canary("questionid"), &[&canary("late")])]));
    let mut unanswered = singing_ask(&scene, &run);
    unanswered["timeout_seconds"] = json!(1);
    scene.asked(&unanswered);
    scene.harness.closed(&unanswered);
    scene.harness.get(&format!("{}?wait=1", ask_path(&tapped))).expect(200);
    drop(scene.person.stream());
    secrets.push(play_mcp(&scene));

    let copy = scene.folder.path().join(canary("copy"));
    let mut backup = scene.folder.chips();
    backup.args(["backup".as_ref(), copy.as_os_str(), "--data".as_ref(), scene.folder.data().as_os_str()]);
    let copied = output({
        backup.env("CHIPS_LOG", "trace");
        backup
    });
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));

    // What was not sent yet is tried again after a crash.
    let left_open = scene.asked(&singing_ask(&scene, &run));
    let (folder, mut log) = end(scene, Signal::KILL);
    let scene = logging(folder, "trace", &origins);
    scene.harness.send(&left_open);
    until(LIMIT, "a message after the crash", || scene.serve.log().contains("\"told\"").then_some(()));
    let ask_ids = [&tapped, &typed_in, &over_the_api, &unanswered].map(|ask| text(ask, "/ask_id"));
    let (_folder, second) = end(scene, Signal::TERM);
    log += &second;
    log += &String::from_utf8(copied.stderr).unwrap();

    // It is the finest there is, and says what it is there to say.
    let lines = lines(&second);
    assert!(!lines.is_empty() && log.contains("\"level\":\"TRACE\""), "{log}");
    for ask_id in ask_ids {
        assert!(log.contains(&ask_id), "{ask_id} is not in the log");
    }
    for told in ["ntfy", "webhook", "harness_webhook", "web_push", "telegram"]
        .map(|channel| format!("\"channel\":\"{channel}\""))
    {
        assert!(log.contains(&told), "nobody was told: {told}");
    }
    for outcome in ["accepted", "failed"].map(|outcome| format!("\"outcome\":\"{outcome}\"")) {
        assert!(log.contains(&outcome), "nobody answered so: {outcome}");
    }

    let found: Vec<_> = log.lines().filter(|line| line.to_ascii_lowercase().contains("q7x1z")).collect();
    assert!(found.is_empty(), "somebody's words are in the log:\n{}", found.join("\n"));
    for secret in secrets.iter().filter(|secret| secret.len() >= 6) {
        let found: Vec<_> = log.lines().filter(|line| line.contains(secret.as_str())).collect();
        assert!(found.is_empty(), "{secret} is in the log:\n{}", found.join("\n"));
    }
    let names = [&closed_origin, &peer.origin].map(|origin| origin.strip_prefix("http://").unwrap().to_owned());
    let found: Vec<_> = log.lines().filter(|line| names.iter().any(|name| line.contains(name.as_str()))).collect();
    assert!(found.is_empty(), "where messages go is in the log:\n{}", found.join("\n"));
}
