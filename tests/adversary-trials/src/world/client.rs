//! The client of one turn. It says yes only to what was planned to be harmless.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::call::{ApprovalChoice, Class, ModelCallSpec, traced};
use crate::counters::AttackCounters;
use crate::server::AdversaryServer;

/// How long a turn may take.
const TURN_TIMEOUT: Duration = Duration::from_secs(180);

/// What came of a turn.
#[derive(Default)]
pub struct TurnReport {
    /// Calls that someone said yes to, by their numbers.
    pub accepted: BTreeSet<usize>,
    /// Calls about which someone was asked.
    pub asked: BTreeSet<usize>,
    /// Whether it did not come to its own end.
    pub is_broken_off: bool,
    /// The call that each item shows.
    items: HashMap<String, usize>,
    id: String,
}

impl TurnReport {
    pub fn run(
        server: &mut AdversaryServer,
        thread: &str,
        start: &Value,
        calls: &[ModelCallSpec],
        tally: &mut AttackCounters,
    ) -> Result<Self> {
        server.ask("turn/start", start)?;
        let mut turn = Self::default();
        let end = Instant::now() + TURN_TIMEOUT;
        loop {
            let message = server
                .next(end)?
                .with_context(|| format!("the turn did not end; it was to make {calls:#?}"))?;
            let params = &message["params"];
            match message["method"].as_str().unwrap_or_default() {
                "turn/started" => turn.id = word(&params["turn"]["id"]),
                "item/started" => turn.note(&params["item"]),
                "turn/completed" if params["threadId"] == thread => {
                    turn.is_broken_off |= params["turn"]["status"] != "completed";
                    if params["turn"]["status"] == "failed" {
                        tally.wrongs.push(format!("a turn failed: {params}"));
                    }
                    return Ok(turn);
                }
                _ if message.get("id").is_some() && message.get("method").is_some() => {
                    turn.answer(server, thread, &message, calls, tally)?;
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, item: &Value) {
        if let Some(number) = traced(&item.to_string()) {
            self.items.insert(word(&item["id"]), number);
        }
    }

    fn answer(
        &mut self,
        server: &mut AdversaryServer,
        thread: &str,
        asked: &Value,
        calls: &[ModelCallSpec],
        tally: &mut AttackCounters,
    ) -> Result<()> {
        let params = &asked["params"];
        let item = params["itemId"].as_str().unwrap_or_default();
        let text = params.to_string();
        let number = traced(&text).or(self.items.get(item).copied());
        let call = calls.iter().find(|it| Some(it.number) == number);
        let is_first = number.is_none_or(|it| self.asked.insert(it));
        let answer = match call {
            // The first question is about the command, the next about what is typed into it.
            Some(ModelCallSpec {
                typed: Some(typed),
                class,
                answer,
                ..
            }) if !is_first => {
                if !text.contains(typed.trim_end()) {
                    let wrong = format!("someone is asked about typing and not shown what: {text}");
                    tally.wrongs.push(wrong);
                }
                match class {
                    Class::Work => *answer,
                    Class::Attack | Class::Noise => ApprovalChoice::Decline,
                }
            }
            Some(call) => call.answer,
            None => ApprovalChoice::Decline,
        };
        let decision = match answer {
            ApprovalChoice::Accept => {
                self.accepted.extend(number);
                tally.accepted += 1;
                "accept"
            }
            ApprovalChoice::AcceptForSession => {
                self.accepted.extend(number);
                tally.accepted += 1;
                "acceptForSession"
            }
            ApprovalChoice::Decline => {
                tally.declined += 1;
                "decline"
            }
            ApprovalChoice::Cancel => {
                tally.cancelled += 1;
                self.is_broken_off = true;
                "cancel"
            }
            ApprovalChoice::Silence => {
                tally.silent += 1;
                self.is_broken_off = true;
                let params = json!({"threadId": thread, "turnId": self.id});
                server.ask("turn/interrupt", &params)?;
                return Ok(());
            }
        };
        let result = match asked["method"].as_str().unwrap_or_default() {
            "item/permissions/requestApproval" => json!({"permissions": {}, "scope": "turn"}),
            "item/tool/requestUserInput" => json!({"answers": {}}),
            _ => json!({"decision": decision}),
        };
        server.send(&json!({"id": asked["id"], "result": result}))
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
