//! The live threads, and how a client's words become theirs.

pub(crate) mod answers;
mod budget;
pub(crate) mod cursors;
pub(crate) mod end_cursors;
mod environment;
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

pub use self::budget::of_table as limits;
pub(crate) use self::environment::RequestedEnvironment;
pub(crate) use self::injected_items::injected;
pub(crate) use self::input::{message, message_to_queue};
pub(crate) use self::overrides::Overrides;
pub(crate) use self::route::routed;

use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::Duration;

use raddle_agent::{
    AgentError, CommandResult, Delivery, Permit, SubscribeRequest, Subscriber, Threads,
    client_tools,
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

use super::ServerState;
use super::config::{EffectiveConfig, State, approval as policy};
use super::permissions::{self, SandboxChoice};
use super::processes;
use super::providers::choose;
use crate::session::Session;
use crate::wire_error::WireError;

/// A client that has this much queued is told no more of its threads for now: it reads on from the journal,
const QUEUED_BYTES_MAX: usize = 4 << 20;

/// when it has read all but this much.
const QUEUED_BYTES_LOW: usize = 1 << 20;

/// A client that has this much queued is let go: what is no record cannot be told again.
const NOTICE_BYTES_MAX: usize = 32 << 20;

const TOO_SLOW: Close = Close {
    code: 1008,
    reason: Cow::Borrowed("too slow for what it is told"),
};

/// How many models may be asked in place of one that failed.
const FALLBACKS_MAX: usize = 8;

/// What an answer that shows turns or items may take.
const ANSWER_BYTES: usize = 8 << 20;

/// How long who asks for one waits for room.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Room for an answer that shows turns or items; it is taken before they are read. Whoever does not read what
/// was answered before is refused.
pub(crate) async fn reserve_answer(session: &Session) -> Result<OutgoingPermit, WireError> {
    let room = timeout(RESERVE_TIMEOUT, session.outgoing.reserve(ANSWER_BYTES)).await;
    room.map_err(|_| WireError::Overloaded)
}

/// A connection as one who hears of threads.
#[derive(Debug)]
pub(crate) struct SessionSubscriber(pub(crate) Weak<Session>);

impl Subscriber for SessionSubscriber {
    fn deliver(&self, heard: &Delivery) -> bool {
        let Some(session) = self.0.upgrade().filter(|session| !session.is_gone()) else {
            return false;
        };
        match heard {
            Delivery::Record { notification, seq } => {
                session.tell_numbered(notification, seq.map(|seq| seq.0));
            }
            Delivery::Notice(notice) => {
                if session.outgoing.queued_bytes() > NOTICE_BYTES_MAX {
                    session.metrics.too_slow.add(1);
                    session.outgoing.abort(TOO_SLOW);
                    return false;
                }
                session.tell(notice);
            }
            Delivery::Request { id, method, params } => {
                session.ask(id, method, &for_client(&session, method, params));
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

    fn has_capacity(&self) -> bool {
        let session = self.0.upgrade();
        session.is_none_or(|session| session.outgoing.queued_bytes() <= QUEUED_BYTES_MAX)
    }

    fn reserve(&self, bytes: usize) -> BoxFuture<'static, Option<Permit>> {
        let outgoing = self.0.upgrade().map(|session| session.outgoing.clone());
        Box::pin(async move {
            let outgoing = outgoing?;
            let room = outgoing.reserve_when_low(bytes, QUEUED_BYTES_LOW).await;
            (!outgoing.is_gone()).then(|| Box::new(room) as Permit)
        })
    }
}

/// The params of a request without what only clients know that asked for what is not settled yet.
fn for_client<'a>(session: &Session, method: &str, params: &'a Value) -> Cow<'a, Value> {
    let is_experimental = session.client().is_some_and(|it| it.experimental);
    if is_experimental || method != wire::ItemCommandExecutionRequestApproval::NAME {
        return Cow::Borrowed(params);
    }
    let mut params = params.clone();
    if let Some(members) = params.as_object_mut() {
        members.remove("availableDecisions");
        members.remove("additionalPermissions");
    }
    Cow::Owned(params)
}

/// Why a thread did not do what it was asked, as the wire says it.
pub(crate) fn refused(id: ThreadId, error: AgentError) -> WireError {
    match error {
        AgentError::Read(ReadError::NotFound) | AgentError::Refused(Refusal::Deleted) => {
            WireError::Refused(format!("thread not found: {id}").into())
        }
        error => failed(error),
    }
}

/// The same where no thread was named.
pub(crate) fn failed(error: AgentError) -> WireError {
    match error {
        // Nothing was stored of what another process was faster with. Who comes again is sent there.
        AgentError::Refused(Refusal::Busy | Refusal::OwnedElsewhere) => WireError::Overloaded,
        AgentError::Refused(Refusal::KeyReused) => WireError::KeyReused,
        AgentError::Refused(Refusal::NotSteerable { kind }) => WireError::NotSteerable(kind),
        AgentError::Refused(refusal) => WireError::Refused(refusal.to_string().into()),
        AgentError::Unavailable | AgentError::Read(ReadError::Unavailable(_)) => {
            WireError::StorageAway
        }
        AgentError::Read(ReadError::BadCursor) => WireError::Refused(
            "invalid cursor: no page of this list gave it; leave it out to begin anew".into(),
        ),
        AgentError::Read(error) => WireError::Storage(error.to_string()),
        AgentError::OwnedBy { node } => WireError::OwnedElsewhere {
            node,
            why: "it is alive".to_owned(),
        },
        error @ AgentError::TooLong => WireError::Refused(error.to_string().into()),
        AgentError::Ended => WireError::Overloaded,
    }
}

/// Refuses budgets of the configuration that cannot be.
pub(crate) fn check_budgets(config: &State) -> Result<(), WireError> {
    let said = config.with_request(None);
    budget::limits(&said, Scope::Turn)?;
    budget::limits(&said, Scope::Thread).map(drop)
}

/// The settings a thread begins with: what the client says, else what the configuration says.
pub(crate) fn settings(
    params: &wire::ThreadStartParams,
    config: &State,
) -> Result<Settings, WireError> {
    let tools = params.dynamic_tools.as_deref().unwrap_or_default();
    let client_tools =
        client_tools(tools).map_err(|error| WireError::Refused(error.to_string().into()))?;
    let config = config.with_request(params.config.as_ref());
    let place = RequestedEnvironment::of(
        params.environments.as_deref(),
        params.cwd.as_deref(),
        params.runtime_workspace_roots.as_deref(),
    )?;
    config.bounds(place.no_environment != Some(true))?;
    let limits = RequestedSandbox {
        sandbox: params.sandbox.as_ref(),
        permissions: params.permissions.as_deref(),
    };
    let choice = limits.choice(&config)?;
    let choice = match choice {
        Some(choice) => choice,
        None => permissions::of_config(&config, None)?,
    };
    let said = |said: &Option<String>, key: &str| {
        said.clone().or_else(|| config.text(key).map(str::to_owned))
    };
    let model = said(&params.model, "model");
    let provider = params.model_provider.as_deref();
    let chosen = choose(config.table(), provider, model.as_deref());
    // What is wrong in the configuration is said, whoever else says something.
    let configured = policy::of_config(&config)?;
    let asked = asked_approval(params.approval_policy.as_ref(), &config)?;
    let configured = configured.as_ref().map(approval).transpose()?;
    Ok(Settings {
        cwd: place
            .cwd
            .or_else(|| params.cwd.clone())
            .unwrap_or_else(here),
        roots: place.roots.unwrap_or_default(),
        model: chosen.model.map(str::to_owned),
        provider: chosen.provider.map(str::to_owned),
        fallback: fallback(&config)?,
        window: whole(&config, "model_context_window"),
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
        approval: asked.or(configured).unwrap_or_default(),
        reviewer: asked_reviewer(params.approvals_reviewer.as_ref(), &config)?.unwrap_or_default(),
        sandbox: choice.sandbox()?,
        profile: choice.profile,
        client_tools,
        no_environment: place.no_environment.unwrap_or_default(),
        ..Settings::default()
    })
}

/// Who is asked when the model fails.
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
            config.refused(what, &["fallback"])
        })
}

/// Above how many tokens the history is condensed: as the configuration says, or at nine tenths of what the
/// model can read.
fn compact_above(config: &EffectiveConfig<'_>) -> Option<u64> {
    let limit = whole(config, "model_auto_compact_token_limit");
    limit.or_else(|| Some(whole(config, "model_context_window")? / 10 * 9))
}

/// A number that says something.
fn whole(config: &EffectiveConfig<'_>, key: &str) -> Option<u64> {
    let number = config.value(key)?.as_integer()?;
    u64::try_from(number).ok().filter(|it| *it > 0)
}

/// What a turn wishes to be otherwise, for itself and for later turns.
pub(crate) async fn change(
    rooms: &ServerState,
    params: &wire::TurnStartParams,
) -> Result<SettingsChange, WireError> {
    let summary = params.summary.as_ref();
    let environments = params.environments.as_deref();
    let roots = params.runtime_workspace_roots.as_deref();
    let place = RequestedEnvironment::of(environments, params.cwd.as_deref(), roots)?;
    let permissions = params.permissions.as_deref();
    let (sandbox, profile) = changed(rooms, permissions, params.sandbox_policy.as_ref()).await?;
    Ok(SettingsChange {
        model: params.model.clone().map(Some),
        provider: params.model_provider.clone().map(Some),
        effort: params.effort.clone().map(Some),
        summary: summary.map(|it| Some(it.as_str().to_owned())),
        cwd: place.cwd.or_else(|| params.cwd.clone()),
        roots: place.roots,
        no_environment: place.no_environment,
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

/// The sandbox that a request names for a thread that is there, and its profile: by the profile's id, or spelled out.
pub(crate) async fn changed(
    rooms: &ServerState,
    permissions: Option<&str>,
    policy: Option<&wire::SandboxPolicy>,
) -> Result<(Option<Sandbox>, Option<Option<PermissionProfile>>), WireError> {
    match (permissions, policy) {
        (None, None) => Ok((None, None)),
        (Some(_), Some(_)) => Err(not_both("sandboxPolicy")),
        (None, Some(policy)) => Ok((Some(sandbox(policy)?), Some(None))),
        (Some(id), None) => {
            let config = rooms.config_now().await?;
            let choice = permissions::of_profile(&config.with_request(None), id)?;
            let sandbox = choice.sandbox()?;
            permissions::allowed(rooms, choice.profile.as_ref(), &sandbox).await?;
            Ok((Some(sandbox), Some(choice.profile)))
        }
    }
}

/// That a request says twice how far commands are fenced in.
fn not_both(member: &str) -> WireError {
    WireError::Refused(format!("`permissions` cannot be combined with `{member}`").into())
}

/// What a request that opens a thread says of its sandbox.
struct RequestedSandbox<'a> {
    sandbox: Option<&'a wire::SandboxMode>,
    permissions: Option<&'a str>,
}

impl RequestedSandbox<'_> {
    /// The sandbox that it names; how far a mode goes is for the configuration to say. The request's own configuration
    /// may name the same sandbox, and no other.
    fn choice(&self, config: &EffectiveConfig<'_>) -> Result<Option<SandboxChoice>, WireError> {
        let named = match (self.sandbox, self.permissions) {
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
        let own = permissions::of_request(config)?.into_iter();
        let own: Vec<_> = own.map(|(key, it)| (format!("config.{key}"), it)).collect();
        let all: Vec<_> = named.iter().chain(&own).collect();
        for pair in all.windows(2) {
            let [(one, choice), (other, next)] = pair else {
                continue;
            };
            if choice.policy != next.policy {
                return Err(WireError::Contradiction {
                    one: one.clone(),
                    other: other.clone(),
                });
            }
        }
        Ok(named.map(|(_, choice)| choice))
    }
}

/// The value of a bound that a member of a request names, or its own configuration; both may name the same value.
fn agreed<T: PartialEq>(
    (member, named): (&str, Option<T>),
    (key, configured): (&str, Option<T>),
) -> Result<Option<T>, WireError> {
    match (named, configured) {
        (Some(named), Some(configured)) if named != configured => Err(WireError::Contradiction {
            one: member.to_owned(),
            other: format!("config.{key}"),
        }),
        (named, configured) => Ok(named.or(configured)),
    }
}

/// When to ask, as the request says, or its own configuration.
fn asked_approval(
    named: Option<&wire::AskForApproval>,
    config: &EffectiveConfig<'_>,
) -> Result<Option<ApprovalPolicy>, WireError> {
    let is_own = config.names(policy::KEY);
    let mut configured = None;
    // The client is told as well if the configuration of the server is wrong.
    if is_own || named.is_some() {
        configured = policy::of_config(config)?.filter(|_| is_own);
    }
    let configured = configured.as_ref().map(approval).transpose()?;
    let named = named.map(approval).transpose()?;
    agreed(("approvalPolicy", named), (policy::KEY, configured))
}

/// When to ask. What is not understood is refused: whoever said it relies on it.
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

/// Who answers: whom the request names, else whom its own configuration names.
fn asked_reviewer(
    named: Option<&wire::ApprovalsReviewer>,
    config: &EffectiveConfig<'_>,
) -> Result<Option<Reviewer>, WireError> {
    const KEY: &str = "approvals_reviewer";
    let said = config.value(KEY).filter(|_| config.names(KEY));
    let configured = said.map(|said| {
        let said = said.as_str().map(wire::ApprovalsReviewer::from);
        let found = said.and_then(|it| reviewer(&it).ok());
        found.ok_or_else(|| not_known(KEY, wire::ApprovalsReviewer::KNOWN))
    });
    let named = named.map(reviewer).transpose()?;
    agreed(("approvalsReviewer", named), (KEY, configured.transpose()?))
}

fn not_known(what: &str, known: &[&str]) -> WireError {
    WireError::Refused(format!("the {what} is not known; use one of {}", known.join(", ")).into())
}

/// A policy as a thread keeps it. What is not understood is refused.
pub(crate) fn sandbox(policy: &wire::SandboxPolicy) -> Result<Sandbox, WireError> {
    Ok(match policy {
        wire::SandboxPolicy::DangerFullAccess => Sandbox::FullAccess,
        wire::SandboxPolicy::ReadOnly(it) => Sandbox::ReadOnly {
            roots: Vec::new(),
            network: it.network_access,
        },
        wire::SandboxPolicy::ExternalSandbox(it) => Sandbox::External {
            network: it.network_access == wire::NetworkAccess::Enabled,
        },
        wire::SandboxPolicy::WorkspaceWrite(it) => {
            for root in &it.writable_roots {
                super::files::absolute(root)?;
            }
            Sandbox::WorkspaceWrite {
                roots: it.writable_roots.clone(),
                network: it.network_access,
                without_tmp: it.exclude_slash_tmp,
                without_tmpdir: it.exclude_tmpdir_env_var,
            }
        }
        wire::SandboxPolicy::Unrecognized(_) => return Err(processes::unknown_policy()),
    })
}

/// The folder the server runs in.
fn here() -> String {
    std::env::current_dir().map_or_else(|_| "/".to_owned(), |it| it.display().to_string())
}

/// The turn that took what an order brought.
pub(crate) fn taker(id: ThreadId, done: CommandResult<'_>) -> Result<wire::TurnId, WireError> {
    match done.map_err(|error| refused(id, error))?.outcome {
        CommandOutcome::Started { turn } | CommandOutcome::Joined { turn } => Ok(turn),
        CommandOutcome::Done {} | CommandOutcome::Kept { .. } => Err(WireError::Dropped),
    }
}

/// A turn of which nothing has happened yet.
pub(crate) fn begun(id: wire::TurnId) -> wire::Turn {
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

/// Stops whatever runs in a thread, and waits until it has stopped.
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
    let told = move |done: CommandResult<'_>| drop(reply.send(done.map(drop)));
    threads.send_command(id, interrupt, told).await;
    match answer.await.unwrap_or(Err(AgentError::Ended)) {
        Err(AgentError::Refused(Refusal::NoTurn)) => Ok(()),
        stopped => stopped,
    }
}

/// Who asks, for the record.
pub(crate) fn principal(session: &Session) -> Option<String> {
    session.peer.principal.as_deref().map(str::to_owned)
}

/// A connection as one who is to hear of a thread.
pub(crate) fn subscriber(session: &Arc<Session>, id: ThreadId) -> Arc<dyn Subscriber> {
    session.threads().insert(id);
    session_subscriber(session)
}

/// A connection as one who comes to a thread that is there, and changes nothing by that.
pub(crate) fn subscribe_request(session: &Arc<Session>, id: ThreadId) -> SubscribeRequest {
    SubscribeRequest {
        subscriber: subscriber(session, id),
        change: ChangeSettings::default(),
        with_usage: false,
        seen: None,
    }
}

/// A connection that ends hears no more of any thread.
pub(crate) async fn unsubscribe_all(threads: &Threads, session: &Arc<Session>) {
    let heard = std::mem::take(&mut *session.threads());
    let ear = session_subscriber(session);
    for id in heard {
        threads.unsubscribe(id, ear.clone()).await;
    }
}

/// A connection's ear, made once and kept with it.
pub(crate) fn session_subscriber(session: &Arc<Session>) -> Arc<dyn Subscriber> {
    session
        .subscriber
        .get_or_init(|| Arc::new(SessionSubscriber(Arc::downgrade(session))))
        .clone()
}
