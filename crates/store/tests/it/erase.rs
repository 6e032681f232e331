//! Erasing on random logs: texts go, and nothing else.

use std::collections::BTreeSet;

use chips_core::notify::{Channel, Outcome, Preferences};
use chips_protocol::api::NewRun;
use chips_protocol::{Answer, Draft, RunId, validate};
use chips_store::admin::{self, Admin, Target};
use chips_store::{Device, Identity, NewEndpoint, Proof, SignedIn, secret};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::*;

/// Gives texts that stand nowhere else, each found by its number.
#[derive(Debug, Default)]
struct Texts(usize);

impl Texts {
    fn next(&mut self, into: &mut BTreeSet<usize>) -> String {
        self.0 += 1;
        into.insert(self.0);
        format!("zk{0}kz \u{e4}\"\\ zk{0}kz", self.0)
    }
}

/// The numbers of the texts that stand in any file of a folder, or in any table of a schema.
fn standing(home: &Home) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for text in home.texts() {
        for piece in text.split("zk").skip(1) {
            found.extend(piece.split_once("kz").and_then(|(number, _)| number.parse::<usize>().ok()));
        }
    }
    found
}

/// Every event, as it stands in the log.
fn log(admin: &mut Admin, made: &admin::Initialised) -> Vec<String> {
    let mut export = admin.export(made.workspace_id, None).unwrap();
    let mut lines = Vec::new();
    loop {
        let some = admin.export_next(&mut export).unwrap();
        if some.is_empty() {
            return lines;
        }
        lines.extend(some);
    }
}

/// An event without its texts.
fn skeleton(event: &Value) -> Value {
    const TEXTS: [&str; 7] = ["question_id", "prompt", "value", "label", "description", "default_value", "free_text"];
    match event {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(_) if TEXTS.contains(&name.as_str()) => (name.clone(), Value::Null),
                Value::Array(values) if name == "values" => (name.clone(), values.len().into()),
                value => (name.clone(), skeleton(value)),
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(skeleton).collect(),
        value => value.clone(),
    }
}

#[derive(Debug, Clone, Copy)]
enum Close {
    Chosen { ada: bool },
    Typed { ada: bool },
    Settled,
    Withdrawn,
}

#[derive(Debug, Clone)]
struct Played {
    run: usize,
    default: bool,
    close: Close,
    late: bool,
}

#[derive(Debug, Clone, Copy)]
enum Erase {
    Ask(usize),
    Run(usize),
    Person(bool),
}

const RUNS: usize = 3;

fn played() -> impl Strategy<Value = Vec<Played>> {
    let close = prop_oneof![
        any::<bool>().prop_map(|ada| Close::Chosen { ada }),
        any::<bool>().prop_map(|ada| Close::Typed { ada }),
        Just(Close::Settled),
        Just(Close::Withdrawn),
    ];
    let one = (0..RUNS, any::<bool>(), close, any::<bool>()).prop_map(|(run, default, close, late)| Played {
        run,
        default,
        close,
        late,
    });
    prop::collection::vec(one, 1..10)
}

fn erases() -> impl Strategy<Value = Vec<Erase>> {
    let one = prop_oneof![
        3 => (0..10_usize).prop_map(Erase::Ask),
        1 => (0..RUNS).prop_map(Erase::Run),
        1 => any::<bool>().prop_map(Erase::Person),
    ];
    prop::collection::vec(one, 1..4)
}

/// An ask of the model: where its texts are.
struct Known {
    draft: Draft,
    run: usize,
    /// Places of its events in the log.
    places: [usize; 2],
    own: BTreeSet<usize>,
    typed: [BTreeSet<usize>; 2],
    /// Who closed it, if a person did.
    closed_by: Option<bool>,
}

async fn play(world: &World, ada: &Identity, runs: &[RunId], one: &Played, texts: &mut Texts, place: usize) -> Known {
    let mut known = Known {
        draft: world.ask(runs[one.run]),
        run: one.run,
        places: [place, place + 1],
        own: BTreeSet::new(),
        typed: Default::default(),
        closed_by: None,
    };
    let question = &mut asking(&mut known.draft).questions[0];
    question.question_id = texts.next(&mut known.own);
    question.prompt = texts.next(&mut known.own);
    for option in &mut question.options {
        option.value = texts.next(&mut known.own);
        option.label = texts.next(&mut known.own);
        option.description = Some(texts.next(&mut known.own));
    }
    question.allow_free_text = Some(true);
    question.default_value = one.default.then(|| question.options[1].value.clone());
    let (id, first) = (question.question_id.clone(), question.options[0].value.clone());
    world.append(&known.draft).await;
    let choice = Answer { question_id: id.clone(), values: vec![first], free_text: None };
    let mut typed = |ada: bool, known: &mut Known| Answer {
        question_id: id.clone(),
        values: Vec::new(),
        free_text: Some(texts.next(&mut known.typed[usize::from(ada)])),
    };
    let ask = ask_id(&known.draft);
    let (who, answers) = match one.close {
        Close::Chosen { ada } => (Some(ada), vec![choice.clone()]),
        Close::Typed { ada } => (Some(ada), vec![typed(ada, &mut known)]),
        Close::Settled => (None, vec![choice.clone()]),
        Close::Withdrawn => (None, Vec::new()),
    };
    let by = match who {
        Some(true) => ada,
        Some(false) => &world.person,
        None => &world.harness,
    };
    appended(world.store.submit(by.sender, answer_by(by, runs[one.run], ask, answers)).await);
    known.closed_by = who;
    if one.late {
        for (is_ada, by) in [(false, &world.person), (true, ada)] {
            let late = typed(is_ada, &mut known);
            refused(world.store.submit(by.sender, answer_by(by, runs[one.run], ask, vec![late])).await);
        }
    }
    known
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::ON_POSTGRES { 4 } else { 16 }, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_is_erased_goes_and_everything_else_stays_byte_for_byte(played in played(), erases in erases()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = home();
            let made = admin::init(dir.path()).unwrap();
            let mut admin = Admin::open(dir.path()).unwrap();
            let mut texts = Texts::default();
            let mut names: [BTreeSet<usize>; 2] = Default::default();
            let (person, _) = admin.add_person(made.workspace_id, &texts.next(&mut names[1])).unwrap();
            let world = World::enter(&open(dir.path()), &made).await;
            let ada = identity(&world.store, &person.token).await;
            let mut titles: [BTreeSet<usize>; RUNS] = Default::default();
            let mut runs = Vec::new();
            for title in &mut titles {
                let labels = [("team".to_owned(), texts.next(title))].into();
                let new = NewRun { title: Some(texts.next(title)), labels: Some(labels), ..NewRun::default() };
                runs.push(world.store.open_run(world.harness.sender, new).await.unwrap().0.run_id);
            }
            let mut asks = Vec::new();
            for one in &played {
                asks.push(play(&world, &ada, &runs, one, &mut texts, 2 * asks.len()).await);
            }
            world.store.clone().close().await;

            let all = standing(&dir);
            let mut gone: BTreeSet<usize> = BTreeSet::new();
            for erase in erases {
                let before = log(&mut admin, &made);
                let mut touched: BTreeSet<usize> = BTreeSet::new();
                let mut whole = |nth: usize, gone: &mut BTreeSet<usize>| {
                    let known: &Known = &asks[nth];
                    gone.extend(known.own.iter().chain(known.typed.iter().flatten()));
                    touched.extend(known.places);
                };
                let target = match erase {
                    Erase::Ask(nth) => {
                        let nth = nth % asks.len();
                        whole(nth, &mut gone);
                        if asks.iter().filter(|known| known.run == asks[nth].run).count() == 1 {
                            gone.extend(&titles[asks[nth].run]);
                        }
                        Target::Ask(ask_id(&asks[nth].draft))
                    }
                    Erase::Run(run) => {
                        (0..asks.len()).filter(|nth| asks[*nth].run == run).for_each(|nth| whole(nth, &mut gone));
                        gone.extend(&titles[run]);
                        Target::Run(runs[run])
                    }
                    Erase::Person(is_ada) => {
                        gone.extend(&names[usize::from(is_ada)]);
                        for known in &asks {
                            gone.extend(&known.typed[usize::from(is_ada)]);
                            if known.closed_by == Some(is_ada) {
                                touched.insert(known.places[1]);
                            }
                        }
                        Target::Person(if is_ada { person.id } else { made.person.id })
                    }
                };
                let erasing = admin.find_to_erase(target, None).unwrap();
                assert!(admin.erase(&erasing).unwrap().done);

                let after = log(&mut admin, &made);
                assert_eq!(before.len(), after.len());
                for (place, (before, after)) in before.iter().zip(&after).enumerate() {
                    let [was, is]: [Value; 2] = [before, after].map(|line| serde_json::from_str(line).unwrap());
                    assert!(validate::stored(&is).is_ok(), "{is}");
                    assert_eq!(skeleton(&was), skeleton(&is));
                    assert!(before == after || touched.contains(&place), "{was} became {is}");
                }
                assert_eq!(standing(&dir), &all - &gone);
                // Twice is once.
                let erasing = admin.find_to_erase(target, None).unwrap();
                admin.erase(&erasing).unwrap();
                assert_eq!(log(&mut admin, &made), after);
            }

            // The harness repeats its writes, and gets what is stored.
            let kept = log(&mut admin, &made);
            let world = World { store: open(dir.path()), ..world };
            for known in &asks {
                let mut again = known.draft.clone();
                let (record, _) = replayed(world.submit(&again).await);
                assert_eq!(record.json, kept[known.places[0]]);
                again.idempotency_key = format!("another {}", unique());
                let (record, differs) = replayed(world.submit(&again).await);
                assert_eq!((record.seq, differs), (known.places[0] as u64 + 1, false));
            }
            assert_eq!(standing(&dir), &all - &gone);
        });
    }
}

#[tokio::test]
async fn a_person_loses_devices_addresses_wishes_and_what_was_said_of_them_beside_an_open_store() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let mut texts = Texts::default();
    let mut theirs = BTreeSet::new();
    let mut admin = Admin::open(dir.path()).unwrap();
    let (ada, link) = admin.add_person(world.workspace_id, &texts.next(&mut theirs)).unwrap();
    let identity = identity(&world.store, &ada.token).await;
    let device = Device { name: texts.next(&mut theirs) };
    let proof = Proof::Link(secret::sha256(&link.secret));
    let SignedIn::Yes(cookie, session) = world.store.sign_in(proof, device).await.unwrap() else { panic!() };
    let mut endpoint = |session_id| NewEndpoint {
        channel: Channel::Ntfy,
        address: format!("https://example.com/{}", texts.next(&mut theirs)),
        secret: format!("{{\"key\":\"{}\"}}", texts.next(&mut theirs).replace(['"', '\\'], "")),
        name: texts.next(&mut theirs),
        session_id,
    };
    for session_id in [None, Some(session.session_id)] {
        world.store.add_endpoint(&identity, endpoint(session_id)).await.unwrap().unwrap();
    }
    let wishes = Preferences { reminders: false, ..Preferences::default() };
    world.store.set_preferences(ada.id, wishes).await.unwrap();
    let ask = world.asked(run).await;
    world.store.plan_notices(&[].into()).await.unwrap();
    for notice in world.store.claim_notices(10).await.unwrap() {
        let said = Outcome::Refused(texts.next(&mut theirs));
        world.store.record_attempt(&notice, said, 0.0).await.unwrap();
    }
    let attempts = world.store.attempts(&world.person, ask).await.unwrap().unwrap();
    assert_eq!(attempts.len(), 2);
    assert_eq!(standing(&dir), theirs);

    let target = Target::Person(ada.id);
    let erasing = admin.find_to_erase(target, None).unwrap();
    admin.erase(&erasing).unwrap();
    assert_eq!(standing(&dir), BTreeSet::new());
    assert!(world.store.session(secret::sha256(&cookie)).await.unwrap().is_none());
    assert!(world.store.authenticate(secret::sha256(&ada.token)).await.unwrap().is_none());
    assert_eq!(world.store.preferences(ada.id).await.unwrap(), Preferences::default());
    assert!(world.store.endpoints(&identity).await.unwrap().is_empty());
    let attempts = world.store.attempts(&world.person, ask).await.unwrap().unwrap();
    assert!(attempts.iter().all(|attempt| attempt.name == "[erased]" && attempt.detail == "[erased]"));
    assert_eq!(attempts[0].person.as_ref().unwrap().name, "[erased]");
    // The ask is open, and others go on.
    world.append(&world.answer(run, ask, "a")).await;
    let listed = admin.erasures().unwrap();
    assert_eq!((listed.len(), listed[0].id.as_str(), listed[0].done), (1, &*ada.id.to_string(), true));
}

#[tokio::test]
async fn what_was_under_way_when_a_question_was_erased_brings_nothing_of_it_back() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let (mut texts, mut its) = (Texts::default(), BTreeSet::new());
    let endpoint = NewEndpoint {
        channel: Channel::Ntfy,
        address: "https://example.com/topic".into(),
        secret: "{}".into(),
        name: "Phone".into(),
        session_id: None,
    };
    world.store.add_endpoint(&world.person, endpoint).await.unwrap().unwrap();
    let mut draft = world.ask(run);
    let prompt = texts.next(&mut its);
    asking(&mut draft).questions[0].prompt.clone_from(&prompt);
    world.append(&draft).await;
    let ask = ask_id(&draft);
    let claim = async || {
        world.store.plan_notices(&[].into()).await.unwrap();
        world.store.claim_notices(10).await.unwrap()
    };
    let asked = claim().await;
    let said = Outcome::Failed(format!("can't send {prompt}"));
    world.store.record_attempt(&asked[0], said, 0.0).await.unwrap();
    world.store.record_attempt(&asked[0], Outcome::Accepted, 0.0).await.unwrap();
    world.append(&world.answer(run, ask, "a")).await;
    let taken_back = claim().await;
    assert_eq!((taken_back.len(), taken_back[0].kind), (1, chips_core::notify::Kind::Closed));
    assert_eq!(standing(&dir), its);

    let mut admin = Admin::open(dir.path()).unwrap();
    let erasing = admin.find_to_erase(Target::Ask(ask), None).unwrap();
    admin.erase(&erasing).unwrap();
    assert_eq!(standing(&dir), BTreeSet::new());
    let said = Outcome::Failed(format!("can't take back {prompt}"));
    world.store.record_attempt(&taken_back[0], said, 0.0).await.unwrap();
    assert_eq!(standing(&dir), BTreeSet::new());
    let attempts = world.store.attempts(&world.person, ask).await.unwrap().unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.detail.as_str()).collect::<Vec<_>>(), ["[erased]", "", ""]);
    // It is tried again, and replaces what a phone shows by what is left.
    let mut late = world.answer(run, ask, "a");
    late.idempotency_key = "late".into();
    refused(world.submit(&late).await);
    let shown = world.shown(ask).await;
    assert_eq!((shown.ask.as_ask().unwrap().questions[0].prompt.as_str(), shown.late_answers.len()), ("[erased]", 0));
}

#[tokio::test]
async fn what_a_person_typed_goes_where_others_quote_it_as_well() {
    let (dir, world) = world().await;
    let run = world.run().await;
    let (mut texts, mut typed) = (Texts::default(), BTreeSet::new());
    let mut admin = Admin::open(dir.path()).unwrap();
    let (ada, _) = admin.add_person(world.workspace_id, "Ada").unwrap();
    let identity = identity(&world.store, &ada.token).await;
    let endpoint = NewEndpoint {
        channel: Channel::HarnessWebhook,
        address: "https://example.com/hook".into(),
        secret: "{}".into(),
        name: "Hook".into(),
        session_id: None,
    };
    world.store.add_endpoint(&world.harness, endpoint).await.unwrap().unwrap();
    let mut draft = world.ask(run);
    asking(&mut draft).questions[0].allow_free_text = Some(true);
    let question_id = asking(&mut draft).questions[0].question_id.clone();
    world.append(&draft).await;
    let text = texts.next(&mut typed);
    let answer = Answer { question_id, values: Vec::new(), free_text: Some(text.clone()) };
    appended(world.store.submit(identity.sender, answer_by(&identity, run, ask_id(&draft), vec![answer])).await);
    world.store.plan_notices(&[].into()).await.unwrap();
    let posted = world.store.claim_notices(10).await.unwrap();
    let quoted = || Outcome::Failed(format!("can't read {text}"));
    world.store.record_attempt(&posted[0], quoted(), 0.0).await.unwrap();
    assert_eq!(standing(&dir), typed);

    let erasing = admin.find_to_erase(Target::Person(ada.id), None).unwrap();
    admin.erase(&erasing).unwrap();
    assert_eq!(standing(&dir), BTreeSet::new());
    // One that was under way.
    world.store.record_attempt(&posted[0], quoted(), 0.0).await.unwrap();
    assert_eq!(standing(&dir), BTreeSet::new());
}

#[tokio::test]
async fn what_came_after_it_was_looked_at_is_erased_as_well() {
    let (dir, world) = world().await;
    let mut texts = Texts::default();
    let mut all = BTreeSet::new();
    let asked = async |run, texts: &mut Texts, all: &mut BTreeSet<usize>| {
        let mut draft = world.ask(run);
        asking(&mut draft).questions[0].prompt = texts.next(all);
        world.append(&draft).await;
        ask_id(&draft)
    };
    let mut admin = Admin::open(dir.path()).unwrap();
    for whole in [false, true] {
        let run = world.run().await;
        let target = if whole { Target::Workspace(world.workspace_id) } else { Target::Run(run) };
        let first = asked(run, &mut texts, &mut all).await;
        world.append(&world.answer(run, first, "a")).await;
        let found = admin.find_to_erase(target, None).unwrap();
        let second = asked(run, &mut texts, &mut all).await;
        // It is open: nothing is erased, and the same can be run again.
        let refused = admin.erase(&found).unwrap_err().to_string();
        assert!(refused.contains(&second.to_string()), "{refused}");
        world.append(&world.answer(run, second, "a")).await;
        assert_eq!(standing(&dir), all);
        admin.erase(&found).unwrap();
        assert_eq!(standing(&dir), BTreeSet::new());
        all.clear();
        assert!(admin.erasures().unwrap().iter().all(|erasure| erasure.done), "what was cut short is done with it");
    }
}
