//! What stands in front of Chips: the real nginx and the real Caddy with the files under `deploy/`, in which only names, ports and
//! certificates are put in the place of those of an installation.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "fronts/front.rs"]
mod front;
#[path = "../../../tests/postgres/home.rs"]
mod home;
#[path = "fronts/nodes.rs"]
mod nodes;
mod support;
// It has more in it than what stands in front of several servers needs.
#[allow(dead_code)]
#[path = "postgres/team.rs"]
mod team;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use front::{Front, Way, deployed};
use serde_json::json;
use support::browser::{Browser, forms};
use support::events::{ask_with, chosen};
use support::process::{Process, text};
use support::scene::{Api, Scene, ask_path, seq};
use support::stream::Stream;
use support::{Conn, Folder, Request, Serve, question};

/// How soon an event that was accepted is to come through.
const SOON: Duration = Duration::from_secs(2);

/// A scene whose people and harnesses all go through what stands in front.
struct Behind {
    // Ended first, as fields are dropped in this order: it is before the server.
    front: Front,
    scene: Scene,
    person: Api,
    harness: Api,
}

impl Behind {
    fn new(proxy: impl Fn(&Path, SocketAddr, SocketAddr) -> Process) -> Self {
        let way = Way::open();
        let folder = Folder::new();
        let mut command = Serve::command(&folder, "127.0.0.1:0");
        command.args(["--public-url", &way.url(), "--trust-proxy", "127.0.0.1"]);
        let scene = Scene::of(folder, Serve::spawn(command));
        let front = Front::start(way, |at| proxy(scene.folder.path(), at, scene.serve.addr));
        let at = |api: &Api| Api { addr: front.addr(), ..api.clone() };
        let (person, harness) = (at(&scene.person), at(&scene.harness));
        Self { front, scene, person, harness }
    }
}

/// Everything that a proxy can break.
fn carries_everything(behind: &Behind) {
    let Behind { front, scene, person, harness } = behind;
    assert_eq!(Request::get("/readyz").send(front.addr()).status, 200);
    // What comes through is not from this machine, though the proxy is on it.
    Request::get("/metrics").send(front.addr()).expect_problem(404, "not_found");

    // Signed in by a link, with a cookie that is good under https alone.
    let mut browser = Browser::new(front.addr());
    browser.scheme = "https";
    let link = text(&scene.folder.admin(&["person", "link", &person.id]), "/sign_in_url");
    assert!(link.starts_with(&front.url()), "{link}");
    browser.sign_in(&link);
    assert!(browser.cookies.keys().any(|name| name.starts_with("__Host-")), "{:?}", browser.cookies.keys());

    // The first event of a stream comes at once, though replies may be buffered.
    let mut stream = person.stream();
    let run_id = harness.open_run();
    let ask = harness.send(&harness.plain_ask(&run_id)).expect(201);
    let first = stream.next(SOON).unwrap().unwrap_or_else(|| panic!("nothing came within {SOON:?}"));
    assert_eq!((first.seq(), &first.json()), (seq(&ask), &ask));
    assert!(stream.header("content-encoding").is_none());

    // A long poll waits until the form of the page was sent.
    let wait = Request::get(&format!("{}?wait=60", ask_path(&ask))).bearer(&harness.token);
    let mut waiting = Conn::open(front.addr()).unwrap();
    waiting.write(&wait.wire(front.addr(), false)).unwrap();
    let path = ask_path(&ask).replace("/v1", "");
    let page = browser.visit(&path);
    let form = forms(&page.text(), &path)
        .into_iter()
        .find(|form| form.method == "post" && form.choices.len() >= 2)
        .unwrap_or_else(|| panic!("no form that answers: {}", page.text()));
    let tapped = form.choices[0].clone();
    let after = browser.submit(&form, &[(&tapped.0, &tapped.1)]);
    assert_eq!(after.status, 200, "{}", after.text());
    let closed = waiting.read_response(false).unwrap().expect(200);
    assert_eq!(closed["state"], "answered");
    let second = stream.next(SOON).unwrap().unwrap_or_else(|| panic!("nothing came within {SOON:?}"));
    assert_eq!(second.json(), closed["answer"]);

    // A stream that is taken up again.
    let mut resumed = Stream::open(front.addr(), &person.token, "", Some(seq(&ask)));
    assert_eq!(resumed.expect().json(), closed["answer"]);

    // The largest body passes, a larger one is refused by Chips and not by what stands in front.
    let filled = |bytes: usize| {
        let body = harness.event(&run_id, ask_with(&[question("large")])).to_string();
        let spaces = " ".repeat(bytes - body.len());
        body + &spaces
    };
    harness.send_raw(filled(256 * 1024)).expect(201);
    harness.send_raw(filled(256 * 1024 + 1)).expect_problem(413, "too_large");

    // Whoever guesses is slowed down, whatever they say of where they come from; others behind the same proxy are not.
    let guess = Request::get("/v1/me").bearer("chips_hk_0000000000000000000000000000000000000000");
    let (guesser, other) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3));
    let refusals = (1..=100).map(|_| front::status_from(guesser, front.addr(), &guess));
    assert!(refusals.take_while(|status| *status != 429).all(|status| status == 401));
    let forged = guess.clone().header("X-Forwarded-For", "192.0.2.7");
    // Where the machine is slow one more is allowed meanwhile; whoever had a bucket of their own by this header would not be refused in ten.
    assert!((1..=10).any(|_| front::status_from(guesser, front.addr(), &forged) == 429), "the header counts");
    assert_eq!(front::status_from(other, front.addr(), &guess), 401);

    // An answer over the API, as another client gives it.
    let ask = harness.send(&harness.plain_ask(&run_id)).expect(201);
    let options = ask["questions"][0]["options"].as_array().unwrap();
    let value = options[0]["value"].as_str().unwrap();
    person.send(&person.answer(&ask, &[chosen("fence", &[value])])).expect(201);
    assert_eq!(harness.closed(&ask)["answerer"]["id"], json!(person.id));
}

#[test]
fn nginx_as_it_is_deployed_carries_everything() {
    let behind = Behind::new(front::nginx);
    carries_everything(&behind);
    let Behind { front, .. } = &behind;

    // Any other name is refused by Chips, which gets to see it.
    let other = Request::get("/").header("Host", "elsewhere.example").send(front.addr());
    other.expect_problem(421, "misdirected");
    // What nginx is told by a reply stays between the two.
    let stream = Stream::open(front.addr(), &behind.person.token, "", None);
    assert_eq!(stream.header("x-accel-buffering"), None);
}

#[test]
fn nginx_waits_longer_than_the_longest_poll_and_leads_http_to_https() {
    let conf = deployed("nginx.conf");
    let seconds = conf.lines().find_map(|line| line.trim().strip_prefix("proxy_read_timeout ")?.strip_suffix("s;"));
    assert!(seconds.unwrap().parse::<u64>().unwrap() > 300, "{conf}");
    assert!(!conf.contains("proxy_buffering"), "the replies say themselves what is not buffered");

    let behind = Behind::new(front::nginx);
    let plain = front::plain_port(behind.scene.folder.path());
    let led = Request::get("/asks/x?y=z").header("Host", "chips.example.com").send(plain);
    assert_eq!((led.status, led.header("location")), (301, Some("https://chips.example.com/asks/x?y=z")));
}

#[test]
fn caddy_as_it_is_deployed_carries_everything() {
    carries_everything(&Behind::new(front::caddy));
}

#[test]
fn the_file_for_caddy_is_valid_as_it_stands() {
    let folder = Folder::empty();
    let file = folder.path().join("Caddyfile");
    std::fs::write(&file, deployed("Caddyfile")).unwrap();
    let mut caddy = front::command("caddy", folder.path());
    caddy.args(["validate", "--adapter", "caddyfile", "--config"]).arg(&file);
    let validated = support::process::output(caddy);
    let said = String::from_utf8_lossy(&validated.stderr).into_owned();
    assert!(validated.status.success() && !said.contains("\"warn\""), "{said}");
}
