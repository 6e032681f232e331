//! Messages of the browser's own: turned on by a tap, shown by the service worker, and answered there.
//!
//! What comes to the worker is what the server sealed for this browser and sent to its push service. No push service of a real
//! browser is reachable here, so the browser's subscription is one of the tests', and the browser hands the opened message to the
//! worker by its own protocol.

use std::time::Duration;

use chips_core::notify::Preferences;
use chips_protocol::AskId;
use chips_protocol::api::AskState;
use serde_json::{Value, json};

use crate::devtools::DevTools;
use crate::push_service::Subscriber;
use crate::receiver::Receiver;
use crate::screen::{Screen, Special};
use crate::support::{App, plain, until};

/// A push service in place of the browser's, and whether the person was asked for the permission.
const SERVICE: &str = "
    window.asked = 0;
    const request = window.Notification?.requestPermission.bind(Notification);
    if (request) Notification.requestPermission = () => { asked += 1; return request(); };
    const subscription = () => {
        const { endpoint, keys } = JSON.parse(localStorage.push);
        const unsubscribe = async () => delete localStorage.subscribed;
        return { endpoint, unsubscribe, toJSON: () => ({ endpoint, keys }) };
    };
    if (window.PushManager) Object.assign(PushManager.prototype, {
        getSubscription: async () => localStorage.subscribed ? subscription() : null,
        subscribe: async (options) => {
            localStorage.subscribed = JSON.stringify(options);
            return subscription();
        },
    });
";

struct Scene {
    receiver: Receiver,
    app: App,
    screen: Screen,
    tools: DevTools,
    page: String,
    phone: Subscriber,
    pushed: usize,
}

impl Scene {
    /// Kim is signed in, and the browser may show messages.
    async fn new() -> Self {
        let receiver = Receiver::start().await;
        let app = App::configured(|config| config.allow_outbound = vec![receiver.origin()]).await;
        Self::of(app, receiver).await
    }

    async fn of(app: App, receiver: Receiver) -> Self {
        let screen = Screen::special(&app, Special { before: Some(SERVICE), ..Special::default() }).await;
        let mut tools = screen.devtools().await;
        tools
            .call(None, "Browser.grantPermissions", json!({ "origin": app.url(""), "permissions": ["notifications"] }))
            .await;
        let page = tools.attach("page", &app.url("")).await;
        screen.until("navigator.serviceWorker.controller").await;
        // The tests touch the page, and whoever does that is not called at once.
        let at_once = Preferences { grace_seconds: 0, ..Preferences::default() };
        app.store.set_preferences(app.kim, at_once).await.unwrap();
        // A browser that has just started forgets the first notification where it is asked for it at once.
        let first = "return navigator.serviceWorker.ready.then(async (it) => {
            await it.showNotification('first', { tag: 'first' });
            const all = await it.getNotifications();
            all.forEach((one) => one.close());
            return all.length;
        })";
        until("notifications are kept", async || (screen.run(first).await == json!(1)).then_some(())).await;
        let scene = Self { phone: Subscriber::new(), receiver, app, screen, tools, page, pushed: 0 };
        scene.subscription("/push/kim").await;
        scene
    }

    /// What the browser's push service gives to whoever subscribes.
    async fn subscription(&self, path: &str) {
        let [p256dh, auth] = self.phone.keys();
        let keys = json!({ p256dh.0: p256dh.1, auth.0: auth.1 });
        let given = json!({ "endpoint": self.receiver.url(path), "keys": keys }).to_string();
        self.screen.run(&format!("localStorage.push = {}", json!(given))).await;
    }

    /// Turns the messages on in the settings.
    async fn turn_on(&self) {
        self.screen.open("/settings").await;
        self.screen.click("#push [data-when=off]").await;
        self.screen.read("Turned on: it stands in the list above.").await;
    }

    /// Waits until the push service has the next message, and gives what is in it.
    async fn next(&mut self) -> Value {
        self.pushed += 1;
        let received = self.receiver.wait_for(self.pushed).await;
        self.phone.open(&received[self.pushed - 1], &self.receiver.origin()).message
    }

    /// The browser gets a message.
    async fn push(&mut self, message: &Value) {
        let origin = self.app.url("");
        self.tools.push(&self.page, &origin, &message.to_string()).await;
        // A browser forgets a notification that is asked for while it is being shown, and does not say when it is.
        self.screen.settle().await;
    }

    /// Waits until the notifications that are shown are these: tags and texts.
    async fn shows(&self, wanted: &[(AskId, &str)]) {
        let mut wanted: Vec<[String; 2]> =
            wanted.iter().map(|(tag, body)| [tag.to_string(), (*body).to_owned()]).collect();
        wanted.sort();
        let look = "return navigator.serviceWorker.getRegistration().then((it) => it.getNotifications())
            .then((all) => all.map(({ tag, body }) => [tag, body]).sort())";
        let mut shown = Value::Null;
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        for _ in 0..400 {
            ticks.tick().await;
            shown = self.screen.run(look).await;
            if shown == json!(wanted) {
                return;
            }
        }
        panic!("{shown:#} is shown and not {wanted:#?}");
    }

    /// Something of each notification about a question.
    async fn of_shown(&self, ask_id: AskId, what: &str) -> Value {
        let script = format!(
            "return navigator.serviceWorker.getRegistration().then((it) => it.getNotifications({{ tag: '{ask_id}' }}))
                .then((all) => all.map((it) => it.{what}))"
        );
        self.screen.run(&script).await
    }

    /// Taps on a notification: on its buttons, one after the other so many milliseconds apart, or on itself where there is none.
    /// Gives the addresses that were opened or focused. Browsers let only a real finger open windows, so it is noted instead.
    async fn tap(&mut self, ask_id: AskId, buttons: &[&str], apart_ms: u32) -> Value {
        let worker = self.tools.attach("service_worker", &self.app.url("/sw.js")).await;
        let script = format!(
            "(async () => {{
                const opened = [], waits = [];
                clients.openWindow = async (url) => {{ opened.push(['open', url]); }};
                WindowClient.prototype.focus = async function () {{ opened.push(['focus', new URL(this.url).pathname]); }};
                const [notification] = await registration.getNotifications({{ tag: '{ask_id}' }});
                for (const action of {}) {{
                    if (waits.length) await new Promise((go) => setTimeout(go, {apart_ms}));
                    const event = new NotificationEvent('notificationclick', {{ notification, action }});
                    event.waitUntil = (promise) => waits.push(promise);
                    dispatchEvent(event);
                }}
                await Promise.all(waits);
                return opened;
            }})()",
            json!(buttons)
        );
        self.tools.evaluate(&worker, &script).await
    }
}

#[tokio::test]
async fn messages_begin_with_a_tap_and_end_with_one() {
    let scene = Scene::new().await;
    let screen = &scene.screen;
    screen.open("/settings").await;
    screen.see("#push [data-when=off]:not([hidden])").await;
    assert_eq!(screen.run("return window.asked").await, json!(0), "nobody is asked before they ask");
    screen.fits().await;
    screen.click("#push [data-when=off]").await;
    screen.read("Turned on: it stands in the list above.").await;
    let options = screen.run("return JSON.parse(localStorage.subscribed)").await;
    assert_eq!(
        (&options["userVisibleOnly"], options["applicationServerKey"].as_str().unwrap().len()),
        (&json!(true), 87)
    );
    screen.read("Chrome on Linux").await;
    screen.fits().await;
    screen.click("[action='/settings/told/test'] button").await;
    screen.read("The test message was accepted.").await;
    assert_eq!(scene.phone.open(&scene.receiver.wait_for(1).await[0], &scene.receiver.origin()).message["tag"], "test");
    screen.open("/settings").await;
    screen.click("[action='/settings/told/remove'] button").await;
    screen.until("location.hash === '#told' && document.querySelector('#push [data-when=off]:not([hidden])')").await;
    assert_eq!(screen.run("return localStorage.subscribed").await, Value::Null, "the browser has none any more either");
    assert_eq!(screen.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn n06_a_subscription_that_is_gone_is_offered_anew_at_the_next_visit() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    scene.receiver.answer_with(&[410]);
    let ask_id = scene.app.ask(plain()).await;
    scene.next().await;
    until("nobody could be told", async || (!scene.app.read(ask_id).await.reachable).then_some(())).await;
    scene.screen.open("/").await;
    scene.screen.read("This device is not told of questions any more.").await;
    scene.screen.width(320).await;
    scene.screen.fits().await;
    scene.subscription("/push/again").await;
    scene.screen.click("#push [data-push='']").await;
    scene.screen.until("performance.now() < 30000 && document.querySelector('#push[hidden]') && document.readyState === 'complete'").await;
    scene.app.ask(plain()).await;
    scene.next().await;
    assert_eq!(scene.receiver.received()[1].path, "/push/again");

    // Who wants it so is not asked again.
    let identity = scene.app.identity(scene.app.kim);
    let endpoint = scene.app.store.endpoints(&identity).await.unwrap()[0].endpoint_id;
    scene.app.store.remove_endpoint(&identity, endpoint).await.unwrap();
    scene.screen.open("/").await;
    scene.screen.click("#push [data-push=off]").await;
    scene.screen.until("document.querySelector('#push').hidden").await;
    scene.screen.open("/").await;
    scene.screen.see("#list").await;
    scene.screen.settle().await;
    scene.screen.until("document.querySelector('#push').hidden").await;
}

#[tokio::test]
async fn where_it_can_not_be_the_settings_say_why() {
    let app = App::start().await;
    let screen = Screen::special(&app, Special { before: Some(SERVICE), ..Special::default() }).await;
    let mut tools = screen.devtools().await;
    let denied = json!({ "permission": { "name": "notifications" }, "setting": "denied", "origin": app.url("") });
    tools.call(None, "Browser.setPermission", denied).await;
    screen.open("/settings").await;
    screen.read("This browser blocks messages of Chips.").await;
    for (script, words) in [
        ("delete window.PushManager", "This browser can’t do that."),
        ("navigator.standalone = false", "On an iPhone or iPad, add Chips to the home screen first"),
        (
            "Object.defineProperty(window, 'isSecureContext', { value: false })",
            "Browsers show messages only of an https address.",
        ),
    ] {
        let script = json!({ "source": script });
        screen.command("Page.addScriptToEvaluateOnNewDocument", script).await;
        screen.open("/settings").await;
        screen.read(words).await;
        screen.fits().await;
    }
    let quiet = Screen::start(&app, Special { no_scripts: true, ..Special::default() }).await;
    quiet.open(&format!("/sign-in/{}", app.way_in(app.kim).secret)).await;
    quiet.see("form .send").await.click().await.unwrap();
    quiet.see("nav").await;
    quiet.open("/settings").await;
    let shown = quiet.see("#told #push").await.text().await.unwrap();
    assert!(shown.contains("Needs JavaScript, which is turned off here."), "{shown}");
}

#[tokio::test]
async fn n03_n04_n12_a_question_is_answered_beside_its_message_and_only_that_one_is_taken_back() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    let mut asks = Vec::new();
    for _ in 0..3 {
        asks.push(scene.app.ask(plain()).await);
        let message = scene.next().await;
        scene.push(&message).await;
    }
    let open = "Which day should I confirm?";
    scene.shows(&[(asks[0], open), (asks[1], open), (asks[2], open)]).await;
    let shown = scene.of_shown(asks[0], "actions.map(({ action, title }) => [action, title])").await;
    assert_eq!(shown, json!([[["0", "19 September"], ["1", "26 September"]]]));

    // Two different buttons, 300 ms apart, and the first once more.
    assert_eq!(scene.tap(asks[0], &["1"], 0).await, json!([]));
    scene.shows(&[(asks[0], "Answered: 26 September"), (asks[1], open), (asks[2], open)]).await;
    assert_eq!(scene.app.answers(asks[0]).await, json!([{ "question_id": "when", "values": ["26"] }]));
    assert_eq!(scene.of_shown(asks[0], "actions.length").await, json!([0]));
    scene.tap(asks[1], &["0", "1"], 300).await;
    let late = "Too late. Kim answered Purchasing: 19 September";
    scene.shows(&[(asks[0], "Answered: 26 September"), (asks[1], late), (asks[2], open)]).await;
    assert_eq!(scene.app.answers(asks[1]).await, json!([{ "question_id": "when", "values": ["19"] }]));

    // The outcomes come late, and out of order, when there is a newer question.
    let (one, other) = (scene.next().await, scene.next().await);
    scene.push(&other).await;
    scene.push(&one).await;
    scene.shows(&[(asks[0], "26 September"), (asks[1], "19 September"), (asks[2], open)]).await;
    assert_eq!(scene.of_shown(asks[0], "silent").await, json!([true]));
    assert_eq!(scene.app.read(asks[2]).await.state, AskState::Open);
}

#[tokio::test]
async fn n12_a_tap_that_can_not_be_sent_says_so_and_one_after_the_sign_out_leads_to_it() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    let ask_id = scene.app.ask(plain()).await;
    let message = scene.next().await;
    scene.push(&message).await;
    scene.shows(&[(ask_id, "Which day should I confirm?")]).await;
    scene.app.stop().await;
    let unsent = "Not sent: Chips could not be reached. Tap again.\nWhich day should I confirm?";
    for _ in 0..2 {
        assert_eq!(scene.tap(ask_id, &["0"], 0).await, json!([]));
        scene.shows(&[(ask_id, unsent)]).await;
    }
    assert_eq!(scene.of_shown(ask_id, "actions.length").await, json!([2]), "the buttons stay");
    scene.app.reopen().await;
    scene.app.serve_again().await;
    scene.tap(ask_id, &["0"], 0).await;
    scene.shows(&[(ask_id, "Answered: 19 September")]).await;

    let left = scene.app.ask(plain()).await;
    let mut message = message.clone();
    message["tag"] = json!(left);
    message["data"]["url"] = json!(format!("/asks/{left}"));
    scene.push(&message).await;
    scene.shows(&[(ask_id, "Answered: 19 September"), (left, "Which day should I confirm?")]).await;
    let elsewhere = scene.app.kim().await;
    elsewhere.submit(&elsewhere.get("/settings").await.form("/settings/sessions/end-others"), &[]).await;
    let path = format!("/asks/{left}");
    assert_eq!(scene.tap(left, &["0"], 0).await, json!([["open", path]]));
    scene.screen.open(&path).await;
    scene.screen.see("[name=code]").await;
}

#[tokio::test]
async fn n11_a_tap_on_the_message_opens_exactly_that_question_closed_or_not() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    let asks = [scene.app.ask(plain()).await, scene.app.ask(plain()).await];
    for _ in asks {
        let message = scene.next().await;
        scene.push(&message).await;
    }
    let open = "Which day should I confirm?";
    scene.shows(&[(asks[0], open), (asks[1], open)]).await;
    let paths = asks.map(|ask_id| format!("/asks/{ask_id}"));
    assert_eq!(scene.tap(asks[0], &[""], 0).await, json!([["open", paths[0]]]));
    scene.shows(&[(asks[1], open)]).await;
    scene.screen.open(&paths[0]).await;
    scene.screen.read(open).await;
    // It is closed, its page is open already, and the outcome is what is tapped.
    scene.app.settle(asks[1], json!([{ "question_id": "when", "values": ["26"] }])).await;
    let outcome = scene.next().await;
    scene.push(&outcome).await;
    scene.shows(&[(asks[1], "26 September")]).await;
    scene.screen.open(&paths[1]).await;
    scene.screen.read("26 September").await;
    assert_eq!(scene.tap(asks[1], &[""], 0).await, json!([["focus", paths[1]]]));
}

#[tokio::test]
async fn a_question_that_was_overtaken_by_its_outcome_does_not_take_its_place() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    let ask_id = scene.app.ask(plain()).await;
    let question = scene.next().await;
    until("it is recorded", async || {
        let attempts = scene.app.store.attempts(&scene.app.identity(scene.app.kim), ask_id).await.unwrap().unwrap();
        (!attempts.is_empty()).then_some(())
    })
    .await;
    scene.app.settle(ask_id, json!([{ "question_id": "when", "values": ["19"] }])).await;
    let outcome = scene.next().await;
    scene.push(&outcome).await;
    scene.shows(&[(ask_id, "19 September")]).await;
    scene.push(&question).await;
    let other = scene.app.ask(plain()).await;
    let message = scene.next().await;
    scene.push(&message).await;
    scene.shows(&[(ask_id, "19 September"), (other, "Which day should I confirm?")]).await;
}

#[tokio::test]
async fn a_browser_whose_push_service_gives_it_another_address_tells_the_server() {
    let mut scene = Scene::new().await;
    scene.turn_on().await;
    let worker = scene.tools.attach("service_worker", &scene.app.url("/sw.js")).await;
    let [p256dh, auth] = scene.phone.keys();
    let keys = json!({ p256dh.0: p256dh.1, auth.0: auth.1 });
    let script = format!(
        "(async () => {{
            let done;
            const given = {{ endpoint: {}, keys: {keys} }};
            const event = Object.assign(new ExtendableEvent('pushsubscriptionchange'), {{
                newSubscription: {{ toJSON: () => given }}, waitUntil: (promise) => {{ done = promise; }},
            }});
            dispatchEvent(event);
            await done;
        }})()",
        json!(scene.receiver.url("/push/moved"))
    );
    scene.tools.evaluate(&worker, &script).await;
    scene.app.ask(plain()).await;
    scene.next().await;
    assert_eq!(scene.receiver.received()[0].path, "/push/moved");
    assert_eq!(scene.app.store.endpoints(&scene.app.identity(scene.app.kim)).await.unwrap().len(), 1);
}
