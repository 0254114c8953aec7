//! Environment variables that a client or the configuration sets for the commands of a thread.
//!
//! The user who approves a command sees its line and not its environment. So there are two rules.
//! In a sandbox, a variable may have any name that is not in the lists below: the sandbox bounds
//! what the command does with it. Outside a sandbox, only labels are set: variables that identify
//! the client or its session, and that no program takes a path, an option or code from.

use std::collections::BTreeMap;

use crate::Settings;

/// Maximum number of variables.
const VARIABLES_MAX: usize = 64;

/// Maximum number of bytes in a name.
const NAME_BYTES_MAX: usize = 128;

/// Maximum number of bytes in a value.
const VALUE_BYTES_MAX: usize = 4096;

/// Maximum number of bytes in the value of a label.
const LABEL_BYTES_MAX: usize = 256;

/// Names that are never set, in capitals. The server, the sandbox or the shell decide them, or
/// programs run what they name.
const REFUSED: &[&str] = &[
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "CURL_HOME",
    "EDITOR",
    "ENV",
    "FPATH",
    "GH_CONFIG_DIR",
    "GLOBIGNORE",
    "GNUPGHOME",
    "HOME",
    "IFS",
    "LOGNAME",
    "NO_COLOR",
    "OLDPWD",
    "OPENSSL_CONF",
    "PAGER",
    "PATH",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS4",
    "PWD",
    "SHELL",
    "SHELLOPTS",
    "SHLVL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
    "VISUAL",
    "ZDOTDIR",
    "_",
];

/// Beginnings of names that are never set: of the loader, the C library, shells and Git, of
/// interpreters and build tools that load code which a variable names, and Raddle's own.
const REFUSED_PREFIXES: &[&str] = &[
    "BASH", "BUNDLE_", "CARGO", "CODEX_", "DOCKER_", "DYLD_", "GCONV_", "GEM_", "GIT_", "GLIBC_",
    "JAVA_", "JDK_", "LD_", "LESS", "LUA_", "MAKE", "MALLOC_", "NODE_", "NPM_", "PERL", "PHP",
    "PYTHON", "RADDLE_", "RUBY", "RUST", "SSH_", "SUDO_", "XDG_", "_JAVA_",
];

/// Ends of names that are never set: proxies, which the sandbox sets, and programs that other
/// programs start.
const REFUSED_SUFFIXES: &[&str] = &[
    "_ASKPASS", "_COMMAND", "_EDITOR", "_PAGER", "_PROXY", "_WRAPPER",
];

/// Names of labels.
const LABELS: &[&str] = &["AI_AGENT"];

/// Ends of names of labels.
const LABEL_SUFFIXES: &[&str] = &["_SESSION_ID", "_THREAD_ID"];

/// Reason why a variable cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// The name is not one of an environment variable.
    #[error(
        "a name has letters of ASCII, digits and `_`, does not begin with a digit, and has at most {NAME_BYTES_MAX} bytes"
    )]
    BadName,
    /// The name bounds commands, or programs run what its value names.
    #[error(
        "a variable of this name bounds commands or can make programs run other code; leave it out"
    )]
    Reserved,
    /// The value is too long or has control characters.
    #[error("a value has at most {VALUE_BYTES_MAX} bytes and no control characters")]
    BadValue,
    /// There are too many variables.
    #[error("at most {VARIABLES_MAX} variables can be set")]
    TooMany,
}

/// Checks variables for the commands of a thread. Returns the first faulty name with the reason.
pub fn check(variables: &BTreeMap<String, String>) -> Result<(), (&str, VariableError)> {
    for (at, (name, value)) in variables.iter().enumerate() {
        let checked = match at < VARIABLES_MAX {
            true => check_variable(name, value),
            false => Err(VariableError::TooMany),
        };
        checked.map_err(|error| (name.as_str(), error))?;
    }
    Ok(())
}

/// Returns the variables that are set for a command of a thread. Outside a sandbox these are the
/// labels. The names are checked again: another version may have stored them.
pub fn of_command(settings: &Settings, is_sandboxed: bool) -> BTreeMap<String, String> {
    let variables = settings.variables.iter().take(VARIABLES_MAX);
    let is_set = |(name, value): &(&String, &String)| {
        check_variable(name, value).is_ok() && (is_sandboxed || is_label(name, value))
    };
    let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
    variables.filter(is_set).map(owned).collect()
}

fn check_variable(name: &str, value: &str) -> Result<(), VariableError> {
    let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_bad = name.is_empty()
        || name.len() > NAME_BYTES_MAX
        || name.starts_with(|it: char| it.is_ascii_digit())
        || !name.chars().all(is_name);
    if is_bad {
        return Err(VariableError::BadName);
    }
    if is_reserved(&name.to_ascii_uppercase()) {
        return Err(VariableError::Reserved);
    }
    match value.len() > VALUE_BYTES_MAX || value.contains(char::is_control) {
        true => Err(VariableError::BadValue),
        false => Ok(()),
    }
}

/// Whether a name in capitals is never set. Programs read some names in lower case too.
fn is_reserved(name: &str) -> bool {
    REFUSED.contains(&name)
        || REFUSED_PREFIXES.iter().any(|it| name.starts_with(it))
        || REFUSED_SUFFIXES.iter().any(|it| name.ends_with(it))
}

/// Whether a variable is a label. Its value is one word that is no path, no option and no pattern.
fn is_label(name: &str, value: &str) -> bool {
    let is_named = LABELS.contains(&name) || LABEL_SUFFIXES.iter().any(|it| name.ends_with(it));
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '.' | ':');
    is_named
        && value.len() <= LABEL_BYTES_MAX
        && value.starts_with(|it: char| it.is_ascii_alphanumeric())
        && value.chars().all(is_plain)
}
