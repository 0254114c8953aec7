//! Keys that commands print.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raddle_config::KeyCommand;
use raddle_core::ports::Rulebook;
use raddle_sandbox::{
    Launch, Launcher, NamedProgram, ProgramError, environment, named_program, own_path,
};
use raddle_tools::shell;
use tokio::task::JoinError;
use tokio::time::timeout;

use super::KEY_BYTES_MAX;

/// Defaults for the timeout of a command, and for how long its key is used. As in Codex.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const KEY_TTL: Duration = Duration::from_secs(300);

/// Returns how long the key of a command is used.
pub(super) fn key_ttl(command: &KeyCommand) -> Duration {
    match command.refresh_interval_ms {
        None => KEY_TTL,
        Some(0) => Duration::MAX,
        Some(ms) => Duration::from_millis(ms.into()),
    }
}

/// The rules that commands of the configuration must not violate.
#[derive(Clone)]
pub(crate) struct OperatorRules(pub(crate) Arc<dyn Rulebook>);

impl fmt::Debug for OperatorRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorRules")
    }
}

/// Limits on the commands of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The operator's rules. Without readable rules nothing is started.
    pub(super) rules: Option<OperatorRules>,
    /// Workspaces and folders that sandboxed commands may write: no program is started from there.
    pub(super) workspaces: Vec<PathBuf>,
}

/// A command that gave no key.
#[derive(Debug, thiserror::Error)]
#[error("`{program}` gave no key")]
pub(super) struct KeyCommandError {
    program: String,
    source: CommandFault,
}

#[derive(Debug, thiserror::Error)]
enum CommandFault {
    #[error("it was not done after {ms} ms; if it may take longer, raise timeout_ms")]
    TimedOut { ms: u128 },
    #[error("the rules cannot be read, so nothing is started")]
    NoRules,
    #[error("it may not run: {0}")]
    Forbidden(String),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Output(String),
    #[error("what it writes is no text")]
    NotText,
    /// The thread that looked for the program panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// Runs a command within its timeout and returns its output.
pub(super) async fn output_of(
    launcher: &Launcher,
    command: &KeyCommand,
    bounds: Bounds,
) -> Result<String, KeyCommandError> {
    let limit = command
        .timeout_ms
        .map(|it| Duration::from_millis(it.into()));
    let limit = limit.unwrap_or(COMMAND_TIMEOUT);
    let written = timeout(limit, run(launcher, command, bounds)).await;
    let written = written.unwrap_or_else(|_| {
        let ms = limit.as_millis();
        Err(CommandFault::TimedOut { ms })
    });
    written.map_err(|source| KeyCommandError {
        program: command.program.clone(),
        source,
    })
}

/// Runs a command and returns its stdout.
async fn run(
    launcher: &Launcher,
    command: &KeyCommand,
    bounds: Bounds,
) -> Result<String, CommandFault> {
    let named = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_str();
        name.is_some_and(|name| command.env_vars.iter().any(|it| it == name))
    });
    let mut env = environment::of(std::env::vars_os(), &Default::default());
    env.extend(named);
    let key_command = command.clone();
    let looking = tokio::task::spawn_blocking(move || -> Result<NamedProgram, CommandFault> {
        bounds.check(&key_command)?;
        Ok(bounds.program(&key_command.program)?)
    });
    let program = looking.await??;
    env.retain(|(name, _)| name != "PATH");
    env.push(("PATH".into(), program.path));
    let launch = Launch {
        program: program.file.into(),
        args: command.args.iter().map(Into::into).collect(),
        cwd: command.cwd.clone(),
        env,
    };
    let written = launcher.output(launch, KEY_BYTES_MAX).await;
    let written = written.map_err(|error| CommandFault::Output(error.to_string()))?;
    String::from_utf8(written).map_err(|_| CommandFault::NotText)
}

impl Bounds {
    /// Resolves the program. One named by its path must exist: a sandboxed command could otherwise
    /// create it before it is started.
    fn program(&self, name: &str) -> Result<NamedProgram, ProgramError> {
        let resolved = named_program(name, &own_path(), &self.workspaces)?;
        if let (Some(folder), Some(file)) = (resolved.file.parent(), resolved.file.file_name())
            && resolved.file.is_absolute()
        {
            // A search by name in its own folder finds the program only if it exists.
            let file = file.to_string_lossy();
            let there = named_program(&file, folder.as_os_str(), &self.workspaces);
            if there.is_ok_and(|it| it.file == resolved.file) {
                return Ok(resolved);
            }
            let name = name.to_owned();
            return Err(ProgramError::NotFound { name });
        }
        Ok(resolved)
    }

    /// Rejects a command that the operator's rules forbid.
    fn check(&self, command: &KeyCommand) -> Result<(), CommandFault> {
        let rules = self.rules.as_ref().ok_or(CommandFault::NoRules)?;
        let program = std::iter::once(&command.program);
        let words: Vec<String> = program.chain(&command.args).cloned().collect();
        let objection = rules
            .0
            .policy()
            .objection_to_configured(&shell::parse_words(&words));
        objection.map_or(Ok(()), |why| Err(CommandFault::Forbidden(why)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_that_is_named_by_its_path_is_there_and_not_in_a_workspace() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("a path");
        let workspace = folder.join("workspace");
        fs::create_dir_all(&workspace).expect("a folder");
        let bounds = Bounds {
            rules: None,
            workspaces: vec![workspace.clone()],
        };
        // The system has programs of the same names.
        let (own, foreign) = (folder.join("ls"), workspace.join("cat"));
        let is_accepted = |file: &PathBuf| bounds.program(&file.display().to_string()).is_ok();
        assert_eq!([is_accepted(&own), is_accepted(&foreign)], [false, false]);
        for file in [&own, &foreign] {
            fs::write(file, "#!/bin/sh\n").expect("a program");
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        assert_eq!([is_accepted(&own), is_accepted(&foreign)], [true, false]);
    }
}
