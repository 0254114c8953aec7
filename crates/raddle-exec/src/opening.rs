//! Connects and opens the thread of a plan: the client's identity, and the reads before the turn.

use std::path::PathBuf;
use std::process::ExitStatus;

use raddle_client::{
    CallError, Client, ConnectError, DeferredAnswers, Options, ServerAddress, ThreadFollower,
};
use raddle_console::print_line;
use raddle_protocol::methods::{ConfigRead, ThreadList, ThreadUnarchive};
use raddle_protocol::{
    AskForApproval, ConfigReadParams, ThreadId, ThreadUnarchiveParams, extension,
};
use serde_json::{Value, json};

use super::limits;
use super::options::{ThreadSelector, Unattended};
use super::plan::Plan;
use super::vendor;

/// Sources of the threads that `--last` considers: all of them.
const KINDS: [&str; 4] = ["cli", "vscode", "exec", "appServer"];

/// The variable in which the stock SDK names itself.
const ORIGINATOR: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

/// Reason why the thread of a plan cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Connect(ConnectError),
    #[error(
        "{error}; start a server with `raddle daemon start` and use --remote unix://, or with \
         `raddle app-server --listen unix://{}`", .path.display()
    )]
    NoSocket { path: PathBuf, error: ConnectError },
    /// A child that failed, after it has explained that on stderr.
    #[error("{0}; its message is on stderr")]
    Explained(ConnectError),
    /// A child that ended without a message.
    #[error("{0}; `raddle app-server </dev/null` says more")]
    ServerEnded(ConnectError),
    #[error("the configuration cannot be read")]
    Config(#[source] FailedCall),
    #[error("the thread cannot be started")]
    Start(#[source] FailedCall),
    #[error("the thread {thread} cannot be resumed")]
    Resume {
        thread: ThreadId,
        source: FailedCall,
    },
    #[error(
        "another client has the thread {thread} open, or a turn runs in it, so {limit} was not \
         changed; close it there or wait, or leave the option out"
    )]
    InUse {
        thread: ThreadId,
        limit: &'static str,
    },
    #[error("the threads cannot be listed")]
    List(#[source] FailedCall),
    #[error(transparent)]
    ListParams(serde_json::Error),
    #[error("there is no thread to continue")]
    NoThread,
    #[error("there is no thread of {} to continue; --all looks in every folder", .cwd.display())]
    NoThreadOf { cwd: PathBuf },
}

/// A failed call. Its text is the server's message alone.
#[derive(Debug, thiserror::Error)]
#[error("{}", error_text(.0))]
pub(crate) struct FailedCall(CallError);

impl OpenError {
    /// Whether the reason is on stderr already.
    pub(crate) fn is_explained(&self) -> bool {
        matches!(self, Self::Explained(_))
    }
}

pub(crate) async fn connect(address: ServerAddress) -> Result<Client, OpenError> {
    let socket = match &address {
        ServerAddress::Unix(path) => Some(path.clone()),
        _ => None,
    };
    let client = Client::connect(address, options(), DeferredAnswers).await;
    client.map_err(|error| match &error {
        // `raddle app-server` prints its error before it exits with a status; a signal prints none.
        ConnectError::Ended(Some(status)) if is_failure(*status) => OpenError::Explained(error),
        ConnectError::Ended(_) => OpenError::ServerEnded(error),
        ConnectError::Unreachable(why) => match socket.filter(|_| is_absence(why)) {
            Some(path) => OpenError::NoSocket { path, error },
            None => OpenError::Connect(error),
        },
        _ => OpenError::Connect(error),
    })
}

/// Whether no server listens on a socket, rather than one that does not accept this user.
fn is_absence(why: &str) -> bool {
    ["No such file", "Connection refused"]
        .iter()
        .any(|it| why.contains(it))
}

fn is_failure(status: ExitStatus) -> bool {
    status.code().is_some_and(|code| code != 0)
}

/// Opens the thread of the plan.
pub(crate) async fn open(plan: &Plan, client: &Client) -> Result<ThreadFollower, OpenError> {
    let thread = match plan.options.thread {
        ThreadSelector::New => {
            let mut params = plan.start();
            params.model_provider = provider(plan, client).await?;
            let opened = client.start(params).await;
            let opened = opened.map_err(|error| OpenError::Start(FailedCall(error)))?;
            if plan.options.is_copied && !plan.options.quiet {
                print_line(&format!(
                    "raddle: the agent works in a copy; `raddle apply --thread {}` applies its changes",
                    opened.thread().thread.id
                ));
            }
            return Ok(opened);
        }
        ThreadSelector::Old(thread) => thread,
        ThreadSelector::Last { of_any_folder } => last(plan, client, of_any_folder).await?,
    };
    let failed = |error| OpenError::Resume {
        thread,
        source: FailedCall(error),
    };
    let follow = match client.resume(plan.resume(thread)).await {
        Err(CallError::Refused(error)) if is_archived(&error.message, thread) => {
            let params = ThreadUnarchiveParams {
                thread_id: thread,
                client_request_id: None,
            };
            let restored = client.call::<ThreadUnarchive>(params).await;
            restored.map_err(failed)?;
            print_line("raddle: the thread was archived, and is listed again");
            client.resume(plan.resume(thread)).await.map_err(failed)?
        }
        opened => opened.map_err(failed)?,
    };
    // The server changes no settings under another client, and says so in no other way.
    match limits::first_unchanged(plan, follow.thread()) {
        Some(limit) => Err(OpenError::InUse { thread, limit }),
        None => Ok(follow),
    }
}

/// Whether a server rejects a thread because it is archived. The error has no other mark.
fn is_archived(message: &str, thread: ThreadId) -> bool {
    message.starts_with(&format!("session {thread} is archived."))
}

/// Returns the newest thread.
async fn last(plan: &Plan, client: &Client, of_any_folder: bool) -> Result<ThreadId, OpenError> {
    let cwd = (!of_any_folder).then(|| plan.cwd.display().to_string());
    let params = json!({ "limit": 1, "sortKey": "updated_at", "cwd": cwd, "sourceKinds": KINDS });
    let params = serde_json::from_value(params).map_err(OpenError::ListParams)?;
    let threads = client.call::<ThreadList>(params).await;
    let threads = threads.map_err(|error| OpenError::List(FailedCall(error)))?;
    match threads.data.first() {
        Some(thread) => Ok(thread.id),
        None if of_any_folder => Err(OpenError::NoThread),
        None => Err(OpenError::NoThreadOf {
            cwd: plan.cwd.clone(),
        }),
    }
}

/// Returns the approval policy for this turn, as configured, if a user is present now and the
/// thread was last used unattended.
pub(crate) async fn asking_again(
    plan: &Plan,
    client: &Client,
    follow: &ThreadFollower,
) -> Result<Option<AskForApproval>, OpenError> {
    let is_silent = follow.thread().approval_policy == Some(AskForApproval::Never);
    let has_user = plan.unattended == Unattended::Ask;
    let is_explicit = plan.options.thread == ThreadSelector::New || plan.approval().is_some();
    if is_explicit || !is_silent || !has_user {
        return Ok(None);
    }
    let config = config(client).await?;
    let policy = config.get("approval_policy").cloned().unwrap_or_default();
    // The default of a server without a configured policy.
    Ok(Some(match serde_json::from_value(policy) {
        Err(_) | Ok(AskForApproval::Unrecognized(_)) => AskForApproval::OnRequest,
        Ok(policy) => policy,
    }))
}

/// Returns the provider that the arguments name beside the model, or the one to use if only the
/// SDK's key or address selects one.
async fn provider(plan: &Plan, client: &Client) -> Result<Option<String>, OpenError> {
    let named = plan.setting("model_provider");
    if let Some(named) = named.as_ref().and_then(Value::as_str) {
        return Ok(Some(named.to_owned()));
    }
    if plan.options.remote.is_some() || !vendor::is_given(&plan.settings) {
        return Ok(None);
    }
    let config = config(client).await?;
    let model = plan.options.model.as_deref().or(config["model"].as_str());
    let is_named = config["model_provider"].is_string() || model.is_some_and(|it| it.contains('/'));
    Ok((!is_named).then(|| vendor::PROVIDER.to_owned()))
}

async fn config(client: &Client) -> Result<Value, OpenError> {
    let params = ConfigReadParams {
        cwd: None,
        include_layers: false,
    };
    let read = client.call::<ConfigRead>(params).await;
    read.map(|it| it.config)
        .map_err(|error| OpenError::Config(FailedCall(error)))
}

fn options() -> Options {
    let is_name = |name: &String| !name.is_empty() && name.chars().all(|it| it.is_ascii_graphic());
    let name = std::env::var(ORIGINATOR).ok().filter(is_name);
    let name = name.unwrap_or_else(|| "raddle-exec".to_owned());
    let mut options = Options::new(name, env!("CARGO_PKG_VERSION"));
    // For the folders of `--add-dir`.
    options.experimental = true;
    // For the choice of hunks.
    options
        .extensions
        .insert(extension::HUNKS.to_owned(), json!({}));
    options
}

/// Returns the message of a rejected call.
pub(crate) fn error_text(error: &CallError) -> String {
    match error {
        CallError::Refused(error) => error.message.to_string(),
        error => error.to_string(),
    }
}
