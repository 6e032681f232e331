//! The ways to reach people outside the inbox, and harnesses by webhook.
//!
//! A channel is one file that implements [`Channel`] and one line in [`Channels::of`]; it knows nothing of the server around it.

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

use chips_core::notify::{self, Outcome};
use chips_store::{Endpoint, Notice};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use crate::config::Config;
use crate::outbound::Outbound;
use crate::words::{LANGUAGES, Words};
use email::{Email, Mailer};
use message::Message;
use tap::Taps;
use telegram::bot::Bot;
use web_push::vapid::Vapid;

/// The longest that one send may take, whatever the channel does: less than a claim lasts.
const LONGEST: Duration = Duration::from_secs(40);

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

    /// Sends what a notice says, in the language of whoever it is for, and tells what the other side made of it.
    pub async fn send(&self, notice: &Notice, base_url: &str) -> Outcome {
        let message = &Message::of(notice, base_url, language(&notice.endpoint));
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
pub(crate) fn language(endpoint: &Endpoint) -> &'static Words {
    #[derive(Deserialize)]
    struct Speaks {
        lang: Option<String>,
    }
    let speaks: Option<Speaks> = serde_json::from_str(&endpoint.secret).ok();
    speaks.and_then(|speaks| Words::of(&speaks.lang?)).unwrap_or(LANGUAGES[0])
}

/// The same secret of an endpoint whose owner reads this language from now on; nothing where it says so already.
pub(crate) fn speaking(secret: &str, w: &Words) -> Option<String> {
    let mut secret: Value = serde_json::from_str(secret).ok()?;
    let lang = secret.as_object_mut()?.insert("lang".to_owned(), w.lang.into());
    (lang.as_ref().and_then(Value::as_str) != Some(w.lang)).then(|| secret.to_string())
}

async fn within(send: BoxFuture<'_, Outcome>) -> Outcome {
    tokio::time::timeout(LONGEST, send).await.unwrap_or(Outcome::TimedOut)
}

fn turned_off() -> Outcome {
    Outcome::Refused("this channel is turned off on the server".to_owned())
}
