//! Killed at any moment and started again, this takes up the same ask: nobody is asked twice.
//!
//! ```sh
//! CHIPS_URL=http://127.0.0.1:7070 CHIPS_TOKEN=chips_hk_… cargo run --example resume -- state.txt
//! ```

use std::error::Error;
use std::path::Path;

use chips_client::protocol::api::NewRun;
use chips_client::protocol::{AskId, RunId};
use chips_client::{AskSpec, Client, mint};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = Client::new(&std::env::var("CHIPS_URL")?, &std::env::var("CHIPS_TOKEN")?)?;
    let state = std::env::args().nth(1).ok_or("name a file to keep the state in")?;

    // Both identifiers are on the disk before anything is sent.
    let (run_id, ask_id) = identifiers(Path::new(&state))?;

    // All that follows may be done again with the same identifiers: opening the run returns the run that stands, asking
    // returns the ask that stands, even where it was answered meanwhile.
    client
        .open_run(NewRun { run_id: Some(run_id), title: Some("Migrate the billing".to_owned()), ..NewRun::default() })
        .await?;
    let spec =
        AskSpec::one(run_id, "Drop the old table now?", [("drop", "Drop it"), ("keep", "Keep it")]).ask_id(ask_id);
    let asked = client.ask(spec).await?;
    eprintln!("{} {ask_id}", if asked.replayed { "taking up" } else { "asked" });

    let ask = client.wait(ask_id).await?;
    let chosen = ask.answer.as_ref().and_then(|event| event.as_answered()).and_then(|closed| closed.answers.first());
    println!("{}: {:?}", ask.state.as_str(), chosen.map(|answer| &answer.values));

    client.acknowledge(ask_id).await?;
    client.end_run(run_id).await?;
    // The work is done: the next start is another piece of work.
    std::fs::remove_file(&state)?;
    Ok(())
}

/// The identifiers in the file, or new ones that are in it from now on.
fn identifiers(state: &Path) -> Result<(RunId, AskId), Box<dyn Error>> {
    if let Ok(kept) = std::fs::read_to_string(state) {
        let (run_id, ask_id) = kept.trim().split_once(' ').ok_or("the file holds no two identifiers")?;
        return Ok((run_id.parse()?, ask_id.parse()?));
    }
    let (run_id, ask_id) = (mint::run_id()?, mint::ask_id()?);
    // Whole or not at all: a program that is killed in between must not find half a file.
    let draft = state.with_extension("new");
    std::fs::write(&draft, format!("{run_id} {ask_id}\n"))?;
    std::fs::rename(&draft, state)?;
    Ok((run_id, ask_id))
}
