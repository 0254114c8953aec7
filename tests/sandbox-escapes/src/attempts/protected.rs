//! Names inside a writable folder that must stay as they are.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use raddle_sandbox::attempt::Attempt;
use raddle_sandbox::attempt::SecondTier::{Open, Stopped};

use crate::syscalls;

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "git-config",
        shows: "the settings of the repository, which name programs, stay as they are",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join(".git/config"), "x"),
    },
    Attempt {
        name: "git-move-away",
        shows: "the repository cannot be moved out of the way",
        second_tier: Open,
        run: |testbed| {
            fs::rename(
                testbed.workspace().join(".git"),
                testbed.workspace().join("away"),
            )
        },
    },
    Attempt {
        name: "git-remove",
        shows: "nor be removed",
        second_tier: Open,
        run: |testbed| fs::remove_file(testbed.workspace().join(".git/config")),
    },
    Attempt {
        name: "git-swap",
        shows: "nor be exchanged with another",
        second_tier: Open,
        run: |testbed| {
            let (ours, theirs) = (
                testbed.workspace().join("ours"),
                testbed.workspace().join(".git"),
            );
            fs::create_dir(&ours)?;
            exchange(&ours, &theirs)
        },
    },
    Attempt {
        name: "git-second-name",
        shows: "nor does a file of it become writable by a second name",
        second_tier: Open,
        run: |testbed| {
            let name = testbed.workspace().join("second-name");
            fs::hard_link(testbed.workspace().join(".git/config"), &name)?;
            fs::write(name, "x")
        },
    },
    Attempt {
        name: "git-reopen",
        shows: "nor by its descriptor",
        second_tier: Open,
        run: |testbed| {
            let file = fs::File::open(testbed.workspace().join(".git/config"))?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&file);
            fs::write(format!("/proc/self/fd/{number}"), "x")
        },
    },
    Attempt {
        name: "git-chmod",
        shows: "nor change its modes",
        second_tier: Open,
        run: |testbed| {
            let hooks = testbed.workspace().join(".git/hooks");
            fs::set_permissions(hooks, fs::Permissions::from_mode(0o777))
        },
    },
    Attempt {
        name: "worktree-hook",
        shows: "the repository that a worktree names is protected, although it is somewhere else",
        second_tier: Open,
        run: |testbed| {
            fs::write(
                testbed
                    .workspace()
                    .join("store/worktrees/tree/config.worktree"),
                "x",
            )
        },
    },
    Attempt {
        name: "worktree-common",
        shows: "so is what it shares with other worktrees",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("store/hooks/post-checkout"), "x"),
    },
    Attempt {
        name: "worktree-file",
        shows: "so is the file that names it",
        second_tier: Open,
        run: |testbed| fs::write(testbed.folder.join("tree/.git"), "gitdir: /elsewhere"),
    },
    Attempt {
        name: "nested-git-hook",
        shows: "repositories inside the workspace are protected",
        second_tier: Open,
        run: |testbed| {
            fs::write(
                testbed.workspace().join("nested/.git/hooks/post-checkout"),
                "x",
            )
        },
    },
    Attempt {
        name: "deep-git-file",
        shows: "so are those further down, and submodules",
        second_tier: Open,
        run: |testbed| {
            let file = testbed.workspace().join("vendor/lib/.git");
            fs::write(file, "gitdir: ../../evil")
        },
    },
    Attempt {
        name: "deep-git-move",
        shows: "no folder on the way to them can be moved away",
        second_tier: Open,
        run: |testbed| {
            let workspace = testbed.workspace();
            fs::rename(workspace.join("vendor"), workspace.join("away"))
        },
    },
    Attempt {
        name: "submodule-not-checked-out",
        shows: "a submodule that is not checked out cannot be given a repository",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("pending/.git"), "gitdir: ../evil"),
    },
    Attempt {
        name: "submodule-not-there",
        shows: "nor one whose folder is missing",
        second_tier: Open,
        run: |testbed| {
            let folder = testbed.workspace().join("absent");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(".git"), "gitdir: ../evil")
        },
    },
    Attempt {
        name: "closed-git",
        shows: "a repository stays as it is in a folder that was closed before",
        second_tier: Open,
        run: |testbed| {
            let folder = testbed.workspace().join("closed");
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
            fs::write(folder.join("deep/.git/config"), "x")
        },
    },
    Attempt {
        name: "linked-git",
        shows: "a link to a repository cannot be exchanged for another",
        second_tier: Open,
        run: |testbed| {
            let link = testbed.workspace().join("linked/.git");
            fs::remove_file(&link)?;
            symlink("../evil", link)
        },
    },
    Attempt {
        name: "linked-git-target",
        shows: "nor can what it leads to be changed",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("linked/store/config"), "x"),
    },
    Attempt {
        name: "hooks-elsewhere",
        shows: "hooks are protected where the settings of the repository say they are",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("hooks/pre-commit"), "x"),
    },
    Attempt {
        name: "settings-included",
        shows: "so are settings that it includes",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("team.config"), "x"),
    },
    Attempt {
        name: "settings-included-missing",
        shows: "settings that it would include cannot be made",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("missing.config"), "x"),
    },
    Attempt {
        name: "settings-program",
        shows: "programs that they name stay as they are",
        second_tier: Open,
        run: |testbed| fs::write(testbed.workspace().join("tools/show"), "x"),
    },
    Attempt {
        name: "worktree-file-replace",
        shows: "nor can another be put in its place",
        second_tier: Open,
        run: |testbed| {
            let file = testbed.folder.join("tree/file");
            fs::write(&file, "gitdir: /elsewhere")?;
            fs::rename(file, testbed.folder.join("tree/.git"))
        },
    },
    Attempt {
        name: "worktree-store-move",
        shows: "nor can what it names be moved away",
        second_tier: Open,
        run: |testbed| {
            let workspace = testbed.workspace();
            fs::rename(workspace.join("store"), workspace.join("away"))
        },
    },
    Attempt {
        name: "nested-git-move",
        shows: "the folder around a repository cannot be moved away, and another put in its place",
        second_tier: Open,
        run: |testbed| {
            let workspace = testbed.workspace();
            fs::rename(workspace.join("nested"), workspace.join("away"))
        },
    },
    Attempt {
        name: "nested-git-swap",
        shows: "nor be exchanged with another",
        second_tier: Open,
        run: |testbed| {
            let ours = testbed.workspace().join("ours");
            fs::create_dir(&ours)?;
            exchange(&ours, &testbed.workspace().join("nested"))
        },
    },
    Attempt {
        name: "hidden-move",
        shows: "nor can a folder around what is hidden be moved, so that it comes to light",
        second_tier: Open,
        run: |testbed| {
            let workspace = testbed.workspace();
            fs::rename(workspace.join("around"), workspace.join("away"))?;
            fs::read(workspace.join("away/hidden/secret")).map(drop)
        },
    },
    Attempt {
        name: "hidden-second-name",
        shows: "nor does a hidden file come to light by a second name",
        second_tier: Open,
        run: |testbed| {
            let name = testbed.workspace().join("second-name");
            fs::hard_link(testbed.workspace().join("around/hidden/secret"), &name)?;
            fs::read(name).map(drop)
        },
    },
    Attempt {
        name: "make-protected-by-rename",
        shows: "a protected name cannot be given to a folder that was made under another",
        second_tier: Open,
        run: |testbed| {
            let folder = testbed.workspace().join("innocent");
            fs::create_dir(&folder)?;
            fs::write(folder.join("config.toml"), "x")?;
            fs::rename(folder, testbed.workspace().join(".raddle"))
        },
    },
    Attempt {
        name: "make-protected-by-link",
        shows: "nor to a link",
        second_tier: Open,
        run: |testbed| {
            let name = testbed.workspace().join(".agents");
            let _ = fs::remove_dir(&name);
            symlink(testbed.workspace(), name)
        },
    },
    Attempt {
        name: "make-protected-by-second-name",
        shows: "nor can a file be put under it by a second name",
        second_tier: Open,
        run: |testbed| {
            let (file, folder) = (
                testbed.workspace().join("file"),
                testbed.workspace().join(".codex"),
            );
            fs::write(&file, "x")?;
            let _ = fs::create_dir(&folder);
            fs::hard_link(file, folder.join("config.toml"))
        },
    },
    Attempt {
        name: "remount-git",
        shows: "the mounts that protect cannot be undone from inside",
        second_tier: Stopped,
        run: |testbed| {
            syscalls::own_namespaces(libc::CLONE_NEWNS)?;
            let (kind, at) = (
                c"tmpfs".to_owned(),
                syscalls::path(&testbed.workspace().join(".git"))?,
            );
            syscalls::call(
                libc::SYS_mount,
                &[
                    syscalls::at(&kind),
                    syscalls::at(&at),
                    syscalls::at(&kind),
                    0,
                    0,
                ],
            )
            .map(drop)
        },
    },
];

/// Exchanges the names of both.
fn exchange(ours: &Path, theirs: &Path) -> io::Result<()> {
    let (ours, theirs) = (syscalls::path(ours)?, syscalls::path(theirs)?);
    let here = libc::AT_FDCWD as usize;
    let words = [
        here,
        syscalls::at(&ours),
        here,
        syscalls::at(&theirs),
        libc::RENAME_EXCHANGE as usize,
    ];
    syscalls::call(libc::SYS_renameat2, &words).map(drop)
}
