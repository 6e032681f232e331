//! The server of a simulation: a real one on a throwaway folder, which can be stopped and started again in one process.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use chips_server::{Config, Ended, Simulation};
use chips_store::clock::{TimeAhead, TimeSource};
use chips_store::{Fatal, Options, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether anybody holds a stream or a wait open.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A server that can be stopped and started again.
pub struct Stage {
    folder: tempfile::TempDir,
    config: Config,
    time: TimeAhead,
    /// What the script does to the server.
    pub simulation: Simulation,
    running: Running,
}

struct Running {
    store: Store,
    metrics: std::sync::Arc<chips_server::metrics::Metrics>,
    stop: CancellationToken,
    ended: JoinHandle<Ended>,
}

impl Stage {
    /// Serves the folder, which is initialised, as this says.
    ///
    /// # Errors
    /// The address can't be listened on, or the folder can't be opened.
    pub async fn start(folder: tempfile::TempDir, config: Config) -> anyhow::Result<Self> {
        let time = TimeAhead::default();
        let simulation = Simulation::new(time.clone());
        let mut config = Config { simulation: Some(simulation.clone()), ..config };
        let (running, address) = Running::start(folder.path(), &config, &time).await?;
        // From here on it is the same port, whichever it was.
        config.listen = address;
        Ok(Self { folder, config, time, simulation, running })
    }

    /// The log and what is derived from it, as it is served at this moment.
    pub fn store(&self) -> &Store {
        &self.running.store
    }

    /// The URL to reach the server by.
    pub fn url(&self) -> String {
        self.config.base_url()
    }

    /// Streams and waits that are open.
    pub async fn held_within(&self, limit: Duration) -> bool {
        let held = async {
            while self.running.metrics.held() == 0 {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(limit, held).await.is_ok()
    }

    /// Stops the server as SIGTERM does, and starts it again on the same folder and port, after this much real time.
    ///
    /// # Errors
    /// The store failed, or the server can't start again.
    pub async fn restart(&mut self, down: Duration) -> anyhow::Result<()> {
        self.running.stop().await?;
        tokio::time::sleep(down).await;
        let started = Running::start(self.folder.path(), &self.config, &self.time).await;
        (self.running, _) = started.context("the server can't start again")?;
        Ok(())
    }

    /// Waits until the store can't go on.
    pub async fn failed(&self) -> Fatal {
        self.running.store.failed().await
    }

    /// Stops the server and removes the folder.
    ///
    /// # Errors
    /// The store failed, or the folder can't be removed.
    pub async fn strike(mut self) -> anyhow::Result<()> {
        self.running.stop().await?;
        drop(self.running);
        self.folder.close().context("the folder of the simulation can't be removed")
    }
}

impl Running {
    async fn start(folder: &Path, config: &Config, time: &TimeAhead) -> anyhow::Result<(Self, SocketAddr)> {
        let options = Options { time: TimeSource::Ahead(time.clone()), ..Options::default() };
        let store = Store::open(folder, options)?;
        let server = chips_server::bind(config.clone(), store.clone()).await?;
        let (address, metrics, stop) = (server.address(), server.metrics(), CancellationToken::new());
        let ended = tokio::spawn(server.run(stop.clone()));
        Ok((Self { store, metrics, stop, ended }, address))
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.stop.cancel();
        match (&mut self.ended).await.context("the server ended by a fault of its own")? {
            Ended::Stopped => Ok(()),
            Ended::Failed(fatal) => Err(fatal.into()),
        }
    }
}
