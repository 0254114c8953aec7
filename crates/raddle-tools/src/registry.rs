//! The tools that there are: one table, from which each model is offered what it knows how to use.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use raddle_core::policy::{PathPattern, Script};
use raddle_core::ports::{Job, Meant, Ran, Terminal, ToolSpec, Tools, Waiting};
use raddle_core::{
    Call, CommandRun, Family, ItemBody, ItemStatus, Output, Settings, ThreadId, Tool, TurnId,
};
use raddle_sandbox::{Engine, Fences, SearchPath, egress};

use crate::command::{self, SentNotices, Terminals};
use crate::diffs::Diffs;
use crate::files::{EditFile, ListFiles, ReadFile, SearchFiles, ViewImage, WriteFile};
use crate::on_files::OnFiles;
use crate::{patch, rights, shell, words};

/// What whoever runs the server has said of commands. Each of these may wait for a disk.
pub trait Operator: Send + Sync {
    /// Whom commands that may use the network can reach.
    fn hosts(&self) -> Result<egress::Rules, String>;

    /// Whether they may write folders in a fence of the second tier, which protects no names there.
    fn accepts_second(&self) -> bool;

    /// Whether a call may ask for a login shell in its sandbox. This one does not wait.
    fn allows_login_shell(&self) -> bool {
        false
    }

    /// What whoever may read this folder may not read below it.
    fn closed_below(&self, folder: &str) -> Vec<PathPattern>;
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
    /// Where they look for programs.
    pub path: SearchPath,
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
    pub(crate) path: SearchPath,
    pub(crate) terminals: Terminals,
    pub(crate) diffs: Diffs,
    pub(crate) notices: SentNotices,
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuiltIn")
    }
}

/// Which models are offered a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    All,
    /// Those that were taught few tools, and a shell for everything else.
    Gpt,
    /// Those that were taught a tool for each thing.
    Others,
}

impl To {
    fn includes(self, family: Family) -> bool {
        let is_gpt = matches!(family, Family::Gpt { .. });
        match self {
            Self::All => true,
            Self::Gpt => is_gpt,
            Self::Others => !is_gpt,
        }
    }
}

/// A tool that is offered.
struct Entry {
    to: To,
    spec: fn() -> ToolSpec,
}

/// All tools, in the order in which models read of them.
const TABLE: &[Entry] = &[
    Entry {
        to: To::All,
        spec: command::exec_command,
    },
    Entry {
        to: To::All,
        spec: command::write_stdin,
    },
    Entry {
        to: To::Others,
        spec: ReadFile::spec,
    },
    Entry {
        to: To::Others,
        spec: ListFiles::spec,
    },
    Entry {
        to: To::Others,
        spec: SearchFiles::spec,
    },
    Entry {
        to: To::Others,
        spec: WriteFile::spec,
    },
    Entry {
        to: To::Others,
        spec: EditFile::spec,
    },
    Entry {
        to: To::All,
        spec: patch::spec,
    },
    Entry {
        to: To::All,
        spec: words::update_plan_spec,
    },
    Entry {
        to: To::All,
        spec: ViewImage::spec,
    },
    Entry {
        to: To::Gpt,
        spec: words::request_user_input_spec,
    },
    Entry {
        to: To::Others,
        spec: words::ask_user_spec,
    },
];

/// What models of this family are told of.
fn offered(family: Family) -> Vec<Arc<ToolSpec>> {
    let theirs = TABLE.iter().zip(&*SPECS);
    let theirs = theirs.filter(|(it, _)| it.to.includes(family));
    let specs = theirs.map(|(_, specs)| match family {
        Family::Gpt { grammar: true } => &specs.freeform,
        _ => &specs.plain,
    });
    specs.cloned().collect()
}

/// What models are told of a tool, written once.
struct Specs {
    plain: Arc<ToolSpec>,
    /// With how it is called with a text, if it can be.
    freeform: Arc<ToolSpec>,
}

/// In the order of the table.
static SPECS: LazyLock<Vec<Specs>> = LazyLock::new(|| {
    let specs = TABLE.iter().map(|it| {
        let plain = ToolSpec {
            freeform: None,
            ..(it.spec)()
        };
        Specs {
            plain: Arc::new(plain),
            freeform: Arc::new((it.spec)()),
        }
    });
    specs.collect()
});

impl BuiltIn {
    /// The tools, with nothing running.
    pub fn new(options: Options) -> Self {
        let Options {
            engine,
            fences,
            operator,
            own,
            path,
        } = options;
        let inner = Inner {
            engine,
            fences,
            operator,
            own,
            path,
            terminals: Terminals::default(),
            diffs: Diffs::default(),
            notices: SentNotices::default(),
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
        path: Option<OsString>,
    ) -> Option<(ItemBody, Meant)> {
        let tool = |meant| {
            let name = call.tool.clone();
            (ItemBody::Tool(Tool { name }), meant)
        };
        Some(match Asked::of(inner, thread, settings, call)? {
            Ok(Asked::Command(wish)) => command::meant(settings, wish, path, inner.fences.holds()),
            Ok(Asked::Typed(typed)) => {
                command::meant_typed(settings, &typed, path, inner.fences.holds())
            }
            Ok(Asked::OnFiles(it)) => it.meant(settings, &inner.own, &call.tool),
            Ok(Asked::Plan) => tool(words::update_plan(call)),
            Ok(Asked::User) => tool(words::ask_user(call)),
            Ok(Asked::Rights) => tool(rights::meant(settings, &inner.own, call)),
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
    Rights,
}

impl Asked {
    /// Nothing if no tool has its name; else what it asks for, or what the model is told.
    fn of(
        inner: &Inner,
        thread: ThreadId,
        settings: &Settings,
        call: &Call,
    ) -> Option<Result<Self, String>> {
        let allows_login = inner.operator.allows_login_shell();
        if let Some(wish) = command::wish(settings, call, allows_login) {
            // Models hand patches to a shell too.
            return Some(wish.and_then(|wish| match wish.patch() {
                Some((text, cwd)) => Ok(Self::OnFiles(OnFiles::patch(text, cwd))),
                None => wish.that_can_be_shown().map(Self::Command),
            }));
        }
        if let Some(it) = OnFiles::of(settings, call) {
            return Some(it.map(Self::OnFiles));
        }
        Some(match call.tool.as_str() {
            "write_stdin" => command::typed(&inner.terminals, thread, call).map(Self::Typed),
            "update_plan" => Ok(Self::Plan),
            "request_user_input" | "ask_user" => Ok(Self::User),
            rights::NAME => Ok(Self::Rights),
            _ => return None,
        })
    }
}

/// The names of the tools that a call comes to, however it is called: a patch in a shell's words is a patch.
fn names(settings: &Settings, call: &Call) -> Vec<String> {
    let mut names = vec![call.tool.as_str()];
    if let Some(wish) = command::wish(settings, call, false) {
        names.push("exec_command");
        let is_patch = wish.is_ok_and(|it| it.patch().is_some());
        names.extend(is_patch.then_some("apply_patch"));
    }
    if matches!(call.tool.as_str(), "request_user_input" | "ask_user") {
        names.extend(["request_user_input", "ask_user"]);
    }
    names.into_iter().map(str::to_owned).collect()
}

impl Tools for BuiltIn {
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        // While the model thinks of a command, the login shell says where programs are.
        self.inner.path.begin();
        let mut specs = offered(Family::of(settings.model.as_deref()));
        specs.extend(rights::spec(settings).map(Arc::new));
        specs
    }

    fn meant<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a Call,
    ) -> Waiting<'a, Option<(ItemBody, Meant)>> {
        let (inner, settings, call) = (self.inner.clone(), settings.clone(), call.clone());
        Box::pin(async move {
            let path = match command::needs_path(&settings, &call) {
                true => inner.path.get().await,
                false => None,
            };
            let looking = tokio::task::spawn_blocking(move || {
                Self::look(&inner, thread, &settings, &call, path)
            });
            looking.await.unwrap_or_else(|error| {
                tracing::error!(%error, "a tool could not say what a call means");
                None
            })
        })
    }

    fn names(&self, settings: &Settings, call: &Call) -> Vec<String> {
        names(settings, call)
    }

    fn users(&self, settings: &Settings, line: &str) -> CommandRun {
        command::users::shown(settings, line)
    }

    fn script(&self, words: &[String]) -> Script {
        shell::of_words(words)
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
                Some(Ok(Asked::Plan | Asked::User | Asked::Rights)) | None => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_what_it_comes_to() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: x\n*** End Patch\nEOF";
        for (tool, arguments, wanted) in [
            ("read_file", r#"{"path": "x"}"#.to_owned(), "read_file"),
            (
                "shell_command",
                r#"{"command": "ls"}"#.to_owned(),
                "shell_command exec_command",
            ),
            (
                "exec_command",
                serde_json::json!({ "cmd": patch }).to_string(),
                "exec_command exec_command apply_patch",
            ),
            (
                "ask_user",
                "{}".to_owned(),
                "ask_user request_user_input ask_user",
            ),
        ] {
            let call = Call {
                id: "c".to_owned(),
                tool: tool.to_owned(),
                arguments,
                freeform: false,
                alone: false,
            };
            let settings = Settings {
                cwd: "/w".to_owned(),
                ..Settings::default()
            };
            assert_eq!(names(&settings, &call).join(" "), wanted);
        }
    }

    #[test]
    fn each_family_is_offered_what_it_knows() {
        let few = "exec_command write_stdin apply_patch update_plan view_image request_user_input";
        let many = "exec_command write_stdin read_file list_files search_files write_file edit_file apply_patch \
                    update_plan view_image ask_user";
        for (model, names, takes_text) in [
            ("gpt-5.6", few, true),
            ("gpt-4.1", few, false),
            ("gpt-oss-20b", many, false),
            ("claude-opus", many, false),
        ] {
            let specs = offered(Family::of(Some(model)));
            let found: Vec<&str> = specs.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(found.join(" "), names, "{model}");
            for spec in &specs {
                let wanted = takes_text && spec.name == "apply_patch";
                assert_eq!(spec.freeform.is_some(), wanted, "{model}: {}", spec.name);
            }
        }
    }
}
