//! Patches that a model passes to a shell.
//!
//! Only the plainest forms count as a patch. Everything else is judged and run as an ordinary
//! command.

/// A patch found in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedPatch {
    /// The folder that the line changes to first, as it names it.
    pub cwd: Option<String>,
    /// The text of the patch.
    pub patch: String,
}

/// Name of the command, and a common misspelling.
const NAMES: [&str; 2] = ["apply_patch", "applypatch"];

/// Extracts the patch from a command that consists of the name and the text, or of a shell with
/// such a line.
pub fn in_argv(argv: &[String]) -> Option<EmbeddedPatch> {
    match argv {
        [name, text] if NAMES.contains(&name.as_str()) => Some(EmbeddedPatch {
            cwd: None,
            patch: text.clone(),
        }),
        [shell, flag, line] if is_shell(shell) && ["-c", "-lc"].contains(&flag.as_str()) => {
            in_command(line)
        }
        _ => None,
    }
}

fn is_shell(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    ["sh", "bash", "zsh"].contains(&name)
}

/// Extracts the patch from a line that only applies it: `apply_patch <<'EOF'` and the text,
/// optionally after `cd FOLDER &&`.
pub fn in_command(line: &str) -> Option<EmbeddedPatch> {
    let line = line.trim();
    let (first, body) = line.split_once('\n')?;
    let mut cwd = None;
    let mut command = first.trim();
    if let Some(rest) = command.strip_prefix("cd ") {
        let (folder, rest) = rest.split_once("&&")?;
        cwd = Some(plain_word(folder.trim())?);
        command = rest.trim();
    }
    let (name, heredoc) = command.split_once("<<")?;
    if !NAMES.contains(&name.trim_end()) {
        return None;
    }
    let heredoc = heredoc.trim();
    let quoted = |mark: char| heredoc.strip_prefix(mark)?.strip_suffix(mark);
    let is_quoted = quoted('\'').or_else(|| quoted('"'));
    let word = is_quoted.unwrap_or(heredoc);
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if word.is_empty() || !word.chars().all(is_word) {
        return None;
    }
    let patch = match body.rsplit_once('\n') {
        Some((patch, last)) if last == word => patch,
        _ => return None,
    };
    // The shell would end the text at the first such line, and run the rest as commands.
    if patch.lines().any(|it| it == word) {
        return None;
    }
    // Without quotes the shell would expand these.
    if is_quoted.is_none() && patch.contains(['$', '`', '\\']) {
        return None;
    }
    Some(EmbeddedPatch {
        cwd,
        patch: format!("{patch}\n"),
    })
}

/// Removes the quotes from a word, if a shell would take it literally.
fn plain_word(word: &str) -> Option<String> {
    let inside = |mark: char| word.strip_prefix(mark)?.strip_suffix(mark);
    if let Some(inner) = inside('\'') {
        return (!inner.is_empty() && !inner.contains('\'')).then(|| inner.to_owned());
    }
    if let Some(inner) = inside('"') {
        let is_plain = !inner.contains(['"', '$', '`', '\\', '!']);
        return (!inner.is_empty() && is_plain).then(|| inner.to_owned());
    }
    let is_plain = |it: char| it.is_alphanumeric() || "/._-+,@%:".contains(it);
    // `-` and options have another meaning to `cd`.
    let is_path = !word.is_empty() && !word.starts_with('-');
    (is_path && word.chars().all(is_plain)).then(|| word.to_owned())
}
