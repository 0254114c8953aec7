//! An approval covers one command and no other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use raddle_core::policy::{Act, ActKind, Policy, Verdict};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_sandbox::{LoweredRights, WrittenFolders};
use raddle_tools::shell::{ApprovalSubject, DigestInput, approval_subject, parse_words};

struct DigestParts {
    words: Vec<String>,
    cwd: String,
    environment: BTreeMap<String, String>,
    scope: String,
    call: String,
}

type PartChange<'a> = &'a dyn Fn(&mut DigestParts);

fn act(it: &DigestParts) -> Act {
    let script = parse_words(&it.words);
    let subject = approval_subject(DigestInput {
        words: &it.words,
        commands: &script.commands,
        cwd: &it.cwd,
        environment: &it.environment,
        scope: &it.scope,
        folders: &[PathBuf::from(&it.cwd)],
        written: None,
        call: &it.call,
    });
    Act {
        kind: ActKind::Command {
            script,
            cwd: it.cwd.clone(),
            beyond: true,
        },
        digest: subject.digest.expect("a digest"),
        reason: None,
    }
}

/// A shell that runs lines: its words before a line, its folder, the folders that count as a whole,
/// and those that other threads may write.
#[derive(Clone, Copy)]
struct Shell<'a> {
    start: [&'static str; 2],
    cwd: &'a Path,
    folders: &'a [PathBuf],
    written: Option<&'a WrittenFolders>,
}

impl Shell<'_> {
    fn subject(&self, line: &str, call: &str) -> ApprovalSubject {
        let [program, option] = self.start;
        let words = [program, option, line].map(str::to_owned);
        approval_subject(DigestInput {
            words: &words,
            commands: &parse_words(&words).commands,
            cwd: self.cwd.to_str().expect("a name"),
            environment: &BTreeMap::new(),
            scope: "",
            folders: self.folders,
            written: self.written,
            call,
        })
    }

    fn digest(&self, line: &str, call: &str) -> String {
        self.subject(line, call).digest.expect("a digest")
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Every part of an approved command is changed in turn, and each change needs another approval.
#[test]
fn grant_swap() {
    let folder = tempfile::tempdir().expect("a folder");
    let file =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    file("run.sh", "echo one");
    file("Makefile", "all:");
    std::fs::create_dir(folder.path().join("other")).expect("a file");
    std::fs::write(folder.path().join("other/run.sh"), "echo one").expect("a file");
    let cwd = folder.path().to_str().expect("a name").to_owned();
    let parts = |line: &str| DigestParts {
        words: words(line),
        cwd: cwd.clone(),
        environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        scope: "read-only".to_owned(),
        call: "c1".to_owned(),
    };
    let settings = Settings {
        approval: ApprovalPolicy::OnRequest,
        ..Settings::default()
    };
    let judged = |act: &Act, granted: &BTreeSet<String>| {
        Policy::default().judge(act, &settings, granted).verdict
    };

    let allowed = act(&parts("bash run.sh now"));
    let granted = BTreeSet::from([allowed.digest.clone()]);
    assert_eq!(judged(&allowed, &BTreeSet::new()), Verdict::Ask);
    assert_eq!(judged(&allowed, &granted), Verdict::Allow);
    assert_eq!(allowed.digest.len(), 64);

    let changed = |change: &dyn Fn(&mut DigestParts)| {
        let mut parts = parts("bash run.sh now");
        change(&mut parts);
        act(&parts)
    };
    let swaps: [(&str, PartChange); 9] = [
        ("a word", &|it| it.words[2] = "later".to_owned()),
        ("one word more", &|it| it.words.push("now".to_owned())),
        ("words joined", &|it| {
            it.words = vec!["bash".to_owned(), "run.sh now".to_owned()]
        }),
        ("the folder", &|it| it.cwd.push_str("/other")),
        ("a variable's value", &|it| {
            drop(it.environment.insert("A".to_owned(), "c".to_owned()))
        }),
        ("a variable's name", &|it| {
            it.environment = BTreeMap::from([("Ab".to_owned(), String::new())])
        }),
        ("a variable more", &|it| {
            drop(it.environment.insert("B".to_owned(), "c".to_owned()))
        }),
        ("no variable", &|it| it.environment.clear()),
        ("the scope", &|it| it.scope = "workspace-write".to_owned()),
    ];
    for (part_name, swap) in swaps {
        assert_eq!(
            judged(&changed(swap), &granted),
            Verdict::Ask,
            "{part_name}"
        );
    }

    // Another call of the same command is the same, and so is a rewritten file with the same text.
    file("run.sh", "echo one");
    let again = changed(&|it| it.call = "c2".to_owned());
    assert_eq!(judged(&again, &granted), Verdict::Allow);
    // Another folder with the same name and contents is another folder.
    let (here, there) = (folder.path().join("a"), folder.path().join("b"));
    for path in [&here, &there] {
        std::fs::create_dir(path).expect("a folder");
    }
    let inside = || {
        let mut parts = parts("ls");
        parts.cwd.push_str("/a");
        act(&parts).digest
    };
    let before = inside();
    std::fs::rename(&here, folder.path().join("c")).expect("moved");
    std::fs::rename(&there, &here).expect("moved");
    assert_ne!(before, inside());
}

/// Every file that a line names counts by its contents, however it is named.
#[test]
fn every_named_file_is_part_of_the_approval() {
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path().canonicalize().expect("its plain path");
    std::fs::create_dir_all(cwd.join("sub/deep")).expect("folders");
    std::fs::create_dir_all(cwd.join(".cargo")).expect("a folder");
    let shell = Shell {
        start: ["/bin/bash", "-lc"],
        cwd: &cwd,
        folders: std::slice::from_ref(&cwd),
        written: None,
    };
    let of = |line: &str, call: &str| shell.digest(line, call);
    std::fs::write(cwd.join("elsewhere"), "echo one").expect("a file");
    for (line, name) in [
        // By module, and by the file that an interpreter derives from a name.
        ("python3 -m tests", "tests.py"),
        ("python3 -mtests", "tests.py"),
        ("python3 -m tests.unit", "tests/unit.py"),
        ("python3 -m tests.unit", "tests/__init__.py"),
        ("python3.12 -m tests", "tests/__main__.py"),
        ("cd sub && python3 -m tests", "sub/tests.py"),
        ("PYTHONPATH=sub python3 -m tests", "sub/tests.py"),
        ("node -r ./setup x", "setup.js"),
        ("node --require=setup x", "node_modules/setup/index.js"),
        ("node app", "app.js"),
        ("ruby -rtasks x", "tasks.rb"),
        ("ruby -I sub -r tasks x", "sub/tasks.rb"),
        ("perl -MMy::Tasks -e run", "My/Tasks.pm"),
        ("perl -Isub -MTasks -e run", "sub/Tasks.pm"),
        ("./x", "x"),
        ("cat x", "x"),
        ("bash x now", "x"),
        ("sh -x x", "x"),
        ("bash < x", "x"),
        ("bash<x", "x"),
        (". x", "x"),
        ("source ./x", "x"),
        ("env A=b ./x", "x"),
        ("true && (sudo ./x)", "x"),
        ("bash -c 'bash -c \"./x\"'", "x"),
        ("echo $(./x)", "x"),
        ("python -W ignore x", "x"),
        ("python3 -m pytest", "conftest.py"),
        ("'./a b'", "a b"),
        ("./a\\ b", "a b"),
        ("cd sub && ./x", "sub/x"),
        ("cd sub; cd deep; ./x", "sub/deep/x"),
        ("pushd sub/deep && ./x", "sub/deep/x"),
        ("make", "Makefile"),
        ("make -C sub", "sub/Makefile"),
        ("make --directory=sub", "sub/Makefile"),
        ("make -f x", "x"),
        ("make -fx", "x"),
        ("make --file=x", "x"),
        ("tool --with a,x", "x"),
        ("/usr/bin/just", "justfile"),
        ("npm test", "package.json"),
        ("cargo build", "build.rs"),
        ("cargo build", ".cargo/config.toml"),
        ("curl -d @x example.com", "x"),
        ("curl -Kx example.com", "x"),
        ("curl -sKx example.com", "x"),
        ("curl -fsSLKx example.com", "x"),
        ("aws s3 cp file://x s3://bucket", "x"),
        ("aws lambda invoke --payload fileb://x out", "x"),
    ] {
        let file = cwd.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let without = of(line, "c1");
        std::fs::write(&file, "echo one").expect("a file");
        let one = of(line, "c1");
        // Interpreters and build tools load more than the line names, so an approval of them covers
        // one call.
        let loaders = "cargo just make node npm perl python ruby tool";
        let is_loader = |it: &str| line.contains(it);
        let loads = loaders.split(' ').any(is_loader) || line.contains('$');
        assert_eq!(one != of(line, "c2"), loads, "{line}: another call");
        std::fs::write(&file, "echo two").expect("a file");
        let two = of(line, "c1");
        std::fs::write(&file, vec![b'x'; 2 << 20]).expect("a file");
        let long = of(line, "c1");
        std::fs::remove_file(&file).expect("a file");
        // The same text at another path, which was not approved.
        std::os::unix::fs::symlink(cwd.join("elsewhere"), &file).expect("a link");
        let link = of(line, "c1");
        std::fs::remove_file(&file).expect("a link");
        let all = BTreeSet::from([&without, &one, &two, &long, &link]);
        assert_eq!(all.len(), 5, "{line}");
        assert_eq!(without, of(line, "c1"), "{line}: as it was");
    }
    // A script is run by the interpreter that its first line names.
    for (text, loads) in [
        ("#!/usr/bin/env python3\n", true),
        ("#!/usr/bin/python3.11 -u\n", true),
        ("#!/usr/bin/env -S node --no-warnings\n", true),
        ("#!/usr/bin/swipl\n", true),
        ("#!/bin/sh\n", false),
        ("#!/usr/bin/env -S bash -e\n", false),
        ("python3\n", false),
    ] {
        std::fs::write(cwd.join("x"), text).expect("a file");
        assert_eq!(of("./x", "c1") != of("./x", "c2"), loads, "{text:?}");
        std::fs::remove_file(cwd.join("x")).expect("a file");
    }
    // Programs that run nothing from the folder keep their approval for the session.
    for (line, loads) in [
        ("git push origin main", false),
        ("curl https://example.com", false),
        ("ssh host uptime", false),
        ("docker push image", false),
        ("git push origin next", false),
        ("firejail python3 x", true),
        ("docker compose up", true),
        ("podman build .", true),
        ("gmake", true),
        ("make-4.3 all", true),
        ("bmake all", true),
        ("pytest-3", true),
        ("ninja-build", true),
        ("hg push", true),
        ("CURL_HOME=d curl https://example.com", true),
        // An unknown program may load anything.
        ("deploy now", true),
        ("/opt/tools/deploy now", true),
        ("./deploy now", false),
        ("sudo systemctl restart web", false),
        ("timeout 5 rsync -a x host:y", false),
        ("podman push image", false),
        ("$PY -m tests", true),
        ("timeout 5 python3 -c 'import tests'", true),
        ("find . -exec node {} +", true),
    ] {
        assert_eq!(of(line, "c1") != of(line, "c2"), loads, "{line}");
    }
    // Kernel files change all the time.
    assert_eq!(
        of("cat /proc/uptime /proc/self/stat", "c1"),
        of("cat /proc/uptime /proc/self/stat", "c1")
    );
    // A named folder counts by its identity.
    let before = of("ls sub", "c1");
    std::fs::rename(cwd.join("sub"), cwd.join("old")).expect("moved");
    std::fs::create_dir(cwd.join("sub")).expect("a folder");
    assert_ne!(before, of("ls sub", "c1"));
    // If there are too many names, an approval covers one call only.
    for at in 0..65 {
        std::fs::write(cwd.join(format!("f{at}")), "").expect("a file");
        std::fs::create_dir(cwd.join(format!("d{at}"))).expect("a folder");
    }
    let list = |prefix: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
        format!("ls {}", names.join(" "))
    };
    // Of many files the last ones count too.
    let many = list("f", 65);
    let before = of(&many, "c1");
    std::fs::write(cwd.join("f64"), "x").expect("a file");
    assert_ne!(before, of(&many, "c1"));
    for (line, is_same) in [
        (list("f", 65), true),
        (list("d", 16), true),
        (list("d", 17), false),
        (list("n", 4_000), true),
        (list("n", 5_000), false),
    ] {
        let end: String = line.chars().rev().take(9).collect();
        assert_eq!(of(&line, "c1") == of(&line, "c2"), is_same, "{end}");
        assert_eq!(of(&line, "c1"), of(&line, "c1"), "{end}");
    }
}

/// A new repository nearer than the intended one is another one.
#[test]
fn the_repository_that_git_finds_is_part_of_the_approval() {
    let folder = tempfile::tempdir().expect("a folder");
    let top = folder.path().canonicalize().expect("its plain path");
    let make = |name: &str| {
        for part in ["objects", "refs"] {
            std::fs::create_dir_all(top.join(name).join(part)).expect("folders");
        }
        std::fs::write(top.join(name).join("HEAD"), "ref: refs/heads/main\n").expect("a file");
    };
    make(".git");
    make("bare.git");
    make("tree/.git");
    std::fs::create_dir_all(top.join("a/sub/deep")).expect("folders");
    let of = |cwd: &str, line: &str, call: &str| {
        let shell = Shell {
            start: ["/bin/bash", "-c"],
            cwd: &top.join(cwd),
            folders: &[top.clone(), top.join(cwd)],
            written: None,
        };
        shell.digest(line, call)
    };
    for (cwd, line, is_found) in [
        ("a/sub", "git fetch", true),
        ("a/sub", "git push origin main", true),
        ("a/sub/deep", "git status", true),
        ("a/sub", "gh pr create -t x", true),
        ("a/sub", "timeout 5 /usr/bin/git commit -m x", true),
        ("", "git -C a/sub push origin main", true),
        ("", "cd a/sub && git pull", true),
        ("a/sub", "curl https://host", false),
        ("", "git push origin main", false),
    ] {
        let before = of(cwd, line, "c1");
        // A sandboxed command keeps the name with an empty folder.
        std::fs::create_dir_all(top.join("a/sub/.git")).expect("a folder");
        assert_eq!(before, of(cwd, line, "c1"), "{line} in {cwd}: as it was");
        for planted in ["a/sub/.git", "a/sub"] {
            make(planted);
            let is_other = before != of(cwd, line, "c1");
            assert_eq!(is_other, is_found, "{line} in {cwd} with {planted}");
            let parts = ["HEAD", "objects", "refs"].map(|it| top.join(planted).join(it));
            for part in &parts[1..] {
                std::fs::remove_dir(part).expect("removed");
            }
            std::fs::remove_file(&parts[0]).expect("removed");
        }
        std::fs::remove_dir(top.join("a/sub/.git")).expect("removed");
        assert_eq!(before, of(cwd, line, "c1"), "{line} in {cwd}: as it was");
        assert_eq!(before, of(cwd, line, "c2"), "{line} in {cwd}: another call");
    }
    // Only the agent controls the hooks of a bare repository in the workspace.
    for (line, is_once) in [
        ("git push ./bare.git main", true),
        ("git push bare main", true),
        ("git push --repo=bare.git", true),
        ("git -C a fetch ../bare.git", true),
        ("git pull ./bare", true),
        ("cd a && git pull ../bare", true),
        ("git push tree main", false),
        ("git push origin main", false),
        ("git push . main:next", false),
        ("git add bare.git", false),
    ] {
        let is_other = of("", line, "c1") != of("", line, "c2");
        assert_eq!(is_other, is_once, "{line}");
    }
    let url = format!("git push file://{}/bare.git main", top.display());
    assert_ne!(of("", &url, "c1"), of("", &url, "c2"));
}

/// A file that a line only writes may change: only its location counts.
#[test]
fn files_that_are_only_written_may_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let shell = Shell {
        start: ["bash", "-c"],
        cwd: folder.path(),
        folders: &[folder.path().to_owned()],
        written: None,
    };
    let of = |line: &str| shell.digest(line, "c1");
    for (line, stays) in [
        ("echo a | tee -a log", true),
        ("echo a >> log", true),
        ("echo a >log", true),
        ("bash <>log", false),
        ("echo a > log; bash log", false),
        ("tee log < x; ./log", false),
        ("bash log", false),
    ] {
        let _ = std::fs::remove_file(at("log"));
        let missing = of(line);
        std::fs::write(at("log"), "one").expect("a file");
        let one = of(line);
        std::fs::write(at("log"), "two").expect("a file");
        assert_eq!(one == of(line), stays, "{line}");
        assert_eq!(missing == one, stays, "{line}");
        std::fs::rename(at("log"), at("old")).expect("moved");
        std::os::unix::fs::symlink("old", at("log")).expect("a link");
        assert_ne!(one, of(line), "{line}");
    }
}

/// A hold also covers files that do not exist yet, where the line would run them.
#[test]
fn files_that_a_line_would_run_are_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let cwd = folder.path().canonicalize().expect("its plain path");
    std::fs::create_dir(cwd.join("sub")).expect("a folder");
    for name in ["Makefile", "sub/run.sh"] {
        std::fs::write(cwd.join(name), "").expect("a file");
    }
    let shell = Shell {
        start: ["/bin/bash", "-lc"],
        cwd: &cwd,
        folders: std::slice::from_ref(&cwd),
        written: None,
    };
    let of = |line: &str| shell.subject(line, "").paths;
    for (line, name) in [
        ("make", "Makefile"),
        ("make", "GNUmakefile"),
        ("bash missing", "missing"),
        ("./missing", "missing"),
        (". ./env", "env"),
        ("cd sub && bash run.sh", "sub/run.sh"),
        ("cd sub && bash run.sh", "run.sh"),
        ("python3 -m tests", "tests.py"),
        ("git push", "."),
    ] {
        let path = cwd.join(name).components().collect();
        assert!(of(line).contains(&path), "{line}: {:?}", of(line));
    }
    // A word that is not a file is not held.
    for (line, count) in [("git push origin main", 1), ("curl https://example.com", 1)] {
        let paths = of(line);
        let inside = paths.iter().filter(|it| it.starts_with(&cwd));
        assert_eq!(inside.count(), count, "{line}: {paths:?}");
    }
}

/// A line that could run any file also runs those behind links, in scratch folders and in
/// workspaces of others.
#[test]
fn an_approval_of_unlisted_files_covers_every_reachable_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let top = folder.path().canonicalize().expect("its plain path");
    let cwd = top.join("work");
    for name in ["work/own", "other/scripts", "others", "home"] {
        std::fs::create_dir_all(top.join(name)).expect("a folder");
    }
    for (name, target) in [("link", "other"), ("near", "own"), ("round", "work")] {
        std::os::unix::fs::symlink(top.join(target), cwd.join(name)).expect("a link");
    }
    let written = WrittenFolders::of(&top.join("home"));
    written.add(&[top.join("other")]).expect("added");
    let shell = Shell {
        start: ["/bin/bash", "-c"],
        cwd: &cwd,
        folders: std::slice::from_ref(&cwd),
        written: Some(&written),
    };
    let of = |line: &str| shell.digest(line, "c1");
    let text = |name: &str| top.join(name).display().to_string();
    let (other, begin, others) = (text("other"), text("oth"), text("others"));
    for (line, file, counts) in [
        ("d=link; bash $d/scripts/a.sh", "other/scripts/a.sh", true),
        (
            "for f in link/*/a.sh; do bash $f; done",
            "other/scripts/a.sh",
            true,
        ),
        ("bash ../other/*/a.sh", "other/scripts/a.sh", true),
        (
            &format!("d={other}; bash $d/scripts/a.sh"),
            "other/scripts/a.sh",
            true,
        ),
        (&format!("bash {other}/*/a.sh"), "other/scripts/a.sh", true),
        (
            &format!("d={begin}; bash ${{d}}ers/a.sh"),
            "others/a.sh",
            true,
        ),
        (
            &format!("d={others}/a; bash ${{d}}.sh"),
            "others/a.sh",
            true,
        ),
        (
            &format!("d={top}; bash $d/others/a.sh", top = top.display()),
            "others/a.sh",
            true,
        ),
        ("d=own; bash $d/a.sh", "work/own/a.sh", true),
        // The line only writes this file.
        (&format!("bash $x > {others}/out"), "others/out", false),
        // Nothing leads there.
        ("bash $x.sh", "others/a.sh", false),
    ] {
        let file = top.join(file);
        let without = of(line);
        std::fs::write(&file, "echo one").expect("a file");
        let one = of(line);
        assert_eq!(without != one, counts, "{line}: a new file");
        assert_eq!(one, of(line), "{line}: the same");
        let held = shell.subject(line, "c1").paths;
        let is_held = held.contains(&file) || held.contains(&file.with_file_name("*"));
        assert!(is_held || !counts, "{line}: held");
        std::fs::remove_file(&file).expect("a file");
    }
    // Unreadable files cannot be approved. Root without its capabilities is like any other user.
    for (mode, line, is_readable) in [
        (0o311, "d=own; bash $d/a.sh", false),
        (0o000, "d=own; bash $d/a.sh", false),
        (0o444, "d=own; bash $d/a.sh", false),
        (0o311, "bash own/a.sh", true),
        (0o311, "git push origin $x", true),
        (0o755, "d=own; bash $d/a.sh", true),
    ] {
        let own = cwd.join("own");
        std::fs::write(own.join("a.sh"), "").expect("a file");
        std::fs::set_permissions(&own, Permissions::from_mode(mode)).expect("a mode");
        let lowered = LoweredRights::enter().expect("fewer rights");
        let digest = shell.subject(line, "c1").digest;
        drop(lowered);
        std::fs::set_permissions(&own, Permissions::from_mode(0o755)).expect("a mode");
        assert_eq!(
            digest.is_ok(),
            is_readable,
            "{line} with {mode:o}: {digest:?}"
        );
        if let Err(why) = digest {
            assert!(why.to_string().contains("/own"), "{why}");
        }
    }
}

/// Lines that run `run.sh`, or any other file of the folder, without its name.
const UNLISTED: &str = r##"
for f in *; do bash "$f"; done
for f in *.sh; do ./$f; done
find . -name 'run*' -exec bash {} \;
find . -name run.sh -ok bash {} \;
find . -type f -execdir ./x {} +
ls *.sh | xargs bash
ls | xargs -n1 bash
cat run* | bash
cat r*n.sh | bash
env -S './r${EMPTY}un.sh'
eval "$(<r*.sh)"
$PWD/run.sh
"$PWD"/run.sh
${PWD}/run.sh
~+/run.sh
~-/run.sh
~/run.sh
./ru?.sh
./r{u,}n.sh
x=run; ./$x.sh
/proc/self/cwd/run.sh
/proc/./self/cwd/run.sh
bash /proc/self/cwd/run.sh
cd /proc/self && bash cwd/run.sh
/dev/fd/../cwd/run.sh
/dev/fd/../../self/cwd/run.sh
/dev//fd/../cwd/run.sh
cd /dev; bash fd/../cwd/run.sh
bash /dev/stdin < run.sh
link/run.sh
BASH_ENV=$PWD/run.sh bash -c :
BASH_ENV=run.sh bash -c :
ENV=./run.sh sh -i
LD_PRELOAD=./run.so ls
GIT_CONFIG_COUNT=1 git status
PATH=sub:/bin run.sh
env PATH=sub:/bin run.sh
export BASH_ENV=r'un'.sh; bash -c :
declare -x 'BASH_ENV'=run.sh; bash -c :
echo run | xargs -I{} bash {}.sh
ls | xargs -I{} bash {}
run-parts --regex . .
run-parts --regex 'sh$' .
run-parts --regex 'sh$' $PWD
bash ${X-run.sh}
bash ${X-run}.sh
bash "${X-run}.sh"
bash run${X}.sh
bash $(echo run).sh
bash `ls`
bash $(ls)
bash $(printf 'r%sn.sh' u)
bash run.[s]h
bash run.s*
bash -c 'bash -c "bash r*n.sh"'
bash <(grep -rh '' .)
grep -h '' *.sh | sh
grep -rh '' . | sh
grep -rh '' . | bash -s now
grep -rh '' . | sudo bash -x
tail -n+1 r?n.sh | sh
exec 3<r*n.sh; bash <&3
git -c alias.q=!./run.sh q
git -c alias.q='!bash $PWD/run.sh' q
git -C . -c alias.q='!./run.sh' q
git -c core.hooksPath=sub commit
git --exec-path=. status
git ls-remote --upload-pack="$PWD/run.sh" .
git push --receive-pack='./r*n.sh' .
sed -n '1e./run.sh' /etc/hostname
sed 's/.*/.\/run.sh/e' /etc/hostname
awk 'BEGIN{system("sh run" ".sh")}'
f() { ./$1.sh; }; f run
f() { ./run$1; }; f .sh
set -- run; ./$1.sh
declare -n q=z; z=run; bash $q.sh
cd sub; bash ../r*.sh
parallel bash ::: run.sh
source r*n.sh
. ./r[u]n.sh
trap './r*n.sh' EXIT
$'./r\x75n.sh'
python3 $x.py
printf '. ./r\165n.sh' > f; bash f
"##;

/// If the executed files cannot be listed, an approval covers one call, and one state of the
/// folder.
#[test]
fn an_approval_of_unlisted_files_covers_one_call_and_one_state() {
    let folder = tempfile::tempdir().expect("a folder");
    // Not directly in the temporary folder: a line that leads up from here would depend on other
    // tests.
    let cwd = folder.path().canonicalize().expect("its plain path");
    let cwd = cwd.join("work");
    std::fs::create_dir_all(cwd.join("sub")).expect("a folder");
    std::os::unix::fs::symlink("/proc/self/cwd", cwd.join("link")).expect("a link");
    let shell = Shell {
        start: ["/bin/bash", "-c"],
        cwd: &cwd,
        folders: std::slice::from_ref(&cwd),
        written: None,
    };
    let of = |line: &str, call: &str| shell.digest(line, call);
    let mut failures = Vec::new();
    for line in UNLISTED.lines().filter(|it| !it.is_empty()) {
        std::fs::write(cwd.join("run.sh"), "echo one").expect("a file");
        let one = of(line, "c1");
        if one == of(line, "c2") {
            failures.push(format!("another call: {line}"));
        }
        if one != of(line, "c1") {
            failures.push(format!("the same call: {line}"));
        }
        std::fs::write(cwd.join("new"), "echo two").expect("a file");
        std::fs::rename(cwd.join("new"), cwd.join("run.sh")).expect("moved");
        if one == of(line, "c1") {
            failures.push(format!("another script: {line}"));
        }
        // Sandboxed commands that may write a folder further down are blocked too.
        let held = shell.subject(line, "c1").paths;
        if !held.iter().any(|it| it.parent() == Some(&cwd.join("sub"))) {
            failures.push(format!("not held: {line}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    // Literal lines and lines of data keep their digest; `true` if an approval covers the session.
    for (line, is_session) in [
        ("git push origin main", true),
        ("git -c user.name=me commit -m x", true),
        ("git commit -m 'Fix [a] and *b* of {c}'", true),
        ("git reset HEAD~1", true),
        ("curl 'https://example.com/?q=[1]'", true),
        ("curl https://example.com/ -o /dev/null 2>&1", true),
        ("cd sub && git push", true),
        ("[ -f run ] && git push", true),
        ("{ git push; }", true),
        ("RUST_LOG=debug ./tool", true),
        ("bash other.sh < input", true),
        ("find . -name x -delete", true),
        ("printf 'a\\n' | ./tool", true),
        ("gh pr create --title x --body 'a `b` *c*'", true),
        ("git commit -m \"$(cat note)\"", false),
        ("git push origin $(git branch --show-current)", false),
        ("docker run -v $PWD:/w image", false),
        ("rm -rf *.o", false),
        ("kill $PID", false),
    ] {
        std::fs::write(cwd.join("run.sh"), "echo one").expect("a file");
        let one = of(line, "c1");
        let commands = parse_words(&["bash", "-c", line].map(str::to_owned)).commands;
        assert_eq!(one == of(line, "c2"), is_session, "{line}: {commands:?}");
        // The line runs nothing from the folder, so it may change.
        std::fs::write(cwd.join("run.sh"), "echo two!").expect("a file");
        assert_eq!(one, of(line, "c1"), "{line}");
    }
    // In the sandbox nothing changes.
    for line in ["for f in *; do ./x $f; done", "ls | xargs wc"] {
        let shell = Shell {
            folders: &[],
            ..shell
        };
        let of = |call| shell.digest(line, call);
        assert_eq!(of("c1"), of("c2"), "{line}");
    }
}
