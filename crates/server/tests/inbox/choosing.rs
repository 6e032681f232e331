//! What a person chooses to see: a language, what holds on a device, and which questions.

use chips_protocol::api::{AskState, NewRun};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{App, Browser, Page, question, until};

#[tokio::test]
async fn the_browsers_language_is_spoken_until_another_is_set() {
    let app = App::start().await;
    let kim = app.kim().await;
    let page = kim.request(Method::GET, "/", &[("accept-language", "de-AT, en;q=0.5")], None).await;
    assert!(page.body.contains("<html lang=\"de\">"), "{}", page.body);
    page.says("Nichts wartet auf dich");
    kim.get("/").await.says("Nothing waits for you");
    app.browser().request(Method::GET, "/sign-in", &[("accept-language", "de")], None).await.says("Anmelden");

    let form = kim.get("/settings").await.form("/settings/device");
    let done = kim.submit(&form, &[("language", "de"), ("undo", "0"), ("keys", "off")]).await;
    assert_eq!((done.status, done.location()), (StatusCode::SEE_OTHER, "/settings".into()));
    assert!(done.header("set-cookie").ends_with("; HttpOnly; SameSite=Lax"), "{}", done.header("set-cookie"));
    let page = kim.request(Method::GET, "/settings", &[("accept-language", "en")], None).await;
    page.says("Einstellungen");
    page.says("Firefox auf Linux");
    assert!(page.body.contains("data-undo=\"0\"") && !page.body.contains("data-keys"), "{}", page.body);
    for chosen in [
        "<option value=\"de\" lang=\"de\" selected>",
        "<option value=\"0\" selected>",
        "<option value=\"off\" selected>",
    ] {
        assert!(page.body.contains(chosen), "{chosen}");
    }
}

#[tokio::test]
async fn what_cannot_be_set_is_refused() {
    let app = App::start().await;
    let kim = app.kim().await;
    let form = kim.get("/settings").await.form("/settings/device");
    for bad in [
        &[("language", "fr"), ("undo", "4"), ("keys", "on")][..],
        &[("language", "de"), ("undo", "5"), ("keys", "on")],
        &[("language", "de"), ("undo", "4"), ("keys", "maybe")],
        &[("language", "de"), ("undo", "4")],
        &[("language", "de"), ("undo", "4"), ("keys", "on"), ("zone", "UTC")],
    ] {
        let page = kim.submit(&form, bad).await;
        assert_eq!((page.status, page.header("set-cookie")), (StatusCode::UNPROCESSABLE_ENTITY, ""), "{bad:?}");
    }
    let foreign = form.with("token", "x");
    let page = kim.submit(&foreign, &[("language", "de"), ("undo", "4"), ("keys", "on")]).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_open_questions_are_sifted_by_space_harness_and_state() {
    let app = App::start().await;
    let kim = app.kim().await;
    let named = |name: &str| json!({ "questions": [question("when", name, json!({}))] });
    app.ask(named("Crates?")).await;
    assert!(!kim.get("/").await.body.contains("class=\"sift"), "there is nothing to tell apart");
    let backups = app.admin().add_harness(app.workspace_id, "Backups & more").unwrap().id;
    let cellar = app.admin().add_space(app.workspace_id, "Cellar", &[app.kim]).unwrap();
    let with_default = json!({ "default_value": "19" });
    let timed = json!({ "questions": [question("when", "Tapes?", with_default)], "timeout_seconds": 900 });
    app.ask_as(backups, timed).await;
    let below = NewRun { space_id: Some(cellar), ..NewRun::default() };
    let bottles = app.ask_of(app.harness, below, named("Bottles?")).await;

    let shown = async |query: &str| {
        let page = kim.get(&format!("/?{query}")).await;
        // Sifted or not, the title and the badge count all.
        assert!(page.body.contains("<title>(3) Open · Chips</title>"), "{query}");
        assert!(page.body.contains("data-count>3</b>"), "{query}");
        let text = page.text();
        ["Crates?", "Tapes?", "Bottles?"].into_iter().filter(|name| text.contains(name)).collect::<Vec<_>>()
    };
    assert_eq!(shown("").await, ["Crates?", "Tapes?", "Bottles?"]);
    assert_eq!(shown(&format!("harness={backups}")).await, ["Tapes?"]);
    assert_eq!(shown(&format!("space={cellar}")).await, ["Bottles?"]);
    assert_eq!(shown(&format!("space={cellar}&harness={backups}")).await, Vec::<&str>::new());
    assert_eq!(shown("state=going").await, ["Tapes?"]);
    assert_eq!(shown(&format!("state=waiting&harness={}&space=", app.harness)).await, ["Crates?", "Bottles?"]);
    assert_eq!(shown("state=closed&harness=x&space=%00").await, Vec::<&str>::new(), "nonsense fits nothing");

    let sifted = kim.get(&format!("/?harness={backups}")).await;
    let chosen = format!("<option value=\"{backups}\" selected>Backups &#38; more</option>");
    assert!(sifted.body.contains(&chosen), "{}", sifted.body);
    // The script gets the same, and no card that is not among them.
    let list = kim.get(&format!("/fragments/list?head=&harness={backups}")).await;
    assert!(list.text().contains("Tapes?") && !list.text().contains("Crates?"));
    let piece = |query: String| format!("/fragments/asks/{bottles}?view=list&{query}");
    assert_eq!(kim.get(&piece(format!("harness={backups}"))).await.status, StatusCode::NOT_FOUND);
    assert_eq!(kim.get(&piece(format!("space={cellar}"))).await.status, StatusCode::OK);
    // A closed space is nobody else's business.
    let robin = app.signed_in(app.robin).await;
    assert!(!robin.get(&format!("/?space={cellar}")).await.text().contains("Bottles?"));
    assert!(!robin.get("/").await.body.contains("Cellar"));
}

/// The questions of a page of history, in their order.
async fn history(kim: &Browser, query: &str) -> Vec<&'static str> {
    let text = kim.get(&format!("/history?{query}")).await.text();
    ["Bottles?", "Tapes?", "Crates?"].into_iter().filter(|name| text.contains(name)).collect()
}

#[tokio::test]
async fn history_is_sifted_by_space_harness_and_state_beside_the_search() {
    let (app, time) = App::by_hand().await;
    let kim = app.kim().await;
    let named = |name: &str| json!({ "questions": [question("when", name, json!({}))] });
    let backups = app.admin().add_harness(app.workspace_id, "Backups & more").unwrap().id;
    let cellar = app.admin().add_space(app.workspace_id, "Cellar", &[app.kim]).unwrap();
    let crates = app.ask(named("Crates?")).await;
    app.settle(crates, json!([{ "question_id": "when", "values": ["19"] }])).await;
    let with_default = json!({ "default_value": "19" });
    let timed = json!({ "questions": [question("when", "Tapes?", with_default)], "timeout_seconds": 60 });
    let tapes = app.ask_as(backups, timed).await;
    let below = NewRun { space_id: Some(cellar), ..NewRun::default() };
    let bottles = app.ask_of(app.harness, below, named("Bottles?")).await;
    let path = format!("/asks/{bottles}");
    kim.submit(&kim.get(&path).await.form(&path), &[("q0", "1")]).await;
    time.pass_ms(60_000);
    let viewer = app.identity(app.kim);
    until("the time runs out", async || {
        let ask = app.store.ask(&viewer, tapes).await.unwrap().unwrap();
        (ask.state == AskState::TimedOut).then_some(())
    })
    .await;

    let (shop, none) = (app.harness, Vec::<&str>::new());
    assert_eq!(history(&kim, "").await, ["Bottles?", "Tapes?", "Crates?"]);
    assert_eq!(history(&kim, &format!("harness={backups}")).await, ["Tapes?"]);
    assert_eq!(history(&kim, &format!("space={cellar}")).await, ["Bottles?"]);
    assert_eq!(history(&kim, &format!("space={cellar}&harness={backups}")).await, none);
    assert_eq!(history(&kim, &format!("harness={shop}&state=answered&space=")).await, ["Bottles?"]);
    assert_eq!(history(&kim, &format!("harness={shop}&state=settled&q=cRATE")).await, ["Crates?"]);
    assert_eq!(history(&kim, &format!("harness={shop}&q=tapes")).await, none);

    // A form that needs no script, with what is chosen in it and a way back.
    let page = kim.get(&format!("/history?harness={backups}&state=timed_out&q=tape")).await;
    for part in [
        format!("<option value=\"{backups}\" selected>Backups &#38; more</option>"),
        format!("<option value=\"{cellar}\">Cellar</option>"),
        "<option value=\"timed_out\" selected>".to_owned(),
        "name=\"q\" value=\"tape\"".to_owned(),
        "<a class=\"plain\" href=\"/history\">Show all</a>".to_owned(),
    ] {
        assert!(page.body.contains(&part), "{part}: {}", page.body);
    }
    page.says("Filter: Backups & more · Timed out");
    assert!(!kim.get("/history").await.body.contains("Show all"));
    // Of a closed space nobody else learns anything.
    let robin = app.signed_in(app.robin).await;
    assert_eq!(history(&robin, &format!("space={cellar}")).await, none);
    assert!(!robin.get("/history").await.body.contains("Cellar"));
}

#[tokio::test]
async fn the_pages_of_a_sifted_history_stay_sifted() {
    let app = App::start().await;
    let kim = app.kim().await;
    let other = app.admin().add_harness(app.workspace_id, "Backups").unwrap().id;
    let strange = app.ask_as(other, json!({ "questions": [question("when", "Crate of tapes?", json!({}))] })).await;
    let run = app.store.ask(&app.identity(app.kim), strange).await.unwrap().unwrap().ask.envelope.run_id;
    app.store.end_run(app.sender_of(other), run).await.unwrap();
    for n in 0..40 {
        let ask_id = app.ask(json!({ "questions": [question("when", &format!("Crate {n}?"), json!({}))] })).await;
        app.settle(ask_id, json!([])).await;
    }
    let first = kim.get(&format!("/history?state=withdrawn&harness={}&q=crate", app.harness)).await;
    let link = |page: &Page, words: &str| {
        let (before, _) = page.body.split_once(words).expect(words);
        before.rsplit("href=\"").next().unwrap().split('"').next().unwrap().replace("&#38;", "&")
    };
    let second = kim.get(&link(&first, "Older</a>")).await;
    assert_eq!(second.text().matches("Crate ").count(), 10, "{}", second.body);
    second.says("Filter: Purchasing · Withdrawn");
    assert!(second.body.contains("name=\"q\" value=\"crate\"") && !second.text().contains("Crate of tapes?"));
    let newest = link(&second, "Back to the newest");
    assert_eq!(newest, format!("/history?q=crate&harness={}&state=withdrawn", app.harness));
    assert_eq!(kim.get(&newest).await.text().matches("Crate ").count(), 30);
}

#[tokio::test]
async fn history_says_what_was_answered_to_each_of_several_questions() {
    let app = App::start().await;
    let kim = app.kim().await;
    let ask_id = app
        .ask(json!({ "questions": [
            question("a", "Which day?", json!({})),
            question("b", "Which way?", json!({ "allow_free_text": true })),
        ] }))
        .await;
    let path = format!("/asks/{ask_id}");
    kim.submit(&kim.get(&path).await.form(&path), &[("q0", "1"), ("q1", "text"), ("t1", "by rail")]).await;
    kim.get("/history").await.says("You answered “26 September”, “by rail”");
}

#[tokio::test]
async fn a_filter_that_cannot_be_read_shows_nothing_says_so_and_leads_back() {
    let app = App::start().await;
    let kim = app.kim().await;
    app.ask(json!({ "questions": [question("when", "Still here?", json!({}))] })).await;
    for odd in ["/?harness=hrn_BAD", "/?space=x", "/?state=nonsense", "/?state=waiting&state=going"] {
        let page = kim.get(odd).await;
        assert_eq!(page.status, StatusCode::OK, "{odd}");
        page.says("The address names a filter that can’t be read, so nothing is shown.");
        assert!(!page.text().contains("Still here?"), "{odd}");
        assert!(page.body.contains("<a class=\"plain\" href=\"/\">Show all</a>"), "{odd}");
        let fragment = kim.get(&odd.replace('?', "fragments/list?")).await;
        assert!(!fragment.body.contains("Still here?"), "what the script fetches is the same: {odd}");
    }
    kim.get("/?utm_source=mail").await.says("Still here?");

    let closed = app.ask(json!({ "questions": [question("when", "Over by now?", json!({}))] })).await;
    app.settle(closed, json!([])).await;
    for odd in ["state=nonsense", "state=open", "harness=hrn_BAD", "space=%00", "harness=x&q=Over", "q=a&q=b"] {
        let page = kim.get(&format!("/history?{odd}")).await;
        assert_eq!(page.status, StatusCode::OK, "{odd}");
        page.says("The address names a filter that can’t be read, so nothing is shown.");
        assert!(!page.text().contains("Over by now?"), "{odd}");
        assert!(page.body.contains("<a class=\"plain\" href=\"/history\">Show all</a>"), "{odd}");
    }
    kim.get("/history?utm_source=mail").await.says("Over by now?");
}

#[tokio::test]
async fn past_a_page_the_head_still_says_how_many_and_what_shows_it_ends_the_open_shelf() {
    let app = App::start().await;
    let kim = app.kim().await;
    let run = app.run("Stocktaking").await;
    for n in 0..201 {
        app.ask_in(run.run_id, json!({ "questions": [question("when", &format!("Shelf {n}?"), json!({}))] })).await;
    }
    let closed = app.ask(json!({ "questions": [question("when", "Closed?", json!({}))] })).await;
    app.settle(closed, json!([])).await;
    let page = kim.get("/").await;
    page.says("201 questions wait for you");
    assert!(page.body.contains("data-count>201</b>") && page.body.contains("<title>(201) Open"));
    let more = page.body.find("Show more").expect("there is more");
    let (main, closed) = (page.body.find("data-shelf=\"waiting\""), page.body.find("data-shelf=\"closed\""));
    assert!(main < Some(more) && Some(more) < closed);
    let href = page.body[..more].rsplit("href=\"").next().unwrap().split('"').next().unwrap().replace("&#38;", "&");
    let second = kim.get(&href).await;
    second.says("201 questions wait for you");
    second.says("Shelf 200?");
}
