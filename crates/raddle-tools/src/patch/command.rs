//! Patches that a model hands to a shell.
//!
//! Only the plainest forms are taken for a patch: everything else is a command like any other, and is judged
//! and run as one.

/// A patch found in a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedPatch {
    /// The folder that the line changes to first, as it names it.
    pub cwd: Option<String>,
    /// The text of the patch.
    pub patch: String,
}

/// What the command is called, and what models call it by mistake.
const NAMES: [&str; 2] = ["apply_patch", "applypatch"];

/// The patch in a command that consists of its name and the text, or of a shell with a line for it.
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

/// The patch in a line that does nothing but hand it over: `apply_patch <<'EOF'` and the text, perhaps after
/// `cd FOLDER &&`.
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
    // The shell would stop at the first such line, and run what follows.
    if patch.lines().any(|it| it == word) {
        return None;
    }
    // Without quotes the shell would put other text in place of these.
    if is_quoted.is_none() && patch.contains(['$', '`', '\\']) {
        return None;
    }
    Some(EmbeddedPatch {
        cwd,
        patch: format!("{patch}\n"),
    })
}

/// A word that means itself to a shell, without its quotes.
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
    // `-` and options mean something else to `cd`.
    let is_path = !word.is_empty() && !word.starts_with('-');
    (is_path && word.chars().all(is_plain)).then(|| word.to_owned())
}
