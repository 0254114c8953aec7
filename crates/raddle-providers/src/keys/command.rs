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

/// Runs a command within its timeout and returns its output.
pub(super) async fn output_of(
    launcher: &Launcher,
    command: &KeyCommand,
    bounds: Bounds,
) -> Result<String, String> {
    let limit = command
        .timeout_ms
        .map(|it| Duration::from_millis(it.into()));
    let limit = limit.unwrap_or(COMMAND_TIMEOUT);
    let written = timeout(limit, run(launcher, command, bounds)).await;
    let written = written.unwrap_or_else(|_| {
        let ms = limit.as_millis();
        Err(format!(
            "it was not done after {ms} ms; if it may take longer, raise timeout_ms"
        ))
    });
    written.map_err(|why| format!("`{}` gave no key: {why}", command.program))
}

/// Runs a command and returns its stdout.
async fn run(launcher: &Launcher, command: &KeyCommand, bounds: Bounds) -> Result<String, String> {
    let named = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_str();
        name.is_some_and(|name| command.env_vars.iter().any(|it| it == name))
    });
    let mut env = environment::of(std::env::vars_os(), &Default::default());
    env.extend(named);
    let key_command = command.clone();
    let looking = tokio::task::spawn_blocking(move || {
        bounds.objection(&key_command).map_or(Ok(()), Err)?;
        bounds
            .program(&key_command.program)
            .map_err(|error| error.to_string())
    });
    let program = looking.await.map_err(|error| error.to_string())??;
    env.retain(|(name, _)| name != "PATH");
    env.push(("PATH".into(), program.path));
    let launch = Launch {
        program: program.file.into(),
        args: command.args.iter().map(Into::into).collect(),
        cwd: command.cwd.clone(),
        env,
    };
    let written = launcher.output(launch, KEY_BYTES_MAX).await?;
    String::from_utf8(written).map_err(|_| "what it writes is no text".to_owned())
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

    /// Returns the operator's objection to the command, if any.
    fn objection(&self, command: &KeyCommand) -> Option<String> {
        let Some(rules) = &self.rules else {
            return Some("the rules cannot be read, so nothing is started".to_owned());
        };
        let program = std::iter::once(&command.program);
        let words: Vec<String> = program.chain(&command.args).cloned().collect();
        let objection = rules
            .0
            .policy()
            .objection_to_configured(&shell::parse_words(&words));
        objection.map(|why| format!("it may not run: {why}"))
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
