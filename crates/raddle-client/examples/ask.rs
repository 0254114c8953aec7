//! Asks once, and prints the answer as it streams:
//! `cargo run -p raddle-client --example ask -- target/release/raddle "What is a raddle?"`

use std::error::Error;
use std::io::Write;

use raddle_client::protocol::{Notification, ThreadStartParams, TurnStatus};
use raddle_client::{Client, Options, Program, RejectAll, ServerAddress, Stderr, ThreadEvent};

/// Writes the answer as it streams, and returns the status of the turn.
pub async fn ask(
    address: ServerAddress,
    text: &str,
    out: &mut impl Write,
) -> Result<TurnStatus, Box<dyn Error>> {
    let client = Client::connect(address, Options::new("ask", "1"), RejectAll).await?;
    let mut follower = client.start(ThreadStartParams::default()).await?;
    follower.say(text).await?;
    let mut status = TurnStatus::InProgress;
    while status == TurnStatus::InProgress {
        match follower.next().await {
            Some(ThreadEvent::Notification { notification, .. }) => match *notification {
                Notification::AgentMessageDelta(it) => write!(out, "{}", it.delta)?,
                Notification::TurnCompleted(it) => status = it.turn.status,
                _ => {}
            },
            Some(ThreadEvent::Lost { why }) => return Err(why.into()),
            Some(_) => {}
            None => break,
        }
        out.flush()?;
    }
    writeln!(out)?;
    client.close().await;
    Ok(status)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(raddle), Some(text)) = (arguments.next(), arguments.next()) else {
        return Err("give the path of raddle, and what to ask".into());
    };
    let mut program = Program::new(raddle, ["app-server"]);
    program.stderr = Stderr::Inherit;
    let status = ask(ServerAddress::Child(program), &text, &mut std::io::stdout()).await?;
    match status {
        TurnStatus::Completed => Ok(()),
        other => Err(format!("the turn is {other:?}").into()),
    }
}
