//! The table that `openapi.json` is made of: every endpoint, what it takes and what it answers.

use chips_protocol::problem::ProblemCode;

/// One method of one path.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    pub id: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    /// Needs no token.
    pub public: bool,
    pub parameters: &'static [Parameter],
    pub body: Option<Body>,
    pub replies: &'static [Reply],
    /// Beside those that every endpoint of its kind has.
    pub problems: &'static [ProblemCode],
}

/// A parameter, its schema as JSON text.
#[derive(Debug)]
pub(super) struct Parameter {
    pub name: &'static str,
    pub place: In,
    pub description: &'static str,
    pub schema: &'static str,
}

/// Where a parameter stands.
#[derive(Debug, Clone, Copy)]
pub(super) enum In {
    Path,
    Query,
    Header,
}

/// An answer that is no refusal.
#[derive(Debug)]
pub(super) struct Reply {
    pub status: u16,
    pub description: &'static str,
    pub media_type: &'static str,
    pub body: Body,
}

/// What a body holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Body {
    Event,
    Write,
    EventsPage,
    Ask,
    AsksPage,
    NewRun,
    Run,
    Me,
    Text,
    Object,
}

const JSON: &str = "application/json";

const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, place: In::Path, description, schema: r#"{"type":"string"}"# }
}

const fn query(name: &'static str, description: &'static str, schema: &'static str) -> Parameter {
    Parameter { name, place: In::Query, description, schema }
}

const fn json(status: u16, description: &'static str, body: Body) -> Reply {
    Reply { status, description, media_type: JSON, body }
}

const AFTER: Parameter = query(
    "after",
    "Only events after this `seq`. Left out, a page begins with the oldest event that is kept, and a stream at the head.",
    r#"{"type":"integer","minimum":0}"#,
);
const TYPE: Parameter =
    query("type", "Only events of this type.", r#"{"type":"string","enum":["question.ask","question.answered"]}"#);
const OF_RUN: Parameter = query("run_id", "Only what belongs to this run.", r#"{"type":"string"}"#);
const OF_ASK: Parameter = query("ask_id", "Only what belongs to this ask.", r#"{"type":"string"}"#);
const LOG: Parameter = query(
    "log",
    "The history of the log that the cursor belongs to, as a page gave it; 410 `log_changed` where it is another now.",
    r#"{"type":"string"}"#,
);
const ASK_ID: Parameter = path("ask_id", "The ask.");
const RUN_ID: Parameter = path("run_id", "The run.");

pub(super) const OPERATIONS: &[Endpoint] = &[
    Endpoint {
        method: "POST",
        path: "/v1/events",
        id: "appendEvent",
        summary: "Write an event",
        description: "Appends a `question.ask` or a `question.answered`. The same write again is a replay: it answers \
            200 with the event stored the first time and `Idempotency-Replayed: true`.",
        public: false,
        parameters: &[],
        body: Some(Body::Write),
        replies: &[
            json(201, "Appended; the stored event.", Body::Event),
            json(200, "A replay; the event stored the first time.", Body::Event),
        ],
        problems: &[
            ProblemCode::ActorMismatch,
            ProblemCode::WrongSender,
            ProblemCode::NotFound,
            ProblemCode::AlreadyClosed,
            ProblemCode::EventIdConflict,
            ProblemCode::AskIdConflict,
            ProblemCode::RunEnded,
            ProblemCode::InvalidEvent,
            ProblemCode::OverBudget,
            ProblemCode::Unavailable,
        ],
    },
    Endpoint {
        method: "GET",
        path: "/v1/events",
        id: "readEvents",
        summary: "Read a page of the log",
        description: "Events that the token may see, in the order of their `seq`.",
        public: false,
        parameters: &[
            AFTER,
            query(
                "limit",
                "How many at most; 100 if left out.",
                r#"{"type":"integer","minimum":1,"maximum":1000,"default":100}"#,
            ),
            TYPE,
            OF_RUN,
            OF_ASK,
            LOG,
        ],
        body: None,
        replies: &[json(200, "The page.", Body::EventsPage)],
        problems: &[ProblemCode::CursorAhead, ProblemCode::LogChanged, ProblemCode::CursorGone],
    },
    Endpoint {
        method: "GET",
        path: "/v1/events/stream",
        id: "streamEvents",
        summary: "Follow the log",
        description: "Server-Sent Events: `id` is the seq, `event` the type, `data` the event on one line; a comment \
            every 15 s. Begins after `Last-Event-ID`, else after `after`, else at the head.",
        public: false,
        parameters: &[
            AFTER,
            TYPE,
            OF_RUN,
            OF_ASK,
            LOG,
            Parameter {
                name: "Last-Event-ID",
                place: In::Header,
                description: "The last `id` that was read; wins over `after`.",
                schema: r#"{"type":"integer","minimum":0}"#,
            },
        ],
        body: None,
        replies: &[Reply {
            status: 200,
            description: "The stream; it ends when the server stops or the token's rights end.",
            media_type: "text/event-stream",
            body: Body::Text,
        }],
        problems: &[ProblemCode::CursorAhead, ProblemCode::LogChanged, ProblemCode::CursorGone],
    },
    Endpoint {
        method: "GET",
        path: "/v1/asks",
        id: "listAsks",
        summary: "List asks",
        description: "Open ones: those without a default on every question first, then by deadline, then by `seq`. \
            Else the newest first.",
        public: false,
        parameters: &[
            query(
                "state",
                "Only those in this state; `closed` is every state but `open`.",
                r#"{"type":"string","enum":["open","closed","answered","timed_out","settled","withdrawn"]}"#,
            ),
            query("space_id", "Only those in this space.", r#"{"type":"string"}"#),
            OF_RUN,
            query("harness_id", "Only those of this harness.", r#"{"type":"string"}"#),
            query("label", "Only those of runs with this label, as `KEY:VALUE`.", r#"{"type":"string"}"#),
            query(
                "q",
                "Only those in which this text stands, whatever its case: in a prompt, an option's label, an answer's free \
                 text or the run's title.",
                r#"{"type":"string"}"#,
            ),
            query(
                "limit",
                "How many at most; 50 if left out.",
                r#"{"type":"integer","minimum":1,"maximum":200,"default":50}"#,
            ),
            query("before", "What an earlier page gave as `next`.", r#"{"type":"string"}"#),
        ],
        body: None,
        replies: &[json(200, "The page.", Body::AsksPage)],
        problems: &[],
    },
    Endpoint {
        method: "GET",
        path: "/v1/asks/{ask_id}",
        id: "getAsk",
        summary: "Look at an ask, or wait for its answer",
        description: "With `wait` it returns as soon as the ask is closed, or as it stands when the time is up or the \
            server stops.",
        public: false,
        parameters: &[
            ASK_ID,
            query(
                "wait",
                "Whole seconds to wait for the ask to close.",
                r#"{"type":"integer","minimum":0,"maximum":300,"default":0}"#,
            ),
        ],
        body: None,
        replies: &[json(200, "The ask.", Body::Ask)],
        problems: &[ProblemCode::NotFound],
    },
    Endpoint {
        method: "POST",
        path: "/v1/asks/{ask_id}/ack",
        id: "acknowledgeAsk",
        summary: "Say that the answer has been acted on",
        description: "Sent by the harness that asked. The first time stands. Takes no body.",
        public: false,
        parameters: &[ASK_ID],
        body: None,
        replies: &[json(200, "The ask.", Body::Ask)],
        problems: &[ProblemCode::WrongSender, ProblemCode::NotFound, ProblemCode::TooLarge, ProblemCode::Unavailable],
    },
    Endpoint {
        method: "POST",
        path: "/v1/runs",
        id: "openRun",
        summary: "Open a run",
        description: "Sent by a harness. The same `run_id` again gives the run as it was opened the first time.",
        public: false,
        parameters: &[],
        body: Some(Body::NewRun),
        replies: &[
            json(201, "Opened.", Body::Run),
            json(200, "Opened before by the same harness; the first fields stand.", Body::Run),
        ],
        problems: &[
            ProblemCode::WrongSender,
            ProblemCode::RunIdConflict,
            ProblemCode::InvalidEvent,
            ProblemCode::Unavailable,
        ],
    },
    Endpoint {
        method: "GET",
        path: "/v1/runs/{run_id}",
        id: "getRun",
        summary: "Look at a run",
        description: "A run that the token may see.",
        public: false,
        parameters: &[RUN_ID],
        body: None,
        replies: &[json(200, "The run.", Body::Run)],
        problems: &[ProblemCode::NotFound],
    },
    Endpoint {
        method: "POST",
        path: "/v1/runs/{run_id}/end",
        id: "endRun",
        summary: "End a run",
        description: "Its open asks close with it. Twice is a no-op. Takes no body.",
        public: false,
        parameters: &[RUN_ID],
        body: None,
        replies: &[json(200, "The run.", Body::Run)],
        problems: &[ProblemCode::WrongSender, ProblemCode::NotFound, ProblemCode::TooLarge, ProblemCode::Unavailable],
    },
    Endpoint {
        method: "GET",
        path: "/v1/me",
        id: "me",
        summary: "Who a token speaks for",
        description: "The workspace, the participant, the spaces and, for a harness, its budget.",
        public: false,
        parameters: &[],
        body: None,
        replies: &[json(200, "Whom the token speaks for.", Body::Me)],
        problems: &[],
    },
    Endpoint {
        method: "POST",
        path: "/mcp",
        id: "mcp",
        summary: "Speak MCP",
        description: "Streamable HTTP of the Model Context Protocol: one JSON-RPC message, answered with JSON or, where \
            a person is waited for, with Server-Sent Events. For a harness's token.",
        public: false,
        parameters: &[Parameter {
            name: "Mcp-Session-Id",
            place: In::Header,
            description: "The session that the reply to `initialize` named.",
            schema: r#"{"type":"string"}"#,
        }],
        body: Some(Body::Object),
        replies: &[
            json(200, "The JSON-RPC response.", Body::Object),
            Reply { status: 202, description: "A notification was taken.", media_type: "text/plain", body: Body::Text },
        ],
        problems: &[ProblemCode::WrongSender, ProblemCode::NotFound],
    },
    Endpoint {
        method: "DELETE",
        path: "/mcp",
        id: "endMcpSession",
        summary: "End an MCP session",
        description: "Its open questions stay open.",
        public: false,
        parameters: &[Parameter {
            name: "Mcp-Session-Id",
            place: In::Header,
            description: "The session.",
            schema: r#"{"type":"string"}"#,
        }],
        body: None,
        replies: &[Reply { status: 204, description: "It has ended.", media_type: "text/plain", body: Body::Text }],
        problems: &[ProblemCode::WrongSender, ProblemCode::NotFound],
    },
    Endpoint {
        method: "GET",
        path: "/schemas/{file}",
        id: "schema",
        summary: "The JSON Schema of an event type",
        description: "JSON Schema 2020-12 of the stored form.",
        public: true,
        parameters: &[Parameter {
            name: "file",
            place: In::Path,
            description: "The event type and `.json`.",
            schema: r#"{"type":"string","enum":["question.ask.json","question.answered.json"]}"#,
        }],
        body: None,
        replies: &[Reply {
            status: 200,
            description: "The schema.",
            media_type: "application/schema+json",
            body: Body::Object,
        }],
        problems: &[ProblemCode::NotFound],
    },
    Endpoint {
        method: "GET",
        path: "/problems/{code}",
        id: "problem",
        summary: "What a problem means and what to do",
        description: "The page that the `type` of a problem names.",
        public: true,
        parameters: &[path("code", "The problem's code.")],
        body: None,
        replies: &[Reply { status: 200, description: "The page.", media_type: "text/markdown", body: Body::Text }],
        problems: &[ProblemCode::NotFound],
    },
    Endpoint {
        method: "GET",
        path: "/openapi.json",
        id: "openapi",
        summary: "This document",
        description: "The description of the endpoints.",
        public: true,
        parameters: &[],
        body: None,
        replies: &[json(200, "The document.", Body::Object)],
        problems: &[],
    },
    Endpoint {
        method: "GET",
        path: "/healthz",
        id: "health",
        summary: "Whether the process serves",
        description: "For a supervisor.",
        public: true,
        parameters: &[],
        body: None,
        replies: &[Reply { status: 200, description: "It does.", media_type: "text/plain", body: Body::Text }],
        problems: &[],
    },
    Endpoint {
        method: "GET",
        path: "/readyz",
        id: "ready",
        summary: "Whether the store takes writes",
        description: "For a load balancer.",
        public: true,
        parameters: &[],
        body: None,
        replies: &[Reply { status: 200, description: "It does.", media_type: "text/plain", body: Body::Text }],
        problems: &[ProblemCode::Unavailable],
    },
    Endpoint {
        method: "GET",
        path: "/metrics",
        id: "metrics",
        summary: "Figures for the operator",
        description: "OpenMetrics. Served to loopback, or to all where the server is told so.",
        public: true,
        parameters: &[],
        body: None,
        replies: &[Reply {
            status: 200,
            description: "The figures.",
            media_type: "application/openmetrics-text",
            body: Body::Text,
        }],
        problems: &[ProblemCode::NotFound],
    },
];
