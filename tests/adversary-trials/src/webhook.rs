//! A remote approver for requests without an attached client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;
use serde_json::Value;

/// A remote approver that is called over HTTP.
pub struct RemoteApprover {
    pub url: String,
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl RemoteApprover {
    /// Starts an approver that accepts everything, or fails.
    pub fn open(fails: bool) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let stop = is_over.clone();
        let serving = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                // An invalid request gets no answer, and the deadline shows that.
                let _ = answer(stream, fails);
            }
        });
        Ok(Self {
            url: format!("http://{address}/hook"),
            address,
            is_over,
            serving: Some(serving),
        })
    }
}

impl Drop for RemoteApprover {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        self.serving.take().map(JoinHandle::join);
    }
}

/// Reads one request and answers it.
fn answer(stream: TcpStream, fails: bool) -> Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let question: Value = serde_json::from_slice(&body)?;
    let is_whole = question["params"]["threadId"].is_string() && question["deadlineMs"].is_u64();
    let (status, body_text) = match (fails, is_whole) {
        (true, _) => ("500 Oh", "{}"),
        (false, true) => ("200 OK", r#"{"decision": "accept"}"#),
        (false, false) => ("400 Oh", "{}"),
    };
    let length = body_text.len();
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    Ok(reader.get_mut().write_all((head + body_text).as_bytes())?)
}
