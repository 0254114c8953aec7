//! docs/limits.md, generated from constants whose comments describe them as limits.
//!
//! A comment that contains `Limit: SUBJECT; beyond it, EFFECT.` describes the constant, the field or
//! the function of a bound that follows it. The value on the page is the value in the code.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::generated;
use crate::repository::Tree;

const FILE: &str = "docs/limits.md";
const MARK: &str = "Limit: ";
const BEYOND: &str = "; beyond it, ";

/// The sections of the page, and the crates whose limits are in each.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Connections and messages", &["raddle-rpc"]),
    (
        "Requests and services",
        &["raddle-server", "raddle-config", "raddle"],
    ),
    ("Threads", &["raddle-core", "raddle-agent"]),
    ("Models", &["raddle-model", "raddle-providers"]),
    ("Tools", &["raddle-tools", "raddle-plugin"]),
    ("Checkpoints", &["raddle-workspace"]),
    ("Sandbox and processes", &["raddle-sandbox"]),
    ("Journal", &["raddle-store"]),
];

const HEAD: &str = "\
# Limits

<!-- Written by `cargo xtask limits`. Do not edit. -->

Every queue, cache and timeout of the server has a limit. The values on this page come from the
source code. A limit is per connection unless its row says otherwise.
";

const TAIL: &str = "
## Not limited

A job on a disk that hangs keeps its thread until the disk responds. The response to
`fs/readDirectory` is as long as the folder, and the response to `config/read` as long as the
configuration. The limits of all connections add up; only the number of connections limits their
sum.
";

/// One row of the page.
#[derive(Debug, PartialEq)]
struct LimitRow {
    subject: String,
    value: String,
    effect: String,
    name: String,
    path: String,
}

pub fn command(arguments: Arguments) -> Result<()> {
    generated::command(arguments, stale, write)
}

fn write(root: &Path, tree: &Tree) -> Result<()> {
    fs::write(root.join(FILE), page(tree)?).with_context(|| format!("cannot write {FILE}"))?;
    println!("wrote {FILE}");
    Ok(())
}

/// The problem of a page that does not match the constants.
pub fn stale(tree: &Tree) -> Result<Option<String>> {
    let is_fresh = tree.text(FILE) == Some(page(tree)?.as_str());
    Ok((!is_fresh).then(|| {
        format!("{FILE} does not match the constants in the code; run `cargo xtask limits`")
    }))
}

fn page(tree: &Tree) -> Result<String> {
    let mut page = HEAD.to_owned();
    for (title, crates) in SECTIONS {
        let mut rows = Vec::new();
        for name in *crates {
            let folder = format!("crates/{name}/src/");
            let files = tree.texts().filter(|(path, _)| path.starts_with(&folder));
            for (path, text) in files.filter(|(path, _)| path.ends_with(".rs")) {
                rows.extend(rows_of(path, text)?);
            }
        }
        page.push_str(&format!(
            "\n## {title}\n\n| Limit | Value | Beyond it | Source |\n|---|---|---|---|\n"
        ));
        for row in rows {
            let LimitRow {
                subject,
                value,
                effect,
                name,
                path,
            } = row;
            page.push_str(&format!(
                "| {subject} | {value} | {effect} | [`{name}`](../{path}) |\n"
            ));
        }
    }
    if let Some(path) = unlisted(tree) {
        bail!("{path} describes a limit; list its crate in a section of the page");
    }
    page.push_str(TAIL);
    Ok(page)
}

/// Returns a file that describes a limit, of a crate that no section has.
fn unlisted(tree: &Tree) -> Option<&str> {
    let mut files = tree.texts().filter(|(path, text)| {
        let crate_name = path
            .strip_prefix("crates/")
            .and_then(|it| it.split_once("/src/"))
            .map(|(name, _)| name);
        let is_listed = |name| SECTIONS.iter().any(|(_, crates)| crates.contains(&name));
        crate_name.is_some_and(|it| !is_listed(it))
            && text
                .lines()
                .filter_map(comment)
                .any(|it| it.starts_with(MARK))
    });
    files.next().map(|(path, _)| path)
}

fn rows_of(path: &str, text: &str) -> Result<Vec<LimitRow>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut rows = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(first) = comment(lines[at]).and_then(|it| it.strip_prefix(MARK)) else {
            at += 1;
            continue;
        };
        let number = at + 1;
        let mut words = vec![first];
        at += 1;
        while let Some(more) = lines.get(at).and_then(|it| comment(it)) {
            words.push(more);
            at += 1;
        }
        while lines.get(at).is_some_and(|it| it.starts_with("#[")) {
            at += 1;
        }
        // A paragraph of its own: an empty comment line ends it.
        let words: Vec<&str> = words.into_iter().take_while(|it| !it.is_empty()).collect();
        let sentence = words.join(" ");
        let parts = sentence.trim_end_matches('.').split_once(BEYOND);
        let definition = lines[at..].iter().take(3).copied();
        let definition = definition.collect::<Vec<_>>().join(" ");
        let found = parts.zip(definition_of(&definition));
        let Some(((subject, effect), (name, expression))) = found else {
            bail!(
                "{path}:{number}: write `{MARK}SUBJECT{BEYOND}EFFECT.` directly above a constant, a field \
                 with its value, or a function that returns a bound"
            );
        };
        rows.push(LimitRow {
            subject: subject.to_owned(),
            value: value_of(name, expression),
            effect: effect.to_owned(),
            name: name.to_owned(),
            path: path.to_owned(),
        });
    }
    Ok(rows)
}

/// The text of a line that is only a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

/// The name and the expression of a constant, of a field with its value, or of a function that returns
/// `bound(EXPRESSION, …)`.
fn definition_of(text: &str) -> Option<(&str, &str)> {
    let text = match text.strip_prefix("pub(") {
        Some(rest) => rest.split_once(')')?.1,
        None => text.strip_prefix("pub ").unwrap_or(text),
    };
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("const ") {
        let (name, rest) = rest.split_once(':')?;
        let (_, rest) = rest.split_once(" = ")?;
        return Some((name, rest.split_once(';')?.0.trim()));
    }
    if let Some(rest) = text.strip_prefix("fn ") {
        let (name, rest) = rest.split_once("()")?;
        let (_, rest) = rest.split_once("bound(")?;
        return Some((name, rest.split_once(',')?.0));
    }
    let (name, rest) = text.split_once(": ")?;
    let is_name = name.chars().all(|it| it.is_ascii_lowercase() || it == '_');
    let expression = rest.split_once(',')?.0;
    is_name.then_some((name, expression))
}

/// A value as a reader reads it: with a unit, if the name or the expression has one.
fn value_of(name: &str, expression: &str) -> String {
    let call = |function: &str| {
        let text = expression.strip_prefix("Duration::")?;
        let text = text.strip_prefix(function)?.strip_prefix('(')?;
        number(text.strip_suffix(')')?)
    };
    if let Some(seconds) = call("from_secs") {
        return time(seconds * 1000);
    }
    if let Some(milliseconds) = call("from_millis") {
        return time(milliseconds);
    }
    let Some(number) = number(expression) else {
        return format!("`{expression}`");
    };
    let name = name.to_ascii_lowercase();
    let has = |word: &str| name.split('_').any(|it| it == word);
    if has("bytes") {
        bytes(number)
    } else if has("kib") {
        bytes(number << 10)
    } else if has("ms") {
        time(number)
    } else if has("chars") || has("letters") {
        format!("{} characters", grouped(number))
    } else {
        grouped(number)
    }
}

/// Evaluates a number, a product or a shift.
fn number(expression: &str) -> Option<u64> {
    if let Some((left, right)) = expression.split_once(" << ") {
        return number(left)?.checked_shl(u32::try_from(number(right)?).ok()?);
    }
    expression.split(" * ").try_fold(1u64, |product, factor| {
        product.checked_mul(factor.replace('_', "").parse().ok()?)
    })
}

fn bytes(number: u64) -> String {
    for (shift, unit) in [(20, "MiB"), (10, "KiB")] {
        if number > 0 && number.is_multiple_of(1 << shift) {
            return format!("{} {unit}", grouped(number >> shift));
        }
    }
    format!("{} bytes", grouped(number))
}

fn time(milliseconds: u64) -> String {
    let units = [
        (24 * 60 * 60 * 1000, "d"),
        (60 * 60 * 1000, "h"),
        (1000, "s"),
    ];
    for (length, unit) in units {
        if milliseconds >= length && milliseconds.is_multiple_of(length) {
            return format!("{} {unit}", grouped(milliseconds / length));
        }
    }
    format!("{milliseconds} ms")
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_units() {
        for (definition, expected) in [
            ("const PATH_BYTES_MAX: usize = 4096;", "4 KiB"),
            (
                "pub(crate) const NAME_BYTES_MAX: usize = 1_000;",
                "1,000 bytes",
            ),
            ("pub const MESSAGE_BYTES_MAX: u64 = 32 << 20;", "32 MiB"),
            ("const LINE_BYTES_MAX: usize = 64 * 1024;", "64 KiB"),
            ("const ANSWERS_KIB_MAX: usize = 64 << 10;", "64 MiB"),
            ("const TIME_MS: i64 = 10_000;", "10 s"),
            (
                "const GRACE: Duration = Duration::from_millis(200);",
                "200 ms",
            ),
            (
                "const AGE_MAX: Duration = Duration::from_secs(60 * 60);",
                "1 h",
            ),
            ("write: Duration::from_secs(300),", "300 s"),
            (
                "fn turns_max() -> u32 { crate::bugs::bound(100, 3) }",
                "100",
            ),
            ("const ENTRIES_MAX: usize = 1_000_000;", "1,000,000"),
            (
                "const CLOSE: Duration = OPEN.saturating_add(LAG);",
                "`OPEN.saturating_add(LAG)`",
            ),
        ] {
            let (name, expression) = definition_of(definition).expect(definition);
            assert_eq!(value_of(name, expression), expected, "{definition}");
        }
    }

    #[test]
    fn a_described_constant_is_a_row() {
        let text = "\
            /// Limit: a path in a request; beyond it, the server rejects\n\
            /// the request.\n\
            ///\n\
            /// More prose.\n\
            #[rustfmt::skip]\n\
            const PATH_BYTES_MAX: usize = 10;\n";
        let rows = rows_of("a.rs", text).expect("rows");
        let expected = LimitRow {
            subject: "a path in a request".to_owned(),
            value: "10 bytes".to_owned(),
            effect: "the server rejects the request".to_owned(),
            name: "PATH_BYTES_MAX".to_owned(),
            path: "a.rs".to_owned(),
        };
        assert_eq!(rows, [expected]);
    }

    #[test]
    fn a_description_without_an_effect_or_a_value_is_found() {
        for text in [
            "/// Limit: a path.\nconst PATH_BYTES_MAX: usize = 10;\n",
            "/// Limit: a path; beyond it, an error.\nstruct Path;\n",
        ] {
            assert!(rows_of("a.rs", text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_of_a_crate_without_a_section_is_found() {
        let code = "/// Limit: rows; beyond it, an error.\nconst ROWS_MAX: usize = 3;\n";
        let error = page(&Tree::of(&[("crates/raddle-new/src/a.rs", code)]));
        let error = error.expect_err("no section");
        assert!(error.to_string().contains("raddle-new"), "{error}");
    }

    #[test]
    fn a_stale_page_is_found() {
        let code = "/// Limit: rows; beyond it, an error.\nconst ROWS_MAX: usize = 3;\n";
        let file = ("crates/raddle-core/src/a.rs", code);
        let page = page(&Tree::of(&[file])).expect("a page");
        assert!(page.contains("| rows | 3 | an error |"), "{page}");
        let is_stale = |page: &str| {
            let stale = stale(&Tree::of(&[file, (FILE, page)])).expect("a verdict");
            stale.is_some()
        };
        assert!(!is_stale(&page));
        assert!(is_stale(&page.replace("| 3 |", "| 4 |")));
    }
}
