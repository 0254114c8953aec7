//! Command lines of any kind are taken apart, and more is never judged more loosely than less.
//!
//! An input is two lines with a zero byte between them. If the first is plain, then all its commands are found
//! again where the second follows it, and what is said of both is at least as strict.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use raddle_core::policy::{Act, ActKind, Layer, Policy, Rule, Script, Subject, UNKNOWN, Verdict};
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{COMMANDS_MAX, LINE_BYTES_MAX, actions, shown, take_apart};

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (first, second) = text.split_once('\0').unwrap_or((&text, ""));
    let script = take_apart(first);
    assert!(script.commands.len() <= COMMANDS_MAX + 1);
    assert!(script.commands.iter().all(|it| !it.is_empty()));
    assert!(!actions(&script, "/").is_empty() || script.commands.is_empty());
    assert!(!shown(first).contains(['\u{1b}', '\r', '\u{202e}', '\u{200b}']));
    let longer = format!("{first}\n{second}");
    // What is not plain the parser may read otherwise once more follows: an open quote or heredoc takes it in.
    if !script.plain || script.commands.is_empty() || longer.len() > LINE_BYTES_MAX {
        return;
    }
    let both = take_apart(&longer);
    // Where all room is used up, what is left out could be anything.
    let is_cut = both.commands.contains(&vec![UNKNOWN.to_string()]);
    for command in script.commands.iter().filter(|_| !is_cut) {
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
            more >= less || is_cut && more >= Verdict::Ask,
            "more is judged more loosely"
        );
    }
});

fn judged(script: &Script, settings: &Settings) -> Verdict {
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
        why: None,
    };
    policy.judge(&act, settings, &BTreeSet::new()).verdict
}
