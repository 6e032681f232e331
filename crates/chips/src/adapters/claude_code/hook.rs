//! What Claude Code says to a hook, and what it wants to hear
//! (<https://code.claude.com/docs/en/hooks>, versions from 2.1.85).

use chips_protocol::{Question, QuestionOption};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The tool that asks the person.
pub const ASK_TOOL: &str = "AskUserQuestion";
/// The tool that ends planning.
const PLAN_TOOL: &str = "ExitPlanMode";

/// What stands on a hook's standard input; what the adapter doesn't need is left out.
#[derive(Debug, Clone, Deserialize)]
pub struct Input {
    /// The session.
    pub session_id: String,
    /// Where it works.
    #[serde(default)]
    pub cwd: String,
    /// `default`, `plan`, `acceptEdits`, …
    #[serde(default)]
    pub permission_mode: String,
    /// Which hook this is.
    pub hook_event_name: String,
    /// The tool that is to be called.
    #[serde(default)]
    pub tool_name: String,
    /// What it is called with.
    #[serde(default)]
    pub tool_input: Value,
    /// The call; a `PermissionRequest` has none.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    /// The calls of a `PostToolBatch`.
    #[serde(default)]
    tool_calls: Vec<Call>,
    /// What a session still does in the background when its turn is over.
    #[serde(default)]
    background_tasks: Vec<Value>,
}

/// One call of a batch.
#[derive(Debug, Clone, Deserialize)]
struct Call {
    tool_name: String,
    #[serde(default)]
    tool_input: Value,
}

/// Which of the hooks speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Before a tool is called; the terminal waits.
    PreToolUse,
    /// While the permission dialog is open in the terminal; the first answer wins.
    PermissionRequest,
    /// A tool was used.
    PostToolUse,
    /// All calls of one reply of the model are through, those that were refused too.
    PostToolBatch,
    /// The turn is over.
    Stop,
    /// The session ends.
    SessionEnd,
}

impl Input {
    /// The hook that speaks; nothing for one that this adapter has no word for.
    pub fn event(&self) -> Option<Event> {
        match self.hook_event_name.as_str() {
            "PreToolUse" => Some(Event::PreToolUse),
            "PermissionRequest" => Some(Event::PermissionRequest),
            "PostToolUse" => Some(Event::PostToolUse),
            "PostToolBatch" => Some(Event::PostToolBatch),
            "Stop" => Some(Event::Stop),
            "SessionEnd" => Some(Event::SessionEnd),
            _ => None,
        }
    }

    /// Each call of a batch, as if a hook of its own spoke of it.
    pub fn calls(&self) -> Vec<Self> {
        let one = |call: &Call| Self {
            tool_name: call.tool_name.clone(),
            tool_input: call.tool_input.clone(),
            tool_calls: Vec::new(),
            ..self.clone()
        };
        self.tool_calls.iter().map(one).collect()
    }

    /// Whether the session goes on in the background although its turn is over.
    pub fn goes_on(&self) -> bool {
        !self.background_tasks.is_empty()
    }

    /// The questions of an `AskUserQuestion`, each under the id `q0`, `q1`, …; the label is the value, byte for byte.
    ///
    /// # Errors
    /// Why they can't be carried.
    pub fn questions(&self, default_first: bool) -> Result<Vec<Question>, String> {
        let Some(asked) = self.tool_input.get("questions").and_then(Value::as_array) else {
            return Err("it has no questions".to_owned());
        };
        let questions: Vec<Question> = asked
            .iter()
            .enumerate()
            .map(|(at, question)| one_question(at, question, default_first))
            .collect::<Result<_, _>>()?;
        for (at, question) in questions.iter().enumerate() {
            if questions[..at].iter().any(|earlier| earlier.prompt == question.prompt) {
                return Err("two questions read the same, and Claude Code knows an answer by its question".to_owned());
            }
        }
        Ok(questions)
    }

    /// The permission prompt as a question: exactly what would be run, or the plan that is to be carried out, "Allow once"
    /// or "Deny", never with a default.
    ///
    /// # Errors
    /// There is no plan, or what would be run is too long to be shown whole.
    pub fn permission(&self) -> Result<Vec<Question>, String> {
        let text = |key: &str| self.tool_input.get(key).and_then(Value::as_str);
        let prompt = if self.tool_name == PLAN_TOOL {
            let plan = text("plan").map(str::trim).filter(|plan| !plan.is_empty()).ok_or("the plan is empty")?;
            format!("Claude Code wants to carry out this plan:\n{plan}")
        } else {
            let what = match text("command") {
                Some(command) => command.to_owned(),
                None => serde_json::to_string_pretty(&self.tool_input).map_err(|error| error.to_string())?,
            };
            format!("Claude Code wants to use {}:\n{what}", self.tool_name)
        };
        let most = chips_protocol::limits::PROMPT;
        if prompt.chars().count() > most {
            return Err(format!(
                "what it wants to do is longer than {most} characters, and is shown whole or not at all"
            ));
        }
        let option = |value: &str, label: &str| QuestionOption {
            value: value.to_owned(),
            label: label.to_owned(),
            description: None,
        };
        Ok(vec![Question {
            question_id: PERMISSION.to_owned(),
            prompt,
            options: vec![option(ALLOW, "Allow once"), option(DENY, "Deny")],
            multi_select: None,
            allow_free_text: None,
            default_value: None,
        }])
    }
}

/// The id of a permission prompt's question.
pub const PERMISSION: &str = "permission";
/// The value of "Allow once".
pub const ALLOW: &str = "allow";
/// The value of "Deny".
pub const DENY: &str = "deny";

fn one_question(at: usize, question: &Value, default_first: bool) -> Result<Question, String> {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let prompt = text(question, "question").ok_or("a question has no text")?;
    let options: Vec<QuestionOption> = question
        .get("options")
        .and_then(Value::as_array)
        .ok_or("a question has no options")?
        .iter()
        .map(|option| {
            let label = text(option, "label").ok_or("an option has no label")?;
            let description = text(option, "description").filter(|words| !words.is_empty());
            Ok(QuestionOption { value: label.clone(), label, description })
        })
        .collect::<Result<_, &str>>()?;
    Ok(Question {
        question_id: format!("q{at}"),
        prompt,
        default_value: options.first().filter(|_| default_first).map(|option| option.value.clone()),
        options,
        multi_select: question.get("multiSelect").and_then(Value::as_bool).filter(|multi| *multi),
        allow_free_text: Some(true),
    })
}

/// What the hook has to say in the end.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The questions are answered.
    Answered {
        /// By question text: a text, or an array of texts for a multi-select.
        answers: Map<String, Value>,
        /// By question text: who answered, or that nobody did.
        notes: Map<String, Value>,
        /// The same in a sentence for the model.
        context: String,
    },
    /// The tool may be used, this once.
    Allowed,
    /// It may not, or the question is given up.
    Denied {
        /// Why, for the model.
        reason: String,
    },
    /// No decision: the harness's own dialog goes on.
    Nothing,
}

impl Verdict {
    /// What to print on standard output; nothing for no decision.
    pub fn print(&self, event: Event, tool_input: &Value) -> Option<Value> {
        let output = match (event, self) {
            (_, Self::Nothing) => return None,
            (Event::PostToolUse | Event::PostToolBatch | Event::Stop | Event::SessionEnd, _) => return None,
            (Event::PreToolUse, Self::Answered { context, .. }) => json!({
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "permissionDecisionReason": "answered in Chips",
                "updatedInput": self.updated_input(tool_input),
                "additionalContext": context,
            }),
            (Event::PreToolUse, Self::Allowed) => json!({
                "hookEventName": "PreToolUse",
                "permissionDecision": "allow",
                "permissionDecisionReason": "allowed once in Chips",
            }),
            (Event::PreToolUse, Self::Denied { reason }) => json!({
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }),
            (Event::PermissionRequest, Self::Answered { .. }) => json!({
                "hookEventName": "PermissionRequest",
                "decision": { "behavior": "allow", "updatedInput": self.updated_input(tool_input) },
            }),
            (Event::PermissionRequest, Self::Allowed) => json!({
                "hookEventName": "PermissionRequest",
                // Some tools, `ExitPlanMode` among them, are not allowed by a decision that leaves their input out.
                "decision": { "behavior": "allow", "updatedInput": tool_input },
            }),
            (Event::PermissionRequest, Self::Denied { reason }) => json!({
                "hookEventName": "PermissionRequest",
                "decision": { "behavior": "deny", "message": reason },
            }),
        };
        Some(json!({ "hookSpecificOutput": output }))
    }

    /// The tool's input with the answers in it. It replaces the whole input, so everything else is sent back as it came.
    fn updated_input(&self, tool_input: &Value) -> Value {
        let mut input = tool_input.clone();
        if let (Self::Answered { answers, notes, .. }, Value::Object(input)) = (self, &mut input) {
            input.insert("answers".to_owned(), Value::Object(answers.clone()));
            let mut annotations = match input.remove("annotations") {
                Some(Value::Object(annotations)) => annotations,
                _ => Map::new(),
            };
            for (question, note) in notes {
                let entry = annotations.entry(question.clone()).or_insert_with(|| json!({}));
                if let Value::Object(entry) = entry {
                    entry.insert("notes".to_owned(), note.clone());
                }
            }
            input.insert("annotations".to_owned(), Value::Object(annotations));
        }
        input
    }
}
