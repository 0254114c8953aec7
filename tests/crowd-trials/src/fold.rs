//! State that a client derives from the notifications of one turn, and the latency of its text.

use anyhow::{Context, Result, ensure};
use memchr::memmem::find;
use serde_json::Value;
use support::{Fold, ServerMessage};

/// Length of a piece of the model's text. Each piece begins with the time at which it was sent.
pub const PIECE: usize = 150;

/// State of a turn at a client.
#[derive(Debug, Default)]
pub struct TimedFold {
    fold: Fold,
    /// Latency of each piece, in microseconds.
    pub latencies: Vec<u32>,
}

impl TimedFold {
    /// Returns the state before a turn that begins after this record.
    pub fn after(last_seq: u64) -> Self {
        Self {
            fold: Fold::after(last_seq),
            latencies: Vec::new(),
        }
    }

    /// Returns the state of a turn as a snapshot shows it. That lacks the number of the last
    /// record.
    pub fn of_turn(turn: &Value) -> Result<Self> {
        Ok(Self {
            fold: Fold::of_open_turn(turn)?,
            latencies: Vec::new(),
        })
    }

    /// Applies a message that was received at this time.
    pub fn apply(&mut self, message: &[u8], received_at: u64) -> Result<()> {
        if self.apply_delta(message, received_at)? {
            return Ok(());
        }
        let message: ServerMessage = serde_json::from_slice(message)?;
        if message.method == "turn/completed" {
            let params = message.params()?;
            let status = &params["turn"]["status"];
            ensure!(status == "completed", "the turn ended as {status}");
        }
        self.fold.apply(&message)
    }

    /// Applies pieces of text without parsing the whole message, which would dominate the cost.
    /// Returns false for any other message.
    fn apply_delta(&mut self, message: &[u8], received_at: u64) -> Result<bool> {
        let kind = br#"{"method":"item/agentMessage/delta""#;
        let (Some(item), true) = (
            between(message, b"\"itemId\":\""),
            message.starts_with(kind),
        ) else {
            return Ok(false);
        };
        let delta = between(message, b"\"delta\":\"").context("a delta has one")?;
        if delta.contains('\\') {
            return Ok(false);
        }
        for piece in delta.as_bytes().chunks(PIECE) {
            let sent_at = piece.split(|it| *it == b';').next().unwrap_or_default();
            // Output of a command has no time stamp.
            let Ok(sent_at) = std::str::from_utf8(sent_at)?.parse::<u64>() else {
                break;
            };
            let latency = received_at.saturating_sub(sent_at);
            self.latencies
                .push(u32::try_from(latency).unwrap_or(u32::MAX));
        }
        let seq = match find(message, b"\"seq\":") {
            Some(at) => {
                let digits = message[at + 6..].split(|it| !it.is_ascii_digit()).next();
                Some(std::str::from_utf8(digits.unwrap_or_default())?.parse::<u64>()?)
            }
            None => None,
        };
        self.fold.append(item, delta, seq)?;
        Ok(true)
    }

    /// Whether the turn has ended.
    pub fn is_over(&self) -> bool {
        self.fold.is_over()
    }

    /// Returns the number of the last received record.
    pub fn last_seq(&self) -> u64 {
        self.fold.last_seq()
    }

    /// Returns the number of received letters.
    pub fn letters(&self) -> usize {
        self.fold.letters()
    }

    /// Checks that both states are equal and complete.
    pub fn ensure_equal(&self, other: &Self) -> Result<()> {
        for it in [self, other] {
            ensure!(it.fold.is_complete(), "an item is not complete");
            ensure!(it.fold.is_over(), "the turn is not over");
        }
        let is_equal = self.fold.ensure_equal(&other.fold);
        is_equal.with_context(|| format!("{} letters, not {}", self.letters(), other.letters()))
    }
}

/// Returns the text between a prefix and the next quotation mark.
fn between<'a>(message: &'a [u8], before: &[u8]) -> Option<&'a str> {
    let rest = &message[find(message, before)? + before.len()..];
    let end = memchr::memchr(b'"', rest)?;
    std::str::from_utf8(&rest[..end]).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(sent_at: u64) -> String {
        format!("{sent_at};{}", "x".repeat(PIECE))[..PIECE].to_owned()
    }

    /// Returns the notifications of a short turn.
    fn messages() -> Vec<String> {
        let item = |text: &str| json!({"item": {"id": "a", "text": text}});
        let delta = |text: &str| json!({"threadId": "t", "itemId": "a", "delta": text});
        let two = piece(20) + &piece(25);
        let whole = piece(10) + &two;
        let end = json!({"turn": {"status": "completed"}});
        [
            json!({"method": "item/started", "params": item("")}),
            json!({"method": "item/agentMessage/delta", "params": delta(&piece(10)), "seq": 7}),
            json!({"method": "item/agentMessage/delta", "params": delta(&two), "seq": 9}),
            json!({"method": "item/completed", "params": item(&whole), "seq": 10}),
            json!({"method": "turn/completed", "params": end, "seq": 11}),
        ]
        .map(|it| it.to_string())
        .to_vec()
    }

    fn fold(messages: &[String]) -> Result<TimedFold> {
        let mut fold = TimedFold::default();
        for message in messages {
            fold.apply(message.as_bytes(), 100)?;
        }
        Ok(fold)
    }

    #[test]
    fn pieces_add_up_and_are_timed() {
        let whole = fold(&messages()).expect("it makes sense");
        assert!(whole.is_over());
        assert_eq!(whole.last_seq(), 11);
        assert_eq!(whole.latencies, [90, 80, 75]);
        assert_eq!(whole.letters(), 3 * PIECE);
        // A client that received only the end has the same state.
        let late = fold(&messages()[3..]).expect("it makes sense");
        late.ensure_equal(&whole).expect("the same");
    }

    #[test]
    fn missing_and_duplicate_messages_are_detected() {
        let whole = fold(&messages()).expect("it makes sense");
        let mut without = messages();
        without.remove(1);
        assert!(fold(&without).is_err());
        let mut twice = messages();
        twice.insert(2, messages().remove(2));
        assert!(fold(&twice).is_err());
        assert!(
            fold(&messages()[..4])
                .expect("so far")
                .ensure_equal(&whole)
                .is_err()
        );
        assert!(
            fold(&messages()[..3])
                .expect("so far")
                .ensure_equal(&whole)
                .is_err()
        );
    }
}
