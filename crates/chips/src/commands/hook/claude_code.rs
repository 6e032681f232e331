//! `chips hook claude-code`

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use chips_client::TokenKind;
use chips_client::protocol::{OnNoAnswer, Question};
use tokio::signal::unix::{SignalKind, signal};

use crate::adapters::away;
use crate::adapters::claude_code::{self, Asked, Options, Plan, Session, Waiting, hook, settings};
use crate::{args, config, exit, folder, output, remote, runtime};

/// What a hook's input may measure; Claude Code's own strings are far shorter.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Answer Claude Code's questions from Chips: as a hook (reads its input, prints the decision), or put into its settings
///
/// Run by Claude Code it reads the hook's JSON, asks, waits as long as it takes and prints the decision. Where Chips
/// can't be reached, refuses, or nobody answers in time, it prints nothing and exits 0: the normal dialog opens.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "chips hook claude-code --install                  # for all your projects",
    "chips hook claude-code --install --project        # for this folder, in .claude/settings.json",
    "chips hook claude-code --install --permissions    # permission prompts too",
    "chips hook claude-code --uninstall                # takes it out again",
))]
pub struct Args {
    /// Put the hooks into Claude Code's settings, with what else is given here; shows what changes
    #[arg(long, conflicts_with = "uninstall")]
    install: bool,
    /// Take the hooks out of Claude Code's settings; shows what changes
    #[arg(long)]
    uninstall: bool,
    /// With --install or --uninstall: this folder's settings instead of your own
    #[arg(long)]
    project: bool,
    /// With --install or --uninstall: show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Carry permission prompts too, as "Allow once" and "Deny"; never with a default
    #[arg(long)]
    permissions: bool,
    /// Let the terminal wait for Chips in every mode, instead of keeping its own dialog open beside
    #[arg(long)]
    exclusive: bool,
    /// Take the first option of each question for its default: it is taken where --timeout passes
    #[arg(long)]
    default_first: bool,
    /// How long to wait for an answer, like 30m or 8h [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    timeout: Option<Duration>,
    /// What happens when --timeout passes: use_default, cancel (the question is given up) or continue (the dialog opens)
    #[arg(long, value_name = "POLICY", value_parser = args::policy, requires = "timeout")]
    on_no_answer: Option<OnNoAnswer>,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.on_no_answer == Some(OnNoAnswer::UseDefault) && !args.default_first {
        output::note("chips: use_default needs a default: give --default-first too");
        return Ok(exit::USAGE.into());
    }
    if args.install || args.uninstall {
        return change_settings(&args);
    }
    let options = Options {
        permissions: args.permissions,
        exclusive: args.exclusive,
        default_first: args.default_first,
        timeout: args.timeout,
        on_no_answer: args.on_no_answer,
    };
    // Whatever goes wrong from here on, the harness's own dialog must open: a line for a person, and exit 0.
    match runtime::block_on(answer(&options)) {
        Ok(code) => Ok(code),
        Err(error) => {
            output::note(format_args!("chips: {}; left to the dialog", output::one_line(&format!("{error:#}"))));
            Ok(exit::DONE.into())
        }
    }
}

async fn answer(options: &Options) -> anyhow::Result<ExitCode> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes)?;
    let input = claude_code::read(&bytes)?;
    let waiting = Waiting::new(&config::cache()?, &input.session_id);
    let session = Session::of(|name| std::env::var_os(name));
    let closed = match claude_code::plan(&input, session, options) {
        Plan::Ask(questions) => return ask(&input, questions, options, &waiting).await,
        Plan::Leave(why) => anyhow::bail!(why),
        // These hooks run after every tool or turn: without a hook that waits, there is nothing to close.
        Plan::Close(_) | Plan::Over if !waiting.is_any() => Ok(()),
        Plan::Close(decided) => claude_code::close(&client()?, &input, &decided).await,
        Plan::Over => claude_code::end_turn(&client()?, &input).await,
        Plan::End => {
            waiting.clear();
            claude_code::end_session(&client()?, &input).await
        }
        Plan::Silent => Ok(()),
    };
    if let Err(error) = closed {
        let error = output::one_line(&error.to_string());
        output::note(format_args!("chips: {error}; what the session still asks stays open in Chips"));
    }
    Ok(exit::DONE.into())
}

/// Asks, waits and prints the decision.
async fn ask(
    input: &hook::Input,
    questions: Vec<Question>,
    options: &Options,
    waiting: &Waiting,
) -> anyhow::Result<ExitCode> {
    if !away::read(&config::folder()?)?.is_away() {
        return Ok(exit::DONE.into());
    }
    let event = input.event().unwrap_or(hook::Event::PreToolUse);
    let client = client()?;
    // Where it can't be noted down, the hooks that close look at Chips each time.
    let _mark = waiting.mark().ok();
    let gone = gone()?;
    tokio::pin!(gone);

    let asking = Asked::ask(&client, input, questions, options);
    tokio::pin!(asking);
    let (asked, interrupted) = tokio::select! {
        asked = &mut asking => (asked?, false),
        // Whether the ask has arrived is known only when the call is through; it is bounded by its own limit.
        () = &mut gone => (asking.await?, true),
    };
    if interrupted {
        asked.withdraw().await;
        return Ok(exit::INTERRUPTED.into());
    }
    output::note(format_args!("chips: asked as {}/asks/{}", client.address(), asked.ask_id()));
    let ask = tokio::select! {
        ask = asked.wait() => ask?,
        () = &mut gone => {
            asked.withdraw().await;
            return Ok(exit::INTERRUPTED.into());
        }
    };
    if let Some(decision) = claude_code::verdict(&ask, event).print(event, &input.tool_input) {
        if nobody_reads() {
            return Ok(exit::INTERRUPTED.into());
        }
        output::line(serde_json::to_string(&decision)?)?;
        asked.acknowledge().await;
    }
    Ok(exit::DONE.into())
}

fn client() -> anyhow::Result<chips_client::Client> {
    remote::client(&config::connection(TokenKind::Harness)?)
}

/// Resolves when the session is gone: a signal, a parent that ended, or nobody who reads standard output.
fn gone() -> anyhow::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let parent = rustix::process::getppid();
    let mut look = tokio::time::interval(Duration::from_millis(500));
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = hangup.recv() => return,
                _ = look.tick() => {
                    if rustix::process::getppid() != parent || nobody_reads() {
                        return;
                    }
                }
            }
        }
    })
}

/// Whether standard output is a pipe or socket whose other end is closed.
fn nobody_reads() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let out = std::io::stdout();
    let mut polled = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok()
        && polled.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL))
}

fn change_settings(args: &Args) -> anyhow::Result<ExitCode> {
    let here = std::env::current_dir()?;
    let path: PathBuf = settings::path(args.project.then_some(here.as_path()))?;
    let shown = output::one_line(&path.to_string_lossy());
    let (before, current) = settings::read(&path)?;
    let wanted = if args.install {
        settings::with_hooks(&current, &hook_command(args), args.permissions, settings::version())?
    } else {
        settings::without_hooks(&current)?
    };
    if wanted == current {
        output::note(format_args!("{shown}: nothing to change"));
        return Ok(exit::DONE.into());
    }
    let after = format!("{}\n", serde_json::to_string_pretty(&wanted)?);
    output::text(settings::diff(&before, &after))?;
    if args.dry_run {
        output::note(format_args!("{shown}: not changed (--dry-run)"));
        return Ok(exit::DONE.into());
    }
    settings::write(&path, &wanted)?;
    if args.install {
        let undo = if args.project { " --project" } else { "" };
        output::note(format_args!("{shown}: written. Undo it with: chips hook claude-code --uninstall{undo}"));
        if config::connection(TokenKind::Harness).is_err() {
            output::note(
                "Next: chips connect URL (with a harness's token); until then the dialog in the terminal opens as before",
            );
        }
    } else {
        output::note(format_args!("{shown}: written"));
    }
    Ok(exit::DONE.into())
}

/// The command for the settings: this program, and what it was given beside --install.
fn hook_command(args: &Args) -> String {
    let mut command = format!("{} hook claude-code", folder::this_program());
    for (flag, given) in
        [("--permissions", args.permissions), ("--exclusive", args.exclusive), ("--default-first", args.default_first)]
    {
        if given {
            command.push(' ');
            command.push_str(flag);
        }
    }
    if let Some(timeout) = args.timeout {
        command.push_str(&format!(" --timeout {}s", timeout.as_secs()));
    }
    if let Some(policy) = args.on_no_answer {
        command.push_str(&format!(" --on-no-answer {}", policy.as_str()));
    }
    command
}
