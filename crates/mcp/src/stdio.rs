//! MCP on standard input and output.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{JsonRpcError, JsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::desk::Desk;
use crate::lines::{self, Lines};
use crate::memory::{Memory, Receipts};
use crate::pace::{Link, Pace};
use crate::tools::Tools;

/// Serves one client until it closes standard input, or `stop` is cancelled. Nothing but JSON-RPC goes to standard output.
///
/// # Errors
/// What stood in the way of the handshake, in words.
pub async fn serve<D: Desk>(desk: Arc<D>, pace: Pace, stop: CancellationToken) -> Result<(), String> {
    let closed = stop.child_token();
    let tools = Tools {
        desk: desk.clone(),
        memory: Arc::new(Memory::default()),
        pace,
        link: Link::Stdio,
        client: None,
        receipts: Receipts::default(),
        closed: closed.clone(),
    };
    let Lines { readable, refusals } = lines::look_at(tokio::io::stdin());
    let transport = Told {
        inner: AsyncRwTransport::new_server(readable, tokio::io::stdout()),
        refusals,
        desk,
        memory: tools.memory.clone(),
        receipts: tools.receipts.clone(),
        closed,
    };
    match serve_server_with_ct(tools, transport, stop).await {
        Ok(running) => {
            running.waiting().await.map_err(|error| error.to_string())?;
            Ok(())
        }
        // A client that only looked whether the program starts, or went away.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// A transport that notes which outcomes have gone out, and when the client has gone.
struct Told<T, D> {
    inner: T,
    /// Replies to lines that can't be read.
    refusals: mpsc::Receiver<JsonRpcError>,
    desk: Arc<D>,
    memory: Arc<Memory>,
    receipts: Receipts,
    closed: CancellationToken,
}

impl<T: Transport<RoleServer>, D: Desk> Transport<RoleServer> for Told<T, D> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outcome = match &item {
            JsonRpcMessage::Response(response) => self.receipts.take(&response.id),
            _ => None,
        };
        let (desk, memory) = (self.desk.clone(), self.memory.clone());
        // Before it is out: the client may ask the next question the moment that it is.
        outcome.inspect(|ask_id| memory.handed.insert(*ask_id));
        let sending = self.inner.send(item);
        async move {
            let sent = sending.await;
            match (&sent, outcome) {
                (Ok(()), Some(ask_id)) => desk.handed_over(ask_id).await,
                (Err(_), Some(ask_id)) => memory.handed.remove(ask_id),
                (_, None) => {}
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let received = loop {
            tokio::select! {
                Some(refusal) = self.refusals.recv() => {
                    // In its turn among the other messages; the next line is not waited for.
                    tokio::spawn(self.inner.send(JsonRpcMessage::Error(refusal)));
                }
                received = self.inner.receive() => break received,
            }
        };
        if received.is_none() {
            self.closed.cancel();
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
