//! Detects lines whose files cannot be determined from their words.
//!
//! A shell builds file names from expansions, patterns and kernel links. Some programs read names
//! from their input, or code from the environment. The digest of such a line cannot list the
//! executed files.

use raddle_core::policy::UNKNOWN;

use super::code::{DATA, base, is_one_of};
use super::file_name::is_end;
use super::{DigestInput, code};

/// How the words of a line name the files that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Every file is named literally.
    Literal,
    /// Some words are unknown, but they are data to the programs that get them.
    Data,
    /// Any file could be run.
    Open,
}

/// Commands of gh that run no file because of their arguments.
const GH_DATA: &str = "api auth gist issue label pr release run search secret variable workflow";

/// Commands of git that run no file because of their arguments.
const GIT_DATA: &str = "add branch checkout cherry-pick commit describe diff fetch log ls-files merge mv pull push \
    remote reset restore rev-list rev-parse revert rm show stash status switch tag";

/// Options with which a git command runs a file.
const GIT_RUNS: [&str; 5] = [
    "--exec",
    "--extcmd",
    "--receive-pack",
    "--upload-pack",
    "-x",
];

/// Global options of git whose value is the next word.
const GIT_VALUES: &str =
    "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --exec-path";

/// Settings of git that name neither a file nor a program.
const GIT_PLAIN_SETTINGS: [&str; 6] = [
    "advice.",
    "color.",
    "commit.gpgsign=",
    "pull.",
    "push.",
    "user.",
];

/// Programs that run files whose names come from input, from a folder, or from their own language.
const RUNNERS: &str = "awk entr gawk mawk nawk parallel run-parts sed xargs";

/// Programs that run their input, if they get no file.
const SHELLS: &str = "ash bash dash ksh mksh sh zsh";

/// Variables from which programs take code, or the location of code.
const CODE_VARIABLES: &str = "BASH_ENV CDPATH CLASSPATH CURL_HOME DOCKER_CONFIG ENV FPATH GH_CONFIG_DIR GNUPGHOME HOME JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LESSOPEN \
    MAKEFLAGS NODE_OPTIONS NODE_PATH PATH PERL5DB PERL5LIB PERL5OPT PROMPT_COMMAND PS4 RUBYLIB RUBYOPT RUSTC \
    RUSTC_WRAPPER SHELL XDG_CONFIG_HOME ZDOTDIR _JAVA_OPTIONS";

/// Prefixes of such variables.
const CODE_VARIABLES_BEGIN: [&str; 6] = [
    "BASH_FUNC_",
    "DYLD_",
    "GIT_",
    "LD_",
    "PYTHON",
    "npm_config_",
];

/// Variables of git that are plain text, or name their program literally.
const GIT_PLAIN_VARIABLES: [&str; 7] = [
    "GIT_AUTHOR_",
    "GIT_COMMITTER_",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_TERMINAL_PROMPT",
];

/// Determines how the files of a line are named.
pub(super) fn spelling(it: DigestInput<'_>) -> Spelling {
    let texts = || it.words.iter().map(String::as_str);
    // A command that consists only of the unknown mark is a file that a shell reads; its name is
    // known.
    let is_unknown = |words: &Vec<String>| {
        words.join(" ").len() > 1 && words.iter().any(|it| it.contains(UNKNOWN))
    };
    let is_unknown = it.commands.iter().any(is_unknown);
    let is_data = it.commands.iter().all(|words| is_data(words));
    let is_code = texts().any(sets_code)
        || it.environment.keys().any(|name| is_code_variable(name))
        || it.commands.iter().any(|words| is_runner(words))
        || texts().any(|it| it.contains('|'))
            && it.commands.iter().any(|words| reads_script(words));
    if is_code {
        return Spelling::Open;
    }
    // Quoted patterns are literal to the shell, and to programs that run nothing. A typed line is a
    // single word.
    let first = it.words.first();
    let is_shell = it.words.len() == 1 || first.is_some_and(|it| is_one_of(SHELLS, base(it)));
    let expands = match (is_data, is_shell) {
        (true, true) => texts().any(|it| expands(it, Quotes::Heeded)),
        (true, false) => false,
        (false, _) => is_unknown || texts().any(|it| expands(it, Quotes::Ignored)),
    };
    match (expands, is_data) {
        (false, _) => Spelling::Literal,
        (true, true) => Spelling::Data,
        (true, false) => Spelling::Open,
    }
}

/// Whether these words run no file because of their arguments.
fn is_data(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return true;
    };
    match base(program) {
        // A program by an arbitrary path may have any name.
        _ if program.contains('/')
            && !program.starts_with("/bin/")
            && !program.starts_with("/usr/") =>
        {
            false
        }
        // The shell only runs the line, whose commands are listed separately.
        name if is_one_of(SHELLS, name) => code::has_inline_script(rest),
        "docker" => !code::is_load(words),
        "gh" => rest.first().is_some_and(|it| is_one_of(GH_DATA, it)),
        "git" => {
            let (settings, command) = git(rest);
            let runs = |word: &String| GIT_RUNS.iter().any(|it| word.starts_with(it));
            let name = command.first();
            settings.is_empty()
                && name.is_some_and(|it| is_one_of(GIT_DATA, it))
                && !command.iter().any(runs)
        }
        name => is_one_of(DATA, name),
    }
}

/// Whether these words make a program run files that they do not name.
fn is_runner(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let starts = |word: &String| ["-exec", "-ok"].iter().any(|it| word.starts_with(it));
    match base(program) {
        "find" => rest.iter().any(starts),
        "git" => !git(rest).0.is_empty(),
        name => is_one_of(RUNNERS, name),
    }
}

/// Returns the global options of git from which it may take code, and its command with its words.
pub(super) fn git(words: &[String]) -> (Vec<&str>, &[String]) {
    let mut settings = Vec::new();
    let mut at = 0;
    while let Some(option) = words.get(at).filter(|it| it.starts_with('-')) {
        let has_value = is_one_of(GIT_VALUES, option);
        let value = words.get(at + 1).map_or("", String::as_str);
        let is_plain = GIT_PLAIN_SETTINGS.iter().any(|it| value.starts_with(it));
        let is_place = ["--git-dir", "--work-tree", "--config-env", "--exec-path"];
        if option == "-c" && !is_plain || is_place.iter().any(|it| option.starts_with(it)) {
            settings.push(option.as_str());
        }
        at += 1 + usize::from(has_value);
    }
    (settings, words.get(at..).unwrap_or_default())
}

/// Whether a shell reads its script from its input.
fn reads_script(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    let is_option = |it: &String| it.starts_with(['-', '+']);
    is_one_of(SHELLS, base(program))
        && (rest.iter().all(is_option) || rest.iter().any(|it| it == "-s"))
        && !code::has_inline_script(rest)
}

/// Whether a text sets a variable from which programs take code.
fn sets_code(text: &str) -> bool {
    let text = unquoted(text);
    text.match_indices('=').any(|(at, _)| {
        let before = text[..at].trim_end_matches('+');
        let is_letter = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let start = before.trim_end_matches(is_letter).len();
        is_code_variable(&before[start..])
    })
}

fn is_code_variable(name: &str) -> bool {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|it| name.starts_with(it));
    is_one_of(CODE_VARIABLES, name)
        || begins(&CODE_VARIABLES_BEGIN) && !begins(&GIT_PLAIN_VARIABLES)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// Quoted text is literal, except for the expansions in double quotes.
    Heeded,
    /// Quoted text may be parsed by another shell.
    Ignored,
}

/// Whether a shell could expand a text to other words.
fn expands(text: &str, quotes: Quotes) -> bool {
    if names_processes(text) {
        return true;
    }
    let letters: Vec<char> = text.chars().collect();
    let next = |at: usize| letters.get(at).copied().unwrap_or(' ');
    let mut quote = None;
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        let is_heeded = quotes == Quotes::Heeded;
        let is_expansion = match (letter, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => {
                quote = None;
                false
            }
            (_, Some('\'')) => false,
            ('\\', _) if is_heeded => {
                at += 1;
                false
            }
            ('\'' | '"', None) if is_heeded => {
                quote = Some(letter);
                false
            }
            ('$' | '`', _) => true,
            (_, Some(_)) => false,
            ('*' | '?', None) => true,
            // A test or a group has a space after it.
            ('[', None) => {
                let is_test = next(at + 1) == '[' && next(at + 2).is_whitespace();
                !next(at + 1).is_whitespace() && !is_test
            }
            ('{', None) => !next(at + 1).is_whitespace() && next(at + 1) != '}',
            // History expansion in a typed line, or a command in a git setting.
            ('!', None) => !next(at + 1).is_whitespace() && !"=(".contains(next(at + 1)),
            ('^', None) => at == 0 || letters[at - 1] == '\n',
            // A character by its number, for `printf` and the like.
            ('\\', None) => next(at + 1).is_ascii_digit() || "xuU".contains(next(at + 1)),
            // Editing keys in a typed line.
            (it, _) if it.is_control() => !it.is_whitespace(),
            ('~', None) => at == 0 || is_end(letters[at - 1]),
            ('<' | '>', None) => next(at + 1) == '(',
            _ => false,
        };
        if is_expansion {
            return true;
        }
        at += 1;
    }
    false
}

/// Whether a text names files through a process: its descriptors or its folder.
fn names_processes(text: &str) -> bool {
    let text = unquoted(text);
    let is_named = |piece: &str| {
        let parts: Vec<&str> = piece
            .split('/')
            .filter(|it| !it.is_empty() && *it != ".")
            .collect();
        let is_device = |it: &[&str]| it == ["dev", "fd"] || it == ["dev", "stdin"];
        let ends_in_devices = parts.last() == Some(&"dev") && piece.starts_with('/');
        parts.contains(&"proc") || parts.windows(2).any(is_device) || ends_in_devices
    };
    text.split(is_end)
        .filter(|it| it.contains('/'))
        .any(is_named)
}

/// Removes quotes and backslashes from a text.
pub(super) fn unquoted(text: &str) -> String {
    text.replace(['\'', '"', '\\'], "")
}
