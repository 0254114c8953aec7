//! The writing half of a websocket.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::pongs::Pongs;
use crate::line::{Line, Unwritten};
use crate::{Close, Loss, Outgoing, Written};

/// How long a peer that was told goodbye has to say the same.
const GOODBYE: Duration = Duration::from_secs(2);

/// Short frames are written together; one longer than this is written from where it is.
const TOGETHER_BYTES: usize = 16 << 10;

/// The longest reason that fits into a close frame.
const REASON_BYTES_MAX: usize = 123;

/// How often a peer is pinged to which nothing else was written. An answer is not waited for: that a peer has
/// gone is noticed by its system, which no longer takes what is written, and a slow one may have much to read
/// before the ping.
pub(crate) const PING: Duration = Duration::from_secs(30);

pub(super) struct Writer {
    line: Line,
    pongs: Pongs,
    /// How long the peer may take nothing.
    deadline: Duration,
    /// Frames that leave together.
    buffer: Vec<u8>,
}

/// Why nothing more can be written.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    Failed,
    /// The peer took nothing in time. This is left of the frames that are begun.
    NotRead(Bytes),
}

impl Writer {
    pub(super) fn new(line: Line, pongs: Pongs, deadline: Duration) -> Self {
        Self {
            line,
            pongs,
            deadline,
            buffer: Vec::new(),
        }
    }

    /// Writes what is sent until the connection is closed or the peer takes nothing any more.
    pub(super) async fn run(mut self, outgoing: Outgoing, loss: Loss) {
        let Err(stop) = self.write(&outgoing).await else {
            return outgoing.gone();
        };
        let why = match stop {
            Stop::Failed => "write failed",
            Stop::NotRead(_) => "write deadline passed",
        };
        tracing::info!(why, "websocket peer is gone");
        if outgoing.queued_bytes() > 0 {
            loss.note(why);
        }
        // First what frees memory.
        outgoing.gone();
        if let Stop::NotRead(rest) = stop {
            self.last_words(rest).await;
        }
    }

    async fn write(&mut self, outgoing: &Outgoing) -> Result<(), Stop> {
        let mut batch: Vec<Bytes> = Vec::new();
        let mut silence = every(PING);
        let mut is_silent = true;
        loop {
            let pongs = self.pongs.clone();
            let written = tokio::select! {
                biased;
                written = outgoing.take(&mut batch) => Some(written),
                () = pongs.news() => None,
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
                Some(Written::Frames) => self.send(&mut batch).await?,
                Some(Written::Closed(close)) => return self.goodbye(&close).await,
            }
            self.flush().await?;
        }
    }

    async fn send(&mut self, batch: &mut Vec<Bytes>) -> Result<(), Stop> {
        for frame in batch.drain(..) {
            self.put(OpCode::Data(Data::Text), &frame).await?;
            // Nobody should have to wait for a long batch to know that we are there.
            self.pong().await?;
        }
        Ok(())
    }

    async fn pong(&mut self) -> Result<(), Stop> {
        match self.pongs.take() {
            Some(payload) => self.put(OpCode::Control(Control::Pong), &payload).await,
            None => Ok(()),
        }
    }

    async fn goodbye(&mut self, close: &Close) -> Result<(), Stop> {
        self.put(OpCode::Control(Control::Close), &farewell(close))
            .await?;
        self.flush().await?;
        let _ = timeout(GOODBYE, self.line.hang_up()).await;
        Ok(())
    }

    /// Leaves the rest of what was begun and the reason for a peer that may read after all. If the system has no
    /// room for them, it finds an end without a word. The system would reset a TCP connection that nobody holds
    /// and whose peer takes nothing, so such a one is held for half as long again.
    async fn last_words(mut self, rest: Bytes) {
        self.buffer = rest.into();
        let close = farewell(&Close::NOT_READ);
        if self.add(OpCode::Control(Control::Close), &close).is_err() {
            return;
        }
        self.line.make_room();
        let taken = self.line.write_now(&self.buffer);
        let is_whole = taken.is_ok_and(|count| count == self.buffer.len());
        // It may take minutes.
        self.buffer = Vec::new();
        if is_whole {
            let held = match self.line.is_tcp() {
                true => self.deadline / 2,
                false => GOODBYE,
            };
            let _ = timeout(held, self.line.hang_up()).await;
        }
    }

    /// One whole frame; a short one leaves with the next flush.
    async fn put(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), Stop> {
        if payload.len() <= TOGETHER_BYTES {
            self.add(opcode, payload)?;
            if self.buffer.len() > TOGETHER_BYTES {
                self.flush().await?;
            }
            return Ok(());
        }
        self.head(opcode, payload.len())?;
        if let Err(stop) = self.flush().await {
            return Err(stop.before(payload));
        }
        write_all(&mut self.line, payload, self.deadline).await
    }

    fn add(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), Stop> {
        self.head(opcode, payload.len())?;
        self.buffer.extend_from_slice(payload);
        Ok(())
    }

    fn head(&mut self, opcode: OpCode, length: usize) -> Result<(), Stop> {
        let header = FrameHeader {
            opcode,
            ..FrameHeader::default()
        };
        let written = header.format(length as u64, &mut self.buffer);
        written.map_err(|_| Stop::Failed)
    }

    async fn flush(&mut self) -> Result<(), Stop> {
        write_all(&mut self.line, &self.buffer, self.deadline).await?;
        self.buffer.clear();
        Ok(())
    }
}

impl Stop {
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
fn farewell(close: &Close) -> Vec<u8> {
    let reason = &close.reason[..close.reason.floor_char_boundary(REASON_BYTES_MAX)];
    let mut payload = close.code.to_be_bytes().to_vec();
    payload.extend_from_slice(reason.as_bytes());
    payload
}

/// Writes everything, if the peer takes something in time.
async fn write_all(line: &mut Line, bytes: &[u8], deadline: Duration) -> Result<(), Stop> {
    line.put(bytes, deadline).await.map_err(|why| match why {
        Unwritten::Failed(_) => Stop::Failed,
        Unwritten::NotRead(left) => {
            Stop::NotRead(Bytes::copy_from_slice(&bytes[bytes.len() - left..]))
        }
    })
}

#[cfg(test)]
mod tests;
