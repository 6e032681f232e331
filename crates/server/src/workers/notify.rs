//! Tells people outside the inbox, and harnesses by webhook: plans from the log what is to be said, sends what is due,
//! and records what the other side made of it.
//!
//! A channel is one file that implements [`Channel`] and one line in [`Channels::of`].

pub mod email;
pub mod message;
pub mod ntfy;
pub mod seal;
pub mod tap;
pub mod telegram;
pub mod web_push;
pub mod webhook;

use std::sync::Arc;
use std::time::Duration;

use chips_core::notify::{self, Kind, Outcome};
use chips_store::{Endpoint, Notice, WriteError};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use serde::Deserialize;
use tokio::sync::watch;

use crate::config::Config;
use crate::outbound::Outbound;
use crate::state::AppState;
use crate::words::{LANGUAGES, Words};
use email::{Email, Mailer};
use message::Message;
use tap::Taps;
use telegram::bot::Bot;
use web_push::vapid::Vapid;

/// Messages under way at the same time, at most one for each endpoint.
const AT_ONCE: usize = 64;
/// The longest that one send may take, whatever the channel does: less than a claim lasts.
const LONGEST: Duration = Duration::from_secs(40);
/// How long to wait after the store could not be written.
const RETRY: Duration = Duration::from_secs(2);
/// How long messages under way may take once the server stops.
const DRAIN: Duration = Duration::from_secs(3);
/// The longest sleep by a clock that is moved by hand: nobody says when it is.
const LONGEST_SLEEP_BY_HAND: Duration = Duration::from_millis(50);
/// The longest sleep otherwise: a machine that was asleep is noticed in good time.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// A way to reach somebody.
pub trait Channel: Send + Sync {
    /// Which one it is.
    fn channel(&self) -> notify::Channel;

    /// Sends a message, and tells what the other side made of it. It is given some time and then cut off; what it can't carry (a taking back,
    /// say, on a channel that has none) it takes as [`Outcome::Accepted`] without sending anything. A channel whose messages can be changed
    /// says what the other side calls each ([`Outcome::AcceptedAs`]), and finds that again in [`Notice::earlier`].
    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome>;

    /// Sends a message about no question, for the person who has just set the endpoint up.
    fn try_out<'a>(&'a self, endpoint: &'a Endpoint, message: &'a Message) -> BoxFuture<'a, Outcome>;
}

/// The channels that this server has.
#[derive(Clone)]
pub struct Channels {
    all: Arc<[Box<dyn Channel>]>,
}

impl Channels {
    /// The channels that the configuration turns on.
    pub fn of(
        config: &Config,
        outbound: &Outbound,
        taps: &Taps,
        vapid: &Vapid,
        mailer: Option<&Mailer>,
        bot: Option<&Bot>,
    ) -> Self {
        let mut all: Vec<Box<dyn Channel>> = vec![
            Box::new(web_push::WebPush::new(outbound.clone(), taps.clone(), vapid.clone())),
            Box::new(ntfy::Ntfy::new(outbound.clone(), taps.clone(), config.base_url())),
            Box::new(webhook::Webhook::personal(outbound.clone())),
            Box::new(webhook::Webhook::of_harnesses(outbound.clone())),
        ];
        if let Some(mailer) = mailer {
            all.push(Box::new(Email::new(mailer.clone())));
        }
        if let Some(bot) = bot {
            all.push(Box::new(telegram::Telegram::new(bot.clone())));
        }
        Self { all: all.into() }
    }

    /// Whether this server has a channel.
    pub fn has(&self, channel: notify::Channel) -> bool {
        self.find(channel).is_some()
    }

    async fn send(&self, notice: &Notice, message: &Message) -> Outcome {
        match self.find(notice.endpoint.channel) {
            Some(channel) => within(channel.send(notice, message)).await,
            None => turned_off(),
        }
    }

    /// Sends a test message, and tells what the other side made of it.
    pub async fn try_out(&self, endpoint: &Endpoint, base_url: &str) -> Outcome {
        match self.find(endpoint.channel) {
            Some(channel) => within(channel.try_out(endpoint, &Message::trial(base_url, language(endpoint)))).await,
            None => turned_off(),
        }
    }

    fn find(&self, channel: notify::Channel) -> Option<&dyn Channel> {
        self.all.iter().find(|known| known.channel() == channel).map(AsRef::as_ref)
    }
}

/// The language that an endpoint's owner reads, where the endpoint says one.
fn language(endpoint: &Endpoint) -> &'static Words {
    #[derive(Deserialize)]
    struct Speaks {
        lang: Option<String>,
    }
    let speaks: Option<Speaks> = serde_json::from_str(&endpoint.secret).ok();
    speaks.and_then(|speaks| Words::of(&speaks.lang?)).unwrap_or(LANGUAGES[0])
}

async fn within(send: BoxFuture<'_, Outcome>) -> Outcome {
    tokio::time::timeout(LONGEST, send).await.unwrap_or(Outcome::TimedOut)
}

fn turned_off() -> Outcome {
    Outcome::Refused("this channel is turned off on the server".to_owned())
}

/// Plans and sends until the server stops.
pub async fn run(state: AppState) {
    let mut appended = state.store.appended();
    let mut access = state.store.access_changes();
    let longest = if state.store.clock().is_manual() { LONGEST_SLEEP_BY_HAND } else { LONGEST_SLEEP };
    let mut under_way = FuturesUnordered::new();
    loop {
        let next = match round(&state, AT_ONCE - under_way.len()).await {
            Ok((notices, next)) => {
                let more = !notices.is_empty();
                notices.into_iter().for_each(|notice| under_way.push(send(&state, notice)));
                if more { Duration::ZERO } else { next.min(longest) }
            }
            Err(WriteError::Failed) => break,
            Err(error) => {
                tracing::warn!(%error, "what is to be told could not be planned; it is tried again");
                RETRY
            }
        };
        tokio::select! {
            () = state.stopping.cancelled() => break,
            // The next round looks for itself what has changed.
            changed = changed(&mut appended, &mut access) => if !changed { break },
            Some(()) = under_way.next() => {}
            () = tokio::time::sleep(next), if under_way.len() < AT_ONCE => {}
        }
    }
    // Whatever is not over by then is sent again after the next start.
    let rest = async { while under_way.next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN, rest).await;
}

/// Something was appended, or administration changed something. False where the store is gone.
async fn changed(appended: &mut watch::Receiver<u64>, access: &mut watch::Receiver<u64>) -> bool {
    tokio::select! {
        changed = appended.changed() => changed.is_ok(),
        changed = access.changed() => changed.is_ok(),
    }
}

/// Plans, claims at most so many messages, and tells how long it is until the next one is due.
async fn round(state: &AppState, room: usize) -> Result<(Vec<Notice>, Duration), WriteError> {
    let store = &state.store;
    store.plan_notices(&state.presence.in_sight()).await?;
    let unread =
        |error: chips_store::StoreError| WriteError::Unavailable { reason: error.to_string(), retry_after_s: 2 };
    let Some(due) = store.next_notice().await.map_err(unread)? else { return Ok((Vec::new(), LONGEST_SLEEP)) };
    let wait = due.ms().saturating_sub(store.clock().now().ms());
    if wait > 0 || room == 0 {
        return Ok((Vec::new(), Duration::from_millis(wait.max(0).unsigned_abs())));
    }
    let notices = store.claim_notices(room).await?;
    // Where all that is due waits for its endpoint, the end of a send wakes the loop.
    Ok((notices, RETRY))
}

async fn send(state: &AppState, notice: Notice) {
    let message = Message::of(&notice, &state.config.base_url(), language(&notice.endpoint));
    let outcome = state.channels.send(&notice, &message).await;
    state.metrics.told(notice.endpoint.channel, &outcome);
    // Neither where it went nor what the other side said: both can hold what only the person may know.
    tracing::info!(
        ask_id = %notice.ask.ask_id, channel = %notice.endpoint.channel, endpoint = notice.endpoint.endpoint_id,
        kind = notice.kind.as_str(), tries = notice.tries + 1, outcome = outcome.as_str(), "told"
    );
    if notice.kind == Kind::Answered && outcome.is_accepted() {
        state.store.mark_delivered(notice.workspace_id, notice.ask.ask_id);
    }
    // Not random for secrecy, only different from one message to the next.
    let jitter = f64::from(notice.no.wrapping_mul(0x9e37_79b9).rem_euclid(1000) as u16) / 1000.0;
    // The claim passes to the next sender where this can't be written.
    if let Err(error) = state.store.record_attempt(&notice, outcome, jitter).await {
        tracing::warn!(%error, ask_id = %notice.ask.ask_id, "what became of a message could not be recorded");
    }
}
