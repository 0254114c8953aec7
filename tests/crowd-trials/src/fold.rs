//! What a client makes of what it is told of one thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use memchr::memmem::find;
use serde_json::Value;

/// How many letters each piece of the model's text has. Each begins with when it was said.
pub const PIECE: usize = 150;

/// A thread as a client knows it.
#[derive(Debug, Default)]
pub struct Fold {
    /// The items by their ids, each with its text.
    items: BTreeMap<String, FoldedItem>,
    is_over: bool,
    /// The number of the last record it was told.
    pub seen: u64,
    /// How long each piece took to come, in microseconds.
    pub taken: Vec<u32>,
}

#[derive(Debug, Default, PartialEq)]
struct FoldedItem {
    text: String,
    is_whole: bool,
}

impl Fold {
    /// Of a turn that begins after this record.
    pub fn after(seen: u64) -> Self {
        Self {
            seen,
            ..Self::default()
        }
    }

    /// Of a turn as it is shown. The number of the last record is not.
    pub fn of_turn(turn: &Value) -> Result<Self> {
        let items = turn["items"].as_array().context("items")?;
        let item = |item: &Value| {
            let known = FoldedItem {
                text: text(&item["text"]),
                is_whole: false,
            };
            (text(&item["id"]), known)
        };
        Ok(Self {
            items: items.iter().map(item).collect(),
            is_over: turn["status"] != "inProgress",
            ..Self::default()
        })
    }

    /// Takes a message in that came at this time.
    pub fn hear(&mut self, message: &[u8], came_at: u64) -> Result<()> {
        if self.hear_piece(message, came_at)? {
            return Ok(());
        }
        let message: Value = serde_json::from_slice(message)?;
        self.seen = message["seq"].as_u64().unwrap_or(self.seen);
        let params = &message["params"];
        match message["method"].as_str() {
            Some("item/started") => {
                let id = text(&params["item"]["id"]);
                self.items.insert(id, FoldedItem::default());
            }
            Some("item/agentMessage/delta") => {
                let item = self.items.entry(text(&params["itemId"])).or_default();
                item.text.push_str(&text(&params["delta"]));
            }
            Some("item/completed") => {
                let item = &params["item"];
                let whole = text(&item["text"]);
                let known = self.items.entry(text(&item["id"])).or_default();
                ensure!(
                    whole.starts_with(&known.text),
                    "the {} letters that came in pieces are not the beginning of the {} there are",
                    known.text.len(),
                    whole.len()
                );
                *known = FoldedItem {
                    text: whole,
                    is_whole: true,
                };
            }
            Some("turn/completed") => {
                let status = text(&params["turn"]["status"]);
                ensure!(status == "completed", "the turn ended as {status}");
                self.is_over = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes pieces of text in without reading the whole message, which would cost the most of all; false if it
    /// is something else.
    fn hear_piece(&mut self, message: &[u8], came_at: u64) -> Result<bool> {
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
            let said_at = piece.split(|it| *it == b';').next().unwrap_or_default();
            // What a command said is not stamped.
            let Ok(said_at) = std::str::from_utf8(said_at)?.parse::<u64>() else {
                break;
            };
            let taken = came_at.saturating_sub(said_at);
            self.taken.push(u32::try_from(taken).unwrap_or(u32::MAX));
        }
        let open = self.items.get_mut(item).filter(|it| !it.is_whole);
        let open = open.with_context(|| format!("a delta of {item}, which is not open"))?;
        open.text.push_str(delta);
        if let Some(at) = find(message, b"\"seq\":") {
            let digits = message[at + 6..].split(|it| !it.is_ascii_digit()).next();
            self.seen = std::str::from_utf8(digits.unwrap_or_default())?.parse()?;
        }
        Ok(true)
    }

    /// Whether it knows the end of the turn.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// How many letters it was told.
    pub fn letters(&self) -> usize {
        self.items.values().map(|it| it.text.len()).sum()
    }

    /// Whether both know the same, and all of it is complete.
    pub fn is(&self, other: &Self) -> Result<()> {
        let is_whole = |it: &Self| it.items.values().all(|it| it.is_whole);
        ensure!(is_whole(self) && is_whole(other), "an item is not complete");
        ensure!(
            self.items == other.items,
            "{} letters in {} items, not {} in {}",
            self.letters(),
            self.items.len(),
            other.letters(),
            other.items.len()
        );
        ensure!(self.is_over && other.is_over, "the turn is not over");
        Ok(())
    }
}

/// What stands between this and the next quotation mark.
fn between<'a>(message: &'a [u8], before: &[u8]) -> Option<&'a str> {
    let rest = &message[find(message, before)? + before.len()..];
    let end = memchr::memchr(b'"', rest)?;
    std::str::from_utf8(&rest[..end]).ok()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn piece(said_at: u64) -> String {
        format!("{said_at};{}", "x".repeat(PIECE))[..PIECE].to_owned()
    }

    /// What is told of a short turn.
    fn told() -> Vec<String> {
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

    fn fold(told: &[String]) -> Result<Fold> {
        let mut fold = Fold::default();
        for message in told {
            fold.hear(message.as_bytes(), 100)?;
        }
        Ok(fold)
    }

    #[test]
    fn pieces_add_up_and_are_timed() {
        let whole = fold(&told()).expect("it makes sense");
        assert!(whole.is_over());
        assert_eq!(whole.seen, 11);
        assert_eq!(whole.taken, [90, 80, 75]);
        assert_eq!(whole.letters(), 3 * PIECE);
        // Who was told the end alone knows the same.
        let late = fold(&told()[3..]).expect("it makes sense");
        late.is(&whole).expect("the same");
    }

    #[test]
    fn what_is_missing_or_told_twice_is_noticed() {
        let whole = fold(&told()).expect("it makes sense");
        let mut without = told();
        without.remove(1);
        assert!(fold(&without).is_err());
        let mut twice = told();
        twice.insert(2, told().remove(2));
        assert!(fold(&twice).is_err());
        assert!(fold(&told()[..4]).expect("so far").is(&whole).is_err());
        assert!(fold(&told()[..3]).expect("so far").is(&whole).is_err());
    }
}
