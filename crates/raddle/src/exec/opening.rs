//! Connects and opens the thread of a plan: the client's identity, and the reads before the turn.

use raddle_client::{CallError, Client, ConnectError, Options, ServerAddress, ThreadFollower};
use raddle_protocol::methods::{ConfigRead, ThreadList};
use raddle_protocol::{AskForApproval, ConfigReadParams, ThreadId};
use serde_json::{Value, json};

use super::plan::{Plan, ThreadSelector};
use super::questions::DeferredAnswers;
use super::vendor;
use crate::cli::Unattended;

/// Sources of the threads that `--last` considers: all of them.
const KINDS: [&str; 4] = ["cli", "vscode", "exec", "appServer"];

/// The variable in which the stock SDK names itself.
const ORIGINATOR: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

pub(super) async fn connect(address: ServerAddress) -> Result<Client, String> {
    let client = Client::connect(address, options(), DeferredAnswers).await;
    client.map_err(|error| unreachable(&error))
}

/// Opens the thread of the plan.
pub(super) async fn open(plan: &Plan, client: &Client) -> Result<ThreadFollower, String> {
    let thread = match plan.thread {
        ThreadSelector::New => {
            let mut params = plan.start();
            params.model_provider = provider(plan, client).await?;
            let opened = client.start(params).await;
            return opened
                .map_err(|error| format!("the thread cannot be started: {}", error_text(&error)));
        }
        ThreadSelector::Old(thread) => thread,
        ThreadSelector::Last { of_any_folder } => last(plan, client, of_any_folder).await?,
    };
    let opened = client.resume(plan.resume(thread)).await;
    opened.map_err(|error| {
        format!(
            "the thread {thread} cannot be resumed: {}",
            error_text(&error)
        )
    })
}

/// Returns the newest thread.
async fn last(plan: &Plan, client: &Client, of_any_folder: bool) -> Result<ThreadId, String> {
    let cwd = (!of_any_folder).then(|| plan.cwd.display().to_string());
    let params = json!({ "limit": 1, "sortKey": "updated_at", "cwd": cwd, "sourceKinds": KINDS });
    let params = serde_json::from_value(params).map_err(|error| error.to_string())?;
    let threads = client.call::<ThreadList>(params).await;
    let threads =
        threads.map_err(|error| format!("the threads cannot be listed: {}", error_text(&error)))?;
    match threads.data.first() {
        Some(thread) => Ok(thread.id),
        None if of_any_folder => Err("there is no thread to continue".to_owned()),
        None => Err(format!(
            "there is no thread of {} to continue; --all looks in every folder",
            plan.cwd.display()
        )),
    }
}

/// Returns the approval policy for this turn, as configured, if a user is present now and the
/// thread was last used unattended.
pub(super) async fn asking_again(
    plan: &Plan,
    client: &Client,
    follow: &ThreadFollower,
) -> Result<Option<AskForApproval>, String> {
    let is_silent = follow.thread().approval_policy == Some(AskForApproval::Never);
    let has_user = plan.unattended == Unattended::Ask;
    let is_explicit = plan.thread == ThreadSelector::New || plan.approval().is_some();
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

/// Returns the provider to use if only the SDK's key or address selects one.
async fn provider(plan: &Plan, client: &Client) -> Result<Option<String>, String> {
    if plan.options.remote.is_some() || !vendor::is_given(&plan.settings) {
        return Ok(None);
    }
    let config = config(client).await?;
    let model = plan.options.model.as_deref().or(config["model"].as_str());
    let is_named = config["model_provider"].is_string() || model.is_some_and(|it| it.contains('/'));
    Ok((!is_named).then(|| vendor::PROVIDER.to_owned()))
}

async fn config(client: &Client) -> Result<Value, String> {
    let params = ConfigReadParams {
        cwd: None,
        include_layers: false,
    };
    let read = client.call::<ConfigRead>(params).await;
    read.map(|it| it.config)
        .map_err(|error| format!("the configuration cannot be read: {}", error_text(&error)))
}

fn options() -> Options {
    let is_name = |name: &String| !name.is_empty() && name.chars().all(|it| it.is_ascii_graphic());
    let name = std::env::var(ORIGINATOR).ok().filter(is_name);
    let name = name.unwrap_or_else(|| "raddle-exec".to_owned());
    let mut options = Options::new(name, env!("CARGO_PKG_VERSION"));
    // For the folders of `--add-dir`.
    options.experimental = true;
    options
}

fn unreachable(error: &ConnectError) -> String {
    match error {
        // The server's own message is on stderr, just above.
        ConnectError::Ended(_) => format!("{error}; `raddle app-server </dev/null` says more"),
        error => error.to_string(),
    }
}

/// Returns the message of a rejected call.
pub(super) fn error_text(error: &CallError) -> String {
    match error {
        CallError::Refused(error) => error.message.to_string(),
        error => error.to_string(),
    }
}
