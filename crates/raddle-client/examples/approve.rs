//! Asks on the terminal before the agent does anything that needs a yes:
//! `cargo run -p raddle-client --example approve -- target/release/raddle "Remove the build folder"`

use std::error::Error;
use std::io::{BufRead, Write};

use raddle_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    FileChangeApprovalDecision, FileChangeRequestApprovalParams, ThreadStartParams, TurnStatus,
};
use raddle_client::{Client, Options, Program, RequestHandler, ServerAddress};

/// Puts questions to a person, or to whatever says yes or no.
pub struct ApprovalPrompt<F>(pub F);

impl<F: Fn(String) -> bool + Clone + Send + Sync + 'static> ApprovalPrompt<F> {
    async fn is_yes(&self, question: String) -> bool {
        let ask = self.0.clone();
        let question = plain(&question);
        // A person takes long, and everything else goes on meanwhile.
        let said = tokio::task::spawn_blocking(move || ask(question)).await;
        said.unwrap_or(false)
    }
}

impl<F: Fn(String) -> bool + Clone + Send + Sync + 'static> RequestHandler for ApprovalPrompt<F> {
    async fn command(
        &self,
        asked: CommandExecutionRequestApprovalParams,
    ) -> Option<CommandExecutionApprovalDecision> {
        let command = asked.command.unwrap_or_default();
        let reason = asked.reason.unwrap_or_default();
        Some(
            match self.is_yes(format!("run {command}? {reason}")).await {
                true => CommandExecutionApprovalDecision::Accept,
                false => CommandExecutionApprovalDecision::Decline,
            },
        )
    }

    async fn file_change(
        &self,
        asked: FileChangeRequestApprovalParams,
    ) -> Option<FileChangeApprovalDecision> {
        let reason = asked.reason.unwrap_or_default();
        Some(match self.is_yes(format!("change files? {reason}")).await {
            true => FileChangeApprovalDecision::Accept,
            false => FileChangeApprovalDecision::Decline,
        })
    }
}

/// Text that a terminal shows as it is: what would move its cursor or turn its writing round is spelt out.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for char in text.chars() {
        match char {
            '"' | '\'' | '\\' => plain.push(char),
            _ => plain.extend(char.escape_debug()),
        }
    }
    plain
}

/// Has the agent do something, and gives what it said in the end.
pub async fn work(
    place: ServerAddress,
    text: &str,
    answers: impl RequestHandler,
) -> Result<(TurnStatus, String), Box<dyn Error>> {
    let client = Client::connect(place, Options::new("approve", "1"), answers).await?;
    let params = ThreadStartParams {
        approval_policy: Some(AskForApproval::OnRequest),
        ..ThreadStartParams::default()
    };
    let mut follow = client.start(params).await?;
    follow.say(text).await?;
    let turn = follow.finish().await.ok_or("the thread was lost")?;
    let said = follow
        .thread()
        .last_message()
        .unwrap_or_default()
        .to_owned();
    client.close().await;
    Ok((turn.status, said))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(raddle), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err("give the path of raddle, and what to do".into());
    };
    let gate = ApprovalPrompt(|question: String| {
        let mut line = String::new();
        let _ = write!(std::io::stderr(), "{question} [y/N] ");
        let read = std::io::stdin().lock().read_line(&mut line);
        read.is_ok() && line.trim() == "y"
    });
    let place = ServerAddress::Child(Program::new(raddle, ["app-server"]));
    let (status, said) = work(place, &text, gate).await?;
    for line in said.lines() {
        writeln!(std::io::stdout(), "{}", plain(line))?;
    }
    match status {
        TurnStatus::Completed => Ok(()),
        other => Err(format!("the turn is {other:?}").into()),
    }
}
