//! The client of one turn. It approves only calls that were planned to be harmless.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use support::StdioServer;

use crate::call::{ApprovalChoice, Class, ModelCallSpec, call_number};
use crate::counters::AttackCounters;

/// Timeout of a turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(180);

/// Outcome of a turn.
#[derive(Default)]
pub struct TurnReport {
    /// Numbers of the calls that the client approved.
    pub accepted: BTreeSet<usize>,
    /// Numbers of the calls that the client was asked to approve.
    pub asked: BTreeSet<usize>,
    /// Whether the turn was interrupted or failed.
    pub is_interrupted: bool,
    /// The call of each item.
    items: HashMap<String, usize>,
    id: String,
}

impl TurnReport {
    pub fn run(
        server: &mut StdioServer,
        thread: &str,
        start: &Value,
        calls: &[ModelCallSpec],
        counters: &mut AttackCounters,
    ) -> Result<Self> {
        server.send_request("turn/start", start)?;
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
                    turn.is_interrupted |= params["turn"]["status"] != "completed";
                    if params["turn"]["status"] == "failed" {
                        counters.wrongs.push(format!("a turn failed: {params}"));
                    }
                    return Ok(turn);
                }
                _ if message.get("id").is_some() && message.get("method").is_some() => {
                    turn.answer(server, thread, &message, calls, counters)?;
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, item: &Value) {
        if let Some(number) = call_number(&item.to_string()) {
            self.items.insert(word(&item["id"]), number);
        }
    }

    fn answer(
        &mut self,
        server: &mut StdioServer,
        thread: &str,
        request: &Value,
        calls: &[ModelCallSpec],
        counters: &mut AttackCounters,
    ) -> Result<()> {
        let params = &request["params"];
        let item = params["itemId"].as_str().unwrap_or_default();
        let text = params.to_string();
        let number = call_number(&text).or(self.items.get(item).copied());
        let call = calls.iter().find(|it| Some(it.number) == number);
        let is_first = number.is_none_or(|it| self.asked.insert(it));
        let answer = match call {
            // The first request is about the command, the next one about the text typed into it.
            Some(ModelCallSpec {
                typed: Some(typed),
                class,
                answer,
                ..
            }) if !is_first => {
                if !text.contains(typed.trim_end()) {
                    let wrong =
                        format!("the request for typed text does not show the text: {text}");
                    counters.wrongs.push(wrong);
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
                counters.accepted += 1;
                "accept"
            }
            ApprovalChoice::AcceptForSession => {
                self.accepted.extend(number);
                counters.accepted += 1;
                "acceptForSession"
            }
            ApprovalChoice::Decline => {
                counters.declined += 1;
                "decline"
            }
            ApprovalChoice::Cancel => {
                counters.cancelled += 1;
                self.is_interrupted = true;
                "cancel"
            }
            ApprovalChoice::Silence => {
                counters.silent += 1;
                self.is_interrupted = true;
                let params = json!({"threadId": thread, "turnId": self.id});
                server.send_request("turn/interrupt", &params)?;
                return Ok(());
            }
        };
        let result = match request["method"].as_str().unwrap_or_default() {
            "item/permissions/requestApproval" => json!({"permissions": {}, "scope": "turn"}),
            "item/tool/requestUserInput" => json!({"answers": {}}),
            _ => json!({"decision": decision}),
        };
        server.send(&json!({"id": request["id"], "result": result}))
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
