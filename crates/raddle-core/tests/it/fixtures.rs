//! Language of the rule files: parses short commands, formats short records.

use std::collections::BTreeMap;

use raddle_core::*;

/// Splits at spaces; a quoted part stays together and loses its quotes.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quoted = false;
    let mut word = String::new();
    let mut begun = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                begun = true;
            }
            ' ' if !quoted => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            _ => {
                word.push(letter);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// Settings of every thread in these tests.
pub fn settings() -> Settings {
    Settings {
        cwd: "/w".to_owned(),
        ..Settings::default()
    }
}

pub fn thread_id() -> ThreadId {
    "019a0000-0000-7000-8000-000000000001"
        .parse()
        .expect("an id")
}

pub fn thread_started() -> ThreadStarted {
    ThreadStarted {
        thread: thread_id(),
        tenant: None,
        principal: Some("ann".to_owned()),
        source: ThreadSource::Editor,
        originator: None,
        label: None,
        version: "1".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: settings(),
    }
}

fn message(item: &str, text: &str) -> InputMessage {
    InputMessage {
        item: item.into(),
        input: if text.is_empty() {
            Vec::new()
        } else {
            vec![Input::text(text)]
        },
        client_id: None,
        hook_prompt: None,
    }
}

/// Creates a command that starts a turn with one message.
pub fn start_turn(turn: &str, kind: TurnKind, text: Option<&str>) -> Command {
    Command::StartTurn(Box::new(StartTurn {
        turn: turn.into(),
        kind,
        message: text.map(|text| message(&format!("{turn}-m"), text)),
        change: Box::default(),
        briefs: Vec::new(),
        principal: None,
        root: None,
        output_schema: None,
    }))
}

/// Adds notes on the environment to a turn: pairs of a topic and a text.
fn briefed(mut command: Command, words: &[String]) -> Command {
    if let Command::StartTurn(start) = &mut command {
        start.briefs = briefs(words);
    }
    command
}

fn briefs(words: &[String]) -> Vec<Briefed> {
    let pairs = words.chunks_exact(2).map(|pair| Briefed {
        topic: match pair[0].as_str() {
            "asking" => Topic::Instructions,
            "in" => Topic::Environment,
            "offering" => Topic::Skills,
            "using" => Topic::SkillTexts,
            "withholding" | "asking-about" => Topic::WithheldSkills,
            other => panic!("no such topic: {other}"),
        },
        text: pair[1].clone(),
        sources: Vec::new(),
        is_asked: pair[0] == "asking-about",
    });
    pairs.collect()
}

/// Returns the running model call, or a number that no call has.
fn running_call(thread: &Thread) -> u32 {
    thread
        .pending()
        .into_iter()
        .find_map(|effect| match effect {
            Effect::CallModel { call, .. } => Some(call),
            _ => None,
        })
        .unwrap_or(99)
}

fn tool(
    item: &str,
    what: &str,
    text: &str,
    admission: Admission,
    call: u32,
    approve_on_timeout: bool,
) -> Command {
    let is_judged = matches!(
        admission,
        Admission::Ask {
            ask: Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_),
            ..
        }
    );
    let body = match what {
        "patch" => ItemBody::Patch(Patch::default()),
        "edit" => ItemBody::Patch(Patch {
            changes: vec![edit()],
        }),
        "client" => ItemBody::ClientTool(ClientTool {
            tool: text.to_owned(),
            namespace: None,
            arguments: serde_json::Value::Null,
            content: None,
            duration_ms: None,
        }),
        "questions" | "rights" => ItemBody::Tool(NamedTool {
            name: "ask_user".to_owned(),
        }),
        _ => ItemBody::Command(CommandRun {
            command: text.to_owned(),
            cwd: "/w".to_owned(),
            ..CommandRun::default()
        }),
    };
    Command::CallTool(Box::new(CallTool {
        call,
        item: item.into(),
        body,
        tool_call: ToolCall {
            id: format!("call-{item}"),
            tool: what.trim_end_matches("-alone").to_owned(),
            arguments: text.to_owned(),
            freeform: false,
            alone: what.ends_with("-alone"),
        },
        admission,
        ruling: is_judged.then(|| policy::Ruling {
            verdict: policy::Verdict::Ask,
            reason: "why".to_owned(),
            rule: "approvalPolicy".to_owned(),
            digest: format!("digest of {text}"),
            files: match what {
                "patch" => vec![format!("file {text}")],
                _ => Vec::new(),
            },
        }),
        approve_on_timeout,
    }))
}

fn admission(words: &[String], what: &str, text: &str, now: Timestamp) -> Admission {
    let expires_at = words
        .iter()
        .position(|word| word == "until")
        .map(|at| Timestamp(now.0 + seconds(&words[at + 1]) * 1000));
    match words.first().map_or("run", String::as_str) {
        "run" => Admission::Run,
        "deny" => Admission::Deny(words[1].clone()),
        "goal" => Admission::Goal(goal_status(&words[1])),
        "ask" if what == "client" => Admission::Client,
        "may" => Admission::Ask {
            ask: Ask::Tool(AskTool {
                tool: text.to_owned(),
                reason: None,
            }),
            expires_at,
        },
        "ask" => Admission::Ask {
            ask: match what {
                "patch" | "edit" => Ask::Patch(AskPatch::default()),
                "questions" => Ask::Questions(AskQuestions::default()),
                "rights" => Ask::Permissions(AskPermissions {
                    cwd: "/w".to_owned(),
                    reason: None,
                    permissions: rights(text),
                }),
                _ => Ask::Command(AskCommand {
                    command: text.to_owned(),
                    cwd: "/w".to_owned(),
                    ..AskCommand::default()
                }),
            },
            expires_at,
        },
        other => panic!("no such admission: {other}"),
    }
}

/// Rights in the wire's form: the network, and paths to write.
fn rights(text: &str) -> serde_json::Value {
    let (network, paths): (Vec<&str>, Vec<&str>) =
        text.split(' ').partition(|word| *word == "network");
    serde_json::json!({
        "fileSystem": { "write": paths },
        "network": { "enabled": !network.is_empty() },
    })
}

fn seconds(word: &str) -> i64 {
    let digits = word.trim_end_matches('s');
    digits
        .parse()
        .unwrap_or_else(|_| panic!("not a time: {word}"))
}

fn failure(text: &str) -> Failure {
    Failure::new(FailureKind::Other, text)
}

fn answer(words: &[String]) -> RequestAnswer {
    match words[0].as_str() {
        "accept" => RequestAnswer::Accept {},
        "session" => RequestAnswer::AcceptForSession {},
        "decline" => RequestAnswer::Decline {},
        "cancel" => RequestAnswer::Cancel {},
        "hunks" => RequestAnswer::AcceptHunks {
            hunks: words[1..].iter().map(|it| hunk_decision(it)).collect(),
        },
        "failed" => RequestAnswer::Failed {
            message: "gone".to_owned(),
        },
        "tool" => RequestAnswer::Tool {
            output: Output::text(words[1].clone()),
            content: serde_json::json!([]),
        },
        "fault" => RequestAnswer::Tool {
            output: Output::failure(words[1].clone()),
            content: serde_json::json!([]),
        },
        "gives" => RequestAnswer::Permissions {
            granted: serde_json::json!({ "permissions": rights(&words[2]), "scope": words[1] }),
        },
        "answers" => RequestAnswer::Answers {
            answers: BTreeMap::from([("q".to_owned(), vec![words[1].clone()])]),
        },
        "trusts" => RequestAnswer::Answers {
            answers: BTreeMap::from([("trust".to_owned(), vec!["Trust".to_owned()])]),
        },
        other => panic!("no such answer: {other}"),
    }
}

/// A change of a file with two hunks.
fn edit() -> FileChange {
    FileChange {
        path: "/w/a".to_owned(),
        kind: ChangeKind::Update { moved_to: None },
        diff: "@@ -1 +1 @@\n-a\n+b\n@@ -20 +20 @@\n-c\n+d\n".to_owned(),
    }
}

/// Parses `+0`, `-0` or `-0:comment`, on the first hunk of that change. It has no third hunk.
fn hunk_decision(word: &str) -> HunkDecision {
    let (mark, comment) = word.split_once(':').unwrap_or((word, ""));
    let (mark, index) = mark.split_at(1);
    let hunks = proposed_hunks("/w", &[edit()]);
    let hunk = hunks.get(index.parse::<usize>().expect("an index"));
    HunkDecision {
        id: hunk.map_or_else(|| "none".to_owned(), |it| it.id.clone()),
        accept: mark == "+",
        comment: (!comment.is_empty()).then(|| comment.to_owned()),
        replacement: None,
    }
}

/// Parses a command of a rule file.
pub fn command(line: &str, thread: &Thread, now: Timestamp) -> Command {
    let words = split(line);
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let call = running_call(thread);
    match word(0) {
        "begin" => Command::StartThread(Box::new(thread_started())),
        "own" => Command::Own(Own {
            epoch: Epoch(word(1).parse().expect("an epoch")),
            node: word(2).to_owned(),
            head: thread.head(),
            reserved: thread.head().plus(1000),
            recovery: Recovery::Continue,
            fork: None,
            fails: None,
        }),
        "release" => Command::Release,
        "start" => briefed(
            start_turn(word(1), TurnKind::Work, Some(word(2))),
            words.get(3..).unwrap_or_default(),
        ),
        "review" => Command::StartReview(Box::new(StartReview {
            turn: word(1).into(),
            item: format!("{}-r", word(1)).as_str().into(),
            text: "changes".to_owned(),
            prompt: word(2).to_owned(),
            hunks: Vec::new(),
            briefs: briefs(words.get(3..).unwrap_or_default()),
            principal: None,
        })),
        "compact" => start_turn(word(1), TurnKind::Compaction, None),
        "shell" => Command::RunShell(Box::new(RunShell {
            turn: word(1).into(),
            item: word(2).into(),
            command: CommandRun {
                command: word(3).to_owned(),
                ..CommandRun::default()
            },
            briefs: briefs(words.get(4..).unwrap_or_default()),
            principal: None,
        })),
        "steer" => Command::Steer(Steer {
            expected: word(1).into(),
            message: message(&format!("{}-s", word(1)), word(2)),
            briefs: briefs(words.get(3..).unwrap_or_default()),
            principal: None,
        }),
        "interrupt" => Command::Interrupt(Interrupt {
            turn: (!word(1).is_empty()).then(|| word(1).into()),
            cause: Cause::Client { principal: None },
        }),
        "message" => {
            let body = ItemBody::AgentMessage(AgentMessage::default());
            start_item(call, word(1), body)
        }
        "text" => {
            let update = ItemUpdate::Text(AppendText {
                item: word(1).into(),
                part: ItemPart::Text,
                text: word(2).to_owned(),
            });
            Command::UpdateItem(UpdateItem { call, update })
        }
        "printed" => Command::AppendText(AppendText {
            item: word(1).into(),
            part: ItemPart::Printed,
            text: word(2).to_owned(),
        }),
        "said" => {
            let message = AgentMessage {
                text: word(2).to_owned(),
                phase: None,
            };
            let call = word(3).parse().unwrap_or(call);
            complete_item(call, word(1), ItemBody::AgentMessage(message), None)
        }
        "thought" => {
            let sealed = Sealed {
                vendor: "v".to_owned(),
                value: serde_json::json!({}),
            };
            let body = ItemBody::Reasoning(Reasoning::default());
            complete_item(call, word(1), body, Some(sealed))
        }
        "call" => {
            let admission = admission(words.get(4..).unwrap_or_default(), word(2), word(3), now);
            let approve_on_timeout = words.iter().any(|word| word == "then-yes");
            tool(
                word(1),
                word(2),
                word(3),
                admission,
                call,
                approve_on_timeout,
            )
        }
        "done" => end_model(call, ModelEnd::Done {}, word(1)),
        "guessed" => {
            let mut end = end_model(call, ModelEnd::Done {}, word(1));
            if let Command::EndModel(end) = &mut end {
                end.estimated = true;
            }
            end
        }
        "broke" => {
            let retry_at = Timestamp(now.0 + seconds(word(1)) * 1000);
            let kind = match word(3) {
                "badRequest" => FailureKind::BadRequest,
                _ => FailureKind::Stream { status: None },
            };
            let error = Failure::new(kind, "it broke");
            end_model(call, ModelEnd::Broke { error, retry_at }, word(2))
        }
        "failed" => {
            let mut error = failure(word(1));
            error.kind = match word(2) {
                "" => FailureKind::Other,
                "overloaded" => FailureKind::Overloaded,
                "quota" => FailureKind::UsageLimit,
                "auth" => FailureKind::Unauthorized,
                "unreadable" => FailureKind::Unreadable,
                "internal" => FailureKind::Internal,
                "policy" => FailureKind::Policy,
                "context" => FailureKind::ContextFull,
                other => panic!("no such failure: {other}"),
            };
            end_model(call, ModelEnd::Failed { error }, "")
        }
        "compacted" => Command::Compact(Compact {
            call,
            item: word(1).into(),
            summary: word(2).to_owned(),
        }),
        "ended" => Command::EndTool(Box::new(EndTool {
            item: word(1).into(),
            status: match word(2) {
                "ok" => ItemStatus::Completed,
                "killed" => ItemStatus::Interrupted,
                _ => ItemStatus::Failed,
            },
            body: ItemBody::Command(CommandRun::default()),
            output: Output::text(word(3)),
        })),
        "uses" => Command::CountModelUse(Box::new(CountModelUse {
            item: word(1).into(),
            model: Some("small".to_owned()),
            provider: Some("v".to_owned()),
            usage: Usage {
                input: word(2).parse().expect("tokens"),
                ..Usage::default()
            },
            estimated: false,
            price: None,
        })),
        "asks" => Command::AskForTool(Box::new(AskForTool {
            item: word(1).into(),
            ask: Ask::Elicitation(AskElicitation {
                server: "s".to_owned(),
                body: serde_json::json!({}),
                permission: words.get(2).map(|name| PluginPermission {
                    plugin: "s".to_owned(),
                    hash: "sha256:0".to_owned(),
                    name: name.clone(),
                }),
            }),
            expires_at: None,
        })),
        "asks-trust" => Command::AskTrust(AskTrust {
            item: word(1).into(),
            folder: word(2).to_owned(),
            expires_at: None,
        }),
        "withdraws" => Command::WithdrawRequest(RequestNumber(word(1).parse().expect("a request"))),
        "answer" => Command::AnswerRequest(Box::new(AnswerRequest {
            request: RequestNumber(word(1).parse().expect("a request")),
            by: word(2).to_owned(),
            answer: answer(&words[3..]),
        })),
        "rename" => rename(words.get(1).cloned()),
        "goal" => Command::SetGoal(goal(&words[1..])),
        "forget" => Command::ClearGoal(ClearGoal::default()),
        "queue" => Command::Enqueue(Enqueue {
            message: message(word(1), word(2)),
            principal: None,
        }),
        "requeue" => Command::ChangeQueued(ChangeQueued {
            item: word(1).into(),
            input: vec![Input::text(word(2))],
            principal: None,
        }),
        "unqueue" => Command::Unqueue(Unqueue {
            item: word(1).into(),
            principal: None,
        }),
        "reorder" => Command::ReorderQueue(ReorderQueue {
            items: words[1..].iter().map(|it| it.as_str().into()).collect(),
            principal: None,
        }),
        "next" => Command::StartQueued(StartQueued {
            turn: word(1).into(),
            item: words.get(2).map(|it| it.as_str().into()),
            briefs: Vec::new(),
            principal: None,
        }),
        "goes" => Command::BeginTurn(BeginTurn {
            turn: word(1).into(),
            briefs: briefs(words.get(2..).unwrap_or_default()),
        }),
        "note" => Command::ChangeMetadata(metadata(&words[1..])),
        "inject" => Command::InjectItems(InjectItems {
            items: words[1..].chunks(2).map(injected).collect(),
            principal: None,
        }),
        "archive" => archive(true),
        "unarchive" => archive(false),
        "delete" => Command::Delete(Delete::default()),
        "set" => {
            let mut settings = thread.settings().clone();
            match word(1) {
                "model" => settings.model = Some(word(2).to_owned()),
                "cwd" => word(2).clone_into(&mut settings.cwd),
                "recovery" => settings.recovery = Some(Recovery::Interrupt),
                "fallback" => {
                    let routes = words[2..].iter().map(|it| Route::parse(it));
                    settings.fallback = routes.map(|it| it.expect("a route")).collect();
                }
                "turnBudget" => settings.turn_budget = limits(&words[2..]),
                "threadBudget" => settings.thread_budget = limits(&words[2..]),
                "compactAbove" => settings.compact_above = word(2).parse().ok(),
                other => panic!("no such setting: {other}"),
            }
            Command::ChangeSettings(Box::new(ChangeSettings {
                change: SettingsChange::between(thread.settings(), &settings),
                principal: None,
            }))
        }
        "revert" => Command::Revert(Revert {
            turn: word(1).into(),
            at: Seq(word(2).parse().expect("a number")),
            point: RevertPoint {
                lineage: thread.lineage().to_vec(),
                turns: word(3).parse().expect("a count"),
                context_tokens: 0,
            },
            principal: None,
        }),
        "warn" => Command::Warn(word(1).to_owned()),
        "plan" => Command::UpdatePlan(UpdatePlan {
            explanation: None,
            steps: vec![],
        }),
        "diff" => Command::UpdateDiff(word(1).to_owned()),
        other => panic!("no such command: {other}"),
    }
}

/// Parses limits: pairs of a measure and its limit.
fn limits(words: &[String]) -> SpendLimits {
    let mut limits = SpendLimits::default();
    for pair in words.chunks_exact(2) {
        let whole = pair[1].parse().ok();
        match pair[0].as_str() {
            "tokens" => limits.tokens = whole,
            "usd" => limits.nano_usd = pair[1].parse().ok().map(nano_usd),
            "seconds" => limits.seconds = whole,
            "toolCalls" => limits.tool_calls = whole,
            other => panic!("no such budget: {other}"),
        }
    }
    limits
}

fn budget(it: &Spending) -> String {
    format!("{} {}", it.scope.key(), it.measure.key())
}

/// Formats the usage of each model for rule files.
pub fn accounts(thread: &Thread) -> String {
    let entries = thread.model_usage().iter().map(|it| {
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
        let (provider, model) = (name(&it.provider), name(&it.model));
        let (calls, tokens) = (it.calls, it.usage.total());
        let cost = dollars(it.nano_usd);
        let estimated = match it.estimated {
            0 => String::new(),
            calls => format!(", {calls} estimated"),
        };
        format!("{provider}/{model} {calls} calls {tokens} tokens {cost}{estimated}")
    });
    entries.collect::<Vec<_>>().join(" · ")
}

/// Creates a command that renames the thread.
pub fn rename(name: Option<String>) -> Command {
    Command::Rename(Rename {
        name,
        principal: None,
    })
}

/// Parses a goal: pairs of a member and its new value.
fn goal(words: &[String]) -> SetGoal {
    let mut goal = SetGoal::default();
    for pair in words.chunks_exact(2) {
        match pair[0].as_str() {
            "to" => goal.objective = Some(pair[1].clone()),
            "is" => goal.status = Some(goal_status(&pair[1])),
            "within" => goal.token_budget = pair[1].parse().ok(),
            other => panic!("no such member: {other}"),
        }
    }
    goal
}

fn goal_status(word: &str) -> GoalStatus {
    match word {
        "active" => GoalStatus::Active,
        "paused" => GoalStatus::Paused,
        "blocked" => GoalStatus::Blocked,
        "complete" => GoalStatus::Complete,
        other => panic!("no such status: {other}"),
    }
}

/// Formats the goal for rule files.
pub fn shown_goal(thread: &Thread) -> String {
    let Some(goal) = thread.goal() else {
        return "nothing".to_owned();
    };
    let (status, used) = (goal.status, goal.tokens_used);
    format!(
        "{:?} {status:?} {used} tokens {} s",
        goal.objective,
        goal.ms_used / 1000
    )
}

/// Formats the queue for rule files.
pub fn shown_queue(thread: &Thread) -> String {
    let queue = thread.queue().iter().map(|queued| {
        let text = match queued.input.first() {
            Some(Input::Text { text, .. }) => text.as_str(),
            _ => "…",
        };
        format!("{} {text:?}", queued.item)
    });
    queue.collect::<Vec<_>>().join(" · ")
}

/// Parses metadata: pairs of a member and its new value, where an empty one clears it.
fn metadata(words: &[String]) -> ChangeMetadata {
    let mut change = ChangeMetadata::default();
    for pair in words.chunks_exact(2) {
        let value = Some(pair[1].clone()).filter(|value| !value.is_empty());
        match pair[0].as_str() {
            "branch" => change.branch = Some(value),
            "origin" => change.origin = Some(value),
            "sha" => change.sha = Some(value),
            other => panic!("no such member: {other}"),
        }
    }
    change
}

/// Parses an injected item: its kind and its text, which is the id for calls and outputs.
fn injected(pair: &[String]) -> InjectedItem {
    let text = pair[1].clone();
    match pair[0].as_str() {
        "user" => InjectedItem::User {
            input: vec![Input::text(text)],
        },
        "developer" => InjectedItem::Developer { text },
        "assistant" => InjectedItem::Assistant { text },
        "call" => InjectedItem::Call(ToolCall {
            id: text,
            tool: "shell".to_owned(),
            arguments: "{}".to_owned(),
            alone: false,
            freeform: false,
        }),
        "output" => InjectedItem::Output {
            call: text,
            output: Output::text("done"),
        },
        other => panic!("nothing to inject: {other}"),
    }
}

fn archive(archived: bool) -> Command {
    Command::Archive(Archive {
        archived,
        principal: None,
    })
}

/// One thousandth of a dollar for each token.
const PRICE: Price = Price {
    usual: Rates {
        input: 1_000_000_000,
        cached: 0,
        cache_written: 0,
        output: 0,
    },
    long: None,
};

pub fn start_item(call: u32, item: &str, body: ItemBody) -> Command {
    let update = ItemUpdate::Started(item.into(), Box::new(body));
    Command::UpdateItem(UpdateItem { call, update })
}

pub fn complete_item(call: u32, item: &str, body: ItemBody, sealed: Option<Sealed>) -> Command {
    let update = ItemUpdate::Completed(item.into(), Box::new(body), sealed);
    Command::UpdateItem(UpdateItem { call, update })
}

fn end_model(call: u32, end: ModelEnd, tokens: &str) -> Command {
    Command::EndModel(Box::new(EndModel {
        call,
        end,
        usage: tokens.parse().ok().map(|input| Usage {
            input,
            ..Usage::default()
        }),
        estimated: false,
        price: Some(PRICE),
    }))
}

/// Formats a record for rule files.
pub fn show(body: &RecordBody, began: Timestamp) -> String {
    let event = match body {
        RecordBody::Delta(it) => {
            return format!("Delta {} @{} \"{}\"", it.item, it.offset, it.text);
        }
        RecordBody::Event(event) => &**event,
    };
    match event {
        Event::ThreadStarted(_) => "ThreadStarted".to_owned(),
        Event::Owned(it) => format!("Owned {} by {}", it.epoch.0, it.node),
        Event::Reserved(_) => "Reserved".to_owned(),
        Event::Released {} => "Released".to_owned(),
        Event::Forked(_) => "Forked".to_owned(),
        Event::Reverted(it) => format!("Reverted {} leaving {}", it.turn, it.turns),
        Event::SettingsChanged(_) => "SettingsChanged".to_owned(),
        Event::MetadataChanged(it) => {
            let git = it.git.clone().unwrap_or_default();
            let values = [git.branch, git.origin, git.sha].into_iter().flatten();
            format!("MetadataChanged {:?}", values.collect::<Vec<_>>().join(" "))
        }
        Event::GoalSet(it) => format!("GoalSet {:?} {:?}", it.objective, it.status),
        Event::GoalCleared { .. } => "GoalCleared".to_owned(),
        Event::InputQueued(it) => format!("InputQueued {}", it.item),
        Event::InputUnqueued(it) => format!("InputUnqueued {}", it.item),
        Event::QueueReordered(_) => "QueueReordered".to_owned(),
        Event::ItemsInjected(it) => format!("ItemsInjected {}", it.items.len()),
        Event::Renamed(it) => format!("Renamed {:?}", it.name.as_deref().unwrap_or("")),
        Event::Archived { .. } => "Archived".to_owned(),
        Event::Unarchived { .. } => "Unarchived".to_owned(),
        Event::Deleted { .. } => "Deleted".to_owned(),
        Event::TurnStarted(it) => format!("TurnStarted {}", it.turn),
        Event::InputAccepted(it) => format!("InputAccepted {}", it.item.id),
        Event::ModelCalled(it) => {
            let attempt = if it.attempt > 1 {
                format!(" attempt {}", it.attempt)
            } else {
                String::new()
            };
            let purpose = match it.purpose {
                Purpose::Answer => "",
                Purpose::Compact => " to compact",
            };
            let route = match (&it.provider, &it.model) {
                (Some(provider), Some(model)) => format!(" of {provider}/{model}"),
                _ => String::new(),
            };
            format!("ModelCalled {}{attempt}{purpose}{route}", it.call)
        }
        Event::ModelEnded(it) => {
            let end = match &it.end {
                ModelEnd::Done {} => "done".to_owned(),
                ModelEnd::Broke { retry_at, .. } => {
                    format!("broke until {}s", retry_at.since(began) / 1000)
                }
                ModelEnd::Rerouted { error, to } => format!("{:?}, rerouted to {to}", error.kind),
                ModelEnd::Overflowed { .. } => "overflowed".to_owned(),
                ModelEnd::Failed { error } => format!("failed {:?}", error.message),
                ModelEnd::Cancelled {} => "cancelled".to_owned(),
                ModelEnd::OwnerLost {} => "ownerLost".to_owned(),
            };
            format!("ModelEnded {} {end}", it.call)
        }
        Event::ModelUsed(it) => format!("ModelUsed {} {}", it.item, it.usage.total()),
        Event::ItemStarted(it) => format!("ItemStarted {}", it.item.id),
        Event::ItemSaved(it) => format!("ItemSaved {}", it.item),
        Event::ToolStarted(it) => format!("ToolStarted {}", it.item),
        Event::ItemCompleted(it) => {
            let status = format!("{:?}", it.item.status);
            let text = match (&it.item.output, &it.item.body) {
                (_, ItemBody::AgentMessage(message)) => format!(" {:?}", message.text),
                _ => String::new(),
            };
            let mut status = status;
            status[..1].make_ascii_lowercase();
            format!("ItemCompleted {} {status}{text}", it.item.id)
        }
        Event::RequestOpened(it) => format!("RequestOpened {} for {}", it.request, it.item),
        Event::RequestResolved(it) => {
            let how = match &it.resolution {
                Resolution::Answered { by, .. } => format!("by {by}"),
                Resolution::Expired {} => "expired".to_owned(),
                Resolution::Withdrawn {} => "withdrawn".to_owned(),
            };
            let grant = it.grant.as_ref().map(|it| {
                let scope = if it.session { "session" } else { "turn" };
                let network = if it.network { " network" } else { "" };
                format!(" giving the {scope} {}{network}", it.write.join(" "))
            });
            let grant = grant.unwrap_or_default();
            format!("RequestResolved {} {how}{grant}", it.request)
        }
        Event::PlanUpdated(_) => "PlanUpdated".to_owned(),
        Event::DiffUpdated(_) => "DiffUpdated".to_owned(),
        Event::Warned(it) => match &it.budget {
            Some(spending) => format!("Warned of {}", budget(spending)),
            None if it.estimated => "Warned of estimates".to_owned(),
            None => format!("Warned {:?}", it.message),
        },
        Event::InterruptAccepted(it) => format!("InterruptAccepted {}", cause(&it.cause)),
        Event::TurnEnded(it) => {
            let end = match &it.end {
                TurnEnd::Completed {} => "completed".to_owned(),
                TurnEnd::Interrupted(interrupt_cause) => {
                    format!("interrupted {}", cause(interrupt_cause))
                }
                TurnEnd::Failed(error) => {
                    let of = error
                        .budget
                        .as_ref()
                        .map(|it| format!(" of {}", budget(it)));
                    format!("failed {:?}{}", error.kind, of.unwrap_or_default())
                }
            };
            format!("TurnEnded {} {end}", it.turn)
        }
        Event::Compacted(_) => "Compacted".to_owned(),
        Event::Briefed(it) => format!("Briefed {:?}", it.text),
        Event::Remembered(_) => "Remembered".to_owned(),
    }
}

fn cause(cause: &Cause) -> &'static str {
    match cause {
        Cause::Client { .. } => "client",
        Cause::Cancelled { .. } => "cancelled",
        Cause::OwnerLost {} => "ownerLost",
        Cause::Shutdown {} => "shutdown",
        Cause::Forked {} => "forked",
        Cause::BudgetSpent(_) => "budgetSpent",
        Cause::Deleted { .. } => "deleted",
    }
}

/// Formats the pending work for rule files.
pub fn pending(thread: &Thread) -> String {
    let effects: Vec<String> = thread.pending().iter().map(effect).collect();
    if effects.is_empty() {
        "nothing".to_owned()
    } else {
        effects.join(" · ")
    }
}

/// Formats an effect for rule files.
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::CallModel { call, .. } => format!("CallModel {call}"),
        Effect::RunTool { item, .. } => format!("RunTool {item}"),
        Effect::BeginTurn { .. } => "BeginTurn".to_owned(),
        Effect::StopTool { item } => format!("StopTool {item}"),
    }
}

/// Formats the status for rule files.
pub fn status(thread: &Thread) -> &'static str {
    match thread.status() {
        Status::Idle => "idle",
        Status::Failed => "failed",
        Status::Active {
            waits_for_approval: true,
            ..
        } => "waits for approval",
        Status::Active {
            waits_for_input: true,
            ..
        } => "waits for input",
        Status::Active { .. } => "active",
    }
}

/// Returns the model's context.
fn entries(records: &[Record], thread: &Thread) -> Vec<ContextEntry> {
    let counts = |record: &&Record| thread.lineage().iter().any(|span| span.holds(record.seq));
    let entries = Context::of(records.iter().filter(counts)).entries();
    entries
        .iter()
        .map(|entry| ContextEntry::clone(entry))
        .collect()
}

/// Formats the outputs in the model's context for rule files.
pub fn outputs(records: &[Record], thread: &Thread) -> String {
    let entries = entries(records, thread).into_iter();
    let outputs = entries.filter_map(|entry| match entry {
        ContextEntry::Output { output, .. } if output.failed => {
            Some(format!("failed {:?}", output.text))
        }
        ContextEntry::Output { output, .. } => Some(format!("{:?}", output.text)),
        _ => None,
    });
    outputs.collect::<Vec<_>>().join(" · ")
}

/// Formats the model's context for rule files.
pub fn model_context(records: &[Record], thread: &Thread) -> String {
    let entries = entries(records, thread)
        .into_iter()
        .map(|entry| match entry {
            ContextEntry::Summary(text) => format!("summary {text:?}"),
            ContextEntry::User(input) => {
                let texts: Vec<_> = input
                    .iter()
                    .map(|input| match input {
                        Input::Text { text, .. } => text.as_str(),
                        _ => "…",
                    })
                    .collect();
                format!("user {:?}", texts.join(" "))
            }
            ContextEntry::Assistant { text, partial, .. } => {
                format!(
                    "assistant {}{text:?}",
                    if partial { "partial " } else { "" }
                )
            }
            ContextEntry::Reasoning(_) => "reasoning".to_owned(),
            ContextEntry::Call(call) => format!("call {}", call.id),
            ContextEntry::Output { call, .. } => format!("output {call}"),
            ContextEntry::Note(text) => format!("note {text:?}"),
            ContextEntry::Developer(text) => format!("developer {text:?}"),
        });
    entries.collect::<Vec<_>>().join(" · ")
}
