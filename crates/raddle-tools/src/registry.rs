//! The tools that there are: one table, from which each model is offered what it knows how to use.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use raddle_core::ports::{Job, Meant, Ran, Terminal, ToolSpec, Tools, Waiting};
use raddle_core::{
    Call, CommandRun, ItemBody, ItemStatus, Output, Settings, ThreadId, Tool, TurnId,
};
use raddle_sandbox::{Engine, Fences, egress};

use crate::command::{self, Terminals};
use crate::diffs::Diffs;
use crate::files::{EditFile, ListFiles, ReadFile, SearchFiles, ViewImage, WriteFile};
use crate::on_files::OnFiles;
use crate::{patch, words};

/// What whoever runs the server has said of commands. Each of these may wait for a disk.
pub trait Operator: Send + Sync {
    /// Whom commands that may use the network can reach.
    fn hosts(&self) -> Result<egress::Rules, String>;

    /// Whether they may write folders in a fence of the second tier, which protects no names there.
    fn accepts_second(&self) -> bool;
}

/// What the tools need.
pub struct Options {
    /// Starts commands.
    pub engine: Engine,
    /// The fence around them.
    pub fences: Fences,
    /// Who runs the server.
    pub operator: Arc<dyn Operator>,
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
    pub(crate) operator: Arc<dyn Operator>,
    pub(crate) own: Vec<PathBuf>,
    pub(crate) terminals: Terminals,
    pub(crate) diffs: Diffs,
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
    /// To which models; to all, if nothing is said.
    family: Option<Family>,
    spec: fn() -> ToolSpec,
}

/// All tools, in the order in which models read of them.
const TABLE: &[Entry] = &[
    Entry {
        family: None,
        spec: command::exec_command,
    },
    Entry {
        family: None,
        spec: command::write_stdin,
    },
    Entry {
        family: Some(Family::Functions),
        spec: ReadFile::spec,
    },
    Entry {
        family: Some(Family::Functions),
        spec: ListFiles::spec,
    },
    Entry {
        family: Some(Family::Functions),
        spec: SearchFiles::spec,
    },
    Entry {
        family: Some(Family::Functions),
        spec: WriteFile::spec,
    },
    Entry {
        family: Some(Family::Functions),
        spec: EditFile::spec,
    },
    Entry {
        family: None,
        spec: patch::spec,
    },
    Entry {
        family: None,
        spec: words::update_plan_spec,
    },
    Entry {
        family: None,
        spec: ViewImage::spec,
    },
    Entry {
        family: Some(Family::Codex),
        spec: words::request_user_input_spec,
    },
    Entry {
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
            operator,
            own,
        } = options;
        let inner = Inner {
            engine,
            fences,
            operator,
            own,
            terminals: Terminals::default(),
            diffs: Diffs::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// What a call means, if it means something to one of the tools. It may wait for the disk.
    fn look(
        inner: &Inner,
        thread: ThreadId,
        settings: &Settings,
        call: &Call,
    ) -> Option<(ItemBody, Meant)> {
        let tool = |meant| {
            let name = call.tool.clone();
            (ItemBody::Tool(Tool { name }), meant)
        };
        Some(match Asked::of(inner, thread, settings, call)? {
            Ok(Asked::Command(wish)) => command::meant(settings, wish),
            Ok(Asked::Typed(typed)) => command::meant_typed(&typed),
            Ok(Asked::OnFiles(it)) => it.meant(settings, &inner.own, &call.tool),
            Ok(Asked::Plan) => tool(words::update_plan(call)),
            Ok(Asked::User) => tool(words::ask_user(call)),
            Err(why) => tool(Meant::Refused(why)),
        })
    }
}

/// What a call asks for.
enum Asked {
    Command(command::Wish),
    Typed(command::Typed),
    OnFiles(OnFiles),
    Plan,
    User,
}

impl Asked {
    /// Nothing if no tool has its name; else what it asks for, or what the model is told.
    fn of(
        inner: &Inner,
        thread: ThreadId,
        settings: &Settings,
        call: &Call,
    ) -> Option<Result<Self, String>> {
        if let Some(wish) = command::wish(settings, call) {
            // Models hand patches to a shell too.
            return Some(wish.map(|wish| match wish.patch() {
                Some((text, cwd)) => Self::OnFiles(OnFiles::patch(text, cwd)),
                None => Self::Command(wish),
            }));
        }
        if let Some(it) = OnFiles::of(settings, call) {
            return Some(it.map(Self::OnFiles));
        }
        Some(match call.tool.as_str() {
            "write_stdin" => command::typed(&inner.terminals, thread, call).map(Self::Typed),
            "update_plan" => Ok(Self::Plan),
            "request_user_input" | "ask_user" => Ok(Self::User),
            _ => return None,
        })
    }
}

impl Tools for BuiltIn {
    fn specs(&self, settings: &Settings) -> Vec<ToolSpec> {
        let family = Family::of(settings);
        let offered = TABLE
            .iter()
            .filter(|it| it.family.is_none_or(|it| it == family));
        offered.map(|it| (it.spec)()).collect()
    }

    fn meant<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a Call,
    ) -> Waiting<'a, Option<(ItemBody, Meant)>> {
        let (inner, settings, call) = (self.inner.clone(), settings.clone(), call.clone());
        let looking =
            tokio::task::spawn_blocking(move || Self::look(&inner, thread, &settings, &call));
        Box::pin(async move {
            looking.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a tool could not say what a call means");
                None
            })
        })
    }

    fn users(&self, settings: &Settings, line: &str) -> CommandRun {
        command::users::shown(settings, line)
    }

    fn run(&self, job: Job) -> Waiting<'static, Ran> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let call = match (&job.item.call, &job.item.body) {
                (Some(call), _) => call.clone(),
                (None, ItemBody::Command(it)) if job.item.is_users_command() => {
                    let it = it.clone();
                    return command::users::run(inner, job, it).await;
                }
                _ => {
                    return cannot(job.item.body, "There is no call to carry out.".to_owned());
                }
            };
            match Asked::of(&inner, job.thread, &job.settings, &call) {
                Some(Ok(Asked::Command(wish))) => wish.run(inner, job).await,
                Some(Ok(Asked::Typed(typed))) => typed.run(inner, job).await,
                Some(Ok(Asked::OnFiles(it))) => {
                    let body = job.item.body.clone();
                    let work = tokio::task::spawn_blocking(move || it.run(&inner, job));
                    work.await.unwrap_or_else(|error| {
                        tracing::error!(%error, "a tool failed inside");
                        cannot(
                            body,
                            "The tool failed inside; the server's log says more.".to_owned(),
                        )
                    })
                }
                Some(Err(why)) => cannot(job.item.body, why),
                Some(Ok(Asked::Plan | Asked::User)) | None => {
                    let why = format!("There is nothing to run for {}.", call.tool);
                    cannot(job.item.body, why)
                }
            }
        })
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> Waiting<'static, Vec<String>> {
        let inner = self.inner.clone();
        Box::pin(async move {
            inner.diffs.forget(thread, &turn);
            inner.terminals.end_turn(thread, &turn).await
        })
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
    Ran::new(ItemStatus::Failed, body, Output::failure(why))
}
