//! `raddle judge`: the verdict of the rules about a command line.

use std::fs;

use tempfile::TempDir;

use crate::support::server::command;

/// Returns stdout and stderr, with these rules in the home.
fn judged(rules: &str, arguments: &[&str]) -> (String, String) {
    judged_with("", rules, arguments)
}

/// Returns stdout and stderr, with this configuration and these rules in the home.
fn judged_with(config: &str, rules: &str, arguments: &[&str]) -> (String, String) {
    let home = TempDir::new().expect("a folder");
    fs::write(home.path().join("config.toml"), config).expect("it is written");
    fs::write(home.path().join("rules.toml"), rules).expect("it is written");
    let output = command(home.path())
        .arg("judge")
        .args(arguments)
        .env("TMPDIR", "/var/tmp")
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_output_matches_the_example_of_the_docs() {
    let page = include_str!("../../../../docs/policy.md");
    let example = page.split("```console\n").nth(1).expect("an example");
    let (line, expected) = example.split_once('\n').expect("a line");
    assert_eq!(
        line,
        "$ raddle judge --approval-policy untrusted 'cargo test && git push'"
    );
    let expected = expected.split("```").next().expect("what it prints");
    let (stdout, stderr) = judged(
        "",
        &["--approval-policy", "untrusted", "cargo test && git push"],
    );
    // The tier depends on the machine.
    let stdout = stdout.replace("(tier B)", "(tier A)");
    assert_eq!((stdout.as_str(), stderr.as_str()), (expected, ""));
}

#[test]
fn rules_of_the_home_count() {
    let rules =
        "odd = 1\n[[rule]]\ncommand = [\"rm\"]\nverdict = \"deny\"\nreason = \"Not here.\"\n";
    let (stdout, stderr) = judged(rules, &["ls; sudo bash -c 'rm \u{202e}x'"]);
    let first = stdout.lines().next();
    assert_eq!(first, Some("deny, by command rm: Not here."), "{stdout}");
    assert!(stdout.contains(r"  rm '\u{202e}x'"), "{stdout}");
    assert!(stderr.contains("`odd` is not a key of rules"), "{stderr}");
}

#[test]
fn rules_that_cannot_be_read_are_an_error() {
    let (stdout, stderr) = judged("[[rule]]\ncommand = [\"rm\"]\n", &["ls"]);
    assert_eq!(stdout, "");
    assert!(stderr.contains("rule 1: it has no verdict"), "{stderr}");
}

/// The sandbox is that of new threads; the tier depends on the machine.
#[test]
fn the_verdict_comes_with_its_containment() {
    let cwd = std::env::current_dir().expect("a folder");
    let cwd = cwd.display();
    let write = "sandbox_mode = 'workspace-write'\nsandbox_accept_tier = 'B'\n";
    let more = "[sandbox_workspace_write]\nnetwork_access = true\nexclude_slash_tmp = true\n\
                writable_roots = ['/srv']\n";
    let deny = "[[rule]]\ncommand = [\"ls\"]\nverdict = \"deny\"\nreason = \"No.\"\n";
    let wide = format!("{write}{more}");
    let nothing = "would run in the sandbox (tier ?): writes nothing; no network".to_owned();
    for (config, rules, words, expected) in [
        ("", "", &["ls"][..], nothing.clone()),
        ("", deny, &["ls"], "would not run".to_owned()),
        (
            "",
            "",
            &["--approval-policy", "untrusted", "make"],
            format!("if approved, {nothing}"),
        ),
        (
            write,
            "",
            &["ls"],
            format!(
                "would run in the sandbox (tier ?): writes only {cwd}, /tmp, /var/tmp; no network"
            ),
        ),
        (
            wide.as_str(),
            "",
            &["ls"],
            format!(
                "would run in the sandbox (tier ?): writes only {cwd}, /var/tmp, /srv; network through the proxy"
            ),
        ),
        (
            "",
            "",
            &["--beyond", "ls"],
            "if approved, would run without a sandbox".to_owned(),
        ),
        (
            "sandbox_mode = 'danger-full-access'\n",
            "",
            &["ls"],
            "would run without a sandbox".to_owned(),
        ),
    ] {
        let (stdout, stderr) = judged_with(config, rules, words);
        let line = stdout.lines().nth(1).unwrap_or_default();
        let line = line
            .replace("(tier A)", "(tier ?)")
            .replace("(tier B)", "(tier ?)");
        assert_eq!(line, expected, "{words:?}: {stdout}{stderr}");
    }
}
