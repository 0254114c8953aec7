//! State that a client derives from the notifications of a thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::message::ServerMessage;

/// Length to which items are truncated in errors.
const ITEM_LETTERS_MAX: usize = 400;

/// State of a thread at a client.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    items: BTreeMap<String, FoldedItem>,
    /// Status of each turn.
    turns: BTreeMap<String, String>,
    last_seq: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FoldedItem {
    /// Text of its deltas, until it is completed.
    text: String,
    /// The completed item.
    whole: Option<Value>,
}

impl Fold {
    /// Returns the state before a turn that begins after this record.
    pub fn after(last_seq: u64) -> Self {
        Self {
            last_seq,
            ..Self::default()
        }
    }

    /// Returns the initial state of a stock client: the turns in the response to its
    /// `thread/resume`. Open items are sent again.
    pub fn of_turns(turns: &Value) -> Result<Self> {
        let mut fold = Self::default();
        for turn in turns.as_array().context("turns are a list")? {
            fold.add_turn(turn, |item| FoldedItem {
                text: String::new(),
                whole: Some(item.clone()),
            })?;
        }
        Ok(fold)
    }

    /// Returns the state of a turn as a snapshot shows it. Its items are open, and deltas continue
    /// their text. A snapshot lacks the number of the last record.
    pub fn of_open_turn(turn: &Value) -> Result<Self> {
        let mut fold = Self::default();
        fold.add_turn(turn, |item| FoldedItem {
            text: completed_text(item),
            whole: None,
        })?;
        Ok(fold)
    }

    fn add_turn(&mut self, turn: &Value, folded: impl Fn(&Value) -> FoldedItem) -> Result<()> {
        self.turns.insert(text(&turn["id"]), text(&turn["status"]));
        for item in turn["items"].as_array().context("items are a list")? {
            self.items.insert(text(&item["id"]), folded(item));
        }
        Ok(())
    }

    /// Applies one message. An item that starts again begins anew: a client that was disconnected
    /// between two notifications of one record receives the first again, and a stock client
    /// receives open items again.
    pub fn apply(&mut self, message: &ServerMessage) -> Result<()> {
        self.last_seq = message.seq.unwrap_or(self.last_seq);
        let method = message.method.as_str();
        if !method.starts_with("item/") && !method.starts_with("turn/") {
            return Ok(());
        }
        let params = message.params()?;
        match method {
            "item/started" => {
                let id = text(&params["item"]["id"]);
                self.items.insert(id, FoldedItem::default());
            }
            "item/agentMessage/delta" | "item/reasoning/summaryTextDelta" => {
                let delta = params["delta"].as_str().unwrap_or_default();
                self.append(&text(&params["itemId"]), delta, message.seq)?;
            }
            "item/completed" => {
                let item = &params["item"];
                let folded = self.items.entry(text(&item["id"])).or_default();
                let streamed = std::mem::take(&mut folded.text);
                let full_text = completed_text(item);
                ensure!(
                    full_text.starts_with(&streamed),
                    "the deltas have {} letters, which are not the beginning of the {} of the item: {}",
                    streamed.len(),
                    full_text.len(),
                    truncated(item)
                );
                folded.whole = Some(item.clone());
            }
            "turn/started" | "turn/completed" => {
                let turn = &params["turn"];
                self.turns.insert(text(&turn["id"]), text(&turn["status"]));
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies a delta of an item.
    pub fn append(&mut self, item: &str, delta: &str, seq: Option<u64>) -> Result<()> {
        let open = self.items.get_mut(item).filter(|it| it.whole.is_none());
        let open = open.with_context(|| format!("a delta of {item}, which is not open"))?;
        open.text.push_str(delta);
        self.last_seq = seq.unwrap_or(self.last_seq);
        Ok(())
    }

    /// Returns the number of the last received record.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Returns the number of letters of all items.
    pub fn letters(&self) -> usize {
        let letters = self.items.values().map(|it| match &it.whole {
            Some(item) => completed_text(item).len(),
            None => it.text.len(),
        });
        letters.sum()
    }

    /// Returns the number of letters of incomplete items.
    pub fn open_letters(&self) -> usize {
        let open = self.items.values().filter(|it| it.whole.is_none());
        open.map(|it| it.text.len()).sum()
    }

    /// Whether every item is complete.
    pub fn is_complete(&self) -> bool {
        self.items.values().all(|it| it.whole.is_some())
    }

    /// Whether there is a turn, and every turn is over.
    pub fn is_over(&self) -> bool {
        let mut turns = self.turns.values();
        !self.turns.is_empty() && turns.all(|status| status != "inProgress")
    }

    /// Checks that a snapshot contains everything that was received.
    pub fn ensure_contained_in(&self, snapshot: &Self) -> Result<()> {
        for (id, item) in &self.items {
            let stored = snapshot.items.get(id);
            let stored = stored.with_context(|| format!("item {id} was told and is gone"))?;
            if item.whole.is_some() {
                ensure!(
                    stored == item,
                    "item {id} is {}, not {}",
                    truncated(stored),
                    truncated(item)
                );
            }
        }
        Ok(())
    }

    /// Checks that both states are equal. The last record does not count.
    pub fn ensure_equal(&self, other: &Self) -> Result<()> {
        ensure!(
            self.turns == other.turns,
            "{:?}, not {:?}",
            self.turns,
            other.turns
        );
        for (id, item) in &self.items {
            match other.items.get(id) {
                Some(theirs) if theirs == item => {}
                theirs => bail!(
                    "item {id} is {}, not {}",
                    truncated(item),
                    truncated(&theirs)
                ),
            }
        }
        for id in other.items.keys() {
            ensure!(self.items.contains_key(id), "item {id} was not told");
        }
        Ok(())
    }
}

/// Returns the text of a completed item.
fn completed_text(item: &Value) -> String {
    match item["type"].as_str() {
        Some("reasoning") => {
            let parts = item["summary"].as_array().into_iter().flatten();
            parts.filter_map(Value::as_str).collect()
        }
        _ => text(&item["text"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the beginning of the debug representation.
fn truncated(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
        .chars()
        .take(ITEM_LETTERS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the notifications of a short turn.
    fn messages() -> Vec<ServerMessage> {
        let item = |text: &str| json!({"item": {"id": "a", "type": "agentMessage", "text": text}});
        let delta = |text: &str| json!({"itemId": "a", "delta": text});
        let turn = |status: &str| json!({"turn": {"id": "t", "status": status}});
        let pairs = [
            ("turn/started", turn("inProgress")),
            ("item/started", item("")),
            ("item/agentMessage/delta", delta("warp and ")),
            ("item/agentMessage/delta", delta("weft")),
            ("item/completed", item("warp and weft")),
            ("turn/completed", turn("completed")),
        ];
        let numbered = pairs.into_iter().zip(1..);
        let read = |((method, params), seq): ((&str, Value), u64)| {
            let message = json!({"method": method, "params": params, "seq": seq});
            serde_json::from_str(&message.to_string()).expect("a message")
        };
        numbered.map(read).collect()
    }

    fn fold(messages: &[ServerMessage]) -> Result<Fold> {
        let mut fold = Fold::default();
        for message in messages {
            fold.apply(message)?;
        }
        Ok(fold)
    }

    /// Returns the turn after this many letters.
    fn snapshot(status: &str, text: &str) -> Value {
        let items = json!([{"id": "a", "type": "agentMessage", "text": text}]);
        json!({"id": "t", "status": status, "items": items})
    }

    #[test]
    fn all_messages_fold_to_the_snapshot() {
        let whole = fold(&messages()).expect("it makes sense");
        assert!(whole.is_over() && whole.is_complete());
        assert_eq!(whole.last_seq(), 6);
        assert_eq!((whole.letters(), whole.open_letters()), (13, 0));
        let snapshot = Fold::of_turns(&json!([snapshot("completed", "warp and weft")]));
        let snapshot = snapshot.expect("turns");
        whole.ensure_equal(&snapshot).expect("the same");
        whole.ensure_contained_in(&snapshot).expect("kept");
    }

    #[test]
    fn deltas_continue_an_open_turn() {
        let whole = fold(&messages()).expect("it makes sense");
        let mut open = Fold::of_open_turn(&snapshot("inProgress", "warp and ")).expect("a turn");
        assert_eq!(open.open_letters(), 9);
        for message in &messages()[3..] {
            assert!(!open.is_over());
            open.apply(message).expect("it makes sense");
        }
        open.ensure_equal(&whole).expect("the same");
        // The items of a stock client are sent again, so a delta alone is one too many.
        let stock = Fold::of_turns(&json!([snapshot("inProgress", "warp and ")]));
        let mut stock = stock.expect("turns");
        assert!(stock.apply(&messages()[3]).is_err());
    }

    #[test]
    fn missing_and_duplicate_messages_are_detected() {
        let whole = fold(&messages()).expect("it makes sense");
        // The first delta, then the completion: an open item's text must be a prefix of the
        // completed text.
        for missed in [2, 4] {
            let mut received = messages();
            received.remove(missed);
            let is_same = fold(&received).and_then(|it| it.ensure_equal(&whole));
            assert!(is_same.is_err(), "without {missed}");
        }
        for twice in [2, 3] {
            let mut received = messages();
            let duplicate = messages().remove(twice);
            received.insert(twice, duplicate);
            assert!(fold(&received).is_err(), "{twice} twice");
        }
        let without_end = fold(&messages()[..5]).expect("it makes sense");
        assert!(!without_end.is_over());
        assert!(without_end.ensure_equal(&whole).is_err());
    }

    #[test]
    fn lost_items_are_detected() {
        let partial = fold(&messages()[..2]).expect("it makes sense");
        assert!(partial.ensure_contained_in(&Fold::default()).is_err());
    }
}
