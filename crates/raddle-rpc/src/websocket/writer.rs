//! The writing half of a websocket.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::pongs::Pongs;
use crate::line::Line;
use crate::{Close, Loss, Outgoing, Written};

/// How long a peer that was told goodbye has to say the same.
const GOODBYE: Duration = Duration::from_secs(2);

/// Short frames are written together; one longer than this is written from where it is.
const TOGETHER_BYTES: usize = 16 << 10;

/// The longest reason that fits into a close frame.
const REASON_BYTES_MAX: usize = 123;

pub(super) struct Writer {
    line: Line,
    pongs: Pongs,
    /// How long the peer may take nothing.
    deadline: Duration,
    /// Frames that leave together.
    buffer: Vec<u8>,
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
        if let Err(why) = self.write(&outgoing).await {
            tracing::info!(why, "websocket peer is gone");
            if outgoing.queued_bytes() > 0 {
                loss.note(why);
            }
        }
        outgoing.gone();
    }

    async fn write(&mut self, outgoing: &Outgoing) -> Result<(), &'static str> {
        let mut batch: Vec<Bytes> = Vec::new();
        loop {
            let pongs = self.pongs.clone();
            let written = tokio::select! {
                written = outgoing.take(&mut batch) => Some(written),
                () = pongs.news() => None,
            };
            match written {
                None => self.pong().await?,
                Some(Written::Frames) => self.send(&mut batch).await?,
                Some(Written::Closed(close)) => return self.goodbye(&close).await,
            }
            self.flush().await?;
        }
    }

    async fn send(&mut self, batch: &mut Vec<Bytes>) -> Result<(), &'static str> {
        for frame in batch.drain(..) {
            self.put(OpCode::Data(Data::Text), &frame).await?;
            // Nobody should have to wait for a long batch to know that we are there.
            self.pong().await?;
        }
        Ok(())
    }

    async fn pong(&mut self) -> Result<(), &'static str> {
        match self.pongs.take() {
            Some(payload) => self.put(OpCode::Control(Control::Pong), &payload).await,
            None => Ok(()),
        }
    }

    async fn goodbye(&mut self, close: &Close) -> Result<(), &'static str> {
        let reason = &close.reason[..close.reason.floor_char_boundary(REASON_BYTES_MAX)];
        let mut payload = close.code.to_be_bytes().to_vec();
        payload.extend_from_slice(reason.as_bytes());
        self.put(OpCode::Control(Control::Close), &payload).await?;
        self.flush().await?;
        let _ = timeout(GOODBYE, self.line.hang_up()).await;
        Ok(())
    }

    /// One whole frame; a short one leaves with the next flush.
    async fn put(&mut self, opcode: OpCode, payload: &[u8]) -> Result<(), &'static str> {
        let header = FrameHeader {
            opcode,
            ..FrameHeader::default()
        };
        if header
            .format(payload.len() as u64, &mut self.buffer)
            .is_err()
        {
            return Err("a frame could not be written");
        }
        if payload.len() <= TOGETHER_BYTES {
            self.buffer.extend_from_slice(payload);
            if self.buffer.len() > TOGETHER_BYTES {
                self.flush().await?;
            }
            return Ok(());
        }
        self.flush().await?;
        write_all(&mut self.line, payload, self.deadline).await
    }

    async fn flush(&mut self) -> Result<(), &'static str> {
        write_all(&mut self.line, &self.buffer, self.deadline).await?;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes everything, however long that takes, as long as the peer takes something in time.
async fn write_all(
    line: &mut Line,
    mut bytes: &[u8],
    deadline: Duration,
) -> Result<(), &'static str> {
    while !bytes.is_empty() {
        match timeout(deadline, line.write(bytes)).await {
            Ok(Ok(count)) if count > 0 => bytes = &bytes[count..],
            Ok(_) => return Err("write failed"),
            Err(_) => return Err("write deadline passed"),
        }
    }
    Ok(())
}
