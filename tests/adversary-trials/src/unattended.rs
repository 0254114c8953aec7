//! Nobody attached: every question is decided in time by what was written down beforehand, or waits for as long
//! as it takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::LATE;
use crate::call::{Class, Input, ModelCallSpec, token};
use crate::host::{HostFixture, HostLayout};
use crate::model::HostileModel;
use crate::process::ChildGuard;
use crate::secrets::{KEY_VARIABLE, Secrets};
use crate::socket::SocketClient;
use crate::webhook::RemoteApprover;

/// How long somebody may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// How much later it may be decided.
const SLACK: Duration = Duration::from_secs(1);

/// How much longer it is waited for, so that its lateness can be told.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct UnattendedArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
}

/// What is written down for when nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unattended {
    Deny,
    Allow,
    Park,
    /// Someone far away says yes.
    Webhook,
    /// Someone far away fails.
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

    /// What is written down; a tool of the client's is asked about by its name.
    fn rules(self, far: &str) -> String {
        let word = match self {
            Self::Deny => "deny",
            Self::Allow => "allow",
            Self::Park => "park",
            Self::Webhook | Self::BrokenWebhook => "webhook",
        };
        let after = DEADLINE.as_secs();
        format!(
            "unattended = \"{word}\"\nunattended_after_seconds = {after}\nunattended_webhook = \"{far}\"\n\
             [[rule]]\ntool = \"send_mail\"\nverdict = \"ask\"\n"
        )
    }
}

/// Something that someone is asked about.
struct GatedAct {
    kind: &'static str,
    approval: &'static str,
    tool: &'static str,
    arguments: fn(&HostLayout, usize) -> Value,
    /// Whether it is done when nobody is there and `allow` is written down.
    is_allowed: bool,
    /// Whether someone far away can say yes to it.
    is_for_others: bool,
    /// What a client says to it that comes back.
    answer: fn() -> Value,
}

const GATED: &[GatedAct] = &[
    GatedAct {
        kind: "command beyond the fence",
        approval: "on-request",
        tool: "exec_command",
        arguments: |stage, number| {
            json!({"cmd": format!("touch {}", left(stage, number).display()),
                "sandbox_permissions": "require_escalated", "justification": "why not"})
        },
        is_allowed: false,
        is_for_others: true,
        answer: || json!({"decision": "accept"}),
    },
    GatedAct {
        kind: "command that is not trusted",
        approval: "untrusted",
        tool: "exec_command",
        arguments: |_, number| json!({"cmd": format!("echo {0} > src/{0}", token(number))}),
        is_allowed: true,
        is_for_others: true,
        answer: || json!({"decision": "accept"}),
    },
    GatedAct {
        kind: "patch beyond the roots",
        approval: "on-request",
        tool: "apply_patch",
        arguments: |stage, number| json!({"input": format!("*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch\n", left(stage, number).display())}),
        is_allowed: false,
        is_for_others: true,
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
        is_for_others: false,
        answer: || json!({"answers": {"which": {"answers": ["this"]}}}),
    },
    GatedAct {
        kind: "tool of the client",
        approval: "on-request",
        tool: "fetch_ticket",
        arguments: |_, _| json!({"number": 7}),
        is_allowed: false,
        is_for_others: false,
        answer: || json!({"success": true, "contentItems": [{"type": "inputText", "text": "a ticket"}]}),
    },
    GatedAct {
        kind: "tool of the client that a rule asks about",
        approval: "on-request",
        tool: "send_mail",
        arguments: |_, _| json!({"to": "all"}),
        is_allowed: false,
        is_for_others: false,
        answer: || json!({"answers": {"may_call": {"answers": ["Decline"]}}}),
    },
    GatedAct {
        kind: "rights beyond the sandbox",
        approval: "on-request",
        tool: "request_permissions",
        arguments: |stage, _| json!({"permissions": {"file_system": {"write": [stage.granted()]}}}),
        is_allowed: false,
        is_for_others: false,
        answer: || json!({"permissions": {}}),
    },
];

/// What a call leaves where only a yes lets it.
fn left(stage: &HostLayout, number: usize) -> PathBuf {
    stage.granted().join(token(number))
}

impl UnattendedArgs {
    pub fn run(&self) -> Result<Vec<String>> {
        let mut wrongs = Vec::new();
        for unattended in Unattended::ALL {
            UnattendedServer::open(&self.raddle, unattended)?.live(&mut wrongs)?;
        }
        for wrong in &wrongs {
            println!("WRONG {wrong}");
        }
        Ok(wrongs)
    }
}

/// A server that goes on when its clients leave.
struct UnattendedServer {
    unattended: Unattended,
    host: HostFixture,
    model: HostileModel,
    socket: PathBuf,
    _server: ChildGuard,
    _approver: RemoteApprover,
}

/// A question that was asked before its client left.
struct PendingQuestion {
    act: &'static GatedAct,
    call: ModelCallSpec,
    thread: String,
    asked: Instant,
}

impl UnattendedServer {
    fn open(raddle: &Path, unattended: Unattended) -> Result<Self> {
        let secrets = Secrets::new(5);
        let model = HostileModel::open(secrets.clone())?;
        let config = model.config("gpt-adversary");
        let far = RemoteApprover::open(unattended == Unattended::BrokenWebhook)?;
        let ground = HostFixture::new(&secrets, &config, |stage| {
            let rules = unattended.rules(&far.url) + &stage.rules();
            Ok(fs::write(stage.home().join("rules.toml"), rules)?)
        })?;
        let stage = &ground.layout;
        let socket = stage.root.join("door/door.sock");
        let mut command = Command::new(raddle);
        command
            .args(["app-server", "--listen"])
            .arg(format!("unix://{}", socket.display()))
            .env("RADDLE_HOME", stage.home())
            .env("HOME", stage.user())
            .env(KEY_VARIABLE, secrets.key())
            .current_dir(stage.workspace());
        let server = ChildGuard::start(command, &stage.root.join("server.stderr"))?;
        Ok(Self {
            unattended,
            host: ground,
            model,
            socket,
            _server: server,
            _approver: far,
        })
    }

    fn live(mut self, wrongs: &mut Vec<String>) -> Result<()> {
        let mut open = Vec::new();
        for (number, gated) in GATED.iter().enumerate() {
            let asked = self
                .ask(gated, number)
                .with_context(|| format!("{:?}: {}", self.unattended, gated.kind))?;
            open.push(asked);
        }
        for it in &open {
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
        let noticed = self.host.noticed()?;
        wrongs.extend(noticed);
        Ok(())
    }

    /// Has a turn come to its question, and leaves.
    fn ask(&self, gated: &'static GatedAct, number: usize) -> Result<PendingQuestion> {
        let mut client = connect(&self.socket)?;
        let stage = &self.host.layout;
        let tool = |name: &str| json!({"type": "function", "name": name, "description": "Does it.", "inputSchema": {"type": "object"}});
        let tools = ["fetch_ticket", "send_mail"].map(tool);
        let started = client.call(
            "thread/start",
            &json!({"cwd": stage.workspace(), "approvalPolicy": gated.approval,
                "sandbox": "workspace-write", "dynamicTools": tools}),
        )?;
        let thread = started["thread"]["id"]
            .as_str()
            .context("a thread")?
            .to_owned();
        let input = Input::Arguments((gated.arguments)(stage, number).to_string());
        let call = ModelCallSpec::new(number, gated.kind, Class::Work, gated.tool, input);
        let said = self.model.plan(number, vec![call.clone()]);
        let input = json!([{"type": "text", "text": said}]);
        client.call("turn/start", &json!({"threadId": thread, "input": input}))?;
        client.question()?;
        Ok(PendingQuestion {
            act: gated,
            call,
            thread,
            asked: Instant::now(),
        })
    }

    /// It is decided at its deadline, and as was written down.
    fn decided(&self, open: &PendingQuestion) -> Option<String> {
        let end = open.asked + DEADLINE + SLACK + EXTRA_TIMEOUT;
        let Some((when, output)) = self.model.wait_for(&open.call, end) else {
            return Some("it was not decided".to_owned());
        };
        let took = when - open.asked;
        println!(
            "{:?}: {}: decided after {} ms: {}",
            self.unattended,
            open.act.kind,
            took.as_millis(),
            output.lines().next().unwrap_or_default()
        );
        let is_answered = open.act.is_for_others && self.unattended == Unattended::Webhook;
        let is_early = took + SLACK < DEADLINE;
        let is_allowed = match self.unattended {
            Unattended::Allow => open.act.is_allowed,
            _ => is_answered,
        };
        if self.is_done(open) != is_allowed {
            return Some(format!("it was decided otherwise: {output}"));
        }
        if is_early && !is_answered {
            return Some(format!("it was decided after {took:?}"));
        }
        let is_late = took > DEADLINE + SLACK || (is_answered && !is_early);
        is_late.then(|| format!("{LATE}it was decided after {took:?}"))
    }

    /// It waits past every deadline, and whoever comes back answers it.
    fn parked(&self, open: &PendingQuestion) -> Result<Option<String>> {
        let end = open.asked + DEADLINE + SLACK;
        if let Some((_, output)) = self.model.wait_for(&open.call, end) {
            return Ok(Some(format!("it did not wait: {output}")));
        }
        let mut client = connect(&self.socket)?;
        client.call("thread/resume", &json!({"threadId": open.thread}))?;
        let question = client.question().context("nobody was asked again")?;
        let back = Instant::now();
        client.send(&json!({"id": question["id"], "result": (open.act.answer)()}))?;
        let Some((when, output)) = self.model.wait_for(&open.call, back + EXTRA_TIMEOUT) else {
            return Ok(Some(
                "the answer of a client that came back had no effect".to_owned(),
            ));
        };
        println!(
            "{:?}: {}: waited, and answered {} ms after somebody came back: {}",
            self.unattended,
            open.act.kind,
            (when - back).as_millis(),
            output.lines().next().unwrap_or_default()
        );
        let is_file = matches!(open.act.tool, "exec_command" | "apply_patch");
        Ok((is_file && !self.is_done(open)).then(|| format!("it was not done: {output}")))
    }

    fn is_done(&self, open: &PendingQuestion) -> bool {
        let number = open.call.number;
        let inside = self.host.layout.workspace().join("src").join(token(number));
        left(&self.host.layout, number).exists() || inside.exists()
    }
}

/// The door opens a moment after its server was started.
fn connect(socket: &Path) -> Result<SocketClient> {
    let end = Instant::now() + EXTRA_TIMEOUT;
    while !socket.exists() {
        ensure!(Instant::now() < end, "the door does not open");
        std::thread::yield_now();
    }
    SocketClient::connect(socket)
}
