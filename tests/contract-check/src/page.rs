//! Output of a run: figures for the terminal, and the page `docs/compatibility.md`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use raddle_protocol::Tier;

use crate::PINNED;
use crate::check::InstanceCounts;
use crate::comparison::RowOutcome;
use crate::exceptions::Exceptions;
use crate::parts::Group;
use crate::undeclared::Undeclared;

/// Numbers of methods, notifications and server requests of the reference.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    pub methods: usize,
    pub notifications: usize,
    pub server_requests: usize,
}

/// Tables of the page, in order.
const TABLES: [(&str, Group, Tier); 6] = [
    ("Core methods", Group::Method, Tier::Core),
    ("Core notifications", Group::Notification, Tier::Core),
    ("Server requests", Group::ServerRequest, Tier::Core),
    ("Item types", Group::Item, Tier::Core),
    ("Useful methods", Group::Method, Tier::Useful),
    ("Useful notifications", Group::Notification, Tier::Useful),
];

/// Formats one line per row, one per table, and the sum.
pub fn coverage(outcomes: &[RowOutcome]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, counts: InstanceCounts| {
        let InstanceCounts {
            from_reference,
            from_ours,
            covered,
            options,
        } = counts;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<45} {from_reference:>6} from the reference {from_ours:>6} of ours {covered:>6}/{options} choices"
        );
    };
    for outcome in outcomes {
        line(outcome.row.name, outcome.counts);
    }
    for (title, group, tier) in TABLES {
        line(title, sum(&rows(outcomes, group, tier)));
    }
    line("All", sum(&outcomes.iter().collect::<Vec<_>>()));
    text
}

/// Returns the text of the page.
pub fn page(
    outcomes: &[RowOutcome],
    exceptions: &Exceptions,
    served: &BTreeSet<String>,
    surface: Surface,
    undeclared: &Undeclared,
    rounds: u32,
) -> String {
    let mut text = introduction(rounds);
    summary(&mut text, outcomes, served, surface);
    for (title, group, tier) in TABLES {
        table(
            &mut text,
            title,
            group,
            &rows(outcomes, group, tier),
            served,
        );
    }
    text.push_str(&undeclared.section());
    list(&mut text, exceptions);
    text
}

fn introduction(rounds: u32) -> String {
    format!(
        "\
# Compatibility

<!-- Written by `contract-check --write`. Do not edit. -->

This page is for authors of clients. It compares Raddle's protocol types with the JSON Schema that
Codex {PINNED} generates, including its experimental part. `contract-check --check` repeats the
comparison and fails if this page would change.

- **Structure.** The check looks up every member, enum value and union arm of one schema in the
  other. A member or method that requires an opt-in in Codex must require it in Raddle.
- **From the reference.** Raddle's types deserialize instances that are generated from Codex's
  schema, and serialize them again. The copy must be equal and valid against Codex's schema, and no
  part of it may be read as an unknown variant. Messages that clients send are also read with null
  for every optional member.
- **Of ours.** Instances that are generated from Raddle's schema go the same way. The output must be
  valid against Codex's schema.

Two instances are equal if they have the same values. An optional member may come back absent, null,
or as its declared default; if it has no default and may not be null, as `false` or `[]`. In maps
and in free-form JSON, null is a value like any other.

A *choice* is an option that an instance can take: an arm of a union, a value of an enum, true or
false, a list or map with no, one or two entries, a member that is present, absent or null. The
figures count the choices of both directions. The check took each choice at least {rounds} times.

"
    )
}

fn summary(
    text: &mut String,
    outcomes: &[RowOutcome],
    served: &BTreeSet<String>,
    surface: Surface,
) {
    text.push_str("| | declared | in Codex | served | from the reference | of ours | choices |\n|---|---|---|---|---|---|---|\n");
    let groups = [
        ("Methods", Group::Method, Some(surface.methods)),
        (
            "Notifications",
            Group::Notification,
            Some(surface.notifications),
        ),
        (
            "Server requests",
            Group::ServerRequest,
            Some(surface.server_requests),
        ),
        ("Item types", Group::Item, None),
    ];
    for (title, group, reference_count) in groups {
        let rows: Vec<&RowOutcome> = outcomes.iter().filter(|it| it.row.group == group).collect();
        let here = match group {
            Group::Method => rows
                .iter()
                .filter(|it| served.contains(it.row.name))
                .count()
                .to_string(),
            _ => String::new(),
        };
        let reference_count = reference_count.unwrap_or(rows.len());
        let declared = rows.len();
        let _ = writeln!(
            text,
            "| {title} | {declared} | {reference_count} | {here} | {} |",
            figures(sum(&rows))
        );
    }
    let all: Vec<&RowOutcome> = outcomes.iter().collect();
    let _ = writeln!(
        text,
        "| Together | {} | | | {} |\n",
        all.len(),
        figures(sum(&all))
    );
    text.push_str("Methods that Codex has and Raddle does not declare return -32601, like declared methods that are not served yet.\n\n");
}

fn table(
    text: &mut String,
    title: &str,
    group: Group,
    rows: &[&RowOutcome],
    served: &BTreeSet<String>,
) {
    let methods = group == Group::Method;
    let _ = writeln!(text, "## {title}\n");
    let (head, rule) = if methods {
        (" served |", "---|")
    } else {
        ("", "")
    };
    let _ = writeln!(
        text,
        "| name | opt-in |{head} from the reference | of ours | choices | exceptions |"
    );
    let _ = writeln!(text, "|---|---|{rule}---|---|---|---|");
    for outcome in rows {
        let name = outcome.row.name;
        let gate = if outcome.row.experimental {
            "experimental"
        } else {
            ""
        };
        let served = match (methods, served.contains(name)) {
            (false, _) => "",
            (true, true) => " yes |",
            (true, false) => " not yet |",
        };
        let numbers: Vec<String> = outcome
            .exceptions
            .iter()
            .map(|index| format!("{}", index + 1))
            .collect();
        let _ = writeln!(
            text,
            "| `{name}` | {gate} |{served} {} | {} |",
            figures(outcome.counts),
            numbers.join(", ")
        );
    }
    text.push('\n');
}

fn list(text: &mut String, exceptions: &Exceptions) {
    text.push_str("## Exceptions\n\nFrom `tests/contract-check/exceptions.toml`. The check fails if an exception is no longer needed.\n\n");
    for (index, exception) in exceptions.entries.iter().enumerate() {
        let paths: Vec<String> = exception
            .what
            .iter()
            .map(|what| format!("`{what}`"))
            .collect();
        let _ = writeln!(
            text,
            "{}. *{}*: {}. {}",
            index + 1,
            exception.kind.word(),
            paths.join(", "),
            exception.reason
        );
    }
}

fn figures(counts: InstanceCounts) -> String {
    format!(
        "{} | {} | {}",
        counts.from_reference, counts.from_ours, counts.covered
    )
}

fn rows(outcomes: &[RowOutcome], group: Group, tier: Tier) -> Vec<&RowOutcome> {
    let fits = |it: &&RowOutcome| it.row.group == group && it.row.tier == tier;
    outcomes.iter().filter(fits).collect()
}

fn sum(outcomes: &[&RowOutcome]) -> InstanceCounts {
    let mut total = InstanceCounts::default();
    for outcome in outcomes {
        total.add(outcome.counts);
    }
    total
}
