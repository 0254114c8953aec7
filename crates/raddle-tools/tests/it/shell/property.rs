//! Properties of any line. The fuzz targets `shell` and `shell_time` check them too.

use std::collections::BTreeSet;

use raddle_core::policy::{
    Act, ActKind, Layer, ParsedScript, Policy, Rule, Subject, UNKNOWN, Verdict,
};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{
    COMMANDS_MAX, LINE_BYTES_MAX, WORK_MAX, actions, display_line, parse_line_counted,
};

/// Checks that a longer script is never judged more loosely.
///
/// An input is two lines with a zero byte between them. If the first is plain, all its commands
/// must be found again when the second follows. The verdict on both must be at least as strict.
pub fn more_is_no_looser(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (first, second) = text.split_once('\0').unwrap_or((&text, ""));
    let script = within_bounds(first);
    assert!(!actions(&script, "/").is_empty() || script.commands.is_empty());
    assert!(!display_line(first).contains(['\u{1b}', '\r', '\u{202e}', '\u{200b}']));
    let longer = format!("{first}\n{second}");
    // Text that is not plain may be parsed differently if more follows: an open quote or heredoc
    // includes it.
    if !script.plain || script.commands.is_empty() || longer.len() > LINE_BYTES_MAX {
        return;
    }
    let both = within_bounds(&longer);
    // After the limits, the unparsed rest could be any command.
    let is_truncated = both.commands.contains(&vec![UNKNOWN.to_string()]);
    for command in script.commands.iter().filter(|_| !is_truncated) {
        assert!(both.commands.contains(command), "{command:?} is hidden");
    }
    for approval in [
        ApprovalPolicy::Untrusted,
        ApprovalPolicy::OnRequest,
        ApprovalPolicy::Never,
    ] {
        let settings = Settings {
            approval,
            ..Settings::default()
        };
        let (less, more) = (judged(&script, &settings), judged(&both, &settings));
        assert!(
            more >= less || is_truncated && more >= Verdict::Ask,
            "more is judged more loosely"
        );
    }
}

/// Builds a long line of repeated text. It must not cost more than the budget, and its unparsed
/// rest could be any command.
///
/// An input is the beginning, the repeated text, the end, and the repeated text after that, with
/// zero bytes between them.
pub fn repeated(input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let mut parts = text.split('\0');
    let mut part = || parts.next().unwrap_or_default();
    let (begin, unit, end, suffix) = (part(), part(), part(), part());
    let capacity = LINE_BYTES_MAX.saturating_sub(begin.len() + end.len());
    let count = capacity / (unit.len() + suffix.len()).max(1);
    format!("{begin}{}{end}{}", unit.repeat(count), suffix.repeat(count))
}

/// Parses a line and checks the limits of the result.
pub fn within_bounds(line: &str) -> ParsedScript {
    let (script, spent) = parse_line_counted(line);
    assert!(script.commands.len() <= COMMANDS_MAX + 1);
    assert!(script.commands.iter().all(|it| !it.is_empty()));
    let is_truncated = script.commands.contains(&vec![UNKNOWN.to_string()]);
    assert!(spent < WORK_MAX || spent == WORK_MAX && is_truncated && !script.plain);
    script
}

fn judged(script: &ParsedScript, settings: &Settings) -> Verdict {
    let rule = |verdict, words: &[&str]| Rule {
        layer: Layer::User,
        subject: Subject::Command(words.iter().map(|it| (*it).to_owned()).collect()),
        verdict,
        beyond: false,
        reason: None,
    };
    let policy = Policy {
        rules: vec![
            rule(Verdict::Deny, &["rm"]),
            rule(Verdict::Ask, &["git", "push"]),
            rule(Verdict::Allow, &["cargo", "test"]),
        ],
        ..Policy::default()
    };
    let act = Act {
        kind: ActKind::Command {
            script: script.clone(),
            cwd: "/".to_owned(),
            beyond: false,
        },
        digest: String::new(),
        reason: None,
    };
    policy.judge(&act, settings, &BTreeSet::new()).verdict
}
