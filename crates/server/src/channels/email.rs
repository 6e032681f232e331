//! E-mail (RFC 5322) by the operator's server. A question's messages are one thread; there is a link to exactly that
//! question and nothing that answers: mail is fetched ahead by machines, and no GET of Chips changes anything.

mod compose;
mod mailer;
pub mod proof;

use std::str::FromStr;

use chips_core::notify::{self, Outcome};
use chips_store::{Endpoint, Notice};
use futures::FutureExt;
use futures::future::BoxFuture;
use lettre::Address;

use super::message::Message;
use super::{Channel, language};

pub use mailer::Mailer;

/// The longest address (RFC 5321, 4.5.3.1.3, without the brackets).
const ADDRESS: usize = 254;

/// Reads an address as people type it: one address and nothing around it. The part behind the `@` comes back in lower case.
pub fn address(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() > ADDRESS || !text.is_ascii() {
        return None;
    }
    // A name in quotes may hold anything, and most mail servers refuse it.
    if text.contains(['"', ' ', '\\']) {
        return None;
    }
    let address = Address::from_str(text).ok()?;
    // An address within brackets names a machine of the network behind the mail server.
    if address.domain().starts_with('[') || !address.domain().contains('.') {
        return None;
    }
    Some(format!("{}@{}", address.user(), address.domain().to_ascii_lowercase()))
}

/// The channel.
pub struct Email {
    mailer: Mailer,
}

impl Email {
    /// Sends by this server.
    pub fn new(mailer: Mailer) -> Self {
        Self { mailer }
    }
}

impl Channel for Email {
    fn channel(&self) -> notify::Channel {
        notify::Channel::Email
    }

    fn send<'a>(&'a self, notice: &'a Notice, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let w = language(&notice.endpoint);
            let thread = compose::Thread::of(notice, self.mailer.domain());
            let mail = compose::notice(notice, message, w, &self.mailer.base_url());
            self.mailer.send(&notice.endpoint.address, mail, Some(thread)).await
        }
        .boxed()
    }

    fn try_out<'a>(&'a self, endpoint: &'a Endpoint, message: &'a Message) -> BoxFuture<'a, Outcome> {
        async move {
            let mail = compose::trial(&endpoint.address, message, language(endpoint), &self.mailer.base_url());
            self.mailer.send(&endpoint.address, mail, None).await
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_address_and_nothing_around_it() {
        for (typed, read) in [
            ("kim@example.com", "kim@example.com"),
            (" Kim.Lee+chips@Example.COM ", "Kim.Lee+chips@example.com"),
            ("o'brien@mail.example.co.uk", "o'brien@mail.example.co.uk"),
        ] {
            assert_eq!(address(typed).as_deref(), Some(read));
        }
        for wrong in [
            "",
            "kim",
            "kim@",
            "@example.com",
            "kim@localhost",
            "kim@[127.0.0.1]",
            "Kim <kim@example.com>",
            "kim@example.com, robin@example.com",
            "kim@example.com\r\nBcc: robin@example.com",
            "kim@exa mple.com",
            "\"kim lee\"@example.com",
            "\"kim\"@example.com",
            "kím@example.com",
        ] {
            assert_eq!(address(wrong), None, "{wrong:?}");
        }
        assert_eq!(address(&format!("{}@example.com", "k".repeat(250))), None);
    }
}
