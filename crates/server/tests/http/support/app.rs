//! A running server with two workspaces and everybody that a test needs.

use std::net::SocketAddr;

use chips_core::{Sender, Who};
use chips_protocol::{HarnessId, ParticipantId, SpaceId, Timestamp, validate};
use chips_server::{Config, Ended, bind};
use chips_store::admin::{self, Admin, Initialised};
use chips_store::clock::{ManualTime, TimeSource};
use chips_store::{Location, Options, Store, Submitted};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Home;
use super::actor::{Actor, Clients};

/// How a server is to be started.
#[derive(Clone)]
pub struct Setup {
    pub config: Config,
    pub options: Options,
}

impl Default for Setup {
    fn default() -> Self {
        Self { config: Config::on(SocketAddr::from(([127, 0, 0, 1], 0))), options: Options::default() }
    }
}

impl Setup {
    /// Chips' clock is moved by hand.
    pub fn by_hand() -> (Self, ManualTime) {
        let time = ManualTime::at(Timestamp::from_ms(1_790_000_000_000));
        let options = Options { time: TimeSource::Manual(time.clone()), ..Options::default() };
        (Self { options, ..Self::default() }, time)
    }

    /// With other limits.
    pub fn limited(change: impl FnOnce(&mut chips_server::config::Limits)) -> Self {
        let mut setup = Self::default();
        change(&mut setup.config.limits);
        setup
    }
}

/// A server, and who speaks to it.
pub struct TestApp {
    pub address: SocketAddr,
    pub store: Store,
    /// A harness, and a second one of the same workspace.
    pub harness: Actor,
    pub other_harness: Actor,
    /// A person who owns the workspace.
    pub person: Actor,
    /// Another person of it.
    pub colleague: Actor,
    /// Of another workspace.
    pub foreign_harness: Actor,
    pub foreign_person: Actor,
    /// An open space of the workspace.
    pub space: SpaceId,
    /// One that the person is in and the colleague is not.
    pub closed_space: SpaceId,
    pub foreign_space: SpaceId,
    home: Home,
    setup: Setup,
    stop: CancellationToken,
    running: Option<JoinHandle<Ended>>,
}

impl TestApp {
    pub async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        // A client for plain http asks for a provider of cryptography too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = if crate::ON_POSTGRES { Home::schema() } else { Home::folder() };
        let own = admin::init(home.path()).unwrap();
        let mut hand = Admin::open(home.path()).unwrap();
        let other = hand.add_harness(own.workspace_id, "Other harness").unwrap();
        let (colleague, _) = hand.add_person(own.workspace_id, "Colleague").unwrap();
        let closed_space = hand.add_space(own.workspace_id, "Closed", &[own.person.id]).unwrap();
        let foreign = hand.add_workspace("Foreign").unwrap();
        drop(hand);

        let (address, store, stop, running) = serve(home.path(), &setup).await;
        let clients = Clients::default();
        let actor = |initialised: &Initialised, id: ParticipantId, token: &str| {
            Actor::new(clients.clone(), address, initialised.workspace_id, id, token)
        };
        Self {
            harness: actor(&own, ParticipantId::Harness(own.harness.id), &own.harness.token),
            other_harness: actor(&own, ParticipantId::Harness(other.id), &other.token),
            person: actor(&own, ParticipantId::Person(own.person.id), &own.person.token),
            colleague: actor(&own, ParticipantId::Person(colleague.id), &colleague.token),
            foreign_harness: actor(&foreign, ParticipantId::Harness(foreign.harness.id), &foreign.harness.token),
            foreign_person: actor(&foreign, ParticipantId::Person(foreign.person.id), &foreign.person.token),
            space: own.space_id,
            closed_space,
            foreign_space: foreign.space_id,
            address,
            store,
            home,
            setup,
            stop,
            running: Some(running),
        }
    }

    /// A hand in the data folder, beside the server.
    pub fn admin(&self) -> Admin {
        Admin::open(self.home.path()).unwrap()
    }

    /// The harness's own identifier.
    pub fn harness_id(&self) -> HarnessId {
        self.harness.id.to_string().parse().unwrap()
    }

    /// Appends events of the harness beside HTTP, all at once: for a log that is only there to be read.
    pub async fn append(&self, events: &[Value]) {
        let sender = Sender { workspace_id: self.harness.workspace_id, who: Who::Harness(self.harness_id()) };
        let submits = events.iter().map(|event| self.store.submit(sender, validate::draft(event).unwrap()));
        for submitted in super::within(futures::future::join_all(submits)).await {
            assert!(matches!(submitted.unwrap(), Submitted::Appended(_)));
        }
    }

    /// Tells the server to stop; [`TestApp::ended`] waits for it.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// How the server ended.
    pub async fn ended(&mut self) -> Ended {
        super::within(self.running.take().unwrap()).await.unwrap()
    }

    /// Stops the server, lets something happen and starts it again on the same folder (and another port).
    pub async fn restart(&mut self, meanwhile: impl FnOnce()) {
        self.stop();
        assert!(matches!(self.ended().await, Ended::Stopped));
        meanwhile();
        self.restart_after_end().await;
    }

    /// Starts it again after it has ended.
    pub async fn restart_after_end(&mut self) {
        let (address, store, stop, running) = serve(self.home.path(), &self.setup).await;
        (self.address, self.store, self.stop, self.running) = (address, store, stop, Some(running));
        for actor in [
            &mut self.harness,
            &mut self.other_harness,
            &mut self.person,
            &mut self.colleague,
            &mut self.foreign_harness,
            &mut self.foreign_person,
        ] {
            actor.address = address;
        }
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn serve(location: Location, setup: &Setup) -> (SocketAddr, Store, CancellationToken, JoinHandle<Ended>) {
    let store = Store::open(location, setup.options.clone()).unwrap();
    let server = bind(setup.config.clone(), store.clone()).await.unwrap();
    let address = server.address();
    let stop = CancellationToken::new();
    let running = tokio::spawn(server.run(stop.clone()));
    (address, store, stop, running)
}
