//! Parses a call into the command that it asks to run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use raddle_core::policy::{Act, ActKind, ParsedScript, approval_digest, command_variables};
use raddle_core::ports::ToolIntent;
use raddle_core::{CommandRun, ItemBody, Sandbox, Settings, ToolCall};
use raddle_sandbox::FileHolds;
use serde::Deserialize;

use super::confinement::check_folder;
use super::programs::search_path;
use crate::arguments;
use crate::plugin_call;
use crate::shell::{self, ApprovalSubject, DigestInput};
use crate::tool_call_error::ToolCallError;

/// Wait for a command's output: the default, and the limits.
const YIELD_MS: u64 = 10_000;
const YIELD_MS_MIN: u64 = 250;
const YIELD_MS_MAX: u64 = 30_000;

/// Timeout of a command that must not continue in the background.
const TIME_MS: u64 = 10_000;
const TIME_MS_MAX: u64 = 60 * 60 * 1000;

/// Output for the model, in tokens: the default and the maximum.
pub(super) const TOKENS: usize = 10_000;
pub(super) const TOKENS_MAX: usize = 50_000;

const SHELL: &str = "/bin/bash";

/// Shells that accept `-l` for a login shell.
const SHELLS: [&str; 7] = ["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

#[derive(Debug, PartialEq)]
pub(crate) struct CommandRequest {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) tty: bool,
    pub(super) time: WaitMode,
    pub(super) tokens: usize,
    /// Whether it runs outside the sandbox.
    pub(super) beyond: bool,
    pub(super) why: Option<String>,
    /// Whether a plugin runs it, which gets the output alone.
    pub(super) is_plugins: bool,
    /// Id of the call.
    pub(super) call: String,
}

/// Time to wait for a command, and the action afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitMode {
    /// The command continues in the background.
    Yields(Duration),
    /// The command is ended.
    Ends(Duration),
}

#[derive(Deserialize)]
struct ExecCommand {
    cmd: String,
    workdir: Option<String>,
    shell: Option<String>,
    login: Option<bool>,
    tty: Option<bool>,
    yield_time_ms: Option<u64>,
    max_output_tokens: Option<usize>,
    sandbox_permissions: Option<String>,
    justification: Option<String>,
}

/// Older forms of the same tool, which models of one family were trained on.
#[derive(Deserialize)]
struct ShellArgs {
    command: CommandLine,
    #[serde(alias = "working_directory")]
    workdir: Option<String>,
    timeout_ms: Option<u64>,
    login: Option<bool>,
    sandbox_permissions: Option<String>,
    with_escalated_permissions: Option<bool>,
    justification: Option<String>,
}

/// Params of `host/command_run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginCommand {
    command: Option<String>,
    argv: Option<Vec<String>>,
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum CommandLine {
    Text(String),
    Words(Vec<String>),
}

/// Parses a call of a command tool; returns `None` for other tools.
///
/// `allows_login`: whether the operator permits login shells. A login shell reads the user's
/// profile, which may export keys.
pub(crate) fn parse_request(
    settings: &Settings,
    call: &ToolCall,
    allows_login: bool,
) -> Option<Result<CommandRequest, ToolCallError>> {
    let request = match call.tool.as_str() {
        "exec_command" => exec_command(settings, call),
        "shell" | "shell_command" | "local_shell" | "container.exec" => shell(settings, call),
        plugin_call::COMMAND => of_plugin(settings, call),
        _ => return None,
    };
    // Outside a sandbox there is never a login shell.
    let may_log_in = |it: &CommandRequest| allows_login && !it.beyond && is_confined(settings);
    Some(request.map(|it| match may_log_in(&it) {
        true => it,
        false => CommandRequest {
            words: without_login(it.words),
            ..it
        },
    }))
}

fn exec_command(settings: &Settings, call: &ToolCall) -> Result<CommandRequest, ToolCallError> {
    let it: ExecCommand = arguments::read(call)?;
    let shell = it.shell.unwrap_or_else(|| SHELL.to_owned());
    let yield_ms = it.yield_time_ms.unwrap_or(YIELD_MS);
    Ok(CommandRequest {
        words: in_shell(shell, it.login, &it.cmd),
        cwd: folder(settings, it.workdir.as_deref())?,
        tty: it.tty.unwrap_or_default(),
        time: WaitMode::Yields(Duration::from_millis(
            yield_ms.clamp(YIELD_MS_MIN, YIELD_MS_MAX),
        )),
        tokens: it.max_output_tokens.unwrap_or(TOKENS).min(TOKENS_MAX),
        beyond: is_escalated(it.sandbox_permissions.as_deref())? && is_confined(settings),
        why: it.justification,
        is_plugins: false,
        call: call.id.clone(),
    })
}

fn shell(settings: &Settings, call: &ToolCall) -> Result<CommandRequest, ToolCallError> {
    let it: ShellArgs = arguments::read(call)?;
    let words = match it.command {
        CommandLine::Text(line) => in_shell(SHELL.to_owned(), it.login, &line),
        CommandLine::Words(words) if words.is_empty() => {
            return Err(ToolCallError::new("The command must not be empty."));
        }
        CommandLine::Words(words) => words,
    };
    let is_escalated = is_escalated(it.sandbox_permissions.as_deref())?
        || it.with_escalated_permissions.unwrap_or_default();
    let timeout_ms = it.timeout_ms.unwrap_or(TIME_MS).min(TIME_MS_MAX);
    Ok(CommandRequest {
        words,
        cwd: folder(settings, it.workdir.as_deref())?,
        tty: false,
        time: WaitMode::Ends(Duration::from_millis(timeout_ms)),
        tokens: TOKENS,
        beyond: is_escalated && is_confined(settings),
        why: it.justification,
        is_plugins: false,
        call: call.id.clone(),
    })
}

/// Reads the params of a plugin, which cannot ask to leave the sandbox.
fn of_plugin(settings: &Settings, call: &ToolCall) -> Result<CommandRequest, ToolCallError> {
    let it: PluginCommand = arguments::read(call)?;
    let words = match (it.argv, it.command) {
        (Some(words), None) if !words.is_empty() => words,
        (None, Some(line)) => in_shell(SHELL.to_owned(), None, &line),
        _ => {
            let why = "Send either `command`, a line for the shell, or `argv`, the program and its \
                       arguments.";
            return Err(ToolCallError::new(why));
        }
    };
    let timeout_ms = it.timeout_ms.unwrap_or(TIME_MS).min(TIME_MS_MAX);
    Ok(CommandRequest {
        words,
        cwd: folder(settings, None)?,
        tty: false,
        time: WaitMode::Ends(Duration::from_millis(timeout_ms)),
        tokens: TOKENS_MAX,
        beyond: false,
        why: None,
        is_plugins: true,
        call: call.id.clone(),
    })
}

fn in_shell(shell: String, login: Option<bool>, line: &str) -> Vec<String> {
    let flag = if login.unwrap_or_default() {
        "-lc"
    } else {
        "-c"
    };
    vec![shell, flag.to_owned(), line.to_owned()]
}

/// Removes the options that make a shell a login shell. Models write `bash -lc` where they name the
/// words themselves.
fn without_login(words: Vec<String>) -> Vec<String> {
    let is_shell = words
        .first()
        .is_some_and(|it| SHELLS.contains(&it.rsplit('/').next().unwrap_or_default()));
    if !is_shell {
        return words;
    }
    let mut is_option = true;
    let mut remaining = Vec::with_capacity(words.len());
    for (at, word) in words.into_iter().enumerate() {
        is_option &= at == 0 || word.starts_with('-');
        let is_short = is_option && at > 0 && !word.starts_with("--");
        if at == 0 || !is_option {
            remaining.push(word);
        } else if is_short && word.contains('l') {
            let short = word.replace('l', "");
            remaining.extend((short.len() > 1).then_some(short));
        } else if word != "--login" {
            remaining.push(word);
        }
        // The next word is the command line.
        is_option &= !remaining
            .last()
            .is_some_and(|it| at > 0 && it.ends_with('c'));
    }
    remaining
}

fn is_escalated(permissions: Option<&str>) -> Result<bool, ToolCallError> {
    match permissions {
        None | Some("use_default") => Ok(false),
        Some("require_escalated") => Ok(true),
        Some(other) => Err(ToolCallError::new(format!(
            "sandbox_permissions must be use_default or require_escalated, and not {other}."
        ))),
    }
}

/// Whether commands run in a sandbox of Raddle's.
pub(crate) fn is_confined(settings: &Settings) -> bool {
    match settings.sandbox {
        Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. } => true,
        Sandbox::FullAccess | Sandbox::External { .. } => false,
    }
}

/// Resolves the folder in which the command starts. It grants no access by itself.
fn folder(settings: &Settings, named: Option<&str>) -> Result<PathBuf, ToolCallError> {
    let own = PathBuf::from(&settings.cwd);
    let folder = match named.filter(|named| !named.is_empty()) {
        Some(named) => own.join(named),
        None => own,
    };
    match folder.is_absolute() {
        true => Ok(folder),
        false => Err(ToolCallError::new(
            "The thread has no working folder; name an absolute workdir.",
        )),
    }
}

/// Returns the folders of a thread and of its command, in which any file could be run. Empty if the
/// command is sandboxed.
pub(super) fn folders(settings: &Settings, cwd: &Path, beyond: bool) -> Vec<PathBuf> {
    if !beyond && is_confined(settings) {
        return Vec::new();
    }
    let named = std::iter::once(&settings.cwd).chain(&settings.roots);
    let named = named.map(PathBuf::from).chain([cwd.to_owned()]);
    named.filter(|it| it.is_absolute()).collect()
}

/// Whether a call may run a program by name outside the sandbox, so that `PATH` matters.
pub(crate) fn needs_path(settings: &Settings, call: &ToolCall) -> bool {
    let is_beyond = |it: Result<CommandRequest, ToolCallError>| it.is_ok_and(|it| it.beyond);
    call.tool == "write_stdin" || parse_request(settings, call, false).is_some_and(is_beyond)
}

/// Returns the item and the intent of a call. `path` is the `PATH` of commands, if not the server's
/// own.
pub(crate) fn command_intent(
    settings: &Settings,
    request: CommandRequest,
    path: Option<OsString>,
    holds: &FileHolds,
) -> (ItemBody, ToolIntent) {
    let request = request.resolve_links(settings);
    if request.beyond
        && let Err(why) = check_folder(settings)
            .and_then(|()| search_path(settings, &request.names(), path, holds).map(drop))
    {
        let refused = ToolIntent::Refused(why.to_string());
        return (ItemBody::Command(request.item()), refused);
    }
    let subject = request.subject(settings, holds);
    let digest = match subject_digest(subject, request.beyond, &request.call) {
        Ok(digest) => digest,
        Err(why) => {
            let refused = ToolIntent::Refused(why.to_string());
            return (ItemBody::Command(request.item()), refused);
        }
    };
    let act = Act {
        digest,
        reason: request.why.as_deref().map(crate::shell::display_line),
        kind: request.kind(),
    };
    (ItemBody::Command(request.item()), ToolIntent::Act(act))
}

/// Returns the digest that an approval refers to, or the reason to refuse without asking. Without a
/// sandbox, rules may allow a command that has no digest. An approval of it is void, since no
/// digest at run time equals the text returned here.
pub(super) fn subject_digest(
    subject: ApprovalSubject,
    beyond: bool,
    call: &str,
) -> Result<String, ToolCallError> {
    match subject.digest {
        Err(why) if beyond => Err(ToolCallError::new(why)),
        Err(_) => Ok(approval_digest::unlisted_command(call)),
        Ok(digest) => Ok(digest),
    }
}

impl CommandRequest {
    /// Returns the patch if the command does nothing but apply one, and the folder of its paths.
    pub(crate) fn patch(&self) -> Option<(String, PathBuf)> {
        let invocation = crate::patch::in_argv(&self.words)?;
        let cwd = match invocation.cwd {
            Some(folder) => self.cwd.join(folder),
            None => self.cwd.clone(),
        };
        Some((invocation.patch, cwd))
    }

    /// Resolves links in the working folder. Outside a sandbox nothing else confines the command,
    /// so the user must see the real folder before approving. A link that the user named stays. It
    /// may block on the disk.
    pub(super) fn resolve_links(self, settings: &Settings) -> Self {
        if !self.beyond && is_confined(settings) {
            return self;
        }
        let Ok(real) = std::fs::canonicalize(&self.cwd) else {
            return self;
        };
        let is_named = settings.folders().any(|folder| {
            let below = self.cwd.strip_prefix(folder);
            below.is_ok_and(|below| Path::new(settings.real(folder)).join(below) == real)
        });
        match is_named {
            true => self,
            false => Self { cwd: real, ..self },
        }
    }

    fn script(&self) -> ParsedScript {
        shell::parse_words(&self.words)
    }

    /// Returns the names of the programs that it runs.
    pub(super) fn names(&self) -> Vec<String> {
        let commands = self.script().commands.into_iter();
        let inner = commands.filter_map(|it| it.into_iter().next());
        self.words
            .first()
            .cloned()
            .into_iter()
            .chain(inner)
            .collect()
    }

    /// Returns the act that rules are matched against.
    pub(super) fn kind(&self) -> ActKind {
        ActKind::Command {
            script: self.script(),
            cwd: self.cwd.display().to_string(),
            beyond: self.beyond,
        }
    }

    /// Returns the line that the shell reads; all words quoted, if the program is not a shell.
    fn line(&self) -> String {
        match &self.words[..] {
            [_, flag, line] if flag == "-lc" || flag == "-c" => line.clone(),
            words => shell::quoted(words),
        }
    }

    /// Returns the item to show, with control and invisible characters made visible.
    pub(super) fn item(&self) -> CommandRun {
        let cwd = self.cwd.display().to_string();
        let script = ParsedScript {
            line: shell::display_line(&self.line()),
            ..self.script()
        };
        CommandRun {
            command: shell::display_line(&shell::quoted(&self.words)),
            actions: shell::actions(&script, &cwd),
            cwd,
            ..CommandRun::default()
        }
    }

    /// Returns the [`folders`] of this command.
    pub(super) fn folders(&self, settings: &Settings) -> Vec<PathBuf> {
        folders(settings, &self.cwd, self.beyond)
    }

    /// Returns the variables that the thread sets for this command. An approval covers them.
    pub(super) fn variables(&self, settings: &Settings) -> BTreeMap<String, String> {
        command_variables::of_command(settings, !self.beyond && is_confined(settings))
    }

    /// Returns the subject of an approval of this command. It may block on the disk.
    pub(super) fn subject(&self, settings: &Settings, holds: &FileHolds) -> ApprovalSubject {
        shell::approval_subject(DigestInput {
            words: &self.words,
            commands: &self.script().commands,
            cwd: &self.cwd.display().to_string(),
            environment: &self.variables(settings),
            scope: &approval_digest::launch_scope(settings, self.beyond, self.tty),
            folders: &self.folders(settings),
            written: Some(holds.written()),
            call: &self.call,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn outside_a_sandbox_links_in_the_workdir_are_resolved() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| top.join(name).display().to_string();
        for name in ["work/sub", "outside"] {
            std::fs::create_dir_all(top.join(name)).expect("a folder");
        }
        symlink(top.join("outside"), top.join("work/way")).expect("a link");
        symlink(top.join("work"), top.join("users")).expect("a link");
        let write = Sandbox::WorkspaceWrite {
            roots: Vec::new(),
            network: false,
            without_tmp: false,
            without_tmpdir: false,
            reads: None,
        };
        for (sandbox, cwd, workdir, beyond, expected) in [
            (&write, "work", "", true, "work"),
            (&write, "work", "sub", true, "work/sub"),
            (&write, "work", "way", true, "outside"),
            (&write, "work", "way", false, "work/way"),
            (&write, "work", "missing", true, "work/missing"),
            // The user named this link.
            (&write, "users", "sub", true, "users/sub"),
            (&write, "users", "way", true, "outside"),
            (&Sandbox::FullAccess, "work", "way", false, "outside"),
        ] {
            let real = top.join(cwd).canonicalize().expect("its real path");
            let settings = Settings {
                cwd: at(cwd),
                real_paths: BTreeMap::from([(at(cwd), real.display().to_string())]),
                sandbox: sandbox.clone(),
                ..Settings::default()
            };
            let request = CommandRequest {
                words: vec!["ls".to_owned()],
                cwd: super::folder(&settings, Some(workdir)).expect("a folder"),
                tty: false,
                time: WaitMode::Ends(Duration::ZERO),
                tokens: TOKENS,
                beyond,
                why: None,
                is_plugins: false,
                call: String::new(),
            };
            let (item, _) =
                command_intent(&settings, request, None, &FileHolds::of(&top.join("home")));
            let ItemBody::Command(item) = item else {
                panic!("no command: {item:?}");
            };
            assert_eq!(item.cwd, at(expected), "{workdir} in {cwd}");
        }
    }

    #[test]
    fn a_login_shell_is_run_as_a_plain_one() {
        for (words, expected) in [
            (&["bash", "-lc", "ls -l"][..], &["bash", "-c", "ls -l"][..]),
            (&["/bin/zsh", "-cl", "x"], &["/bin/zsh", "-c", "x"]),
            (&["sh", "-l", "-c", "x", "-l"], &["sh", "-c", "x", "-l"]),
            (&["bash", "--login", "-c", "x"], &["bash", "-c", "x"]),
            (&["bash", "-elc", "x"], &["bash", "-ec", "x"]),
            (&["bash", "-e", "-lc", "-l"], &["bash", "-e", "-c", "-l"]),
            (&["bash", "-l", "file"], &["bash", "file"]),
            (&["bash", "file", "-l"], &["bash", "file", "-l"]),
            (&["bash", "-c", "x"], &["bash", "-c", "x"]),
            (
                &["bash", "--noprofile", "-c", "x"],
                &["bash", "--noprofile", "-c", "x"],
            ),
            (&["ls", "-lc"], &["ls", "-lc"]),
            (&[], &[]),
        ] {
            let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
            let actual = without_login(owned(words));
            let expected: Vec<String> = owned(expected);
            assert_eq!(actual, expected, "{words:?}");
        }
    }
}
