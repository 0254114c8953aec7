//! Servers that are killed in the middle of a turn, and clients that come back to the next one.

use anyhow::{Context, Result};
use serde_json::json;

use crate::client::{ClientOptIns, RejoinClient};
use crate::fold::Fold;
use crate::server::{RejoinHarness, RejoinServer, ServerEndpoint};

/// What the model says; about so many messages tell of it.
const TEXT: &str =
    "MOCK reasoning n=60 size=20 stamp=1 gap_us=700 text n=180 size=20 stamp=1 gap_us=700";
const MESSAGES: usize = 256;

/// Kills a server so many times, each time later in a turn than the time before.
pub fn run(bench: &RejoinHarness, door: ServerEndpoint, kills: usize) -> Result<()> {
    let mut server = serve(bench, door)?;
    let mut client = server.client(door, ClientOptIns::Numbers)?;
    for kill in 0..kills {
        let thread = client.start_thread()?;
        client.say(&thread, TEXT)?;
        let mut knows = Fold::default();
        let mut seen = 0;
        for _ in 0..kill * MESSAGES / kills {
            let message = client.told(&thread)?;
            seen = message.seq.unwrap_or(seen);
            knows.hear(&message)?;
            if knows.is_over() {
                break;
            }
        }
        server.kill()?;
        server = serve(bench, door)?;
        // Of those who come back every other one knows no numbers.
        let wishes = if kill % 2 == 0 {
            ClientOptIns::Numbers
        } else {
            ClientOptIns::Nothing
        };
        let mut back = server.client(door, wishes)?;
        come_back(&mut back, wishes, &thread, seen, &mut knows)
            .with_context(|| format!("killed {kill} of {kills}, after {seen}, {door:?}"))?;
        client = match door {
            ServerEndpoint::Stdio => back,
            _ => server.client(door, ClientOptIns::Numbers)?,
        };
        if door == ServerEndpoint::Stdio && wishes == ClientOptIns::Nothing {
            // The one client of a server on stdio cannot introduce itself anew.
            drop(client);
            server.kill()?;
            server = serve(bench, door)?;
            client = server.client(door, ClientOptIns::Numbers)?;
        }
    }
    Ok(())
}

fn serve(bench: &RejoinHarness, door: ServerEndpoint) -> Result<RejoinServer> {
    match door {
        ServerEndpoint::Stdio => bench.serve_stdio(),
        ServerEndpoint::Websocket | ServerEndpoint::Unix => bench.serve(),
    }
}

/// Hears the turn out, and sees that what was told in both lives is what the server shows.
fn come_back(
    client: &mut RejoinClient,
    wishes: ClientOptIns,
    thread: &str,
    seen: u64,
    knows: &mut Fold,
) -> Result<()> {
    match wishes {
        ClientOptIns::Numbers => client.rejoin(thread, seen)?,
        ClientOptIns::Nothing => {
            let params = json!({"threadId": thread});
            let answer = client.ask("thread/resume", params)?;
            let shown = Fold::of_turns(&answer["thread"]["turns"])?;
            knows.is_kept_in(&shown)?;
            *knows = shown;
        }
    }
    knows.hear_out(client, thread)?;
    knows.is_shown(client, thread)
}
