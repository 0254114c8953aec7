//! Requests that clients come up with, and the commands that nodes make from them.

use raddle_core::{
    AnswerRequest, Archive, Briefed, Cause, ChangeMetadata, ChangeQueued, ChangeSettings,
    ClearGoal, Command, CommandRun, Delete, Enqueue, GoalStatus, InjectItems, InjectedItem, Input,
    InputMessage, Interrupt, ItemId, Output, Recovery, Rename, ReorderQueue, RequestAnswer,
    RequestNumber, Revert, RevertPoint, RunShell, Seq, SetGoal, Settings, SettingsChange,
    StartQueued, StartTurn, Steer, ThreadSource, ThreadStarted, ToolCall, Topic, TurnId, TurnKind,
    Unqueue,
};
use support::Rng;

use crate::client::{ClientRequest, QueueEdit};
use crate::world::SimWorld;

impl SimWorld {
    /// Returns the next request of a client, if any.
    pub fn next_request(&mut self, thread: usize, client: usize) -> Option<ClientRequest> {
        let (deletes, reverts) = (self.scenario.deletes, self.scenario.reverts);
        let sim_thread = &mut self.threads[thread];
        let it = &sim_thread.clients[client];
        let view = it.view.as_ref()?;
        let running = view.running().cloned();
        let rng = &mut sim_thread.rng;
        if sim_thread.turns_left > 0 && running.is_none() && rng.percent(20) {
            sim_thread.turns_left -= 1;
            let kind = match rng.below(20) {
                0 => TurnKind::Compaction,
                1..=2 => TurnKind::Review,
                _ => TurnKind::Work,
            };
            let settings = rng.percent(15).then(|| Box::new(other_settings(rng)));
            let text = (kind != TurnKind::Compaction && rng.percent(97))
                .then(|| unique_text(&mut sim_thread.minted));
            return Some(ClientRequest::Turn {
                text,
                kind,
                settings,
            });
        }
        if it.commands_left == 0 || !rng.percent(25) {
            return None;
        }
        let has_hunks = it.has_hunks();
        sim_thread.clients[client].commands_left -= 1;
        let known = running.clone().unwrap_or_else(|| TurnId::from("t0"));
        if reverts && running.is_none() && rng.percent(60) {
            return Some(ClientRequest::Revert(None));
        }
        Some(match rng.below(48) {
            0..=4 => {
                let text = rng.percent(85).then(|| unique_text(&mut sim_thread.minted));
                let expected = if rng.percent(85) {
                    known
                } else {
                    TurnId::from("t0")
                };
                ClientRequest::Steer { text, expected }
            }
            5..=6 => {
                let kind = if rng.percent(75) {
                    TurnKind::Work
                } else {
                    TurnKind::Compaction
                };
                ClientRequest::Turn {
                    text: Some(unique_text(&mut sim_thread.minted)),
                    kind,
                    settings: None,
                }
            }
            7..=11 => ClientRequest::Interrupt(match rng.below(4) {
                0 => None,
                1 => Some(TurnId::from("t0")),
                _ => running,
            }),
            12..=13 => {
                let request = RequestNumber(rng.below(6));
                let by = "guest".to_owned();
                ClientRequest::Answer(Box::new(AnswerRequest {
                    request,
                    by,
                    answer: RequestAnswer::Decline {},
                }))
            }
            14..=16 => {
                let name = rng.percent(80).then(|| format!("name {}", rng.below(5)));
                ClientRequest::Rename(name)
            }
            // No thread is archived while its turn waits for an answer.
            17..=20 if has_hunks => ClientRequest::Settings(Box::new(other_cwd(rng))),
            17..=20 => ClientRequest::Archive(rng.percent(60)),
            21..=22 => ClientRequest::Settings(Box::new(other_settings(rng))),
            23..=26 => ClientRequest::Revert(None),
            27 if sim_thread.forks => ClientRequest::Fork,
            28 if deletes => ClientRequest::Delete,
            29 => ClientRequest::Begin,
            30 => ClientRequest::Shell,
            31 => {
                let sha = rng.percent(70).then(|| format!("sha {}", rng.below(3)));
                ClientRequest::Metadata(sha)
            }
            34..=36 => {
                let is_paused = rng.percent(15);
                ClientRequest::Goal((!is_paused).then(|| 200 + rng.below(4_000)))
            }
            37 => ClientRequest::NoGoal,
            38..=42 => ClientRequest::Enqueue(unique_text(&mut sim_thread.minted)),
            43..=47 => ClientRequest::Queue(match rng.below(5) {
                0 => QueueEdit::Change,
                1 => QueueEdit::Forget,
                2 => QueueEdit::Turn,
                3 => QueueEdit::Cut,
                _ => QueueEdit::Start,
            }),
            32..=33 => ClientRequest::Inject {
                is_whole: rng.percent(90),
                text: unique_text(&mut sim_thread.minted),
            },
            _ => ClientRequest::Interrupt(running),
        })
    }

    /// Makes the command for a request: the node chooses the ids and looks up what it needs.
    pub fn command_of(&mut self, thread: usize, request: &ClientRequest) -> Command {
        let revert =
            matches!(request, ClientRequest::Revert(_)).then(|| self.revert_target(thread));
        let sim_thread = &mut self.threads[thread];
        sim_thread.minted += 1;
        let minted = sim_thread.minted;
        let message = |text: &str| InputMessage {
            item: ItemId::from(format!("u{minted}").as_str()),
            input: vec![Input::text(text)],
            client_id: None,
            hook_prompt: None,
        };
        match request {
            ClientRequest::Turn {
                text,
                kind,
                settings,
            } => Command::StartTurn(Box::new(StartTurn {
                turn: TurnId::from(format!("t{minted}").as_str()),
                kind: *kind,
                message: text.as_deref().map(message),
                change: settings.clone().unwrap_or_default(),
                briefs: environment_briefs(minted),
                principal: None,
                root: None,
                output_schema: None,
            })),
            ClientRequest::Steer { text, expected } => {
                let mut message = message(text.as_deref().unwrap_or_default());
                if text.is_none() {
                    message.input.clear();
                }
                Command::Steer(Steer {
                    expected: expected.clone(),
                    message,
                    briefs: environment_briefs(minted),
                    principal: None,
                })
            }
            ClientRequest::Interrupt(turn) => Command::Interrupt(Interrupt {
                turn: turn.clone(),
                cause: Cause::Client { principal: None },
            }),
            ClientRequest::Answer(answer) => Command::AnswerRequest(answer.clone()),
            ClientRequest::Rename(name) => Command::Rename(Rename {
                name: name.clone(),
                principal: None,
            }),
            ClientRequest::Metadata(sha) => Command::ChangeMetadata(ChangeMetadata {
                sha: Some(sha.clone()),
                ..ChangeMetadata::default()
            }),
            ClientRequest::Inject { text, is_whole } => Command::InjectItems(InjectItems {
                items: history(minted, text, *is_whole),
                principal: None,
            }),
            ClientRequest::Goal(tokens) => Command::SetGoal(SetGoal {
                objective: tokens.map(|_| format!("goal {minted}")),
                status: tokens.is_none().then_some(GoalStatus::Paused),
                token_budget: *tokens,
                principal: None,
            }),
            ClientRequest::NoGoal => Command::ClearGoal(ClearGoal::default()),
            ClientRequest::Enqueue(text) => Command::Enqueue(Enqueue {
                message: message(text),
                principal: None,
            }),
            ClientRequest::Queue(what) => {
                let queue = sim_thread.oracle.fold.queue().iter();
                queue_command(*what, queue.map(|it| it.item.clone()).collect(), minted)
            }
            ClientRequest::Archive(archived) => Command::Archive(Archive {
                archived: *archived,
                principal: None,
            }),
            ClientRequest::Settings(settings) => {
                Command::ChangeSettings(Box::new(ChangeSettings {
                    change: (**settings).clone(),
                    principal: None,
                }))
            }
            ClientRequest::Revert(_) | ClientRequest::Fork => {
                Command::Revert(revert.unwrap_or_else(invalid_revert))
            }
            ClientRequest::Delete => Command::Delete(Delete::default()),
            ClientRequest::Shell => Command::RunShell(Box::new(RunShell {
                turn: TurnId::from(format!("t{minted}").as_str()),
                item: ItemId::from(format!("u{minted}").as_str()),
                command: CommandRun {
                    command: "ls".to_owned(),
                    ..CommandRun::default()
                },
                briefs: environment_briefs(minted),
                principal: None,
            })),
            ClientRequest::Begin => Command::StartThread(Box::new(ThreadStarted {
                thread: sim_thread.id,
                tenant: None,
                principal: None,
                source: ThreadSource::Cli,
                originator: None,
                label: None,
                version: "0".to_owned(),
                ephemeral: false,
                paginated: false,
                git: None,
                settings: Settings::default(),
            })),
        }
    }

    /// Returns a revert to some turn, with the state just before it.
    fn revert_target(&mut self, thread: usize) -> Revert {
        let log = self.store.log(thread);
        let sim_thread = &mut self.threads[thread];
        // Sometimes the target is a turn that was reverted before.
        let is_reverted = sim_thread.rng.percent(20);
        let turns = sim_thread.oracle.turns.iter();
        let turns: Vec<_> = turns
            .filter(|(_, seq)| sim_thread.oracle.is_cut(*seq) == is_reverted)
            .cloned()
            .collect();
        if turns.is_empty() || sim_thread.rng.percent(5) {
            return invalid_revert();
        }
        let (turn, at) = turns[sim_thread.rng.index(turns.len())].clone();
        let before = log.fold(Seq(at.0 - 1));
        Revert {
            turn,
            at,
            point: before.revert_point(),
            principal: None,
        }
    }
}

fn invalid_revert() -> Revert {
    let point = RevertPoint {
        lineage: Vec::new(),
        turns: u64::MAX,
        context_tokens: 0,
    };
    Revert {
        turn: TurnId::from("t0"),
        at: Seq(u64::MAX),
        point,
        principal: None,
    }
}

/// Returns notes on the environment. Sometimes they are new.
pub fn environment_briefs(minted: u64) -> Vec<Briefed> {
    let brief = |topic, text: String| Briefed {
        topic,
        text,
        sources: Vec::new(),
        is_asked: false,
    };
    vec![
        brief(Topic::Instructions, format!("rules {}", minted / 31)),
        brief(Topic::Environment, format!("day {}", minted / 7)),
    ]
}

/// Makes the command for an edit of the queue.
fn queue_command(what: QueueEdit, mut queue: Vec<ItemId>, minted: u64) -> Command {
    let first = queue.first().cloned();
    let item = first.clone().unwrap_or_else(|| ItemId::from("u0"));
    let principal = None;
    match what {
        QueueEdit::Change => Command::ChangeQueued(ChangeQueued {
            item,
            input: vec![Input::text(format!("change {minted}"))],
            principal,
        }),
        QueueEdit::Forget => Command::Unqueue(Unqueue { item, principal }),
        QueueEdit::Turn => {
            queue.reverse();
            let items = queue;
            Command::ReorderQueue(ReorderQueue { items, principal })
        }
        QueueEdit::Cut => Command::ReorderQueue(ReorderQueue {
            items: vec![item],
            principal,
        }),
        QueueEdit::Start => Command::StartQueued(StartQueued {
            item: queue.pop(),
            turn: TurnId::from(format!("t{minted}").as_str()),
            briefs: environment_briefs(minted),
            principal,
        }),
    }
}

/// Returns history to inject.
fn history(minted: u64, text: &str, is_whole: bool) -> Vec<InjectedItem> {
    let id = format!("x{minted}");
    let user = InjectedItem::User {
        input: vec![Input::text(text)],
    };
    let call = InjectedItem::Call(ToolCall {
        id: id.clone(),
        tool: "look".to_owned(),
        arguments: "{}".to_owned(),
        alone: false,
        freeform: false,
    });
    let output = is_whole.then(|| InjectedItem::Output {
        call: id,
        output: Output::text("seen"),
    });
    [user, call].into_iter().chain(output).collect()
}

/// Returns a text that no other message has.
fn unique_text(minted: &mut u64) -> String {
    *minted += 1;
    format!("word {minted}")
}

fn other_settings(rng: &mut Rng) -> SettingsChange {
    let mut change = SettingsChange::default();
    match rng.below(5) {
        0 => change.recovery = Some(Some(Recovery::Interrupt)),
        1 => change.recovery = Some(Some(Recovery::Continue)),
        2 => change.recovery = Some(None),
        3 => change.compact_above = Some(Some(300 + rng.below(1_000))),
        _ => return other_cwd(rng),
    }
    change
}

fn other_cwd(rng: &mut Rng) -> SettingsChange {
    SettingsChange {
        cwd: Some(working_directory(1 + rng.below(DEPTH_MAX))),
        ..SettingsChange::default()
    }
}

/// The deepest working directory of a thread.
pub const DEPTH_MAX: u64 = 9;

/// Returns one of the working directories of threads, each in the one before. The first is that of a
/// new thread.
pub fn working_directory(depth: u64) -> String {
    (0..depth).fold("/w".to_owned(), |cwd, _| cwd + "/d")
}
