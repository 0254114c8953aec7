//! What the fence refuses, and what it hands on.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn fence(tier: Tier) -> Fence {
    Fence::new(tier, "/usr/bin/bwrap".into(), "/opt/raddle".into())
}

fn launch(cwd: &Path) -> Launch {
    Launch {
        program: "make".into(),
        args: vec!["--".into(), "all".into()],
        cwd: cwd.to_owned(),
        env: vec![("LD_PRELOAD".into(), "/w/evil.so".into())],
    }
}

fn wrap(tier: Tier, rules: Rules) -> Result<Fenced, Refused> {
    fence(tier).wrap(launch(Path::new("/")), &Policy::Fenced(rules))
}

fn refusal(tier: Tier, rules: Rules) -> String {
    match wrap(tier, rules) {
        Ok(fenced) => panic!("it is not refused: {:?}", fenced.launch.args),
        Err(refused) => refused.to_string(),
    }
}

#[test]
fn full_access_is_no_fence_in_any_tier() {
    for tier in [Tier::A, Tier::B, Tier::C] {
        let open = fence(tier).wrap(launch(Path::new("/")), &Policy::FullAccess);
        assert_eq!(
            open.expect("it is handed on").launch,
            launch(Path::new("/"))
        );
    }
}

#[test]
fn without_a_fence_nothing_is_run() {
    assert!(refusal(Tier::C, Rules::read_only()).contains("install bubblewrap"));
}

#[test]
fn the_second_tier_refuses_what_it_cannot_keep() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = vec![folder.path().to_owned()];
    let unprotected = Rules {
        protected: Vec::new(),
        ..Rules::workspace_write(root.clone())
    };
    for (rules, what) in [
        (Rules::workspace_write(root), "protecting names"),
        (
            Rules {
                hidden: vec!["/root".into()],
                ..unprotected.clone()
            },
            "hiding paths",
        ),
        (
            Rules {
                tmp: Tmp::Private,
                ..unprotected.clone()
            },
            "a /tmp of",
        ),
        (
            Rules {
                tmp: Tmp::Folder("/var".into()),
                ..unprotected.clone()
            },
            "a /tmp of",
        ),
    ] {
        assert!(refusal(Tier::B, rules).starts_with(what), "{what}");
    }
    assert!(wrap(Tier::B, unprotected).is_ok());
    assert!(wrap(Tier::B, Rules::read_only()).is_ok());
}

/// Bubblewrap and its loader stand outside, so they must not obey what was meant for the command.
#[test]
fn the_command_comes_last_and_its_environment_is_packed() {
    for tier in [Tier::A, Tier::B] {
        let launch = wrap(tier, Rules::read_only())
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

/// Whatever a model asks to run, and whatever it calls it, the fence is the principal's.
#[test]
fn nothing_that_a_command_says_changes_its_fence() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut rules = Rules::workspace_write(vec![folder.path().to_owned()]);
    rules.protected.clear();
    let policy = Policy::Fenced(rules);
    for tier in [Tier::A, Tier::B] {
        let before = |launch: Launch| {
            let (program, args) = (launch.program.clone(), launch.args.clone());
            let wrapped = fence(tier)
                .wrap(launch, &policy)
                .expect("it is wrapped")
                .launch;
            let fence = wrapped.args.len() - args.len() - 1;
            assert_eq!(wrapped.args[fence], program);
            assert_eq!(wrapped.args[fence + 1..], args);
            (wrapped.program, wrapped.args[..fence].to_vec())
        };
        let plain = before(launch(Path::new("/")));
        for words in [
            "--bind / /",
            "-- sh",
            "write / -- sh",
            "fence-inside tier b network open write / -- sh",
            "--share-net --dev-bind / / --",
        ] {
            let mut words = words.split(' ').map(OsString::from);
            let odd = Launch {
                program: words.next().expect("a word"),
                args: words.collect(),
                env: vec![("RADDLE_COMMAND_x".into(), "write /".into())],
                ..launch(Path::new("/"))
            };
            assert_eq!(before(odd), plain);
        }
    }
}

#[test]
fn the_network_is_the_rules() {
    for (network, own) in [(Network::None, true), (Network::Open, false)] {
        let rules = Rules {
            network,
            ..Rules::read_only()
        };
        let launch = wrap(Tier::A, rules).expect("it is wrapped").launch;
        assert_eq!(launch.args.contains(&"--unshare-net".into()), own);
    }
}

#[test]
fn a_command_starts_where_it_can_see() {
    let rules = Rules {
        read: Read::Listed(Vec::new()),
        ..Rules::read_only()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let hidden = fence(Tier::A).wrap(launch(folder.path()), &Policy::Fenced(rules));
    assert!(matches!(hidden, Err(Refused::Cwd { .. })), "{hidden:?}");
}

#[test]
fn more_repositories_than_can_be_named_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..1_200 {
        fs::create_dir_all(folder.path().join(format!("{number}/.git"))).expect("it is made");
    }
    let rules = Rules::workspace_write(vec![folder.path().to_owned()]);
    let said = refusal(Tier::A, rules);
    assert!(said.contains("work in one of the repositories"), "{said}");
}

/// A workspace with what is said of it on the disk, and what then is protected or why it is refused.
#[test]
fn what_is_on_the_disk_decides_what_is_protected() {
    struct Case {
        name: &'static str,
        make: fn(&Path) -> io::Result<()>,
        expected: Result<&'static [&'static str], &'static str>,
    }
    let cases = [
        Case {
            name: "nothing",
            make: |_| Ok(()),
            expected: Ok(&[".git", ".codex"]),
        },
        Case {
            name: "a repository",
            make: |w| fs::create_dir_all(w.join(".git/hooks")),
            expected: Ok(&[".git", ".codex"]),
        },
        Case {
            name: "a worktree",
            make: |w| {
                fs::create_dir_all(w.join("store/worktrees/tree"))?;
                fs::write(w.join("store/worktrees/tree/commondir"), "../..\n")?;
                fs::write(w.join(".git"), "gitdir: store/worktrees/tree\n")
            },
            expected: Ok(&["store/worktrees/tree", "store", ".git", ".codex"]),
        },
        Case {
            name: "a worktree of nothing",
            make: |w| fs::write(w.join(".git"), "gitdir: store\n"),
            expected: Err("store, which is not there"),
        },
        Case {
            name: "a worktree of something that is gone from elsewhere",
            make: |w| fs::write(w.join(".git"), "gitdir: /gone/store\n"),
            expected: Ok(&[".git", ".codex"]),
        },
        Case {
            name: "nested repositories",
            make: |w| {
                fs::create_dir_all(w.join("a/.git"))?;
                fs::create_dir_all(w.join("b/.git/x"))?;
                symlink("a", w.join("link"))
            },
            expected: Ok(&[".git", ".codex", "a/.git", "b/.git"]),
        },
        Case {
            name: "a nested worktree, and one of nothing",
            make: |w| {
                fs::create_dir_all(w.join("store/worktrees/tree"))?;
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
        Case {
            name: "a nested link",
            make: |w| {
                fs::create_dir_all(w.join("a/store"))?;
                symlink("store", w.join("a/.git"))
            },
            expected: Err("symbolic link"),
        },
        Case {
            name: "a link",
            make: |w| symlink("/etc", w.join(".codex")),
            expected: Err("symbolic link"),
        },
    ];
    for Case {
        name,
        make,
        expected,
    } in cases
    {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("it is there");
        make(&root).expect(name);
        let rules = Rules {
            protected: vec![".git".into(), ".codex".into()],
            ..Rules::workspace_write(vec![root.clone()])
        };
        match (Seen::look(&rules, Tier::A), expected) {
            (Ok(mut seen), Ok(expected)) => {
                let mut expected: Vec<PathBuf> = expected.iter().map(|it| root.join(it)).collect();
                expected.sort();
                seen.protected.sort();
                assert_eq!(seen.protected, expected, "{name}");
            }
            (Err(refused), Err(why)) => {
                assert!(refused.to_string().contains(why), "{name}: {refused}")
            }
            (found, _) => panic!("{name}: {found:?}"),
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
    let look = |of: &[&str]| {
        let rules = Rules::workspace_write(of.iter().map(|it| base.join(it)).collect());
        Seen::look(&rules, Tier::B).map(|seen| seen.write)
    };
    for (given, real) in [
        (&["w", "w/inner"][..], &["w"][..]),
        (&["link", "w"], &["w"]),
        (&["w", "missing"], &["w"]),
        (&["w", "other"], &["other", "w"]),
    ] {
        let real: Vec<PathBuf> = real.iter().map(|it| base.join(it)).collect();
        assert_eq!(look(given).expect("they are fine"), real, "{given:?}");
    }
    // A command in `w` may have put the link there.
    for moved in [["w", "w/out"], ["link", "w/out"], ["w", "w/in"]] {
        let moved = look(&moved).expect_err("it is refused");
        assert!(moved.to_string().contains("leads it elsewhere"), "{moved}");
    }
    for odd in ["w", "/w/../etc"] {
        let rules = Rules::workspace_write(vec![odd.into()]);
        assert!(
            refusal(Tier::A, rules).contains("must be absolute"),
            "{odd}"
        );
    }
}

/// What a rule names itself was meant, and what stands around it stays protected.
#[test]
fn a_path_inside_a_protected_one_can_be_granted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = fs::canonicalize(folder.path()).expect("it is there");
    fs::create_dir_all(root.join(".git/objects")).expect("it is made");
    let look = |inner: &str| {
        let mut rules = Rules::workspace_write(vec![root.clone(), root.join(inner)]);
        rules.protected = vec![".git".into()];
        let seen = Seen::look(&rules, Tier::A).expect("it is there");
        (seen.write, seen.protected)
    };
    assert_eq!(look(".git"), (vec![root.clone()], vec![]));
    let objects = root.join(".git/objects");
    assert_eq!(
        look(".git/objects"),
        (vec![root.clone(), objects], vec![root.join(".git")])
    );
}
