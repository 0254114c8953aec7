//! `raddle judge`: the verdict of the rules about a command line.

use std::fs;

use tempfile::TempDir;

use crate::support::server::command;

/// Returns stdout and stderr, with these rules in the home.
fn judged(rules: &str, arguments: &[&str]) -> (String, String) {
    let home = TempDir::new().expect("a folder");
    fs::write(home.path().join("rules.toml"), rules).expect("it is written");
    let output = command(home.path())
        .arg("judge")
        .args(arguments)
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
