//! Commands that the user runs: in their own shell, outside the fence, as they would in a terminal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{Job, Ran};
use raddle_core::{Action, CommandRun, Output, Settings};

use super::wish::{TOKENS, Time, Wish};
use crate::registry::Inner;
use crate::shell::quoted;

/// How long one may run if the user does not say.
const TIME_MS: u64 = 60 * 60 * 1000;

/// The shell of a user who has none.
const SHELL: &str = "/bin/bash";

/// The words with which a line of the user's is run.
fn words(line: &str) -> Vec<String> {
    let own = std::env::var("SHELL").ok();
    let own = own.filter(|shell| shell.starts_with('/'));
    let shell = own.unwrap_or_else(|| SHELL.to_owned());
    // No login shell outside a sandbox: the model reads what comes of it, and a profile exports keys.
    vec![shell, "-c".to_owned(), line.to_owned()]
}

/// How a line of the user's is shown.
pub(crate) fn shown(settings: &Settings, line: &str) -> CommandRun {
    CommandRun {
        command: quoted(&words(line)),
        cwd: settings.cwd.clone(),
        actions: vec![Action::Other {
            command: line.to_owned(),
        }],
        ..CommandRun::default()
    }
}

/// Runs it. The model reads of it with its next call.
pub(crate) async fn run(inner: Arc<Inner>, job: Job, item: CommandRun) -> Ran {
    let line = match &item.actions[..] {
        [Action::Other { command }] => command.clone(),
        _ => item.command.clone(),
    };
    let time = Duration::from_millis(item.time_ms_max.unwrap_or(TIME_MS));
    let wish = Wish {
        words: words(&line),
        cwd: PathBuf::from(&item.cwd),
        tty: false,
        time: Time::Ends(time),
        tokens: TOKENS,
        beyond: true,
        why: None,
        call: String::new(),
    };
    let ran = wish.go(inner, job, item).await;
    let said = ran.output.text;
    let output = Output {
        text: format!(
            "<user_shell_command>\n<command>\n{line}\n</command>\n<result>\n{said}\n</result>\n</user_shell_command>"
        ),
        ..ran.output
    };
    Ran { output, ..ran }
}
