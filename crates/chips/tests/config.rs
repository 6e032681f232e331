//! The server's configuration, against the real binary: where it comes from, what is refused, and what `chips config` says.
#![allow(clippy::unwrap_used)]

mod serving;

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use serving::{Machine, Serving};

/// Writes a configuration file, in a folder of its own.
fn written(machine: &Machine, text: &str) -> PathBuf {
    let folder = machine.home().join("etc");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("chips.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// What `chips config --check --json` says of a file, and its exit code.
fn checked(machine: &Machine, file: &str, variables: &[(&str, &str)], flags: &[&str]) -> (i32, Value) {
    let path = written(machine, file);
    let args = [&["config", "--check", "--json", "--config", path.to_str().unwrap()], flags].concat();
    let output = machine.command(&args).envs(variables.iter().copied()).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let code = output.status.code().unwrap();
    assert_eq!(report["ok"].as_bool().unwrap(), code == 0, "{report}");
    (code, report)
}

/// What counts for a key: its value, the layer, the place.
fn row(report: &Value, key: &str) -> (Value, String, String) {
    let rows = report["values"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key} in {report}"));
    let text = |field: &str| row[field].as_str().unwrap().to_owned();
    (row["value"].clone(), text("from"), text("at"))
}

#[test]
fn the_printed_text_is_what_the_server_begins_with() {
    let machine = Machine::new();
    let printed = machine.text(&["config"]);
    assert_eq!(printed, include_str!("../src/server_config/default.toml"));
    // Kept as a file it changes nothing but who said so.
    let (code, report) = checked(&machine, &printed, &[], &[]);
    assert_eq!(code, 0, "{report}");
    for row in report["values"].as_array().unwrap() {
        let environment = ["data", "listen"].contains(&row["key"].as_str().unwrap());
        assert_eq!(row["from"], if environment { "environment" } else { "file" }, "{row}");
    }
}

#[test]
fn a_server_is_configured_by_its_file() {
    let machine = Machine::new();
    let text = "data = \"../from-the-file\"\nlisten = \"127.0.0.1:0\"\nallow_host = [\"chips.lan\"]\n";
    let path = written(&machine, text);
    for by_variable in [false, true] {
        let mut command = machine.command(&["serve"]);
        command.env_remove("CHIPS_DATA").env_remove("CHIPS_LISTEN");
        if by_variable {
            command.env("CHIPS_CONFIG", &path);
        } else {
            command.arg("--config").arg(&path);
        }
        let server = Serving::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped())).wait_until_it_listens();
        let named = |host: &str| {
            let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let mut connection = std::net::TcpStream::connect(server.address()).unwrap();
            std::io::Write::write_all(&mut connection, request.as_bytes()).unwrap();
            let mut reply = String::new();
            std::io::Read::read_to_string(&mut connection, &mut reply).unwrap();
            reply.split(' ').nth(1).unwrap().to_owned()
        };
        assert_eq!((named("chips.lan").as_str(), named("other.lan").as_str()), ("200", "421"));
        assert!(machine.home().join("from-the-file/chips.db").exists() && !machine.data().exists());
        assert_eq!(server.terminate().code(), Some(0));
    }
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file_and_the_check_says_who_did() {
    let machine = Machine::new();
    let file = "public_url = \"https://file.example.com\"\nallow_host = [\"file.lan\"]\n[mcp]\nbeat = \"5s\"\n";
    let variables = [("CHIPS_PUBLIC_URL", "https://environment.example.com"), ("CHIPS_ALLOW_HOST", "")];
    let (code, report) = checked(&machine, file, &variables, &["--public-url", "https://flag.example.com"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(row(&report, "public_url"), ("https://flag.example.com".into(), "flag".into(), "--public-url".into()));
    let (_, report) = checked(&machine, file, &variables, &[]);
    let environment = ("https://environment.example.com".into(), "environment".into(), "CHIPS_PUBLIC_URL".into());
    assert_eq!(row(&report, "public_url"), environment);
    let (value, from, at) = row(&report, "allow_host");
    assert_eq!((value, from.as_str()), (serde_json::json!(["file.lan"]), "file"));
    assert!(at.ends_with("/etc/chips.toml:2"), "{at}");
    assert!(row(&report, "mcp.beat").2.ends_with("/etc/chips.toml:4"));
    assert_eq!(row(&report, "mcp.slice"), (Value::Null, "default".into(), "the default configuration".into()));
}

#[test]
fn what_is_wrong_is_told_with_its_place_by_the_server_and_by_the_check() {
    let machine = Machine::new();
    let path = written(&machine, "listn = \"127.0.0.1:0\"\ninsecure = \"no\"\n");
    let file = path.to_str().unwrap();
    // For the server it is wrong usage, after which nothing starts it again.
    for (args, code) in [(&["serve", "--config", file][..], 2), (&["config", "--check", "--config", file], 1)] {
        let said = machine.refused(args, code);
        let lines: Vec<_> = said.lines().filter(|line| line.starts_with(&format!("chips: {file}:"))).collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(lines[0].contains(":1:1: listn is no key") && lines[0].contains("did you mean listen?"), "{said}");
        assert!(lines[1].contains(":2:12: insecure can't be \"no\""), "{said}");
    }
    assert!(!machine.data().exists());
    let (_, report) = checked(&machine, "listn = 1", &[], &[]);
    assert!(report["faults"][0]["at"].as_str().unwrap().ends_with("/etc/chips.toml:1:1"), "{report}");
}

#[test]
fn a_pipe_that_nobody_writes_to_is_empty_and_one_that_somebody_does_is_read() {
    let machine = Machine::new();
    let pipe = machine.home().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let smtp = "[smtp]\nhost = \"mail.example.com\"\nfrom = \"chips@example.com\"\nusername = \"chips\"\n";
    let (code, report) = checked(&machine, &format!("{smtp}password_file = \"../pipe\"\n"), &[], &[]);
    assert_eq!(code, 1);
    assert!(report["faults"][0]["message"].as_str().unwrap().contains("is empty"), "{report}");
    let script = "printf 'retain = 90\n' | \"$0\" config --check --json --config /dev/stdin";
    let mut command = std::process::Command::new("sh");
    machine.clean(command.args(["-c", script, env!("CARGO_BIN_EXE_chips")]));
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(row(&report, "retain").0, "90", "{report}");
}

#[test]
fn of_a_value_of_another_kind_it_is_told_what_the_key_takes() {
    let machine = Machine::new();
    for (wrong, takes) in [
        ("retain = 90.5", "retain can't be 90.5: a whole number of days"),
        ("retain = true", "retain can't be true: a whole number of days"),
        ("public_url = 7", "public_url can't be \"7\""),
        ("log = true", "log can't be true: it takes a text in quotes"),
    ] {
        let (code, report) = checked(&machine, wrong, &[], &[]);
        let message = report["faults"][0]["message"].as_str().unwrap();
        assert!(code == 1 && message.contains(takes), "{report}");
    }
}

#[test]
fn what_contradicts_itself_is_told_by_the_check_too() {
    let machine = Machine::new();
    let (code, report) = checked(&machine, "", &[("CHIPS_LISTEN", "0.0.0.0:7070")], &[]);
    assert_eq!(code, 1);
    assert!(report["faults"][0]["message"].as_str().unwrap().contains("--insecure"), "{report}");
    let (code, _) = checked(&machine, "insecure = true", &[("CHIPS_LISTEN", "0.0.0.0:7070")], &[]);
    assert_eq!(code, 0);
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let machine = Machine::new();
    let said = machine.refused(&["serve", "--config", "nowhere.toml"], 2);
    assert!(said.starts_with("chips: nowhere.toml: can't be read: "), "{said}");
}

#[test]
fn the_file_of_chips_connect_is_not_taken_for_it() {
    let machine = Machine::new();
    let path = written(&machine, "[harness]\nurl = \"http://127.0.0.1:1\"\ntoken = \"secret\"\n");
    let said = machine.refused(&["serve", "--config", path.to_str().unwrap()], 2);
    assert!(said.contains("chips connect") && !said.contains("secret"), "{said}");
}

#[test]
fn a_variable_that_nobody_knows_is_a_warning_and_the_server_starts() {
    let machine = Machine::new();
    let mut command = machine.command(&["serve"]);
    command.env("CHIPS_ALOW_HOST", "chips.lan").stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = Serving::spawn(&mut command).wait_until_it_listens();
    server.err.wait_for("the warning", |text| text.contains("did you mean CHIPS_ALLOW_HOST?").then_some(()));
    assert_eq!(server.terminate().code(), Some(0));
    let (code, report) = checked(&machine, "", &[("CHIPS_ALOW_HOST", "chips.lan")], &[]);
    assert_eq!((code, report["warnings"].as_array().unwrap().len()), (0, 1), "{report}");
}

#[test]
fn what_is_for_the_check_alone_is_wrong_usage_without_it() {
    let machine = Machine::new();
    for more in [&["--json"][..], &["--config", "x"], &["--listen", "127.0.0.1:1"]] {
        assert!(machine.refused(&[&["config"], more].concat(), 2).contains("--check"));
    }
}

#[test]
fn the_doctor_looks_at_the_file() {
    let machine = Machine::new();
    machine.json(&["init"]);
    let good = written(&machine, "public_metrics = true\n");
    let text = machine.text(&["doctor", "--config", good.to_str().unwrap()]);
    assert!(text.contains("configuration of the server") && text.contains("chips.toml is good"), "{text}");
    let bad = written(&machine, "public_metrix = true\n");
    let output = machine.command(&["doctor", "--json"]).env("CHIPS_CONFIG", &bad).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    let says = report["checks"][0]["says"].as_str().unwrap();
    assert!(says.contains("did you mean public_metrics?"), "{report}");
    assert!(!machine.text(&["doctor"]).contains("configuration of the server"));
}

#[test]
fn a_secret_is_told_where_everybody_can_read_it_and_never_shown() {
    let machine = Machine::new();
    let file = "[smtp]\nhost = \"mail.example.com\"\nfrom = \"chips@example.com\"\nusername = \"chips\"\n";
    let with_password = format!("{file}password = \"hunter2\"\n");
    let (code, report) = checked(&machine, &with_password, &[], &[]);
    assert_eq!((code, row(&report, "smtp.password").0), (0, "[secret]".into()), "{report}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("everybody on this machine can read it") && !report.to_string().contains("hunter2"));

    let (_, report) = checked(&machine, file, &[], &["--smtp-password", "hunter2"]);
    assert!(report["warnings"][0]["at"] == "--smtp-password" && !report.to_string().contains("hunter2"), "{report}");

    let secret = machine.home().join("etc/password");
    std::fs::write(&secret, "hunter2\n").unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (code, report) = checked(&machine, &format!("{file}password_file = \"password\"\n"), &[], &[]);
    assert_eq!((code, report["warnings"].as_array().unwrap().len()), (0, 0), "{report}");
    let both = [("CHIPS_SMTP_PASSWORD", "a"), ("CHIPS_SMTP_PASSWORD_FILE", secret.to_str().unwrap())];
    let (code, report) = checked(&machine, file, &both, &[]);
    assert!(code == 1 && report["faults"][0]["message"].as_str().unwrap().contains("are both set"), "{report}");
    let (code, report) = checked(&machine, file, &[], &[]);
    assert!(code == 1 && report["faults"][0]["message"].as_str().unwrap().contains("smtp.password_file"), "{report}");
    assert!(report["faults"][0]["at"].as_str().unwrap().ends_with("chips.toml:4"), "{report}");
    // Where it does not start for another reason, it is told all the same.
    let refused = machine.refused(&["serve", "--smtp-password", "hunter2", "--smtp-host", "mail.example.com"], 2);
    assert!(refused.contains("--smtp-host: ") && refused.contains("warning: --smtp-password: stands in the arguments"));
    assert!(!refused.contains("hunter2"));
}

#[test]
fn an_empty_variable_says_nothing_to_any_command() {
    let machine = Machine::new();
    machine.text(&["init"]);
    let data = machine.data().to_string_lossy().into_owned();
    let names =
        ["CHIPS_DATABASE", "CHIPS_DATABASE_FILE", "CHIPS_PUBLIC_URL", "CHIPS_CONFIG", "CHIPS_RETAIN", "CHIPS_URL"];
    for words in [
        &["person", "list", "--data", &data][..],
        &["doctor", "--data", &data],
        &["person", "add", "Ada", "--data", &data],
    ] {
        let mut command = machine.command(words);
        command.envs(names.iter().map(|name| (name, ""))).env("CHIPS_DATA", "");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
