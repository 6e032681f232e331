//! The asynchronous runtime: built per command, by those that need one.

use std::future::Future;
use std::time::Duration;

use anyhow::Context;

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
    use tokio::signal::unix::{SignalKind, signal};
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
