//! The log as it stands, event by event.

use crate::sql::Transaction;
use chips_protocol::WorkspaceId;

use super::{Admin, AdminError, acts};
use crate::engine::rows;

/// Events that one read gives at most.
const ROWS: i64 = 2_000;
/// Bytes of JSON after which one read returns with what it has.
const BYTES: usize = 4 << 20;

/// An export under way: the log as it stood at one moment.
///
/// Events are only ever appended, so what stood up to the head of that moment is read in bounded steps: a reader that takes
/// its time keeps no view of the database open, which would let the write-ahead log grow. The two acts that change what
/// stands (erasing, dropping) end an export that they meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    ws_no: i64,
    next: u64,
    head: u64,
    erasures: i64,
}

impl Export {
    /// The `seq` of the last event that belongs to it.
    pub fn head(&self) -> u64 {
        self.head
    }
}

impl Admin {
    /// Begins an export of a workspace's log: the events after `since`, or all that are kept.
    ///
    /// # Errors
    /// No such workspace, or `since` is past the last event or before what is kept.
    pub fn export(&mut self, workspace: WorkspaceId, since: Option<u64>) -> Result<Export, AdminError> {
        let transaction = self.connection.transaction()?;
        let ws_no = acts::workspace_no(&transaction, workspace)?;
        let (head, _) = rows::head(&transaction, ws_no)?;
        let (kept_from, _) = rows::kept_from(&transaction, ws_no)?;
        let next = match since {
            None => kept_from,
            Some(since) if since > head => {
                return Err(AdminError::Refused(format!(
                    "the last event is {head}, so there was never one up to {since} to export since; \
                     give a smaller --since, or leave it out for all events"
                )));
            }
            Some(since) if since + 1 < kept_from => {
                return Err(AdminError::Refused(format!(
                    "events up to {} are not kept any more, so those since {since} can't all be exported; \
                     leave --since out for all that are kept",
                    kept_from - 1
                )));
            }
            Some(since) => since + 1,
        };
        let erasures = erasures(&transaction)?;
        Ok(Export { ws_no, next, head, erasures })
    }

    /// The next events of an export, each as JSON on one line, in the order of their `seq`; none where it is complete.
    ///
    /// # Errors
    /// Text was erased or events were dropped since it began: what was read before does not fit what would come.
    pub fn export_next(&mut self, export: &mut Export) -> Result<Vec<String>, AdminError> {
        if export.next > export.head {
            return Ok(Vec::new());
        }
        let transaction = self.connection.transaction()?;
        let again = |what: &str| AdminError::Refused(format!("{what} while the export ran; export anew"));
        if erasures(&transaction)? != export.erasures {
            return Err(again("text was erased"));
        }
        if rows::kept_from(&transaction, export.ws_no)?.0 > export.next {
            return Err(again("events were dropped"));
        }
        let mut statement = transaction.prepare_cached(
            "SELECT pos, body FROM events NOT INDEXED WHERE ws_no = ?4 AND pos BETWEEN ?1 AND ?2 ORDER BY pos LIMIT ?3",
        )?;
        let (first, last) = (rows::pos(export.ws_no, export.next), rows::pos(export.ws_no, export.head));
        let mut found = statement.query((first, last, ROWS, export.ws_no))?;
        let (mut lines, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES
            && let Some(row) = found.next()?
        {
            let (pos, body): (i64, String) = (row.get(0)?, row.get(1)?);
            bytes += body.len();
            export.next = rows::seq(pos) + 1;
            lines.push(body);
        }
        Ok(lines)
    }
}

/// Goes up with everything that is erased.
fn erasures(transaction: &Transaction<'_>) -> Result<i64, AdminError> {
    Ok(transaction.query_row("SELECT erasures FROM meta", [], |row| row.get(0))?)
}
