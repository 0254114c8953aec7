//! No client attached: every request is decided in time by the rules, or waits as long as it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use support::{SocketServer, app_server};

use crate::LATE;
use crate::call::{Class, Input, ModelCallSpec, token};
use crate::host::{HostFixture, HostLayout};
use crate::model::HostileModel;
use crate::secrets::{KEY_VARIABLE, Secrets};
use crate::socket::SocketClient;
use crate::webhook::RemoteApprover;

/// Time until an unattended request is decided.
const DEADLINE: Duration = Duration::from_secs(2);

/// Tolerance of that time.
const SLACK: Duration = Duration::from_secs(1);

/// Additional wait, so that a late decision can be measured.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct UnattendedArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
}

/// Rule for requests without an attached client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unattended {
    Deny,
    Allow,
    Park,
    /// A remote approver accepts.
    Webhook,
    /// A remote approver fails.
    BrokenWebhook,
}

impl Unattended {
    const ALL: [Self; 5] = [
        Self::Deny,
        Self::Allow,
        Self::Park,
        Self::Webhook,
        Self::BrokenWebhook,
    ];

    /// Returns the rules; a tool of the client needs an approval by its name.
    fn rules(self, webhook_url: &str) -> String {
        let word = match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::Park => "park",
            Self::Webhook | Self::BrokenWebhook => "webhook",
        };
        let after = DEADLINE.as_secs();
        format!(
            "unattended = \"{word}\"\nunattended_after_seconds = {after}\nunattended_webhook = \"{webhook_url}\"\n\
             [[rule]]\ntool = \"send_mail\"\nverdict = \"ask\"\n"
        )
    }
}

/// An act that needs an approval.
struct GatedAct {
    kind: &'static str,
    approval: &'static str,
    tool: &'static str,
    arguments: fn(&HostLayout, usize) -> Value,
    /// Whether the act is done if no client is attached and the rule is `allow`.
    is_allowed: bool,
    /// Whether a remote approver can approve it.
    is_remote: bool,
    /// The answer of a client that reconnects.
    answer: fn() -> Value,
}

const GATED: &[GatedAct] = &[
    GatedAct {
        kind: "command outside the sandbox",
        approval: "on-request",
        tool: "exec_command",
        arguments: |layout, number| {
            json!({"cmd": format!("touch {}", marker_path(layout, number).display()),
                "sandbox_permissions": "require_escalated", "justification": "why not"})
        },
        is_allowed: false,
        is_remote: true,
        answer: || json!({"decision": "accept"}),
    },
    GatedAct {
        kind: "command that is not trusted",
        approval: "untrusted",
        tool: "exec_command",
        arguments: |_, number| json!({"cmd": format!("echo {0} > src/{0}", token(number))}),
        is_allowed: true,
        is_remote: true,
        answer: || json!({"decision": "accept"}),
    },
    GatedAct {
        kind: "patch beyond the roots",
        approval: "on-request",
        tool: "apply_patch",
        arguments: |layout, number| json!({"input": format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", marker_path(layout, number).display())}),
        is_allowed: false,
        is_remote: true,
        answer: || json!({"decision": "accept"}),
    },
    GatedAct {
        kind: "question",
        approval: "on-request",
        tool: "request_user_input",
        arguments: |_, _| {
            json!({"questions": [{"id": "which", "header": "Which", "question": "Which one?",
                "options": [{"label": "this", "description": "this one"}, {"label": "that", "description": "that one"}]}]})
        },
        is_allowed: false,
        is_remote: false,
        answer: || json!({"answers": {"which": {"answers": ["this"]}}}),
    },
    GatedAct {
        kind: "tool of the client",
        approval: "on-request",
        tool: "fetch_ticket",
        arguments: |_, _| json!({"number": 7}),
        is_allowed: false,
        is_remote: false,
        answer: || json!({"success": true, "contentItems": [{"type": "inputText", "text": "a ticket"}]}),
    },
    GatedAct {
        kind: "tool of the client that a rule asks about",
        approval: "on-request",
        tool: "send_mail",
        arguments: |_, _| json!({"to": "all"}),
        is_allowed: false,
        is_remote: false,
        answer: || json!({"answers": {"may_call": {"answers": ["Decline"]}}}),
    },
    GatedAct {
        kind: "rights beyond the sandbox",
        approval: "on-request",
        tool: "request_permissions",
        arguments: |layout, _| json!({"permissions": {"file_system": {"write": [layout.granted()]}}}),
        is_allowed: false,
        is_remote: false,
        answer: || json!({"permissions": {}}),
    },
];

/// Returns the file that a call creates only after an approval.
fn marker_path(layout: &HostLayout, number: usize) -> PathBuf {
    layout.granted().join(token(number))
}

impl UnattendedArgs {
    pub fn run(&self) -> Result<Vec<String>> {
        let mut wrongs = Vec::new();
        for unattended in Unattended::ALL {
            UnattendedServer::open(&self.raddle, unattended)?.run(&mut wrongs)?;
        }
        for wrong in &wrongs {
            println!("WRONG {wrong}");
        }
        Ok(wrongs)
    }
}

/// A server that continues when its clients disconnect.
struct UnattendedServer {
    unattended: Unattended,
    server: SocketServer,
    host: HostFixture,
    model: HostileModel,
    _approver: RemoteApprover,
}

/// A request that was sent before its client disconnected.
struct PendingQuestion {
    act: &'static GatedAct,
    call: ModelCallSpec,
    thread: String,
    asked_at: Instant,
}

impl UnattendedServer {
    fn open(raddle: &Path, unattended: Unattended) -> Result<Self> {
        let secrets = Secrets::new(5);
        let model = HostileModel::open(secrets.clone())?;
        let config = model.config("gpt-adversary");
        let approver = RemoteApprover::open(unattended == Unattended::BrokenWebhook)?;
        let host = HostFixture::new(&secrets, &config, |layout| {
            let rules = unattended.rules(&approver.url) + &layout.rules();
            Ok(fs::write(layout.home().join("rules.toml"), rules)?)
        })?;
        let layout = &host.layout;
        let socket = layout.root.join("door/door.sock");
        let mut command = app_server(raddle, &layout.home());
        command
            .env("HOME", layout.user())
            .env(KEY_VARIABLE, secrets.key())
            .current_dir(layout.workspace());
        let server = SocketServer::start(command, &socket)?;
        Ok(Self {
            unattended,
            server,
            host,
            model,
            _approver: approver,
        })
    }

    fn run(mut self, wrongs: &mut Vec<String>) -> Result<()> {
        let mut pending = Vec::new();
        for (number, gated) in GATED.iter().enumerate() {
            let question = self
                .ask(gated, number)
                .with_context(|| format!("{:?}: {}", self.unattended, gated.kind))?;
            pending.push(question);
        }
        for it in &pending {
            let wrong = match self.unattended {
                Unattended::Park => self.parked(it)?,
                _ => self.decided(it),
            };
            let (unattended, kind) = (self.unattended, it.act.kind);
            wrongs.extend(wrong.map(|it| match it.strip_prefix(LATE) {
                Some(it) => format!("{LATE}{unattended:?}: {kind}: {it}"),
                None => format!("{unattended:?}: {kind}: {it}"),
            }));
        }
        let violation = self.host.violation()?;
        wrongs.extend(violation);
        Ok(())
    }

    fn connect(&self) -> Result<SocketClient> {
        SocketClient::initialized(self.server.unix()?)
    }

    /// Starts a turn, waits for its request, and disconnects.
    fn ask(&self, gated: &'static GatedAct, number: usize) -> Result<PendingQuestion> {
        let mut client = self.connect()?;
        let layout = &self.host.layout;
        let tool = |name: &str| json!({"type": "function", "name": name, "description": "Does it.", "inputSchema": {"type": "object"}});
        let tools = ["fetch_ticket", "send_mail"].map(tool);
        let started = client.call(
            "thread/start",
            &json!({"cwd": layout.workspace(), "approvalPolicy": gated.approval,
                "sandbox": "workspace-write", "dynamicTools": tools}),
        )?;
        let thread = started["thread"]["id"]
            .as_str()
            .context("a thread")?
            .to_owned();
        let input = Input::Arguments((gated.arguments)(layout, number).to_string());
        let call = ModelCallSpec::new(number, gated.kind, Class::Work, gated.tool, input);
        let text = self.model.plan(number, vec![call.clone()]);
        let input = json!([{"type": "text", "text": text}]);
        client.call("turn/start", &json!({"threadId": thread, "input": input}))?;
        client.next_request()?;
        Ok(PendingQuestion {
            act: gated,
            call,
            thread,
            asked_at: Instant::now(),
        })
    }

    /// Checks that a request was decided at its deadline, according to the rules.
    fn decided(&self, pending: &PendingQuestion) -> Option<String> {
        let end = pending.asked_at + DEADLINE + SLACK + EXTRA_TIMEOUT;
        let Some((when, output)) = self.model.wait_for(&pending.call, end) else {
            return Some("it was not decided".to_owned());
        };
        let elapsed = when - pending.asked_at;
        println!(
            "{:?}: {}: decided after {} ms: {}",
            self.unattended,
            pending.act.kind,
            elapsed.as_millis(),
            output.lines().next().unwrap_or_default()
        );
        let is_answered = pending.act.is_remote && self.unattended == Unattended::Webhook;
        let is_early = elapsed + SLACK < DEADLINE;
        let is_allowed = match self.unattended {
            Unattended::Allow => pending.act.is_allowed,
            _ => is_answered,
        };
        if self.is_done(pending) != is_allowed {
            return Some(format!("it was decided otherwise: {output}"));
        }
        if is_early && !is_answered {
            return Some(format!("it was decided after {elapsed:?}"));
        }
        let is_late = elapsed > DEADLINE + SLACK || (is_answered && !is_early);
        is_late.then(|| format!("{LATE}it was decided after {elapsed:?}"))
    }

    /// Checks that a request waits past every deadline, and that a reconnecting client answers it.
    fn parked(&self, pending: &PendingQuestion) -> Result<Option<String>> {
        let end = pending.asked_at + DEADLINE + SLACK;
        if let Some((_, output)) = self.model.wait_for(&pending.call, end) {
            return Ok(Some(format!("it did not wait: {output}")));
        }
        let mut client = self.connect()?;
        client.call("thread/resume", &json!({"threadId": pending.thread}))?;
        let question = client.next_request().context("no request was sent again")?;
        let reconnected = Instant::now();
        client.send(&json!({"id": question["id"], "result": (pending.act.answer)()}))?;
        let Some((when, output)) = self
            .model
            .wait_for(&pending.call, reconnected + EXTRA_TIMEOUT)
        else {
            return Ok(Some(
                "the answer of a client that came back had no effect".to_owned(),
            ));
        };
        println!(
            "{:?}: {}: waited, and answered {} ms after a client reconnected: {}",
            self.unattended,
            pending.act.kind,
            (when - reconnected).as_millis(),
            output.lines().next().unwrap_or_default()
        );
        let is_file = matches!(pending.act.tool, "exec_command" | "apply_patch");
        Ok((is_file && !self.is_done(pending)).then(|| format!("it was not done: {output}")))
    }

    fn is_done(&self, pending: &PendingQuestion) -> bool {
        let number = pending.call.number;
        let inside = self.host.layout.workspace().join("src").join(token(number));
        marker_path(&self.host.layout, number).exists() || inside.exists()
    }
}
