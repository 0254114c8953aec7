//! The tools of MCP servers beside the built-in ones, behind the same port.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use raddle_config::McpApproval;
use raddle_core::policy::{Act, ActKind, McpRisk, ParsedScript, approval_digest};
use raddle_core::ports::{
    BackgroundTerminal, BoxFuture, QuestionSink, Requirement, ToolIntent, ToolJob, ToolResult,
    ToolSpec, Tools,
};
use raddle_core::{
    CommandRun, ItemBody, ItemStatus, McpCall, NamedTool, Output, Settings, ThreadId, ToolCall,
    TurnId,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::call::Call;
use super::call_result::{CallFailure, tool_result};
use super::elicitation::{CallElicitations, CallUser};
use super::instance::{Instance, InstanceState};
use super::registry::{ConnectedTool, McpRegistry, identity};
use super::search;
use super::tool_name::{PREFIX, restraining_names};
use super::tool_table::McpTool;

/// Name of the tool that waits for servers which are not connected.
const WAIT: &str = "wait_for_mcp_servers";

/// Longest wait of that tool.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Longest error of a server that the model reads.
const ERROR_BYTES_MAX: usize = 300;

/// The built-in tools and those of MCP servers.
#[derive(Clone)]
pub struct McpTools {
    built_in: Arc<dyn Tools>,
    registry: McpRegistry,
}

/// A call of a tool of this module.
enum ParsedCall {
    /// A call of a server's tool.
    Server { name: String, arguments: Value },
    /// A search of tools.
    Search { query: String },
    /// A wait for servers.
    Wait,
    /// A call that cannot be read; the text is for the model.
    Unreadable(String),
}

impl ParsedCall {
    /// Parses a call; returns `None` for another tool.
    fn of(call: &ToolCall) -> Option<Self> {
        let name = call.tool.as_str();
        let is_ours =
            name.starts_with(PREFIX) || matches!(name, search::SEARCH | search::CALL | WAIT);
        if !is_ours || call.freeform {
            return None;
        }
        let mut arguments = match call.object() {
            Ok(arguments) => arguments,
            Err(why) => {
                return Some(Self::Unreadable(format!(
                    "The tool {name} was not called, because its arguments cannot be read: {why}. Call it again with a \
                     JSON object that fits its schema."
                )));
            }
        };
        Some(match name {
            WAIT => Self::Wait,
            search::SEARCH => match arguments["query"].as_str() {
                Some(query) => Self::Search {
                    query: query.to_owned(),
                },
                None => Self::Unreadable("The query must be a text.".to_owned()),
            },
            search::CALL => match (
                arguments["name"].as_str(),
                arguments["arguments"].is_object(),
            ) {
                (Some(name), true) => Self::Server {
                    name: name.to_owned(),
                    arguments: arguments["arguments"].take(),
                },
                _ => Self::Unreadable(
                    "The name must be a text, and the arguments an object.".to_owned(),
                ),
            },
            name => Self::Server {
                name: name.to_owned(),
                arguments,
            },
        })
    }
}

impl McpTools {
    /// Adds the tools of these servers to the built-in ones.
    pub fn new(built_in: Arc<dyn Tools>, registry: McpRegistry) -> Self {
        Self { built_in, registry }
    }

    /// Returns the item and the intent of a call of a server's tool.
    fn server_intent(
        &self,
        settings: &Settings,
        name: &str,
        arguments: Value,
    ) -> (ItemBody, ToolIntent) {
        let Some(connected) = self.registry.tool(settings, name) else {
            let body = ItemBody::Tool(NamedTool {
                name: name.to_owned(),
            });
            return (body, ToolIntent::Refused(self.missing(settings, name)));
        };
        let act = act(&connected, &arguments);
        let body = ItemBody::Mcp(McpCall {
            server: connected.instance.server.name.clone(),
            tool: connected.tool.name.clone(),
            arguments,
            result: None,
            error: None,
            duration_ms: None,
        });
        (body, ToolIntent::Act(act))
    }

    /// Explains to the model why there is no tool with this name.
    fn missing(&self, settings: &Settings, name: &str) -> String {
        let instances = self.registry.of_thread(settings);
        let of_name = |it: &&Arc<Instance>| {
            let prefix = format!("{PREFIX}{}__", it.server.name);
            name.starts_with(&prefix)
        };
        match instances.iter().find(of_name).map(|it| (it, it.state())) {
            Some((it, InstanceState::Starting | InstanceState::Restarting(_))) => {
                format!(
                    "The MCP server {} is still starting. Call {WAIT} first.",
                    it.server.name
                )
            }
            Some((it, InstanceState::Failed(error))) => {
                let error = &error.text[..error.text.floor_char_boundary(ERROR_BYTES_MAX)];
                format!(
                    "The MCP server {} is not connected: {error}",
                    it.server.name
                )
            }
            _ => format!("There is no tool named {name}."),
        }
    }

    /// Adds a call of a tool to its server, which is from then on not stopped while idle, and not
    /// started again for an approved command. Waits for a server that starts again.
    async fn open_call(
        &self,
        thread: ThreadId,
        questions: &Arc<dyn QuestionSink>,
        settings: &Settings,
        name: &str,
    ) -> Option<(ConnectedTool, CallElicitations)> {
        loop {
            let instance = self.registry.tool(settings, name)?.instance;
            instance.settled().await;
            let user = CallUser {
                thread,
                questions: questions.clone(),
            };
            let Some((session, elicitations)) = instance.open_call(Some(user)) else {
                continue;
            };
            // A server that started again may have other tools.
            let tool = session.tools.of_model_name(name)?.clone();
            let connected = ConnectedTool {
                instance,
                session,
                tool,
            };
            return Some((connected, elicitations));
        }
    }

    async fn run_server_call(self, mut job: ToolJob, name: String, arguments: Value) -> ToolResult {
        let opened = tokio::select! {
            biased;
            opened = self.open_call(job.thread, &job.questions, &job.settings, &name) => opened,
            () = &mut job.stopped => return cannot(job.item.body, "It was stopped.".to_owned()),
        };
        let Some((connected, elicitations)) = opened else {
            let why = self.missing(&job.settings, &name);
            return cannot(job.item.body, why);
        };
        let ItemBody::Mcp(item) = job.item.body.clone() else {
            return cannot(job.item.body, "There is no call to carry out.".to_owned());
        };
        let act = act(&connected, &arguments);
        if !job.allows(&act.kind, || act.digest.clone()) {
            let why =
                "This was not done: the tool is no longer the one that was allowed. Call it again.";
            return cannot(job.item.body, why.to_owned());
        }
        let server = &connected.instance.server;
        if let Some(objection) = self.registry.objection(server, &job.settings).await {
            return cannot(job.item.body, format!("This was not done: {objection}"));
        }
        let call = Call {
            tool: connected.tool.name.clone(),
            arguments: arguments.as_object().cloned(),
            timeout: connected.instance.server.tool_timeout,
            stopped: job.stopped,
            elicitations,
        };
        let began = Instant::now();
        let (peer, calls) = (&connected.session.peer, &connected.instance.calls);
        let reports = job.reports;
        let report = |text: String| reports.progress(text);
        let outcome = call.send(peer, calls, report).await;
        connected.instance.touch();
        tool_result(item, outcome.map_err(CallFailure::from), began.elapsed())
    }

    /// Waits for the servers that the configuration requires. One that failed is started again:
    /// the user may have removed the cause.
    async fn required_servers(&self, settings: &Settings) -> Requirement {
        let instances = self.registry.of_thread(settings).into_iter();
        let required: Vec<Arc<Instance>> = instances.filter(|it| it.server.required).collect();
        let problems = self.registry.required_problems();
        if required.is_empty() && problems.is_empty() {
            return Requirement::None;
        }
        let invalid = problems.iter().map(|problem| {
            format!(
                "{problem}. The server is required: correct its section in config.toml, or set \
                 `required = false` to begin turns without it"
            )
        });
        let started = join_all(required.iter().map(|it| it.started())).await;
        let states = required.iter().zip(started);
        let missing = states.filter_map(|(instance, state)| {
            let name = &instance.server.name;
            match state {
                InstanceState::Ready(_) => None,
                state => Some(format!(
                    "the MCP server `{name}` is required and not connected: {}; \
                     `raddle mcp test {name}` shows more, and `required = false` lets turns begin \
                     without it",
                    not_connected(&state)
                )),
            }
        });
        let missing: Vec<String> = invalid.chain(missing).collect();
        match missing.is_empty() {
            true => Requirement::Met,
            false => Requirement::Missing(missing.join("\n")),
        }
    }

    /// Waits until no server is starting, and describes the state of all.
    async fn wait(&self, settings: &Settings) -> Output {
        let instances = self.registry.of_thread(settings);
        let settled = async {
            for instance in &instances {
                instance.settled().await;
            }
        };
        let _ = timeout(WAIT_MAX, settled).await;
        let lines = instances.iter().map(|it| {
            let name = &it.server.name;
            match it.state() {
                InstanceState::Ready(session) => {
                    format!("{name}: connected, {} tools", session.tools.all().count())
                }
                state => format!("{name}: {}", description(&state)),
            }
        });
        let lines: Vec<String> = lines.collect();
        Output::text(lines.join("\n"))
    }
}

/// Whether a call is one of an MCP server's tool.
pub(crate) fn is_server_call(call: &ToolCall) -> bool {
    matches!(ParsedCall::of(call), Some(ParsedCall::Server { .. }))
}

/// Returns the act of a call.
fn act(connected: &ConnectedTool, arguments: &Value) -> Act {
    let ConnectedTool { instance, tool, .. } = connected;
    let kind = ActKind::McpTool {
        name: tool.rule_name.clone(),
        risk: risk(connected),
    };
    let digest =
        approval_digest::mcp_call(&identity(&instance.server), &tool.definition, arguments);
    Act {
        kind,
        digest,
        reason: None,
    }
}

/// Returns the known facts about the risk of a tool: the operator's word, else the server's.
fn risk(ConnectedTool { instance, tool, .. }: &ConnectedTool) -> McpRisk {
    let server = &instance.server;
    let configured = server.tool_approvals.get(&tool.name).copied();
    match configured.unwrap_or(server.approval) {
        McpApproval::Approve => McpRisk::Approved,
        McpApproval::Prompt => McpRisk::Prompt,
        // The declarations of a plugin about its own tools have no effect either.
        McpApproval::Auto if server.plugin.is_some() => McpRisk::Unknown,
        McpApproval::Auto if tool.is_read_only || !tool.is_risky => McpRisk::DeclaredHarmless,
        McpApproval::Auto => McpRisk::Unknown,
    }
}

/// Returns why a server in this state is not connected.
fn not_connected(state: &InstanceState) -> &str {
    match state {
        InstanceState::Failed(error) => &error.text,
        InstanceState::Starting
        | InstanceState::Ready(_)
        | InstanceState::Restarting(_)
        | InstanceState::Stopped => "it was stopped",
    }
}

/// Describes a state in which a server has no tools.
fn description(state: &InstanceState) -> String {
    match state {
        InstanceState::Starting => "starting".to_owned(),
        InstanceState::Restarting(_) => "starting again".to_owned(),
        InstanceState::Ready(_) => "connected".to_owned(),
        InstanceState::Stopped => "stopped".to_owned(),
        InstanceState::Failed(error) => {
            format!(
                "failed: {}",
                &error.text[..error.text.floor_char_boundary(ERROR_BYTES_MAX)]
            )
        }
    }
}

/// Returns the tool with which the model waits for servers that start; `None` if there are none.
fn wait_spec(instances: &[Arc<Instance>]) -> Option<Arc<ToolSpec>> {
    let missing = instances.iter().filter_map(|it| match it.state() {
        InstanceState::Starting => Some(it.server.name.clone()),
        InstanceState::Ready(_)
        | InstanceState::Restarting(_)
        | InstanceState::Failed(_)
        | InstanceState::Stopped => None,
    });
    let missing: Vec<String> = missing.collect();
    (!missing.is_empty()).then(|| {
        Arc::new(ToolSpec {
            name: WAIT.to_owned(),
            description: format!(
                "Some MCP servers are still starting: {}. Their tools are available once they are connected. Call this \
                 only if you need one of them: it waits until they are connected or have failed.",
                missing.join(", ")
            ),
            schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            freeform: None,
        })
    })
}

/// Returns the failed result of a call that was not run.
fn cannot(body: ItemBody, why: String) -> ToolResult {
    ToolResult::new(ItemStatus::Failed, body, Output::failure(why))
}

/// Returns all tools of the connected servers, in the order of servers and names.
fn all_tools(instances: &[Arc<Instance>]) -> Vec<Arc<McpTool>> {
    let sessions = instances.iter().filter_map(|it| it.session());
    let tools = sessions.flat_map(|it| it.tools.all().cloned().collect::<Vec<_>>());
    tools.collect()
}

impl Tools for McpTools {
    fn specs(&self, settings: &Settings) -> Vec<Arc<ToolSpec>> {
        let mut specs = self.built_in.specs(settings);
        let instances = self.registry.of_thread(settings);
        let tools = all_tools(&instances);
        match search::fit(&tools) {
            true => specs.extend(tools.iter().map(|it| it.spec.clone())),
            false => specs.extend(search::specs(&tools)),
        }
        specs.extend(wait_spec(&instances));
        specs
    }

    fn prepare(&self, settings: &Settings) {
        self.built_in.prepare(settings);
        self.registry.of_thread(settings);
    }

    fn requirement<'a>(&'a self, settings: &'a Settings) -> BoxFuture<'a, Requirement> {
        Box::pin(self.required_servers(settings))
    }

    fn intent<'a>(
        &'a self,
        thread: ThreadId,
        settings: &'a Settings,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<(ItemBody, ToolIntent)>> {
        Box::pin(async move {
            let Some(parsed) = ParsedCall::of(call) else {
                return self.built_in.intent(thread, settings, call).await;
            };
            let tool = |intent| {
                let name = call.tool.clone();
                (ItemBody::Tool(NamedTool { name }), intent)
            };
            Some(match parsed {
                ParsedCall::Server { name, arguments } => {
                    self.server_intent(settings, &name, arguments)
                }
                ParsedCall::Search { .. } | ParsedCall::Wait => tool(ToolIntent::Harmless),
                ParsedCall::Unreadable(why) => tool(ToolIntent::Refused(why)),
            })
        })
    }

    fn user_command(&self, settings: &Settings, line: &str) -> CommandRun {
        self.built_in.user_command(settings, line)
    }

    fn script(&self, words: &[String]) -> ParsedScript {
        self.built_in.script(words)
    }

    fn names(&self, settings: &Settings, call: &ToolCall) -> Vec<String> {
        match ParsedCall::of(call) {
            None => self.built_in.names(settings, call),
            Some(ParsedCall::Server { name, .. }) => {
                let connected = self.registry.tool(settings, &name);
                let rule_names =
                    connected.map(|it| restraining_names(&it.instance.server.name, &it.tool.name));
                let names = [call.tool.clone(), name].into_iter();
                names.chain(rule_names.into_iter().flatten()).collect()
            }
            Some(_) => vec![call.tool.clone()],
        }
    }

    fn run(&self, job: ToolJob) -> BoxFuture<'static, ToolResult> {
        let parsed = job.item.call.as_ref().and_then(ParsedCall::of);
        let this = self.clone();
        Box::pin(async move {
            match parsed {
                None => this.built_in.run(job).await,
                Some(ParsedCall::Server { name, arguments }) => {
                    this.run_server_call(job, name, arguments).await
                }
                Some(ParsedCall::Search { query }) => {
                    let instances = this.registry.of_thread(&job.settings);
                    let found = search::find(&all_tools(&instances), &query);
                    let output = Output::text(found);
                    ToolResult::new(ItemStatus::Completed, job.item.body, output)
                }
                Some(ParsedCall::Wait) => {
                    let (status, output) = tokio::select! {
                        biased;
                        output = this.wait(&job.settings) => (ItemStatus::Completed, output),
                        () = job.stopped => {
                            let why = "The wait was stopped by the user.".to_owned();
                            (ItemStatus::Interrupted, Output::failure(why))
                        }
                    };
                    ToolResult::new(status, job.item.body, output)
                }
                Some(ParsedCall::Unreadable(why)) => cannot(job.item.body, why),
            }
        })
    }

    fn end_turn(&self, thread: ThreadId, turn: TurnId) -> BoxFuture<'static, Vec<String>> {
        self.built_in.end_turn(thread, turn)
    }

    fn terminals(&self, thread: ThreadId) -> Vec<BackgroundTerminal> {
        self.built_in.terminals(thread)
    }

    fn end_terminal(&self, thread: ThreadId, id: Option<&str>) -> bool {
        self.built_in.end_terminal(thread, id)
    }
}
