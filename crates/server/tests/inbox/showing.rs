//! What pages show: texts as they are, how each question ended, order, search.

use chips_protocol::api::NewRun;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::support::{App, plain, question};

#[tokio::test]
async fn hostile_texts_are_shown_as_what_they_are() {
    let app = App::start().await;
    let prompt = "<script>alert(1)</script> <img src=x onerror=alert(2)>\njavascript:alert(3) [x](https://evil.example) \
                  {{7*7}} &amp; \u{202e}desrever\u{202c}";
    let ask = json!({ "questions": [{
        "question_id": "__proto__",
        "prompt": prompt,
        "options": [
            { "value": "<script>", "label": "</button><b>{{7*7}}", "description": "\" onmouseover=\"alert(4) \u{2066}" },
            { "value": "'; DROP TABLE--", "label": "‎مرحبا Hello" },
        ],
        "allow_free_text": true,
        "default_value": "</textarea><script>alert(5)</script>",
    }], "timeout_seconds": 600 });
    let run = app.open_run(NewRun {
        title: Some("<u>title</u> \u{202e}x".into()),
        url: Some("https://evil.example/<>".into()),
        labels: Some([("<k>".to_owned(), "<v>".to_owned())].into()),
        ..NewRun::default()
    });
    let run_id = run.await.run_id;
    let ask_id = app.ask_in(run_id, ask).await;
    let kim = app.kim().await;
    let path = format!("/asks/{ask_id}");
    for page in [
        kim.get("/").await,
        kim.get(&path).await,
        kim.get(&format!("/runs/{run_id}")).await,
        kim.submit(
            &kim.get(&path).await.form(&path),
            &[("q0", "text"), ("t0", "</textarea><script>alert(6)</script>\u{1}")],
        )
        .await,
    ] {
        for raw in [
            "<script>alert",
            "<img",
            "<b>{{",
            "<u>",
            "<k>",
            " onmouseover=\"alert",
            "\u{202e}",
            "\u{2066}",
            "href=\"javascript",
        ] {
            assert!(!page.body.contains(raw), "{raw:?} on {}: {}", page.path, page.body);
        }
    }
    let page = kim.get(&path).await;
    page.says("<script>alert(1)</script> <img src=x onerror=alert(2)>");
    page.says("javascript:alert(3) [x](https://evil.example) {{7*7}} &amp; \\u{202e}desrever\\u{202c}");
    assert!(page.body.contains("onerror=alert(2)&gt;\njavascript"), "line breaks are kept");
    assert!(page.body.contains("class=\"prompt\" dir=\"auto\""));
    let link = "<a dir=\"ltr\" rel=\"noopener noreferrer nofollow\" target=\"_blank\" href=\"https://evil.example/\">\
                <span>https://<bdi><span>evil.</span><span>example</span></bdi></span></a>)";
    assert!(page.body.contains(link), "an address is a link that shows where it leads: {}", page.body);

    let done = kim.submit(&page.form(&path), &[("q0", "0"), ("t0", "")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER);
    assert_eq!(app.answers(ask_id).await[0]["values"], json!(["<script>"]), "it comes back byte for byte");
    for path in [path.as_str(), "/", "/history", "/history?q=%3Cscript%3E"] {
        let page = kim.get(path).await;
        assert!(!page.body.contains("<script>alert") && !page.body.contains("<b>{{"), "{path}");
    }
}

#[tokio::test]
async fn how_a_question_ended_is_told_as_what_it_was() {
    let app = App::start().await;
    let kim = app.kim().await;
    let chosen = json!([{ "question_id": "when", "values": ["26"] }]);
    let timed = |more: Value| {
        let mut ask = json!({ "questions": [question("when", "Which day?", json!({}))], "timeout_seconds": 0.02 });
        for (name, value) in more.as_object().unwrap() {
            ask[name] = value.clone();
        }
        ask
    };
    let default = json!([question("when", "Which day?", json!({ "default_value": "19" }))]);
    let own_words =
        json!([question("when", "Which day?", json!({ "default_value": "the 20th", "allow_free_text": true }))]);

    let settled = app.ask(plain()).await;
    app.settle(settled, chosen).await;
    let withdrawn = app.ask(plain()).await;
    app.settle(withdrawn, json!([])).await;
    let run = app.run("Short").await;
    let ended = app.ask_in(run.run_id, plain()).await;
    app.end_run(run.run_id).await;
    for (ask_id, says) in [
        (settled, "Purchasing settled it without you: “26 September”"),
        (withdrawn, "Withdrawn by Purchasing"),
        (ended, "Withdrawn: the run of Purchasing ended"),
        (
            app.ask(timed(json!({ "questions": default }))).await,
            "Not answered in time. The default, “19 September”, was taken.",
        ),
        (
            app.ask(timed(json!({ "questions": own_words }))).await,
            "Not answered in time. The default, “the 20th”, was taken.",
        ),
        (app.ask(timed(json!({ "on_no_answer": "cancel" }))).await, "Not answered in time. Purchasing gives up."),
        (
            app.ask(timed(json!({ "on_no_answer": "continue" }))).await,
            "Not answered in time. Purchasing goes on without an answer.",
        ),
    ] {
        app.closed(ask_id).await;
        let page = kim.get(&format!("/asks/{ask_id}")).await;
        page.says(says);
        assert!(!page.text().contains("answered “") && !page.text().contains("You answered"), "{}", page.text());
        assert!(page.forms().is_empty());
        let card = kim.get(&format!("/fragments/asks/{ask_id}")).await;
        card.says(says);
        kim.get("/history").await.says(says);
    }
    let list = kim.get("/").await;
    list.says("Nothing waits for you");
    list.says("Closed just now");
}

#[tokio::test]
async fn what_silence_does_is_said_in_plain_words() {
    let app = App::start().await;
    let kim = app.kim().await;
    let default = || json!([question("when", "Which day?", json!({ "default_value": "19" }))]);
    let both = json!([
        question("a", "?", json!({ "default_value": "19" })),
        question("b", "?", json!({ "default_value": "26" }))
    ]);
    for (ask, shelf, says) in [
        (plain(), "waiting", "Purchasing waits for you"),
        (json!({ "questions": default() }), "waiting", "Purchasing waits for you"),
        (json!({ "questions": default(), "timeout_seconds": 600 }), "going", "Purchasing takes “19 September” at"),
        (json!({ "questions": both, "timeout_seconds": 600 }), "going", "Purchasing takes the defaults at"),
        (
            json!({ "questions": default(), "timeout_seconds": 600, "on_no_answer": "continue" }),
            "going",
            "goes on without an answer at",
        ),
        (
            json!({ "questions": default(), "timeout_seconds": 600, "on_no_answer": "cancel" }),
            "waiting",
            "Purchasing gives up at",
        ),
        (
            json!({ "questions": plain()["questions"], "timeout_seconds": 600 }),
            "waiting",
            "goes on without an answer at",
        ),
    ] {
        let ask_id = app.ask(ask.clone()).await;
        let card = kim.get(&format!("/fragments/asks/{ask_id}")).await;
        card.says(says);
        assert!(card.body.contains(&format!("data-shelf=\"{shelf}\"")), "{ask}");
    }
}

#[tokio::test]
async fn two_hundred_open_questions_stay_light_and_in_order() {
    let app = App::start().await;
    let kim = app.kim().await;
    let prompt = |n: usize| format!("Number {n}: {}", "what should happen with this one? ".repeat(6));
    let busy = app.run("Busy").await;
    for n in 0..200 {
        let timed = json!({ "questions": [question("q", &prompt(n), json!({ "default_value": "19" }))], "timeout_seconds": 10_000 - n });
        let ask = if n % 4 == 0 { timed } else { json!({ "questions": [question("q", &prompt(n), json!({}))] }) };
        if n % 50 == 1 {
            app.ask_in(busy.run_id, ask).await;
        } else {
            app.ask(ask).await;
        }
    }
    let page = kim.get("/").await;
    page.says("150 questions wait for you");
    assert!(page.body.contains("<title>(200) Open · Chips</title>"));
    assert!(page.body.len() < 300_000, "{} bytes", page.body.len());
    let shown: Vec<usize> =
        page.text().split("Number ").skip(1).map(|rest| rest.split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(shown.len(), 200, "each is there, whole or folded");
    assert_eq!(shown[..5], [1, 51, 101, 151, 2], "what blocks comes first, and the questions of one run together");
    assert_eq!(shown[150..152], [196, 192], "then what goes on by itself, the nearest deadline first");
    let list = kim.get("/fragments/list").await;
    let head = app.head();
    assert!(list.body.contains(&format!("data-head=\"{head}\"")));
    let nothing_new = kim.get(&format!("/fragments/list?head={head}")).await;
    assert_eq!(nothing_new.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn two_hundred_of_the_longest_questions_make_no_longer_page_and_each_can_be_read_whole() {
    let app = App::start().await;
    let kim = app.kim().await;
    let long = |letter: &str, length: usize| letter.repeat(length);
    let options: Vec<Value> = (0..4)
        .map(|n| json!({ "value": n.to_string(), "label": format!("{}{n}", long("ش", 299)), "description": long("ب", 700) }))
        .collect();
    let of = |n: usize| json!({ "question_id": n.to_string(), "prompt": format!("{n}{}", long("ك", 3999)), "options": options });
    let ask = json!({ "questions": [of(0), of(1)] });
    let run = app.open_run(NewRun { title: Some(long("ن", 300)), ..NewRun::default() }).await;
    let mut last = None;
    for n in 0..200 {
        last = Some(if n % 2 == 0 { app.ask(ask.clone()).await } else { app.ask_in(run.run_id, ask.clone()).await });
    }
    let page = kim.get("/").await;
    assert_eq!(page.body.matches("<article").count(), 200);
    assert!(page.body.len() < 300_000, "{} bytes", page.body.len());
    let whole = kim.get(&format!("/fragments/asks/{}?view=list", last.unwrap())).await;
    assert!(whole.body.contains(&long("ب", 700)) && whole.body.contains(&long("ك", 3999)));
}

#[tokio::test]
async fn history_is_searched_filtered_and_paged() {
    let app = App::start().await;
    let kim = app.kim().await;
    assert!(kim.get("/history").await.text().contains("Nothing is closed yet."));
    for n in 0..40 {
        let ask_id = app.ask(json!({ "questions": [question("when", &format!("Crate {n}?"), json!({}))] })).await;
        let answers = if n % 2 == 0 { json!([{ "question_id": "when", "values": ["19"] }]) } else { json!([]) };
        app.settle(ask_id, answers).await;
    }
    let open = app.ask(json!({ "questions": [question("when", "Crate still open?", json!({}))] })).await;
    let rows = |text: &str| text.matches("Crate ").count();
    let first = kim.get("/history").await;
    assert_eq!(rows(&first.text()), 30);
    assert!(first.text().contains("Crate 39?") && !first.text().contains("Crate 9?"));
    assert!(!first.body.contains(&open.to_string()));
    let older = first.body.split('"').find(|text| text.starts_with("/history?before=")).unwrap();
    let second = kim.get(older).await;
    assert_eq!(rows(&second.text()), 10);
    assert!(second.text().contains("Crate 9?"));
    second.says("Back to the newest");

    let found = kim.get("/history?q=cRATE+7").await;
    assert_eq!(rows(&found.text()), 1);
    assert!(found.body.contains("value=\"cRATE 7\""));
    assert_eq!(rows(&kim.get("/history?state=withdrawn&q=Crate+1").await.text()), 6);
    kim.get("/history?q=nowhere").await.says("Nothing fits.");
    for odd in ["/history?state=open", "/history?state=x&before=%00&q=%00", "/history?q=%25_%27", "/history?q=a&q=b"] {
        assert_eq!(kim.get(odd).await.status, StatusCode::OK, "{odd}");
    }
}

#[tokio::test]
async fn a_run_tells_what_it_asked() {
    let app = App::start().await;
    let kim = app.kim().await;
    let run = app
        .open_run(NewRun {
            title: Some("Weekly restock".into()),
            url: Some("https://shop.example/runs/7".into()),
            labels: Some([("branch".to_owned(), "main".to_owned())].into()),
            ..NewRun::default()
        })
        .await;
    let path = format!("/runs/{}", run.run_id);
    kim.get(&path).await.says("This run has asked nothing yet.");
    app.ask_in(run.run_id, plain()).await;
    let withdrawn = app.ask_in(run.run_id, plain()).await;
    app.settle(withdrawn, json!([])).await;
    let page = kim.get(&path).await;
    for says in [
        "Weekly restock",
        "running",
        "branch main",
        "shop.example",
        "Purchasing waits for you",
        "Withdrawn by Purchasing",
    ] {
        page.says(says);
    }
    assert!(page.body.contains("href=\"https://shop.example/runs/7\" rel=\"noopener noreferrer\""));
    app.end_run(run.run_id).await;
    kim.get(&path).await.says("ended");
}

#[tokio::test]
async fn a_question_tells_its_story() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app.ask(plain()).await;
    let path = format!("/asks/{ask_id}");
    let open = kim.get(&path).await;
    open.says("Purchasing asked");
    kim.submit(&open.form(&path), &[("q0", "0")]).await;
    kim.get(&path).await.says("On its way to Purchasing");
    app.acknowledge(ask_id).await;
    let acted = kim.get(&path).await;
    acted.says("Purchasing acted on it");
    assert!(!acted.text().contains("On its way"));
}

#[tokio::test]
async fn who_has_not_been_heard_of_is_shown_apart() {
    let (app, time) = App::by_hand().await;
    let kim = app.kim().await;
    let run = app.open_run(NewRun { lease_seconds: Some(60.into()), ..NewRun::default() }).await;
    let ask_id = app.ask_in(run.run_id, plain()).await;
    kim.get("/").await.says("1 question waits for you");
    time.pass_ms(61_000);
    let list = kim.get("/").await;
    list.says("Nothing waits for you");
    list.says("Perhaps nobody waits any more");
    list.says("Purchasing has not been heard of for a while");
    let path = format!("/asks/{ask_id}");
    let done = kim.submit(&kim.get(&path).await.form(&path), &[("q0", "0")]).await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "it can still be answered");
}
