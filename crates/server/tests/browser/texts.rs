//! Whatever others write can be read, stays in its place, and does nothing; in every language of the inbox.

use chips_protocol::api::NewRun;
use serde_json::json;

use crate::screen::Screen;
use crate::support::{App, plain, question};

#[tokio::test]
async fn p25_hostile_texts_run_nothing_and_ask_for_nothing() {
    let app = App::start().await;
    let prompt = "<script>window.hit = 1</script><img src=https://evil.example/x onerror='window.hit = 2'> \
                  [x](https://evil.example) javascript:window.hit=3 \u{202e}reverse";
    let ask = json!({ "questions": [question("a", prompt, json!({ "options": [
        { "value": "1", "label": "\"><svg onload=window.hit=4>", "description": "<style>*{display:none}</style>" },
        { "value": "2", "label": "مرحبا (Hello) 19" },
    ] }))] });
    let screen = Screen::kim(&app).await;
    let ask_id = app.ask(ask).await;
    screen.see(&format!("#{ask_id}")).await;
    screen.read("<script>window.hit = 1</script><img src=https://evil.example/x onerror='window.hit = 2'>").await;
    screen.read("\\u{202e}reverse").await;
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.read("\"><svg onload=window.hit=4>").await;
    // The one address in it is a link that hides nothing; nothing else leads anywhere.
    let links =
        "return [...document.querySelectorAll('.prompt a')].map((it) => [it.innerText, it.href, it.target, it.rel])";
    let rel = "noopener noreferrer nofollow";
    assert_eq!(
        screen.run(links).await,
        json!([
            ["https://evil.example/x", "https://evil.example/x", "_blank", rel],
            ["https://evil.example", "https://evil.example/", "_blank", rel],
        ])
    );
    assert_eq!(screen.run("return window.hit ?? null").await, json!(null));
    let outside = "return performance.getEntriesByType('resource').map((entry) => entry.name)
        .filter((name) => new URL(name).origin !== location.origin)";
    assert_eq!(screen.run(outside).await, json!([]));
    assert_eq!(screen.complaints().await, Vec::<String>::new(), "nothing had to be blocked");
}

#[tokio::test]
async fn p18_long_texts_fit_a_narrow_phone() {
    let app = App::start().await;
    let long = |length: usize| "word ".repeat(length / 5);
    let ask = json!({ "questions": [question("a", &long(4000), json!({ "allow_free_text": true, "options": [
        { "value": "1", "label": format!("{}1", "x".repeat(299)), "description": long(2000) },
        { "value": "2", "label": format!("{}2", "x".repeat(299)), "description": "y".repeat(2000) },
    ] }))] });
    let ask_id = app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    screen.width(320).await;
    for path in ["/".to_owned(), format!("/asks/{ask_id}")] {
        screen.open(&path).await;
        screen.see(".card .chip").await;
        screen.fits().await;
    }
    // Folded in the list, whole after a tap.
    screen.open("/").await;
    screen.click(".all").await;
    screen.until("!document.querySelector('.folded')").await;
}

#[tokio::test]
async fn p19_each_text_has_its_own_direction() {
    let app = App::start().await;
    let ask = json!({ "questions": [question("a", "أي يوم أؤكد؟ (PO-1182)", json!({ "options": [
        { "value": "1", "label": "3 October", "description": "التاريخ على الطلب" },
        { "value": "2", "label": "يوم 10 October, 14:00" },
    ] }))] });
    let ask_id = app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    screen.width(320).await;
    screen.see(&format!("#{ask_id} .chip")).await;
    let directions = "return [...document.querySelectorAll('.prompt, .t, .d')].map((it) => {
        const style = getComputedStyle(it);
        return [style.direction, style.unicodeBidi !== 'normal'];
    })";
    assert_eq!(
        screen.run(directions).await,
        json!([["rtl", true], ["ltr", true], ["rtl", true], ["rtl", true]]),
        "the prompt, an option and its description, an option that mixes both"
    );
    screen.fits().await;
    screen.click(".chip[value='1']").await;
    screen.until("document.querySelector('.says bdi')?.textContent === 'يوم 10 October, 14:00'").await;
}

#[tokio::test]
async fn p19_what_is_shown_for_a_control_reads_in_one_piece_whatever_stands_around_it() {
    let app = App::start().await;
    let run = app.open_run(NewRun { title: Some("\u{202e}طلب".into()), ..NewRun::default() }).await;
    let ask = json!({ "questions": [question("a", "أي يوم \u{202e}evil أؤكد؟", json!({ "options": [
        { "value": "1", "label": "3 October", "description": "على \u{2066}الطلب" }, { "value": "2", "label": "10 October" },
    ] }))] });
    let ask_id = app.ask_in(run.run_id, ask).await;
    let screen = Screen::kim(&app).await;
    // Where each character of an escape stands: one behind the other, from the backslash to the closing brace.
    let places = "return [...document.querySelectorAll('main bdi[dir=ltr]')].map((it) => {
        const range = document.createRange(), text = it.firstChild;
        const places = [...text.data].map((_, at) => {
            range.setStart(text, at);
            range.setEnd(text, at + 1);
            return range.getBoundingClientRect().left;
        });
        return [text.data, places.every((left, at) => !at || left > places[at - 1])];
    })";
    for path in ["/".to_owned(), format!("/asks/{ask_id}"), format!("/runs/{}", run.run_id)] {
        screen.open(&path).await;
        screen.see("main bdi[dir=ltr]").await;
        let found = screen.run(places).await;
        let found = found.as_array().unwrap();
        assert!(found.len() >= 2 && found.iter().all(|it| it[1] == json!(true)), "{path}: {found:?}");
        assert!(found.iter().any(|it| it[0] == json!("\\u{202e}")), "{path}: {found:?}");
    }
}

#[tokio::test]
async fn p20_labels_that_begin_alike_are_told_apart() {
    let app = App::start().await;
    let same = "Deploy the release that was built last night to the machines in the first group, ";
    assert!(same.len() >= 80);
    let ask = json!({ "questions": [question("a", "Which?", json!({ "options": [
        { "value": "1", "label": format!("{same}then wait") },
        { "value": "2", "label": format!("{same}then all the others") },
    ] }))] });
    app.ask(ask).await;
    let screen = Screen::kim(&app).await;
    screen.width(320).await;
    screen.see(".chip").await;
    let whole = "return [...document.querySelectorAll('.t')].map((it) =>
        [it.innerText, it.scrollHeight <= it.clientHeight && it.scrollWidth <= it.clientWidth])";
    assert_eq!(
        screen.run(whole).await,
        json!([[format!("{same}then wait"), true], [format!("{same}then all the others"), true]])
    );
}

#[tokio::test]
async fn a_second_language_is_spoken_on_every_page_and_by_the_script() {
    let app = App::start().await;
    app.ask(plain()).await;
    let screen = Screen::kim(&app).await;
    screen.open("/settings").await;
    screen.width(320).await;
    screen.fits().await;
    screen.run("document.querySelector('#language').value = 'de'").await;
    screen.click("form[action='/settings/device'] .send").await;
    screen.read("Einstellungen").await;
    assert_eq!(screen.run("return document.documentElement.lang").await, json!("de"));
    screen.fits().await;
    screen.open("/history").await;
    screen.read("Noch ist nichts abgeschlossen.").await;
    screen.open("/").await;
    screen.read("1 Frage wartet auf dich").await;
    screen.read("gerade eben").await;
    screen.click(".chip[value='1']").await;
    screen.read("Du hast „26 September“ geantwortet").await;
    screen.read("Nichts wartet auf dich").await;
}
