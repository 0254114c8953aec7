//! Diffs of texts with repeated lines, which the algorithm alone would compare for minutes.

use raddle_tools::files::unified;

use crate::unified::apply_unified;

const LINES: usize = 60_000;

/// Two texts, and the maximum number of lines of their diff.
struct DiffCase {
    name: &'static str,
    base: String,
    now: String,
    lines_max: usize,
}

#[test]
fn texts_of_repeated_lines_are_compared_within_the_budget() {
    let text = |line: &dyn Fn(usize) -> String| -> String { (0..LINES).map(line).collect() };
    let few_kinds = |seed: usize| text(&|at| format!("{}\n", (at * at / 7 + at * seed) % 5));
    let members = text(&|at| match at % 3 {
        0 => "},\n".to_owned(),
        _ => format!("value {at}\n"),
    });
    let cases = [
        DiffCase {
            name: "few kinds of lines are replaced as a whole",
            base: few_kinds(3),
            now: few_kinds(11),
            lines_max: 2 * LINES + 8,
        },
        DiffCase {
            name: "periods of different length",
            base: text(&|at| format!("{}\n", at % 7)),
            now: text(&|at| format!("{}\n", at % 8)),
            lines_max: 2 * LINES + 8,
        },
        DiffCase {
            name: "a change at each end, with unique lines between",
            base: members.clone(),
            now: format!(
                "first\n{}last\n",
                members.replace("value 30001\n", "value\n")
            ),
            lines_max: 24,
        },
        DiffCase {
            name: "a line in the middle of blank ones",
            base: "\n".repeat(LINES),
            now: format!("{}x\n{}", "\n".repeat(100), "\n".repeat(LINES - 100)),
            lines_max: 8,
        },
        DiffCase {
            name: "nothing changed",
            base: few_kinds(3),
            now: few_kinds(3),
            lines_max: 0,
        },
    ];
    for case in cases {
        let diff = unified(&case.base, &case.now);
        let lines = diff.lines().count();
        assert!(lines <= case.lines_max, "{}: {lines} lines", case.name);
        assert!(
            apply_unified(&case.base, &diff) == case.now,
            "{}: it leads elsewhere",
            case.name
        );
    }
}

/// In pieces or as a whole, a diff leads from one text to the other.
#[test]
fn pieces_fit_together() {
    let kinds = |count: usize, step: usize| -> String {
        (0..12_000)
            .map(|at| format!("{}\n", (at * step + at * at) % count))
            .collect()
    };
    for (count, step) in [(2, 1), (40, 3), (400, 7), (4_000, 11), (40_000, 13)] {
        let (base, now) = (kinds(count, step), kinds(count, step + 2));
        let now = format!("{now}without an end");
        assert!(
            apply_unified(&base, &unified(&base, &now)) == now,
            "{count} kinds"
        );
        assert!(
            apply_unified(&now, &unified(&now, &base)) == base,
            "{count} kinds"
        );
    }
}
