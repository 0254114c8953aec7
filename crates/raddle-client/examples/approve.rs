//! Asks on the terminal before the agent does anything that needs approval:
//! `cargo run -p raddle-client --example approve -- target/release/raddle "Remove the build
//! folder"`

use std::error::Error;
use std::io::{BufRead, Write};

use raddle_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    FileChangeApprovalDecision, FileChangeRequestApprovalParams, ThreadStartParams, TurnStatus,
};
use raddle_client::{Client, HandlerAnswer, Options, Program, RequestHandler, ServerAddress};

/// Passes approval requests to a function that asks the user.
pub struct ApprovalPrompt<F>(pub F);

impl<F: Fn(String) -> bool + Clone + Send + Sync + 'static> ApprovalPrompt<F> {
    async fn is_approved(&self, question: String) -> bool {
        let ask = self.0.clone();
        let question = plain(&question);
        // The user may take long; run the prompt without blocking the client.
        let answer = tokio::task::spawn_blocking(move || ask(question)).await;
        answer.unwrap_or(false)
    }
}

impl<F: Fn(String) -> bool + Clone + Send + Sync + 'static> RequestHandler for ApprovalPrompt<F> {
    async fn command(
        &self,
        params: CommandExecutionRequestApprovalParams,
    ) -> HandlerAnswer<CommandExecutionApprovalDecision> {
        let command = params.command.unwrap_or_default();
        let reason = params.reason.unwrap_or_default();
        HandlerAnswer::Given(
            match self.is_approved(format!("run {command}? {reason}")).await {
                true => CommandExecutionApprovalDecision::Accept,
                false => CommandExecutionApprovalDecision::Decline,
            },
        )
    }

    async fn file_change(
        &self,
        params: FileChangeRequestApprovalParams,
    ) -> HandlerAnswer<FileChangeApprovalDecision> {
        let reason = params.reason.unwrap_or_default();
        HandlerAnswer::Given(
            match self.is_approved(format!("change files? {reason}")).await {
                true => FileChangeApprovalDecision::Accept,
                false => FileChangeApprovalDecision::Decline,
            },
        )
    }
}

/// Escapes the characters that would move a terminal's cursor or change the direction of text.
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

/// Runs one turn, and returns its status and the agent's last message.
pub async fn work(
    address: ServerAddress,
    text: &str,
    handler: impl RequestHandler,
) -> Result<(TurnStatus, String), Box<dyn Error>> {
    let client = Client::connect(address, Options::new("approve", "1"), handler).await?;
    let params = ThreadStartParams {
        approval_policy: Some(AskForApproval::OnRequest),
        ..ThreadStartParams::default()
    };
    let mut follower = client.start(params).await?;
    follower.say(text).await?;
    let turn = follower.finish().await.ok_or("the thread was lost")?;
    let message = follower
        .thread()
        .last_message()
        .unwrap_or_default()
        .to_owned();
    client.close().await;
    Ok((turn.status, message))
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
    let address = ServerAddress::Child(Program::new(raddle, ["app-server"]));
    let (status, message) = work(address, &text, gate).await?;
    for line in message.lines() {
        writeln!(std::io::stdout(), "{}", plain(line))?;
    }
    match status {
        TurnStatus::Completed => Ok(()),
        other => Err(format!("the turn is {other:?}").into()),
    }
}
