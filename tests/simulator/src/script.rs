//! Scripts of the model and of tools. Times in them are relative until they are reported.

pub mod tool;

use std::collections::{BTreeSet, VecDeque};

use raddle_core::policy::{Ruling, Verdict};
use raddle_core::{
    Admission, AgentMessage, AppendText, Ask, AskCommand, AskElicitation, AskPatch, AskPermissions,
    AskQuestions, AskTool, CallTool, ChangeKind, ClientTool, Command, CommandRun, Compact,
    EndModel, Failure, FailureKind, FileChange, GoalStatus, ItemBody, ItemId, ItemPart, ItemUpdate,
    ModelEnd, NamedTool, Patch, PlanStep, PlanText, Price, Rates, Reasoning, Sealed, StepStatus,
    Timestamp, ToolCall, UpdateItem, UpdatePlan, Usage, UserQuestion,
};
use support::Rng;

use crate::client_request::{DEPTH_MAX, working_directory};

/// Commands with the wait before each.
pub type Steps = VecDeque<(u64, Command)>;

/// Script of a model call.
pub struct CallScript<'a> {
    /// Source of the script's randomness.
    pub rng: &'a mut Rng,
    /// Number of the call.
    pub call: u32,
    /// Prefix of all ids that it uses.
    pub prefix: String,
    /// Whether faults may occur.
    pub faults: bool,
    /// Digests that are approved until the session ends.
    pub granted: BTreeSet<String>,
}

impl CallScript<'_> {
    fn id(&self, index: usize) -> ItemId {
        ItemId::from(format!("{}-{index}", self.prefix).as_str())
    }

    /// Returns the steps of an answer: reasoning, messages, tools, and an end.
    pub fn answer(mut self) -> Steps {
        let mut steps = Steps::new();
        let mut items = 0;
        if self.rng.percent(30) {
            self.think(&mut steps, &mut items);
        }
        if self.rng.percent(80) {
            self.talk(&mut steps, &mut items);
        }
        if self.rng.percent(10) {
            let step = PlanStep {
                step: "go on".to_owned(),
                status: StepStatus::Pending,
            };
            let plan = UpdatePlan {
                explanation: None,
                steps: vec![step],
            };
            steps.push_back((3, Command::UpdatePlan(plan)));
        }
        // The chance of further tools falls, so that the turn ends.
        let tool_percent = 70u64.saturating_sub(u64::from(self.call) * 9);
        if self.call < 7 && self.rng.percent(tool_percent) {
            for _ in 0..self.rng.range(1, 4) {
                self.tool(&mut steps, &mut items);
            }
        }
        self.break_in(&mut steps);
        self.end(&mut steps);
        steps
    }

    /// Returns the steps of a summary of the history.
    pub fn summary(mut self) -> Steps {
        let mut steps = Steps::new();
        if !self.faults || self.rng.percent(90) {
            let compact = Compact {
                call: self.call,
                item: self.id(0),
                summary: "so far".to_owned(),
            };
            steps.push_back((self.rng.range(5, 200), Command::Compact(compact)));
        }
        self.end(&mut steps);
        // The end may come long after the summary, and much can happen between them.
        if self.faults
            && self.rng.percent(40)
            && let Some(end) = steps.back_mut()
        {
            end.0 = self.rng.range(200, 4_000);
        }
        steps
    }

    fn think(&mut self, steps: &mut Steps, items: &mut usize) {
        let item = self.id(*items);
        *items += 1;
        let body = ItemBody::Reasoning(Reasoning::default());
        let start = self.update(ItemUpdate::Started(item.clone(), Box::new(body)));
        steps.push_back((self.wait(), start));
        for index in 0..self.rng.range(1, 4) {
            let index = u32::try_from(index).unwrap_or(0);
            let part = if self.rng.percent(70) {
                ItemPart::Summary(index)
            } else {
                ItemPart::Content(index)
            };
            let wait = self.wait();
            let text = ItemUpdate::Text(self.text(&item, part));
            steps.push_back((wait, self.update(text)));
        }
        let sealed = Sealed {
            vendor: "v".to_owned(),
            value: serde_json::json!("opaque"),
        };
        let body = Box::new(ItemBody::Reasoning(Reasoning {
            summary: vec!["thought".to_owned()],
            content: Vec::new(),
        }));
        let complete = self.update(ItemUpdate::Completed(item, body, Some(sealed)));
        steps.push_back((self.wait(), complete));
    }

    fn talk(&mut self, steps: &mut Steps, items: &mut usize) {
        let item = self.id(*items);
        *items += 1;
        let plan = self.rng.percent(10);
        let body = |text: &str| {
            let text = text.to_owned();
            if plan {
                ItemBody::Plan(PlanText { text })
            } else {
                ItemBody::AgentMessage(AgentMessage { text, phase: None })
            }
        };
        let start = self.update(ItemUpdate::Started(item.clone(), Box::new(body(""))));
        steps.push_back((self.wait(), start.clone()));
        if self.rng.percent(12) {
            steps.push_back((12, start));
        }
        let mut message_text = String::new();
        for _ in 0..self.rng.range(1, 14) {
            let text = self.text(&item, ItemPart::Text);
            message_text.push_str(&text.text);
            let text = self.update(ItemUpdate::Text(text));
            steps.push_back((self.wait(), text));
        }
        // Some vendors never report that a message is complete.
        if self.rng.percent(80) {
            let body = Box::new(body(&message_text));
            let complete = self.update(ItemUpdate::Completed(item.clone(), body, None));
            steps.push_back((self.wait(), complete));
            if self.rng.percent(5) {
                let text = ItemUpdate::Text(self.text(&item, ItemPart::Text));
                steps.push_back((2, self.update(text)));
            }
        }
    }

    fn update(&self, update: ItemUpdate) -> Command {
        let call = self.call;
        Command::UpdateItem(UpdateItem { call, update })
    }

    fn text(&mut self, item: &ItemId, part: ItemPart) -> AppendText {
        let length = if self.rng.percent(6) {
            self.rng.range(200, 900)
        } else {
            self.rng.range(1, 20)
        };
        let letter = char::from(b'a' + u8::try_from(self.rng.below(26)).unwrap_or(0));
        let text = letter
            .to_string()
            .repeat(usize::try_from(length).unwrap_or(1));
        AppendText {
            item: item.clone(),
            part,
            text,
        }
    }

    fn tool(&mut self, steps: &mut Steps, items: &mut usize) {
        let item = self.id(*items);
        *items += 1;
        let command = || {
            ItemBody::Command(CommandRun {
                command: "make".to_owned(),
                ..CommandRun::default()
            })
        };
        let plain = || {
            ItemBody::Tool(NamedTool {
                name: "ask".to_owned(),
            })
        };
        let goal = match self.rng.below(12) {
            0 => Some(GoalStatus::Complete),
            1 => Some(GoalStatus::Blocked),
            _ => None,
        };
        let mut is_clients = false;
        let (body, ask) = match self.rng.below(12) {
            _ if goal.is_some() => (plain(), None),
            0..=4 => (command(), None),
            5..=6 => (command(), Some(Ask::Command(AskCommand::default()))),
            7 => (
                ItemBody::Patch(Patch {
                    changes: vec![proposed_change()],
                }),
                Some(Ask::Patch(AskPatch::default())),
            ),
            8 => (
                plain(),
                Some(Ask::Questions(AskQuestions {
                    questions: vec![question()],
                    trust_folder: None,
                })),
            ),
            9 => {
                let tool = ClientTool {
                    tool: "look".to_owned(),
                    namespace: None,
                    arguments: serde_json::json!({}),
                    content: None,
                    duration_ms: None,
                };
                is_clients = true;
                (ItemBody::ClientTool(tool), None)
            }
            10 => {
                let rights = AskPermissions {
                    cwd: "/w".to_owned(),
                    reason: None,
                    permissions: serde_json::json!({
                        "fileSystem": { "write": ["/a", "/b"] },
                        "network": { "enabled": self.rng.percent(50) },
                    }),
                };
                (plain(), Some(Ask::Permissions(rights)))
            }
            _ => {
                let body = serde_json::json!({"message": "which?"});
                let ask = AskElicitation {
                    server: "s".to_owned(),
                    body,
                    permission: None,
                };
                (plain(), Some(Ask::Elicitation(ask)))
            }
        };
        let admission = match (goal, ask) {
            (Some(status), _) => Admission::Goal(status),
            (None, None) if is_clients && self.rng.percent(40) => Admission::Ask {
                ask: Ask::Tool(AskTool::default()),
                expires_at: None,
            },
            (None, None) if is_clients => Admission::Client,
            (None, None) if self.rng.percent(10) => Admission::Deny("not allowed".to_owned()),
            (None, None) => Admission::Run,
            (None, Some(ask)) => {
                let soon = self.rng.percent(25);
                let expires_at = soon.then(|| Timestamp(200 + self.rng.below(4_000).cast_signed()));
                Admission::Ask { ask, expires_at }
            }
        };
        // Some vendors number their calls from one in every answer, and some give two calls the
        // same id.
        let id = if self.rng.percent(10) {
            "call".to_owned()
        } else {
            format!("c-{item}")
        };
        let tool_call = ToolCall {
            id,
            tool: "tool".to_owned(),
            arguments: "{}".to_owned(),
            freeform: false,
            alone: self.rng.percent(30),
        };
        let (admission, ruling) = self.apply_policy(admission, is_clients);
        let call = CallTool {
            call: self.call,
            item,
            body,
            tool_call,
            admission,
            ruling: Some(ruling),
            approve_on_timeout: self.rng.percent(40),
        };
        steps.push_back((self.wait(), Command::CallTool(Box::new(call))));
    }

    /// Returns the policy's ruling on a call, and the decision. The same few acts occur again and
    /// again.
    fn apply_policy(&mut self, admission: Admission, is_clients: bool) -> (Admission, Ruling) {
        let digest = format!("d{}", self.rng.below(3));
        let is_approval = matches!(
            &admission,
            Admission::Ask {
                ask: Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_),
                ..
            }
        );
        let (admission, verdict, rule) = match admission {
            _ if is_approval && self.granted.contains(&digest) => {
                let admission = match is_clients {
                    true => Admission::Client,
                    false => Admission::Run,
                };
                (admission, Verdict::Allow, "session")
            }
            it if is_approval => (it, Verdict::Ask, "rule"),
            it @ Admission::Deny(_) => (it, Verdict::Deny, "rule"),
            it => (it, Verdict::Allow, "rule"),
        };
        let ruling = Ruling {
            verdict,
            reason: "so it is".to_owned(),
            rule: rule.to_owned(),
            digest,
            files: Vec::new(),
        };
        (admission, ruling)
    }

    /// Cuts an answer off anywhere, or delays it for a long time.
    fn break_in(&mut self, steps: &mut Steps) {
        if self.faults && self.rng.percent(12) {
            steps.truncate(self.rng.index(steps.len() + 1));
        }
        if self.faults && self.rng.percent(8) && !steps.is_empty() {
            let index = self.rng.index(steps.len());
            steps[index].0 = self.rng.range(2_000, 12_000);
        }
    }

    fn end(&mut self, steps: &mut Steps) {
        let error = |kind| Failure::new(kind, "no");
        let end = match self.rng.below(100) {
            0..=11 if self.faults => ModelEnd::Broke {
                error: error(FailureKind::Stream { status: None }),
                retry_at: Timestamp(self.rng.below(3_000).cast_signed()),
            },
            12..=13 if self.faults => ModelEnd::Failed {
                error: error(FailureKind::BadRequest),
            },
            14 if self.faults => ModelEnd::Failed {
                error: error(FailureKind::ContextFull),
            },
            15 if self.faults => ModelEnd::Failed {
                error: error(FailureKind::UsageLimit),
            },
            _ => ModelEnd::Done {},
        };
        let usage = self.rng.percent(85).then(|| Usage {
            input: self.rng.below(1_150),
            output: self.rng.below(100),
            ..Usage::default()
        });
        let price = Price {
            usual: Rates {
                input: 2_000_000,
                output: 10_000_000,
                ..Rates::default()
            },
            long: None,
        };
        let end = EndModel {
            call: self.call,
            end,
            usage,
            estimated: false,
            price: Some(price),
        };
        steps.push_back((self.wait(), Command::EndModel(Box::new(end))));
    }

    fn wait(&mut self) -> u64 {
        if self.rng.percent(5) {
            self.rng.range(50, 900)
        } else {
            self.rng.range(0, 25)
        }
    }
}

/// Returns a step as it is reported: relative times become absolute from now on.
pub fn with_absolute_times(command: &Command, now: Timestamp) -> Command {
    let mut command = command.clone();
    let from_now = |wait: &mut Timestamp| *wait = now.plus_ms(wait.0);
    match &mut command {
        Command::EndModel(it) => {
            if let ModelEnd::Broke { retry_at, .. } = &mut it.end {
                from_now(retry_at);
            }
        }
        Command::CallTool(it) => {
            if let Admission::Ask {
                expires_at: Some(wait),
                ..
            } = &mut it.admission
            {
                from_now(wait);
            }
        }
        Command::AskForTool(it) => it.expires_at.iter_mut().for_each(from_now),
        _ => {}
    }
    command
}

/// Returns a change of a file with three hunks.
fn proposed_change() -> FileChange {
    let diff = [1, 21, 41].map(|line| format!("@@ -{line} +{line} @@\n-old {line}\n+new {line}\n"));
    FileChange {
        // In every working directory: the ids of its hunks differ in each, and clients change it.
        path: working_directory(DEPTH_MAX) + "/a",
        kind: ChangeKind::Update { moved_to: None },
        diff: diff.concat(),
    }
}

fn question() -> UserQuestion {
    UserQuestion {
        id: "q".to_owned(),
        header: "h".to_owned(),
        question: "why?".to_owned(),
        options: None,
        other: false,
        secret: false,
    }
}
