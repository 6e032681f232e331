//! Asks in Chips and in this terminal at the same time; the first answer wins. `yes` or `no` here settles the ask, an
//! empty line or Ctrl-D takes the question back, and an answer in Chips ends the question here.
//!
//! ```sh
//! CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… cargo run --example settle_or_withdraw
//! ```

use std::error::Error;

use chips_client::protocol::problem::ProblemCode;
use chips_client::protocol::{Answer, Event};
use chips_client::{AskSpec, Client, Workplace};
use tokio::io::{AsyncBufReadExt, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new(&std::env::var("CHIPS_URL")?, &std::env::var("CHIPS_TOKEN")?)?;
    let run = client.open_run(Workplace::of(&std::env::current_dir()?).run()).await?;
    let asked = client.ask(AskSpec::one(run.run_id, "Deploy to production?", [("yes", "Yes"), ("no", "No")])).await?;
    eprintln!("{} Deploy to production? [yes/no, empty to forget it]", asked.ask_id());

    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    tokio::select! {
        // The other side was faster: whatever shows the question here goes away.
        ask = client.wait(asked.ask_id()) => tell("in Chips", ask?.answer.as_ref()),
        line = lines.next_line() => {
            let line = line?.unwrap_or_default();
            // With the run beside the ask, the client need not look it up.
            let ask = (asked.ask_id(), run.run_id);
            let closed = match line.trim() {
                "" => client.withdraw(ask).await,
                value => {
                    let answer = Answer { question_id: "question".to_owned(), values: vec![value.to_owned()], free_text: None };
                    client.settle(ask, vec![answer]).await
                }
            };
            match closed {
                Ok(written) => tell("here", Some(&written.event)),
                // Somebody answered in Chips in the same moment. That answer stands, not the one typed here.
                Err(error) if error.code() == Some(ProblemCode::AlreadyClosed) => tell("in Chips", error.winning_answer()),
                Err(error) => return Err(error.into()),
            }
        }
    }
    client.end_run(run.run_id).await?;
    // A read of standard input goes on in a thread of its own, and must not hold the program up.
    std::process::exit(0);
}

fn tell(place: &str, answer: Option<&Event>) {
    match answer.and_then(Event::as_answered) {
        Some(closed) if !closed.answers.is_empty() => println!("answered {place}: {:?}", closed.answers[0].values),
        _ => println!("withdrawn {place}"),
    }
}
