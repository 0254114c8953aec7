//! Servers that are killed in the middle of a turn, and clients that resume on the next server.

use anyhow::{Context, Result};
use serde_json::json;
use support::Fold;

use crate::client::{ClientOptIns, RejoinClient};
use crate::server::{RejoinHarness, RejoinServer, ServerEndpoint};

/// Prompt of the turn; it takes about this many messages.
const TEXT: &str =
    "MOCK reasoning n=60 size=20 stamp=1 gap_us=700 text n=180 size=20 stamp=1 gap_us=700";
const MESSAGES: usize = 256;

/// Kills a server repeatedly, each time later in a turn.
pub fn run(harness: &RejoinHarness, endpoint: ServerEndpoint, kills: usize) -> Result<()> {
    let mut server = serve(harness, endpoint)?;
    let mut client = server.client(endpoint, ClientOptIns::Numbers)?;
    for kill in 0..kills {
        let thread = client.start_thread()?;
        client.start_turn(&thread, TEXT)?;
        let mut fold = Fold::default();
        let mut last_seq = 0;
        for _ in 0..kill * MESSAGES / kills {
            let message = client.next_notification(&thread)?;
            last_seq = message.seq.unwrap_or(last_seq);
            fold.apply(&message)?;
            if fold.is_over() {
                break;
            }
        }
        server.kill()?;
        server = serve(harness, endpoint)?;
        // Every other resuming client does not use numbers.
        let opt_ins = if kill % 2 == 0 {
            ClientOptIns::Numbers
        } else {
            ClientOptIns::Nothing
        };
        let mut resumed = server.client(endpoint, opt_ins)?;
        resume(&mut resumed, opt_ins, &thread, last_seq, &mut fold)
            .with_context(|| format!("killed {kill} of {kills}, after {last_seq}, {endpoint:?}"))?;
        client = match endpoint {
            ServerEndpoint::Stdio => resumed,
            _ => server.client(endpoint, ClientOptIns::Numbers)?,
        };
        if endpoint == ServerEndpoint::Stdio && opt_ins == ClientOptIns::Nothing {
            // The one client of a server on stdio cannot initialize again.
            drop(client);
            server.kill()?;
            server = serve(harness, endpoint)?;
            client = server.client(endpoint, ClientOptIns::Numbers)?;
        }
    }
    Ok(())
}

fn serve(harness: &RejoinHarness, endpoint: ServerEndpoint) -> Result<RejoinServer> {
    match endpoint {
        ServerEndpoint::Stdio => harness.serve_stdio(),
        ServerEndpoint::Websocket | ServerEndpoint::Unix => harness.serve(),
    }
}

/// Receives the rest of the turn, and checks that the notifications of both servers add up to the
/// snapshot.
fn resume(
    client: &mut RejoinClient,
    opt_ins: ClientOptIns,
    thread: &str,
    last_seq: u64,
    fold: &mut Fold,
) -> Result<()> {
    match opt_ins {
        ClientOptIns::Numbers => client.rejoin(thread, last_seq)?,
        ClientOptIns::Nothing => {
            let params = json!({"threadId": thread});
            let answer = client.request("thread/resume", params)?;
            let snapshot = Fold::of_turns(&answer["thread"]["turns"])?;
            fold.ensure_contained_in(&snapshot)?;
            *fold = snapshot;
        }
    }
    client.fold_until_over(fold, thread)?;
    client.ensure_equal(fold, thread)
}
