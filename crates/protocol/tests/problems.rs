//! Each code has a page that explains it, and each problem points to its page.
#![allow(clippy::unwrap_used)]

use chips_protocol::problem::{FAULTS_PAGE, Problem, ProblemCode, page};
use chips_protocol::{FaultCode, limits};

#[test]
fn each_problem_has_a_page_of_its_own() {
    for &code in ProblemCode::ALL {
        let page = page(code);
        assert!(page.starts_with(&format!("# `{}`\n\nHTTP status {}.\n", code.as_str(), code.status())), "{page}");
        for part in ["**What it means.**", "**When it happens.**", "**What to do.**"] {
            assert_eq!(page.matches(part).count(), 1, "{code:?} {part}");
        }
        assert!((5..=16).contains(&page.lines().count()), "{code:?}");
        assert_eq!(ProblemCode::from_name(code.as_str()), Some(code));
    }
}

#[test]
fn each_fault_is_explained_in_the_order_of_the_contract() {
    let explained: Vec<&str> =
        FAULTS_PAGE.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect();
    let codes: Vec<&str> = FaultCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(explained, codes);
    for section in FAULTS_PAGE.split("\n## ").skip(1) {
        assert_eq!(section.matches("**What to do:**").count(), 1, "{section}");
    }
}

#[test]
fn the_folder_holds_no_page_of_a_code_that_is_gone() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("problems");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let code = name.strip_suffix(".md").unwrap();
        assert!(code == "faults" || ProblemCode::from_name(code).is_some(), "{name}");
    }
}

#[test]
fn the_pages_tell_the_limits_that_are_held() {
    let says = |code, number: &str| assert!(page(code).contains(number), "{code:?} does not say {number}");
    says(ProblemCode::TooLarge, "262,144");
    assert_eq!(limits::BODY_BYTES, 262_144);
    says(ProblemCode::TooLarge, "4,000");
    assert_eq!(limits::PROMPT, 4_000);
    says(ProblemCode::TooDeep, "32");
    assert_eq!(limits::DEPTH, 32);
    assert!(FAULTS_PAGE.contains("31,536,000"));
    assert_eq!(limits::SECONDS, 31_536_000);
}

#[test]
fn a_problem_points_to_its_page() {
    let problem = Problem::new(ProblemCode::RunEnded, "run_01K4ZQPX000000000000000005 has ended");
    let json = serde_json::to_value(&problem).unwrap();
    assert_eq!(json["type"], "/problems/run_ended");
    assert_eq!(json["status"], 409);
    assert_eq!(json["code"], "run_ended");
    assert_eq!(json.get("errors"), None);
    assert_eq!(serde_json::from_value::<Problem>(json).unwrap(), problem);
}
