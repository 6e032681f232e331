//! The asynchronous runtime: built per command, by those that need one.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::output;

/// Runs a client's future to its end, on this thread.
///
/// # Errors
/// The runtime can't be built, or what the future returns.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("can't start")?;
    let result = runtime.block_on(future);
    // A read of the terminal that nobody waits for any more must not hold the process up.
    runtime.shutdown_background();
    result
}

/// Resolves when the process is told to end: SIGINT, SIGTERM or SIGHUP.
///
/// # Errors
/// Signals can't be listened for.
pub fn signalled() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Runs a server's future to its end, on a thread for each core.
///
/// # Errors
/// The runtime can't be built, or what the future returns.
pub fn serve<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("can't start")?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

/// How long after the first signal the process is gone at the latest; the server drains for 8 s of it.
const GONE_AFTER: Duration = Duration::from_millis(9_500);

/// The signals that end the server.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes them from here on.
    ///
    /// # Errors
    /// The system gives none.
    pub fn take() -> anyhow::Result<Self> {
        let take = |kind| signal(kind).context("can't listen for signals");
        Ok(Self { terminate: take(SignalKind::terminate())?, interrupt: take(SignalKind::interrupt())? })
    }

    /// The next signal, as the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }

    /// Stops the server at the first signal and ends the process at the second, or when the time is up.
    pub async fn stop(mut self, stop: CancellationToken) {
        self.next().await;
        stop.cancel();
        if output::is_terminal() {
            output::note("\nstopping; Ctrl-C again ends it at once");
        }
        // Whatever was acknowledged is on the disk: ending at once loses nothing.
        match tokio::time::timeout(GONE_AFTER, self.next()).await {
            Ok(code) => std::process::exit(code),
            Err(_) => std::process::exit(0),
        }
    }
}
