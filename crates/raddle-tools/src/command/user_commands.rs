//! Commands that the user runs: in their own shell, outside the sandbox, as in a terminal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{ToolJob, ToolResult};
use raddle_core::{Action, CommandRun, Output, Settings};

use super::programs::WritableFolders;
use super::request::{CommandRequest, TOKENS, WaitMode};
use crate::shell::quoted;
use crate::tool_deps::ToolDeps;

/// Default timeout of a user's command.
const TIME_MS: u64 = 60 * 60 * 1000;

/// Fallback if the user has no shell.
const SHELL: &str = "/bin/bash";

/// Returns the user's shell, unless sandboxed commands can replace it.
fn shell(own: Option<String>, folders: &WritableFolders) -> String {
    let own = own.filter(|it| it.starts_with('/') && !folders.are_passed_by(Path::new(it)));
    own.unwrap_or_else(|| SHELL.to_owned())
}

/// Returns the words that run a line which the user typed.
fn words(settings: &Settings, line: &str) -> Vec<String> {
    let shell = shell(
        std::env::var("SHELL").ok(),
        &WritableFolders::of_thread(settings),
    );
    // No login shell outside a sandbox: the model reads the output, and a profile exports keys.
    vec![shell, "-c".to_owned(), line.to_owned()]
}

/// Returns the item of a user's line.
pub(crate) fn shown(settings: &Settings, line: &str) -> CommandRun {
    CommandRun {
        command: quoted(&words(settings, line)),
        cwd: settings.cwd.clone(),
        actions: vec![Action::Other {
            command: line.to_owned(),
        }],
        ..CommandRun::default()
    }
}

/// Runs the line. The model reads the output with its next call.
pub(crate) async fn run(inner: Arc<ToolDeps>, job: ToolJob, item: CommandRun) -> ToolResult {
    let line = match &item.actions[..] {
        [Action::Other { command }] => command.clone(),
        _ => item.command.clone(),
    };
    let time = Duration::from_millis(item.time_ms_max.unwrap_or(TIME_MS));
    let request = CommandRequest {
        words: words(&job.settings, &line),
        cwd: PathBuf::from(&item.cwd),
        tty: false,
        time: WaitMode::Ends(time),
        tokens: TOKENS,
        beyond: true,
        why: None,
        is_plugins: false,
        call: String::new(),
    };
    let result = request.run_unchecked(inner, job, item).await;
    let result_text = result.output.text;
    let output = Output {
        text: format!(
            "<user_shell_command>\n<command>\n{line}\n</command>\n<result>\n{result_text}\n</result>\n</user_shell_command>"
        ),
        ..result.output
    };
    ToolResult { output, ..result }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_shell_that_commands_can_write_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let at = |name: &str| top.join(name).display().to_string();
        for name in ["work", "own"] {
            std::fs::create_dir(top.join(name)).expect("a folder");
            std::fs::write(top.join(name).join("shell"), "").expect("a file");
        }
        symlink(at("work/shell"), at("own/direct")).expect("a link");
        symlink(at("own/shell"), at("work/link")).expect("a link");
        symlink(at("work/link"), at("own/hopped")).expect("a link");
        symlink(at("work"), at("folder")).expect("a link");
        let folders = WritableFolders::of(vec![at("work").into()]);
        for (own, is_kept) in [
            (at("own/shell"), true),
            (at("work/shell"), false),
            (at("work/missing"), false),
            (at("own/direct"), false),
            (at("own/hopped"), false),
            (at("folder/shell"), false),
            ("shell".to_owned(), false),
        ] {
            let expected = if is_kept { own.as_str() } else { SHELL };
            assert_eq!(shell(Some(own.clone()), &folders), expected, "{own}");
        }
        assert_eq!(shell(None, &folders), SHELL);
    }
}
