//! One turn, as observed by a client.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::LATE;
use crate::faults::{FaultCase, TurnPlan};

/// Observations of a turn.
pub struct TurnObservation {
    requested_at: Instant,
    /// Items that were started and not completed, with the deltas of each so far.
    open: BTreeMap<String, String>,
    end: Option<ObservedEnd>,
    /// Number of errors with `willRetry` false.
    errors: usize,
    problems: Vec<String>,
    /// Methods of the notifications that arrived after the end.
    late: Vec<String>,
}

struct ObservedEnd {
    at: Instant,
    status: String,
    error: Option<String>,
}

impl TurnObservation {
    /// Starts the observation of a turn that is requested now.
    pub fn new() -> Self {
        Self {
            requested_at: Instant::now(),
            open: BTreeMap::new(),
            end: None,
            errors: 0,
            problems: Vec::new(),
            late: Vec::new(),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    pub fn duration(&self) -> Option<Duration> {
        self.end.as_ref().map(|end| end.at - self.requested_at)
    }

    pub fn observe(&mut self, when: Instant, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default();
        let params = &message["params"];
        // Notifications about the thread instead of the turn may follow its end.
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
                    None => self.problems.push(format!("{delta:?} is of no open item")),
                }
            }
            "item/completed" => self.complete(&params["item"]),
            "error" if params["willRetry"] == false => self.errors += 1,
            "turn/completed" => {
                for item in self.open.keys() {
                    self.problems
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
        let Some(streamed) = self.open.remove(&id) else {
            self.problems
                .push(format!("{id} was completed and not open"));
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
        if text != streamed {
            self.problems.push(format!(
                "{id} says {text:?}, and its deltas said {streamed:?}"
            ));
        }
    }

    /// Returns the problems with a turn of this case.
    pub fn problems(&self, case: &FaultCase, plan: &TurnPlan) -> impl Iterator<Item = String> {
        let mut problems = self.problems.clone();
        let (soonest, latest) = case.within(plan);
        match &self.end {
            None => problems.push("it did not end".to_owned()),
            Some(end) => {
                let status = if case.error_of(plan).is_some() {
                    "failed"
                } else {
                    "completed"
                };
                if end.status != status || end.error.as_deref() != case.error_of(plan) {
                    problems.push(format!("it ended {} with {:?}", end.status, end.error));
                }
                let elapsed = end.at - self.requested_at;
                let late = if elapsed > latest { LATE } else { "" };
                if elapsed < soonest || elapsed > latest {
                    problems.push(format!(
                        "{late}it took {elapsed:?}, not {soonest:?} to {latest:?}"
                    ));
                }
            }
        }
        let expected = usize::from(case.error_of(plan).is_some());
        if self.errors != expected {
            problems.push(format!("{} errors were told, not {expected}", self.errors));
        }
        problems.into_iter()
    }

    /// Returns the notifications that arrived after the end.
    pub fn afterwards(&self) -> impl Iterator<Item = String> {
        self.late
            .iter()
            .map(|method| format!("{method} came after its end"))
    }
}

fn id(item: &Value) -> String {
    item["id"].as_str().unwrap_or_default().to_owned()
}

/// Returns the name of an error: a bare name, or the only key of an object.
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

    /// Returns the notifications of a turn whose connection was reset in the middle of a response.
    fn notifications() -> Vec<Value> {
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

    fn problems(notifications: &[Value]) -> Vec<String> {
        let case = CASES
            .iter()
            .find(|case| case.name == "cut")
            .expect("it is there");
        let mut observation = TurnObservation::new();
        for message in notifications {
            observation.observe(Instant::now(), message);
        }
        let plan = case.plan(0);
        let problems = observation.problems(case, &plan);
        problems.chain(observation.afterwards()).collect()
    }

    #[test]
    fn expected_messages_cause_no_problems() {
        assert_eq!(problems(&notifications()), [""; 0]);
    }

    #[test]
    fn each_message_matters() {
        for (at, message) in notifications().iter().enumerate() {
            let method = message["method"].as_str().expect("a method");
            if matches!(method, "turn/started" | "thread/status/changed") {
                continue;
            }
            let mut without = notifications();
            without.remove(at);
            assert_ne!(problems(&without), [""; 0], "without {method}");
            let mut twice = notifications();
            twice.push(message.clone());
            assert_ne!(problems(&twice), [""; 0], "{method} again");
        }
    }

    #[test]
    fn other_error_or_wrong_time_is_a_problem() {
        let mut changed = notifications();
        changed[7]["params"]["turn"]["error"]["codexErrorInfo"] = json!("other");
        assert_ne!(problems(&changed), [""; 0]);

        let case = CASES
            .iter()
            .find(|case| case.name == "stall")
            .expect("it is there");
        let plan = case.plan(0);
        let (soonest, latest) = case.within(&plan);
        for took in [
            soonest - Duration::from_millis(1),
            latest + Duration::from_millis(1),
        ] {
            let mut observation = TurnObservation::new();
            for message in notifications() {
                observation.observe(observation.requested_at + took, &message);
            }
            assert_eq!(observation.problems(case, &plan).count(), 1, "{took:?}");
        }
    }
}
