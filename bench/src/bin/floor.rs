//! The floor: a minimal server on this wire, as the baseline of the measurement.
//!
//! It reads the envelope of each message and answers with a fixed text. It has no gate, no lanes,
//! no handlers, no bounds and no config, so Raddle's additional cost is the cost of those.
//!
//! Usage: `floor stdio` or `floor ws`. It serves only the measurement.

use std::io::Write;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

const QUEUE_MAX: usize = 1024;
const READ_BYTES: usize = 256 * 1024;
/// Maximum size of one write in bytes; responses that are ready together are batched.
/// `WRITE_FRAMES` is the limit in frames.
const WRITE_BYTES: usize = 60_000;
const WRITE_FRAMES: usize = 256;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a str>,
}

/// Returns the response to a request, without the newline; `None` for other messages.
fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let envelope: Envelope<'_> = serde_json::from_slice(message).ok()?;
    let (id, method) = (envelope.id?, envelope.method?);
    let result = match method {
        "initialize" => r#"{"userAgent":"floor"}"#,
        _ => r#"{"data":[]}"#,
    };
    Some(format!(r#"{{"id":{},"result":{result}}}"#, id.get()).into_bytes())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("stdio") => stdio().await,
        Some("ws") => websocket().await,
        _ => bail!("say `stdio` or `ws`"),
    }
}

async fn stdio() -> Result<()> {
    let (sender, answers) = mpsc::channel(QUEUE_MAX);
    let writer = std::thread::spawn(move || write_lines(answers));
    let mut input = BufReader::with_capacity(READ_BYTES, tokio::io::stdin());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).await? > 0 {
        if let Some(mut answer) = answer(&line) {
            answer.push(b'\n');
            if sender.send(answer).await.is_err() {
                break;
            }
        }
        line.clear();
    }
    drop(sender);
    writer.join().ok().context("the writer panicked")??;
    Ok(())
}

/// Writes lines with plain blocking calls on a separate thread: nothing is faster on a pipe.
fn write_lines(mut answers: mpsc::Receiver<Vec<u8>>) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    while let Some(mut batch) = answers.blocking_recv() {
        while batch.len() < WRITE_BYTES {
            match answers.try_recv() {
                Ok(answer) => batch.extend_from_slice(&answer),
                Err(_) => break,
            }
        }
        output.write_all(&batch)?;
        output.flush()?;
    }
    Ok(())
}

async fn websocket() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on ws://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream));
    }
}

async fn serve(stream: TcpStream) -> Result<()> {
    let (mut sink, mut messages) = tokio_tungstenite::accept_async(stream).await?.split();
    let (sender, mut answers) = mpsc::channel::<Utf8Bytes>(QUEUE_MAX);
    let writer = tokio::spawn(async move {
        while let Some(answer) = answers.recv().await {
            sink.feed(Message::Text(answer)).await?;
            for _ in 0..WRITE_FRAMES {
                let Ok(answer) = answers.try_recv() else {
                    break;
                };
                sink.feed(Message::Text(answer)).await?;
            }
            sink.flush().await?;
        }
        anyhow::Ok(())
    });
    while let Some(message) = messages.next().await {
        let Message::Text(text) = message? else {
            continue;
        };
        if let Some(answer) = answer(text.as_bytes()) {
            sender
                .send(Utf8Bytes::try_from(Bytes::from(answer))?)
                .await?;
        }
    }
    drop(sender);
    writer.await?
}
