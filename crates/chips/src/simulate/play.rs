//! Plays a script: takes each ask to the first step that wants it, and does there what the step says.
//!
//! People and the harness act through the store's own calls, with an identity that a token speaks for: what the API does
//! with their requests, judged by the same rules. The script alone decides when, so nothing here goes through the
//! network that it breaks.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use chips_client::mint;
use chips_core::{Refusal, Who};
use chips_protocol::api::{Ask, AskState};
use chips_protocol::{Answer, EventType, Fault, ParticipantKind, Question, QuestionAsk, WorkspaceId, validate};
use chips_store::{EventsQuery, Identity, Record, Submitted, WriteError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::answers::answers;
use super::script::{Act, Deed, Script, Step};
use super::stage::Stage;
use super::tell;

/// How long a harness has to open a stream or a wait before a script gives up cutting it.
const HELD_WITHIN: Duration = Duration::from_secs(10);
/// Asks that are read at once.
const BATCH: usize = 100;

/// Who is on the stage, by their tokens.
pub struct Cast {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Sees every ask.
    pub owner: String,
    /// The harness that asks.
    pub harness: String,
    /// Those who answer, by name.
    pub people: BTreeMap<String, String>,
}

/// A script that is being played.
pub struct Play {
    script: Script,
    cast: Cast,
    /// How many asks each step has taken.
    taken: Vec<u32>,
    /// Asks that no step wanted.
    others: u32,
    failed: Vec<String>,
    /// What is being done at this moment.
    playing: Option<String>,
    /// The last event that was looked at.
    after: u64,
}

impl Play {
    /// A play whose curtain is down.
    pub fn new(script: Script, cast: Cast) -> Self {
        Self {
            taken: vec![0; script.steps.len()],
            others: 0,
            failed: Vec::new(),
            playing: None,
            after: 0,
            script,
            cast,
        }
    }

    /// What is left that should have happened, and what went wrong; nothing where all of it went as the script says.
    pub fn missing(&self) -> Vec<String> {
        let left = self.script.steps.iter().zip(&self.taken).enumerate().filter_map(|(number, (step, taken))| {
            let left = step.times?.checked_sub(*taken).filter(|left| *left > 0)?;
            let played = match taken {
                0 => "was not played".to_owned(),
                taken => format!("was played {taken} of {} times", taken + left),
            };
            Some(format!("step {} (line {}) {played}", number + 1, step.line))
        });
        let playing = self.playing.iter().map(|place| format!("{place} was still being played"));
        self.failed.iter().cloned().chain(playing).chain(left).collect()
    }

    /// Does what stands at the start.
    ///
    /// # Errors
    /// The server can't go on.
    pub async fn begin(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        self.report(stage, false);
        let acts = self.script.start.clone();
        self.acts(stage, "at the start", &acts, None).await
    }

    /// Plays until the future is dropped.
    ///
    /// # Errors
    /// The server can't go on.
    pub async fn run(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        loop {
            let mut head = stage.store().head(self.cast.workspace_id);
            let owner = self.identity(stage, &self.cast.owner).await?;
            let query = EventsQuery {
                after: self.after,
                limit: BATCH,
                event_type: Some(EventType::QuestionAsk),
                ..EventsQuery::default()
            };
            let batch = stage.store().events(&owner, &query).await?;
            for record in &batch.records {
                self.after = record.seq;
                self.take(stage, record).await?;
            }
            // The store may be another one by now.
            if batch.records.is_empty() {
                self.after = batch.through.max(self.after);
                let now = self.after;
                tokio::select! {
                    biased;
                    fatal = stage.failed() => return Err(fatal.into()),
                    more = head.wait_for(|head| *head > now) => drop(more?),
                }
            }
        }
    }

    async fn take(&mut self, stage: &mut Stage, record: &Record) -> anyhow::Result<()> {
        let Some(asked) = record.event.as_ask() else { return Ok(()) };
        self.report(stage, true);
        let owner = self.identity(stage, &self.cast.owner).await?;
        let run = stage.store().run(&owner, record.event.envelope.run_id).await?;
        let title = run.and_then(|run| run.title).unwrap_or_default();
        let free = |number: &usize| self.script.steps[*number].times.is_none_or(|times| self.taken[*number] < times);
        let step =
            (0..self.script.steps.len()).filter(free).find(|number| wants(&self.script.steps[*number], asked, &title));
        let (place, acts) = match step {
            Some(number) => {
                let step = &self.script.steps[number];
                self.taken[number] += 1;
                (format!("step {} (line {})", number + 1, step.line), step.acts.clone())
            }
            None => {
                self.others += 1;
                if self.script.otherwise.is_empty() {
                    tell(format_args!("no step takes {}; it stays open", asked.ask_id));
                }
                ("otherwise".to_owned(), self.script.otherwise.clone())
            }
        };
        self.playing = Some(place.clone());
        self.acts(stage, &place, &acts, Some((record, asked))).await?;
        self.playing = None;
        self.report(stage, false);
        Ok(())
    }

    /// Does one thing after the other, up to the first that can't be done.
    async fn acts(
        &mut self,
        stage: &mut Stage,
        place: &str,
        acts: &[Act],
        asked: Option<(&Record, &QuestionAsk)>,
    ) -> anyhow::Result<()> {
        for act in acts {
            let done = match (&act.deed, asked) {
                (Deed::Restart(down), _) => {
                    // Whoever runs this can't go on without a server: no failure of the script's.
                    stage.restart(*down).await?;
                    Ok("stopped the server and started it again".to_owned())
                }
                (deed, Some((record, asked))) => self.deed(stage, deed, record, asked).await,
                (deed, None) => by_itself(stage, deed).await,
            };
            match done {
                Ok(done) => tell(format_args!("{place}: {done}")),
                Err(why) => {
                    // A place names its own line.
                    let line = if place.ends_with(&format!("(line {})", act.line)) {
                        String::new()
                    } else {
                        format!(", line {}", act.line)
                    };
                    let failed = format!("{place}{line}: {why}");
                    tell(format_args!("FAILED: {failed}"));
                    self.failed.push(failed);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Does one thing, and says what was done; or why it can't be.
    async fn deed(&self, stage: &Stage, deed: &Deed, record: &Record, asked: &QuestionAsk) -> Result<String, String> {
        let ask_id = asked.ask_id;
        match deed {
            Deed::Leave => Ok(format!("left {ask_id} open")),
            Deed::Ignore => self.let_pass(stage, asked).await.map(|()| format!("nobody answered {ask_id} in time")),
            Deed::Answer(given, by) => {
                let answers = answers(given, &asked.questions)?;
                self.close(stage, self.person(by)?, record, asked, &answers).await?;
                Ok(format!("{by} answered {ask_id} with {}", in_words(&answers)))
            }
            Deed::AnswerLate(given, by) => {
                let answers = answers(given, &asked.questions)?;
                self.let_pass(stage, asked).await?;
                match self.submit(stage, self.person(by)?, record, asked, &answers).await? {
                    Err(WriteError::Refused(refusal)) if matches!(*refusal, Refusal::AlreadyClosed(_)) => {
                        Ok(format!("{by} answered {ask_id} with {} after the time-out had passed", in_words(&answers)))
                    }
                    Err(error) => Err(why(&error)),
                    Ok(_) => Err("the time-out did not pass".to_owned()),
                }
            }
            Deed::Settle(given) => {
                let answers = answers(given, &asked.questions)?;
                self.close(stage, &self.cast.harness, record, asked, &answers).await?;
                Ok(format!("the harness settled {ask_id} elsewhere with {}", in_words(&answers)))
            }
            Deed::Withdraw => {
                self.close(stage, &self.cast.harness, record, asked, &[]).await?;
                Ok(format!("the harness withdrew {ask_id} elsewhere"))
            }
            Deed::EndRun => {
                let harness = self.identity(stage, &self.cast.harness).await.map_err(in_full)?;
                let run_id = record.event.envelope.run_id;
                stage.store().end_run(harness.sender, run_id).await.map_err(|error| why(&error))?;
                Ok(format!("the harness ended {run_id} elsewhere"))
            }
            deed => by_itself(stage, deed).await,
        }
    }

    /// Moves the clock to the ask's deadline.
    async fn let_pass(&self, stage: &Stage, asked: &QuestionAsk) -> Result<(), String> {
        let ask = self.ask(stage, asked).await?;
        if ask.state != AskState::Open {
            return Err(format!("{} is {} already", ask.ask_id, ask.state.as_str()));
        }
        let deadline = ask.deadline.ok_or("the ask has no time-out that could pass: it waits until it is answered")?;
        let left = deadline.ms() - stage.store().clock().now().ms();
        stage.simulation.advance(Duration::from_millis(u64::try_from(left).unwrap_or(0))).await;
        match self.ask(stage, asked).await?.state {
            AskState::TimedOut => Ok(()),
            state => Err(format!("{} is {}, and did not time out", ask.ask_id, state.as_str())),
        }
    }

    async fn ask(&self, stage: &Stage, asked: &QuestionAsk) -> Result<Ask, String> {
        let owner = self.identity(stage, &self.cast.owner).await.map_err(in_full)?;
        let ask = stage.store().ask(&owner, asked.ask_id).await.map_err(|error| error.to_string())?;
        ask.ok_or_else(|| "the ask is gone".to_owned())
    }

    /// Closes the ask for whom the token speaks.
    async fn close(
        &self,
        stage: &Stage,
        token: &str,
        record: &Record,
        asked: &QuestionAsk,
        answers: &[Answer],
    ) -> Result<(), String> {
        self.submit(stage, token, record, asked, answers).await?.map(drop).map_err(|error| why(&error))
    }

    async fn submit(
        &self,
        stage: &Stage,
        token: &str,
        record: &Record,
        asked: &QuestionAsk,
        answers: &[Answer],
    ) -> Result<Result<Submitted, WriteError>, String> {
        let identity = self.identity(stage, token).await.map_err(in_full)?;
        let event = json!({
            "v": 1,
            "type": EventType::QuestionAnswered,
            "id": mint::event_id().map_err(|error| error.to_string())?,
            "workspace_id": self.cast.workspace_id,
            "actor": match identity.sender.who {
                Who::Person(id) => json!({ "kind": ParticipantKind::Person, "id": id }),
                Who::Harness(id) => json!({ "kind": ParticipantKind::Harness, "id": id }),
            },
            "run_id": record.event.envelope.run_id,
            "idempotency_key": mint::idempotency_key().map_err(|error| error.to_string())?,
            "ask_id": asked.ask_id,
            "answers": answers,
        });
        let draft = validate::draft(&event).map_err(|faults| in_detail(&faults))?;
        Ok(stage.store().submit(identity.sender, draft).await)
    }

    fn person(&self, name: &str) -> Result<&str, String> {
        self.cast.people.get(name).map(String::as_str).ok_or_else(|| format!("{name} is not on the stage"))
    }

    /// Whom a token speaks for, looked up as for every request.
    async fn identity(&self, stage: &Stage, token: &str) -> anyhow::Result<Identity> {
        let found = stage.store().authenticate(Sha256::digest(token.as_bytes()).into()).await?;
        found.context("a token of the simulation is good no more")
    }

    fn report(&self, stage: &Stage, busy: bool) {
        let steps = self.script.steps.iter().zip(&self.taken).map(|(step, taken)| {
            json!({
                "line": step.line,
                "played": taken,
                "left": step.times.map(|times| times.saturating_sub(*taken)),
            })
        });
        let missing = self.missing();
        let told = json!({
            "done": missing.is_empty(),
            "steps": steps.collect::<Vec<_>>(),
            "otherwise": self.others,
            "failed": self.failed,
            "missing": missing,
        });
        stage.simulation.report(|report| {
            report.busy = busy;
            if let Value::Object(told) = told {
                report.told = told;
            }
        });
    }
}

/// Does what needs no ask.
async fn by_itself(stage: &Stage, deed: &Deed) -> Result<String, String> {
    match deed {
        Deed::Advance(time) => {
            stage.simulation.advance(*time).await;
            Ok(format!("moved the clock by {} s", time.as_secs_f64()))
        }
        Deed::Cut(again) => {
            if !stage.held_within(HELD_WITHIN).await {
                let waited = HELD_WITHIN.as_secs();
                return Err(format!("there was nothing to cut: no stream and no wait was open for {waited} s"));
            }
            stage.simulation.cut(*again);
            Ok(match again {
                0 => "cut every connection".to_owned(),
                again => format!("cut every connection, and the next {again}"),
            })
        }
        Deed::LoseReplies(count) => {
            stage.simulation.lose_replies(*count);
            Ok(match count {
                1 => "the reply to the next write gets lost".to_owned(),
                count => format!("the replies to the next {count} writes get lost"),
            })
        }
        Deed::Unavailable(count) => {
            stage.simulation.refuse_writes(*count);
            Ok(match count {
                1 => "the next write is refused with 503".to_owned(),
                count => format!("the next {count} writes are refused with 503"),
            })
        }
        _ => Err("there is no ask to do this with".to_owned()),
    }
}

/// Whether a step takes an ask.
fn wants(step: &Step, asked: &QuestionAsk, title: &str) -> bool {
    let takes = &step.takes;
    let any = |holds: &dyn Fn(&Question) -> bool| asked.questions.iter().any(holds);
    takes.prompt.as_ref().is_none_or(|part| any(&|question| question.prompt.contains(part)))
        && takes.question_id.as_ref().is_none_or(|id| any(&|question| question.question_id == *id))
        && takes.title.as_ref().is_none_or(|part| title.contains(part))
}

fn in_words(answers: &[Answer]) -> String {
    let said = |answer: &Answer| {
        let values = answer.values.iter().cloned().chain(answer.free_text.as_ref().map(|text| format!("{text:?}")));
        let values = values.collect::<Vec<_>>().join(", ");
        let said = if values.is_empty() { "none of these" } else { &values };
        format!("{}: {said}", answer.question_id)
    };
    answers.iter().map(said).collect::<Vec<_>>().join("; ")
}

fn why(error: &WriteError) -> String {
    match error {
        WriteError::Refused(refusal) => match refusal.as_ref() {
            Refusal::AlreadyClosed(event) if event.as_answered().is_some_and(|answered| answered.timed_out()) => {
                "the time-out had passed before".to_owned()
            }
            Refusal::AlreadyClosed(_) => "somebody closed the ask before".to_owned(),
            Refusal::Invalid(faults) => in_detail(faults),
            _ => error.to_string(),
        },
        _ => error.to_string(),
    }
}

fn in_detail(faults: &[Fault]) -> String {
    let told = |fault: &Fault| format!("{}: {}", fault.pointer, fault.message);
    faults.iter().map(told).collect::<Vec<_>>().join("; ")
}

fn in_full(error: anyhow::Error) -> String {
    format!("{error:#}")
}
