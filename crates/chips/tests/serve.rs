//! `chips serve`: how it starts, what it says, how it ends.
#![allow(clippy::unwrap_used)]

mod serving;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;
use serving::{LIMIT, Machine, Printed, Serving, Terminal, listening_on, secrets_in, until};

#[test]
fn it_says_where_it_listens_once_it_can_serve() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    assert_eq!(server.http("GET", "/healthz", &[], "").0, 200);
    assert_eq!(server.http("GET", "/readyz", &[], "").0, 200);
    assert_eq!(server.out.text(), format!("listening on {}\n", server.url()));
}

#[test]
fn both_signals_end_it_with_0() {
    let machine = Machine::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = machine.serve(&[]);
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "{}", server.err.text());
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let token = made["harness"]["token"].as_str().unwrap();
    let mut server = machine.serve(&[]);
    // A request in flight holds the first signal's orderly end up: the server waits for its body.
    let mut in_flight = TcpStream::connect(server.address()).unwrap();
    in_flight.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        in_flight,
        "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
        server.address()
    )
    .unwrap();
    let mut go_on = [0; 12];
    in_flight.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100");
    server.signal(Signal::TERM);
    until("the end of listening", || TcpStream::connect(server.address()).is_err().then_some(()));
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn a_first_start_that_nobody_watches_shows_no_secret() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    server.err.wait_for("the command that makes a link", |text| text.contains("person link usr_").then_some(()));
    let (out, err) = (server.out.clone(), server.err.clone());
    assert_eq!(server.terminate().code(), Some(0));
    assert!(!secrets_in(&out.to_end()) && !secrets_in(&err.to_end()), "{}{}", out.text(), err.text());
    for line in err.text().lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn the_lines_to_copy_on_a_terminal_work_as_they_stand() {
    let machine = Machine::new();
    let (server, shown) = Terminal::new(80).spawn(&mut machine.command(&["serve"]));
    let mut server = server.wait_until_it_listens();
    let text = shown.wait_for("the whole greeting", |text| text.contains("only their hashes").then(|| text.to_owned()));
    let line =
        |begin: &str| text.lines().find(|line| line.starts_with(begin)).unwrap_or_else(|| panic!("{text}")).trim_end();
    let export = line("export CHIPS_URL=http://127.0.0.1:");
    assert!(export.contains(" CHIPS_TOKEN=chips_hk_"), "{export}");
    let ask = text.lines().map(str::trim_end).find(|line| line.contains("chips") && line.contains(" ask '")).unwrap();

    let mut shell = Command::new("sh");
    machine.clean(&mut shell);
    let mut shell = shell.arg("-c").arg(format!("{export}\n{ask}\n")).stdout(Stdio::piped()).spawn().unwrap();
    let answer = Printed::read(shell.stdout.take().unwrap());

    let user_token = text.split("CHIPS_USER_TOKEN=").nth(1).unwrap().split_whitespace().next().unwrap();
    let ask = server.open_ask(user_token);
    let (status, body) = server.answer(
        user_token,
        &ask,
        json!({ "question_id": ask["ask"]["questions"][0]["question_id"], "values": ["26"] }),
    );
    assert_eq!(status, 201, "{body}");
    assert_eq!(answer.to_end(), "26\n");
    assert!(shell.wait().unwrap().success());

    // The link works once, as it stands.
    let link = text.lines().map(str::trim_end).find(|line| line.contains("/sign-in/")).unwrap();
    let path = link.split_once("/sign-in/").unwrap().1;
    assert_eq!(server.http("GET", &format!("/sign-in/{path}"), &[], "").0, 200);
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_later_start_names_the_commands_that_make_a_link_and_a_token() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let (server, shown) = Terminal::new(80).spawn(&mut machine.command(&["serve"]));
    let server = server.wait_until_it_listens();
    let link = format!("person link {} --data {}", made["person"]["id"].as_str().unwrap(), machine.data().display());
    shown.wait_for("the command that makes a link", |text| text.contains(&link).then_some(()));
    shown.wait_for("the command that makes a token", |text| text.contains("harness add NAME").then_some(()));
    assert!(!secrets_in(&shown.text()));
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn where_there_are_several_workspaces_a_later_start_says_that_one_must_be_named() {
    let machine = Machine::new();
    machine.json(&["init"]);
    machine.json(&["workspace", "add", "Second"]);
    let server = machine.serve(&[]);
    let hint = "harness add NAME --workspace WS";
    server.err.wait_for("the command that makes a token", |text| text.contains(hint).then_some(()));
}

#[test]
fn a_link_made_beside_a_running_server_leads_to_it() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    let person = machine.json(&["person", "list"])[0]["id"].as_str().unwrap().to_owned();
    let link = machine.json(&["person", "link", &person]);
    let url = link["sign_in_url"].as_str().unwrap();
    let path = url.strip_prefix(&server.url()).unwrap_or_else(|| panic!("{url}"));
    assert_eq!(server.http("GET", path, &[], "").0, 200);
}

/// Case M33.
#[test]
fn a_second_server_on_the_folder_is_refused_and_told_who_holds_it() {
    let machine = Machine::new();
    let server = machine.serve(&[]);
    let said = machine.refused(&["serve"], 1);
    let told = said.lines().find(|line| line.starts_with("chips: ")).unwrap();
    assert!(told.contains(&format!("process {}", server.pid())), "{said}");
    assert_eq!(server.http("GET", "/readyz", &[], "").0, 200, "the first one goes on");
    let link = machine.json(&["person", "list"]);
    assert!(link.is_array());
    assert_eq!(server.terminate().code(), Some(0));
    assert_eq!(machine.serve(&[]).terminate().code(), Some(0), "the folder is free again");
}

#[test]
fn an_address_in_use_is_refused_before_anything_is_made() {
    let machine = Machine::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = machine.refused(&["serve", "--listen", &address], 1);
    assert!(said.contains(&address) && said.contains("--listen"), "{said}");
    assert!(!machine.data().exists(), "tokens that nobody saw were made");
}

/// Case H18.
#[test]
fn an_address_that_others_reach_needs_https_or_a_word() {
    let machine = Machine::new();
    let said = machine.refused(&["serve", "--listen", "0.0.0.0:0"], 2);
    assert!(said.contains("--insecure") && said.contains("--public-url"), "{said}");
    assert!(!machine.data().exists());
    let server = machine.serve(&["--listen", "0.0.0.0:0", "--insecure"]);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_phone_gets_a_qr_code_where_it_can_reach_the_address() {
    let machine = Machine::new();
    let args = ["serve", "--public-url", "https://chips.example.com"];
    let (server, shown) = Terminal::new(80).spawn(&mut machine.command(&args));
    let text = shown.wait_for("the code", |text| text.contains("▀").then(|| text.to_owned()));
    assert!(text.contains("https://chips.example.com/sign-in/"), "{text}");
    assert_eq!(server.terminate().code(), Some(0));

    let other = Machine::new();
    let (server, shown) = Terminal::new(80).spawn(&mut other.command(&["serve"]));
    let text = shown.wait_for("the whole greeting", |text| text.contains("only their hashes").then(|| text.to_owned()));
    assert!(listening_on(&text).is_some() && !text.contains('▀'), "{text}");
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_machine_alone_is_told_how_a_phone_comes_to_reach_it() {
    let machine = Machine::new();
    let (server, shown) =
        Terminal::new(80).spawn(&mut machine.command(&["serve", "--phone", "--listen", "127.0.0.1:0"]));
    let server = server.wait_until_it_listens();
    let text =
        shown.wait_for("the last way", |text| text.contains("https://chips.example.com").then(|| text.to_owned()));
    let (address, port) = (server.address(), server.address().port());
    let unfilled = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfilled.contains(&format!("A phone can't reach http://{address}: that is this machine alone.")), "{text}");
    let lines: Vec<_> = text.lines().map(|line| line.trim_end().trim_start()).collect();
    for command in [
        format!("tailscale serve --bg {port}"),
        format!("cloudflared tunnel --url http://{address}"),
        format!("caddy reverse-proxy --from chips.example.com --to {address}"),
    ] {
        assert!(lines.contains(&command.as_str()), "{command}: {text}");
    }
    let again = lines
        .iter()
        .find(|line| {
            line.ends_with("--public-url https://chips.example.com")
                || line.contains("--public-url https://chips.example.com --data")
        })
        .unwrap();
    assert!(again.contains(&format!("serve --phone --listen {address}")), "{again}");
    assert!(!text.contains('▀'), "there is nothing to scan: {text}");
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn in_a_network_over_plain_http_a_phone_is_let_in_and_told_what_that_costs() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let args = ["serve", "--phone", "--listen", "0.0.0.0:0", "--insecure"];
    let (server, shown) = Terminal::new(80).spawn(&mut machine.command(&args));
    let text = shown.wait_for("the way in", |text| text.contains("Another code").then(|| text.to_owned()));
    let unfilled = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfilled.contains("over plain http: whoever is on that network can read your questions"), "{text}");
    assert!(text.contains("tailscale serve --bg ") && text.contains('▀') && text.contains("/sign-in"), "{text}");
    assert!(!text.contains("home screen"), "nothing is installed from there: {text}");
    assert_eq!(server.terminate().code(), Some(0));

    // Where nobody looks on, the same without a secret.
    let mut server = machine.serve(&args[1..]);
    let text = server.out.wait_for("the command", |text| text.contains("person link usr_").then(|| text.to_owned()));
    assert!(text.contains("tailscale serve --bg ") && !secrets_in(&text) && !text.contains('▀'), "{text}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_store_that_fails_ends_the_process_with_70_and_one_clear_line() {
    let machine = Machine::new();
    let made = machine.json(&["init"]);
    let token = made["harness"]["token"].as_str().unwrap();
    // Past this size the system refuses writes to a file with EFBIG: an error at commit that is no full disk.
    let mut shell = Command::new("sh");
    machine.clean(&mut shell);
    let serve = format!("trap '' XFSZ; ulimit -f 512; exec '{}' serve", env!("CARGO_BIN_EXE_chips"));
    let shell = shell.arg("-c").arg(serve).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Serving::spawn(shell).wait_until_it_listens();
    let labels: serde_json::Map<_, _> = (0..16).map(|n| (format!("k{n}"), json!("v".repeat(255)))).collect();
    until("the failure", || {
        let mut connection = TcpStream::connect(server.address()).ok();
        let body = json!({ "labels": labels, "title": "t".repeat(300) }).to_string();
        let length = body.len();
        if let Some(connection) = &mut connection {
            let _ = write!(
                connection,
                "POST /v1/runs HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
                server.address(),
            );
            let _ = connection.read_to_string(&mut String::new());
        }
        connection.is_none().then_some(())
    });
    assert_eq!(server.wait().code(), Some(70), "{}", server.err.text());
    let said = server.err.to_end();
    let told: Vec<_> = said.lines().filter(|line| line.starts_with("chips: ")).collect();
    assert!(told.len() == 1 && told[0].contains("the store has failed"), "{said}");
}

#[test]
fn wrong_usage_ends_with_2() {
    let machine = Machine::new();
    for args in [
        &["serve", "--listen", "7070"][..],
        &["serve", "--listen", "127.0.0.1:99999"],
        &["serve", "--public-url", "ftp://chips.example.com"],
        &["serve", "--public-url", "https://user@chips.example.com"],
        &["serve", "DIR"],
    ] {
        let said = machine.refused(args, 2);
        assert!(said.contains("error: "), "{said}");
    }
    assert!(!machine.data().exists());
}
