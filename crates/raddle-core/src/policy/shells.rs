//! Shells, and programs that pass a script to one: the position of the script.

use super::command::{base_name, is_unknown};
use super::options::has;

/// Shells whose scripts the parser understands.
const SHELLS: &str = "\
    ash bash dash hush ksh ksh93 lksh mksh oksh osh posh rbash rksh rzsh sh yash zsh";

/// Shells with another language: their scripts are parsed too, but may mean something else.
const FOREIGN: &str = "csh elvish es fish ion murex ngs nu powershell pwsh rc tcsh xonsh";

/// Programs that pass a script to a shell.
const SHELL_LAUNCHERS: &str = "flock runuser script sg su";

/// Long options of shells, without a value.
const LONG: &str = "\
    --debug --interactive --login --no-config --no-globalrcs --no-rcs --noediting --noprofile --norc \
    --posix --restricted --verbose";

/// Long options of shells whose value is a file that is run.
const FILES: &str = "--init-file --rcfile";

/// Script that a shell is given to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellInvocation {
    /// Index of the script in the words, if it is there.
    pub script: Option<usize>,
    /// Whether it may run something else: it reads its script from elsewhere, or its words are not
    /// understood.
    pub unsure: bool,
}

/// Finds the script that these words pass to a shell, if they start one.
pub fn shell_invocation(words: &[String]) -> Option<ShellInvocation> {
    let name = base_name(words.first()?);
    // A program of the user may have the same name.
    if has(SHELL_LAUNCHERS, name) && !words[0].starts_with(['.', '~']) {
        return Some(launcher_script(name, words));
    }
    let is_foreign = has(FOREIGN, name);
    if !is_foreign && !has(SHELLS, name) {
        return None;
    }
    if words[1..] == ["--version"] {
        return Some(ShellInvocation {
            script: None,
            unsure: false,
        });
    }
    let mut unsure = is_foreign;
    let (mut has_script, mut values) = (false, 0);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if values > 0 {
            values -= 1;
        } else if word == "--" || word == "-" {
            at += 1;
            break;
        } else if is_foreign && ["--command", "--commands", "-Command"].contains(&word.as_str()) {
            has_script = true;
        } else if word.starts_with("--") {
            // Files that are read at the start are run.
            unsure |= !has(LONG, word);
            values = usize::from(has(FILES, word));
        } else if has(LONG, &format!("-{word}")) || has(FILES, &format!("-{word}")) {
            // Bash reads a long option, other shells read several short ones.
            unsure = true;
            values = usize::from(has(FILES, &format!("-{word}")));
        } else if word.starts_with(['-', '+']) {
            unsure |= is_unknown(word);
            has_script |= word.contains('c');
            values = word.matches(['o', 'O']).count();
        } else {
            break;
        }
        at += 1;
    }
    let rest = words.get(at);
    let script = Some(at).filter(|_| has_script && rest.is_some());
    // Without a script the shell reads one from its input or from a file; the file's name
    // identifies it.
    unsure |= script.is_none() && rest.is_none_or(|it| is_passed_on(it));
    unsure |= script.is_none()
        && words[1..at.min(words.len())]
            .iter()
            .any(|it| reads_input(it));
    Some(ShellInvocation { script, unsure })
}

/// Returns the index of the script, if these words pass one to a shell with `-c`.
pub fn shell_script(words: &[String]) -> Option<usize> {
    shell_invocation(words)?.script
}

/// Whether the program is a shell.
pub fn is_shell(words: &[String]) -> bool {
    words.first().is_some_and(|it| {
        let name = base_name(it);
        has(SHELLS, name) || has(FOREIGN, name)
    })
}

/// Whether a file passes on data from elsewhere, so that its content is unknown.
pub fn is_passed_on(file: &str) -> bool {
    is_unknown(file) || file.starts_with("/dev/") || file.starts_with("/proc/")
}

fn reads_input(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('s')
}

/// Finds the script in the words of a program that passes one to a shell.
fn launcher_script(name: &str, words: &[String]) -> ShellInvocation {
    if name == "sg" {
        return sg_script(words);
    }
    let mut unsure = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        if !word.starts_with('-') {
            continue;
        }
        let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let is_c = match letters {
            Some(letters) => letters.ends_with('c'),
            None => word == "--command" || word == "--session-command",
        };
        if is_c && at + 1 < words.len() {
            let script = Some(at + 1);
            return ShellInvocation { script, unsure };
        }
        // The script may be in the same word, or the option may be an abbreviated one for it.
        unsure |= match letters {
            Some(letters) => letters.contains('c'),
            None => {
                is_abbreviation(word, "--command") || is_abbreviation(word, "--session-command")
            }
        };
    }
    // Without a script these start a shell that reads its commands from its input.
    let starts_shell = match name {
        "flock" => false,
        "runuser" => !words
            .iter()
            .any(|it| it.starts_with("-u") || it.starts_with("--u")),
        _ => true,
    };
    ShellInvocation {
        script: None,
        unsure: unsure || starts_shell,
    }
}

/// Parses `sg [-] GROUP [[-c] SCRIPT]`. Without a script it starts a shell.
fn sg_script(words: &[String]) -> ShellInvocation {
    let is_mark = |it: &String| it == "-" || it == "-c";
    let operands = words.iter().enumerate().skip(1).filter(|it| !is_mark(it.1));
    let script = operands.map(|it| it.0).nth(1);
    ShellInvocation {
        script,
        unsure: script.is_none() || words[1..].iter().any(|it| is_unknown(it)),
    }
}

/// Whether an option abbreviates another, with or without a value.
fn is_abbreviation(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.len() > 2 && option.starts_with(name)
}
