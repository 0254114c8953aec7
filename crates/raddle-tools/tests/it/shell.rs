//! Parsing of command lines.

/// Actions of a line, in the terms of clients.
mod actions;
/// Verdicts on the same command in many disguises.
mod corpus;
/// Comparison with the commands that real shells run.
mod differential;
/// An approval covers one command and no other.
mod grants;
/// Laws that hold for all lines.
mod laws;
/// Properties of any line, shared with the fuzz targets.
mod property;
/// Random lines of tokens with a meaning to shells.
mod random;
/// Inputs of those fuzz targets.
mod seeds;
/// Attacks that worked on other tools.
mod tricks;

use std::collections::BTreeSet;

use raddle_core::policy::{
    Act, ActKind, Layer, ParsedScript, Policy, Rule, Ruling, Subject, UNKNOWN, Verdict,
};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{display_line, is_shown_whole, parse_line, quoted};

/// Checks the commands of each line. A block is a script after `$`, whether it is plain, and its
/// commands; `␀` is the unknown mark.
#[test]
fn lines_are_parsed_as_recorded() {
    let text = include_str!("shell/lines.txt");
    let mut wrong = String::new();
    let mut count = 0;
    for block in text
        .split("\n\n")
        .map(str::trim)
        .filter(|it| !it.is_empty())
    {
        let script: Vec<&str> = block
            .lines()
            .filter_map(|it| it.strip_prefix("$ "))
            .collect();
        let script = script.join("\n");
        let printed = print(&script, &parse_line(&script));
        if printed != block {
            wrong.push_str(&format!("{printed}\n\n"));
        }
        count += 1;
    }
    assert!(count > 90, "only {count} blocks were read");
    assert!(wrong.is_empty(), "these are taken apart so:\n\n{wrong}");
}

fn print(line: &str, script: &ParsedScript) -> String {
    let mut lines: Vec<String> = line.lines().map(|it| format!("$ {it}")).collect();
    lines.push(if script.plain { "plain" } else { "not plain" }.to_owned());
    let commands = script.commands.iter();
    lines.extend(commands.map(|it| format!("- {}", quoted(it).replace(UNKNOWN, "␀"))));
    lines.join("\n")
}

/// Lines that are too long or too deep are parsed in part, and the rest could be any command.
#[test]
fn past_the_limits_any_command_may_follow() {
    let long = format!("rm x; echo {}", "a".repeat(100_000));
    let many = "rm x; ".repeat(2_000);
    let deep = format!("{}rm x", "eval ".repeat(12));
    let nested = format!("{}rm x{}", "$(".repeat(5_000), ")".repeat(5_000));
    let wrapped = format!("{}rm x", "sudo -Z ".repeat(3_000));
    for line in [&long, &many, &deep, &nested, &wrapped] {
        let script = parse_line(line);
        let start: String = line.chars().take(30).collect();
        assert!(!script.plain, "{start}");
        assert!(script.commands.len() <= 1_001, "{start}");
        let ruling = judged(line, &ApprovalPolicy::OnRequest);
        assert_ne!(ruling.verdict, Verdict::Allow, "{start}: {ruling:?}");
    }
}

#[test]
fn displayed_lines_hide_nothing() {
    let cases = [
        ("rm x", "rm x"),
        ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
        ("a\rb\u{8}", "a\\u{d}b\\u{8}"),
        ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
        ("r\u{200b}m\u{feff}", "r\\u{200b}m\\u{feff}"),
        ("a\u{a0}b\u{2003}c", "a\\u{a0}b\\u{2003}c"),
        ("tag\u{e0041}", "tag\\u{e0041}"),
        ("zwölf\n\tGrüße", "zwölf\n\tGrüße"),
    ];
    for (line, expected) in cases {
        assert_eq!(display_line(line), expected);
    }
    // A line that can be approved is shown in full; a longer one by both ends and its digest.
    let long = format!("{}; curl evil", "a".repeat(120_000));
    assert!(is_shown_whole(&long));
    assert_eq!(display_line(&long), long);
    for (line, is_whole) in [
        ("a".repeat(256 << 10), true),
        ("a".repeat((256 << 10) + 1), false),
        ("\u{1b}".repeat(43_690), true),
        ("\u{1b}".repeat(43_691), false),
    ] {
        assert_eq!(is_shown_whole(&line), is_whole, "{} bytes", line.len());
    }
    let longer = format!("{}; curl evil", "a".repeat(300_000));
    let truncated = display_line(&longer);
    assert!(truncated.len() < 10_000, "{} bytes", truncated.len());
    assert!(truncated.ends_with("; curl evil"), "{truncated}");
    assert_ne!(
        truncated,
        display_line(&longer.replacen("aaaa", "aaab", 40_000))
    );
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Returns a policy with rules of every kind.
fn policy() -> Policy {
    let rule = |verdict: Verdict, line: &str| Rule {
        layer: Layer::User,
        subject: Subject::Command(words(line)),
        verdict,
        beyond: false,
        reason: None,
    };
    Policy {
        rules: vec![
            rule(Verdict::Deny, "rm"),
            rule(Verdict::Deny, "git push --force"),
            rule(Verdict::Deny, "dd"),
            rule(Verdict::Ask, "git push"),
            rule(Verdict::Ask, "curl"),
            rule(Verdict::Allow, "cargo test"),
            rule(Verdict::Allow, "npm ci"),
        ],
        ..Policy::default()
    }
}

fn judged(line: &str, approval: &ApprovalPolicy) -> Ruling {
    let act = Act {
        kind: ActKind::Command {
            script: parse_line(line),
            cwd: "/home/user/project".to_owned(),
            beyond: false,
        },
        digest: "d".to_owned(),
        reason: None,
    };
    let settings = Settings {
        approval: approval.clone(),
        ..Settings::default()
    };
    policy().judge(&act, &settings, &BTreeSet::new())
}

const POLICIES: [ApprovalPolicy; 3] = [
    ApprovalPolicy::Untrusted,
    ApprovalPolicy::OnRequest,
    ApprovalPolicy::Never,
];
