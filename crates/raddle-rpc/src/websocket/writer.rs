//! The writing half of a websocket.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::pongs::Pongs;
use crate::socket_stream::{SocketStream, WriteError};
use crate::{Close, DataLoss, Outgoing, WriterStep};

/// Time for the peer to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum size of a combined write; a longer frame is written without copying.
const COALESCE_BYTES_MAX: usize = 16 << 10;

/// Maximum length of a reason in a close frame.
const REASON_BYTES_MAX: usize = 123;

/// Interval of pings to an idle peer. The writer does not wait for pongs: a vanished peer shows by
/// its kernel, which stops accepting data, and a slow peer may have much to read before the ping.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct WebsocketWriter {
    stream: SocketStream,
    pongs: Pongs,
    /// Timeout of a peer that makes no progress.
    deadline: Duration,
    /// Frames of the next combined write.
    buffer: Vec<u8>,
}

/// Reason why nothing more can be written.
#[derive(Debug, PartialEq, Eq)]
enum WriteFailure {
    Failed,
    /// The peer read nothing in time. Holds the rest of the frames that were begun.
    NotRead(Bytes),
}

impl WebsocketWriter {
    pub(super) fn new(stream: SocketStream, pongs: Pongs, deadline: Duration) -> Self {
        Self {
            stream,
            pongs,
            deadline,
            buffer: Vec::new(),
        }
    }

    /// Writes the queued frames until the connection is closed or the peer stops reading.
    pub(super) async fn run(mut self, outgoing: Outgoing, loss: DataLoss) {
        let Err(failure) = self.write(&outgoing).await else {
            return outgoing.mark_gone();
        };
        let why = match failure {
            WriteFailure::Failed => "write failed",
            WriteFailure::NotRead(_) => "write deadline passed",
        };
        tracing::info!(why, "websocket peer is gone");
        if outgoing.queued_bytes() > 0 {
            loss.note(why);
        }
        // First free the memory.
        outgoing.mark_gone();
        if let WriteFailure::NotRead(rest) = failure {
            self.flush_close(rest).await;
        }
    }

    async fn write(&mut self, outgoing: &Outgoing) -> Result<(), WriteFailure> {
        let mut batch: Vec<Bytes> = Vec::new();
        let mut ping_timer = every(PING_INTERVAL);
        let mut is_silent = true;
        loop {
            let pongs = self.pongs.clone();
            let step = tokio::select! {
                biased;
                step = outgoing.take(&mut batch) => Some(step),
                () = pongs.changed() => None,
                _ = ping_timer.tick() => {
                    if std::mem::replace(&mut is_silent, true) {
                        self.put(OpCode::Control(Control::Ping), b"").await?;
                        self.flush().await?;
                    }
                    continue;
                }
            };
            is_silent = false;
            match step {
                None => self.pong().await?,
                Some(WriterStep::Frames) => self.send(&mut batch).await?,
                Some(WriterStep::Closed(close)) => return self.send_close(&close).await,
            }
            self.flush().await?;
        }
    }

    async fn send(&mut self, batch: &mut Vec<Bytes>) -> Result<(), WriteFailure> {
        for frame in batch.drain(..) {
            self.put(OpCode::Data(Data::Text), &frame).await?;
            // Answer pings during a long batch, so that the peer does not time out.
            self.pong().await?;
        }
        Ok(())
    }

    async fn pong(&mut self) -> Result<(), WriteFailure> {
        match self.pongs.take() {
            Some(payload) => self.put(OpCode::Control(Control::Pong), &payload).await,
            None => Ok(()),
        }
    }

    async fn send_close(&mut self, close: &Close) -> Result<(), WriteFailure> {
        self.put(OpCode::Control(Control::Close), &close_payload(close))
            .await?;
        self.flush().await?;
        let _ = timeout(CLOSE_TIMEOUT, self.stream.close_gracefully()).await;
        Ok(())
    }

    /// Leaves the rest of the begun frames and a close frame in the kernel's buffer, for a peer
    /// that may read later. If they do not fit, the peer sees an end without a reason. The kernel
    /// would reset a closed TCP connection whose peer reads nothing, so the socket is held for half
    /// a deadline more.
    async fn flush_close(mut self, rest: Bytes) {
        self.buffer = rest.into();
        let close = close_payload(&Close::NOT_READ);
        if self.add(OpCode::Control(Control::Close), &close).is_err() {
            return;
        }
        self.stream.grow_send_buffer();
        let written = self.stream.write_now(&self.buffer);
        let is_whole = written.is_ok_and(|count| count == self.buffer.len());
        // The close may take minutes, so free the memory first.
        self.buffer = Vec::new();
        if is_whole {
            let linger = match self.stream.is_tcp() {
                true => self.deadline / 2,
                false => CLOSE_TIMEOUT,
            };
            let _ = timeout(linger, self.stream.close_gracefully()).await;
        }
    }

    /// Adds one whole frame. A short one is written with the next flush.
    async fn put(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), WriteFailure> {
        if payload.len() <= COALESCE_BYTES_MAX {
            self.add(opcode, payload)?;
            if self.buffer.len() > COALESCE_BYTES_MAX {
                self.flush().await?;
            }
            return Ok(());
        }
        self.head(opcode, payload.len())?;
        if let Err(failure) = self.flush().await {
            return Err(failure.followed_by(payload));
        }
        write_all(&mut self.stream, payload, self.deadline).await
    }

    fn add(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), WriteFailure> {
        self.head(opcode, payload.len())?;
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    fn head(&mut self, opcode: OpCode, length: usize) -> Result<(), WriteFailure> {
        let header = FrameHeader {
            opcode,
            ..FrameHeader::default()
        };
        let written = header.format(length as u64, &mut self.buffer);
        written.map_err(|_| WriteFailure::Failed)
    }

    async fn flush(&mut self) -> Result<(), WriteFailure> {
        write_all(&mut self.stream, &self.buffer, self.deadline).await?;
        self.buffer.clear();
        Ok(())
    }
}

impl WriteFailure {
    /// Appends a payload that was to be written next.
    fn followed_by(self, payload: &[u8]) -> Self {
        match self {
            Self::NotRead(rest) => Self::NotRead([&rest, payload].concat().into()),
            Self::Failed => Self::Failed,
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The payload of a close frame.
fn close_payload(close: &Close) -> Vec<u8> {
    let reason = &close.reason[..close.reason.floor_char_boundary(REASON_BYTES_MAX)];
    let mut payload = close.code.to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    payload
}

/// Writes everything, unless the peer makes no progress within the deadline.
async fn write_all(
    stream: &mut SocketStream,
    bytes: &[u8],
    deadline: Duration,
) -> Result<(), WriteFailure> {
    stream
        .write_within(bytes, deadline)
        .await
        .map_err(|why| match why {
            WriteError::Failed(_) => WriteFailure::Failed,
            WriteError::NotRead(remaining) => {
                WriteFailure::NotRead(Bytes::copy_from_slice(&bytes[bytes.len() - remaining..]))
            }
        })
}

#[cfg(test)]
mod tests;
