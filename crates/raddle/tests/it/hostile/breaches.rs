//! Input that only a websocket can carry: protocol violations, fragments, binary frames.

use super::expected::ExpectedReply;
use super::frames::FrameRng;
use crate::support::websocket::{BINARY, CLOSE, CONTINUATION, FIN, PING, TEXT, frame};

pub struct Breaches {
    rng: FrameRng,
    cap: usize,
}

impl Breaches {
    pub fn new(seed: u64, cap: usize) -> Self {
        let rng = FrameRng::new(seed ^ 0xb4ea);
        Self { rng, cap }
    }

    /// Returns, now and then, input that is not a text message.
    pub fn next(&mut self) -> Option<(Vec<u8>, ExpectedReply)> {
        if !self.rng.one_in(16) {
            return None;
        }
        let breach = |bytes: Vec<u8>| (bytes, ExpectedReply::Close(1002));
        Some(match self.rng.below(20) {
            0..=4 => {
                let length = self.rng.below(200);
                let payload = self.rng.bytes(length);
                (frame(FIN | BINARY, &payload), ExpectedReply::Counted)
            }
            // A ping is answered by a pong, which is no message.
            5 | 6 => (frame(FIN | PING, b"are you there"), ExpectedReply::Ignored),
            7 => (
                frame(FIN | CLOSE, &1000_u16.to_be_bytes()),
                ExpectedReply::Close(1000),
            ),
            8 => breach(frame(FIN | 0x40 | TEXT, b"{}")),
            9 => breach(frame(FIN | 0x3, b"{}")),
            10 => breach(frame(FIN | 0xb, b"{}")),
            11 => breach(frame(FIN | CONTINUATION, b"{}")),
            12 => breach([frame(TEXT, b"{"), frame(FIN | TEXT, b"}")].concat()),
            13 => breach(frame(FIN | PING, &[b'x'; 126])),
            14 => breach(frame(PING, b"x")),
            15 => breach(frame(FIN | CLOSE, b"x")),
            // Without a mask.
            16 => breach(vec![FIN | TEXT, 2, b'{', b'}']),
            // Half a character at the end of the last fragment.
            17 => {
                let fragments = [frame(TEXT, b"\"\xe2"), frame(FIN | CONTINUATION, b"\x82")];
                (fragments.concat(), ExpectedReply::Close(1007))
            }
            // Each fragment is under the cap, but not their sum.
            18 => {
                let half = vec![b' '; self.cap / 2 + 1];
                let fragments = [frame(TEXT, &half), frame(FIN | CONTINUATION, &half)];
                (fragments.concat(), ExpectedReply::Close(1009))
            }
            // Only the header with the length.
            _ => {
                let mut bytes = vec![FIN | TEXT, 0xff];
                bytes.extend((1_u64 << 62).to_be_bytes());
                bytes.extend([0; 4]);
                (bytes, ExpectedReply::Close(1009))
            }
        })
    }

    /// A text message, now and then in fragments with a ping between them.
    pub fn cut(&mut self, message: &[u8]) -> Vec<u8> {
        if !self.rng.one_in(5) || message.len() < 3 {
            return frame(FIN | TEXT, message);
        }
        let first = self.rng.below(message.len());
        let second = first + self.rng.below(message.len() - first);
        [
            frame(TEXT, &message[..first]),
            frame(CONTINUATION, &message[first..second]),
            frame(FIN | PING, b"between"),
            frame(FIN | CONTINUATION, &message[second..]),
        ]
        .concat()
    }
}
