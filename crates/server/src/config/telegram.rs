//! The bot that tells people on Telegram, as the operator names it.

use url::Url;

use super::{Misfit, Secret};

/// The bot that tells people on Telegram.
#[derive(Debug, Clone)]
pub struct Telegram {
    /// Its token, as BotFather gives it: `123456:ABC-DEF…`.
    pub token: Secret,
    /// The origin of the Bot API.
    pub api: Url,
}

impl Telegram {
    /// Checks that the token can be one: it stands in the path of every request.
    pub(super) fn judge(&self) -> Result<(), Misfit> {
        let plain = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        let good = self.token.reveal().split_once(':').is_some_and(|(number, rest)| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && plain(rest)
        });
        if good {
            Ok(())
        } else {
            Err(Misfit::of(
                "telegram.token",
                "telegram.token is no token of a bot: BotFather gives it, like 123456:ABC-DEF",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_token_is_one_of_a_bot_and_nothing_that_leads_elsewhere() {
        let judged = |token: &str| {
            Telegram { token: Secret::new(token), api: "https://api.telegram.org".parse().unwrap() }.judge().is_ok()
        };
        assert!(judged("123456:ABC-DEF_ghi") && judged("1:x"));
        for bad in ["", "123456", "123456:", ":x", "a:x", "1:x/../getMe", "1:x y", "1:x?y", "1:x%2f", "1:ä"] {
            assert!(!judged(bad), "{bad}");
        }
    }
}
