//! What can go wrong with a store.

use std::path::PathBuf;

use chips_core::Refusal;

use crate::Location;

/// Why a store can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no workspace in it.
    #[error("{} holds no workspace yet; make one with `chips init {}`", .0, .0.flag())]
    Empty(Location),
    /// There is one already.
    #[error("{0} holds a workspace already; nothing was changed")]
    NotEmpty(Location),
    /// Another process serves it.
    #[error("{} is held by process {pid}; end that one first, or give another folder with --data", dir.display())]
    Held {
        /// The folder.
        dir: PathBuf,
        /// The process that holds it.
        pid: String,
    },
    /// A newer version wrote it.
    #[error("{}: a newer version of Chips wrote this (layout {found}, this one knows {known}); use that version", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: i64,
        /// The newest layout that this version knows.
        known: i64,
    },
    /// What is in it is not whole, or is lost.
    #[error("{}: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// It is something else.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        reason: String,
    },
    /// A database can't be reached, is not one to trust with a log, or a newer version works on it.
    #[error("{database}: {reason}")]
    Database {
        /// Where it is, without what is secret.
        database: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A database server that can be reached, and is set so that it must not be trusted with a log or takes no writes.
    #[error("{database}: {reason}")]
    Unfit {
        /// Where it is, without what is secret.
        database: String,
        /// What is set so, and what mends it.
        reason: String,
    },
    /// A database server that can't be reached now, and may be there in a while.
    #[error("{database}: {reason}")]
    Away {
        /// Where it is, without what is secret.
        database: String,
        /// What is seen of it.
        reason: String,
    },
    /// It can't be read or written.
    #[error("{}: {reason}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// The store can't be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store can't be read: {0}")]
pub struct StoreError(pub String);

/// Why a write did not happen.
#[derive(Debug, Clone, thiserror::Error)]
pub enum WriteError {
    /// The rules refuse it.
    #[error("refused: {}", .0.code().as_str())]
    Refused(Box<Refusal>),
    /// Nothing was written, for certain; trying again later may work.
    #[error("the store can't take writes right now: {reason}")]
    Unavailable {
        /// What the system says.
        reason: String,
        /// Whole seconds to wait.
        retry_after_s: u64,
    },
    /// The store has failed (see [`crate::Store::failed`]); whether this was written is unknown.
    #[error("the store has failed")]
    Failed,
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

/// Why the process must end (exit code 70).
#[derive(Debug, Clone, thiserror::Error)]
#[error("the store has failed and the outcome of the last writes is unknown: {0}")]
pub struct Fatal(pub String);
