//! What a client makes of what it is told.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::client::{RejoinClient, ServerMessage};

/// A thread as a client knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    items: BTreeMap<String, FoldedItem>,
    /// How each turn stands.
    turns: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct FoldedItem {
    /// The text of its deltas, until it is completed.
    text: String,
    /// As it was completed.
    whole: Option<Value>,
}

impl Fold {
    /// What a stock client begins with: the turns in the answer to its `thread/resume`.
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

    /// Takes one message in. An item that starts again begins anew: whoever was cut off between two words about
    /// one record hears the first again, and a stock client is told again what is open.
    pub fn hear(&mut self, message: &ServerMessage) -> Result<()> {
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
                let known = self.items.entry(text(&item["id"])).or_default();
                let told = std::mem::take(&mut known.text);
                let said = said(item);
                ensure!(
                    said.starts_with(&told),
                    "{told:?} was told, and then {said:?}"
                );
                known.whole = Some(item.clone());
            }
            "turn/started" | "turn/completed" => {
                let turn = &params["turn"];
                self.turns.insert(text(&turn["id"]), text(&turn["status"]));
            }
            _ => {}
        }
        Ok(())
    }

    /// How many letters it knows of what is not complete.
    pub fn letters(&self) -> usize {
        let open = self.items.values().filter(|it| it.whole.is_none());
        open.map(|it| it.text.len()).sum()
    }

    /// Whether every turn it knows is over, and it knows one.
    pub fn is_over(&self) -> bool {
        let mut turns = self.turns.values();
        !self.turns.is_empty() && turns.all(|status| status != "inProgress")
    }

    /// Hears a client out until no turn runs.
    pub fn hear_out(&mut self, client: &mut RejoinClient, thread: &str) -> Result<()> {
        while !self.is_over() {
            self.hear(&client.told(thread)?)?;
        }
        Ok(())
    }

    /// Whether this is what the server shows of the thread.
    pub fn is_shown(&self, client: &mut RejoinClient, thread: &str) -> Result<()> {
        let params = serde_json::json!({"threadId": thread, "includeTurns": true});
        let shown = client.ask("thread/read", params)?;
        let shown = Self::of_turns(&shown["thread"]["turns"])?;
        self.is(&shown)
    }

    /// Whether nothing that was told is missing there.
    pub fn is_kept_in(&self, shown: &Self) -> Result<()> {
        for (id, item) in &self.items {
            let there = shown.items.get(id);
            let there = there.with_context(|| format!("item {id} was told and is gone"))?;
            if item.whole.is_some() {
                ensure!(there == item, "item {id} is {there:?}, not {item:?}");
            }
        }
        Ok(())
    }

    /// Whether both know the same.
    pub fn is(&self, other: &Self) -> Result<()> {
        ensure!(
            self.turns == other.turns,
            "{:?}, not {:?}",
            self.turns,
            other.turns
        );
        for (id, item) in &self.items {
            match other.items.get(id) {
                Some(there) if there == item => {}
                there => bail!("item {id} is {item:?}, not {there:?}"),
            }
        }
        for id in other.items.keys() {
            ensure!(self.items.contains_key(id), "item {id} was not told");
        }
        Ok(())
    }
}

/// What an item says in the end.
fn said(item: &Value) -> String {
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

    /// What is told of a short turn.
    fn told() -> Vec<ServerMessage> {
        let item = |text: &str| json!({"item": {"id": "a", "type": "agentMessage", "text": text}});
        let delta = |text: &str| json!({"itemId": "a", "delta": text});
        let turn = |status: &str| json!({"turn": {"id": "t", "status": status}});
        let told = [
            ("turn/started", turn("inProgress")),
            ("item/started", item("")),
            ("item/agentMessage/delta", delta("warp and ")),
            ("item/agentMessage/delta", delta("weft")),
            ("item/completed", item("warp and weft")),
            ("turn/completed", turn("completed")),
        ];
        let told = told.map(|(method, params)| json!({"method": method, "params": params}));
        let read = |it: Value| serde_json::from_str(&it.to_string()).expect("a message");
        told.into_iter().map(read).collect()
    }

    fn fold(told: &[ServerMessage]) -> Result<Fold> {
        let mut fold = Fold::default();
        for message in told {
            fold.hear(message)?;
        }
        Ok(fold)
    }

    #[test]
    fn whoever_hears_it_all_knows_it_all() {
        let whole = fold(&told()).expect("it makes sense");
        assert!(whole.is_over());
        let items = json!([{"id": "a", "type": "agentMessage", "text": "warp and weft"}]);
        let turns = json!([{"id": "t", "status": "completed", "items": items}]);
        let shown = Fold::of_turns(&turns).expect("turns");
        whole.is(&shown).expect("the same");
        whole.is_kept_in(&shown).expect("kept");
    }

    #[test]
    fn what_is_missed_or_told_twice_is_noticed() {
        let whole = fold(&told()).expect("it makes sense");
        // The first delta, then the end: an open item's text must be the beginning of what it says.
        for missed in [2, 4] {
            let mut heard = told();
            heard.remove(missed);
            let is_same = fold(&heard).and_then(|it| it.is(&whole));
            assert!(is_same.is_err(), "without {missed}");
        }
        for twice in [2, 3] {
            let mut heard = told();
            let again = told().remove(twice);
            heard.insert(twice, again);
            assert!(fold(&heard).is_err(), "{twice} twice");
        }
        let without_end = fold(&told()[..5]).expect("it makes sense");
        assert!(!without_end.is_over());
        assert!(without_end.is(&whole).is_err());
    }

    #[test]
    fn what_was_told_and_is_gone_is_noticed() {
        let heard = fold(&told()[..2]).expect("it makes sense");
        assert!(heard.is_kept_in(&Fold::default()).is_err());
    }
}
