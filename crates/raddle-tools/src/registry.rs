//! Registry of tools: one table, from which each thread is offered those that its model knows and
//! its sandbox makes useful.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use raddle_core::policy::ParsedScript;
use raddle_core::ports::{
    BackgroundTerminal, BoxFuture, ToolIntent, ToolJob, ToolResult, ToolSpec, Tools,
};
use raddle_core::{
    CommandRun, Family, ItemBody, ItemStatus, NamedTool, Output, Settings, ThreadId, ToolCall,
    TurnId,
};
use raddle_sandbox::{Launcher, SandboxService, SearchPath};
use tracing::Span;

use crate::command::{self, SentNotices, Terminals};
use crate::file_call::FileCall;
use crate::files::{EditFile, ListFiles, ReadFile, SearchFiles, ViewImage, WriteFile};
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::{Operator, ToolDeps};
use crate::turn_diffs::TurnDiffs;
use crate::{patch, plan, plugin_call, rights, shell};

/// Dependencies of the tools.
pub struct Options {
    /// Starts the processes of commands.
    pub launcher: Launcher,
    /// Builds the sandbox of each command.
    pub sandbox: SandboxService,
    /// Settings of the operator that tools follow.
    pub operator: Arc<dyn Operator>,
    /// The server's own folders, hidden from commands.
    pub own: Vec<PathBuf>,
    /// Search path of programs.
    pub path: SearchPath,
}

/// The agent's built-in tools. Cheap to clone.
#[derive(Clone)]
pub struct BuiltInTools {
    inner: Arc<ToolDeps>,
}

impl fmt::Debug for BuiltInTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BuiltInTools")
    }
}

/// Models and threads that are offered a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfferedTo {
    All,
    /// Models trained on few tools, with a shell for everything else.
    Gpt,
    /// Models trained on one tool per task.
    OtherModels,
    /// All models, in threads that may request permissions.
    SandboxedThreads,
}

impl OfferedTo {
    fn includes(self, family: Family, settings: &Settings) -> bool {
        let is_gpt = matches!(family, Family::Gpt { .. });
        match self {
            Self::All => true,
            Self::Gpt => is_gpt,
            Self::OtherModels => !is_gpt,
            Self::SandboxedThreads => rights::is_offered(settings),
        }
    }
}

struct OfferedTool {
    offered_to: OfferedTo,
    spec: fn() -> ToolSpec,
}

/// All tools, in the order in which models read them.
const TABLE: &[OfferedTool] = &[
    OfferedTool {
        offered_to: OfferedTo::All,
        spec: command::exec_command,
    },
    OfferedTool {
        offered_to: OfferedTo::All,
        spec: command::write_stdin,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: ReadFile::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: ListFiles::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: SearchFiles::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: WriteFile::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: EditFile::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::All,
        spec: patch::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::All,
        spec: plan::update_plan_spec,
    },
    OfferedTool {
        offered_to: OfferedTo::All,
        spec: ViewImage::spec,
    },
    OfferedTool {
        offered_to: OfferedTo::Gpt,
        spec: plan::request_user_input_spec,
    },
    OfferedTool {
        offered_to: OfferedTo::OtherModels,
        spec: plan::ask_user_spec,
    },
    OfferedTool {
        offered_to: OfferedTo::SandboxedThreads,
        spec: rights::spec,
    },
];

/// Returns the specifications of the tools that a thread with these settings is offered.
fn offered(settings: &Settings) -> Vec<Arc<ToolSpec>> {
    let family = Family::of(settings.model.as_deref());
    let tools = TABLE.iter().zip(&*SPECS);
    let tools = tools.filter(|(it, _)| it.offered_to.includes(family, settings));
    let specs = tools.map(|(_, specs)| match family {
        Family::Gpt { grammar: true } => &specs.freeform,
        _ => &specs.plain,
    });
    specs.cloned().collect()
}

/// Specifications of a tool, built once.
struct Specs {
    plain: Arc<ToolSpec>,
    /// With the freeform variant, if the tool has one.
    freeform: Arc<ToolSpec>,
}

/// Specifications, in the order of the table.
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

impl BuiltInTools {
    /// Creates the tools, with no command running.
    pub fn new(options: Options) -> Self {
        let Options {
            launcher,
            sandbox,
            operator,
            own,
            path,
        } = options;
        let inner = ToolDeps {
            launcher,
            sandbox,
            operator,
            own,
            path,
            terminals: Terminals::default(),
            diffs: Arc::default(),
            notices: SentNotices::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the changes of file tools in running turns.
    pub fn turn_diffs(&self) -> Arc<TurnDiffs> {
        self.inner.diffs.clone()
    }

    pub(crate) fn inner(&self) -> &ToolDeps {
        &self.inner
    }

    /// Returns the item and the intent of a call; `None` if no tool has its name. It may block on
    /// the disk.
    fn intent_of(
        inner: &ToolDeps,
        thread: ThreadId,
        settings: &Settings,
        call: &ToolCall,
        path: Option<OsString>,
    ) -> Option<(ItemBody, ToolIntent)> {
        let tool = |intent| {
            let name = call.tool.clone();
            (ItemBody::Tool(NamedTool { name }), intent)
        };
        Some(match ParsedCall::of(inner, thread, settings, call)? {
            Ok(ParsedCall::Command(request)) => {
                command::command_intent(settings, request, path, inner.sandbox.holds())
            }
            Ok(ParsedCall::StdinWrite(write)) => {
                command::write_intent(settings, &write, path, inner.sandbox.holds())
            }
            Ok(ParsedCall::FileCall(it)) => it.file_intent(settings, &inner.own, &call.tool),
            Ok(ParsedCall::Plan) => tool(plan::update_plan(call)),
            Ok(ParsedCall::User) => tool(plan::ask_user(call)),
            Ok(ParsedCall::Rights) => tool(rights::rights_intent(settings, &inner.own, call)),
            Err(why) => tool(ToolIntent::Refused(why.to_string())),
        })
    }
}

enum ParsedCall {
    Command(command::CommandRequest),
    StdinWrite(command::StdinWrite),
    FileCall(FileCall),
    Plan,
    User,
    Rights,
}

impl ParsedCall {
    /// Returns `None` if no tool has the name; otherwise the parsed call, or the error text for the
    /// model.
    fn of(
        inner: &ToolDeps,
        thread: ThreadId,
        settings: &Settings,
        call: &ToolCall,
    ) -> Option<Result<Self, ToolCallError>> {
        let allows_login = inner.operator.allows_login_shell();
        if let Some(request) = command::parse_request(settings, call, allows_login) {
            // Models pass patches to a shell too. A plugin has a method for files.
            let is_models = call.tool != plugin_call::COMMAND;
            return Some(request.and_then(|request| match request.patch() {
                Some((text, cwd)) if is_models => Ok(Self::FileCall(FileCall::patch(text, cwd))),
                _ => request.check_length().map(Self::Command),
            }));
        }
        if let Some(it) = FileCall::of(settings, call) {
            return Some(it.map(Self::FileCall));
        }
        Some(match call.tool.as_str() {
            "write_stdin" => {
                command::parse_write(&inner.terminals, thread, call).map(Self::StdinWrite)
            }
            "update_plan" => Ok(Self::Plan),
            "request_user_input" | "ask_user" => Ok(Self::User),
            rights::NAME => Ok(Self::Rights),
            _ => return None,
        })
    }
}

/// Returns the names of all tools that a call amounts to: a patch passed to a shell is also a
/// patch, and a plugin's call is also one of the tool that does the same.
fn names(settings: &Settings, call: &ToolCall) -> Vec<String> {
    let mut names = vec![call.tool.as_str()];
    if let Some(counterpart) = plugin_call::counterpart(&call.tool) {
        names.push(counterpart);
        return names.into_iter().map(str::to_owned).collect();
    }
    if let Some(request) = command::parse_request(settings, call, false) {
        names.push("exec_command");
        let is_patch = request.is_ok_and(|it| it.patch().is_some());
        names.extend(is_patch.then_some("apply_patch"));
    }
    if matches!(call.tool.as_str(), "request_user_input" | "ask_user") {
        names.extend(["request_user_input", "ask_user"]);
    }
    names.into_iter().map(str::to_owned).collect()
}

impl Tools for BuiltInTools {
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        // Starts the lookup of `PATH` in the login shell while the model generates.
        self.inner.path.begin();
        offered(settings)
    }

    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        let (inner, settings, call) = (self.inner.clone(), settings.clone(), call.clone());
        Box::pin(async move {
            let path = match command::needs_path(&settings, &call) {
                true => inner.path.get().await,
                false => None,
            };
            let span = Span::current();
            let intent_task = tokio::task::spawn_blocking(move || {
                span.in_scope(|| Self::intent_of(&inner, thread, &settings, &call, path))
            });
            intent_task.await.unwrap_or_else(|error| {
                tracing::error!(%error, "determining the intent of a tool call failed");
                None
            })
        })
    }

    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        names(settings, call)
    }

    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun {
        command::user_commands::shown(settings, line)
    }

    fn script(&self, words: &[String]) -> ParsedScript {
        shell::parse_words(words)
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let inner = self.inner.clone();
        Box::pin(async move {
            let call = match (&job.item.call, &job.item.body) {
                (Some(call), _) => call.clone(),
                (None, ItemBody::Command(it)) if job.item.is_users_command() => {
                    let it = it.clone();
                    return command::user_commands::run(inner, job, it).await;
                }
                _ => {
                    return cannot(job.item.body, "There is no call to carry out.".to_owned());
                }
            };
            match ParsedCall::of(&inner, job.thread, &job.settings, &call) {
                Some(Ok(ParsedCall::Command(request))) => request.run(inner, job).await,
                Some(Ok(ParsedCall::StdinWrite(write))) => write.run(inner, job).await,
                Some(Ok(ParsedCall::FileCall(it))) => {
                    let body = job.item.body.clone();
                    let span = Span::current();
                    let run = move || span.in_scope(|| it.run(&inner, job));
                    let work = tokio::task::spawn_blocking(run);
                    work.await.unwrap_or_else(|error| {
                        tracing::error!(%error, "a tool failed with an internal error");
                        cannot(
                            body,
                            "The tool failed with an internal error; the server's log says more."
                                .to_owned(),
                        )
                    })
                }
                Some(Err(why)) => cannot(job.item.body, why.to_string()),
                Some(Ok(ParsedCall::Plan | ParsedCall::User | ParsedCall::Rights)) | None => {
                    let why = format!("There is nothing to run for {}.", call.tool);
                    cannot(job.item.body, why)
                }
            }
        })
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>> {
        let inner = self.inner.clone();
        Box::pin(async move {
            inner.diffs.forget(thread, &turn);
            inner.terminals.end_turn(thread, &turn).await
        })
    }

    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        self.inner.terminals.list(thread)
    }

    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool {
        self.inner.terminals.end(thread, id)
    }
}

/// Returns the failed result of a call that was not run.
fn cannot(body: ItemBody, why: String) -> ToolResult {
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}

#[cfg(test)]
mod tests {
    use raddle_core::{Item, ItemId, Timestamp};

    use super::*;

    #[test]
    fn names_of_a_call_include_all_its_tools() {
        let patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: x\n*** End Patch\nEOF";
        for (tool, arguments, expected) in [
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
            let call = ToolCall {
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
            assert_eq!(names(&settings, &call).join(" "), expected);
        }
    }

    #[test]
    fn each_model_family_is_offered_its_tools() {
        let few = "exec_command write_stdin apply_patch update_plan view_image request_user_input \
                   request_permissions";
        let many = "exec_command write_stdin read_file list_files search_files write_file edit_file apply_patch \
                    update_plan view_image ask_user request_permissions";
        for (model, names, takes_text) in [
            ("gpt-5.6", few, true),
            ("gpt-4.1", few, false),
            ("gpt-oss-20b", many, false),
            ("claude-opus", many, false),
        ] {
            let settings = Settings {
                model: Some(model.to_owned()),
                ..Settings::default()
            };
            let specs = offered(&settings);
            let actual: Vec<&str> = specs.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(actual.join(" "), names, "{model}");
            for spec in &specs {
                let expected = takes_text && spec.name == "apply_patch";
                assert_eq!(spec.freeform.is_some(), expected, "{model}: {}", spec.name);
            }
        }
    }
    /// Clients see either the item of a call or its effect. A new tool fails this test until it is
    /// listed here, and `HIDDEN_TOOLS` of `raddle-core` must agree.
    #[test]
    fn every_tool_shows_its_item_or_its_effect() {
        let expected = [
            ("exec_command", "item"),
            ("write_stdin", "item"),
            ("read_file", "item"),
            ("list_files", "item"),
            ("search_files", "item"),
            ("write_file", "item"),
            ("edit_file", "item"),
            ("apply_patch", "item"),
            ("update_plan", "effect"),
            ("view_image", "item"),
            ("request_user_input", "effect"),
            ("ask_user", "effect"),
            ("request_permissions", "item"),
        ];
        let actual: Vec<(&str, &str)> = SPECS
            .iter()
            .map(|specs| {
                let name = specs.plain.name.clone();
                let item = Item {
                    id: ItemId::from("i"),
                    status: ItemStatus::Completed,
                    body: ItemBody::Tool(NamedTool { name }),
                    call: None,
                    output: None,
                    sealed: None,
                    started_at: Timestamp::default(),
                    completed_at: None,
                };
                let shown = match item.is_hidden() {
                    true => "effect",
                    false => "item",
                };
                (specs.plain.name.as_str(), shown)
            })
            .collect();
        assert_eq!(actual, expected);
    }
}
