//! `search_files`: finds lines that match a regular expression.

use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use raddle_core::ports::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::error::ToolError;
use super::list::glob;
use super::roots::{ResolvedPath, Roots};
use super::tree::{self, WalkEnd, WalkLimits};
use super::walk::{FinalLink, Kind};

const MATCHES_MAX: usize = 1_000;
const MATCHES: usize = 200;
const BYTES_MAX: usize = 50_000;
const LINE_BYTES_MAX: usize = 400;
const FILE_BYTES_MAX: u64 = 64 << 20;
const HEAP_BYTES_MAX: usize = 8 << 20;
const EXPRESSION_BYTES_MAX: usize = 4 << 20;
/// Limit: time of one `search_files`; beyond it, the rest is left out, and the model reads how to
/// continue.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Arguments of the tool.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchFiles {
    /// Regular expression that a line must match.
    pub pattern: String,
    /// Folder or file to search; by default the thread's folder.
    #[serde(default)]
    pub path: Option<String>,
    /// A glob that the paths must match.
    #[serde(default)]
    pub glob: Option<String>,
    /// Maximum number of matches.
    #[serde(default)]
    pub max: Option<usize>,
    /// Whether letter case is ignored.
    #[serde(default)]
    pub ignore_case: bool,
}

impl SearchFiles {
    /// Returns the specification for the model.
    pub fn spec() -> ToolSpec {
        ToolSpec {
            name: "search_files".to_owned(),
            description: "Finds the lines that match a regular expression, in all files of a folder that .gitignore does not leave out. Each comes as PATH:LINE:TEXT.".to_owned(),
            freeform: None,
            schema: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "A regular expression, without look-around and back-references."},
                    "path": {"type": "string", "description": "The folder or file to search; the working directory if left out."},
                    "glob": {"type": "string", "description": "Searches only files whose path below the folder matches, such as `**/*.rs`."},
                    "max": {"type": "integer", "minimum": 1, "maximum": MATCHES_MAX, "description": "How many lines to give; 200 if left out."},
                    "ignore_case": {"type": "boolean", "description": "Takes capital and small letters for the same."}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        }
    }

    /// Returns the matches, one per line, and a note if there may be more.
    pub fn run(&self, roots: &Roots) -> Result<String, ToolError> {
        let path = self.path.as_deref().unwrap_or(".");
        self.run_at(roots, &roots.resolve(Path::new(path), FinalLink::Follow)?)
    }

    pub(crate) fn run_at(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
    ) -> Result<String, ToolError> {
        self.run_within(roots, resolved, TIME_MAX)
    }

    fn run_within(
        &self,
        roots: &Roots,
        resolved: &ResolvedPath,
        time: Duration,
    ) -> Result<String, ToolError> {
        roots.readable(resolved)?;
        let glob = self.glob.as_deref().map(glob).transpose()?;
        let mut search = self.search(time)?;
        let end = match resolved.kind {
            Kind::Missing => return Err(ToolError::Missing(resolved.shown.clone())),
            Kind::Folder => {
                let limits = WalkLimits {
                    depth: usize::MAX,
                    until: search.until,
                };
                tree::walk(roots, resolved, &limits, &mut |entry| {
                    let is_match = glob.as_ref().is_none_or(|it| it.is_match(&entry.path));
                    if !entry.is_file || !is_match {
                        return true;
                    }
                    // Unreadable files are skipped.
                    let _ = search.walked(roots, &resolved.plain.join(&entry.path));
                    search.continues()
                })
            }
            _ => {
                search.file(roots, resolved)?;
                match search.continues() {
                    true => WalkEnd::Everything,
                    false => WalkEnd::Enough,
                }
            }
        };
        let mut text = search.text;
        match end {
            WalkEnd::Everything if text.is_empty() => text.push_str("[no line matches]\n"),
            WalkEnd::Everything => {}
            WalkEnd::Enough if !search.is_late => text
                .push_str("[there may be more; search a deeper folder, or for something rarer]\n"),
            WalkEnd::Enough | WalkEnd::Limit => text.push_str(
                "[not all was searched, because it takes too long; search a deeper folder]\n",
            ),
        }
        Ok(text)
    }

    fn search(&self, time: Duration) -> Result<Search, ToolError> {
        Ok(Search {
            matcher: self.matcher()?,
            searcher: searcher(),
            text: String::new(),
            matches_left: self.max.unwrap_or(MATCHES).clamp(1, MATCHES_MAX),
            until: Instant::now() + time,
            is_late: false,
        })
    }

    fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.ignore_case)
            .line_terminator(Some(b'\n'))
            .size_limit(EXPRESSION_BYTES_MAX)
            .dfa_size_limit(EXPRESSION_BYTES_MAX);
        builder.build(&self.pattern).map_err(|error| {
            let why = format!("the pattern is no usable regular expression: {error}");
            ToolError::Arguments(why)
        })
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES_MAX))
        .line_number(true)
        .build()
}

struct Search {
    matcher: RegexMatcher,
    searcher: Searcher,
    text: String,
    matches_left: usize,
    until: Instant,
    is_late: bool,
}

impl Search {
    /// Searches a file that a walk found at this real path.
    fn walked(&mut self, roots: &Roots, plain: &Path) -> Result<(), ToolError> {
        let resolved = roots.resolve(plain, FinalLink::Keep)?;
        // If a link has replaced a folder since the walk, the path leads to files that the walk may
        // have skipped.
        match resolved.plain == plain {
            true => self.file(roots, &resolved),
            false => Err(ToolError::Missing(resolved.shown)),
        }
    }

    fn file(&mut self, roots: &Roots, resolved: &ResolvedPath) -> Result<(), ToolError> {
        let (file, _) = roots.open(resolved)?;
        let name = roots.brief(&resolved.shown);
        let (text, matches_left) = (&mut self.text, &mut self.matches_left);
        let sink = Lossy(|number, line| {
            let line = line.trim_end_matches(['\r', '\n']);
            let shown = &line[..line.floor_char_boundary(LINE_BYTES_MAX)];
            let more = if shown.len() < line.len() { "…" } else { "" };
            text.push_str(&format!("{name}:{number}:{shown}{more}\n"));
            *matches_left -= 1;
            Ok(*matches_left > 0 && text.len() < BYTES_MAX)
        });
        let reader = DeadlineReader {
            inner: file.take(FILE_BYTES_MAX),
            until: self.until,
        };
        self.searcher
            .search_reader(&self.matcher, reader, sink)
            .map_err(|source| ToolError::Disk {
                path: resolved.shown.clone(),
                source,
            })
    }

    fn continues(&mut self) -> bool {
        self.is_late = Instant::now() > self.until;
        !self.is_late && self.matches_left > 0 && self.text.len() < BYTES_MAX
    }
}

/// A reader that fails in the middle of a file after the deadline.
struct DeadlineReader<R> {
    inner: R,
    until: Instant,
}

impl<R: io::Read> io::Read for DeadlineReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if Instant::now() > self.until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.inner.read(into)
    }
}

#[cfg(test)]
mod tests {
    use raddle_sandbox::{Policy, SandboxRules};

    use super::*;

    #[test]
    fn a_search_that_takes_too_long_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "needle\n").expect("a file");
        let policy = Policy::Confined(SandboxRules::read_only());
        let roots = Roots::new(folder.path(), &policy).expect("roots");
        let search = needle();
        let resolved = roots
            .resolve(Path::new("."), FinalLink::Follow)
            .expect("a folder");
        let run = |time| search.run_within(&roots, &resolved, time).expect("text");
        assert_eq!(run(TIME_MAX), "a.txt:1:needle\n");
        let late = "[not all was searched, because it takes too long; search a deeper folder]\n";
        assert_eq!(run(Duration::ZERO), late);
    }

    #[test]
    fn links_that_replace_walked_folders_are_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("a path");
        std::fs::create_dir(top.join("closed")).expect("a folder");
        std::fs::write(top.join("closed/a.txt"), "needle\n").expect("a file");
        std::os::unix::fs::symlink("closed", top.join("open")).expect("a link");
        let policy = Policy::Confined(SandboxRules::read_only());
        let roots = Roots::new(&top, &policy).expect("roots");
        for (path, expected) in [
            ("closed/a.txt", "closed/a.txt:1:needle\n"),
            ("open/a.txt", ""),
        ] {
            let mut search = needle().search(TIME_MAX).expect("a search");
            let read = search.walked(&roots, &top.join(path));
            assert_eq!(search.text, expected);
            assert_eq!(read.is_ok(), !expected.is_empty(), "{path}");
        }
    }

    fn needle() -> SearchFiles {
        SearchFiles {
            pattern: "needle".to_owned(),
            ..SearchFiles::default()
        }
    }
}
