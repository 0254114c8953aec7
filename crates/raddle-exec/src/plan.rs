//! The plan of a run, made from its options. Invalid options are rejected before anything starts.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use raddle_config::Override;
use raddle_protocol::{
    AskForApproval, LocalImageUserInput, SandboxMode, ThreadId, ThreadResumeParams,
    ThreadStartParams, TurnStartParams, UserInput, WorkspaceMode,
};
use serde_json::Value;

use super::error::UsageError;
use super::limits;
use super::options::{Options, Unattended};
use super::output::OutputFile;
use super::schema::Schema;

/// The validated options.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) input: Vec<UserInput>,
    pub(crate) schema: Option<Schema>,
    pub(crate) unattended: Unattended,
    pub(crate) cwd: PathBuf,
    pub(crate) settings: Vec<Override>,
    pub(crate) options: Options,
    /// The file that also receives the answer.
    pub(crate) output: Option<OutputFile>,
}

/// Relevant facts about the environment of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunContext {
    /// Whether a user can be asked: stdin and stderr are terminals.
    pub(crate) has_terminal: bool,
}

impl RunContext {
    pub(crate) fn look() -> Self {
        Self {
            has_terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }
}

impl Plan {
    /// Validates the options, and reads stdin if they request it.
    pub(crate) fn read(mut options: Options, context: RunContext) -> Result<Self, UsageError> {
        let schema = options.output_schema.as_deref().map(schema).transpose()?;
        let cwd = options.cd.as_deref().unwrap_or(Path::new("."));
        let cwd = folder("cannot work in", cwd)?;
        for added in &options.add_dir {
            folder("cannot use --add-dir", added)?;
        }
        if let Some(model) = options.model.as_ref().filter(|it| it.ends_with('/')) {
            return Err(UsageError::NoModelName {
                model: model.clone(),
            });
        }
        let how = unattended_mode(&options, context)?;
        let mut settings = std::mem::take(&mut options.config);
        settings.extend(options.budget.iter().cloned());
        let settings = limits::normalize(settings)?;
        limits::agree(&options, &settings)?;
        let output = options.output_last_message.as_deref();
        let output = output.map(OutputFile::open).transpose()?;
        let images = options.image.iter().map(|it| image(it));
        let images: Vec<UserInput> = images.collect::<Result<_, _>>()?;
        let text = text(options.prompt.take(), options.json)?;
        if text.trim().is_empty() && images.is_empty() {
            return Err(UsageError::EmptyPrompt);
        }
        let mut input = vec![UserInput::text(text)];
        input.extend(images);
        Ok(Self {
            input,
            schema,
            unattended: how,
            cwd,
            settings,
            options,
            output,
        })
    }

    pub(crate) fn start(&self) -> ThreadStartParams {
        ThreadStartParams {
            approval_policy: self.approval(),
            config: self.config(),
            cwd: Some(self.cwd.display().to_string()),
            ephemeral: self.options.ephemeral.then_some(true),
            model: self.options.model.clone(),
            runtime_workspace_roots: self.roots(),
            sandbox: self.sandbox(),
            thread_source: self.options.thread_source.clone(),
            workspace: self.options.is_copied.then_some(WorkspaceMode::Copy),
            ..ThreadStartParams::default()
        }
    }

    /// Values that are not given stay as the thread has them, except the approval policy.
    pub(crate) fn resume(&self, thread: ThreadId) -> ThreadResumeParams {
        let setting = |key: &str| Some(self.setting(key)?.as_str()?.to_owned());
        ThreadResumeParams {
            approval_policy: self.approval(),
            config: self.config_of_resume(),
            cwd: self
                .options
                .cd
                .is_some()
                .then(|| self.cwd.display().to_string()),
            exclude_turns: true,
            model: self.options.model.clone().or_else(|| setting("model")),
            model_provider: setting("model_provider"),
            runtime_workspace_roots: self.roots(),
            sandbox: self.sandbox(),
            ..ThreadResumeParams::of(thread)
        }
    }

    pub(crate) fn turn(&self, thread: ThreadId) -> TurnStartParams {
        let effort = self.setting("model_reasoning_effort");
        TurnStartParams {
            effort: effort.and_then(|it| Some(it.as_str()?.to_owned())),
            output_schema: self.schema.as_ref().map(|it| it.value().clone()),
            ..TurnStartParams::of(thread, self.input.clone())
        }
    }

    /// Returns the last value of a key.
    pub(crate) fn setting(&self, key: &str) -> Option<Value> {
        limits::last(&self.settings, key)
    }

    /// Returns the policy of the arguments. Without one, it is `never` where no user can be asked.
    pub(crate) fn approval(&self) -> Option<AskForApproval> {
        if self.options.dangerously_bypass_approvals_and_sandbox {
            return Some(AskForApproval::Never);
        }
        match self.setting("approval_policy") {
            Some(policy) => serde_json::from_value(policy).ok(),
            None if self.unattended == Unattended::Deny => Some(AskForApproval::Never),
            None => None,
        }
    }

    pub(crate) fn sandbox(&self) -> Option<SandboxMode> {
        if self.options.dangerously_bypass_approvals_and_sandbox {
            return Some(SandboxMode::DangerFullAccess);
        }
        if self.options.full_auto {
            return Some(SandboxMode::WorkspaceWrite);
        }
        match &self.options.sandbox {
            Some(mode) => Some(mode.clone()),
            None => Some(SandboxMode::from(self.setting("sandbox_mode")?.as_str()?)),
        }
    }

    fn roots(&self) -> Option<Vec<String>> {
        let more = &self.options.add_dir;
        let path = |it: &PathBuf| std::path::absolute(it).unwrap_or_else(|_| it.clone());
        let all = std::iter::once(self.cwd.clone()).chain(more.iter().map(path));
        let all = all.map(|it| it.display().to_string()).collect();
        (!more.is_empty()).then_some(all)
    }

    /// The settings as parameters of a request. A spawned server has them from its arguments; a
    /// remote server does not.
    fn config(&self) -> Option<BTreeMap<String, Value>> {
        self.options.remote.as_ref()?;
        Some(members(&self.settings))
    }

    /// The same for a thread that is resumed. It keeps the budgets and the permission profile with
    /// which it was started, also against the arguments of its server; only a request changes them.
    fn config_of_resume(&self) -> Option<BTreeMap<String, Value>> {
        self.config().or_else(|| {
            let is_sent = |it: &&Override| match it.path().first().map(String::as_str) {
                Some("budget") => true,
                // A sandbox is a member of the request itself.
                Some(limits::PROFILE) => self.sandbox().is_none(),
                _ => false,
            };
            let sent = members(self.settings.iter().filter(is_sent));
            (!sent.is_empty()).then_some(sent)
        })
    }
}

fn members<'a>(settings: impl IntoIterator<Item = &'a Override>) -> BTreeMap<String, Value> {
    let member = |it: &Override| (it.path().join("."), it.to_json());
    settings.into_iter().map(member).collect()
}

/// Returns how requests of the agent are answered.
fn unattended_mode(options: &Options, context: RunContext) -> Result<Unattended, UsageError> {
    let can_ask = context.has_terminal && !options.json;
    match options.unattended {
        Some(Unattended::Ask) if !can_ask => Err(UsageError::NoTerminal),
        Some(how) => Ok(how),
        None if options.dangerously_bypass_approvals_and_sandbox => Ok(Unattended::Deny),
        None if can_ask => Ok(Unattended::Ask),
        None => Ok(Unattended::Deny),
    }
}

/// Returns the prompt. Reads stdin only on request, because it may never end.
fn text(prompt: Option<String>, is_json: bool) -> Result<String, UsageError> {
    let from_stdin = match prompt.as_deref() {
        Some("-") => true,
        Some(_) => false,
        None if is_json && !io::stdin().is_terminal() => true,
        None => return Err(UsageError::NoPrompt),
    };
    if !from_stdin {
        return Ok(prompt.unwrap_or_default());
    }
    let mut bytes = Vec::new();
    io::stdin()
        .read_to_end(&mut bytes)
        .map_err(UsageError::Stdin)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid_bytes = error.utf8_error().valid_up_to();
        UsageError::NotUtf8 { valid_bytes }
    })?;
    // Some editors write a byte order mark.
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// The maximum size of a schema.
const SCHEMA_BYTES_MAX: u64 = 1 << 20;

fn schema(path: &Path) -> Result<Schema, UsageError> {
    let unreadable = |error| UsageError::path("cannot read --output-schema", path, error);
    let mut text = String::new();
    // The path may be a pipe, or a device that never ends.
    std::fs::File::open(path)
        .and_then(|it| it.take(SCHEMA_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > SCHEMA_BYTES_MAX {
        let why = format!("it has more than {SCHEMA_BYTES_MAX} bytes");
        return Err(unreadable(io::Error::other(why)));
    }
    Schema::read(&text).map_err(|source| UsageError::Schema {
        path: path.to_owned(),
        source,
    })
}

/// Returns the real path of a folder. `purpose` is the step that fails otherwise.
fn folder(purpose: &'static str, path: &Path) -> Result<PathBuf, UsageError> {
    let unusable = |error| UsageError::path(purpose, path, error);
    let full = std::fs::canonicalize(path).map_err(unusable)?;
    match full.is_dir() {
        true => Ok(full),
        false => Err(unusable(io::Error::other("it is no folder"))),
    }
}

fn image(path: &Path) -> Result<UserInput, UsageError> {
    let full = std::fs::canonicalize(path)
        .map_err(|error| UsageError::path("cannot read --image", path, error))?;
    Ok(UserInput::LocalImage(LocalImageUserInput {
        path: full.display().to_string(),
        detail: None,
    }))
}
