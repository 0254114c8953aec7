//! Requests that two clients answer at once, and that are answered after the server was killed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::RejoinClient;
use crate::server::{RejoinHarness, ServerEndpoint};

/// Kind of a server request.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Approval,
    Question,
    ClientTool,
}

const KINDS: [Kind; 3] = [Kind::Approval, Kind::Question, Kind::ClientTool];

/// Names of the answering clients. Each also answers differently.
const NAMES: [&str; 2] = ["warp", "weft"];

impl Kind {
    /// Returns the prompt that makes the model send the request. An approval is for a command that
    /// writes to a file.
    fn prompt(self, mark: &Path) -> String {
        let (name, arguments) = match self {
            Self::Approval => (
                "exec_command",
                json!({
                    "cmd": format!("echo once >> {}", mark.display()),
                    "login": false,
                    "sandbox_permissions": "require_escalated",
                    "justification": "May I?",
                }),
            ),
            Self::Question => {
                let option = |label: &str| json!({"label": label, "description": label});
                let question = json!({
                    "id": "which",
                    "header": "Which",
                    "question": "Which one?",
                    "options": NAMES.map(option),
                });
                ("request_user_input", json!({"questions": [question]}))
            }
            Self::ClientTool => ("spin", json!({})),
        };
        format!("MOCK call name={name} arguments={arguments}")
    }

    /// Returns the answer of one of the two clients. Only the first approves.
    fn answer(self, client: usize) -> Value {
        let name = NAMES[client];
        match self {
            Self::Approval => {
                let decision = if client == 0 { "accept" } else { "decline" };
                json!({"decision": decision})
            }
            Self::Question => json!({"answers": {"which": {"answers": [name]}}}),
            Self::ClientTool => {
                json!({"success": true, "contentItems": [{"type": "inputText", "text": name}]})
            }
        }
    }
}

/// Starts a thread for one request.
fn begin(client: &mut RejoinClient) -> Result<String> {
    let tool = json!({
        "type": "function",
        "name": "spin",
        "description": "Spins.",
        "inputSchema": {"type": "object", "properties": {}},
    });
    client.start_thread_with(json!({"approvalPolicy": "on-request", "dynamicTools": [tool]}))
}

/// Lets two clients answer at once, repeatedly. Returns how often the first one won.
pub fn race(harness: &RejoinHarness, races: usize) -> Result<usize> {
    let server = harness.serve()?;
    let mut first = server.client_named(ServerEndpoint::Websocket, NAMES[0])?;
    let mut second = server.client_named(ServerEndpoint::Websocket, NAMES[1])?;
    let mut wins = 0;
    for number in 0..races {
        let kind = KINDS[number % KINDS.len()];
        let mark = mark(harness, "race", number);
        let thread = begin(&mut first)?;
        second.request("thread/resume", json!({"threadId": thread}))?;
        first.start_turn(&thread, &kind.prompt(&mark))?;
        let requests = [first.next_request(&thread)?, second.next_request(&thread)?];
        ensure!(
            requests[0].id == requests[1].id,
            "one request, two ids: {requests:?}"
        );
        for index in [number % 2, 1 - number % 2] {
            let clients = [&mut first, &mut second];
            clients[index].answer(&requests[index], &kind.answer(index))?;
        }
        let resolutions = [
            RequestResolution::of(&mut first, &thread)?,
            RequestResolution::of(&mut second, &thread)?,
        ];
        ensure!(
            resolutions[0] == resolutions[1],
            "{kind:?}: {resolutions:?}"
        );
        let [resolution, _] = resolutions;
        let winner = resolution
            .winner(kind, &requests[0].id, &mark)
            .and_then(|winner| {
                let by = resolution.resolved.first().map(|(_, _, by)| by);
                let is_right = by.is_none_or(|by| by == NAMES[winner]);
                ensure!(is_right, "another is said to have won");
                Ok(winner)
            });
        let winner =
            winner.with_context(|| format!("{kind:?} in race {number}: {resolution:?}"))?;
        wins += usize::from(winner == 0);
    }
    Ok(wins)
}

/// Kills the server while a request is open, repeatedly. The next server sends it again with the
/// same id, and another client answers.
pub fn answer_after_kill(harness: &RejoinHarness, kills: usize) -> Result<()> {
    let mut server = harness.serve()?;
    for number in 0..kills {
        let kind = KINDS[number % KINDS.len()];
        let mark = mark(harness, "killed", number);
        let mut first = server.client_named(ServerEndpoint::Websocket, NAMES[0])?;
        let thread = begin(&mut first)?;
        first.start_turn(&thread, &kind.prompt(&mark))?;
        let request = first.next_request(&thread)?;
        drop(first);
        server.kill()?;
        server = harness.serve()?;
        let mut second = server.client_named(ServerEndpoint::Unix, NAMES[0])?;
        second.request("thread/resume", json!({"threadId": thread}))?;
        let repeated = second.next_request(&thread)?;
        ensure!(
            repeated.id == request.id,
            "asked as {}, then as {}",
            request.id,
            repeated.id
        );
        second.answer(&repeated, &kind.answer(0))?;
        let resolution = RequestResolution::of(&mut second, &thread)?;
        let winner = resolution.winner(kind, &request.id, &mark);
        winner.with_context(|| format!("{kind:?} after kill {number}: {resolution:?}"))?;
    }
    Ok(())
}

fn mark(harness: &RejoinHarness, trial: &str, number: usize) -> PathBuf {
    harness.home.path().join(format!("{trial}-{number}"))
}

/// Notifications of a client about the end of a request.
#[derive(Debug, PartialEq)]
struct RequestResolution {
    /// The request, the decision, and the client that made it.
    resolved: Vec<(Value, Value, Value)>,
    /// The completed item of the request.
    item: Value,
    /// Final text of the model, which repeats the output of the tool.
    final_text: String,
}

impl RequestResolution {
    /// Receives the rest of the turn.
    fn of(client: &mut RejoinClient, thread: &str) -> Result<Self> {
        let mut resolution = Self {
            resolved: Vec::new(),
            item: Value::Null,
            final_text: String::new(),
        };
        loop {
            let message = client.next_message(thread)?;
            let mut params = message.params()?;
            match message.method.as_str() {
                "serverRequest/resolved" => resolution.resolved.push((
                    params["requestId"].take(),
                    params["decision"].take(),
                    params["resolvedBy"].take(),
                )),
                "item/completed" => {
                    let item = params["item"].take();
                    match item["type"].as_str() {
                        Some("userMessage") => {}
                        Some("agentMessage") => {
                            resolution.final_text =
                                item["text"].as_str().unwrap_or_default().to_owned();
                        }
                        _ => resolution.item = item,
                    }
                }
                "turn/completed" => return Ok(resolution),
                _ => {}
            }
        }
    }

    /// Returns the client whose answer counted. Exactly one did, and it took effect once.
    fn winner(&self, kind: Kind, request_id: &Value, mark: &Path) -> Result<usize> {
        match (&self.resolved[..], kind) {
            ([], Kind::ClientTool) => {}
            ([(id, ..)], Kind::Approval | Kind::Question) if id == request_id => {}
            _ => bail!("it was not settled once"),
        }
        let marks = std::fs::read_to_string(mark).unwrap_or_default();
        Ok(match kind {
            Kind::Approval => match (self.resolved[0].1.as_str(), marks.as_str()) {
                (Some("accept"), "once\n") => 0,
                (Some("decline"), "") => 1,
                (decision, marks) => bail!("{decision:?}, and the marks {marks:?}"),
            },
            Kind::Question | Kind::ClientTool => {
                let mentions = NAMES.map(|name| self.final_text.contains(name));
                ensure!(
                    mentions[0] != mentions[1],
                    "the model was told of {mentions:?}"
                );
                usize::from(mentions[1])
            }
        })
    }
}
