//! Our reader of git's configuration files, compared with git itself.
//!
//! The reader never fails and its work is bounded by the length of the text: no setting is longer
//! than the text. Where it reports a path and git accepts the file, git has the same settings.
#![cfg_attr(fuzzing, no_main)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use raddle_sandbox::git_config::{SETTINGS_MAX, named_paths, parse};

/// File for the text, in memory where possible.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    directory.join(format!("raddle-fuzz-git-config-{}", std::process::id()))
});

/// Returns git's settings: every key, a newline, its value if it has one, and a zero byte.
fn as_git_reads(text: &[u8]) -> Option<Vec<u8>> {
    fs::write(&*FILE, text).expect("a file");
    let output = Command::new("git")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .args(["config", "--no-includes", "-z", "--list", "-f"])
        .arg(&*FILE)
        .stderr(Stdio::null())
        .output()
        .expect("git runs");
    let _ = fs::remove_file(&*FILE);
    output.status.success().then_some(output.stdout)
}

/// Normalises tabs: before 2.45 git replaced every tab inside a value by a space.
fn plain(output: &[u8]) -> String {
    String::from_utf8_lossy(output).replace(['\t', '\r'], " ")
}

fuzz::target!(|text: &[u8]| {
    let settings = parse(text);
    assert!(settings.len() <= SETTINGS_MAX);
    for setting in &settings {
        // The section is repeated in the key of each of its settings.
        assert!(setting.key().len() <= text.len() + 1);
        let value = &setting.value;
        assert!(value.as_ref().is_none_or(|it| it.len() <= text.len()));
    }
    let is_named = named_paths(&settings).next().is_some();
    // A zero byte ends a string for git, and would end a setting in its output.
    if !is_named || text.contains(&0) {
        return;
    }
    let Some(git) = as_git_reads(text) else {
        return;
    };
    let mut ours = Vec::new();
    for setting in settings {
        ours.extend(setting.key());
        if let Some(value) = setting.value {
            ours.push(b'\n');
            ours.extend(value);
        }
        ours.push(0);
    }
    assert_eq!(plain(&ours), plain(&git));
});
