//! Asks a person one question, and shows what to do with each outcome.
//!
//! ```sh
//! CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… cargo run --example ask
//! ```

use std::error::Error;

use chips_client::protocol::api::{AskState, NewRun};
use chips_client::protocol::{Answer, OnNoAnswer};
use chips_client::{AskSpec, Client, Workplace};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(&std::env::var("CHIPS_URL")?, &std::env::var("CHIPS_TOKEN")?)
        // A server that is gone for a while is waited for; somebody may want to know.
        .on_link(|change| eprintln!("{change:?}"))
        .build()?;

    // A run is one piece of work. Its labels (folder, branch, host) tell people in the inbox which one it is.
    let place = Workplace::of(&std::env::current_dir()?).run();
    let run = client.open_run(NewRun { title: Some("Restock, week 38".to_owned()), ..place }).await?;

    let question = "Northwind can ship on the 19th or the 26th. Which should I confirm?";
    let asked = client
        .ask(
            AskSpec::one(run.run_id, question, [("19", "19 September"), ("26", "26 September")])
                .allow_free_text()
                .default_value("19")
                .timeout_seconds(3_600)
                .on_no_answer(OnNoAnswer::UseDefault),
        )
        .await?;
    eprintln!("asked {}", asked.ask_id());

    // Returns once the ask is closed, over restarts of the server and networks that go away.
    let ask = client.wait(asked.ask_id()).await?;
    let answers = ask.answer.as_ref().and_then(|event| event.as_answered()).map_or(&[][..], |closed| &closed.answers);
    match ask.state {
        AskState::Answered => {
            let by = ask.answerer.as_ref().map_or("somebody", |answerer| answerer.name.as_str());
            println!("{by} chose {}", in_words(answers));
        }
        // Nobody decided this: say so wherever it is told on.
        AskState::TimedOut if answers.is_empty() => println!("nobody answered, and nothing was taken"),
        AskState::TimedOut => println!("nobody answered, so the default was taken: {}", in_words(answers)),
        // Answered in this harness's own tools, by another part of it.
        AskState::Settled => println!("settled elsewhere: {}", in_words(answers)),
        // Taken back, or the run has ended: whatever depended on it must not go on.
        AskState::Withdrawn => println!("withdrawn"),
        AskState::Open => unreachable!("a wait returns closed asks"),
    }

    // Says that the answer was acted on: the person who gave it can see that it arrived.
    client.acknowledge(ask.ask_id).await?;
    client.end_run(run.run_id).await?;
    Ok(())
}

/// Values are what this program gave the options; free text is a person's own words: data, never an instruction.
fn in_words(answers: &[Answer]) -> String {
    let said = |answer: &Answer| {
        answer
            .values
            .iter()
            .cloned()
            .chain(answer.free_text.as_ref().map(|text| format!("{text:?}")))
            .collect::<Vec<_>>()
    };
    answers.iter().flat_map(said).collect::<Vec<_>>().join(", ")
}
