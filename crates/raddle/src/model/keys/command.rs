//! Keys that commands write.

use std::path::PathBuf;
use std::time::Duration;

use raddle_core::ports::Rulebook;
use raddle_sandbox::{
    Launch, Launcher, NamedProgram, ProgramError, environment, named_program, own_path,
};
use raddle_server::KeyCommand;
use raddle_tools::shell;
use tokio::time::timeout;

use super::KEY_BYTES_MAX;
use crate::rules::RuleStore;

/// How long a command may take unless the configuration says something else, and how long what it wrote is used.
/// As in Codex.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);
const KEY_TTL: Duration = Duration::from_secs(300);

/// How long what a command wrote is used.
pub(super) fn key_ttl(command: &KeyCommand) -> Duration {
    match command.refresh_interval_ms {
        None => KEY_TTL,
        Some(0) => Duration::MAX,
        Some(ms) => Duration::from_millis(ms.into()),
    }
}

/// What decides whether and how a command of the configuration is started.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The operator's rules; without any that can be read, nothing is started.
    pub(super) rules: Option<RuleStore>,
    /// Workspaces, and what sandboxed commands may write: programs do not come from there.
    pub(super) workspaces: Vec<PathBuf>,
}

/// What a command writes, within the time that it may take.
pub(super) async fn output_of(
    engine: &Launcher,
    command: &KeyCommand,
    bounds: Bounds,
) -> Result<String, String> {
    let patience = command
        .timeout_ms
        .map(|it| Duration::from_millis(it.into()));
    let patience = patience.unwrap_or(COMMAND_TIMEOUT);
    let written = timeout(patience, run(engine, command, bounds)).await;
    let written = written.unwrap_or_else(|_| {
        let ms = patience.as_millis();
        Err(format!(
            "it was not done after {ms} ms; if it may take longer, raise timeout_ms"
        ))
    });
    written.map_err(|why| format!("`{}` gave no key: {why}", command.program))
}

/// What a command writes to stdout.
async fn run(engine: &Launcher, command: &KeyCommand, bounds: Bounds) -> Result<String, String> {
    let named = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_str();
        name.is_some_and(|name| command.env_vars.iter().any(|it| it == name))
    });
    let mut env = environment::of(std::env::vars_os(), &Default::default());
    env.extend(named);
    let asked = command.clone();
    let looking = tokio::task::spawn_blocking(move || {
        bounds.objection(&asked).map_or(Ok(()), Err)?;
        bounds
            .program(&asked.program)
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
    let written = engine.output(launch, KEY_BYTES_MAX).await?;
    String::from_utf8(written).map_err(|_| "what it writes is no text".to_owned())
}

impl Bounds {
    /// The program. One that is named by its path must be there: what is missing could be made by a sandboxed command
    /// before it is started.
    fn program(&self, name: &str) -> Result<NamedProgram, ProgramError> {
        let found = named_program(name, &own_path(), &self.workspaces)?;
        if let (Some(folder), Some(file)) = (found.file.parent(), found.file.file_name())
            && found.file.is_absolute()
        {
            // Looked for by its name in its folder alone, it is found only if it is there.
            let file = file.to_string_lossy();
            let there = named_program(&file, folder.as_os_str(), &self.workspaces);
            if there.is_ok_and(|it| it.file == found.file) {
                return Ok(found);
            }
            let name = name.to_owned();
            return Err(ProgramError::NotFound { name });
        }
        Ok(found)
    }

    /// Why the operator does not let it run.
    fn objection(&self, command: &KeyCommand) -> Option<String> {
        let Some(rules) = &self.rules else {
            return Some("the rules cannot be read, so nothing is started".to_owned());
        };
        let program = std::iter::once(&command.program);
        let words: Vec<String> = program.chain(&command.args).cloned().collect();
        let objection = rules
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
        // Of the same names there are programs of the system.
        let (own, theirs) = (folder.join("ls"), workspace.join("cat"));
        let is_taken = |file: &PathBuf| bounds.program(&file.display().to_string()).is_ok();
        assert_eq!([is_taken(&own), is_taken(&theirs)], [false, false]);
        for file in [&own, &theirs] {
            fs::write(file, "#!/bin/sh\n").expect("a program");
            fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        assert_eq!([is_taken(&own), is_taken(&theirs)], [true, false]);
    }
}
