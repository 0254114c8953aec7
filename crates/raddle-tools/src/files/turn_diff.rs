//! Accumulates the changes of a turn into one diff.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha1::{Digest as _, Sha1};

use super::change::ChangePlan;
use super::diff::{similarity, unified};
use super::open::Contents;

/// Limit: file contents that the diff of a turn keeps; beyond it, further files are only named.
const BYTES_MAX: usize = 16 << 20;

/// Moved files below this similarity are shown as one deleted and one added file.
const SIMILAR_PERCENT_MIN: usize = 50;

/// Changes of a turn: the first and the current version of each file.
#[derive(Debug)]
pub struct TurnDiff {
    base: PathBuf,
    files: BTreeMap<PathBuf, TrackedFile>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct TrackedFile {
    first: FileVersion,
    now: FileVersion,
    /// Original path, if the file was moved.
    from: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum FileVersion {
    #[default]
    Missing,
    Stored(Contents),
    /// Contents that were dropped to stay within the byte limit.
    Dropped,
}

impl TurnDiff {
    /// Creates an empty diff. Paths are shown relative to `base`.
    pub fn new(base: &Path) -> Self {
        Self {
            base: base.to_owned(),
            files: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Adds the files of an applied plan to the diff.
    pub fn record(&mut self, applied: &ChangePlan) {
        for file in &applied.files {
            let path = file.target.shown.clone();
            let came_from = file.moved_from.map(|it| &applied.files[it].target.shown);
            let origin = came_from.map(|it| match self.files.get(it) {
                Some(TrackedFile {
                    from: Some(from),
                    first: FileVersion::Missing,
                    ..
                }) => from.clone(),
                _ => it.clone(),
            });
            let now = self.store(file.now.as_ref());
            match self.files.get_mut(&path) {
                Some(tracked) => {
                    let before = std::mem::replace(&mut tracked.now, now);
                    self.bytes -= before.bytes();
                    if origin.is_some() {
                        tracked.from = origin;
                    }
                }
                None => {
                    let first = self.store(file.base.as_ref());
                    let from = origin;
                    self.files.insert(path, TrackedFile { first, now, from });
                }
            }
        }
    }

    fn store(&mut self, contents: Option<&Contents>) -> FileVersion {
        match contents {
            None => FileVersion::Missing,
            Some(it) if self.bytes + it.bytes.len() > BYTES_MAX => FileVersion::Dropped,
            Some(it) => {
                self.bytes += it.bytes.len();
                FileVersion::Stored(it.clone())
            }
        }
    }

    /// Returns the diff, as git prints it. Empty if nothing changed.
    pub fn text(&self) -> String {
        self.text_of(|_| true)
    }

    /// Returns the diff of some files.
    pub fn text_of(&self, is_shown: impl Fn(&Path) -> bool) -> String {
        let mut text = String::new();
        let moves: Vec<(&PathBuf, &PathBuf)> = self
            .files
            .iter()
            .filter_map(|(to, it)| Some((it.from.as_ref()?, to)))
            .filter(|(from, to)| self.is_move(from, to))
            .collect();
        for (path, file) in self.files.iter().filter(|(path, _)| is_shown(path)) {
            if moves.iter().any(|(from, _)| *from == path) {
                continue;
            }
            let from = moves.iter().find(|(_, to)| *to == path);
            match from.and_then(|(from, _)| Some((*from, self.files.get(*from)?))) {
                Some((from, origin)) => {
                    self.print(&mut text, (from, path), &origin.first, &file.now)
                }
                None => self.print(&mut text, (path, path), &file.first, &file.now),
            }
        }
        text
    }

    fn is_move(&self, from: &Path, to: &Path) -> bool {
        let (Some(from), Some(to)) = (self.files.get(from), self.files.get(to)) else {
            return false;
        };
        let (FileVersion::Stored(first), FileVersion::Stored(now)) = (&from.first, &to.now) else {
            return false;
        };
        let is_similar = match (first.text(), now.text()) {
            (Some(first), Some(now)) => similarity(first, now) >= SIMILAR_PERCENT_MIN,
            _ => first.bytes == now.bytes,
        };
        from.now == FileVersion::Missing && to.first == FileVersion::Missing && is_similar
    }

    fn print(
        &self,
        text: &mut String,
        paths: (&Path, &Path),
        first: &FileVersion,
        now: &FileVersion,
    ) {
        if paths.0 == paths.1 && first == now && *first != FileVersion::Dropped {
            return;
        }
        let a = quoted("a/", &self.relative(paths.0));
        let b = quoted("b/", &self.relative(paths.1));
        let _ = writeln!(text, "diff --git {a} {b}");
        let modes = (first.mode(), now.mode());
        match modes {
            (None, Some(mode)) => {
                let _ = writeln!(text, "new file mode {mode}");
            }
            (Some(mode), None) => {
                let _ = writeln!(text, "deleted file mode {mode}");
            }
            (Some(old), Some(new)) if old != new => {
                let _ = writeln!(text, "old mode {old}\nnew mode {new}");
            }
            _ => {}
        }
        if paths.0 != paths.1 {
            let percent = match (first.contents(), now.contents()) {
                (Some(first), Some(now)) if first.bytes == now.bytes => 100,
                (Some(first), Some(now)) => {
                    let (first, now) = (first.text(), now.text());
                    // 100 percent is reserved for identical bytes.
                    similarity(first.unwrap_or_default(), now.unwrap_or_default()).min(99)
                }
                _ => 0,
            };
            let from = quoted("", &self.relative(paths.0));
            let to = quoted("", &self.relative(paths.1));
            let _ = writeln!(
                text,
                "similarity index {percent}%\nrename from {from}\nrename to {to}"
            );
        }
        self.print_contents(text, (&a, &b), first, now);
    }

    fn print_contents(
        &self,
        text: &mut String,
        names: (&str, &str),
        first: &FileVersion,
        now: &FileVersion,
    ) {
        let a = if *first == FileVersion::Missing {
            "/dev/null"
        } else {
            names.0
        };
        let b = if *now == FileVersion::Missing {
            "/dev/null"
        } else {
            names.1
        };
        if *first == FileVersion::Dropped || *now == FileVersion::Dropped {
            let _ = writeln!(text, "Files {a} and {b} differ, too large to show");
            return;
        }
        let (old, new) = (first.contents(), now.contents());
        if old.map(|it| &it.bytes) == new.map(|it| &it.bytes) {
            return;
        }
        let mode = match (first.mode(), now.mode()) {
            (Some(old), Some(new)) if old == new => format!(" {new}"),
            _ => String::new(),
        };
        let _ = writeln!(text, "index {}..{}{mode}", blob(old), blob(new));
        let as_text = |it: Option<&Contents>| match it {
            None => Some(String::new()),
            Some(it) => Some(it.text()?.to_owned()),
        };
        match (as_text(old), as_text(new)) {
            (Some(old), Some(new)) if old == new => {}
            (Some(old), Some(new)) => {
                // Git adds a tab after a name with spaces, to mark its end.
                let tab = |name: &str| if name.contains(' ') { "\t" } else { "" };
                let (ta, tb) = (tab(a), tab(b));
                let _ = write!(text, "--- {a}{ta}\n+++ {b}{tb}\n{}", unified(&old, &new));
            }
            _ => {
                let _ = writeln!(text, "Binary files {a} and {b} differ");
            }
        }
    }

    fn relative(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(&self.base).ok();
        let below = below.or_else(|| path.strip_prefix("/").ok());
        below.unwrap_or(path).to_owned()
    }
}

impl FileVersion {
    fn bytes(&self) -> usize {
        self.contents().map_or(0, |it| it.bytes.len())
    }

    fn contents(&self) -> Option<&Contents> {
        match self {
            Self::Stored(contents) => Some(contents),
            Self::Missing | Self::Dropped => None,
        }
    }

    /// Returns the mode as git prints it: git knows only two.
    fn mode(&self) -> Option<&'static str> {
        match self {
            Self::Missing => None,
            Self::Stored(it) if it.mode & 0o100 != 0 => Some("100755"),
            Self::Stored(_) | Self::Dropped => Some("100644"),
        }
    }
}

/// Returns the git blob id of these contents.
fn blob(contents: Option<&Contents>) -> String {
    let Some(contents) = contents else {
        return "0".repeat(40);
    };
    let mut whole = Sha1::new();
    whole.update(format!("blob {}\0", contents.bytes.len()));
    whole.update(&contents.bytes);
    HEXLOWER.encode(&whole.finalize())
}

/// Formats a path as git does: in quotes if it has bytes that could be misread.
fn quoted(prefix: &str, path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let is_plain = |it: &u8| (0x20..0x7f).contains(it) && !b"\"\\".contains(it);
    if bytes.iter().all(is_plain) {
        return format!("{prefix}{}", path.display());
    }
    let mut text = format!("\"{prefix}");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            it if is_plain(it) => text.push(char::from(*it)),
            it => {
                let _ = write!(text, "\\{it:03o}");
            }
        }
    }
    text.push('"');
    text
}
