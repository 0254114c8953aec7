//! The writing half of a websocket.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::pongs::Pongs;
use crate::socket_stream::{SocketStream, WriteError};
use crate::{Close, DataLoss, Outgoing, WriterStep};

/// How long a peer that was told goodbye has to say the same.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Short frames are written together; one longer than this is written from where it is.
const COALESCE_BYTES_MAX: usize = 16 << 10;

/// The longest reason that fits into a close frame.
const REASON_BYTES_MAX: usize = 123;

/// How often a peer is pinged to which nothing else was written. An answer is not waited for: that a peer has
/// gone is noticed by its system, which no longer takes what is written, and a slow one may have much to read
/// before the ping.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(30);

pub(super) struct WebsocketWriter {
    stream: SocketStream,
    pongs: Pongs,
    /// How long the peer may take nothing.
    deadline: Duration,
    /// Frames that leave together.
    buffer: Vec<u8>,
}

/// Why nothing more can be written.
#[derive(Debug, PartialEq, Eq)]
enum WriteFailure {
    Failed,
    /// The peer took nothing in time. This is left of the frames that are begun.
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

    /// Writes what is sent until the connection is closed or the peer takes nothing any more.
    pub(super) async fn run(mut self, outgoing: Outgoing, loss: DataLoss) {
        let Err(stop) = self.write(&outgoing).await else {
            return outgoing.mark_gone();
        };
        let why = match stop {
            WriteFailure::Failed => "write failed",
            WriteFailure::NotRead(_) => "write deadline passed",
        };
        tracing::info!(why, "websocket peer is gone");
        if outgoing.queued_bytes() > 0 {
            loss.note(why);
        }
        // First what frees memory.
        outgoing.mark_gone();
        if let WriteFailure::NotRead(rest) = stop {
            self.flush_close(rest).await;
        }
    }

    async fn write(&mut self, outgoing: &Outgoing) -> Result<(), WriteFailure> {
        let mut batch: Vec<Bytes> = Vec::new();
        let mut silence = every(PING_INTERVAL);
        let mut is_silent = true;
        loop {
            let pongs = self.pongs.clone();
            let written = tokio::select! {
                biased;
                written = outgoing.take(&mut batch) => Some(written),
                () = pongs.changed() => None,
                _ = silence.tick() => {
                    if std::mem::replace(&mut is_silent, true) {
                        self.put(OpCode::Control(Control::Ping), b"").await?;
                        self.flush().await?;
                    }
                    continue;
                }
            };
            is_silent = false;
            match written {
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
            // Nobody should have to wait for a long batch to know that we are there.
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

    /// Leaves the rest of what was begun and the reason for a peer that may read after all. If the system has no
    /// room for them, it finds an end without a word. The system would reset a TCP connection that nobody holds
    /// and whose peer takes nothing, so such a one is held for half as long again.
    async fn flush_close(mut self, rest: Bytes) {
        self.buffer = rest.into();
        let close = close_payload(&Close::NOT_READ);
        if self.add(OpCode::Control(Control::Close), &close).is_err() {
            return;
        }
        self.stream.grow_send_buffer();
        let taken = self.stream.write_now(&self.buffer);
        let is_whole = taken.is_ok_and(|count| count == self.buffer.len());
        // It may take minutes.
        self.buffer = Vec::new();
        if is_whole {
            let held = match self.stream.is_tcp() {
                true => self.deadline / 2,
                false => CLOSE_TIMEOUT,
            };
            let _ = timeout(held, self.stream.close_gracefully()).await;
        }
    }

    /// One whole frame; a short one leaves with the next flush.
    async fn put(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), WriteFailure> {
        if payload.len() <= COALESCE_BYTES_MAX {
            self.add(opcode, payload)?;
            if self.buffer.len() > COALESCE_BYTES_MAX {
                self.flush().await?;
            }
            return Ok(());
        }
        self.head(opcode, payload.len())?;
        if let Err(stop) = self.flush().await {
            return Err(stop.before(payload));
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
    /// This was to be written next.
    fn before(self, payload: &[u8]) -> Self {
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

/// What stands in a close frame.
fn close_payload(close: &Close) -> Vec<u8> {
    let reason = &close.reason[..close.reason.floor_char_boundary(REASON_BYTES_MAX)];
    let mut payload = close.code.to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    payload
}

/// Writes everything, if the peer takes something in time.
async fn write_all(
    line: &mut SocketStream,
    bytes: &[u8],
    deadline: Duration,
) -> Result<(), WriteFailure> {
    line.write_within(bytes, deadline)
        .await
        .map_err(|why| match why {
            WriteError::Failed(_) => WriteFailure::Failed,
            WriteError::NotRead(left) => {
                WriteFailure::NotRead(Bytes::copy_from_slice(&bytes[bytes.len() - left..]))
            }
        })
}

#[cfg(test)]
mod tests;
