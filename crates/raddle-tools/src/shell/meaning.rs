//! Builtins and variables that change the meaning of the commands that follow.

use raddle_core::policy::{UNKNOWN, is_passed_on};

/// Meaning of commands that follow another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The meaning that the words have by themselves.
    Same,
    /// Perhaps another meaning with the same arguments.
    Other,
    /// A word may stand for any program, or an unseen program is run.
    Any,
}

/// Builtins that set, read or run something.
const CHANGERS: [&str; 16] = [
    ".",
    "declare",
    "eval",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
];

/// Builtins that give words another meaning, or run their arguments in unusual ways.
const REDEFINERS: [&str; 15] = [
    "alias",
    "autoload",
    "bind",
    "compgen",
    "complete",
    "emulate",
    "enable",
    "fc",
    "functions",
    "sched",
    "unfunction",
    "zle",
    "zmodload",
    "zpty",
    "zstyle",
];

/// Builtins that take names of variables, and run the text in the brackets after one.
pub(super) const BY_NAME: [&str; 14] = [
    "[",
    "[[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "test",
    "unset",
    "wait",
];

/// Variables that make shells or git run something.
const EXECUTED_VARIABLES: [&str; 13] = [
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_ENV",
    "BASHOPTS",
    "FPATH",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
    "histchars",
];

/// Variables of bash that hold a number: it evaluates their value as arithmetic.
const NUMBERS: &str = "\
    BASHPID EPOCHSECONDS EUID HISTCMD LINENO OPTIND PPID RANDOM SECONDS SRANDOM UID";

/// Prefixes of such variables.
const EXECUTED_PREFIXES: [&str; 2] = ["BASH_FUNC_", "GIT_CONFIG"];

/// Tables that make one shell run something, and are ordinary names to others.
const TABLES: [&str; 3] = ["aliases[", "commands[", "functions["];

/// Returns the meaning of the commands that follow this one.
pub(super) fn after(name: &str, words: &[String]) -> Meaning {
    let has_option = |letter: char| {
        let options = words.iter().take_while(|it| it.starts_with('-'));
        options.into_iter().any(|it| it.contains(letter))
    };
    let sets_by_name =
        BY_NAME.contains(&name) || name == "typeset" || name == "printf" && has_option('v');
    let is_any = match name {
        "hash" => words.iter().any(|it| it != "-r"),
        // History expansion may recall earlier commands.
        "set" => has_option('H') || words.iter().any(|it| it == "histexpand"),
        "." | "source" => {
            let is_option = |it: &&String| it.starts_with('-');
            words.iter().take_while(is_option).any(|it| it != "--")
                || words
                    .iter()
                    .find(|it| !is_option(it))
                    .is_some_and(|it| is_passed_on(it))
        }
        "mapfile" | "readarray" => has_option('C'),
        "declare" | "local" | "typeset" => has_option('n'),
        name => REDEFINERS.contains(&name) || name.starts_with('='),
    };
    if is_any || sets_by_name && words.iter().any(|it| is_executed_assignment(it)) {
        return Meaning::Any;
    }
    match CHANGERS.contains(&name) || name == "hash" || name == "unalias" {
        true => Meaning::Other,
        false => Meaning::Same,
    }
}

/// Whether an assignment, as `NAME=value` or only by name and without quotes, can make a shell run
/// something.
pub(super) fn is_executed_assignment(text: &str) -> bool {
    let name = text.split(['=', '[', '+']).next().unwrap_or(text);
    let value = text.strip_prefix(name).and_then(|it| it.strip_prefix('='));
    let is_named = is_executed_variable(name) && !value.is_some_and(|it| is_prompt(name, it))
        || TABLES.iter().any(|it| text.starts_with(it));
    // A substitution that is still in the unquoted text runs where the value is evaluated as
    // arithmetic.
    is_named || text.contains("$(") || text.contains('`')
}

/// Whether shells or git run something because of a variable of this name.
pub(super) fn is_executed_variable(name: &str) -> bool {
    EXECUTED_VARIABLES.contains(&name) || EXECUTED_PREFIXES.iter().any(|it| name.starts_with(it))
}

/// Whether a variable is set to a prompt that runs nothing.
pub(super) fn is_prompt(name: &str, value: &str) -> bool {
    ["PS1", "PS2", "PS4"].contains(&name) && !value.contains(['$', '`', '\\', '!', UNKNOWN])
}

/// Whether bash evaluates the value of this variable as arithmetic.
pub(super) fn is_number_name(name: &str) -> bool {
    NUMBERS.split(' ').any(|it| it == name)
}

/// Variables whose value programs pass to a shell.
const SCRIPT_NAMES: [&str; 20] = [
    "BROWSER",
    "CVS_RSH",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "PAGER",
    "RSYNC_RSH",
    "RUSTC_WRAPPER",
    "SSH_ASKPASS",
    "SVN_SSH",
    "VISUAL",
];

/// Returns the line for a shell that a variable holds.
pub(super) fn script_in<'a>(name: &str, value: &'a str) -> Option<&'a str> {
    // The filter of a pager may have marks for its input mode in front.
    let line = value.trim_start_matches(['|', '-']);
    (SCRIPT_NAMES.contains(&name) && !line.is_empty()).then_some(line)
}

/// Returns the program that reads options from a variable.
pub(super) fn options_in(name: &str) -> Option<&'static str> {
    match name {
        "GNUMAKEFLAGS" | "MAKEFLAGS" => Some("make"),
        "MANOPT" => Some("man"),
        "TAR_OPTIONS" => Some("tar"),
        "ZIPOPT" => Some("zip"),
        _ => None,
    }
}

/// Whether an expansion makes a shell read a value as a name or a prompt, and so run substitutions
/// in it.
pub(super) fn reads_value(expansion: &str) -> bool {
    let inner = expansion.strip_prefix("${").unwrap_or(expansion);
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let is_list = inner.ends_with("[@]") || inner.ends_with("[*]") || inner.ends_with(['*', '@']);
    inner.starts_with('!') && !is_list || inner.ends_with("@P")
}
