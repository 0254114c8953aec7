//! One turn, as a client saw it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::LATE;
use crate::faults::{FaultCase, TurnPlan};

/// What was heard of a turn.
pub struct TurnObservation {
    asked_at: Instant,
    /// Items that were started and not completed, and what was said of each so far.
    open: BTreeMap<String, String>,
    end: Option<ObservedEnd>,
    /// How often the client was told of an error for good.
    errors: usize,
    wrongs: Vec<String>,
    /// What came after the end, by its method.
    late: Vec<String>,
}

struct ObservedEnd {
    at: Instant,
    status: String,
    error: Option<String>,
}

impl TurnObservation {
    /// A turn that is asked for now.
    pub fn new() -> Self {
        Self {
            asked_at: Instant::now(),
            open: BTreeMap::new(),
            end: None,
            errors: 0,
            wrongs: Vec::new(),
            late: Vec::new(),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub fn took(&self) -> Option<Duration> {
        self.end.as_ref().map(|end| end.at - self.asked_at)
    }

    pub fn hear(&mut self, when: Instant, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        // Of the thread, not of its turn: these may follow.
        if method.starts_with("thread/") {
            return;
        }
        if self.end.is_some() {
            self.late.push(method.to_owned());
            return;
        }
        match method {
            "item/started" => {
                self.open.insert(id(&params["item"]), String::new());
            }
            "item/agentMessage/delta"
            | "item/reasoning/summaryTextDelta"
            | "item/reasoning/textDelta" => {
                let delta = params["delta"].as_str().unwrap_or_default();
                match self
                    .open
                    .get_mut(params["itemId"].as_str().unwrap_or_default())
                {
                    Some(text) => text.push_str(delta),
                    None => self.wrongs.push(format!("{delta:?} is of no open item")),
                }
            }
            "item/completed" => self.complete(&params["item"]),
            "error" if params["willRetry"] == false => self.errors += 1,
            "turn/completed" => {
                for item in self.open.keys() {
                    self.wrongs
                        .push(format!("the turn ended before its item {item}"));
                }
                let turn = &params["turn"];
                self.end = Some(ObservedEnd {
                    at: when,
                    status: turn["status"].as_str().unwrap_or_default().to_owned(),
                    error: error_name(&turn["error"]["codexErrorInfo"]),
                });
            }
            _ => {}
        }
    }

    fn complete(&mut self, item: &Value) {
        let id = id(item);
        let Some(told) = self.open.remove(&id) else {
            self.wrongs.push(format!("{id} was completed and not open"));
            return;
        };
        let parts = |of: &Value| -> String {
            let parts = of.as_array().map_or(&[][..], Vec::as_slice);
            parts.iter().filter_map(Value::as_str).collect()
        };
        let text = match item["type"].as_str() {
            Some("agentMessage") => item["text"].as_str().unwrap_or_default().to_owned(),
            Some("reasoning") => parts(&item["summary"]) + &parts(&item["content"]),
            _ => return,
        };
        if text != told {
            self.wrongs
                .push(format!("{id} says {text:?}, and its deltas said {told:?}"));
        }
    }

    /// What is wrong with a turn of this case.
    pub fn wrongs(&self, case: &FaultCase, asked: &TurnPlan) -> impl Iterator<Item = String> {
        let mut wrongs = self.wrongs.clone();
        let (soonest, latest) = case.within(asked);
        match &self.end {
            None => wrongs.push("it did not end".to_owned()),
            Some(end) => {
                let status = if case.error_of(asked).is_some() {
                    "failed"
                } else {
                    "completed"
                };
                if end.status != status || end.error.as_deref() != case.error_of(asked) {
                    wrongs.push(format!("it ended {} with {:?}", end.status, end.error));
                }
                let took = end.at - self.asked_at;
                let late = if took > latest { LATE } else { "" };
                if took < soonest || took > latest {
                    wrongs.push(format!(
                        "{late}it took {took:?}, not {soonest:?} to {latest:?}"
                    ));
                }
            }
        }
        let expected = usize::from(case.error_of(asked).is_some());
        if self.errors != expected {
            wrongs.push(format!("{} errors were told, not {expected}", self.errors));
        }
        wrongs.into_iter()
    }

    /// What came when nothing should any more.
    pub fn afterwards(&self) -> impl Iterator<Item = String> {
        self.late
            .iter()
            .map(|method| format!("{method} came after its end"))
    }
}

fn id(item: &Value) -> String {
    item["id"].as_str().unwrap_or_default().to_owned()
}

/// A name alone, or the name over some detail.
fn error_name(info: &Value) -> Option<String> {
    match info {
        Value::String(name) => Some(name.clone()),
        Value::Object(members) => members.keys().next().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::faults::CASES;

    /// What is told of a turn in the middle of whose answer the connection was cut.
    fn told() -> Vec<Value> {
        let item = |text: &str| json!({"item": {"id": "a", "type": "agentMessage", "text": text}});
        let delta = |text: &str| json!({"itemId": "a", "delta": text});
        let error = json!({"codexErrorInfo": {"responseStreamDisconnected": {}}});
        [
            ("turn/started", json!({})),
            ("item/started", item("")),
            ("item/agentMessage/delta", delta("half a ")),
            ("item/agentMessage/delta", delta("sent")),
            ("item/completed", item("half a sent")),
            ("error", json!({"willRetry": false, "error": error})),
            ("thread/status/changed", json!({})),
            (
                "turn/completed",
                json!({"turn": {"status": "failed", "error": error}}),
            ),
        ]
        .map(|(method, params)| json!({"method": method, "params": params}))
        .into()
    }

    fn wrongs(told: &[Value]) -> Vec<String> {
        let case = CASES
            .iter()
            .find(|case| case.name == "cut")
            .expect("it is there");
        let mut seen = TurnObservation::new();
        for message in told {
            seen.hear(Instant::now(), message);
        }
        let asked = case.asked(0);
        let wrongs = seen.wrongs(case, &asked);
        wrongs.chain(seen.afterwards()).collect()
    }

    #[test]
    fn a_good_end_is_good() {
        assert_eq!(wrongs(&told()), [""; 0]);
    }

    #[test]
    fn each_message_matters() {
        for (at, message) in told().iter().enumerate() {
            let method = message["method"].as_str().expect("a method");
            if matches!(method, "turn/started" | "thread/status/changed") {
                continue;
            }
            let mut without = told();
            without.remove(at);
            assert_ne!(wrongs(&without), [""; 0], "without {method}");
            let mut twice = told();
            twice.push(message.clone());
            assert_ne!(wrongs(&twice), [""; 0], "{method} again");
        }
    }

    #[test]
    fn another_error_or_a_late_end_is_wrong() {
        let mut other = told();
        other[7]["params"]["turn"]["error"]["codexErrorInfo"] = json!("other");
        assert_ne!(wrongs(&other), [""; 0]);

        let case = CASES
            .iter()
            .find(|case| case.name == "stall")
            .expect("it is there");
        let asked = case.asked(0);
        let (soonest, latest) = case.within(&asked);
        for took in [
            soonest - Duration::from_millis(1),
            latest + Duration::from_millis(1),
        ] {
            let mut seen = TurnObservation::new();
            for message in told() {
                seen.hear(seen.asked_at + took, &message);
            }
            assert_eq!(seen.wrongs(case, &asked).count(), 1, "{took:?}");
        }
    }
}
