//! Follows the answers to whatever a run asks. Cut off, it resumes by itself; killed and started again, it goes on after
//! the last answer that it dealt with.
//!
//! ```sh
//! CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… cargo run --example stream -- run_… place.txt
//! ```

use std::error::Error;
use std::path::Path;

use chips_client::protocol::{EventType, RunId};
use chips_client::{Client, StreamQuery};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new(&std::env::var("CHIPS_URL")?, &std::env::var("CHIPS_TOKEN")?)?;
    let mut arguments = std::env::args().skip(1);
    let run_id: RunId = arguments.next().ok_or("name a run")?.parse()?;
    let place = arguments.next().ok_or("name a file to keep the place in")?;
    let place = Path::new(&place);

    let query = StreamQuery::default().run(run_id).event_type(EventType::QuestionAnswered);
    // A place is a `seq` and the history of the log that it counts in: where that was restored from a copy meanwhile, the
    // stream ends with `log_changed` rather than skip anything.
    let query = match std::fs::read_to_string(place).ok().as_deref().and_then(|kept| kept.trim().split_once(' ')) {
        Some((seq, log)) => query.after(seq.parse()?).log(log),
        None => query.after(0),
    };

    let mut stream = client.stream(query);
    loop {
        let streamed = stream.next().await?;
        let event = streamed.event()?;
        if let Some(closed) = event.as_answered() {
            let how = if closed.timed_out() { "timed out" } else { "closed" };
            println!(
                "{} {how} {:?}",
                closed.ask_id,
                closed.answers.iter().map(|answer| &answer.values).collect::<Vec<_>>()
            );
            client.acknowledge(closed.ask_id).await?;
        }
        // After the answer was dealt with: killed in between, it is dealt with again rather than never.
        if let Some(log) = stream.log() {
            let draft = place.with_extension("new");
            std::fs::write(&draft, format!("{} {log}\n", streamed.seq))?;
            std::fs::rename(&draft, place)?;
        }
    }
}
