//! What kind of request it is, as far as its time says something.

/// What kind of request it is: a wait for a person and a page are not to be held against the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteClass {
    /// A write of the API: it ends when it is on the disk.
    Write,
    /// A read of the API.
    Read,
    /// A read that waits for an ask to close, as long as a person takes.
    Wait,
    /// A stream; its time is that until it is open.
    Stream,
    /// A message of MCP. A call that asks waits for a person.
    Mcp,
    /// A page or form of the inbox.
    Inbox,
    /// A file of the inbox.
    Asset,
    /// An answer that is tapped beside a message.
    Tap,
    /// Health, readiness and figures.
    Operate,
    /// A path that does not exist.
    Unmatched,
}

impl RouteClass {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Read,
        Self::Wait,
        Self::Stream,
        Self::Mcp,
        Self::Inbox,
        Self::Asset,
        Self::Tap,
        Self::Operate,
        Self::Unmatched,
    ];

    /// The class of a request, by its method, the router's route (nothing where none fits) and its query.
    pub fn of(method: &str, route: Option<&str>, query: Option<&str>) -> Self {
        let reads = matches!(method, "GET" | "HEAD");
        let waits = || query.is_some_and(|query| query.split('&').any(|part| part.starts_with("wait=")));
        match route {
            None => Self::Unmatched,
            Some("/healthz" | "/readyz" | "/metrics") => Self::Operate,
            Some("/mcp") => Self::Mcp,
            Some("/a/{token}") => Self::Tap,
            Some("/v1/events/stream" | "/live") => Self::Stream,
            Some(route) if route.starts_with("/v1/") => match reads {
                true if waits() => Self::Wait,
                true => Self::Read,
                false => Self::Write,
            },
            Some(route) if route.starts_with("/assets/") => Self::Asset,
            Some("/manifest.webmanifest" | "/sw.js" | "/offline") => Self::Asset,
            Some(_) => Self::Inbox,
        }
    }

    /// The word for it in labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Wait => "wait",
            Self::Stream => "stream",
            Self::Mcp => "mcp",
            Self::Inbox => "inbox",
            Self::Asset => "asset",
            Self::Tap => "tap",
            Self::Operate => "operate",
            Self::Unmatched => "unmatched",
        }
    }

    /// Whether a machine asks for it again and again and nobody cares for each time: told in the log at `debug` alone.
    pub const fn is_routine(self) -> bool {
        matches!(self, Self::Operate | Self::Asset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_a_read_and_a_write_are_told_apart() {
        let of = RouteClass::of;
        assert_eq!(of("GET", Some("/v1/asks/{ask_id}"), Some("wait=60")), RouteClass::Wait);
        assert_eq!(of("GET", Some("/v1/asks/{ask_id}"), None), RouteClass::Read);
        assert_eq!(of("GET", Some("/v1/asks"), Some("state=open&await=1")), RouteClass::Read);
        assert_eq!(of("POST", Some("/v1/events"), Some("wait=60")), RouteClass::Write);
        assert_eq!(of("GET", Some("/v1/events/stream"), None), RouteClass::Stream);
        assert_eq!(of("POST", Some("/sign-in/{secret}"), None), RouteClass::Inbox);
        assert_eq!(of("GET", None, Some("wait=60")), RouteClass::Unmatched);
    }
}
