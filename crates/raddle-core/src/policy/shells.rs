//! Shells, and programs that hand a script to one: where the script stands.

use super::command::{base_name, is_unknown};
use super::options::has;

/// Shells whose scripts are read as ours are.
const SHELLS: &str = "\
    ash bash dash hush ksh ksh93 lksh mksh oksh osh posh rbash rksh rzsh sh yash zsh";

/// Shells with a language of their own: what they are given is read too, but it may mean something else.
const FOREIGN: &str = "csh elvish es fish ion murex ngs nu powershell pwsh rc tcsh xonsh";

/// Programs that hand a script to a shell.
const SHELL_LAUNCHERS: &str = "flock runuser script sg su";

/// Long options of shells, without a value.
const LONG: &str = "\
    --debug --interactive --login --no-config --no-globalrcs --no-rcs --noediting --noprofile --norc \
    --posix --restricted --verbose";

/// Long options of shells whose value is a file that is run.
const FILES: &str = "--init-file --rcfile";

/// What a shell is given to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellInvocation {
    /// Where the script stands, if it stands in these words.
    pub script: Option<usize>,
    /// Whether it may run something else: it reads what it runs, or its words are not understood.
    pub unsure: bool,
}

/// What these words give to a shell, if they start one.
pub fn shell_invocation(words: &[String]) -> Option<ShellInvocation> {
    let name = base_name(words.first()?);
    // A program of one's own may have the name of one of these.
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
            // To bash a long option, to others several short ones.
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
    // Without a script, it reads what it runs from its input or from a file; a file is known by its name.
    unsure |= script.is_none() && rest.is_none_or(|it| is_passed_on(it));
    unsure |= script.is_none()
        && words[1..at.min(words.len())]
            .iter()
            .any(|it| reads_input(it));
    Some(ShellInvocation { script, unsure })
}

/// Where the script of a shell stands in these words, if they give one to a shell with `-c`.
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

/// Whether a file is what others pass on, so that nobody knows what is in it.
pub fn is_passed_on(file: &str) -> bool {
    is_unknown(file) || file.starts_with("/dev/") || file.starts_with("/proc/")
}

fn reads_input(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains('s')
}

/// What a program that hands a script to a shell is given.
fn launcher_script(name: &str, words: &[String]) -> ShellInvocation {
    if name == "sg" {
        return lent_by_sg(words);
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
        // The script may stand in the same word, or the option may be one for it, cut short.
        unsure |= match letters {
            Some(letters) => letters.contains('c'),
            None => is_begun(word, "--command") || is_begun(word, "--session-command"),
        };
    }
    // Without a script these start a shell that reads what it runs.
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

/// `sg [-] GROUP [[-c] SCRIPT]`. Without a script it starts a shell.
fn lent_by_sg(words: &[String]) -> ShellInvocation {
    let is_mark = |it: &String| it == "-" || it == "-c";
    let operands = words.iter().enumerate().skip(1).filter(|it| !is_mark(it.1));
    let script = operands.map(|it| it.0).nth(1);
    ShellInvocation {
        script,
        unsure: script.is_none() || words[1..].iter().any(|it| is_unknown(it)),
    }
}

/// Whether an option is the beginning of another, with or without a value.
fn is_begun(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    name.len() > 2 && option.starts_with(name)
}
