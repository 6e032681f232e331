//! What every handler gets.

use std::net::SocketAddr;
use std::sync::Arc;

use chips_store::Store;
use tokio_util::sync::CancellationToken;

use crate::auth::Failures;
use crate::channels::Channels;
use crate::channels::email::Mailer;
use crate::channels::email::proof::Proofs;
use crate::channels::tap::Taps;
use crate::channels::telegram::bot::Bot;
use crate::channels::telegram::link::Links;
use crate::channels::web_push::vapid::Vapid;
use crate::config::Config;
use crate::http::hosts::Hosts;
use crate::metrics::Metrics;
use crate::outbound::Outbound;
use crate::presence::Presence;
use crate::request_id::RequestIds;

/// What every handler gets.
#[derive(Clone)]
pub struct AppState {
    /// The log and what is derived from it.
    pub store: Store,
    /// What the server was told at its start; the port of `listen` is the real one.
    pub config: Arc<Config>,
    /// Cancelled when the server stops: streams and waits end then.
    pub stopping: CancellationToken,
    /// The host names that are answered for.
    pub hosts: Arc<Hosts>,
    /// Failed tokens.
    pub token_failures: Arc<Failures>,
    /// Failed sign-ins.
    pub sign_in_failures: Arc<Failures>,
    /// Figures for the operator.
    pub metrics: Arc<Metrics>,
    /// The MCP side.
    pub mcp: Arc<chips_mcp::http::Front>,
    /// Numbers for requests, to find one in the log by.
    pub requests: Arc<RequestIds>,
    /// Who has a page in sight.
    pub presence: Arc<Presence>,
    /// The only way to addresses that somebody gave.
    pub outbound: Outbound,
    /// The ways to reach people outside the inbox.
    pub channels: Channels,
    /// The answers that can be tapped beside a message.
    pub taps: Taps,
    /// The key that push services know this server by.
    pub vapid: Vapid,
    /// The way to the operator's mail server, where there is one.
    pub mailer: Option<Mailer>,
    /// The mail addresses that wait for their proof.
    pub proofs: Arc<Proofs>,
    /// The operator's bot on Telegram, where there is one.
    pub bot: Option<Bot>,
    /// The links by which people connect their chats with it.
    pub links: Links,
}

impl AppState {
    /// The state of a server with this configuration, whose `listen` is the address that it is bound to.
    ///
    /// # Errors
    /// TLS can't be spoken.
    pub fn new(config: Config, store: Store) -> Result<Self, StartError> {
        let outbound = Outbound::new(&config.allow_outbound)
            .map_err(|error| StartError::Config(format!("nothing can be sent to anybody: {error}")))?;
        let taps = Taps::new(store.clone());
        let started = store.clock().now();
        let vapid = Vapid::new(store.clone(), config.public_url.as_ref());
        let mailer = Mailer::of(&config, &store).map_err(StartError::Config)?;
        let bot = config.telegram.as_ref().map(|telegram| Bot::new(outbound.clone(), telegram));
        Ok(Self {
            presence: Arc::default(),
            channels: Channels::of(&config, &outbound, &taps, &vapid, mailer.as_ref(), bot.as_ref()),
            bot,
            links: Links::new(store.clone()),
            mailer,
            proofs: Arc::default(),
            outbound,
            taps,
            vapid,
            store,
            hosts: Arc::new(Hosts::of(&config)),
            mcp: Arc::new(chips_mcp::http::Front::new(config.mcp, config.limits.comment)),
            config: Arc::new(config),
            stopping: CancellationToken::new(),
            token_failures: Arc::default(),
            sign_in_failures: Arc::default(),
            metrics: Arc::new(Metrics::new(started)),
            requests: Arc::default(),
        })
    }
}

/// Why a server can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration would serve people's decisions in the clear, or contradicts itself.
    #[error("{0}")]
    Config(String),
    /// The address can't be listened on.
    #[error("can't listen on {address} (give another with --listen)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
}
