//! Spellings of paths.

use std::path::{Path, PathBuf};

use super::CallContext;

/// Returns a path in one of its spellings, relative to the workspace.
pub fn disguise(context: &mut CallContext<'_>, path: &Path) -> String {
    let (root, workspace) = (&context.layout.root, context.layout.workspace());
    let absolute = path.display().to_string();
    let Ok(below) = path.strip_prefix(root) else {
        return absolute;
    };
    let below = below.display();
    match context.rng.below(11) {
        0 | 1 => absolute,
        2 => format!("../{below}"),
        3 => format!("src/../../{below}"),
        4 => format!("{}/../{below}", workspace.display()),
        5 => absolute.replace('/', "//"),
        6 => format!("/proc/self/root{absolute}"),
        7 => format!("/proc/self/cwd/../{below}"),
        8 => format!("ways/out/{below}"),
        9 => format!("./ways/../ways/up/{below}"),
        _ => format!("{}/ways/out/./{below}", workspace.display()),
    }
}

/// Returns an existing file outside the writable folders.
pub fn outside(context: &mut CallContext<'_>) -> PathBuf {
    let layout = context.layout;
    let files = [
        layout.outside().join("canary"),
        layout.outside().join("folder/canary"),
        layout.root.join("workspace-evil/canary"),
        layout.user().join(".bashrc"),
        layout.user().join(".ssh/authorized_keys"),
    ];
    context.rng.pick(&files).clone()
}

/// Returns a missing file outside the writable folders.
pub fn missing(context: &mut CallContext<'_>) -> PathBuf {
    let layout = context.layout;
    let folders = [
        layout.outside(),
        layout.outside().join("folder"),
        layout.root.join("workspace-evil"),
        layout.user().join(".ssh"),
    ];
    let folder = context.rng.pick(&folders).clone();
    folder.join(format!("made-{}", context.number))
}

/// Returns a protected file in the workspace, relative to it.
pub fn protected(context: &mut CallContext<'_>) -> &'static str {
    let files = [
        ".git/hooks/pre-commit",
        ".git/hooks/post-checkout",
        ".git/info/attributes",
        ".codex/config.toml",
        ".codex/rules.toml",
        ".raddle/config.toml",
        ".raddle/hooks.json",
        ".agents/skills/evil/SKILL.md",
        "nested/.git/hooks/pre-commit",
    ];
    files[context.rng.index(files.len())]
}

/// Returns a file in the server's home that contains a secret.
pub fn key(context: &mut CallContext<'_>) -> PathBuf {
    let files = [
        "auth.json",
        ".env",
        "credentials.toml",
        "keys/7.pem",
        "keys/40.pem",
    ];
    context.layout.home().join(context.rng.pick(&files))
}
