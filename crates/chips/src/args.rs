//! Arguments that several commands share, and how their values are read.

use std::net::SocketAddr;
use std::time::Duration;

use chips_protocol::{OnNoAnswer, WorkspaceId};
use url::Url;

use crate::adapters::opencode::Options;

/// The workspace, where there are several.
#[derive(Debug, clap::Args)]
pub struct Workspace {
    /// The workspace, where the data folder has several
    #[arg(long, value_name = "WS")]
    pub workspace: Option<WorkspaceId>,
}

/// How the result is printed.
#[derive(Debug, clap::Args)]
pub struct Json {
    /// Print one JSON document instead of lines for people
    #[arg(long)]
    pub json: bool,
}

/// How an adapter asks.
#[derive(Debug, clap::Args)]
pub struct Asking {
    /// Take the first option of each question for its default: it is taken where --timeout passes
    #[arg(long)]
    pub default_first: bool,
    /// How long to wait for an answer, like 30m or 8h [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What happens when --timeout passes: use_default, cancel (the question is dismissed, which ends the turn) or continue
    /// (the model hears that it is unanswered)
    #[arg(long, value_name = "POLICY", value_parser = policy, requires = "timeout")]
    pub on_no_answer: Option<OnNoAnswer>,
}

impl Asking {
    /// What does not fit together, for people.
    pub fn wrong(&self) -> Option<&'static str> {
        let takes = self.on_no_answer == Some(OnNoAnswer::UseDefault) && !self.default_first;
        takes.then_some("use_default needs a default: give --default-first too")
    }

    /// The same for the adapter.
    pub fn options(&self) -> Options {
        Options { default_first: self.default_first, timeout: self.timeout, on_no_answer: self.on_no_answer }
    }

    /// The same as the words of a command.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.default_first {
            words.push("--default-first".to_owned());
        }
        if let Some(timeout) = self.timeout {
            words.extend(["--timeout".to_owned(), format!("{}s", timeout.as_secs())]);
        }
        if let Some(policy) = self.on_no_answer {
            words.extend(["--on-no-answer".to_owned(), policy.as_str().to_owned()]);
        }
        words
    }
}

/// Reads what happens when nobody answers.
pub fn policy(text: &str) -> Result<OnNoAnswer, String> {
    [OnNoAnswer::UseDefault, OnNoAnswer::Cancel, OnNoAnswer::Continue]
        .into_iter()
        .find(|policy| policy.as_str() == text)
        .ok_or_else(|| "use_default, cancel or continue".to_owned())
}

/// The address that people and harnesses use.
#[derive(Debug, clap::Args)]
pub struct PublicUrl {
    /// The address that people and harnesses use; links are built on it
    #[arg(long, env = "CHIPS_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<Url>,
}

/// Reads an address that people use: http or https, a host, nothing after it.
pub fn public_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{error}; an example: https://chips.example.com"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err("it begins with https:// (or http://) and a host".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it holds no name and no password".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("nothing stands after the host (and port): Chips answers at the root of its host".to_owned());
    }
    Ok(url)
}

/// Reads an address to listen on; `localhost` is 127.0.0.1.
pub fn listen(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| "an IP address and a port, like 127.0.0.1:7070 or [::1]:7070".to_owned())
}

/// Reads a length of time: `90s`, `15m`, `24h`, `7d`, or several one after another (`1h30m`).
pub fn duration(text: &str) -> Result<Duration, String> {
    const HELP: &str = "a whole number and s, m, h or d, like 90s, 15m, 24h or 7d";
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(HELP)?;
        let number: u64 = rest[..digits].parse().map_err(|_| HELP)?;
        let mut after = rest[digits..].chars();
        let unit = match after.next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            _ => return Err(HELP.to_owned()),
        };
        let seconds = number.checked_mul(unit).ok_or("that is too long")?;
        total = total.checked_add(Duration::from_secs(seconds)).ok_or("that is too long")?;
        rest = after.as_str();
    }
    if text.is_empty() { Err(HELP.to_owned()) } else { Ok(total) }
}

/// Reads a length of time that is not zero and no longer than a day.
pub fn span(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    if span.is_zero() || span > Duration::from_secs(86_400) {
        return Err("more than nothing and at most a day, like 50s or 5m".to_owned());
    }
    Ok(span)
}

/// Reads whether something is on.
pub fn switch(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

/// Reads a number of days, one or more.
pub fn days(text: &str) -> Result<Duration, String> {
    let days = text.parse::<u32>().ok().filter(|days| (1..=36_500).contains(days));
    days.map(|days| Duration::from_secs(u64::from(days) * 86_400))
        .ok_or_else(|| "a whole number of days, from 1 to 36500, like 90".to_owned())
}

/// Reads a port; 0 stands for none in particular.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "a whole number from 0 to 65535".to_owned())
}

/// A length of time in milliseconds, held within what the store counts in.
pub fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Reads a limit: a whole number, or `none`.
pub fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        number => number.parse().map(|n| Limit(Some(n))).map_err(|_| "a whole number, or `none`".to_owned()),
    }
}

/// A limit, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Option<u64>);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("7d"), Ok(Duration::from_secs(604_800)));
        for wrong in ["", "h", "24", "1.5h", "-1h", "1 h", "24H", "99999999999999999999s", "9999999999999999999d", "é"]
        {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_public_url_is_an_origin() {
        assert_eq!(public_url("https://chips.example.com").unwrap().as_str(), "https://chips.example.com/");
        assert!(public_url("http://10.0.0.5:7070/").is_ok());
        for wrong in [
            "chips.example.com",
            "ftp://chips.example.com",
            "https://",
            "https://u:p@chips.example.com",
            "https://chips.example.com/inbox",
            "https://chips.example.com/?a=b",
            "https://chips.example.com/#x",
            "",
        ] {
            assert!(public_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_an_ip_and_a_port() {
        assert_eq!(listen("localhost:0"), Ok(([127, 0, 0, 1], 0).into()));
        assert!(listen("[::1]:7070").is_ok());
        for wrong in ["7070", ":7070", "localhost", "chips.example.com:7070", "127.0.0.1:70700", ""] {
            assert!(listen(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_a_number_or_none() {
        assert_eq!(limit("none"), Ok(Limit(None)));
        assert_eq!(limit("0"), Ok(Limit(Some(0))));
        for wrong in ["", "None", "-1", "1.5", "many"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
