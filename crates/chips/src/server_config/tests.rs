#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::{Args, Command, FromArgMatches};

use super::*;
use crate::folder::DEFAULT_LISTEN;

/// What the layers say together.
fn layered(file: &str, variables: &[(&str, &str)], flags: &[&str]) -> (layers::Values, Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chips.toml");
    std::fs::write(&path, file).unwrap();
    let mut reader = layers::Reader::default();
    reader.default_text();
    reader.file(&path);
    reader.environment(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    reader.flags(&flags_of(flags));
    let here = format!("{}/", folder.path().display());
    let lines = |faults: &[Fault]| faults.iter().map(|fault| fault.line().replace(&here, "")).collect();
    (reader.values, lines(&reader.faults), lines(&reader.warnings))
}

fn flags_of(flags: &[&str]) -> Flags {
    let matches = Flags::augment_args(Command::new("chips")).get_matches_from([&["chips"], flags].concat());
    Flags::from_arg_matches(&matches).unwrap()
}

/// The one fault of a file.
fn fault(file: &str) -> String {
    let (_, faults, _) = layered(file, &[], &[]);
    assert_eq!(faults.len(), 1, "{file}: {faults:?}");
    faults[0].clone()
}

#[test]
fn the_default_text_is_good_and_names_every_key_once() {
    let mut reader = layers::Reader::default();
    reader.default_text();
    assert_eq!(reader.faults, []);
    for key in KEYS.iter() {
        let given = reader.values.given(key.path).unwrap_or_else(|| panic!("{} is not in default.toml", key.path));
        assert_eq!(given.layer, Layer::Default);
        assert!(!key.about().says.is_empty(), "{} has no comment in default.toml", key.path);
    }
    let settings = together(&reader.values).unwrap();
    assert_eq!(settings.listen.to_string(), DEFAULT_LISTEN);
    assert_eq!(settings.mcp_beat, chips_mcp::BEAT);
    assert_eq!(settings.server().check(), Ok(()));
}

#[test]
fn every_key_is_a_flag_and_a_variable_and_the_other_way_round() {
    let command = Flags::augment_args(Command::new("chips"));
    let flags: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long()).map(str::to_owned).collect();
    assert_eq!(flags, KEYS.iter().map(Key::flag).collect::<Vec<_>>());
    for key in KEYS.iter() {
        let text = match key.shape {
            Shape::Switch => "true",
            _ => sample(key),
        };
        let (values, faults, warnings) = layered("", &[(&key.variable(), text)], &[]);
        assert_eq!((faults, warnings), (vec![], vec![]), "{}", key.path);
        let given = values.given(key.path).unwrap();
        assert_eq!((given.layer, &given.at, given.texts[0].as_str()), (Layer::Environment, &key.variable(), text));

        let flag = format!("--{}", key.flag());
        let (values, faults, _) = layered("", &[(&key.variable(), text)], &[&format!("{flag}={text}")]);
        assert_eq!(key.shape == Shape::Secret, key.companion().is_some(), "{}", key.path);
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!((values.given(key.path).unwrap().layer, &values.given(key.path).unwrap().at), (Layer::Flag, &flag));
    }
}

/// A text that any key of this kind takes.
fn sample(key: &Key) -> &'static str {
    const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tls/authority.pem");
    let samples = ["127.0.0.1:1", "https://chips.example.com", "chips.lan", "30s", "warn", "25", "starttls"];
    let more = ["10.0.0.0/8", "chips@example.com", "postgres://chips@db.example/chips", "some/where"];
    let found = samples.into_iter().chain(more).find(|text| key.check(text).is_ok());
    found
        .or_else(|| key.check(AUTHORITY).is_ok().then_some(AUTHORITY))
        .unwrap_or_else(|| panic!("a sample for {}", key.path))
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let file = "listen = \"127.0.0.1:1\"\nallow_host = [\"a.lan\", \"b.lan\"]\n\n[mcp]\nbeat = \"1s\"\n";
    let of = |values: &layers::Values| Settings::of(values).unwrap();
    let (values, ..) = layered(file, &[], &[]);
    assert_eq!((of(&values).listen.port(), of(&values).mcp_beat.as_secs()), (1, 1));
    assert_eq!(values.given("mcp.beat").unwrap().at.rsplit(':').next(), Some("5"));
    let environment = [("CHIPS_LISTEN", "127.0.0.1:2"), ("CHIPS_ALLOW_HOST", "c.lan, d.lan")];
    let (values, ..) = layered(file, &environment, &[]);
    assert_eq!((of(&values).listen.port(), of(&values).mcp_beat.as_secs()), (2, 1));
    // A list is one value: it is not added to.
    assert_eq!(of(&values).allow_host, ["c.lan", "d.lan"]);
    let (values, ..) = layered(file, &environment, &["--listen", "127.0.0.1:3", "--insecure"]);
    assert_eq!((of(&values).listen.port(), of(&values).insecure), (3, true));
}

#[test]
fn a_variable_that_is_empty_says_nothing_and_a_flag_that_is_takes_back() {
    let file = "public_url = \"https://chips.example.com\"\ninsecure = true\n";
    let (values, faults, _) = layered(file, &[("CHIPS_PUBLIC_URL", ""), ("CHIPS_LISTEN", "")], &[]);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(values.given("public_url").unwrap().layer, Layer::File);
    let (values, ..) = layered(file, &[], &["--public-url", "", "--insecure=false"]);
    let settings = Settings::of(&values).unwrap();
    assert_eq!((settings.public_url, settings.insecure), (None, false));
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest_name() {
    assert!(fault("\nlistn = \"127.0.0.1:1\"\n").starts_with("chips.toml:2:1: listn is no key"));
    for (file, meant) in [
        ("listn = 1", "did you mean listen?"),
        ("Public_URL = 1", "did you mean public_url?"),
        ("allow_hosts = []", "did you mean allow_host?"),
        ("[mcp]\nlisten = 1", "did you mean listen?"),
        ("beat = \"1s\"", "did you mean mcp.beat?"),
        ("mcp.slize = \"1s\"", "did you mean mcp.slice?"),
        ("[mpc]\nbeat = \"1s\"", "did you mean [mcp]?"),
        ("mcp = 5", "mcp is a table"),
        ("[harness]\ntoken = \"x\"", "chips connect"),
    ] {
        assert!(fault(file).contains(meant), "{}", fault(file));
    }
}

#[test]
fn a_wrong_value_is_refused_with_what_was_found_and_what_is_right() {
    for (file, said) in [
        ("listen = 7070", "chips.toml:1:10: listen can't be 7070: it takes a text in quotes"),
        ("listen = \"7070\"", "chips.toml:1:10: listen can't be \"7070\": an IP address and a port"),
        ("insecure = \"yes\"", "insecure can't be \"yes\": it takes true or false, without quotes"),
        ("allow_host = \"a\"", "allow_host can't be \"a\": it takes a list in brackets"),
        ("allow_host = [1]", "allow_host can't be [1]: it takes a list of texts in quotes"),
        ("allow_host = [\"a b\"]", "allow_host can't be \"a b\": a host name"),
        ("public_url = \"chips.example.com\"", "public_url can't be \"chips.example.com\": "),
        ("mcp.beat = \"\"", "mcp.beat can't be \"\": a whole number and s, m, h or d"),
        ("log = \"=,=\"", "log can't be"),
        (
            "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"",
            "chips.toml:2:1: listen stands above already; keep one of them",
        ),
        ("[smtp]\nport = 25\n[mcp]\n[smtp]\n", "chips.toml:4:2: smtp stands above already"),
        ("listen = ", "chips.toml:1:"),
    ] {
        assert!(fault(file).contains(said), "{}", fault(file));
    }
    let (_, faults, _) = layered("listen = 1\nnope = 2\n", &[("CHIPS_INSECURE", "maybe")], &[]);
    assert_eq!(faults.len(), 3, "all of it is told at once: {faults:?}");
    assert_eq!(faults[2], "CHIPS_INSECURE: insecure can't be \"maybe\": true or false");
}

#[test]
fn a_variable_that_nobody_knows_is_a_warning() {
    let variables = [("CHIPS_LISTN", "x"), ("CHIPS_SERVICE_HOST", "10.0.0.1"), ("CHIPS_URL", "x"), ("CHIPSY", "x")];
    let (_, faults, warnings) = layered("", &variables, &[]);
    assert_eq!(faults, Vec::<String>::new());
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("CHIPS_LISTN: ") && warnings[0].ends_with("did you mean CHIPS_LISTEN?"));
    assert!(warnings[1].starts_with("CHIPS_SERVICE_HOST: ") && !warnings[1].contains("did you mean"));
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_place() {
    let mut reader = layers::Reader::default();
    reader.environment([("CHIPS_LISTEN".into(), OsString::from_vec(vec![0xff]))]);
    assert!(reader.faults[0].line().starts_with("CHIPS_LISTEN: holds bytes"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chips.toml");
    std::fs::write(&path, b"listen = \"127.0.0.1:1\"\n# \xff\n").unwrap();
    let mut reader = layers::Reader::default();
    reader.file(&path);
    assert!(reader.faults[0].line().contains("chips.toml:2:3: "), "{:?}", reader.faults);
}

#[test]
fn a_relative_path_begins_at_the_folder_of_the_file() {
    let (values, ..) = layered("data = \"here/below\"", &[], &[]);
    let data = Settings::of(&values).unwrap().data.unwrap();
    assert!(data.is_absolute() && data.ends_with("here/below"), "{}", data.display());
    let (values, ..) = layered("data = \"/srv/chips\"", &[], &[]);
    assert_eq!(Settings::of(&values).unwrap().data.unwrap(), Path::new("/srv/chips"));
    let (values, ..) = layered("data = \"x\"", &[("CHIPS_DATA", "from/here")], &[]);
    assert_eq!(Settings::of(&values).unwrap().data.unwrap(), Path::new("from/here"));
}

#[test]
fn a_secret_comes_from_a_file_of_its_own_and_the_later_layer_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "from the file\n").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let file = path.to_str().unwrap();
    let password = |toml: &str, variables: &[(&str, &str)], flags: &[&str]| {
        let mut reader = layers::Reader::default();
        reader.default_text();
        let config = folder.path().join("chips.toml");
        std::fs::write(&config, toml).unwrap();
        reader.file(&config);
        reader.environment(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        reader.flags(&flags_of(flags));
        reader.secrets();
        assert_eq!(reader.faults, []);
        Settings::of(&reader.values).unwrap().smtp_password.map(|secret| secret.reveal().to_owned())
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(password("", &[], &[]), None);
    assert_eq!(password("smtp.password_file = \"password\"", &[], &[]), said("from the file"));
    assert_eq!(password("smtp.password = \"x\"", &[("CHIPS_SMTP_PASSWORD_FILE", file)], &[]), said("from the file"));
    assert_eq!(password("smtp.password_file = \"password\"", &[("CHIPS_SMTP_PASSWORD", "y")], &[]), said("y"));
    assert_eq!(password("", &[("CHIPS_SMTP_PASSWORD", "y")], &["--smtp-password-file", file]), said("from the file"));
}

#[test]
fn a_secret_that_others_can_read_is_told_and_never_shown() {
    let (_, faults, warnings) = layered("smtp.password = \"hunter2\"\n", &[], &[]);
    assert_eq!((faults.len(), warnings.len()), (0, 1), "{warnings:?}");
    assert!(
        warnings[0].contains("chips.toml: everybody on this machine can read it") && !warnings[0].contains("hunter2")
    );
    let (_, _, warnings) = layered("smtp.password = \"\"\n", &[], &["--smtp-password=hunter2"]);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("--smtp-password: stands in the arguments") && !warnings[0].contains("hunter2"));
    assert!(!fault("smtp.password = [\"hunter2\"]").contains("hunter2"));
    let (values, ..) = layered("smtp.password = \"hunter2\"\n", &[], &[]);
    assert!(!format!("{values:?} {:?}", Settings::of(&values)).contains("hunter2"));
}

#[test]
fn a_secret_that_is_named_twice_or_can_t_be_read_is_a_fault() {
    for (toml, says) in [
        ("smtp.password = \"a\"\nsmtp.password_file = \"b\"\n", "are both set"),
        ("smtp.password_file = \"nowhere\"\n", "can't be read"),
        ("smtp.password_file = \"chips.toml.empty\"\n", "is empty"),
        ("smtp.password_file = \"/dev/zero\"\n", "one line of at most 4096 characters"),
        ("smtp.password_file = \"two-lines\"\n", "one line of at most 4096 characters"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("chips.toml.empty"), "\n").unwrap();
        std::fs::write(folder.path().join("two-lines"), "one\ntwo\n").unwrap();
        let path = folder.path().join("chips.toml");
        std::fs::write(&path, toml).unwrap();
        let mut reader = layers::Reader::default();
        reader.file(&path);
        reader.secrets();
        assert_eq!(reader.faults.len(), 1, "{toml}");
        assert!(reader.faults[0].line().contains(says), "{:?}", reader.faults);
    }
}

#[test]
fn a_secret_that_is_wrong_is_not_shown() {
    let wrong = "postgres://chips:hunter2@db.example";
    let (_, faults, _) = layered(&format!("database = \"{wrong}\"\n"), &[("CHIPS_DATABASE", wrong)], &[]);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.contains("database") && !fault.contains("hunter2")), "{faults:?}");
}
