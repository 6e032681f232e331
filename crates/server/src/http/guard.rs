//! A connection that is cut off when its peer takes nothing of what is written to it.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What the system keeps of unsent bytes for one connection. Small enough that a reader who stops reading is noticed,
/// large enough for a line with a long way (2 MB/s at 100 ms).
const SEND_BUFFER: usize = 128 * 1024;
/// How long a connection may be silent before the system asks whether the other end is still there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEPALIVE_TIMES: u32 = 4;

/// A TCP connection whose writes fail once the peer has taken nothing for some time. The timer costs nothing while there is
/// nothing to write.
pub(crate) struct Guarded {
    stream: Arc<TcpStream>,
    patience: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Guarded {
    /// Guards a connection whose peer may take nothing for as long as `patience`.
    pub(crate) fn new(stream: Arc<TcpStream>, patience: Duration) -> Self {
        tune(&stream, patience);
        Self { stream, patience, stalled: None }
    }

    /// Passes the outcome of a write on; one that waits is given up when the time is up.
    fn watched<T>(&mut self, outcome: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let timer = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer stopped reading")))
    }
}

/// Small writes at once, a bounded send buffer, and an end to connections whose other end is gone without a word. Each is
/// a help and no promise, so a system that refuses one is no error.
fn tune(stream: &TcpStream, patience: Duration) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(stream, SEND_BUFFER);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::net::sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE);
        let _ = rustix::net::sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY);
        let _ = rustix::net::sockopt::set_tcp_keepcnt(stream, KEEPALIVE_TIMES);
        let patience_ms = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, patience_ms);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (patience, KEEPALIVE_IDLE, KEEPALIVE_EVERY, KEEPALIVE_TIMES);
}

impl AsyncRead for Guarded {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(buf.initialize_unfilled()) {
                Ok(count) => {
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = when_writable(&self.stream, cx, |stream| stream.try_write(bytes));
        self.watched(outcome, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = when_writable(&self.stream, cx, |stream| stream.try_write_vectored(slices));
        self.watched(outcome, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Write) {
            // The peer was faster.
            Err(rustix::io::Errno::NOTCONN) => Poll::Ready(Ok(())),
            outcome => Poll::Ready(outcome.map_err(io::Error::from)),
        }
    }
}

fn when_writable(
    stream: &TcpStream,
    cx: &mut Context<'_>,
    write: impl Fn(&TcpStream) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(cx))?;
        match write(stream) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return Poll::Ready(outcome),
        }
    }
}
