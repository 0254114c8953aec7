//! The live threads, and the conversion of requests into their commands.

pub(crate) mod answers;
pub(crate) mod cursors;
pub(crate) mod end_cursors;
mod environment;
mod existence;
pub(crate) mod folders;
mod injected_items;
mod input;
pub(crate) mod items;
pub(crate) mod lists;
mod overrides;
pub(crate) mod queue;
mod route;
pub(crate) mod snippets;
pub(crate) mod view;

pub(crate) use self::environment::RequestedEnvironment;
pub(crate) use self::existence::{check_exists, settings_of};
pub(crate) use self::folders::folder_of;
pub(crate) use self::injected_items::injected;
pub(crate) use self::input::{message, message_to_queue};
pub(crate) use self::overrides::Overrides;
pub(crate) use self::route::routed;

use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use raddle_agent::{
    AgentError, CommandResult, Delivery, PeekResult, Permit, SubscribeRequest, Subscriber, Threads,
    client_tools,
};
use raddle_config::permissions::{self, SandboxChoice};
use raddle_config::providers::choose;
use raddle_config::{
    APPROVAL_POLICY, EffectiveConfig, SettingError, State, budget, command_variables,
};
use raddle_core::ports::{BoxFuture, ReadError};
use raddle_core::{
    ApprovalPolicy, Cause, ChangeSettings, Command, CommandOutcome, Interrupt, PermissionProfile,
    Refusal, Reviewer, Route, Sandbox, Scope, Settings, SettingsChange, ThreadId,
};
use raddle_protocol as wire;
use raddle_protocol::table::ServerMethod;
use raddle_rpc::{Close, OutgoingPermit};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{ServerState, profiles, sandbox_policy};
use crate::session::{ClientProfile, Session};
use crate::wire_error::WireError;

/// Limit: thread notifications queued for one client; beyond it, the client falls behind: the
/// server sends pages from the journal until the client has caught up.
///
/// Backpressure: a client with more queued bytes than this is served from the journal,
const QUEUED_BYTES_MAX: usize = 4 << 20;

/// until the queue is down to this many bytes.
const QUEUED_BYTES_LOW: usize = 1 << 20;

/// Limit: notices queued for one client (a notice is not stored and cannot be sent again); beyond
/// it, the connection closes with 1008.
///
/// A client with more queued bytes than this is disconnected: a notice is no record, so it cannot
/// be sent later.
const NOTICE_BYTES_MAX: usize = 32 << 20;

const TOO_SLOW: Close = Close {
    code: 1008,
    reason: Cow::Borrowed("the client reads too slowly"),
};

/// Limit: fallback models of one turn; beyond it, the server rejects the request with -32600.
const FALLBACKS_MAX: usize = 8;

/// Capacity reserved for a response with turns or items.
const ANSWER_BYTES: usize = 8 << 20;

/// Limit: time a response with turns or items waits for capacity; beyond it, the server rejects the
/// request with -32001 and says when to retry.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Reserves capacity for a response with turns or items, before they are read. Fails as overloaded
/// if the client does not read its earlier responses.
pub(crate) async fn reserve_answer(session: &Session) -> Result<OutgoingPermit, WireError> {
    let reservation = timeout(RESERVE_TIMEOUT, session.outgoing.reserve(ANSWER_BYTES)).await;
    reservation.map_err(|_| WireError::Overloaded)
}

/// A connection as a subscriber of threads.
#[derive(Debug)]
pub(crate) struct SessionSubscriber(pub(crate) Weak<Session>);

impl Subscriber for SessionSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        let Some(session) = self.0.upgrade().filter(|session| !session.is_gone()) else {
            return false;
        };
        match delivery {
            Delivery::Record { notification, seq } => {
                session.tell_with_seq(notification, seq.map(|seq| seq.0));
            }
            Delivery::Notice(notice) => {
                if session.outgoing.queued_bytes() > NOTICE_BYTES_MAX {
                    session.metrics.too_slow.add(1);
                    session.outgoing.abort(TOO_SLOW);
                    return false;
                }
                session.notify(notice);
            }
            Delivery::Request { id, method, params } => {
                session.send_request(id, method, &for_client(&session, method, params));
            }
        }
        true
    }

    fn is_connected(&self) -> bool {
        let session = self.0.upgrade();
        session.is_some_and(|session| !session.is_gone())
    }

    fn can_answer(&self) -> bool {
        let session = self.0.upgrade();
        session.is_none_or(|session| !session.is_observer())
    }

    fn wants_progress(&self) -> bool {
        let session = self.0.upgrade();
        session.is_some_and(|it| it.client().is_some_and(|client| client.wants_progress))
    }

    fn wants_plugin_events(&self) -> bool {
        let session = self.0.upgrade();
        session.is_some_and(|it| it.client().is_some_and(|client| client.has_plugins))
    }

    fn has_capacity(&self) -> bool {
        let session = self.0.upgrade();
        session.is_none_or(|session| session.outgoing.queued_bytes() <= QUEUED_BYTES_MAX)
    }

    fn reserve(&self, bytes: usize) -> BoxFuture<'static, Option<Permit>> {
        let outgoing = self.0.upgrade().map(|session| session.outgoing.clone());
        Box::pin(async move {
            let outgoing = outgoing?;
            let reservation = outgoing.reserve_when_low(bytes, QUEUED_BYTES_LOW).await;
            (!outgoing.is_gone()).then(|| Box::new(reservation) as Permit)
        })
    }
}

/// Returns the params of a request, without the members for which a client did not opt in.
fn for_client<'a>(session: &Session, method: &str, params: &'a Value) -> Cow<'a, Value> {
    let has = |option: fn(&ClientProfile) -> bool| session.client().is_some_and(option);
    let removed: &[&str] = match method {
        wire::ItemCommandExecutionRequestApproval::NAME if !has(|it| it.experimental) => {
            &["availableDecisions", "additionalPermissions"]
        }
        wire::ItemFileChangeRequestApproval::NAME if !has(|it| it.has_hunks) => &["hunks"],
        _ => return Cow::Borrowed(params),
    };
    let Some(members) = params.as_object() else {
        return Cow::Borrowed(params);
    };
    let kept = members.iter();
    let kept = kept.filter(|(name, _)| !removed.contains(&name.as_str()));
    let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
    Cow::Owned(Value::Object(kept.collect()))
}

/// Converts the error of a named thread.
pub(crate) fn refused(id: ThreadId, error: AgentError) -> WireError {
    match error {
        AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted) => {
            WireError::Refused(format!("thread not found: {id}").into())
        }
        // Clients recognise the first sentence.
        AgentError::Archived => {
            let what = format!("session {id} is archived. Restore it with thread/unarchive first");
            WireError::Refused(what.into())
        }
        error => failed(error),
    }
}

/// Converts an error where no thread was named.
pub(crate) fn failed(error: AgentError) -> WireError {
    match error {
        // Nothing was stored, because another process was faster. A retry is forwarded there.
        AgentError::Refused(Refusal::Busy | Refusal::OwnedElsewhere) => WireError::Overloaded,
        AgentError::Refused(Refusal::OutcomeUnknown) => WireError::OutcomeUnknown,
        AgentError::Refused(Refusal::KeyReused) => WireError::KeyReused,
        AgentError::Refused(Refusal::NotSteerable { kind }) => WireError::NotSteerable(kind),
        AgentError::Refused(refusal) => WireError::Refused(refusal.to_string().into()),
        AgentError::Unavailable | AgentError::Read(ReadError::Unavailable(_)) => {
            WireError::StorageAway
        }
        AgentError::Read(ReadError::BadCursor) => WireError::Refused(
            "invalid cursor: pass the nextCursor of the previous page, or leave it out to start over".into(),
        ),
        AgentError::Read(error) => WireError::Storage(error.to_string()),
        AgentError::OwnedBy { node } => WireError::OwnedElsewhere {
            node,
            why: "it is alive".to_owned(),
        },
        error @ (AgentError::TooLong
        | AgentError::Archived
        | AgentError::RejectedByHook(_)
        | AgentError::InputInterrupted) => WireError::Refused(error.to_string().into()),
        AgentError::Ended => WireError::Overloaded,
    }
}

/// Rejects invalid budgets of the configuration.
pub(crate) fn check_budgets(config: &State) -> Result<(), WireError> {
    let config_of_server = config.with_request(None);
    budget::limits(&config_of_server, Scope::Turn)?;
    budget::limits(&config_of_server, Scope::Thread)?;
    Ok(())
}

/// Returns the settings of a new thread: from the request, else from the configuration.
pub(crate) fn settings(
    params: &wire::ThreadStartParams,
    config: &State,
) -> Result<Settings, WireError> {
    let tools = params.dynamic_tools.as_deref().unwrap_or_default();
    let client_tools =
        client_tools(tools).map_err(|error| WireError::Refused(error.to_string().into()))?;
    let config = config.with_request(params.config.as_ref());
    let cwd = params.cwd.as_deref().map(absolute_folder);
    let environment = RequestedEnvironment::of(
        params.environments.as_deref(),
        cwd.as_deref(),
        params.runtime_workspace_roots.as_deref(),
    )?;
    config.bounds(environment.no_environment != Some(true))?;
    let limits = RequestedSandbox {
        sandbox: params.sandbox.as_ref(),
        permissions: params.permissions.as_deref(),
    };
    let choice = limits.choice(&config)?;
    let choice = match choice {
        Some(choice) => choice,
        None => permissions::of_config(&config, None)?,
    };
    let text_of = |requested: &Option<String>, key: &str| {
        requested
            .clone()
            .or_else(|| config.text(key).map(str::to_owned))
    };
    let model = text_of(&params.model, "model");
    let provider = params.model_provider.as_deref();
    let model_choice = choose(config.table(), provider, model.as_deref());
    // An invalid configuration is reported, even if the request overrides it.
    permissions::check_mode(&config)?;
    let configured = config.approval_policy()?;
    let from_request = requested_approval(params.approval_policy.as_ref(), &config)?;
    let configured = configured.as_ref().map(approval).transpose()?;
    Ok(Settings {
        cwd: environment.cwd.or(cwd).unwrap_or_else(current_folder),
        roots: environment.roots.unwrap_or_default(),
        model: model_choice.model.map(str::to_owned),
        provider: model_choice.provider.map(str::to_owned),
        fallback: fallback(&config)?,
        window: positive_number(&config, "model_context_window"),
        compact_above: compact_above(&config),
        turn_budget: budget::limits(&config, Scope::Turn)?,
        thread_budget: budget::limits(&config, Scope::Thread)?,
        effort: config.text("model_reasoning_effort").map(str::to_owned),
        summary: config.text("model_reasoning_summary").map(str::to_owned),
        tier: match &params.service_tier {
            wire::Maybe::Value(tier) => Some(tier.clone()),
            _ => None,
        },
        personality: params.personality.as_ref().map(|it| it.as_str().to_owned()),
        base_instructions: params.base_instructions.clone(),
        developer_instructions: params.developer_instructions.clone(),
        approval: from_request.or(configured).unwrap_or_default(),
        reviewer: requested_reviewer(params.approvals_reviewer.as_ref(), &config)?
            .unwrap_or_default(),
        sandbox: sandbox_policy::of_choice(&choice)?,
        profile: choice.profile,
        client_tools,
        no_environment: environment.no_environment.unwrap_or_default(),
        variables: command_variables::variables(&config)?,
        ..Settings::default()
    })
}

/// Returns the fallback models, to call when the model fails.
fn fallback(config: &EffectiveConfig<'_>) -> Result<Vec<Route>, WireError> {
    let Some(value) = config.value("fallback") else {
        return Ok(Vec::new());
    };
    let route = |it: &toml::Value| it.as_str().and_then(Route::parse);
    let routes = value.as_array().into_iter().flatten();
    let routes: Vec<Option<Route>> = routes.map(route).collect();
    let routes: Option<Vec<Route>> = routes.into_iter().collect();
    routes
        .filter(|it| value.is_array() && it.len() <= FALLBACKS_MAX)
        .ok_or_else(|| {
            let what = format!(
                "`fallback` must be a list of at most {FALLBACKS_MAX} texts \"PROVIDER/MODEL\""
            );
            config.refused(what, &["fallback"]).into()
        })
}

/// Returns the number of tokens above which the history is compacted: as configured, or nine tenths
/// of the context window.
fn compact_above(config: &EffectiveConfig<'_>) -> Option<u64> {
    let limit = positive_number(config, "model_auto_compact_token_limit");
    limit.or_else(|| Some(positive_number(config, "model_context_window")? / 10 * 9))
}

/// Returns a number above zero.
fn positive_number(config: &EffectiveConfig<'_>, key: &str) -> Option<u64> {
    let number = config.value(key)?.as_integer()?;
    u64::try_from(number).ok().filter(|it| *it > 0)
}

/// Returns the settings that a turn changes, for itself and for later turns.
pub(crate) async fn change(
    state: &ServerState,
    params: &wire::TurnStartParams,
) -> Result<SettingsChange, WireError> {
    let summary = params.summary.as_ref();
    let environments = params.environments.as_deref();
    let roots = params.runtime_workspace_roots.as_deref();
    let cwd = params.cwd.as_deref().map(absolute_folder);
    let environment = RequestedEnvironment::of(environments, cwd.as_deref(), roots)?;
    let permissions = params.permissions.as_deref();
    let (sandbox, profile) =
        requested_sandbox(state, permissions, params.sandbox_policy.as_ref()).await?;
    Ok(SettingsChange {
        model: params.model.clone().map(Some),
        provider: params.model_provider.clone().map(Some),
        effort: params.effort.clone().map(Some),
        summary: summary.map(|it| Some(it.as_str().to_owned())),
        cwd: environment.cwd.or(cwd),
        roots: environment.roots,
        no_environment: environment.no_environment,
        approval: params.approval_policy.as_ref().map(approval).transpose()?,
        reviewer: params
            .approvals_reviewer
            .as_ref()
            .map(reviewer)
            .transpose()?,
        sandbox,
        profile,
        ..SettingsChange::default()
    })
}

/// Returns the sandbox that a request names for an existing thread, and its profile: by the
/// profile's id, or as a policy.
pub(crate) async fn requested_sandbox(
    state: &ServerState,
    permissions: Option<&str>,
    policy: Option<&wire::SandboxPolicy>,
) -> Result<(Option<Sandbox>, Option<Option<PermissionProfile>>), WireError> {
    match (permissions, policy) {
        (None, None) => Ok((None, None)),
        (Some(_), Some(_)) => Err(not_both("sandboxPolicy")),
        (None, Some(policy)) => Ok((Some(sandbox_policy::stored(policy)?), Some(None))),
        (Some(id), None) => {
            let config = state.config_now().await?;
            let choice = permissions::of_profile(&config.with_request(None), id)?;
            let sandbox = sandbox_policy::of_choice(&choice)?;
            profiles::allowed(state, choice.profile.as_ref(), &sandbox).await?;
            Ok((Some(sandbox), Some(choice.profile)))
        }
    }
}

/// Returns the error for a request that names a sandbox twice.
fn not_both(member: &str) -> WireError {
    WireError::Refused(format!("`permissions` cannot be combined with `{member}`").into())
}

/// The sandbox of a request that opens a thread.
struct RequestedSandbox<'a> {
    sandbox: Option<&'a wire::SandboxMode>,
    permissions: Option<&'a str>,
}

impl RequestedSandbox<'_> {
    /// Returns the named sandbox; the configuration has the options of a mode. The request's own
    /// configuration may name the same sandbox, and no other.
    fn choice(&self, config: &EffectiveConfig<'_>) -> Result<Option<SandboxChoice>, WireError> {
        let from_params = match (self.sandbox, self.permissions) {
            (None, None) => None,
            (Some(_), Some(_)) => return Err(not_both("sandbox")),
            (Some(mode), None) => {
                let choice = permissions::of_config(config, Some(mode.as_str()))?;
                Some(("sandbox".to_owned(), choice))
            }
            (None, Some(id)) => {
                let choice = permissions::of_named_profile(config, id)?;
                Some(("permissions".to_owned(), choice))
            }
        };
        let from_config = permissions::of_request(config)?.into_iter();
        let from_config: Vec<_> = from_config
            .map(|(key, it)| (format!("config.{key}"), it))
            .collect();
        let choices: Vec<_> = from_params.iter().chain(&from_config).collect();
        for pair in choices.windows(2) {
            let [(first, choice), (second, next)] = pair else {
                continue;
            };
            if choice.sandbox != next.sandbox {
                return Err(contradiction(first, second));
            }
        }
        Ok(from_params.map(|(_, choice)| choice))
    }
}

/// Returns the value that a member of a request or its own configuration names; both may name the
/// same value.
fn agreed_value<T: PartialEq>(
    (member, named): (&str, Option<T>),
    (key, configured): (&str, Option<T>),
) -> Result<Option<T>, WireError> {
    match (named, configured) {
        (Some(named), Some(configured)) if named != configured => {
            Err(contradiction(member, &format!("config.{key}")))
        }
        (named, configured) => Ok(named.or(configured)),
    }
}

/// Returns the error for two members that bound the same and differ.
fn contradiction(first: &str, second: &str) -> WireError {
    WireError::Setting(SettingError::Contradiction {
        first: first.to_owned(),
        second: second.to_owned(),
    })
}

/// Returns the approval policy of the request, or of its own configuration.
fn requested_approval(
    named: Option<&wire::AskForApproval>,
    config: &EffectiveConfig<'_>,
) -> Result<Option<ApprovalPolicy>, WireError> {
    let is_own = config.names(APPROVAL_POLICY);
    let mut configured = None;
    // The client gets an error as well if the configuration of the server is invalid.
    if is_own || named.is_some() {
        configured = config.approval_policy()?.filter(|_| is_own);
    }
    let configured = configured.as_ref().map(approval).transpose()?;
    let named = named.map(approval).transpose()?;
    agreed_value(("approvalPolicy", named), (APPROVAL_POLICY, configured))
}

/// Converts an approval policy. Rejects an unknown one, because the client relies on it.
pub(crate) fn approval(policy: &wire::AskForApproval) -> Result<ApprovalPolicy, WireError> {
    Ok(match policy {
        wire::AskForApproval::Untrusted => ApprovalPolicy::Untrusted,
        wire::AskForApproval::OnRequest => ApprovalPolicy::OnRequest,
        wire::AskForApproval::Never => ApprovalPolicy::Never,
        wire::AskForApproval::Granular(it) => {
            ApprovalPolicy::Granular(serde_json::to_value(it).unwrap_or_default())
        }
        wire::AskForApproval::Unrecognized(_) => {
            return Err(not_known("approvalPolicy", wire::AskForApproval::KNOWN));
        }
    })
}

pub(crate) fn reviewer(reviewer: &wire::ApprovalsReviewer) -> Result<Reviewer, WireError> {
    match reviewer {
        wire::ApprovalsReviewer::AutoReview | wire::ApprovalsReviewer::GuardianSubagent => {
            Ok(Reviewer::Agent)
        }
        wire::ApprovalsReviewer::User => Ok(Reviewer::User),
        wire::ApprovalsReviewer::Unrecognized(_) => Err(not_known(
            "approvalsReviewer",
            wire::ApprovalsReviewer::KNOWN,
        )),
    }
}

/// Returns the reviewer of approvals: from the request, else from its own configuration.
fn requested_reviewer(
    named: Option<&wire::ApprovalsReviewer>,
    config: &EffectiveConfig<'_>,
) -> Result<Option<Reviewer>, WireError> {
    const KEY: &str = "approvals_reviewer";
    let value = config.value(KEY).filter(|_| config.names(KEY));
    let configured = value.map(|value| {
        let name = value.as_str().map(wire::ApprovalsReviewer::from);
        let found_reviewer = name.and_then(|it| reviewer(&it).ok());
        found_reviewer.ok_or_else(|| not_known(KEY, wire::ApprovalsReviewer::KNOWN))
    });
    let named = named.map(reviewer).transpose()?;
    agreed_value(("approvalsReviewer", named), (KEY, configured.transpose()?))
}

fn not_known(what: &str, known: &[&str]) -> WireError {
    WireError::Refused(format!("unknown {what}; use one of {}", known.join(", ")).into())
}

/// Returns the absolute path of a folder that a client names. A relative one is relative to the
/// folder the server runs in, as in Codex.
pub(super) fn absolute_folder(folder: &str) -> String {
    let relative = Some(Path::new(folder)).filter(|it| it.is_relative());
    let absolute = relative.and_then(|it| std::path::absolute(it).ok());
    let absolute = absolute.and_then(|it| it.into_os_string().into_string().ok());
    absolute.unwrap_or_else(|| folder.to_owned())
}

/// Returns the folder the server runs in.
fn current_folder() -> String {
    std::env::current_dir().map_or_else(|_| "/".to_owned(), |it| it.display().to_string())
}

/// Whether a thread has work that its next owner starts.
pub(crate) fn has_work(peek: &PeekResult) -> bool {
    peek.thread.turn().is_some() || !peek.thread.pending().is_empty()
}

/// Returns the turn that a command started or joined.
pub(crate) fn receiving_turn(
    id: ThreadId,
    done: CommandResult<'_>,
) -> Result<wire::TurnId, WireError> {
    match done.map_err(|error| refused(id, error))?.outcome {
        CommandOutcome::Started { turn } | CommandOutcome::Joined { turn } => Ok(turn),
        CommandOutcome::Done {} | CommandOutcome::Kept { .. } => Err(WireError::Dropped),
    }
}

/// Returns a turn without any items yet.
pub(crate) fn started_turn(id: wire::TurnId) -> wire::Turn {
    wire::Turn {
        id,
        items: Vec::new(),
        status: wire::TurnStatus::InProgress,
        completed_at: None,
        duration_ms: None,
        error: None,
        items_view: wire::TurnItemsView::NotLoaded,
        root_turn_id: None,
        started_at: None,
    }
}

/// Stops the running turn of a thread, and waits until it has stopped.
pub(crate) async fn stop(
    threads: &Threads,
    id: ThreadId,
    principal: Option<String>,
) -> Result<(), AgentError> {
    let interrupt = Command::Interrupt(Interrupt {
        turn: None,
        cause: Cause::Client { principal },
    });
    let (reply, answer) = oneshot::channel();
    let on_result = move |done: CommandResult<'_>| drop(reply.send(done.map(drop)));
    threads.send_command(id, interrupt, on_result).await;
    match answer.await.unwrap_or(Err(AgentError::Ended)) {
        Err(AgentError::Refused(Refusal::NoTurn)) => Ok(()),
        stopped => stopped,
    }
}

/// Returns the user of the connection, for the record.
pub(crate) fn principal(session: &Session) -> Option<String> {
    session.peer.principal.as_deref().map(str::to_owned)
}

/// Registers the thread with the session, and returns its subscriber.
pub(crate) fn subscriber(session: &Arc<Session>, id: ThreadId) -> Arc<dyn Subscriber> {
    session.threads().insert(id);
    session_subscriber(session)
}

/// Returns a request to subscribe to an existing thread without changing its settings.
pub(crate) fn subscribe_request(session: &Arc<Session>, id: ThreadId) -> SubscribeRequest {
    SubscribeRequest {
        subscriber: subscriber(session, id),
        change: ChangeSettings::default(),
        with_usage: false,
        cursor: None,
    }
}

/// Ends all subscriptions of a connection that ends.
pub(crate) async fn unsubscribe_all(threads: &Threads, session: &Arc<Session>) {
    let thread_ids = std::mem::take(&mut *session.threads());
    let subscriber = session_subscriber(session);
    for id in thread_ids {
        threads.unsubscribe(id, subscriber.clone()).await;
    }
}

/// Returns the connection's subscriber, which is created once and stored in the session.
pub(crate) fn session_subscriber(session: &Arc<Session>) -> Arc<dyn Subscriber> {
    session
        .subscriber
        .get_or_init(|| Arc::new(SessionSubscriber(Arc::downgrade(session))))
        .clone()
}
