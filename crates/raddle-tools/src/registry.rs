//! The tools that there are: one table, from which each model is offered what it knows how to use.

use std::fmt;
use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;

use raddle_core::ports::{Job, Meant, Ran, Terminal, ToolSpec, Tools, Waiting};
use raddle_core::{Call, ItemBody, ItemStatus, Output, Settings, ThreadId, Tool, TurnId};
use raddle_sandbox::{Engine, Fences, egress};

use crate::command::{self, Terminals};
use crate::words;

/// Whom commands that may use the network can reach. It may wait for a disk.
pub type Hosts = Arc<dyn Fn() -> Result<egress::Rules, String> + Send + Sync>;

/// What the tools need.
pub struct Options {
    /// Starts commands.
    pub engine: Engine,
    /// The fence around them.
    pub fences: Fences,
    /// Whom they can reach.
    pub hosts: Hosts,
    /// What is the server's own, and hidden from them.
    pub own: Vec<PathBuf>,
}

/// The tools that come with the agent. Cheap to clone.
#[derive(Clone)]
pub struct BuiltIn {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) fences: Fences,
    pub(crate) hosts: Hosts,
    pub(crate) own: Vec<PathBuf>,
    pub(crate) terminals: Terminals,
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuiltIn")
    }
}

/// A family of models by the tools they were taught to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// Few tools, a shell for everything else.
    Codex,
    /// A function for each thing.
    Functions,
}

impl Family {
    fn of(settings: &Settings) -> Self {
        // Many vendors put their own name in front.
        let model = settings.model.as_deref().unwrap_or_default();
        let model = model.rsplit('/').next().unwrap_or_default();
        let is_codex = ["gpt-", "codex", "o1", "o3", "o4", "mock"];
        match is_codex.iter().any(|it| model.starts_with(it)) {
            true => Self::Codex,
            false => Self::Functions,
        }
    }
}

/// A tool that is offered.
struct Entry {
    name: &'static str,
    /// To which models; to all, if nothing is said.
    family: Option<Family>,
    spec: fn(&str) -> ToolSpec,
}

/// All tools, in the order in which models read of them.
const TABLE: &[Entry] = &[
    Entry {
        name: "exec_command",
        family: None,
        spec: command::exec_command,
    },
    Entry {
        name: "write_stdin",
        family: None,
        spec: command::write_stdin,
    },
    Entry {
        name: "update_plan",
        family: None,
        spec: words::update_plan_spec,
    },
    Entry {
        name: "request_user_input",
        family: Some(Family::Codex),
        spec: words::ask_user_spec,
    },
    Entry {
        name: "ask_user",
        family: Some(Family::Functions),
        spec: words::ask_user_spec,
    },
];

impl BuiltIn {
    /// The tools, with nothing running.
    pub fn new(options: Options) -> Self {
        let Options {
            engine,
            fences,
            hosts,
            own,
        } = options;
        let inner = Inner {
            engine,
            fences,
            hosts,
            own,
            terminals: Terminals::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    fn look(
        &self,
        thread: ThreadId,
        settings: &Settings,
        call: &Call,
    ) -> Option<(ItemBody, Meant)> {
        let tool = |meant| {
            let name = call.tool.clone();
            Some((ItemBody::Tool(Tool { name }), meant))
        };
        if let Some(wish) = command::wish(settings, call) {
            return match wish {
                Ok(wish) => Some(command::meant(settings, wish)),
                Err(why) => tool(Meant::Refused(why)),
            };
        }
        match call.tool.as_str() {
            "write_stdin" => {
                let typed = command::typed(&self.inner.terminals, thread, call);
                Some(command::meant_typed(typed, call))
            }
            "update_plan" => tool(words::update_plan(call)),
            "request_user_input" | "ask_user" => tool(words::ask_user(call)),
            _ => None,
        }
    }
}

impl Tools for BuiltIn {
    fn specs(&self, settings: &Settings) -> Vec<ToolSpec> {
        let family = Family::of(settings);
        let offered = TABLE
            .iter()
            .filter(|it| it.family.is_none_or(|it| it == family));
        offered.map(|it| (it.spec)(it.name)).collect()
    }

    fn meant<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a Call,
    ) -> Waiting<'a, Option<(ItemBody, Meant)>> {
        Box::pin(ready(self.look(thread, settings, call)))
    }

    fn run(&self, job: Job) -> Waiting<'static, Ran> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let Some(call) = job.item.call.clone() else {
                return cannot(job.item.body, "There is no call to carry out.".to_owned());
            };
            match command::wish(&job.settings, &call) {
                Some(Ok(wish)) => return wish.run(inner, job).await,
                Some(Err(why)) => return cannot(job.item.body, why),
                None => {}
            }
            match call.tool.as_str() {
                "write_stdin" => match command::typed(&inner.terminals, job.thread, &call) {
                    Ok(typed) => typed.run(inner, job).await,
                    Err(why) => cannot(job.item.body, why),
                },
                name => {
                    let why = format!("There is no tool named {name} any more.");
                    cannot(job.item.body, why)
                }
            }
        })
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> Waiting<'static, Vec<String>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.terminals.end_turn(thread, &turn).await })
    }

    fn terminals(&self, thread: ThreadId) -> Vec<Terminal> {
        self.inner.terminals.list(thread)
    }

    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool {
        self.inner.terminals.end(thread, id)
    }
}

/// Nothing was done, and this is why.
fn cannot(body: ItemBody, why: String) -> Ran {
    Ran {
        status: ItemStatus::Failed,
        body,
        output: Output::failure(why),
        diff: None,
    }
}
