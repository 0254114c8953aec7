//! Resolution of paths and write access: the corpus of paths that must not be misjudged.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use proptest::prelude::*;
use raddle_sandbox::{Policy, SandboxRules};
use raddle_tools::files::{ReadFile, Roots, WriteAccess, WriteFile};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::support::TestWorkspace;

/// Verdict on a path.
#[derive(Debug, PartialEq)]
enum PathVerdict {
    Inside,
    Beyond,
    Protected,
    /// An error with these words in it.
    Refused(&'static str),
}
use PathVerdict::{Beyond, Inside, Protected, Refused};

/// Creates a workspace with every kind of path that could be misjudged, and files beside it.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new();
    let top = world.folder.path();
    world.write("a.txt", "inside\n");
    world.write("x/b.txt", "inside\n");
    world.write(".git/config", "inside\n");
    world.write("sub/.git/config", "inside\n");
    fs::create_dir(top.join("work-2")).expect("a folder");
    fs::write(top.join("work-2/a.txt"), "outside\n").expect("a file");
    fs::create_dir(top.join("hidden")).expect("a folder");
    fs::write(top.join("hidden/key"), "secret\n").expect("a file");
    let links = [
        ("in-file", "a.txt"),
        ("in-folder", "x"),
        ("in-deep", "x/../x/./b.txt"),
        ("out-file", "../work-2/a.txt"),
        ("out-folder", "../work-2"),
        ("out-and-in", "../work/a.txt"),
        ("out-missing", "../nowhere"),
        ("git", ".git"),
        ("git-file", ".git/config"),
        ("key", "../hidden/key"),
        ("to-top", "/"),
        ("loop-1", "loop-2"),
        ("loop-2", "loop-1"),
        ("dangling", "x/new.txt"),
        ("process", "/proc/self/cwd"),
    ];
    for (name, target) in links {
        symlink(target, world.work.join(name)).expect("a link");
    }
    symlink(world.work.join("a.txt"), world.work.join("absolute")).expect("a link");
    for number in 0..45 {
        let target = format!("chain-{}", number + 1);
        symlink(target, world.work.join(format!("chain-{number}"))).expect("a link");
    }
    world.write("chain-45", "the end\n");
    let fifo = world.work.join("pipe");
    mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o600)).expect("a pipe");
    drop(UnixListener::bind(world.work.join("socket")).expect("a socket"));
    symlink("/dev/zero", world.work.join("device")).expect("a link");
    world
}

fn check(roots: &Roots) {
    let long = "n".repeat(4096);
    let deep = "d/".repeat(3000) + "a.txt";
    let top = roots.cwd().parent().expect("a folder around it").display();
    let absolute = |rest: &str| format!("{top}/{rest}");
    let cases: Vec<(String, PathVerdict)> = vec![
        ("a.txt".into(), Inside),
        ("new.txt".into(), Inside),
        ("new/deep/a.txt".into(), Inside),
        ("./x/../a.txt".into(), Inside),
        ("~/a.txt".into(), Inside),
        (absolute("work/a.txt"), Inside),
        (absolute("work/../work/a.txt"), Inside),
        // A name with the workspace's as its prefix is another one.
        (absolute("work-2/a.txt"), Beyond),
        (absolute("work2"), Beyond),
        (absolute("Work/a.txt"), Beyond),
        ("../work-2/a.txt".into(), Beyond),
        ("../../../../../../../../etc/passwd".into(), Beyond),
        ("/etc/passwd".into(), Beyond),
        ("x/../../work-2/a.txt".into(), Beyond),
        // Links that stay inside, and links that leave.
        ("in-file".into(), Inside),
        ("in-folder/b.txt".into(), Inside),
        ("in-folder/new.txt".into(), Inside),
        ("in-deep".into(), Inside),
        ("absolute".into(), Inside),
        ("out-and-in".into(), Inside),
        ("dangling".into(), Inside),
        ("out-file".into(), Beyond),
        ("out-folder/a.txt".into(), Beyond),
        ("out-folder/new.txt".into(), Beyond),
        ("out-folder/../work/a.txt".into(), Inside),
        ("out-missing".into(), Beyond),
        ("to-top/etc/passwd".into(), Beyond),
        ("chain-10".into(), Inside),
        ("chain-0".into(), Refused("not followed")),
        ("loop-1".into(), Refused("not followed")),
        // Links of procfs lead anywhere.
        ("/proc/self/root/etc/passwd".into(), Refused("not followed")),
        ("/proc/self/cwd/a.txt".into(), Refused("not followed")),
        ("process/a.txt".into(), Refused("not followed")),
        ("/dev/fd/0".into(), Refused("not followed")),
        // Protected names, however they are spelled or reached.
        (".git".into(), Protected),
        (".git/config".into(), Protected),
        (".git/new".into(), Protected),
        (".GIT/config".into(), Protected),
        (".Git".into(), Protected),
        (".g\u{200c}it/config".into(), Protected),
        (".codex/config.toml".into(), Protected),
        (".agentſ/a.md".into(), Protected),
        (".raddle".into(), Protected),
        ("new/.git/hooks/x".into(), Protected),
        ("sub/.git/config".into(), Protected),
        ("git/config".into(), Protected),
        ("git-file".into(), Protected),
        ("x/../.git/config".into(), Protected),
        (".gitignore".into(), Inside),
        // Also outside the workspace.
        (absolute("work-2/.git/config"), Protected),
        ("../work-2/new/.GIT/hooks/x".into(), Protected),
        ("out-folder/.codex/config.toml".into(), Protected),
        ("/etc/.raddle/rules.toml".into(), Protected),
        (absolute("work-2/.gitignore"), Beyond),
        // Hidden paths are not written either.
        ("key".into(), Protected),
        ("../hidden/new".into(), Protected),
        // One character in two normal forms is two names.
        ("é.txt".into(), Inside),
        ("e\u{301}.txt".into(), Inside),
        // Invalid paths.
        ("".into(), Refused("it is empty")),
        ("a\0b".into(), Refused("NUL")),
        (long.clone(), Refused("too long")),
        (format!("x/{long}/a"), Refused("too long")),
        ("a.txt/b".into(), Refused("a file stands")),
        ("nowhere/../a.txt".into(), Refused("does not exist")),
        (deep, Inside),
    ];
    for (path, expected) in cases {
        let access = match roots.writable(Path::new(&path)) {
            Ok(WriteAccess::Inside) => Inside,
            Ok(WriteAccess::Beyond) => Beyond,
            Ok(WriteAccess::Protected) => Protected,
            Err(error) => match &expected {
                Refused(words) if error.to_string().contains(words) => Refused(words),
                _ => panic!("{path}: {error}"),
            },
        };
        assert_eq!(access, expected, "{path}");
    }
}

#[test]
fn path_corpus() {
    let world = world();
    let hidden = world.folder.path().join("hidden");
    let roots = || world.roots_with(|rules| rules.hidden = vec![hidden.clone()]);
    check(&roots());
    check(&roots().on_an_older_kernel());
}

/// Git obeys more than `.git`; the file tools protect the same paths as the sandbox.
#[test]
fn paths_that_control_git_are_protected_everywhere() {
    let world = TestWorkspace::new();
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world.write(
        ".git/config",
        "[core]\n hooksPath = hooks\n[include]\n path = ../team.config\n[filter \"x\"]\n clean = tools/clean.sh %f\n",
    );
    world.write("tools/clean.sh", "");
    world.write("tools/other.sh", "");
    world.write("store/HEAD", "");
    world.write("store/refs/x", "");
    world.write("store/objects/x", "");
    world.write("lib/.git/HEAD", "");
    world.write("lib/.git/config", "[core]\n hooksPath = own\n");
    let roots = world.roots();
    for (path, expected) in [
        ("a.txt", WriteAccess::Inside),
        ("hooks/pre-commit", WriteAccess::Protected),
        ("hooks", WriteAccess::Protected),
        ("hooks-2/x", WriteAccess::Inside),
        ("team.config", WriteAccess::Protected),
        ("tools/clean.sh", WriteAccess::Protected),
        ("tools/other.sh", WriteAccess::Inside),
        ("store/config", WriteAccess::Protected),
        ("store/worktrees/x/gitdir", WriteAccess::Protected),
        ("lib/own/pre-commit", WriteAccess::Protected),
        ("lib/x", WriteAccess::Inside),
        ("vendor/lib/.git", WriteAccess::Protected),
    ] {
        let access = roots.writable(Path::new(path)).expect(path);
        assert_eq!(access, expected, "{path}");
    }
    let write = WriteFile {
        path: "hooks/pre-commit".to_owned(),
        content: "x".to_owned(),
    };
    let error = write.plan(&roots).expect_err("it is refused");
    assert!(error.to_string().contains("is protected"), "{error}");
}

/// A file may have a second hard link outside: a package store links into many projects.
#[test]
fn writes_do_not_reach_a_hard_link_outside() {
    for older in [false, true] {
        let world = TestWorkspace::new();
        let outside = world.folder.path().join("outside");
        fs::write(&outside, "before\n").expect("a file");
        fs::hard_link(&outside, world.work.join("linked")).expect("a second name");
        let roots = match older {
            true => world.roots().on_an_older_kernel(),
            false => world.roots(),
        };
        let write = WriteFile {
            path: "linked".to_owned(),
            content: "after\n".to_owned(),
        };
        let planned = write.plan(&roots).expect("it is planned");
        planned.apply(&roots).expect("it is written");
        assert_eq!(world.read("linked"), "after\n");
        assert_eq!(
            fs::read_to_string(&outside).expect("it is there"),
            "before\n"
        );
    }
}

/// Only regular files are opened, so the tool never waits for a writer of a pipe.
#[test]
fn special_files_do_not_block() {
    let world = world();
    let hidden = world.folder.path().join("hidden");
    let roots = world.roots_with(|rules| rules.hidden = vec![hidden.clone()]);
    let cases = [
        ("pipe", "is a pipe"),
        ("socket", "is a socket"),
        ("device", "is a device"),
        ("/dev/zero", "is a device"),
        ("x", "is a folder"),
        ("/", "is a folder"),
        ("/proc/version", "may not be read"),
        ("key", "may not be read"),
        ("../hidden/key", "may not be read"),
    ];
    for (path, words) in cases {
        let read = ReadFile {
            path: path.to_owned(),
            ..ReadFile::default()
        };
        let error = read.run(&roots).expect_err(path).to_string();
        assert!(error.contains(words), "{path}: {error}");
        let write = WriteFile {
            path: path.to_owned(),
            content: String::new(),
        };
        assert!(write.plan(&roots).is_err(), "{path} would be written");
    }
}

/// The repository of a worktree is where its `.git` file says.
#[test]
fn a_separate_git_dir_is_protected() {
    let world = TestWorkspace::new();
    world.write(".git", "gitdir: store/trees/one\n");
    world.write("store/trees/one/commondir", "../..\n");
    world.write("store/hooks/x", "");
    let roots = world.roots();
    for (path, expected) in [
        ("store/hooks/x", WriteAccess::Protected),
        ("store/trees/one/HEAD", WriteAccess::Protected),
        ("storeroom/a", WriteAccess::Inside),
    ] {
        let access = roots.writable(Path::new(path)).expect("a place");
        assert_eq!(access, expected, "{path}");
    }
}

/// Another thread may work in the folder that `TMPDIR` names.
#[test]
fn protected_names_apply_in_scratch_outside_of_tmp() {
    for (around, expected) in [
        ("/tmp", WriteAccess::Inside),
        ("/var/tmp", WriteAccess::Protected),
    ] {
        let folder = tempfile::tempdir_in(around).expect("a folder");
        let scratch = folder.path().canonicalize().expect("its plain path");
        let world = TestWorkspace::new();
        let roots = world.roots_with(|rules| rules.scratch.push(scratch.clone()));
        for (path, expected) in [
            ("a/.git/hooks/x", expected),
            ("a/file", WriteAccess::Inside),
        ] {
            let access = roots.writable(&scratch.join(path)).expect("a place");
            assert_eq!(access, expected, "{path} in {around}");
        }
    }
}

/// Git does not follow it either, and the cost must not grow with its names.
#[test]
fn a_git_dir_with_a_too_long_path_is_ignored() {
    for (count, expected) in [
        (100, WriteAccess::Protected),
        (100_000, WriteAccess::Inside),
    ] {
        let world = TestWorkspace::new();
        world.write(".git", format!("gitdir: {}store\n", "./".repeat(count)));
        world.write("store/hooks/x", "");
        let access = world.roots().writable(Path::new("store/hooks/x"));
        assert_eq!(access.expect("a place"), expected, "{count}");
    }
}

/// Hidden paths stay protected inside a writable workspace, and so do links to them.
#[test]
fn hidden_paths_stay_protected_inside_a_workspace() {
    let world = TestWorkspace::new();
    world.write("own/rules.toml", "");
    world.write("kept.toml", "");
    world.write("own/work/a", "");
    symlink("../kept.toml", world.work.join("own/link.toml")).expect("a link");
    let roots = |write: &str| {
        world.roots_with(|rules| {
            rules.write = vec![world.work.join(write)];
            rules.hidden = vec![world.work.join("own"), world.work.join("own/link.toml")];
        })
    };
    for (write, path, expected) in [
        ("own", "own/rules.toml", WriteAccess::Protected),
        ("own", "own/new", WriteAccess::Protected),
        ("", "own/rules.toml", WriteAccess::Protected),
        ("", "kept.toml", WriteAccess::Protected),
        ("", "own/link.toml", WriteAccess::Protected),
        ("own/work", "own/work/a", WriteAccess::Inside),
        ("own/work", "own/rules.toml", WriteAccess::Protected),
    ] {
        let access = roots(write).writable(Path::new(path)).expect("a place");
        assert_eq!(access, expected, "{path} where {write:?} is written");
    }
}

/// Of two rules on nested folders, the deeper one counts.
#[test]
fn the_deeper_rule_counts() {
    let world = TestWorkspace::new();
    world.write("secret/open/a", "");
    world.write(".git/hooks/a", "");
    let roots = world.roots_with(|rules| {
        rules.hidden = vec![world.work.join("secret")];
        rules.write.push(world.work.join("secret/open"));
        rules.write.push(world.work.join(".git/hooks"));
        rules.write.push(world.work.join("nowhere"));
    });
    for (path, expected) in [
        ("secret/a", WriteAccess::Protected),
        ("secret/open/a", WriteAccess::Inside),
        (".git/config", WriteAccess::Protected),
        (".git/hooks/a", WriteAccess::Inside),
    ] {
        let access = roots.writable(Path::new(path)).expect("a place");
        assert_eq!(access, expected, "{path}");
    }
}

/// Approved changes outside the workspace are written, also through a link.
#[test]
fn approved_changes_outside_are_written() {
    let world = world();
    let roots = world.roots();
    for (path, at) in [
        ("out-file", "work-2/a.txt"),
        ("../work-2/new/b.txt", "work-2/new/b.txt"),
    ] {
        let write = WriteFile {
            path: path.to_owned(),
            content: "written\n".to_owned(),
        };
        let planned = write.plan(&roots).expect("a plan");
        assert!(planned.is_beyond(), "{path}");
        planned.apply(&roots).expect("it is written");
        let text = fs::read_to_string(world.folder.path().join(at)).expect("a file");
        assert_eq!(text, "written\n");
    }
    let link = fs::read_link(world.work.join("out-file")).expect("still a link");
    assert_eq!(link, Path::new("../work-2/a.txt"));
}

/// The user sees a file below the folder that they named, whatever links led there.
#[test]
fn paths_are_shown_by_their_given_names() {
    let world = world();
    let top = world.folder.path();
    symlink("work", top.join("link")).expect("a link");
    let text = |folder: &str| top.join(folder).display().to_string();
    let names = BTreeMap::from([(text("link"), text("work"))]);
    let confined =
        |folder: &str| Policy::Confined(SandboxRules::workspace_write(vec![top.join(folder)]));
    let cases = [
        ("link", confined("work"), "a.txt", "link/a.txt"),
        ("link", Policy::FullAccess, "a.txt", "link/a.txt"),
        (
            "link",
            Policy::FullAccess,
            "../work-2/a.txt",
            "work-2/a.txt",
        ),
        ("link/x", confined("work"), "../a.txt", "link/a.txt"),
        ("work/x/..", confined("work"), "a.txt", "work/a.txt"),
        ("work/x/..", Policy::FullAccess, "in-file", "work/a.txt"),
    ];
    for (cwd, policy, path, expected) in cases {
        let roots = Roots::new(&top.join(cwd), &policy).expect("roots");
        let roots = match cwd.starts_with("link") {
            true => roots.named(&names),
            false => roots,
        };
        let write = WriteFile {
            path: path.to_owned(),
            content: "new\n".to_owned(),
        };
        let planned = write.plan(&roots).expect("a plan");
        let expected = top.join(expected).display().to_string();
        assert_eq!(planned.changes()[0].path, expected, "{cwd}: {path}");
        // Rules apply to every name of the file.
        let plain = Path::new(&expected).canonicalize().expect("a file");
        let paths = planned.paths();
        assert!(paths.contains(&expected), "{paths:?}");
        assert!(paths.contains(&plain.display().to_string()), "{paths:?}");
    }
}

/// The user sees the real path of a file outside the roots, in whatever folder a call begins.
#[test]
fn paths_outside_are_shown_by_their_real_path() {
    let world = world();
    let top = world.folder.path().canonicalize().expect("a folder");
    symlink("../work-2", world.work.join("docs")).expect("a link");
    let policy = Policy::Confined(SandboxRules::workspace_write(vec![world.work.clone()]));
    let roots = Roots::new(&world.work.join("docs"), &policy).expect("roots");
    let write = WriteFile {
        path: "new.txt".to_owned(),
        content: "new\n".to_owned(),
    };
    let planned = write.plan(&roots).expect("a plan");
    let real_path = top.join("work-2/new.txt").display().to_string();
    assert!(planned.is_beyond());
    assert_eq!(planned.changes()[0].path, real_path);
    assert!(
        planned.paths().contains(&real_path),
        "{:?}",
        planned.paths()
    );
}

/// Shells run code from the dotfiles of the home, whatever made it writable.
#[test]
fn dotfiles_of_the_home_are_protected_in_every_writable_folder() {
    let home = raddle_sandbox::home().expect("a home");
    let home = home.canonicalize().expect("its plain path");
    let world = TestWorkspace::new();
    type Grants = fn(&mut SandboxRules, &Path);
    let grants: [(&str, Grants); 4] = [
        ("the home", |rules, home| rules.write.push(home.to_owned())),
        ("the home as scratch", |rules, home| {
            rules.scratch.push(home.to_owned());
        }),
        ("scratch around it", |rules, home| {
            rules.scratch.extend(home.parent().map(Path::to_owned));
        }),
        ("both", |rules, home| {
            rules.write.push(home.to_owned());
            rules.scratch.extend(home.parent().map(Path::to_owned));
        }),
    ];
    for (grant_name, grant) in grants {
        let roots = world.roots_with(|rules| grant(rules, &home));
        for (name, expected) in [
            (".profile", WriteAccess::Protected),
            (".config/new/file", WriteAccess::Protected),
            ("no-dotfile", WriteAccess::Inside),
            ("folder/.no-dotfile-of-the-home", WriteAccess::Inside),
        ] {
            let actual = roots.writable(&home.join(name)).expect("a place");
            assert_eq!(actual, expected, "{grant_name}: {name}");
        }
    }
    // The rule does not apply to dotfiles of other folders.
    let roots = world.roots_with(|rules| rules.scratch.push(home.clone()));
    assert_eq!(
        roots.writable(&world.work.join(".env")).ok(),
        Some(WriteAccess::Inside)
    );
}

/// Generates names that a model might combine, good and bad.
fn name() -> impl Strategy<Value = &'static str> {
    let inside = [
        "a.txt",
        "x",
        "new",
        "b.txt",
        "in-folder",
        "in-file",
        "absolute",
        "sub",
        ".",
    ];
    let outside = [
        "..",
        "work-2",
        "out-folder",
        "out-file",
        "to-top",
        "hidden",
        "key",
        "work",
    ];
    let special = [
        ".git", ".GIT", "config", "git", "pipe", "loop-1", "process", "/", "~",
    ];
    prop::sample::select([&inside[..], &outside[..], &special[..]].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever folder and file a model names, only the paths of the policy can be written.
    #[test]
    fn roots_invariant(
        folder in prop::collection::vec(name(), 0..3),
        names in prop::collection::vec(name(), 1..6),
    ) {
        let world = world();
        let top = world.folder.path();
        let rules = SandboxRules {
            hidden: vec![top.join("hidden")],
            ..SandboxRules::workspace_write(vec![world.work.clone()])
        };
        let cwd = world.work.join(folder.join("/"));
        let roots = Roots::new(&cwd, &Policy::Confined(rules)).expect("roots");
        let write = WriteFile { path: names.join("/"), content: "a model was here\n".to_owned() };
        if let Ok(planned) = write.plan(&roots) && !planned.is_beyond() {
            prop_assert!(planned.apply(&roots).is_ok());
            prop_assert_eq!(planned.files.len(), 1);
            prop_assert!(planned.files[0].target.plain.starts_with(fs::canonicalize(&world.work).expect("a path")));
        }
        for (path, text) in [
            ("work-2/a.txt", "outside\n"),
            ("hidden/key", "secret\n"),
            ("work/.git/config", "inside\n"),
            ("work/sub/.git/config", "inside\n"),
        ] {
            prop_assert_eq!(fs::read_to_string(top.join(path)).expect("a file"), text);
        }
        let count = |path: &str| fs::read_dir(top.join(path)).expect("a folder").count();
        prop_assert_eq!((count("."), count("work-2"), count("hidden"), count("work/.git")), (3, 1, 1, 1));
    }
}
