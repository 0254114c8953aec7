//! Refusals of the sandbox, and the launches that it returns.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn sandbox(tier: Tier) -> SandboxHost {
    SandboxHost::new(tier, "/usr/bin/bwrap".into(), "/opt/raddle".into())
}

fn launch(cwd: &Path) -> Launch {
    Launch {
        program: "make".into(),
        args: vec!["--".into(), "all".into()],
        cwd: cwd.to_owned(),
        env: vec![("LD_PRELOAD".into(), "/w/evil.so".into())],
    }
}

fn wrap(tier: Tier, rules: SandboxRules) -> Result<ConfinedLaunch, SandboxRefusal> {
    sandbox(tier).wrap(launch(Path::new("/")), &Policy::Confined(rules))
}

fn refusal(tier: Tier, rules: SandboxRules) -> String {
    match wrap(tier, rules) {
        Ok(confined) => panic!("it is not refused: {:?}", confined.launch.args),
        Err(refusal) => refusal.to_string(),
    }
}

#[test]
fn full_access_is_no_sandbox_in_any_tier() {
    for tier in [Tier::A, Tier::B, Tier::C] {
        let unconfined = sandbox(tier).wrap(launch(Path::new("/")), &Policy::FullAccess);
        assert_eq!(
            unconfined.expect("it is handed on").launch,
            launch(Path::new("/"))
        );
    }
}

#[test]
fn without_a_sandbox_nothing_is_run() {
    assert!(refusal(Tier::C, SandboxRules::read_only()).contains("install bubblewrap"));
}

#[test]
fn the_second_tier_refuses_rules_that_it_cannot_enforce() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = vec![folder.path().to_owned()];
    let unprotected = SandboxRules {
        protected: Vec::new(),
        ..SandboxRules::workspace_write(root.clone())
    };
    for (rules, feature) in [
        (SandboxRules::workspace_write(root), "protecting names"),
        (
            SandboxRules {
                hidden: vec!["/root".into()],
                ..unprotected.clone()
            },
            "hiding paths",
        ),
        (
            SandboxRules {
                tmp: Tmp::Private,
                ..unprotected.clone()
            },
            "a /tmp of",
        ),
        (
            SandboxRules {
                tmp: Tmp::Folder("/var".into()),
                ..unprotected.clone()
            },
            "a /tmp of",
        ),
    ] {
        assert!(refusal(Tier::B, rules).starts_with(feature), "{feature}");
    }
    assert!(wrap(Tier::B, unprotected).is_ok());
    assert!(wrap(Tier::B, SandboxRules::read_only()).is_ok());
}

/// Bubblewrap and its loader run outside, so the variables of the command must not reach them.
#[test]
fn the_command_comes_last_and_its_environment_is_packed() {
    for tier in [Tier::A, Tier::B] {
        let launch = wrap(tier, SandboxRules::read_only())
            .expect("it is wrapped")
            .launch;
        assert!(
            launch
                .args
                .ends_with(&["--".into(), "make".into(), "--".into(), "all".into()])
        );
        assert!(launch.env.iter().all(|(name, _)| name != "LD_PRELOAD"));
        assert_eq!(launch.env.len(), 1);
    }
}

/// The principal's policy sets the sandbox, whatever command a model asks to run.
#[test]
fn no_argument_of_a_command_changes_its_sandbox() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rules = SandboxRules::workspace_write(vec![folder.path().to_owned()]);
    rules.protected.clear();
    let policy = Policy::Confined(rules);
    for tier in [Tier::A, Tier::B] {
        let sandbox_part = |launch: Launch| {
            let (program, args) = (launch.program.clone(), launch.args.clone());
            let wrapped = sandbox(tier)
                .wrap(launch, &policy)
                .expect("it is wrapped")
                .launch;
            let sandbox_args = wrapped.args.len() - args.len() - 1;
            assert_eq!(wrapped.args[sandbox_args], program);
            assert_eq!(wrapped.args[sandbox_args + 1..], args);
            (wrapped.program, wrapped.args[..sandbox_args].to_vec())
        };
        let plain = sandbox_part(launch(Path::new("/")));
        for words in [
            "--bind / /",
            "-- sh",
            "write / -- sh",
            "sandbox-inside tier b network open write / -- sh",
            "--share-net --dev-bind / / --",
        ] {
            let mut words = words.split(' ').map(OsString::from);
            let odd = Launch {
                program: words.next().expect("a word"),
                args: words.collect(),
                env: vec![("RADDLE_COMMAND_x".into(), "write /".into())],
                ..launch(Path::new("/"))
            };
            assert_eq!(sandbox_part(odd), plain);
        }
    }
}

#[test]
fn the_network_is_the_rules() {
    for (network, own) in [(Network::None, true), (Network::Open, false)] {
        let rules = SandboxRules {
            network,
            ..SandboxRules::read_only()
        };
        let launch = wrap(Tier::A, rules).expect("it is wrapped").launch;
        assert_eq!(launch.args.contains(&"--unshare-net".into()), own);
    }
}

#[test]
fn a_command_starts_where_it_can_see() {
    let rules = SandboxRules {
        read: ReadScope::Listed(Vec::new()),
        ..SandboxRules::read_only()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let result = sandbox(Tier::A).wrap(launch(folder.path()), &Policy::Confined(rules));
    assert!(
        matches!(result, Err(SandboxRefusal::Cwd { .. })),
        "{result:?}"
    );
}

/// The paths that a command can only read although the folder around them can be written.
fn read_only(rules: SandboxRules) -> Vec<PathBuf> {
    let confined = wrap(Tier::A, rules).expect("it is wrapped");
    let words: Vec<&OsString> = confined.launch.args.iter().collect();
    let mounts = words.windows(3);
    let mounts = mounts.filter(|it| it[0] == "--ro-bind" && it[1] == it[2]);
    mounts.map(|it| PathBuf::from(it[2])).collect()
}

/// Builds a workspace whose contents `make` creates.
fn workspace(
    make: impl FnOnce(&Path) -> io::Result<()>,
) -> (tempfile::TempDir, PathBuf, SandboxRules) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(folder.path()).expect("it is there");
    make(&root).expect("it is made");
    let rules = SandboxRules::workspace_write(vec![root.clone()]);
    (folder, root, rules)
}

#[test]
fn repositories_at_any_depth_are_protected() {
    let (_folder, root, rules) = workspace(|w| {
        fs::create_dir_all(w.join("vendor/lib/store"))?;
        fs::create_dir_all(w.join("a/b/c/d/e/.git/hooks"))?;
        fs::write(
            w.join("vendor/lib/.git"),
            "gitdir: ../../.git/modules/lib\n",
        )
    });
    let protected = read_only(rules);
    for path in ["vendor/lib/.git", "a/b/c/d/e/.git"] {
        assert!(
            protected.contains(&root.join(path)),
            "{path}: {protected:?}"
        );
    }
}

/// A submodule counts before it is checked out: git looks into its folder from the repository
/// around it.
#[test]
fn submodules_that_the_index_names_are_protected_whether_or_not_they_are_there() {
    let (_folder, root, rules) = workspace(|w| {
        for folder in [".git", "empty", "full", "file", "gone", "out/.git"] {
            fs::create_dir_all(w.join(folder))?;
        }
        fs::remove_dir(w.join("file"))?;
        fs::write(w.join("file"), "")?;
        fs::write(w.join("full/file"), "")?;
        fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let paths = ["empty", "file/lib", "full", "gone/deep/lib", "out"];
        fs::write(w.join(".git/index"), git_index::tests::index(2, 20, &paths))
    });
    let confined = wrap(Tier::A, rules.clone()).expect("it is wrapped");
    assert!(root.join("full/.git").is_dir() && root.join("gone/deep").is_dir());
    // A second command finds the placeholders of the first.
    let protected = read_only(rules);
    drop(confined);
    for path in ["empty", "file", "full/.git", "gone/deep", "out/.git"] {
        assert!(
            protected.contains(&root.join(path)),
            "{path}: {protected:?}"
        );
    }
    assert!(!root.join("full/.git").exists() && !root.join("gone/deep").exists());
}

/// The work tree may reach further up than the writable folder.
#[test]
fn the_repository_around_a_root_counts() {
    let (_folder, root, _) = workspace(|w| {
        fs::create_dir_all(w.join(".git"))?;
        fs::create_dir_all(w.join("sub/lib"))?;
        fs::write(w.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        let index = git_index::tests::index(2, 20, &["other", "sub/lib"]);
        fs::write(w.join(".git/index"), index)
    });
    let protected = read_only(SandboxRules::workspace_write(vec![root.join("sub")]));
    assert!(protected.contains(&root.join("sub/lib")), "{protected:?}");
    assert!(!protected.contains(&root.join("other")), "{protected:?}");
}

/// A path that a configuration names is protected where it exists, and gets a placeholder where it
/// is missing.
#[test]
fn paths_that_a_configuration_names_are_protected() {
    let (_folder, root, rules) = workspace(|w| {
        for folder in [".git", "tools", "lib/.git"] {
            fs::create_dir_all(w.join(folder))?;
        }
        fs::write(w.join("tools/show"), "")?;
        fs::write(w.join("team"), "[include]\n path = more\n")?;
        for repository in ["", "lib"] {
            fs::write(w.join(repository).join(".git/HEAD"), "")?;
        }
        fs::write(
            w.join("lib/.git/config"),
            "[core]\n hooksPath = .git/none\n",
        )?;
        let config = "[core]\n hooksPath = new/hooks\n[include]\n path = ../team\n path = none\n\
            [diff \"x\"]\n textconv = sh tools/show missing/word\n[core]\n hooksPath = .\n";
        fs::write(w.join(".git/config"), config)
    });
    let confined = wrap(Tier::A, rules.clone()).expect("it is wrapped");
    let notices = confined.notices.iter().map(ToString::to_string);
    let notices: Vec<String> = notices.collect();
    assert!(
        notices.len() == 1 && notices[0].contains("`core.hookspath`"),
        "{notices:?}"
    );
    // An empty file in place of one that git would read.
    assert!(root.join("more").is_file() && root.join("new").is_dir());
    let protected = read_only(rules);
    for path in ["new", "team", "more", "tools/show"] {
        assert!(
            protected.contains(&root.join(path)),
            "{path}: {protected:?}"
        );
    }
    drop(confined);
    assert!(!root.join("more").exists() && !root.join("new").exists());
    let entries = |path: &str| fs::read_dir(root.join(path)).expect("it is there").count();
    assert_eq!(
        (entries(".git"), entries("lib/.git"), entries("tools")),
        (2, 2, 1)
    );
}

/// A program that git runs is protected, however its path is written. Each case is a configuration,
/// a path, and whether the user gets a notice that something stays open.
#[test]
fn programs_of_git_are_protected_wherever_git_starts_them() {
    for (config, expected, has_notice) in [
        ("[core]\n fsmonitor = ./t.sh\n", "t.sh", false),
        (
            "[core]\n worktree = ../sub\n fsmonitor = ./t.sh\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = ./t.sh\n worktree = ../sub\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n worktree = ../sub\n hooksPath = hooks\n",
            "sub/hooks",
            false,
        ),
        ("[include]\n path = ../team\n", "sub/t.sh", false),
        ("[core]\n fsmonitor = $PWD/t.sh\n", "t.sh", false),
        ("[core]\n fsmonitor = ${PWD}/sub/t.sh\n", "sub/t.sh", false),
        ("[core]\n fsmonitor = \\\"$PWD\\\"/t.sh\n", "t.sh", false),
        (
            "[core]\n fsmonitor = '\\\"${PWD}/\\\"t.sh'\n",
            "t.sh",
            false,
        ),
        ("[core]\n fsmonitor = $(pwd)/t.sh\n", "t.sh", false),
        (
            "[core]\n fsmonitor = \"$(git rev-parse --show-toplevel)/t.sh\"\n",
            "t.sh",
            false,
        ),
        (
            "[core]\n worktree = ../sub\n fsmonitor = $PWD/t.sh\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = \"cd sub && ./t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = \"cd ./sub; sh t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = \"cd -P -- $PWD/sub && ./t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = \"cd sub; cd deep; ./t.sh\"\n",
            "sub/deep/t.sh",
            false,
        ),
        (
            "[core]\n worktree = ../sub\n fsmonitor = \"cd deep; ./t.sh\"\n",
            "sub/deep/t.sh",
            false,
        ),
        (
            "[core]\n sshCommand = \"env -C sub ./t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n sshCommand = \"env -Csub ./t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n sshCommand = \"env --chdir=sub ./t.sh\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[core]\n editor = t'.'sh sub/t.s\\\"h\\\"\n",
            "sub/t.sh",
            false,
        ),
        (
            "[filter \"x\"]\n clean = f() { ./t.sh; }; f\n",
            "t.sh",
            false,
        ),
        (
            "[core]\n fsmonitor = ./t.sh\n editor = {./t.sh,}\n",
            "t.sh",
            true,
        ),
        (
            "[diff \"x\"]\n textconv = cd sub && ./t.sh\n",
            "sub/t.sh",
            false,
        ),
        ("[merge \"x\"]\n driver = ./t.sh %O\n", "t.sh", false),
        ("[credential]\n helper = !$PWD/t.sh\n", "t.sh", false),
        ("[gpg]\n program = ./t.sh\n", "t.sh", false),
        ("[sequence]\n editor = ./t.sh\n", "t.sh", false),
        ("[gc]\n recentObjectsHook = ./t.sh\n", "t.sh", false),
        ("[sendemail]\n sendmailCmd = ./t.sh\n", "t.sh", false),
        ("[remote \"x\"]\n url = ext::./t.sh\n", "t.sh", false),
        (
            "[core]\n fsmonitor = ./t.sh\n sshCommand = $X/t.sh\n",
            "t.sh",
            true,
        ),
        (
            "[core]\n fsmonitor = ./t.sh\n editor = $(cat x)/t.sh\n",
            "t.sh",
            true,
        ),
        (
            "[core]\n fsmonitor = ./t.sh\n editor = vim \\\"$1\\\" $@\n",
            "t.sh",
            false,
        ),
    ] {
        let (_folder, root, rules) = workspace(|w| {
            for folder in [".git", "sub/deep", "sub/hooks"] {
                fs::create_dir_all(w.join(folder))?;
            }
            for file in ["t.sh", "sub/t.sh", "sub/deep/t.sh", ".git/HEAD"] {
                fs::write(w.join(file), "")?;
            }
            fs::write(
                w.join("team"),
                "[core]\n worktree = ../sub\n fsmonitor = ./t.sh\n",
            )?;
            fs::write(w.join(".git/config"), config)
        });
        let confined = wrap(Tier::A, rules.clone()).expect("it is wrapped");
        let notices = confined.notices.iter().map(ToString::to_string);
        let notices: Vec<String> = notices.collect();
        assert_eq!(!notices.is_empty(), has_notice, "{config}: {notices:?}");
        let protected = read_only(rules);
        assert!(
            protected.contains(&root.join(expected)),
            "{config}: {protected:?}"
        );
    }
}

/// A writable folder around a hidden one does not swallow a writable folder in it.
#[test]
fn a_named_folder_in_a_hidden_one_can_be_written() {
    let (_folder, root, _) = workspace(|w| fs::create_dir_all(w.join("own/cache/deep")));
    let cache = root.join("own/cache");
    let mut rules = SandboxRules::workspace_write(vec![root.clone(), cache.clone()]);
    rules.hide_own(&[root.join("own")]);
    let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None);
    let rule_set = rule_set.expect("it is there");
    let mounts = Mounts::new(&rules, &rule_set, Path::new("/helper"));
    let shown = ["own/cache/deep", "own/cache", "own/keys"].map(|it| mounts.shows(&root.join(it)));
    assert_eq!(shown, [true, true, false], "{mounts:?}");
    assert!(mounts.writable().contains(&cache), "{mounts:?}");
    // The hidden folder itself stays hidden.
    rules.write.push(root.join("own"));
    let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None);
    let rule_set = rule_set.expect("it is there");
    let mounts = Mounts::new(&rules, &rule_set, Path::new("/helper"));
    assert!(!mounts.shows(&root.join("own/keys")), "{mounts:?}");
}

/// Files in a home control shells, even those that a command would create.
#[test]
fn only_visible_entries_of_a_home_can_be_written() {
    let (_folder, root, _) = workspace(|w| {
        fs::create_dir_all(w.join("me/project/lib/.git"))?;
        fs::create_dir_all(w.join("me/.config"))?;
        fs::write(w.join("me/notes"), "")?;
        symlink("/etc", w.join("me/link"))?;
        fs::write(w.join("me/.profile"), "")
    });
    let home = root.join("me");
    for write in [vec![home.clone()], vec![root.clone()]] {
        let is_around = write[0] == root;
        let rules = SandboxRules::workspace_write(write);
        let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), Some(&home));
        let mut rule_set = rule_set.expect("it is there");
        let expected: Vec<PathBuf> = ["", "me/notes", "me/project"]
            .iter()
            .filter(|it| is_around || !it.is_empty())
            .map(|it| root.join(it).components().collect())
            .collect();
        rule_set.write.sort();
        assert_eq!(rule_set.write, expected);
        assert!(rule_set.protected.contains(&home), "{rule_set:?}");
        let nested = root.join("me/project/lib/.git");
        assert!(rule_set.protected.contains(&nested), "{rule_set:?}");
        assert!(rule_set.notices.contains(&Notice::Home(home.clone())));
        assert!(fs::read_dir(&home).expect("it is there").count() == 5);
    }
    let inside = SandboxRules::workspace_write(vec![home.join("project")]);
    let rule_set = RuleSet::survey(&inside, Tier::A, &RepositoryCache::default(), Some(&home));
    assert_eq!(rule_set.expect("it is there").notices, []);
    let refusal_text = refusal(Tier::A, SandboxRules::workspace_write(vec!["/".into()]));
    assert!(refusal_text.contains("whole disk"), "{refusal_text}");
}

/// The files of one command must not stop the next.
#[test]
fn more_repositories_than_can_be_named_make_their_folder_read_only() {
    let (_folder, root, rules) = workspace(|w| {
        fs::create_dir_all(w.join("lib/.git"))?;
        (0..1_500).try_for_each(|it| fs::create_dir_all(w.join(format!("many/{it}/.git"))))
    });
    let protected = read_only(rules);
    assert!(
        protected.contains(&root.join("lib/.git")),
        "{}",
        protected.len()
    );
    assert!(
        protected.contains(&root.join("many")),
        "{}",
        protected.len()
    );
}

#[test]
fn a_folder_that_cannot_be_entered_or_holds_a_link_is_read_only_as_a_whole() {
    let (_folder, root, rules) = workspace(|w| {
        fs::create_dir_all(w.join("closed/deep/.git"))?;
        fs::create_dir_all(w.join("x/store"))?;
        symlink("store", w.join("x/.git"))?;
        fs::set_permissions(w.join("closed"), fs::Permissions::from_mode(0o000))
    });
    let protected = read_only(rules);
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o755)).expect("opened");
    for path in ["closed", "x"] {
        assert!(
            protected.contains(&root.join(path)),
            "{path}: {protected:?}"
        );
    }
}

/// Its contents are unknown, so nothing in it can be protected alone.
#[test]
fn a_root_that_cannot_be_listed_is_read_only_as_a_whole() {
    for mode in [0o111, 0o333, 0o311, 0o300, 0o100] {
        let (_folder, root, rules) = workspace(|w| {
            fs::create_dir_all(w.join(".git"))?;
            fs::create_dir_all(w.join(".codex"))?;
            fs::create_dir_all(w.join("sub/er/.git"))?;
            fs::set_permissions(w, fs::Permissions::from_mode(mode))
        });
        let _lowered = crate::LoweredRights::enter().expect("a plain user's rights");
        let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None);
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).expect("opened");
        let rule_set = rule_set.expect("it is there");
        assert!(rule_set.protected.contains(&root), "{mode:o}: {rule_set:?}");
        assert!(!rule_set.write.contains(&root), "{mode:o}: {rule_set:?}");
        let notice = Notice::Closed(root.clone());
        assert!(rule_set.notices.contains(&notice), "{mode:o}: {rule_set:?}");
    }
}

/// The state of a workspace, and the protected paths or the refusal that follow.
#[test]
fn the_contents_of_the_disk_decide_what_is_protected() {
    struct WrapCase {
        name: &'static str,
        make: fn(&Path) -> io::Result<()>,
        expected: Result<&'static [&'static str], &'static str>,
    }
    let cases = [
        WrapCase {
            name: "nothing",
            make: |_| Ok(()),
            expected: Ok(&[".git", ".codex"]),
        },
        WrapCase {
            name: "a repository",
            make: |w| fs::create_dir_all(w.join(".git/hooks")),
            expected: Ok(&[".git", ".codex"]),
        },
        WrapCase {
            name: "a worktree",
            make: |w| {
                fs::create_dir_all(w.join("store/worktrees/tree"))?;
                fs::write(w.join("store/worktrees/tree/commondir"), "../..\n")?;
                fs::write(w.join(".git"), "gitdir: store/worktrees/tree\n")
            },
            expected: Ok(&["store/worktrees/tree", "store", ".git", ".codex"]),
        },
        WrapCase {
            name: "a worktree of nothing",
            make: |w| fs::write(w.join(".git"), "gitdir: store\n"),
            expected: Err("store, which is not there"),
        },
        WrapCase {
            name: "a worktree of something that is gone from elsewhere",
            make: |w| fs::write(w.join(".git"), "gitdir: /gone/store\n"),
            expected: Ok(&[".git", ".codex"]),
        },
        WrapCase {
            name: "nested repositories",
            make: |w| {
                fs::create_dir_all(w.join("a/.git"))?;
                fs::create_dir_all(w.join("b/.git/x"))?;
                symlink("a", w.join("link"))
            },
            expected: Ok(&[".git", ".codex", "a/.git", "b/.git"]),
        },
        WrapCase {
            name: "a nested worktree, and one of nothing",
            make: |w| {
                fs::create_dir_all(w.join("store/worktrees/tree"))?;
                fs::create_dir_all(w.join("store/objects"))?;
                fs::create_dir_all(w.join("store/refs"))?;
                fs::write(w.join("store/HEAD"), "")?;
                fs::write(w.join("store/worktrees/tree/HEAD"), "")?;
                fs::write(w.join("store/worktrees/tree/commondir"), "../..\n")?;
                fs::create_dir(w.join("tree"))?;
                fs::write(w.join("tree/.git"), "gitdir: ../store/worktrees/tree\n")?;
                fs::create_dir(w.join("lost"))?;
                fs::write(w.join("lost/.git"), "gitdir: ../gone\n")
            },
            expected: Ok(&[
                ".git",
                ".codex",
                "store",
                "store/worktrees/tree",
                "tree/.git",
                "lost/.git",
            ]),
        },
        WrapCase {
            name: "a nested link",
            make: |w| {
                fs::create_dir_all(w.join("a/store"))?;
                symlink("store", w.join("a/.git"))
            },
            expected: Ok(&[".git", ".codex", "a", "a/store"]),
        },
        WrapCase {
            name: "a link",
            make: |w| symlink("/etc", w.join(".codex")),
            expected: Err("symbolic link"),
        },
    ];
    for WrapCase {
        name,
        make,
        expected,
    } in cases
    {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("it is there");
        make(&root).expect(name);
        let rules = SandboxRules {
            protected: vec![".git".into(), ".codex".into()],
            ..SandboxRules::workspace_write(vec![root.clone()])
        };
        match (
            RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None),
            expected,
        ) {
            (Ok(mut rule_set), Ok(expected)) => {
                let mut expected: Vec<PathBuf> = expected.iter().map(|it| root.join(it)).collect();
                expected.sort();
                rule_set.protected.sort();
                assert_eq!(rule_set.protected, expected, "{name}");
            }
            (Err(refusal), Err(why)) => {
                assert!(refusal.to_string().contains(why), "{name}: {refusal}")
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}

#[test]
fn roots_are_real_and_none_lies_in_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = fs::canonicalize(folder.path()).expect("it is there");
    fs::create_dir_all(base.join("w/inner")).expect("it is made");
    fs::create_dir(base.join("other")).expect("it is made");
    symlink("w", base.join("link")).expect("it is made");
    symlink(base.join("other"), base.join("w/out")).expect("it is made");
    symlink("inner", base.join("w/in")).expect("it is made");
    let survey = |of: &[&str]| {
        let rules = SandboxRules::workspace_write(of.iter().map(|it| base.join(it)).collect());
        RuleSet::survey(&rules, Tier::B, &RepositoryCache::default(), None)
            .map(|rule_set| rule_set.write)
    };
    for (named, real) in [
        (&["w", "w/inner"][..], &["w"][..]),
        (&["w", "missing"], &["w"]),
        (&["w", "other"], &["other", "w"]),
    ] {
        let real: Vec<PathBuf> = real.iter().map(|it| base.join(it)).collect();
        assert_eq!(survey(named).expect("they are fine"), real, "{named:?}");
    }
    // A command in `w` may have created the link.
    for moved in [
        &["w", "w/out"][..],
        &["link", "w"],
        &["w", "w/in"],
        &["w/out"],
        &["link/inner"],
    ] {
        let moved = survey(moved).expect_err("it is refused");
        assert!(moved.to_string().contains(" leads to "), "{moved}");
    }
    for odd in ["w", "/w/../etc"] {
        let rules = SandboxRules::workspace_write(vec![odd.into()]);
        assert!(
            refusal(Tier::A, rules).contains("must be absolute"),
            "{odd}"
        );
    }
}

/// A list to which reads are limited grants nothing by a link, nor the whole disk.
#[test]
fn listed_paths_are_real_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = fs::canonicalize(folder.path()).expect("it is there");
    for name in ["seen", "own/inner"] {
        fs::create_dir_all(base.join(name)).expect("it is made");
    }
    symlink("seen", base.join("link")).expect("it is made");
    let rules = |paths: Vec<PathBuf>| SandboxRules {
        read: ReadScope::Listed(paths),
        settings: vec![base.join("own")],
        ..SandboxRules::read_only()
    };
    for (path, expected) in [
        (PathBuf::from("/"), "the whole disk"),
        (base.join("link"), " leads to "),
        (base.join("seen/.."), "without `..`"),
    ] {
        let why = refusal(Tier::A, rules(vec![path]));
        assert!(why.contains(expected), "{why}");
    }
    // Missing folders and the server's own are left out.
    let named = ["seen", "missing", "own/inner"];
    let rules = rules(named.iter().map(|it| base.join(it)).collect());
    let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None);
    let read = rule_set.expect("they are fine").read;
    assert_eq!(read, [base.join("seen")]);
}

/// A rule that names a path grants it, and the paths around it stay protected.
#[test]
fn a_path_inside_a_protected_one_can_be_granted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(folder.path()).expect("it is there");
    fs::create_dir_all(root.join(".git/objects")).expect("it is made");
    let survey = |inner: &str| {
        let mut rules = SandboxRules::workspace_write(vec![root.clone(), root.join(inner)]);
        rules.protected = vec![".git".into()];
        let rule_set = RuleSet::survey(&rules, Tier::A, &RepositoryCache::default(), None)
            .expect("it is there");
        (rule_set.write, rule_set.protected)
    };
    assert_eq!(survey(".git"), (vec![root.clone()], vec![]));
    let objects = root.join(".git/objects");
    assert_eq!(
        survey(".git/objects"),
        (vec![root.clone(), objects], vec![root.join(".git")])
    );
}

/// A repository that a command created may name anything, as often as it likes.
#[test]
fn an_exceeded_survey_budget_makes_the_root_read_only() {
    let deep = vec!["a"; 1_000].join("/");
    let (_folder, root, rules) = workspace(|w| {
        fs::create_dir_all(w.join("x/.git"))?;
        fs::create_dir_all(w.join("x").join(&deep))?;
        fs::write(w.join("x/.git/HEAD"), "")?;
        let command = format!(" a = sh{}\n", format!(" {deep}").repeat(60));
        let config = format!("[pager]\n{}", command.repeat(2));
        fs::write(w.join("x/.git/config"), config)
    });
    let confined = wrap(Tier::A, rules.clone()).expect("it is wrapped");
    let notices: Vec<String> = confined.notices.iter().map(ToString::to_string).collect();
    let protected = read_only(rules);
    assert!(protected.contains(&root), "{protected:?}");
    assert!(
        notices.len() == 1 && notices[0].contains("takes too long"),
        "{notices:?}"
    );
}

/// Each is a folder on the disk and two descriptors of the server for as long as a command runs.
#[test]
fn a_flood_of_missing_submodules_makes_few_placeholders() {
    let (_folder, root, rules) = workspace(|w| {
        fs::create_dir_all(w.join("x/.git"))?;
        fs::write(w.join("x/.git/HEAD"), "")?;
        let paths: Vec<String> = (0..700).map(|it| format!("s{it}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let index = git_index::tests::index(2, 20, &paths);
        fs::write(w.join("x/.git/index"), index)
    });
    let confined = wrap(Tier::A, rules.clone()).expect("it is wrapped");
    let count = fs::read_dir(root.join("x")).expect("it is there").count();
    assert!(count < 200, "{count}");
    assert!(read_only(rules).contains(&root.join("x")));
    drop(confined);
    assert_eq!(
        fs::read_dir(root.join("x")).expect("it is there").count(),
        1
    );
}
