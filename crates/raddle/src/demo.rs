//! `raddle demo`: a scripted turn with an approval, during which the server is killed.
//!
//! The model runs in this process, the servers are children of it, and all files are in one
//! temporary folder. At the end, also after a signal, nothing of it is left.

mod approval;
mod folders;
mod server;
mod stop_signals;
mod transcript;

use std::fs;
use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use raddle_model::scripted::{ModelScript, ScriptedServer};
use raddle_protocol::{ThreadStartParams, TurnStatus};

use self::approval::{AnswerSource, PendingApproval};
use self::folders::{DemoFolders, FILE};
use self::server::DemoServer;
use self::stop_signals::StopSignals;
use self::transcript::Transcript;
use crate::cli::Demo;
use crate::runtime;

const PROMPT: &str = "Correct the spelling in hello.py.";

/// The answers of the model: a patch, and a message about what became of it.
const SCRIPT: &str = r#"
[[answer]]
match = "Correct the spelling"
steps = [{ call = "apply_patch", arguments = { input = """
*** Begin Patch
*** Update File: hello.py
@@
-print("Helo, world!")
+print("Hello, world!")
*** End Patch
""" } }]

[[answer]]
match = "declined"
steps = [{ text = "I left hello.py as it was." }]

[[answer]]
steps = [{ text = "I corrected the spelling in hello.py." }]
"#;

/// Deadline of each step without the user; only a server that hangs reaches it.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Demo) -> Result<ExitCode> {
    let runtime = runtime::current_thread()?;
    let mut transcript = Transcript::new();
    let answers = match (
        args.yes,
        transcript.is_terminal() && io::stdin().is_terminal(),
    ) {
        (true, _) => AnswerSource::YesOption,
        (false, true) => AnswerSource::Terminal,
        (false, false) => AnswerSource::NoTerminal,
    };
    // Before there is anything to remove.
    let mut signals = {
        let _entered = runtime.enter();
        StopSignals::watch().context("cannot watch for signals")?
    };
    let folders = DemoFolders::create()?;
    let (outcome, killed) = runtime.block_on(async {
        let mut server = None;
        let outcome = tokio::select! {
            outcome = run_turn(&folders, answers, &mut server, &mut transcript) => {
                outcome.map(|()| None)
            }
            status = signals.next() => Ok(Some(status)),
        };
        // It must not write to the folder that is removed next.
        let killed = match server {
            Some(server) => server.kill().await,
            None => Ok(()),
        };
        (outcome, killed)
    });
    // A thread may wait for the answer of the user; it must not keep the process.
    runtime.shutdown_timeout(Duration::ZERO);
    let removed = folders.remove();
    // The first error explains the others.
    let status = outcome?;
    killed.and(removed)?;
    if let Some(status) = status {
        return Ok(status);
    }
    transcript.summary()?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the turn on two servers, one after the other. The running one is in `server`.
async fn run_turn(
    folders: &DemoFolders,
    answers: AnswerSource,
    server: &mut Option<DemoServer>,
    transcript: &mut Transcript,
) -> Result<()> {
    let script = ModelScript::parse(SCRIPT).context("the script of the demo is invalid")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let model = ScriptedServer::listen(address, script)
        .await
        .with_context(|| format!("the scripted model cannot listen on {address}"))?;
    transcript.title()?;

    transcript.step("A turn starts in a temporary folder")?;
    transcript.line("you    ", PROMPT)?;
    let first_server = server.insert(DemoServer::start(folders, model.base_url())?);
    let client = in_time(first_server.connect()).await??;
    let started = client.start(ThreadStartParams {
        cwd: Some(folders.work().display().to_string()),
        ..ThreadStartParams::default()
    });
    let started = in_time(started).await?;
    let mut follow = started.context("the thread cannot be started")?;
    let thread = follow.id();
    let begun = in_time(follow.say(PROMPT)).await?;
    begun.context("the turn cannot be started")?;
    let first = in_time(PendingApproval::next(&mut follow)).await??;
    transcript.line("agent  ", &format!("wants to change {FILE}:"))?;
    transcript.diff(&first.diff)?;
    transcript.line("server ", &format!("asks for approval, id {}", first.id))?;

    transcript.step("The server is killed with SIGKILL while the approval is open")?;
    if let Some(first_server) = server.take() {
        first_server.kill().await?;
    }
    drop(follow);
    client.close().await;

    transcript.step("A new server starts, and the client resumes the thread")?;
    let second_server = server.insert(DemoServer::start(folders, model.base_url())?);
    let client = in_time(second_server.connect()).await??;
    let resumed = in_time(client.open(thread)).await?;
    let mut follow = resumed.context("the thread cannot be resumed")?;
    let second = in_time(PendingApproval::next(&mut follow)).await??;
    ensure!(
        second.id == first.id,
        "the approval was asked again under another id: {} instead of {}",
        second.id,
        first.id
    );
    transcript.line("server ", &format!("asks again,        id {}", second.id))?;
    let decision = approval::ask(answers, transcript).await?;
    let answered = in_time(second.answer(&client, decision)).await?;
    answered.context("the answer cannot be sent")?;
    let turn = in_time(follow.finish()).await?;
    let turn = turn.context("the thread was lost before the turn ended")?;
    ensure!(
        turn.status == TurnStatus::Completed,
        "the turn did not complete: {}",
        turn.error
            .map_or_else(|| "no reason is given".to_owned(), |it| it.message)
    );

    transcript.step("The turn ends: completed")?;
    transcript.line(
        "agent  ",
        follow.thread().last_message().unwrap_or_default(),
    )?;
    let text = fs::read_to_string(folders.work().join(FILE));
    let text = text.with_context(|| format!("cannot read {FILE}"))?;
    transcript.line("file   ", text.trim_end())?;
    drop(follow);
    client.close().await;
    if let Some(second_server) = server.take() {
        second_server.end().await?;
    }
    Ok(())
}

async fn in_time<T>(step: impl Future<Output = T>) -> Result<T> {
    tokio::time::timeout(STEP_TIMEOUT, step)
        .await
        .with_context(|| {
            format!(
                "the server did not go on within {} s",
                STEP_TIMEOUT.as_secs()
            )
        })
}
