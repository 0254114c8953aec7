//! Ways to say where something is.

use std::path::{Path, PathBuf};

use super::CallContext;

/// A path in one of its disguises, as it is understood in the workspace.
pub fn disguise(dice: &mut CallContext<'_>, path: &Path) -> String {
    let (root, workspace) = (&dice.layout.root, dice.layout.workspace());
    let absolute = path.display().to_string();
    let Ok(below) = path.strip_prefix(root) else {
        return absolute;
    };
    let below = below.display();
    match dice.rng.below(11) {
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

/// A file that is there, outside of what may be written.
pub fn outside(dice: &mut CallContext<'_>) -> PathBuf {
    let stage = dice.layout;
    let files = [
        stage.outside().join("canary"),
        stage.outside().join("folder/canary"),
        stage.root.join("workspace-evil/canary"),
        stage.user().join(".bashrc"),
        stage.user().join(".ssh/authorized_keys"),
    ];
    dice.rng.pick(&files).clone()
}

/// One that is not there.
pub fn unmade(dice: &mut CallContext<'_>) -> PathBuf {
    let stage = dice.layout;
    let folders = [
        stage.outside(),
        stage.outside().join("folder"),
        stage.root.join("workspace-evil"),
        stage.user().join(".ssh"),
    ];
    let folder = dice.rng.pick(&folders).clone();
    folder.join(format!("made-{}", dice.number))
}

/// A protected file in the workspace, relative to it.
pub fn protected(dice: &mut CallContext<'_>) -> &'static str {
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
    files[dice.rng.below(files.len())]
}

/// A file of the server's own that holds a secret.
pub fn key(dice: &mut CallContext<'_>) -> PathBuf {
    let files = [
        "auth.json",
        ".env",
        "credentials.toml",
        "keys/7.pem",
        "keys/40.pem",
    ];
    dice.layout.home().join(dice.rng.pick(&files))
}
