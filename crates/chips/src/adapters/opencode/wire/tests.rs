#![allow(clippy::unwrap_used)]

use super::*;

fn asked(questions: Value) -> Pending {
    let said = json!({ "id": "que_1", "sessionID": "ses_1", "questions": questions });
    Pending::read(Dialog::Question, &said, Some("/srv/garden")).unwrap()
}

fn form(fields: Value) -> Pending {
    let said = json!({ "id": "frm_1", "sessionID": "ses_1", "mode": "form", "title": "Questions", "fields": fields });
    Pending::read(Dialog::Form, &said, None).unwrap()
}

fn bed() -> Value {
    json!({ "question": "Which bed?", "header": "Bed", "options": [
        { "label": "Herbs, north ", "description": "Half done." }, { "label": "Beans", "description": "" },
    ] })
}

fn answer(id: &str, values: &[&str], free_text: Option<&str>) -> Answer {
    Answer {
        question_id: id.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        free_text: free_text.map(str::to_owned),
    }
}

#[test]
fn a_label_is_the_value_byte_for_byte_and_no_default_is_invented() {
    let fields = asked(json!([bed()])).fields(false).unwrap();
    let question = &fields[0].question;
    assert_eq!((question.question_id.as_str(), question.prompt.as_str()), ("q0", "Which bed?"));
    assert_eq!(question.options[0].value, "Herbs, north ");
    assert_eq!(question.options[1].description, None);
    assert_eq!((question.multi(), question.free_text(), &question.default_value), (false, true, &None));
    let first = asked(json!([bed()])).fields(true).unwrap();
    assert_eq!(first[0].question.default_value.as_deref(), Some("Herbs, north "));
}

#[test]
fn custom_and_multiple_are_heard() {
    let (mut closed, mut several) = (bed(), bed());
    closed["custom"] = json!(false);
    several["multiple"] = json!(true);
    let fields = asked(json!([closed, several])).fields(false).unwrap();
    assert!(!fields[0].question.free_text() && !fields[0].question.multi());
    assert!(fields[1].question.free_text() && fields[1].question.multi());
}

#[test]
fn what_chips_has_no_room_for_stays_in_opencode() {
    let mut many = bed();
    many["options"] = json!([{ "label": "a" }, { "label": "b" }, { "label": "c" }, { "label": "d" }, { "label": "e" }]);
    assert!(asked(json!([bed(), many])).fields(false).unwrap_err().contains("q1 has 5 options"));
    assert!(
        asked(json!([{ "question": "Why?", "options": [] }])).fields(false).unwrap_err().contains("fewer than two")
    );
    assert!(asked(json!([])).fields(false).is_err());

    let page = json!({ "id": "frm_2", "sessionID": "ses_1", "mode": "url", "url": "https://example.com" });
    assert!(Pending::read(Dialog::Form, &page, None).unwrap().fields(false).unwrap_err().contains("page"));
    for (odd, why) in [
        (json!({ "key": "n", "type": "number" }), "number"),
        (json!({ "key": "n", "type": "integer" }), "integer"),
        (json!({ "key": "s", "type": "string" }), "fewer than two"),
        (json!({ "key": "s", "type": "secret" }), "secret"),
        (json!({ "key": "b", "type": "boolean", "when": [{ "key": "a", "op": "eq", "value": "x" }] }), "when"),
        (json!({ "key": "m", "type": "multiselect", "maxItems": 1, "options": [] }), "maxItems"),
    ] {
        let refused = form(json!([odd])).fields(false).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn answers_go_back_in_the_order_of_the_questions() {
    let mut several = bed();
    several["multiple"] = json!(true);
    let pending = asked(json!([several, bed(), bed(), several]));
    let fields = pending.fields(false).unwrap();
    let answers = [answer("q1", &[], Some("Dig")), answer("q0", &["Beans"], Some("and dill")), answer("q3", &[], None)];
    let body = json!({ "answers": [["Beans", "and dill"], ["Dig"], [], ["None of these"]] });
    assert_eq!(pending.reply(&fields, &answers), body);
    assert_eq!(pending.reply(&fields, &[]), json!({ "answers": [[], [], [], []] }));
}

#[test]
fn a_form_has_values_of_its_own_and_keeps_their_types() {
    let options = json!([{ "value": "pg", "label": "Postgres" }, { "value": "lite", "label": "SQLite" }]);
    let pending = form(json!([
        { "key": "db", "type": "string", "title": "Database", "description": "Which database?", "options": options, "custom": true },
        { "key": "extra", "type": "multiselect", "title": "Extras", "options": options },
        { "key": "go", "type": "boolean", "title": "Go on?", "required": true },
        { "key": "rest", "type": "boolean" },
    ]));
    let fields = pending.fields(false).unwrap();
    let prompts: Vec<_> = fields.iter().map(|field| field.question.prompt.as_str()).collect();
    assert_eq!(prompts, ["Which database?", "Extras", "Go on?", "rest"]);
    assert_eq!((fields[0].question.free_text(), fields[1].question.free_text()), (true, false));
    let answers = [answer("q0", &["pg"], None), answer("q1", &["lite", "pg"], None), answer("q2", &["false"], None)];
    let given = json!({ "db": "pg", "extra": ["lite", "pg"], "go": false });
    assert_eq!(pending.reply(&fields, &answers), json!({ "answer": given }));
    assert_eq!(answered(&fields, &given), answers);
}

#[test]
fn an_answer_in_opencode_is_told_as_it_was_given() {
    let mut closed = bed();
    closed["custom"] = json!(false);
    let mut several = bed();
    several["multiple"] = json!(true);
    let fields = asked(json!([bed(), several, closed, bed(), bed()])).fields(false).unwrap();
    let given = json!([["Beans"], ["Beans", "dill", "Beans", "rye"], ["mine"], ["Beans", "Herbs, north "], []]);
    let expected = [
        answer("q0", &["Beans"], None),
        answer("q1", &["Beans"], Some("dill, rye")),
        answer("q3", &[], Some("Beans, Herbs, north ")),
    ];
    assert_eq!(answered(&fields, &given), expected);
}

#[test]
fn events_of_both_versions_are_read_and_others_passed_over() {
    let said = json!({ "id": "que_1", "sessionID": "ses_1", "questions": [bed()] });
    let event = json!({ "id": "evt_1", "type": "question.asked", "properties": said });
    assert_eq!(Heard::read(&event, Some("/srv/garden")), Some(Heard::Asked(asked(json!([bed()])))));
    let event = json!({ "type": "question.replied", "properties": { "sessionID": "ses_1", "requestID": "que_1", "answers": [["a"]] } });
    assert_eq!(Heard::read(&event, None), Some(Heard::Answered { id: "que_1".to_owned(), given: json!([["a"]]) }));
    let event = json!({ "type": "form.cancelled", "data": { "id": "frm_1", "sessionID": "ses_1" } });
    assert_eq!(Heard::read(&event, None), Some(Heard::Dismissed { id: "frm_1".to_owned() }));
    let event = json!({ "type": "session.deleted", "properties": { "info": { "id": "ses_1" } } });
    assert_eq!(Heard::read(&event, None), Some(Heard::SessionGone { id: "ses_1".to_owned() }));
    assert_eq!(Heard::read(&json!({ "type": "session.idle", "properties": {} }), None), None);
    assert_eq!(Heard::read(&json!({ "type": "question.asked", "properties": {} }), None), None);
}
