//! Hostile repositories: nothing of them runs, and nothing outside is read or written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use raddle_workspace::{Error, GapReason, NoFaults, RestoreRequest, SnapshotLimits, Workspace};

use crate::fixture::{Fixture, FolderState, changed_paths, path, paths, snapshot};

/// Runs git in the workspace, to prepare it and to show that the traps work.
fn git(at: &Fixture, arguments: &[&str]) {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(&at.folder)
        .env("HOME", at.at.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git");
    assert!(status.status.success(), "{arguments:?}: {status:?}");
}

#[test]
fn no_hook_filter_monitor_or_configuration_runs() {
    let at = Fixture::new();
    let canary = at.at.path().join("canary");
    let trap = at.at.path().join("trap.sh");
    fs::write(
        &trap,
        format!("#!/bin/sh\necho ran >> '{}'\ncat\n", canary.display()),
    )
    .expect("a trap");
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).expect("a mode");
    let trap = trap.display().to_string();

    git(&at, &["init", "--quiet"]);
    for setting in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.editor",
        "core.pager",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "diff.trap.textconv",
        "diff.trap.command",
        "diff.external",
        "merge.trap.driver",
        "alias.status",
        "credential.helper",
    ] {
        git(&at, &["config", setting, &trap]);
    }
    git(&at, &["config", "core.autocrlf", "true"]);
    let config = fs::read_to_string(at.path(".git/config")).expect("a configuration");
    let hostile = format!("{config}[include]\n\tpath = {trap}\n[core]\n\tworktree = /\n");
    at.write(".git/config", hostile);
    for hook in [
        "pre-commit",
        "post-index-change",
        "post-checkout",
        "reference-transaction",
    ] {
        let hook = at.path(".git/hooks").join(hook);
        fs::create_dir_all(hook.parent().expect("a folder")).expect("hooks");
        fs::copy(&trap, hook).expect("a hook");
    }
    at.write(".git/objects/info/alternates", "/nowhere\n");
    at.write(
        ".gitattributes",
        "* text=auto eol=lf filter=trap diff=trap merge=trap\n",
    );
    at.write("file", "one\r\n");
    at.write("outside/.git", "gitdir: /\n");
    let data = FolderState::read(&at.path(".git"));

    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("file", "two\r\n");
    let after = snapshot(&mut workspace);
    let diff = workspace.diff(&before, &after).expect("a diff");
    assert_eq!(diff.files.len(), 1);
    let hunk = &diff.files[0].hunks()[0];
    assert_eq!((&*hunk.old, &*hunk.new), (&b"one\r\n"[..], &b"two\r\n"[..]));
    let changed = changed_paths(&diff);
    let request = RestoreRequest {
        to: &before,
        known: &after,
        paths: &changed,
        overwrite: &Default::default(),
    };
    let plan = workspace.plan_restore(&request).expect("a plan");
    workspace.restore(&plan, &NoFaults).expect("a restore");
    assert_eq!(fs::read(at.path("file")).expect("a file"), b"one\r\n");
    assert!(!canary.exists(), "something ran");
    assert_eq!(
        FolderState::read(&at.path(".git")),
        data,
        "the repository changed"
    );

    // The traps are no dummies: git springs them.
    at.write(".git/config", config);
    let mut add = Command::new("git");
    add.args(["add", "file"])
        .current_dir(&at.folder)
        .env("HOME", at.at.path());
    add.output().expect("git");
    assert!(canary.exists());
}

#[test]
fn links_are_content_and_never_followed() {
    let at = Fixture::new();
    let outside = at.at.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("secret"), "secret\n").expect("a file");
    fs::write(outside.join(".gitignore"), "*\n").expect("a file");
    at.link(&outside, "folder");
    at.link("../outside/secret", "file");
    at.link("/", "root");
    at.link(".", "loop");
    at.link("../outside/.gitignore", ".gitignore");
    at.link(&outside, ".git");
    at.write("seen", "");
    let mut workspace = at.open();
    let taken = snapshot(&mut workspace);
    let names: Vec<String> = taken
        .entries()
        .iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(
        names,
        [".gitignore", "file", "folder", "loop", "root", "seen"]
    );
    for (path, entry) in taken.entries() {
        let content = workspace.content(&entry.hash).expect("content");
        assert_ne!(content, b"secret\n", "{path}");
    }
    // Nor does a named path lead through one.
    let named = paths(&["folder/secret", "root/etc/passwd"]);
    let updated = workspace.update(&taken, &named).expect("a snapshot");
    assert_eq!(updated.entries(), taken.entries());
    assert_eq!(updated.entry(&path("folder/secret")), None);
    assert_eq!(taken.gaps()[0].reason, GapReason::Repository);
}

/// Checks that a path to the workspace is refused, and that nothing was written at its end.
#[track_caller]
fn check_refused(folder: &Path, store: &Path) {
    let before = FolderState::read(folder);
    let opened = Workspace::open(folder, store, SnapshotLimits::default());
    let error = opened.err().expect("an error");
    assert!(matches!(error, Error::Link(_)), "{error:?}");
    assert!(error.to_string().contains("leads through a symbolic link"));
    assert_eq!(FolderState::read(folder), before);
}

#[test]
fn workspace_exchanged_for_a_link_is_not_opened() {
    let at = Fixture::new();
    at.write("outer/inner/file", "old\n");
    let folder = at.path("outer/inner");
    let limits = SnapshotLimits::default();
    let mut workspace = Workspace::open(&folder, &at.store(), limits).expect("a workspace");
    snapshot(&mut workspace);
    drop(workspace);
    // The folder itself is a link now, and then only one above it.
    let elsewhere = at.path("elsewhere");
    fs::rename(&folder, &elsewhere).expect("a folder");
    at.link(&elsewhere, "outer/inner");
    check_refused(&folder, &at.store());
    at.remove("outer/inner");
    fs::rename(&elsewhere, &folder).expect("a folder");
    fs::rename(at.path("outer"), &elsewhere).expect("a folder");
    at.link(&elsewhere, "outer");
    check_refused(&folder, &at.store());
    // The real path opens.
    Workspace::open(&elsewhere.join("inner"), &at.store(), limits).expect("a workspace");
}

#[test]
fn store_never_writes_to_the_workspace_during_a_snapshot() {
    let at = Fixture::new();
    at.write("folder/file", "content");
    let mode = |it: &Path, mode| {
        fs::set_permissions(it, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let times = |it: &Path| {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = fs::metadata(it).expect("metadata");
        (metadata.mtime_nsec(), metadata.ctime_nsec())
    };
    mode(&at.path("folder"), 0o555);
    let before = (
        times(&at.folder),
        times(&at.path("folder")),
        times(&at.path("folder/file")),
    );
    let mut workspace = at.open();
    let first = snapshot(&mut workspace);
    let second = snapshot(&mut workspace);
    workspace.diff(&first, &second).expect("a diff");
    let after = (
        times(&at.folder),
        times(&at.path("folder")),
        times(&at.path("folder/file")),
    );
    assert_eq!(after, before);
    mode(&at.path("folder"), 0o755);
}
