//! Names inside a writable folder that must stay as they are.

use std::fs;
use std::os::unix::fs::symlink;

use raddle_sandbox::attempt::Attempt;
use raddle_sandbox::attempt::SecondTier::{Held, Open};

use crate::raw;

pub const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "git-config",
        shows: "the settings of the repository, which name programs, stay as they are",
        second_tier: Open,
        run: |stage| fs::write(stage.workspace().join(".git/config"), "x"),
    },
    Attempt {
        name: "git-move-away",
        shows: "the repository cannot be moved out of the way",
        second_tier: Open,
        run: |stage| {
            fs::rename(
                stage.workspace().join(".git"),
                stage.workspace().join("away"),
            )
        },
    },
    Attempt {
        name: "git-remove",
        shows: "nor be removed",
        second_tier: Open,
        run: |stage| fs::remove_file(stage.workspace().join(".git/config")),
    },
    Attempt {
        name: "git-swap",
        shows: "nor be exchanged with another",
        second_tier: Open,
        run: |stage| {
            let (ours, theirs) = (
                stage.workspace().join("ours"),
                stage.workspace().join(".git"),
            );
            fs::create_dir(&ours)?;
            let (ours, theirs) = (raw::path(&ours)?, raw::path(&theirs)?);
            let here = libc::AT_FDCWD as usize;
            let words = [
                here,
                raw::at(&ours),
                here,
                raw::at(&theirs),
                libc::RENAME_EXCHANGE as usize,
            ];
            raw::call(libc::SYS_renameat2, &words).map(drop)
        },
    },
    Attempt {
        name: "git-chmod",
        shows: "nor change its modes",
        second_tier: Open,
        run: |stage| {
            use std::os::unix::fs::PermissionsExt;
            let hooks = stage.workspace().join(".git/hooks");
            fs::set_permissions(hooks, fs::Permissions::from_mode(0o777))
        },
    },
    Attempt {
        name: "worktree-hook",
        shows: "the repository that a worktree names is protected, although it is somewhere else",
        second_tier: Open,
        run: |stage| {
            fs::write(
                stage
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
        run: |stage| fs::write(stage.workspace().join("store/hooks/post-checkout"), "x"),
    },
    Attempt {
        name: "worktree-file",
        shows: "so is the file that names it",
        second_tier: Open,
        run: |stage| fs::write(stage.folder.join("tree/.git"), "gitdir: /elsewhere"),
    },
    Attempt {
        name: "nested-git-hook",
        shows: "repositories inside the workspace are protected",
        second_tier: Open,
        run: |stage| {
            fs::write(
                stage.workspace().join("nested/.git/hooks/post-checkout"),
                "x",
            )
        },
    },
    Attempt {
        name: "make-protected-by-rename",
        shows: "a protected name cannot be given to a folder that was made under another",
        second_tier: Open,
        run: |stage| {
            let folder = stage.workspace().join("innocent");
            fs::create_dir(&folder)?;
            fs::write(folder.join("config.toml"), "x")?;
            fs::rename(folder, stage.workspace().join(".raddle"))
        },
    },
    Attempt {
        name: "make-protected-by-link",
        shows: "nor to a link",
        second_tier: Open,
        run: |stage| {
            let name = stage.workspace().join(".agents");
            let _ = fs::remove_dir(&name);
            symlink(stage.workspace(), name)
        },
    },
    Attempt {
        name: "make-protected-by-second-name",
        shows: "nor can a file be put under it by a second name",
        second_tier: Open,
        run: |stage| {
            let (file, folder) = (
                stage.workspace().join("file"),
                stage.workspace().join(".codex"),
            );
            fs::write(&file, "x")?;
            let _ = fs::create_dir(&folder);
            fs::hard_link(file, folder.join("config.toml"))
        },
    },
    Attempt {
        name: "remount-git",
        shows: "the mounts that protect cannot be undone from inside",
        second_tier: Held,
        run: |stage| {
            raw::own_namespaces(libc::CLONE_NEWNS)?;
            let (kind, at) = (
                c"tmpfs".to_owned(),
                raw::path(&stage.workspace().join(".git"))?,
            );
            raw::call(
                libc::SYS_mount,
                &[raw::at(&kind), raw::at(&at), raw::at(&kind), 0, 0],
            )
            .map(drop)
        },
    },
];
