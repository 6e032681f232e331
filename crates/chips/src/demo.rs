//! `chips serve --demo`: plays a harness over the real API, so that one command shows the main job from the question
//! to the answer that comes back.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Context;
use chips_client::{AskSpec, AsksQuery, Client};
use chips_protocol::api::{Ask, AskState, NewRun};
use chips_protocol::{Answer, OnNoAnswer, ParticipantId, Question, QuestionOption};
use chips_store::admin::{Admin, Initialised, SignIn};

use crate::folder::Folder;
use crate::place::{Place, owner, phone};
use crate::{output, present};

/// The harness that the demo plays.
const HARNESS: &str = "Purchasing";
/// The run that it opens.
const RUN: &str = "Weekly restock";
/// How long it waits for an answer, in seconds.
const PATIENCE: u64 = 3_600;

/// What the demo needs from the data folder.
pub struct Stage {
    token: String,
    sign_in: SignIn,
}

impl Stage {
    /// A token for the demo's harness (made on the first demo, the same harness ever after) and a sign-in for the
    /// first owner.
    ///
    /// # Errors
    /// The folder can't be administered, or has nobody who could sign in.
    pub fn set(folder: &Folder, made: Option<&Initialised>) -> anyhow::Result<Self> {
        let mut admin = Admin::open(folder.location())?;
        let (workspace, person) =
            owner(&mut admin)?.context("there is nobody to sign in; `chips person add` adds somebody")?;
        let sign_in = match made {
            Some(made) => made.sign_in.clone(),
            None => admin.link_person(person)?,
        };
        let known = folder.demo_harness().map(|id| admin.rotate(ParticipantId::Harness(id), None));
        let token = match known {
            Some(Ok((issued, _))) => issued.token,
            // Never played here, or somebody has disabled it since.
            _ => {
                let issued = admin.add_harness(workspace, HARNESS)?;
                folder.keep_demo_harness(issued.id)?;
                issued.token
            }
        };
        Ok(Self { token, sign_in })
    }
}

/// Shows how to sign in, asks, waits, and shows what came back.
///
/// # Errors
/// The API refuses or does not answer, or standard output can't be written.
pub async fn play(stage: Stage, place: &Place) -> anyhow::Result<()> {
    let client = Client::new(&local_url(place.address), &stage.token)?;
    take_back_earlier_questions(&client).await?;
    output::text(welcome(&stage.sign_in, place))?;

    let run = client.open_run(NewRun { title: Some(RUN.to_owned()), ..NewRun::default() }).await?;
    let question = question();
    let asked = client
        .ask(
            AskSpec::new(run.run_id, vec![question.clone()])
                .timeout_seconds(PATIENCE)
                .on_no_answer(OnNoAnswer::UseDefault),
        )
        .await?;
    output::text(asks(&question))?;

    let ask = client.wait(asked.ask_id()).await?;
    let event = ask.answer.as_ref().context("the ask is closed and no event says how")?;
    output::text(format_args!(
        "{} {}. This event came back to the harness:\n\n{}\n\n",
        output::bold("3"),
        closed_by(&ask),
        output::json_text(event, true)?
    ))?;
    client.acknowledge(ask.ask_id).await?;
    client.end_run(run.run_id).await?;
    output::text(format_args!("  {} {}. The run has ended.\n", HARNESS, goes_on(&ask, &question)))
}

/// A demo that was ended in mid-wait leaves its question open; nobody waits for that answer any more.
async fn take_back_earlier_questions(client: &Client) -> anyhow::Result<()> {
    for ask in client.asks(&AsksQuery::default().state(AskState::Open)).await?.asks {
        client.end_run(ask.ask.envelope.run_id).await?;
    }
    Ok(())
}

/// Where the harness reaches the server: on this machine, whatever address people use.
fn local_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

fn question() -> Question {
    let option = |value: &str, label: &str, description: &str| QuestionOption {
        value: value.to_owned(),
        label: label.to_owned(),
        description: Some(description.to_owned()),
    };
    Question {
        question_id: "delivery-window".to_owned(),
        prompt: "Northwind can ship on the 19th or the 26th. Which should I confirm?".to_owned(),
        options: vec![
            option("19", "19 September", "The day we ordered for."),
            option("26", "26 September", "A week later, but on one full pallet."),
        ],
        multi_select: Some(false),
        allow_free_text: Some(true),
        default_value: Some("19".to_owned()),
    }
}

fn welcome(sign_in: &SignIn, place: &Place) -> String {
    let link = present::sign_in_url(&place.url, sign_in);
    let mut text = format!(
        "\n{}\n\n\
         {} Open your inbox. The link signs you in, once, for the next 15 minutes:\n\n  {}\n\n  \
         Or open {}/sign-in and type the code {}.\n\n",
        output::bold("Chips: a harness asks, you tap, the harness goes on."),
        output::bold("1"),
        link,
        place.url,
        output::bold(&sign_in.code),
    );
    if place.reachable
        && let Some(code) = phone(&link)
    {
        text.push_str(&format!("  For a phone:\n\n{code}\n"));
    }
    text
}

fn asks(question: &Question) -> String {
    let mut text = format!(
        "{} The harness \"{HARNESS}\" works on \"{RUN}\" and asks:\n\n    {}\n\n",
        output::bold("2"),
        question.prompt
    );
    for option in &question.options {
        text.push_str(&format!("    - {}: {}\n", option.label, option.description.as_deref().unwrap_or_default()));
    }
    text.push_str("    - or your own words\n\n");
    if let Some(default) = question.default_value.as_deref().and_then(|value| question.option(value)) {
        text.push_str(&format!("  After an hour without an answer it takes {}.\n\n", default.label));
    }
    text.push_str("  waiting for an answer in the inbox…\n\n");
    text
}

/// Who closed the ask, as the beginning of a sentence.
fn closed_by(ask: &Ask) -> String {
    let name = ask.answerer.as_ref().map_or("Chips", |answerer| &answerer.name);
    let name = output::one_line(name);
    match ask.state {
        AskState::Answered => format!("{name} answered"),
        AskState::TimedOut => "Nobody answered in time".to_owned(),
        AskState::Settled => format!("{name} answered its own question"),
        AskState::Withdrawn | AskState::Open => format!("{name} took the question back"),
    }
}

/// What the harness does with the answer.
fn goes_on(ask: &Ask, question: &Question) -> String {
    let answered = ask.answer.as_ref().and_then(|event| event.as_answered());
    match answered.and_then(|answered| answered.answers.first()) {
        Some(Answer { free_text: Some(text), .. }) => format!("reads \"{}\" and goes on", output::one_line(text)),
        Some(Answer { values, .. }) if !values.is_empty() => {
            let labels = values.iter().filter_map(|value| question.option(value)).map(|option| option.label.as_str());
            format!("confirms {} and goes on", labels.collect::<Vec<_>>().join(" and "))
        }
        _ => "goes on without an answer".to_owned(),
    }
}
