//! At 320 px nothing is wider than the screen, and what is tapped is large enough: WCAG 2.2, 1.4.10 (Reflow) and 2.5.8 (Target
//! Size).

use chips_protocol::api::NewRun;
use serde_json::{Value, json};

use crate::axe::furnish;
use crate::screen::{Screen, Special};
use crate::support::{App, question};

/// Whatever can be followed, pressed or filled in and is smaller than 24 by 24 px. A link in the text of somebody is as high too;
/// only as wide as its words, which is the exception for what stands in a line.
const TOO_SMALL: &str =
    "return [...document.querySelectorAll('a, button, select, textarea, summary, input:not([type=hidden])')]
    .filter((it) => it.checkVisibility() && !it.matches('.skip'))
    .flatMap((it) => [...it.getClientRects()].map((box) => [it, box]))
    .filter(([it, box]) => box.height < 24 || (box.width < 24 && !it.closest('.prompt')))
    .map(([it, { width, height }]) => [it.outerHTML.slice(0, 200), width, height])";

/// What is wrong with the page at 320 px: it scrolls sideways, or something on it is too small.
async fn misfits(screen: &Screen, what: &str) -> Vec<String> {
    screen.width(320).await;
    let wider = screen.run("return document.documentElement.scrollWidth - innerWidth").await.as_i64().unwrap();
    let small = screen.run(TOO_SMALL).await;
    let wide = (wider > 0).then(|| format!("{what} scrolls sideways by {wider} px"));
    wide.into_iter().chain(small.as_array().unwrap().iter().map(|it| format!("{what}: {it}"))).collect()
}

/// Holds that the page fits and everything on it can be tapped.
async fn measure(screen: &Screen, what: &str) {
    assert_eq!(misfits(screen, what).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_page_fits_a_narrow_phone_and_everything_on_it_can_be_tapped() {
    let app = App::start().await;
    let mut found = Vec::new();
    let outside = Screen::start(&app, Special::default()).await;
    for path in
        ["/sign-in", &format!("/sign-in/{}", app.way_in(app.kim).secret), "/sign-in/nothing", "/nothing", "/offline"]
    {
        outside.open(path).await;
        outside.see("main h1").await;
        found.extend(misfits(&outside, path).await);
    }
    drop(outside);
    let screen = Screen::with_undo(&app, 20).await;
    found.extend(misfits(&screen, "the empty inbox").await);
    let shown = furnish(&app).await;
    let asks = shown.closed.iter().chain([&shown.several]).map(|ask_id| format!("/asks/{ask_id}"));
    let pages = ["/", "/?state=going", "/?state=x", "/history", "/history?state=withdrawn&q=x", "/settings"];
    for path in pages.map(str::to_owned).into_iter().chain(asks).chain([format!("/runs/{}", shown.run)]) {
        screen.open(&path).await;
        screen.see("main h1, main .card").await;
        screen.run("document.querySelectorAll('details').forEach((more) => { more.open = true; })").await;
        found.extend(misfits(&screen, &path).await);
    }
    screen.open(&format!("/asks/{}", shown.tap)).await;
    screen.click(".chip[value='0']").await;
    screen.read("Undo").await;
    found.extend(misfits(&screen, "a tap that can be undone").await);
    assert_eq!(found, Vec::<String>::new());
}

#[tokio::test]
async fn links_break_where_they_can_be_read() {
    let app = App::start().await;
    let strange = "https://xn--80ak6aa92e.xn--e1afmkfd.xn--80akhbyknj4f/";
    let long = format!("https://docs.example/{}?tab=readings&from=2026-11-30#results", "a-long-way/".repeat(12));
    let prompt = format!("Is this where it should go: {strange} or rather {long} instead?");
    let ask_id = app.ask(json!({ "questions": [question("a", &prompt, json!({}))] })).await;
    let screen = Screen::kim(&app).await;
    screen.open(&format!("/asks/{ask_id}")).await;
    screen.see(".prompt a").await;
    measure(&screen, "links in a question").await;
    // No label of a host is broken, and copied it is what it was.
    let labels =
        "return [...document.querySelectorAll('.prompt a bdi span')].map((it) => [it.textContent, it.offsetHeight])";
    let labels = screen.run(labels).await;
    let rows: Vec<(&str, i64)> =
        labels.as_array().unwrap().iter().map(|it| (it[0].as_str().unwrap(), it[1].as_i64().unwrap())).collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["xn--80ak6aa92e.", "xn--e1afmkfd.", "xn--80akhbyknj4f", "docs.", "example"]);
    assert!(rows.iter().all(|(_, height)| *height == rows[3].1), "each in one line: {rows:?}");
    let texts = "return [...document.querySelectorAll('.prompt a')].map((it) => it.textContent)";
    assert_eq!(screen.run(texts).await, json!([strange, long]));
    // A long address goes on in the next line behind its slashes and the like, not within a word.
    let starts = "const link = document.querySelectorAll('.prompt a')[1], range = document.createRange(), found = [];
        let last;
        for (const node of [...link.childNodes].filter((node) => node.nodeType === 3)) for (let at = 0; at < node.length; at += 1) {
            range.setStart(node, at); range.setEnd(node, at + 1);
            const { bottom } = range.getBoundingClientRect();
            if (last && bottom - last > 5) found.push(at);
            last = bottom;
        }
        return found";
    let starts = screen.run(starts).await;
    let starts = starts.as_array().unwrap();
    assert!(starts.len() > 2 && starts.iter().all(|at| at == &json!(0)), "{starts:?}");
}

#[tokio::test]
async fn the_longest_title_of_a_run_neither_widens_the_page_nor_hides_who_asks() {
    let app = App::start().await;
    let run = app.open_run(NewRun { title: Some("x".repeat(300)), ..NewRun::default() }).await;
    let ask_id = app.ask_in(run.run_id, json!({ "questions": [question("a", "Which?", json!({}))] })).await;
    let screen = Screen::kim(&app).await;
    for path in ["/".to_owned(), format!("/asks/{ask_id}"), format!("/runs/{}", run.run_id), "/history".to_owned()] {
        screen.open(&path).await;
        screen.see("main h1, main .card").await;
        measure(&screen, &path).await;
        let who = "const name = document.querySelector('.who .name'), title = document.querySelector('.run bdi');
            if (!name) return null;
            const a = name.getBoundingClientRect(), b = title.getBoundingClientRect(), line = parseFloat(getComputedStyle(title).lineHeight);
            return [a.width > 40 && a.right <= innerWidth, a.right <= b.left || a.bottom <= b.top + 1, b.height < line * 1.6]";
        let found = screen.run(who).await;
        assert!(found == Value::Null || found == json!([true, true, true]), "{path}: {found}");
        assert_eq!(found == Value::Null, path.starts_with("/runs") || path == "/history");
    }
}
