//! State that a client derives from the notifications of a thread.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::client::{RejoinClient, ServerMessage};

/// State of a thread at a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    items: BTreeMap<String, FoldedItem>,
    /// Status of each turn.
    turns: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FoldedItem {
    /// Text of its deltas, until it is completed.
    text: String,
    /// The completed item.
    whole: Option<Value>,
}

impl Fold {
    /// Returns the initial state of a stock client: the turns in the response to its
    /// `thread/resume`.
    pub fn of_turns(turns: &Value) -> Result<Self> {
        let mut fold = Self::default();
        for turn in turns.as_array().context("turns are a list")? {
            let status = text(&turn["status"]);
            fold.turns.insert(text(&turn["id"]), status);
            for item in turn["items"].as_array().context("items are a list")? {
                let whole = FoldedItem {
                    text: String::new(),
                    whole: Some(item.clone()),
                };
                fold.items.insert(text(&item["id"]), whole);
            }
        }
        Ok(fold)
    }

    /// Applies one message. An item that starts again begins anew: a client that was disconnected
    /// between two notifications of one record receives the first again, and a stock client
    /// receives open items again.
    pub fn apply(&mut self, message: &ServerMessage) -> Result<()> {
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
                let id = text(&params["itemId"]);
                let open = self.items.get_mut(&id).filter(|it| it.whole.is_none());
                let open = open.with_context(|| format!("a delta of {id}, which is not open"))?;
                open.text.push_str(&text(&params["delta"]));
            }
            "item/completed" => {
                let item = &params["item"];
                let folded = self.items.entry(text(&item["id"])).or_default();
                let streamed = std::mem::take(&mut folded.text);
                let full_text = completed_text(item);
                ensure!(
                    full_text.starts_with(&streamed),
                    "{streamed:?} was told, and then {full_text:?}"
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

    /// Returns the number of letters of incomplete items.
    pub fn letters(&self) -> usize {
        let open = self.items.values().filter(|it| it.whole.is_none());
        open.map(|it| it.text.len()).sum()
    }

    /// Whether there is a turn, and every turn is over.
    pub fn is_over(&self) -> bool {
        let mut turns = self.turns.values();
        !self.turns.is_empty() && turns.all(|status| status != "inProgress")
    }

    /// Applies notifications until no turn runs.
    pub fn apply_until_over(&mut self, client: &mut RejoinClient, thread: &str) -> Result<()> {
        while !self.is_over() {
            self.apply(&client.next_notification(thread)?)?;
        }
        Ok(())
    }

    /// Checks that the state equals the server's snapshot of the thread.
    pub fn ensure_matches_server(&self, client: &mut RejoinClient, thread: &str) -> Result<()> {
        let params = serde_json::json!({"threadId": thread, "includeTurns": true});
        let response = client.request("thread/read", params)?;
        let snapshot = Self::of_turns(&response["thread"]["turns"])?;
        self.ensure_equal(&snapshot)
    }

    /// Checks that a snapshot contains everything that was received.
    pub fn ensure_contained_in(&self, snapshot: &Self) -> Result<()> {
        for (id, item) in &self.items {
            let stored = snapshot.items.get(id);
            let stored = stored.with_context(|| format!("item {id} was told and is gone"))?;
            if item.whole.is_some() {
                ensure!(stored == item, "item {id} is {stored:?}, not {item:?}");
            }
        }
        Ok(())
    }

    /// Checks that both states are equal.
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
                theirs => bail!("item {id} is {item:?}, not {theirs:?}"),
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
        let values = pairs.map(|(method, params)| json!({"method": method, "params": params}));
        let read = |it: Value| serde_json::from_str(&it.to_string()).expect("a message");
        values.into_iter().map(read).collect()
    }

    fn fold(messages: &[ServerMessage]) -> Result<Fold> {
        let mut fold = Fold::default();
        for message in messages {
            fold.apply(message)?;
        }
        Ok(fold)
    }

    #[test]
    fn all_messages_fold_to_the_snapshot() {
        let whole = fold(&messages()).expect("it makes sense");
        assert!(whole.is_over());
        let items = json!([{"id": "a", "type": "agentMessage", "text": "warp and weft"}]);
        let turns = json!([{"id": "t", "status": "completed", "items": items}]);
        let snapshot = Fold::of_turns(&turns).expect("turns");
        whole.ensure_equal(&snapshot).expect("the same");
        whole.ensure_contained_in(&snapshot).expect("kept");
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
