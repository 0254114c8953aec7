//! Reason of a failure, as a program reports it and as a proof records it.

use std::error::Error;
use std::fmt;
use std::mem;

/// Characters of a recorded reason; the rest is cut.
const REASON_CHARS_MAX: usize = 300;

/// Beginnings of the lines with which trials and Cargo report a failure.
const REPORTS: [&str; 5] = ["error: ", "Error: ", "late: ", "WRONG", "VIOLATION"];

/// Failure that a program reported on its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedFailure(String);

impl fmt::Display for ReportedFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Error for ReportedFailure {}

/// Search for the failure that a program reports, line by line.
#[derive(Default)]
pub struct FailureSearch {
    /// Message of the newest panic. Test runners print the output of a failed test last.
    panic: Option<String>,
    /// The first line that reports a failure.
    report: Option<String>,
    is_after_panic: bool,
}

impl FailureSearch {
    /// Returns the failure that is reported in a whole output.
    pub fn find_in(output: &str) -> Option<ReportedFailure> {
        let mut search = Self::default();
        for line in output.lines() {
            search.read(line);
        }
        search.end()
    }

    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        let line = line.trim();
        let is_panic = line.contains(" panicked at ");
        if mem::replace(&mut self.is_after_panic, is_panic) && !line.is_empty() {
            self.panic = Some(line.to_owned());
        } else if self.report.is_none() && REPORTS.iter().any(|it| line.starts_with(it)) {
            self.report = Some(line.to_owned());
        }
    }

    /// Returns the failure after the last line. A panic says more than the runner of the test.
    pub fn end(self) -> Option<ReportedFailure> {
        self.panic.or(self.report).map(ReportedFailure)
    }
}

/// Returns the reason of a failure for a record: one line, without folders of this machine. It is
/// the failure that the program reported, or otherwise the error with its causes.
pub fn recorded_reason(error: &anyhow::Error) -> String {
    let text = match error.downcast_ref::<ReportedFailure>() {
        Some(it) => it.to_string(),
        None => format!("{error:#}"),
    };
    let words: Vec<String> = text.split_whitespace().map(without_folders).collect();
    let line = words.join(" ");
    match line.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns a word with only the last name of the absolute path that it contains.
fn without_folders(word: &str) -> String {
    let begins_path = |at: usize| {
        let before = word[..at].chars().next_back();
        before.is_none_or(|it| "`'\"(=".contains(it))
    };
    let begin = word.match_indices('/').find(|(at, _)| begins_path(*at));
    if let Some((at, _)) = begin {
        let (before, path) = word.split_at(at);
        if let Some((folders, name)) = path.trim_end_matches('/').rsplit_once('/')
            && !folders.is_empty()
        {
            return format!("{before}{name}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failure_is_found_in_the_output() {
        for (output, expected) in [
            ("1 of 2\nall is well\n", None),
            (
                "figure: 1\nerror: missed: binary\n",
                Some("error: missed: binary"),
            ),
            ("  WRONG lost\n  WRONG late\n", Some("WRONG lost")),
            (
                "thread 'main' (7) panicked at a.rs:1:2:\n61 ms\nstack\nerror: test run failed\n",
                Some("61 ms"),
            ),
            (
                "x panicked at a.rs:1:2:\nexpected\nx panicked at b.rs:3:4:\nnot expected\n",
                Some("not expected"),
            ),
        ] {
            let found = FailureSearch::find_in(output).map(|it| it.to_string());
            assert_eq!(found.as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn a_recorded_reason_is_one_line_without_folders() {
        let reported = || ReportedFailure("missed: binary".to_owned());
        let program = "`/home/me/cache/speed -out=/tmp/a/ turn/start /livez` ended with 1";
        for (error, expected) in [
            (
                anyhow::anyhow!("two\n  lines").context("the proof"),
                "the proof: two lines",
            ),
            (
                anyhow::anyhow!(program),
                "`speed -out=a turn/start /livez` ended with 1",
            ),
            (
                anyhow::Error::new(reported()).context(program),
                "missed: binary",
            ),
            (
                anyhow::anyhow!(program).context(reported()).context("fuzz"),
                "missed: binary",
            ),
        ] {
            assert_eq!(recorded_reason(&error), expected);
        }
        let long = recorded_reason(&anyhow::anyhow!("ä".repeat(REASON_CHARS_MAX + 1)));
        assert_eq!(long, format!("{}…", "ä".repeat(REASON_CHARS_MAX)));
    }
}
