//! A yes is good for one command and no other.

use std::collections::{BTreeMap, BTreeSet};

use raddle_core::policy::{Act, ActKind, Policy, Verdict};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{Digested, digest, of_words};

struct Parts {
    words: Vec<String>,
    cwd: String,
    environment: BTreeMap<String, String>,
    sandbox: String,
}

type Swap<'a> = &'a dyn Fn(&mut Parts);

fn act(it: &Parts) -> Act {
    let script = of_words(&it.words);
    let digest = digest(Digested {
        words: &it.words,
        commands: &script.commands,
        cwd: &it.cwd,
        environment: &it.environment,
        sandbox: &it.sandbox,
    });
    Act {
        kind: ActKind::Command {
            script,
            cwd: it.cwd.clone(),
            beyond: true,
        },
        digest,
        why: None,
    }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Each part of what was allowed is changed in turn, and each time somebody is asked again.
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
    let parts = |line: &str| Parts {
        words: words(line),
        cwd: cwd.clone(),
        environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        sandbox: "read-only".to_owned(),
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

    let changed = |change: &dyn Fn(&mut Parts)| {
        let mut parts = parts("bash run.sh now");
        change(&mut parts);
        act(&parts)
    };
    let swaps: [(&str, Swap); 9] = [
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
        ("the sandbox", &|it| {
            it.sandbox = "workspace-write".to_owned()
        }),
    ];
    for (what, swap) in swaps {
        assert_eq!(judged(&changed(swap), &granted), Verdict::Ask, "{what}");
    }

    // What is run, wherever it stands in the command.
    for line in [
        "bash run.sh",
        "./run.sh",
        "env bash ./run.sh",
        "bash -c ./run.sh",
        "python3 run.sh",
    ] {
        file("run.sh", "echo one");
        let before = act(&parts(line)).digest;
        assert_eq!(before, act(&parts(line)).digest, "{line}");
        file("run.sh", "echo two");
        assert_ne!(before, act(&parts(line)).digest, "{line}");
        std::fs::remove_file(folder.path().join("run.sh")).expect("a file");
        assert_ne!(before, act(&parts(line)).digest, "{line}, without it");
    }
    let before = act(&parts("make all")).digest;
    file("Makefile", "all: x");
    assert_ne!(before, act(&parts("make all")).digest);
    // What is only read may change.
    file("data", "one");
    let before = act(&parts("cat data")).digest;
    file("data", "two");
    assert_eq!(before, act(&parts("cat data")).digest);
}
