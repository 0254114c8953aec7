//! Laws that hold for all lines.

use proptest::prelude::*;
use raddle_core::policy::{UNKNOWN, Verdict};
use raddle_tools::shell::{parse_line, parse_words, quoted};

use super::{POLICIES, judged};

const PARTS: [&str; 16] = [
    "rm x",
    "git push",
    "git status",
    "ls",
    "cargo test",
    "touch x",
    "$X",
    "echo $(rm x)",
    "for i in 1; do ls; done",
    "sudo ls",
    "bash -c 'git push'",
    "cat <<EOF\nx\nEOF",
    "ls > x",
    "f() { ls; }",
    "(ls)",
    "timeout 5 ls",
];

const BETWEEN: [&str; 3] = ["\n", "\n\n", " \n "];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// More commands are never judged more loosely than fewer.
    #[test]
    fn adding_commands_never_loosens(
        parts in prop::collection::vec(prop::sample::select(&PARTS[..]), 1..12),
        between in prop::sample::select(&BETWEEN[..]),
        left_out in any::<prop::sample::Index>(),
    ) {
        let all = parts.join(between);
        let mut fewer = parts.clone();
        fewer.remove(left_out.index(parts.len()));
        for approval in &POLICIES {
            let verdict = judged(&all, approval).verdict;
            prop_assert!(verdict >= judged(parts[left_out.index(parts.len())], approval).verdict);
            if !fewer.is_empty() {
                prop_assert!(verdict >= judged(&fewer.join(between), approval).verdict);
            }
        }
    }

    /// Any line is parsed, and the commands of a complete line stay the same if more follows.
    #[test]
    fn any_line_is_parsed(line in "[a-z \n;&|$(){}<>'\"\\\\`#=~*?!-]{0,40}", more in "[a-z ;]{0,12}") {
        let script = parse_line(&line);
        let is_whole = !script.commands.contains(&vec![UNKNOWN.to_string()]);
        if is_whole {
            let longer = parse_line(&format!("{line}\n{more}"));
            prop_assert!(script.plain || !longer.plain, "{line:?} {more:?}");
            // Text that the parser can no longer read could be any command.
            let is_lost = longer.commands.contains(&vec![UNKNOWN.to_string()]);
            for command in script.commands.iter().filter(|_| !is_lost) {
                prop_assert!(longer.commands.contains(command), "{line:?} {more:?}: {longer:?}");
            }
        }
    }

    /// Quoted words are parsed to the same words.
    #[test]
    fn quoted_words_are_the_same_words(words in prop::collection::vec("[a-z]{1}[ -~]{0,8}", 1..6)) {
        let script = parse_line(&quoted(&words));
        let expected = parse_words(&words);
        prop_assert!(script.commands == expected.commands, "{script:?} {expected:?}");
    }

    /// A forbidden command is found in every chain.
    #[test]
    fn a_forbidden_command_is_found_in_every_chain(before in 0usize..150, after in 0usize..50) {
        let line = format!("{}rm x{}", "ls && ".repeat(before), "; ls".repeat(after));
        for approval in &POLICIES {
            prop_assert_eq!(judged(&line, approval).verdict, Verdict::Deny);
        }
    }
}
