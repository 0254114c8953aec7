//! Explanations of the answers to a request, which `?` shows below its full text.

use raddle_client::ServerQuestion;
use serde_json::json;

use super::hunk_choice;
use super::quote::Quote;

/// The line in place of changes that the server has not sent.
pub(crate) const NO_CHANGES: &str =
    "  the server sent no changes to show; decline them unless you know them";

const COMMAND: [(&str, &str); 4] = [
    ("y", "runs it this once"),
    (
        "a",
        "runs it, and allows exactly this for the rest of the thread, also when it is resumed",
    ),
    ("n", "declines it; the agent continues without it"),
    (
        "other text",
        "declines it, and the agent reads the text as the reason",
    ),
];

const FILES: [(&str, &str); 5] = [
    ("y", "makes this change"),
    ("h", "asks about each hunk of it, if it can be divided"),
    (
        "a",
        "makes it, and allows every change of these files for the rest of the thread, also when it \
         is resumed",
    ),
    ("n", "declines it; the agent continues without it"),
    (
        "other text",
        "declines it, and the agent reads the text as the reason",
    ),
];

const PERMISSIONS: [(&str, &str); 4] = [
    ("y", "grants them for this turn"),
    (
        "a",
        "grants them for the rest of the thread, also when it is resumed",
    ),
    ("n", "grants none of them"),
    (
        "other text",
        "grants none of them, and the agent reads the text as the reason",
    ),
];

const OPTIONS: [(&str, &str); 1] = [(
    "answer",
    "the number of an option, its name, or the beginning of its name; where it is allowed, any text",
)];

const ELICITATION: [(&str, &str); 2] = [
    (
        "y",
        "answers the MCP server; each field of a form is asked for",
    ),
    (
        "n",
        "declines it; the MCP server decides how its tool continues",
    ),
];

/// The way to a rule where the server offers none.
const COMMAND_RULE: &str = "a rule in rules.toml, with beyond = true if it leaves the sandbox; \
     `raddle judge` tests it";
const FILES_RULE: &str = "a rule with write = \"PATH\" in rules.toml, with beyond = true if the file \
     is outside the sandbox";

/// The line about the rule that the server offers to store.
pub(crate) fn rule(words: &[String]) -> Quote {
    let lead = "  r adds a rule to rules.toml: allow commands that begin with ";
    Quote::new(lead, json!(words).to_string())
}

/// One line for each answer to the question about a hunk.
pub(crate) fn of_hunks() -> Vec<Quote> {
    with_heading(hunk_choice::EXPLANATIONS.iter().copied())
}

/// One line for each answer, and one about a lasting rule.
pub(crate) fn of(question: &ServerQuestion) -> Vec<Quote> {
    let (answers, lasting) = match question {
        ServerQuestion::Command(_) => (&COMMAND[..], Some(COMMAND_RULE)),
        ServerQuestion::FileChange(_) => (&FILES[..], Some(FILES_RULE)),
        ServerQuestion::Permissions(_) => (&PERMISSIONS[..], None),
        ServerQuestion::Elicitation(_) => (&ELICITATION[..], None),
        _ => (&OPTIONS[..], None),
    };
    let answers = answers.iter().copied();
    let lines = answers.chain(lasting.map(|it| ("for good", it)));
    with_heading(lines)
}

fn with_heading<'a>(lines: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Quote> {
    let lines = lines.map(|(answer, effect)| Quote::new(format!("  {answer}: "), effect));
    let heading = Quote::new("answers:", "");
    std::iter::once(heading).chain(lines).collect()
}
