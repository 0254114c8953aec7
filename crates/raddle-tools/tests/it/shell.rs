//! Command lines taken apart.

/// What a line does, in the words that clients know.
mod actions;
/// The same command in many disguises is judged alike.
mod corpus;
/// What real shells run is seen.
mod differential;
/// A yes is good for one command and no other.
mod grants;
/// Laws that hold for all lines.
mod laws;
/// Properties of any line, which fuzz targets check too.
mod property;
/// Lines made at random of what shells give a meaning to.
mod random;
/// The inputs of those fuzz targets.
mod seeds;
/// Tricks that were played on others.
mod tricks;

use std::collections::BTreeSet;

use raddle_core::policy::{
    Act, ActKind, Layer, ParsedScript, Policy, Rule, Ruling, Subject, UNKNOWN, Verdict,
};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{display_line, is_shown_whole, parse_line, quoted};

/// What each line consists of. A block is a script behind `$`, whether it is plain, and its commands;
/// `␀` stands for what is not known.
#[test]
fn lines_are_taken_apart_as_written_down() {
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
        let told = tell(&script, &parse_line(&script));
        if told != block {
            wrong.push_str(&format!("{told}\n\n"));
        }
        count += 1;
    }
    assert!(count > 90, "only {count} blocks were read");
    assert!(wrong.is_empty(), "these are taken apart so:\n\n{wrong}");
}

fn tell(line: &str, script: &ParsedScript) -> String {
    let mut told: Vec<String> = line.lines().map(|it| format!("$ {it}")).collect();
    told.push(if script.plain { "plain" } else { "not plain" }.to_owned());
    let commands = script.commands.iter();
    told.extend(commands.map(|it| format!("- {}", quoted(it).replace(UNKNOWN, "␀"))));
    told.join("\n")
}

/// Of what is too long or too deep the beginning is looked at, and the rest could be anything.
#[test]
fn past_the_bounds_anything_may_stand() {
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
fn nothing_in_what_is_shown_hides() {
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
    // Whatever can be asked about is shown whole; of what is longer, both ends and what tells it from others.
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
    let cut = display_line(&longer);
    assert!(cut.len() < 10_000, "{} bytes", cut.len());
    assert!(cut.ends_with("; curl evil"), "{cut}");
    assert_ne!(cut, display_line(&longer.replacen("aaaa", "aaab", 40_000)));
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Rules of every kind.
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
        why: None,
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
