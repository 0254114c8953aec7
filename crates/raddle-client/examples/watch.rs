//! Watches a thread of a running server, and changes nothing:
//! `cargo run -p raddle-client --example watch -- ws://127.0.0.1:4500 THREAD_ID [TOKEN]`

use std::error::Error;
use std::io::Write;

use raddle_client::protocol::{ThreadId, extension};
use raddle_client::{Client, Options, RejectAll, ServerAddress, ThreadEvent};
use serde_json::json;

/// Writes a line per event, until the thread is lost or `is_enough` returns true.
pub async fn watch(
    address: ServerAddress,
    thread: ThreadId,
    out: &mut impl Write,
    is_enough: impl Fn(&ThreadEvent) -> bool,
) -> Result<(), Box<dyn Error>> {
    let mut options = Options::new("watch", "1");
    // An observer receives no requests.
    let observer = json!({"role": "observer"});
    options
        .extensions
        .insert(extension::ROLES.to_owned(), observer);
    let client = Client::connect(address, options, RejectAll).await?;
    let mut follower = client.open(thread).await?;
    while let Some(event) = follower.next().await {
        match &event {
            ThreadEvent::Notification { notification, seq } => {
                let seq = seq.map_or_else(String::new, |seq| seq.to_string());
                writeln!(out, "{seq:>6} {}", notification.method())?;
            }
            ThreadEvent::Disconnected { why } => writeln!(out, "       ({why}; coming back)")?,
            ThreadEvent::Reconnected => writeln!(out, "       (back)")?,
            ThreadEvent::Reset(_) => writeln!(out, "       (shown anew)")?,
            ThreadEvent::Lost { why } => writeln!(out, "       (lost: {why})")?,
            ThreadEvent::Question(_) | ThreadEvent::Unknown { .. } => {}
        }
        if is_enough(&event) {
            break;
        }
    }
    client.close().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(thread)) = (arguments.next(), arguments.next()) else {
        return Err("give the address of a server, and a thread's id".into());
    };
    let token = arguments.next();
    let address = ServerAddress::WebSocket { url, token };
    watch(address, thread.parse()?, &mut std::io::stdout(), |_| false).await
}
