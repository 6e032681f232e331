//! Whose an address is: somebody who gives one must show that they read what is sent there, before anything about questions
//! goes to it.
//!
//! What waits for its proof is kept in memory alone, for an hour: an address that nobody proves leaves no trace.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use chips_protocol::{PersonId, Timestamp};
use subtle::ConstantTimeEq;

/// How long a code is good for, and over what time mails are counted, in milliseconds.
const HOUR_MS: i64 = 3_600_000;
/// Wrong codes after which a new one is needed.
const TRIES: u8 = 5;
/// Mails with a code in an hour: for one person, to one address whoever names it, and in all.
const MAILS_FOR_ONE: usize = 5;
const MAILS_TO_ONE: usize = 3;
const MAILS: usize = 200;
/// Digits of a code.
const DIGITS: u32 = 8;

/// The addresses that wait for their proof.
#[derive(Debug, Default)]
pub struct Proofs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<PersonId, Pending>,
    /// When a code was sent, for whom, and where to.
    sent: VecDeque<(Timestamp, PersonId, String)>,
}

struct Pending {
    address: String,
    code: String,
    until: Timestamp,
    tries: u8,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("until", &self.until).field("tries", &self.tries).finish_non_exhaustive()
    }
}

/// Why an address is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unproven {
    /// That was another code.
    Wrong,
    /// The code's hour is over, or there were too many wrong ones, or none was sent: another is needed.
    Over,
}

impl Proofs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code for an address, to be sent there and nowhere else; it replaces the person's earlier one. Nothing where too many
    /// were sent already.
    pub fn begin(&self, person: PersonId, address: &str, now: Timestamp) -> Option<String> {
        let code = code()?;
        let mut state = self.state();
        let ago = now.plus_ms(-HOUR_MS);
        while state.sent.front().is_some_and(|(at, ..)| *at <= ago) {
            state.sent.pop_front();
        }
        let folded = address.to_ascii_lowercase();
        let for_one = state.sent.iter().filter(|(_, whose, _)| *whose == person).count();
        let to_one = state.sent.iter().filter(|(.., to)| *to == folded).count();
        if for_one >= MAILS_FOR_ONE || to_one >= MAILS_TO_ONE || state.sent.len() >= MAILS {
            return None;
        }
        state.sent.push_back((now, person, folded));
        state.pending.retain(|_, pending| pending.until > now);
        let pending =
            Pending { address: address.to_owned(), code: code.clone(), until: now.plus_ms(HOUR_MS), tries: 0 };
        state.pending.insert(person, pending);
        Some(code)
    }

    /// The address of a person's that waits.
    pub fn pending(&self, person: PersonId, now: Timestamp) -> Option<String> {
        self.state().pending.get(&person).filter(|pending| pending.until > now).map(|pending| pending.address.clone())
    }

    /// Forgets what waits, because its mail could not be sent.
    pub fn forget(&self, person: PersonId) {
        self.state().pending.remove(&person);
    }

    /// Proves the address that waits, and gives it; it waits no more. Spaces in the code don't count.
    ///
    /// # Errors
    /// See [`Unproven`].
    pub fn prove(&self, person: PersonId, typed: &str, now: Timestamp) -> Result<String, Unproven> {
        let typed: String = typed.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        let mut state = self.state();
        let Some(pending) = state.pending.get_mut(&person).filter(|pending| pending.until > now) else {
            return Err(Unproven::Over);
        };
        if bool::from(pending.code.as_bytes().ct_eq(typed.as_bytes())) {
            return state.pending.remove(&person).map(|pending| pending.address).ok_or(Unproven::Over);
        }
        pending.tries += 1;
        if pending.tries < TRIES {
            return Err(Unproven::Wrong);
        }
        state.pending.remove(&person);
        Err(Unproven::Over)
    }
}

/// A new code; nothing where the system has no randomness.
fn code() -> Option<String> {
    let most = 10_u64.pow(DIGITS);
    loop {
        let number = u64::from(getrandom::u32().ok()?);
        // What is left over at the end would make some codes more likely.
        if number < u64::from(u32::MAX) / most * most {
            return Some(format!("{:0width$}", number % most, width = DIGITS as usize));
        }
    }
}

/// A code as it is shown: in two groups.
pub fn in_groups(code: &str) -> String {
    match code.split_at_checked(code.len() / 2) {
        Some((one, other)) => format!("{one} {other}"),
        None => code.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const KIM: PersonId = PersonId::from_parts(1, 1);
    const ROBIN: PersonId = PersonId::from_parts(1, 2);

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_ms(1_800_000_000_000 + minutes * 60_000)
    }

    fn other(code: &str) -> String {
        if code == "00000000" { "00000001".to_owned() } else { "00000000".to_owned() }
    }

    #[test]
    fn the_code_proves_the_address_it_was_sent_to_once() {
        let proofs = Proofs::default();
        let code = proofs.begin(KIM, "kim@example.com", at(0)).unwrap();
        assert!(code.len() == 8 && code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
        assert_eq!(proofs.pending(KIM, at(59)).as_deref(), Some("kim@example.com"));
        assert_eq!(proofs.prove(ROBIN, &code, at(1)), Err(Unproven::Over), "it is Kim's alone");
        assert_eq!(proofs.prove(KIM, &other(&code), at(1)), Err(Unproven::Wrong));
        assert_eq!(proofs.prove(KIM, &format!(" {} ", in_groups(&code)), at(1)).as_deref(), Ok("kim@example.com"));
        assert_eq!(proofs.prove(KIM, &code, at(1)), Err(Unproven::Over), "once");
        assert_eq!(proofs.pending(KIM, at(1)), None);
    }

    #[test]
    fn it_is_over_after_an_hour_after_five_wrong_ones_and_when_another_is_sent() {
        let proofs = Proofs::default();
        let code = proofs.begin(KIM, "kim@example.com", at(0)).unwrap();
        assert_eq!(proofs.prove(KIM, &code, at(60)), Err(Unproven::Over));
        let code = proofs.begin(KIM, "kim@example.com", at(61)).unwrap();
        for _ in 0..4 {
            assert_eq!(proofs.prove(KIM, &other(&code), at(61)), Err(Unproven::Wrong));
        }
        assert_eq!(proofs.prove(KIM, &other(&code), at(61)), Err(Unproven::Over));
        assert_eq!(proofs.prove(KIM, &code, at(61)), Err(Unproven::Over));
        let earlier = proofs.begin(KIM, "kim@example.com", at(62)).unwrap();
        let later = proofs.begin(KIM, "other@example.com", at(62)).unwrap();
        if earlier != later {
            assert_eq!(proofs.prove(KIM, &earlier, at(62)), Err(Unproven::Wrong));
        }
        assert_eq!(proofs.prove(KIM, &later, at(62)).as_deref(), Ok("other@example.com"));
    }

    #[test]
    fn mails_are_counted_by_person_and_by_address_whoever_names_it() {
        let proofs = Proofs::default();
        for n in 0..5 {
            assert!(proofs.begin(KIM, &format!("kim{n}@example.com"), at(0)).is_some());
        }
        assert_eq!(proofs.begin(KIM, "kim6@example.com", at(59)), None);
        assert!(proofs.begin(ROBIN, "kim1@example.com", at(59)).is_some());
        assert!(proofs.begin(ROBIN, "KIM1@example.com", at(59)).is_some());
        assert_eq!(proofs.begin(ROBIN, "kim1@example.com", at(59)), None, "somebody else's address is not flooded");
        assert!(proofs.begin(KIM, "kim6@example.com", at(61)).is_some(), "after the hour");
    }
}
