//! A resume of a thread that another client has open.

use super::*;

/// The server changes no settings of such a thread, so the run must not go on with others.
#[test]
fn limits_that_were_not_changed_are_an_error() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = \"half\" }, { held = true }]\n");
    let mut first = harness.started(&["--json", "--sandbox", "workspace-write", "go"]);
    harness.wait_until_held();
    for (words, limit) in [
        (["--sandbox", "read-only"], "so the sandbox was not changed"),
        (
            ["-c", "default_permissions=:read-only"],
            "so the permission profile was not changed",
        ),
        (["--budget", "tokens=80"], "so the budget was not changed"),
    ] {
        let words = [&["resume", "--last"][..], &words, &["x"]].concat();
        let output = harness.run(&words);
        assert_eq!(output.code, Some(1), "{words:?} {output:?}");
        assert!(
            output.err.contains("another client has the thread") && output.err.contains(limit),
            "{words:?} {output:?}"
        );
    }
    first.child.kill().expect("it runs");
    first.child.wait().expect("an end");
}
