//! What the writer is given to do.

use std::sync::Arc;

use chips_core::{Refusal, Sender};
use chips_protocol::{Draft, WorkspaceId};
use tokio::sync::oneshot;

use super::shared::Shared;
use super::writer::Work;
use crate::WriteError;
use crate::sql::Result;

/// Something that the writer carries out.
pub(crate) trait Task: Send {
    /// Carries it out in the open transaction. It may be called again after a rollback.
    fn run(&mut self, work: &mut Work<'_>) -> Result<()>;
    /// What it was asked for within, where somebody asked: what is logged of it belongs to that.
    fn span(&self) -> Option<&tracing::Span> {
        None
    }
    /// The workspace that it works in, where that is known beforehand.
    fn workspace(&self) -> Option<WorkspaceId> {
        None
    }
    /// The client's write that it is, where it is one: what that needs to know can be looked up beforehand.
    fn client_write(&self) -> Option<(&Sender, &Draft)> {
        None
    }
    /// Tells whoever waits, once it is known whether it was committed.
    fn tell(self: Box<Self>, outcome: Result<(), WriteError>);
}

/// A command that somebody waits for. Refusals are outcomes: what came with one is committed.
pub(crate) trait Command: Send + 'static {
    /// What is told when it is not refused.
    type Done: Send + 'static;
    /// The workspace that it works in, where that is known beforehand.
    fn workspace(&self) -> Option<WorkspaceId> {
        None
    }
    /// The client's write that it is, where it is one.
    fn client_write(&self) -> Option<(&Sender, &Draft)> {
        None
    }
    /// Judges it and writes what follows.
    fn run(&self, work: &mut Work<'_>) -> Result<Result<Self::Done, Refusal>>;
}

/// A command on its way through the writer. The sender may have left: it is carried out all the same.
pub(crate) struct Call<C: Command> {
    pub(crate) command: C,
    pub(crate) outcome: Option<Result<C::Done, Refusal>>,
    pub(crate) reply: oneshot::Sender<Result<C::Done, WriteError>>,
    pub(crate) span: tracing::Span,
    pub(crate) shared: Arc<Shared>,
}

impl<C: Command> Task for Call<C> {
    fn run(&mut self, work: &mut Work<'_>) -> Result<()> {
        self.outcome = Some(self.command.run(work)?);
        Ok(())
    }

    fn span(&self) -> Option<&tracing::Span> {
        Some(&self.span)
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.command.workspace()
    }

    fn client_write(&self) -> Option<(&Sender, &Draft)> {
        self.command.client_write()
    }

    fn tell(self: Box<Self>, outcome: Result<(), WriteError>) {
        let Self { outcome: judged, reply, span, shared, .. } = *self;
        let told = outcome.and_then(|()| match judged {
            Some(judged) => judged.map_err(WriteError::from),
            None => Err(WriteError::Failed),
        });
        span.in_scope(|| match &told {
            Ok(_) => tracing::trace!("the writer is done with it"),
            Err(WriteError::Refused(refusal)) => {
                shared.figures.refused(refusal);
                tracing::debug!(code = refusal.code().as_str(), "the rules refuse it");
            }
            Err(error) => tracing::debug!(%error, "it was not written"),
        });
        let _ = reply.send(told);
    }
}
