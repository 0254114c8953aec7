//! Requests that two clients answer at once, and that are answered after the server was killed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::RejoinClient;
use crate::server::{RejoinHarness, ServerEndpoint};

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Approval,
    Question,
    ClientTool,
}

const KINDS: [Kind; 3] = [Kind::Approval, Kind::Question, Kind::ClientTool];

/// Whoever answers, by its name; what it says differs from what the other says.
const NAMES: [&str; 2] = ["warp", "weft"];

impl Kind {
    /// Has the model ask. An approval is for a command that leaves a mark.
    fn says(self, mark: &Path) -> String {
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

    /// What one of the two answers. Only the first says yes where it is a matter of yes and no.
    fn answer(self, who: usize) -> Value {
        let name = NAMES[who];
        match self {
            Self::Approval => {
                let decision = if who == 0 { "accept" } else { "decline" };
                json!({"decision": decision})
            }
            Self::Question => json!({"answers": {"which": {"answers": [name]}}}),
            Self::ClientTool => {
                json!({"success": true, "contentItems": [{"type": "inputText", "text": name}]})
            }
        }
    }
}

/// A thread for one request.
fn begin(client: &mut RejoinClient) -> Result<String> {
    let tool = json!({
        "type": "function",
        "name": "spin",
        "description": "Spins.",
        "inputSchema": {"type": "object", "properties": {}},
    });
    client.start_thread_with(json!({"approvalPolicy": "on-request", "dynamicTools": [tool]}))
}

/// Two clients answer at once, so many times. Gives how often the first of them won.
pub fn race(bench: &RejoinHarness, races: usize) -> Result<usize> {
    let server = bench.serve()?;
    let mut one = server.client_named(ServerEndpoint::Websocket, NAMES[0])?;
    let mut other = server.client_named(ServerEndpoint::Websocket, NAMES[1])?;
    let mut wins = 0;
    for number in 0..races {
        let kind = KINDS[number % KINDS.len()];
        let mark = mark(bench, "race", number);
        let thread = begin(&mut one)?;
        other.ask("thread/resume", json!({"threadId": thread}))?;
        one.say(&thread, &kind.says(&mark))?;
        let asked = [one.asked(&thread)?, other.asked(&thread)?];
        ensure!(
            asked[0].id == asked[1].id,
            "one request, two ids: {asked:?}"
        );
        for who in [number % 2, 1 - number % 2] {
            let client = [&mut one, &mut other];
            client[who].answer(&asked[who], &kind.answer(who))?;
        }
        let heard = [
            RequestResolution::of(&mut one, &thread)?,
            RequestResolution::of(&mut other, &thread)?,
        ];
        ensure!(heard[0] == heard[1], "{kind:?}: {heard:?}");
        let [heard, _] = heard;
        let winner = heard.winner(kind, &asked[0].id, &mark).and_then(|winner| {
            let by = heard.resolved.first().map(|(_, _, by)| by);
            let is_right = by.is_none_or(|by| by == NAMES[winner]);
            ensure!(is_right, "another is said to have won");
            Ok(winner)
        });
        let winner = winner.with_context(|| format!("{kind:?} in race {number}: {heard:?}"))?;
        wins += usize::from(winner == 0);
    }
    Ok(wins)
}

/// The server is killed while a request is open, so many times. The next one asks again under the same id, and
/// another client answers.
pub fn killed(bench: &RejoinHarness, kills: usize) -> Result<()> {
    let mut server = bench.serve()?;
    for number in 0..kills {
        let kind = KINDS[number % KINDS.len()];
        let mark = mark(bench, "killed", number);
        let mut one = server.client_named(ServerEndpoint::Websocket, NAMES[0])?;
        let thread = begin(&mut one)?;
        one.say(&thread, &kind.says(&mark))?;
        let asked = one.asked(&thread)?;
        drop(one);
        server.kill()?;
        server = bench.serve()?;
        let mut other = server.client_named(ServerEndpoint::Unix, NAMES[0])?;
        other.ask("thread/resume", json!({"threadId": thread}))?;
        let again = other.asked(&thread)?;
        ensure!(
            again.id == asked.id,
            "asked as {}, then as {}",
            asked.id,
            again.id
        );
        other.answer(&again, &kind.answer(0))?;
        let heard = RequestResolution::of(&mut other, &thread)?;
        let winner = heard.winner(kind, &asked.id, &mark);
        winner.with_context(|| format!("{kind:?} after kill {number}: {heard:?}"))?;
    }
    Ok(())
}

fn mark(bench: &RejoinHarness, trial: &str, number: usize) -> PathBuf {
    bench.home.path().join(format!("{trial}-{number}"))
}

/// What a client heard of a request's end.
#[derive(Debug, PartialEq)]
struct RequestResolution {
    /// Each with the request, the decision and who gave it.
    resolved: Vec<(Value, Value, Value)>,
    /// The item that asked, as it was completed.
    item: Value,
    /// What the model said in the end, which repeats what the tool gave.
    said: String,
}

impl RequestResolution {
    /// Hears the turn out.
    fn of(client: &mut RejoinClient, thread: &str) -> Result<Self> {
        let mut heard = Self {
            resolved: Vec::new(),
            item: Value::Null,
            said: String::new(),
        };
        loop {
            let message = client.heard(thread)?;
            let mut params = message.params()?;
            match message.method.as_str() {
                "serverRequest/resolved" => heard.resolved.push((
                    params["requestId"].take(),
                    params["decision"].take(),
                    params["resolvedBy"].take(),
                )),
                "item/completed" => {
                    let item = params["item"].take();
                    match item["type"].as_str() {
                        Some("userMessage") => {}
                        Some("agentMessage") => {
                            heard.said = item["text"].as_str().unwrap_or_default().to_owned();
                        }
                        _ => heard.item = item,
                    }
                }
                "turn/completed" => return Ok(heard),
                _ => {}
            }
        }
    }

    /// Whose answer counted. Exactly one did, and it had its effect once.
    fn winner(&self, kind: Kind, asked: &Value, mark: &Path) -> Result<usize> {
        match (&self.resolved[..], kind) {
            ([], Kind::ClientTool) => {}
            ([(id, ..)], Kind::Approval | Kind::Question) if id == asked => {}
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
                let says = NAMES.map(|name| self.said.contains(name));
                ensure!(says[0] != says[1], "the model was told of {says:?}");
                usize::from(says[1])
            }
        })
    }
}
