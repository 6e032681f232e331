//! `chips hook claude-code` as Claude Code runs it: a hook's JSON on standard input, the decision on standard output.
#![allow(clippy::unwrap_used)]

mod desk;
mod serving;

use std::fs::File;
use std::process::{Command, Stdio};

use desk::{Desk, end};
use rustix::process::Signal;
use serde_json::{Value, json};
use serving::Serving;

/// Starts the hook with this input.
fn hook_by(desk: &Desk, mut command: Command, input: &Value) -> Serving {
    let path = desk.machine.home().join("hook.json");
    std::fs::write(&path, input.to_string()).unwrap();
    command.stdin(Stdio::from(File::open(path).unwrap()));
    desk.start(command)
}

/// A command that knows nothing of the session it runs in, as in versions that say nothing of it.
fn bare(desk: &Desk, arguments: &[&str]) -> Command {
    let mut command = desk.command(&[&["hook", "claude-code"], arguments].concat());
    command.env_remove("AI_AGENT").env_remove("CLAUDE_CODE_SESSION_ATTENDED");
    command
}

fn hook(desk: &Desk, arguments: &[&str], input: &Value) -> Serving {
    hook_by(desk, bare(desk, arguments), input)
}

fn input(event: &str, mode: &str, questions: Value) -> Value {
    let mut input = json!({
        "session_id": "c0ffee", "transcript_path": "/srv/mo/s.jsonl", "cwd": "/srv/garden",
        "permission_mode": mode, "hook_event_name": event, "tool_name": "AskUserQuestion",
        "tool_input": { "questions": questions },
    });
    // A `PermissionRequest` does not say for which call it comes.
    if event == "PreToolUse" {
        input["tool_use_id"] = json!("toolu_7");
    }
    input
}

fn one() -> Value {
    json!([{
        "question": "Which bed first?", "header": "Bed", "multiSelect": false,
        "options": [{ "label": "Herbs, north", "description": "Half done." }, { "label": "Beans" }],
    }])
}

fn printed(hook: Serving) -> Value {
    let (code, out, err) = end(hook);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out:?} {err:?}"))
}

fn printed_nothing(hook: Serving) -> String {
    let (code, out, err) = end(hook);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{err}");
    err
}

#[test]
fn an_answer_allows_the_tool_with_the_questions_unchanged() {
    let desk = Desk::new();
    let asking = hook(&desk, &[], &input("PreToolUse", "acceptEdits", one()));
    let ask = desk.open_ask();
    assert_eq!(ask["ask"]["questions"][0]["options"][0]["value"], "Herbs, north", "the label is the value");
    assert_eq!(ask["ask"]["questions"][0].get("default_value"), None, "no default is invented");
    assert_eq!(ask["deadline"], Value::Null, "it waits for as long as it takes");
    desk.answer(json!({ "question_id": "q0", "values": ["Herbs, north"] }));

    let decision = printed(asking)["hookSpecificOutput"].clone();
    assert_eq!(decision["hookEventName"], "PreToolUse");
    assert_eq!(decision["permissionDecision"], "allow");
    assert_eq!(decision["updatedInput"]["questions"], one());
    assert_eq!(decision["updatedInput"]["answers"], json!({ "Which bed first?": "Herbs, north" }));
    let notes = decision["updatedInput"]["annotations"]["Which bed first?"]["notes"].as_str().unwrap();
    assert!(notes.contains("answered by Owner"), "{notes}");
}

#[test]
fn several_a_text_and_a_question_left_out_reach_the_model_as_they_are() {
    let desk = Desk::new();
    let questions = json!([
        { "question": "What to sow?", "multiSelect": true,
          "options": [{ "label": "Peas" }, { "label": "Leek, early" }, { "label": "Rye" }] },
        { "question": "When?", "options": [{ "label": "Today" }, { "label": "Monday" }] },
        { "question": "Who waters?", "options": [{ "label": "Me" }, { "label": "You" }] },
    ]);
    let asking = hook(&desk, &[], &input("PreToolUse", "plan", questions));
    let ask = desk.open_ask();
    let answers = json!([
        { "question_id": "q0", "values": ["Leek, early", "Rye"], "free_text": "and dill" },
        { "question_id": "q1", "values": [], "free_text": "After the rain" },
    ]);
    let event = json!({
        "v": 1, "type": "question.answered", "id": ask["ask_id"].as_str().unwrap().replace("qst_", "evt_"),
        "workspace_id": ask["ask"]["workspace_id"], "run_id": ask["ask"]["run_id"], "ask_id": ask["ask_id"],
        "actor": person(&desk), "idempotency_key": "sown", "answers": answers,
    });
    let (status, event) = desk.server().api(&desk.person, "POST", "/v1/events", Some(&event));
    assert_eq!(status, 201, "{event}");

    let input = printed(asking)["hookSpecificOutput"]["updatedInput"].clone();
    let expected = json!({ "What to sow?": ["Leek, early", "Rye", "and dill"], "When?": "After the rain" });
    assert_eq!(input["answers"], expected);
    let notes = |question: &str| input["annotations"][question]["notes"].as_str().unwrap().to_owned();
    assert_eq!(
        notes("What to sow?"),
        "answered by Owner in Chips; chosen: \"Leek, early\" and \"Rye\"; typed: \"and dill\"",
        "Claude Code joins them by commas"
    );
    assert_eq!(notes("When?"), "answered by Owner in Chips");
    assert_eq!(notes("Who waters?"), "left unanswered");
}

fn person(desk: &Desk) -> Value {
    let (_, me) = desk.server().api(&desk.person, "GET", "/v1/me", None);
    json!({ "kind": "person", "id": me["participant"]["id"] })
}

#[test]
fn in_default_mode_the_dialog_and_chips_are_both_live() {
    let desk = Desk::new();
    printed_nothing(hook(&desk, &[], &input("PreToolUse", "default", one())));
    let asking = hook(&desk, &[], &input("PermissionRequest", "default", one()));
    desk.answer(json!({ "question_id": "q0", "values": ["Beans"] }));
    let decision = printed(asking)["hookSpecificOutput"]["decision"].clone();
    assert_eq!(decision["behavior"], "allow");
    assert_eq!(decision["updatedInput"]["answers"], json!({ "Which bed first?": "Beans" }));

    let exclusive = hook(&desk, &["--exclusive"], &input("PreToolUse", "default", one()));
    desk.answer(json!({ "question_id": "q0", "values": ["Beans"] }));
    assert_eq!(printed(exclusive)["hookSpecificOutput"]["permissionDecision"], "allow");
}

#[test]
fn it_says_nothing_where_it_is_not_asked_or_can_t_carry_the_question() {
    let desk = Desk::new();
    let mut other = input("PreToolUse", "default", one());
    other["tool_name"] = json!("Bash");
    other["tool_input"] = json!({ "command": "ls" });
    assert_eq!(printed_nothing(hook(&desk, &[], &other)), "");

    let twice = json!([one()[0], one()[0]]);
    assert!(printed_nothing(hook(&desk, &[], &input("PreToolUse", "plan", twice))).contains("left to the dialog"));
    let alike = json!([{ "question": "Go?", "options": [{ "label": "Yes" }, { "label": "yes " }] }]);
    let said = printed_nothing(hook(&desk, &[], &input("PreToolUse", "plan", alike)));
    assert!(said.contains("label") && said.contains("left to the dialog"), "{said}");

    let mut elsewhere = desk.command(&["hook", "claude-code"]);
    elsewhere.env("CHIPS_URL", "http://127.0.0.1:1");
    let said = printed_nothing(hook_by(&desk, elsewhere, &input("PreToolUse", "plan", one())));
    assert!(said.contains("can't reach"), "{said}");
    assert!(desk.events("question.ask").is_empty(), "nothing was asked");
}

#[test]
fn silence_is_never_told_as_a_choice() {
    let desk = Desk::new();
    let ask = input("PreToolUse", "plan", one());
    printed_nothing(hook(&desk, &["--timeout", "1s"], &ask));

    let mut again = ask.clone();
    again["tool_use_id"] = json!("toolu_8");
    let given_up = printed(hook(&desk, &["--timeout", "1s", "--on-no-answer", "cancel"], &again));
    assert_eq!(given_up["hookSpecificOutput"]["permissionDecision"], "deny");

    again["tool_use_id"] = json!("toolu_9");
    // An answer, whatever note stands at it, is told to the model as its person's.
    let taken = printed(hook(&desk, &["--timeout", "1s", "--default-first"], &again))["hookSpecificOutput"].clone();
    assert_eq!(taken["permissionDecision"], "deny");
    let told =
        "Nobody answered in time; no person chose. Go on with the default: \"Which bed first?\" = \"Herbs, north\".";
    assert_eq!(taken["permissionDecisionReason"], told);

    let beside = input("PermissionRequest", "default", one());
    let taken = printed(hook(&desk, &["--timeout", "1s", "--default-first"], &beside))["hookSpecificOutput"].clone();
    assert_eq!(taken["decision"], json!({ "behavior": "deny", "message": told }));
}

#[test]
fn a_session_that_is_interrupted_takes_its_question_back() {
    let desk = Desk::new();
    for signal in [Signal::TERM, Signal::INT] {
        let asking = hook(&desk, &[], &input("PermissionRequest", "default", one()));
        let ask = desk.open_ask();
        asking.signal(signal);
        assert_eq!(end(asking).0, Some(130));
        let path = format!("/v1/asks/{}?wait=20", ask["ask_id"].as_str().unwrap());
        let (_, closed) = desk.server().api(&desk.person, "GET", &path, None);
        assert_eq!(closed["state"], "withdrawn");
    }
}

#[test]
fn the_same_question_twice_is_one_card_and_the_end_of_the_session_withdraws_it() {
    let desk = Desk::new();
    let first = hook(&desk, &[], &input("PermissionRequest", "default", one()));
    let ask = desk.open_ask();
    let second = hook(&desk, &[], &input("PermissionRequest", "default", one()));
    let place = format!("asks/{}", ask["ask_id"].as_str().unwrap());
    second.err.wait_for("the same ask", |said| said.contains(&place).then_some(()));
    assert_eq!(desk.events("question.ask").len(), 1);

    printed_nothing(hook(&desk, &[], &json!({ "session_id": "c0ffee", "hook_event_name": "SessionEnd" })));
    printed_nothing(first);
    printed_nothing(second);
    assert_eq!(desk.run_state(ask["ask"]["run_id"].as_str().unwrap()), "ended");
}

#[test]
fn permission_prompts_are_carried_only_where_that_is_wished() {
    let desk = Desk::new();
    let mut prompt = input("PermissionRequest", "default", one());
    prompt["tool_name"] = json!("Bash");
    prompt["tool_input"] = json!({ "command": "rm -rf ./compost\necho done" });
    printed_nothing(hook(&desk, &[], &prompt));
    for (value, behavior) in [("allow", "allow"), ("deny", "deny")] {
        let asking = hook(&desk, &["--permissions", "--default-first"], &prompt);
        let ask = desk.open_ask();
        let question = &ask["ask"]["questions"][0];
        assert!(question["prompt"].as_str().unwrap().contains("rm -rf ./compost\necho done"), "shown whole");
        assert_eq!(question.get("default_value"), None, "never with a default");
        desk.answer(json!({ "question_id": "permission", "values": [value] }));
        assert_eq!(printed(asking)["hookSpecificOutput"]["decision"]["behavior"], behavior);
    }
}

#[test]
fn whoever_is_not_away_is_asked_in_the_terminal() {
    let desk = Desk::new();
    assert_eq!(desk.machine.text(&["away"]), "on\n");
    assert_eq!(desk.machine.text(&["away", "off"]), "off\n");
    assert_eq!(printed_nothing(hook(&desk, &[], &input("PreToolUse", "plan", one()))), "");
    assert!(desk.events("question.ask").is_empty());
    assert_eq!(desk.machine.text(&["away", "on"]), "on\n");
    let asking = hook(&desk, &[], &input("PreToolUse", "plan", one()));
    desk.answer(json!({ "question_id": "q0", "values": ["Beans"] }));
    printed(asking);
}

#[test]
fn the_settings_take_the_hooks_and_give_them_back() {
    let desk = Desk::new();
    let path = desk.machine.home().join(".claude/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let before = "{\n  \"model\": \"opus\"\n}\n";
    std::fs::write(&path, before).unwrap();
    let settings = || serde_json::from_str::<Value>(&std::fs::read_to_string(&path).unwrap()).unwrap();

    let dry = desk.machine.text(&["hook", "claude-code", "--install", "--dry-run"]);
    assert!(dry.contains("+") && dry.contains("86400"), "{dry}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);

    desk.machine.text(&["hook", "claude-code", "--install", "--permissions"]);
    assert_eq!(settings()["model"], "opus");
    let put = &settings()["hooks"]["PermissionRequest"][0];
    assert_eq!((&put["matcher"], &put["hooks"][0]["timeout"]), (&json!("*"), &json!(86_400)));
    assert!(put["hooks"][0]["command"].as_str().unwrap().ends_with("hook claude-code --permissions"));
    let checks = String::from_utf8(desk.command(&["doctor"]).output().unwrap().stdout).unwrap();
    assert!(checks.contains("Claude Code"), "{checks}");

    let mut old = settings();
    for event in ["PostToolUse", "PostToolBatch", "Stop"] {
        old["hooks"].as_object_mut().unwrap().shift_remove(event);
    }
    std::fs::write(&path, old.to_string()).unwrap();
    let output = desk.command(&["doctor", "--json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_old = |check: &&Value| check["says"].as_str().unwrap().contains("hooks of an older Chips");
    let old = report["checks"].as_array().unwrap().iter().find(is_old).unwrap();
    assert_eq!(old["mend"], "write it anew: chips hook claude-code --install --permissions", "with what it had");
    desk.machine.text(&["hook", "claude-code", "--install", "--permissions"]);
    assert_eq!(settings()["hooks"]["PostToolUse"][0]["matcher"], "*");
    let checks = String::from_utf8(desk.command(&["doctor"]).output().unwrap().stdout).unwrap();
    assert!(!checks.contains("hooks of an older Chips"), "{checks}");

    desk.machine.text(&["hook", "claude-code", "--uninstall"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

/// An input of `data/hooks`.
fn recorded(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hooks").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn each_recorded_input_gets_the_decision_that_it_asks_for() {
    let desk = Desk::new();
    let single = recorded("pretooluse-single.json");
    let asking = hook(&desk, &[], &single);
    desk.answer(json!({ "question_id": "q0", "values": ["Redis, hosted"] }));
    let decision = printed(asking)["hookSpecificOutput"].clone();
    assert_eq!((&decision["hookEventName"], &decision["permissionDecision"]), (&json!("PreToolUse"), &json!("allow")));
    assert_eq!(decision["updatedInput"]["questions"], single["tool_input"]["questions"], "unchanged");
    let answers = json!({ "Which queue should the importer use?": "Redis, hosted" });
    assert_eq!(decision["updatedInput"]["answers"], answers);

    let multi = recorded("pretooluse-multi-two-questions.json");
    let asking = hook(&desk, &[], &multi);
    let ask = desk.open_ask();
    assert_eq!(ask["ask"]["questions"][1].get("default_value"), None, "what is recommended is no default");
    desk.answer(json!({ "question_id": "q0", "values": ["Load, short", "Unit tests"] }));
    let input = printed(asking)["hookSpecificOutput"]["updatedInput"].clone();
    assert_eq!(input["questions"], multi["tool_input"]["questions"], "unchanged");
    let answers = json!({ "Which checks should run before the deploy?": ["Load, short", "Unit tests"] });
    assert_eq!(input["answers"], answers);
    assert_eq!(input["annotations"]["Deploy where first?"]["notes"], "left unanswered");

    let permission = recorded("permissionrequest-default-mode.json");
    let asking = hook(&desk, &[], &permission);
    desk.answer(json!({ "question_id": "q0", "values": [], "free_text": "Ask me in a week" }));
    let decision = printed(asking)["hookSpecificOutput"].clone();
    assert_eq!(decision["hookEventName"], "PermissionRequest");
    assert_eq!(decision["decision"]["behavior"], "allow");
    let input = &decision["decision"]["updatedInput"];
    assert_eq!(input["questions"], permission["tool_input"]["questions"], "unchanged");
    assert_eq!(input["answers"], json!({ "Keep the old column for one release?": "Ask me in a week" }));

    assert_eq!(printed_nothing(hook(&desk, &[], &recorded("pretooluse-other-tool.json"))), "", "it is not asked");
    assert_eq!(desk.events("question.ask").len(), 3);
}

/// An input that Claude Code 2.1.332 itself wrote.
fn real(name: &str) -> Value {
    recorded(&format!("claude-code-2.1.332/{name}.json"))
}

/// The hook as a session of Claude Code 2.1.332 starts it, with a person before it or without.
fn hook_of(desk: &Desk, attended: bool, arguments: &[&str], input: &Value) -> Serving {
    let mut command = bare(desk, arguments);
    command.env("AI_AGENT", "claude-code_2-1-332_harness");
    command.env("CLAUDE_CODE_SESSION_ATTENDED", if attended { "1" } else { "0" });
    hook_by(desk, command, input)
}

/// Another input of the session that wrote `of`.
fn same_session(mut input: Value, of: &Value) -> Value {
    input["session_id"] = of["session_id"].clone();
    input
}

/// The ask as it stands.
fn state(desk: &Desk, ask: &Value) -> Value {
    let path = format!("/v1/asks/{}", ask["ask_id"].as_str().unwrap());
    desk.server().api(&desk.person, "GET", &path, None).1
}

const ONE: &str = "permissionrequest-askuserquestion-1-default";

#[test]
fn an_answer_given_in_the_terminal_closes_the_question_and_the_inbox_says_what_was_chosen() {
    let desk = Desk::new();
    let asked = real(ONE);
    // A default of the operator's is no part of the question that the terminal shows.
    let asking = hook_of(&desk, true, &["--default-first"], &asked);
    let ask = desk.open_ask();
    let after = same_session(real("posttooluse-askuserquestion-1-default"), &asked);
    assert_eq!(printed_nothing(hook_of(&desk, true, &["--default-first"], &after)), "");
    printed_nothing(asking);
    let closed = state(&desk, &ask);
    assert_eq!(closed["state"], "settled");
    assert_eq!(closed["answer"]["answers"], json!([{ "question_id": "q0", "values": ["SQLite"] }]));
    assert_eq!(closed["acknowledged_at"], Value::Null, "no answer of Chips was handed over");
}

#[test]
fn a_question_that_is_talked_about_in_the_terminal_instead_is_withdrawn() {
    let desk = Desk::new();
    let asked = real(ONE);
    for after in ["posttoolbatch-askuserquestion-rejected", "stop"] {
        let asking = hook_of(&desk, true, &[], &asked);
        let ask = desk.open_ask();
        // What other calls are through is none of this question's.
        let other = same_session(real("posttoolbatch-bash"), &asked);
        assert_eq!(printed_nothing(hook_of(&desk, true, &["--permissions"], &other)), "");
        assert_eq!(state(&desk, &ask)["state"], "open");
        assert_eq!(printed_nothing(hook_of(&desk, true, &[], &same_session(real(after), &asked))), "");
        printed_nothing(asking);
        assert_eq!(state(&desk, &ask)["state"], "withdrawn", "{after}");
    }
}

#[test]
fn a_permission_given_in_the_terminal_closes_its_card_whatever_the_order_of_the_keys() {
    let desk = Desk::new();
    for tool in ["bash", "write"] {
        let asked = real(&format!("permissionrequest-{tool}-default"));
        let asking = hook_of(&desk, true, &["--permissions"], &asked);
        let ask = desk.open_ask();
        let mut after = same_session(real(&format!("posttooluse-{tool}-default")), &asked);
        let turned: Vec<(String, Value)> = after["tool_input"].as_object().unwrap().clone().into_iter().rev().collect();
        after["tool_input"] = Value::Object(turned.into_iter().collect());
        assert_eq!(printed_nothing(hook_of(&desk, true, &["--permissions"], &after)), "");
        printed_nothing(asking);
        let closed = state(&desk, &ask);
        assert_eq!(closed["answer"]["answers"], json!([{ "question_id": "permission", "values": ["allow"] }]));
        assert_eq!(closed["state"], "settled");
    }
}

#[test]
fn the_end_of_a_turn_leaves_the_permission_prompts_of_what_goes_on_behind_it() {
    let desk = Desk::new();
    let asked = real("permissionrequest-bash-default");
    let asking = hook_of(&desk, true, &["--permissions"], &asked);
    let ask = desk.open_ask();
    let mut over = same_session(real("stop"), &asked);
    over["background_tasks"] = json!([{ "id": "b1" }]);
    printed_nothing(hook_of(&desk, true, &["--permissions"], &over));
    assert_eq!(state(&desk, &ask)["state"], "open");
    over["background_tasks"] = json!([]);
    printed_nothing(hook_of(&desk, true, &["--permissions"], &over));
    printed_nothing(asking);
    assert_eq!(state(&desk, &ask)["state"], "withdrawn");
}

#[test]
fn after_a_tool_chips_is_spoken_to_only_where_a_question_waits() {
    let desk = Desk::new();
    for after in ["posttooluse-bash-default", "posttooluse-askuserquestion-1-default", "posttoolbatch-bash", "stop"] {
        let mut command = bare(&desk, &["--permissions"]);
        command.env("CHIPS_URL", "http://127.0.0.1:1");
        assert_eq!(printed_nothing(hook_by(&desk, command, &real(after))), "", "{after}");
    }
}

#[test]
fn a_question_asked_again_is_withdrawn_by_whoever_asked_it_last() {
    let desk = Desk::new();
    let asked = real(ONE);
    let left_over = hook_of(&desk, true, &[], &asked);
    let ask = desk.open_ask();
    let again = hook_of(&desk, true, &[], &asked);
    let place = format!("asks/{}", ask["ask_id"].as_str().unwrap());
    again.err.wait_for("the same ask", |said| said.contains(&place).then_some(()));
    again.signal(Signal::TERM);
    assert_eq!(end(again).0, Some(130));
    printed_nothing(left_over);
    assert_eq!(state(&desk, &ask)["state"], "withdrawn");
}

#[test]
fn one_hook_asks_the_one_beside_the_dialog_where_one_opens() {
    let desk = Desk::new();
    for mode in ["default", "acceptEdits", "plan", "auto", "bypassPermissions"] {
        let of = |event: &str| real(&format!("{event}-askuserquestion-1-{}", mode.to_lowercase()));
        assert_eq!(printed_nothing(hook_of(&desk, true, &[], &of("pretooluse"))), "", "{mode}");
        let asking = hook_of(&desk, true, &[], &of("permissionrequest"));
        desk.answer(json!({ "question_id": "q0", "values": ["MySQL"] }));
        let decision = printed(asking)["hookSpecificOutput"].clone();
        assert_eq!(decision["decision"]["behavior"], "allow", "{mode}");

        let exclusive = hook_of(&desk, true, &["--exclusive"], &of("pretooluse"));
        desk.answer(json!({ "question_id": "q0", "values": ["MySQL"] }));
        assert_eq!(printed(exclusive)["hookSpecificOutput"]["permissionDecision"], "allow", "{mode}");
        assert_eq!(printed_nothing(hook_of(&desk, true, &["--exclusive"], &of("permissionrequest"))), "", "{mode}");
    }
    let only = hook_of(&desk, true, &[], &real("pretooluse-askuserquestion-1-dontask"));
    desk.answer(json!({ "question_id": "q0", "values": ["MySQL"] }));
    assert_eq!(printed(only)["hookSpecificOutput"]["permissionDecision"], "allow");
    assert_eq!(desk.events("question.ask").len(), 11);
}

#[test]
fn where_nobody_sits_the_question_is_answered_before_the_tool_is_called() {
    let desk = Desk::new();
    let asking = hook_of(&desk, false, &[], &real("pretooluse-askuserquestion-1-default"));
    desk.answer(json!({ "question_id": "q0", "values": ["SQLite"] }));
    assert_eq!(printed(asking)["hookSpecificOutput"]["permissionDecision"], "allow");
    assert_eq!(printed_nothing(hook_of(&desk, false, &[], &real(ONE))), "");
}

#[test]
fn a_question_that_nobody_answered_is_not_asked_again_by_the_next_hook() {
    let desk = Desk::new();
    let (before, beside) =
        (real("pretooluse-askuserquestion-1-auto"), real("permissionrequest-askuserquestion-1-auto"));
    // This session doesn't say what it is, so both hooks go by its mode.
    let arguments = ["--timeout", "1s", "--on-no-answer", "continue"];
    printed_nothing(hook(&desk, &arguments, &before));
    assert_eq!(printed_nothing(hook(&desk, &arguments, &same_session(beside, &before))), "");
    assert_eq!(desk.events("question.ask").len(), 1);
}

#[test]
fn a_plan_is_shown_as_it_is_and_allowed_with_its_input() {
    let desk = Desk::new();
    let asked = real("permissionrequest-exitplanmode-plan-with-plan");
    let asking = hook_of(&desk, true, &["--permissions"], &asked);
    let ask = desk.open_ask();
    let prompt = ask["ask"]["questions"][0]["prompt"].as_str().unwrap();
    assert!(prompt.ends_with("# Orders service\n\n1. Add the schema to Postgres\n2. Write the API"), "{prompt}");
    desk.answer(json!({ "question_id": "permission", "values": ["allow"] }));
    let decision = printed(asking)["hookSpecificOutput"]["decision"].clone();
    assert_eq!(decision, json!({ "behavior": "allow", "updatedInput": asked["tool_input"] }));

    let empty = real("permissionrequest-exitplanmode-plan-empty");
    assert!(printed_nothing(hook_of(&desk, true, &["--permissions"], &empty)).contains("left to the dialog"));
    let mut long = asked;
    long["tool_input"]["plan"] = json!("Dig. ".repeat(1_000));
    assert!(printed_nothing(hook_of(&desk, true, &["--permissions"], &long)).contains("longer than 4000"));
    assert_eq!(desk.events("question.ask").len(), 1);
}

#[test]
fn what_is_allowed_goes_back_unchanged_and_what_is_denied_says_by_whom() {
    let desk = Desk::new();
    let asked = real("permissionrequest-write-default");
    for (value, expected) in [
        ("allow", json!({ "behavior": "allow", "updatedInput": asked["tool_input"] })),
        ("deny", json!({ "behavior": "deny", "message": "Owner denied this in Chips." })),
    ] {
        let asking = hook_of(&desk, true, &["--permissions"], &asked);
        desk.answer(json!({ "question_id": "permission", "values": [value] }));
        assert_eq!(printed(asking)["hookSpecificOutput"]["decision"], expected);
    }
}
