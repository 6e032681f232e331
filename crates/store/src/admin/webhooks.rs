//! The addresses that harnesses have their answers posted to.

use crate::sql::{OptionalExtension, Transaction};
use chips_core::notify::Channel;
use chips_protocol::{AskId, HarnessId, Timestamp};

use super::{Admin, AdminError, acts, write};
use crate::NewEndpoint;
use crate::engine::{endpoints, rows};
use crate::notice::ENDPOINTS_MOST;

/// An address that a harness has its answers posted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// A number that names it.
    pub id: i64,
    /// Whose it is.
    pub harness_id: HarnessId,
    /// The address.
    pub url: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// Whether nothing is sent to it any more: the other side said 410.
    pub disabled: bool,
    /// What the other side said last, where it did not accept.
    pub trouble: Option<String>,
    /// Answers that wait to be taken.
    pub waiting: u64,
}

impl Admin {
    /// Adds an address of a harness, with what the channel signs with. One that was disabled is renewed, with these keys. Gives its
    /// number.
    ///
    /// # Errors
    /// No such harness, it is disabled, or it has too many; or it has that address: whoever receives there checks with the key of then.
    pub fn add_webhook(&mut self, harness: HarnessId, url: &str, secret: &str) -> Result<i64, AdminError> {
        write(&mut self.connection, |transaction| {
            let found = acts::find_harness(transaction, harness)?;
            if found.disabled {
                return Err(AdminError::Refused(format!("{harness} is disabled")));
            }
            let known: Option<i64> = transaction
                .query_row(
                    "SELECT no FROM endpoints WHERE harness_no = ?1 AND channel = ?2 AND address = ?3 AND disabled_at IS NULL",
                    (found.no, Channel::HarnessWebhook.as_str(), url),
                    |row| row.get(0),
                )
                .optional()?;
            if let Some(no) = known {
                return Err(AdminError::Refused(format!(
                    "{harness} has its answers posted there already, as webhook {no}; `chips harness webhook rotate {no}` makes a new key"
                )));
            }
            let endpoint = NewEndpoint {
                channel: Channel::HarnessWebhook,
                address: url.to_owned(),
                secret: secret.to_owned(),
                name: url.to_owned(),
                session_id: None,
            };
            endpoints::insert(transaction, found.ws_no, (None, Some(found.no)), &endpoint, acts::now(transaction)?)?
                .ok_or_else(|| {
                    AdminError::Refused(format!("{harness} has {ENDPOINTS_MOST} addresses already; remove one first"))
                })
        })
    }

    /// The addresses of one harness, or of all.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn webhooks(&mut self, harness: Option<HarnessId>) -> Result<Vec<Webhook>, AdminError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT e.no, h.harness_id, e.address, e.created_at, e.disabled_at IS NOT NULL, e.trouble,
                    (SELECT count(*) FROM outbox o WHERE o.ws_no = e.ws_no AND o.endpoint_no = e.no AND o.state = 0)
             FROM endpoints e JOIN harnesses h ON h.no = e.harness_no
             WHERE ?1 IS NULL OR h.harness_id = ?1 ORDER BY e.no",
        )?;
        let found = statement.query_map([harness.map(HarnessId::to_bytes)], |row| {
            Ok(Webhook {
                id: row.get(0)?,
                harness_id: HarnessId::from_bytes(row.get(1)?),
                url: row.get(2)?,
                created_at: Timestamp::from_ms(row.get(3)?),
                disabled: row.get(4)?,
                trouble: row.get(5)?,
                waiting: row.get::<_, i64>(6)?.unsigned_abs(),
            })
        })?;
        Ok(found.collect::<crate::sql::Result<_>>()?)
    }

    /// Removes an address, with what waited for it.
    ///
    /// # Errors
    /// No such address.
    pub fn remove_webhook(&mut self, id: i64) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| {
            match transaction.execute("DELETE FROM endpoints WHERE no = ?1 AND harness_no IS NOT NULL", [id])? {
                0 => Err(no_webhook(id)),
                _ => Ok(()),
            }
        })
    }

    /// Changes what the channel signs with.
    ///
    /// # Errors
    /// No such address, or `change` refuses what is there.
    pub fn change_webhook(
        &mut self,
        id: i64,
        change: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| {
            let secret: String = transaction
                .query_row("SELECT secret FROM endpoints WHERE no = ?1 AND harness_no IS NOT NULL", [id], |row| {
                    row.get(0)
                })
                .optional()?
                .ok_or_else(|| no_webhook(id))?;
            let changed = change(&secret).map_err(AdminError::Refused)?;
            transaction.execute("UPDATE endpoints SET secret = ?2 WHERE no = ?1", (id, changed))?;
            Ok(())
        })
    }

    /// Has the answer of an ask posted again, though it was taken or given up.
    ///
    /// # Errors
    /// No such address, it is disabled, or its harness has no such ask with an answer.
    pub fn resend_webhook(&mut self, id: i64, ask_id: AskId) -> Result<(), AdminError> {
        write(&mut self.connection, |transaction| resend(transaction, id, ask_id))
    }
}

fn resend(transaction: &Transaction<'_>, id: i64, ask_id: AskId) -> Result<(), AdminError> {
    let (ws_no, harness_no, disabled): (i64, i64, bool) = transaction
        .query_row(
            "SELECT ws_no, harness_no, disabled_at IS NOT NULL FROM endpoints WHERE no = ?1 AND harness_no IS NOT NULL",
            [id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?
        .ok_or_else(|| no_webhook(id))?;
    if disabled {
        let again = "the other side said 410 there; add the address anew once it is back";
        return Err(AdminError::Refused(format!("webhook {id} is disabled: {again}")));
    }
    let (pos, state): (i64, i64) = transaction
        .query_row(
            "SELECT pos, state FROM asks WHERE ws_no = ?1 AND ask_id = ?2 AND harness_no = ?3",
            (ws_no, ask_id.to_bytes(), harness_no),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?
        .ok_or_else(|| AdminError::NotFound(format!("the harness of webhook {id} has no ask {ask_id}")))?;
    if rows::state_of(state)? == chips_protocol::api::AskState::Open {
        return Err(AdminError::Refused(format!("{ask_id} is open: it has no answer that could be sent")));
    }
    transaction.execute(
        "INSERT INTO outbox (ws_no, ask_pos, endpoint_no, kind, round, due_at, claimed_until, tries, state)
         SELECT ?1, ?2, ?3, 4, coalesce(max(round) + 1, 0), ?4, 0, 0, 0 FROM outbox
         WHERE ws_no = ?1 AND ask_pos = ?2 AND endpoint_no = ?3 AND kind = 4",
        (ws_no, pos, id, acts::now(transaction)?.ms()),
    )?;
    Ok(())
}

fn no_webhook(id: i64) -> AdminError {
    AdminError::NotFound(format!("there is no webhook {id}; see `chips harness webhook list`"))
}
