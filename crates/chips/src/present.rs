//! How administration shows what it made and what there is: JSON for scripts, lines to copy and tables for people.

use chips_protocol::{HarnessId, PersonId, SpaceId, WorkspaceId};
use chips_store::admin::{Initialised, Issued, Listed, SignIn, Unheard};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::folder::{Folder, shell_word, this_program};
use crate::output;

/// A participant and its token in `--json`.
#[derive(Debug, Serialize)]
pub struct IssuedJson<'a> {
    /// The participant.
    pub id: String,
    /// Its token.
    pub token: &'a str,
}

/// What `init` and `workspace add` print with `--json`.
#[derive(Debug, Serialize)]
pub struct InitialisedJson<'a> {
    workspace_id: WorkspaceId,
    space_id: SpaceId,
    person: IssuedJson<'a>,
    harness: IssuedJson<'a>,
    sign_in_url: String,
    sign_in_code: &'a str,
}

/// What `person add`, `rotate` and `link` print with `--json`.
#[derive(Debug, Serialize)]
pub struct PersonJson<'a> {
    /// The person.
    pub id: PersonId,
    /// Their token, where a new one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
    /// A link that signs them in.
    pub sign_in_url: String,
    /// The short code beside it.
    pub sign_in_code: &'a str,
}

/// One entry of a list with `--json`.
#[derive(Debug, Serialize)]
struct ListedJson<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<WorkspaceId>,
    name: &'a str,
    created_at: String,
    disabled: bool,
    note: &'a str,
}

/// The link that a sign-in goes by.
pub fn sign_in_url(url: &str, sign_in: &SignIn) -> String {
    format!("{url}/sign-in/{}", sign_in.secret)
}

impl<'a> InitialisedJson<'a> {
    /// What was made, with links on this URL.
    pub fn new(made: &'a Initialised, url: &str) -> Self {
        Self {
            workspace_id: made.workspace_id,
            space_id: made.space_id,
            person: IssuedJson { id: made.person.id.to_string(), token: &made.person.token },
            harness: IssuedJson { id: made.harness.id.to_string(), token: &made.harness.token },
            sign_in_url: sign_in_url(url, &made.sign_in),
            sign_in_code: &made.sign_in.code,
        }
    }
}

/// How to sign in.
fn sign_in_lines(url: &str, sign_in: &SignIn) -> String {
    format!(
        "{}\n\n{}\n\nor type the code {} at {url}/sign-in\n",
        output::bold("Sign in to the inbox (good once, for 15 minutes)"),
        sign_in_url(url, sign_in),
        output::bold(&sign_in.code),
    )
}

/// Lines to copy: how a harness asks.
pub fn ask_lines(url: &str, token: &str) -> String {
    format!(
        "export CHIPS_URL={} CHIPS_TOKEN={}\n\
         {} ask 'Ship on the 19th or the 26th?' -o 19='the 19th' -o 26='the 26th'\n",
        shell_word(url),
        shell_word(token),
        this_program(),
    )
}

/// Lines to copy: how a person answers in a terminal.
fn person_lines(url: &str, token: &str) -> String {
    format!("export CHIPS_URL={} CHIPS_USER_TOKEN={}\n{} inbox\n", shell_word(url), shell_word(token), this_program())
}

/// What `init` made, as lines to copy.
pub fn initialised(made: &Initialised, url: &str) -> String {
    format!(
        "{}\n{}\n\n{}\n{}\n\n{}\nThe tokens are shown this once; Chips keeps only their hashes.\n",
        sign_in_lines(url, &made.sign_in),
        output::bold("Ask as the harness, in another terminal"),
        ask_lines(url, &made.harness.token),
        output::bold("Answer in a terminal"),
        person_lines(url, &made.person.token),
    )
}

/// A person's new token and sign-in, as lines to copy.
pub fn person(id: PersonId, token: Option<&str>, sign_in: &SignIn, url: &str) -> String {
    let mut text = format!("{id}\n\n{}", sign_in_lines(url, sign_in));
    if let Some(token) = token {
        let heading = output::bold("Answer in a terminal (the token is shown this once)");
        text.push_str(&format!("\n{heading}\n\n{}", person_lines(url, token)));
    }
    text
}

/// What is said where the only owner of a workspace goes.
pub fn last_owner(person: PersonId, workspace: WorkspaceId) -> String {
    format!("{person} alone owns {workspace}: nobody does from then on. What others there may do stays as it is")
}

/// A harness's new token, as lines to copy.
pub fn harness(issued: &Issued<HarnessId>, url: &str) -> String {
    let heading = output::bold("Ask as this harness (the token is shown this once)");
    format!("{}\n\n{heading}\n\n{}", issued.id, ask_lines(url, &issued.token))
}

/// Prints a list: an array of objects with `--json`, else a table.
///
/// # Errors
/// Standard output can't be written.
pub fn list(kind: Kind, listed: &[Listed], json: bool) -> anyhow::Result<()> {
    if json {
        let entry = |listed: &Listed| -> serde_json::Result<serde_json::Value> {
            serde_json::to_value(ListedJson {
                id: &listed.id,
                workspace_id: (kind != Kind::Workspace).then_some(listed.workspace_id),
                name: &listed.name,
                created_at: listed.created_at.to_string(),
                disabled: listed.disabled,
                note: &listed.note,
            })
        };
        return output::json(&listed.iter().map(entry).collect::<Result<Vec<_>, _>>()?);
    }
    if listed.is_empty() {
        output::note(format_args!("no {} yet", kind.plural()));
        return Ok(());
    }
    output::text(table(kind, listed, output::columns()))
}

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Workspaces.
    Workspace,
    /// Persons.
    Person,
    /// Harnesses.
    Harness,
    /// Spaces.
    Space,
}

impl Kind {
    const fn plural(self) -> &'static str {
        match self {
            Self::Workspace => "workspaces",
            Self::Person => "persons",
            Self::Harness => "harnesses",
            Self::Space => "spaces",
        }
    }
}

/// Lays a list out in columns. A terminal that is too narrow gets shortened names; a file gets everything.
fn table(kind: Kind, listed: &[Listed], columns: Option<usize>) -> String {
    let several = kind != Kind::Workspace && listed.iter().any(|one| one.workspace_id != listed[0].workspace_id);
    let mut rows = vec![vec!["ID".to_owned(), "NAME".to_owned(), "SINCE".to_owned(), "NOTE".to_owned()]];
    if several {
        rows[0].push("WORKSPACE".to_owned());
    }
    for one in listed {
        let since = one.created_at.to_string();
        let mut notes = vec![output::one_line(&one.note)];
        if one.disabled {
            notes.push(if kind == Kind::Workspace { "erased" } else { "disabled" }.to_owned());
        }
        notes.retain(|note| !note.is_empty());
        let mut row = vec![
            one.id.clone(),
            output::one_line(&one.name),
            since.get(..10).unwrap_or(&since).to_owned(),
            notes.join(", "),
        ];
        if several {
            row.push(one.workspace_id.to_string());
        }
        rows.push(row);
    }
    let mut widths: Vec<usize> =
        (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or_default()).collect();
    if let Some(columns) = columns {
        let others = widths.iter().sum::<usize>() - widths[1] + 2 * (widths.len() - 1);
        widths[1] = widths[1].min(columns.saturating_sub(others).max(12));
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            let cell = shortened(cell, width);
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width()) + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A text of at most this many columns, `…` at the end where something was left out.
fn shortened(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// That nobody is told of what a harness asks, because its owner is disabled; and what to do.
pub fn unheard(one: &Unheard, folder: &Folder) -> String {
    format!("{}; {}", unheard_says(one), unheard_mend(one, folder))
}

/// That nobody is told of what a harness asks, because its owner is disabled.
pub fn unheard_says(one: &Unheard) -> String {
    let Unheard { harness_id, name, owner, owner_name } = one;
    let (name, owner_name) = (output::one_line(name), output::one_line(owner_name));
    format!(
        "nobody is told of what {name} ({harness_id}) asks outside any space: its owner {owner_name} ({owner}) is disabled"
    )
}

/// How somebody is told again of what a harness asks.
pub fn unheard_mend(one: &Unheard, folder: &Folder) -> String {
    let words = |owner: &str| folder.command(&format!("harness owner {} {owner}", one.harness_id));
    format!("`{}` has everybody told, `{}` somebody else", words("none"), words("USR"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chips_protocol::Timestamp;

    use super::*;

    fn listed(name: &str, note: &str, disabled: bool) -> Listed {
        Listed {
            id: "hrn_01K4ZQPX000000000000000004".to_owned(),
            workspace_id: WorkspaceId::from_parts(1, 1),
            name: name.to_owned(),
            created_at: "2026-09-02T14:22:05.004Z".parse::<Timestamp>().unwrap(),
            disabled,
            note: note.to_owned(),
        }
    }

    #[test]
    fn a_table_lines_up_whatever_the_names_are() {
        let list = [listed("買い付け", "open 100, hour 600", false), listed("é\n\u{1b}[31mX", "", true)];
        let text = table(Kind::Harness, &list, None);
        assert_eq!(
            text,
            "ID                              NAME            SINCE       NOTE\n\
             hrn_01K4ZQPX000000000000000004  買い付け        2026-09-02  open 100, hour 600\n\
             hrn_01K4ZQPX000000000000000004  é\\n\\u{1b}[31mX  2026-09-02  disabled\n"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_short_names_and_whole_identifiers() {
        let list = [listed(&"long ".repeat(20), "open 100, hour 600", false)];
        let text = table(Kind::Harness, &list, Some(80));
        assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        assert!(text.contains('…') && text.contains("hrn_01K4ZQPX000000000000000004") && text.contains("hour 600"));
    }
}
