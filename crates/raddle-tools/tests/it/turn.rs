//! The diff of a turn is the one that git would print, down to the byte.

use std::path::Path;
use std::process::Command;

use raddle_tools::files::{TurnDiff, WriteFile};
use raddle_tools::patch::plan;

use crate::support::TestWorkspace;

fn git(world: &TestWorkspace, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=e",
            "-c",
            "core.fileMode=true",
        ])
        .args(arguments)
        .current_dir(&world.work)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn apply(world: &TestWorkspace, diff: &mut TurnDiff, patch: &str) {
    let roots = world.roots();
    let patch = format!("*** Begin Patch\n{patch}*** End Patch\n");
    let planned = plan(&roots, &patch).expect("a plan");
    planned.apply(&roots).expect("it is applied");
    diff.record(&planned);
}

#[test]
fn a_turn_is_shown_as_git_shows_it() {
    let lines = (1..=40).map(|it| format!("line {it}\n"));
    let long: String = lines.collect();
    let cases: [(&str, &[&str]); 9] = [
        ("a new file", &["*** Add File: new.txt\n+one\n+two\n"]),
        ("an empty new file", &["*** Add File: new.txt\n"]),
        ("a file that goes", &["*** Delete File: a.txt\n"]),
        (
            "a change, and another to the same file",
            &[
                "*** Update File: long.txt\n@@\n-line 3\n+line three\n",
                "*** Update File: long.txt\n@@\n-line 30\n+line thirty\n",
            ],
        ),
        (
            "a file that comes and goes",
            &[
                "*** Add File: new.txt\n+one\n",
                "*** Delete File: new.txt\n",
            ],
        ),
        (
            "a move, a change, and a move again",
            &[
                "*** Update File: long.txt\n*** Move to: moved.txt\n",
                "*** Update File: moved.txt\n@@\n-line 7\n+line seven\n",
                "*** Update File: moved.txt\n*** Move to: x/again.txt\n",
            ],
        ),
        (
            "no newline at the end",
            &["*** Update File: open.txt\n@@\n-one\n+1\n\\ No newline at end of file\n"],
        ),
        (
            "a name that needs quotes",
            &["*** Add File: grün \"x\".txt\n+one\n"],
        ),
        ("a program", &["*** Update File: run.sh\n@@\n-one\n+two\n"]),
    ];
    for (name, patches) in cases {
        let world = TestWorkspace::new();
        world.write("a.txt", "one\n");
        world.write("long.txt", &long);
        world.write("open.txt", "zero\none");
        world.write("run.sh", "one\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(world.work.join("run.sh"), mode).expect("a mode");
        git(&world, &["init", "-q", "."]);
        git(&world, &["add", "."]);
        git(&world, &["commit", "-qm", "first"]);
        let mut diff = TurnDiff::new(&world.work);
        for patch in patches {
            apply(&world, &mut diff, patch);
        }
        git(&world, &["add", "."]);
        let expected = git(
            &world,
            &[
                "diff",
                "--cached",
                "--histogram",
                "--full-index",
                "-M",
                "HEAD",
            ],
        );
        assert_eq!(headless(&diff.text()), headless(&expected), "{name}");
    }
}

/// Removes git's function names after hunks and its similarity index, which it computes
/// differently.
fn headless(diff: &str) -> String {
    let line = |line: &str| match line {
        _ if line.starts_with("similarity index") => String::new(),
        _ if line.starts_with("@@") => line.split(" @@").next().unwrap_or_default().to_owned(),
        _ => line.to_owned(),
    };
    diff.lines().map(|it| line(it) + "\n").collect()
}

/// Above the limit files are only named.
#[test]
fn a_turn_diff_has_a_size_limit() {
    let world = TestWorkspace::new();
    let roots = world.roots();
    let mut diff = TurnDiff::new(&world.work);
    for name in ["a.txt", "b.txt", "c.txt"] {
        let write = WriteFile {
            path: name.to_owned(),
            content: format!("{}\n", "x".repeat(1023)).repeat(6 << 10),
        };
        let planned = write.plan(&roots).expect("a plan");
        planned.apply(&roots).expect("it is written");
        diff.record(&planned);
    }
    let text = diff.text();
    let named = "Files /dev/null and b/c.txt differ, too large to show";
    assert!(text.lines().any(|it| it == named));
    assert!(text.contains("+++ b/b.txt"));
    assert_eq!(Path::new(&world.work), roots.cwd());
}
