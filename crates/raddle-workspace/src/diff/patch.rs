//! The patch of one file, as git writes it.

use std::fmt::Write as _;

use sha1::{Digest as _, Sha1};

use super::lines::{CONTEXT, as_usize, split};
use super::{FileChangeKind, FileHunk, FileSide, binary, git_mode};

/// Name of a content that is absent.
const NO_CONTENT: &str = "0000000000000000000000000000000000000000";

/// Mode of a file that the user may not execute.
const PLAIN_MODE: &str = "100644";

pub(super) struct PatchWriter<'a> {
    kind: FileChangeKind,
    before: Option<&'a FileSide>,
    after: Option<&'a FileSide>,
    text: Vec<u8>,
}

impl<'a> PatchWriter<'a> {
    pub fn new(
        kind: FileChangeKind,
        before: Option<&'a FileSide>,
        after: Option<&'a FileSide>,
    ) -> Self {
        let text = Vec::new();
        Self {
            kind,
            before,
            after,
            text,
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.text
    }

    /// Returns the length of the patch so far.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// Removes everything that was written.
    pub fn clear(&mut self) {
        self.text = Vec::new();
    }

    /// Splits a change of kind, because git deletes the one and creates the other.
    fn halves(&self) -> Option<[Self; 2]> {
        let (before, after) = (self.before, self.after);
        (self.kind == FileChangeKind::TypeChanged).then(|| {
            [
                Self::new(FileChangeKind::Deleted, before, None),
                Self::new(FileChangeKind::Added, None, after),
            ]
        })
    }

    /// Writes everything up to the content. `contents` are those before and after, if they differ.
    pub fn header(&mut self, contents: Option<(&[u8], &[u8])>) {
        let (Some(from), Some(to)) = (self.before.or(self.after), self.after.or(self.before))
        else {
            return;
        };
        let modes = (
            self.before.map(|it| git_mode(&it.entry)),
            self.after.map(|it| git_mode(&it.entry)),
        );
        let is_same_for_git = modes.0 == modes.1 && from.path == to.path && contents.is_none();
        if is_same_for_git {
            return;
        }
        self.line(&[b"diff --git ", &name(b"a/", from), b" ", &name(b"b/", to)]);
        match modes {
            (Some(old), Some(new)) if old != new => {
                self.line(&[b"old mode ", old.as_bytes()]);
                self.line(&[b"new mode ", new.as_bytes()]);
            }
            (Some(old), None) => {
                self.line(&[b"deleted file mode ", old.as_bytes()]);
                // Without this line, `git apply -R` of many versions forgets the mode.
                if old != PLAIN_MODE {
                    self.line(&[b"new mode ", old.as_bytes()]);
                }
            }
            (None, Some(new)) => self.line(&[b"new file mode ", new.as_bytes()]),
            _ => {}
        }
        if from.path != to.path {
            self.line(&[b"rename from ", &name(b"", from)]);
            self.line(&[b"rename to ", &name(b"", to)]);
        }
        let Some((old, new)) = contents else { return };
        let old = self.before.map_or(NO_CONTENT.into(), |_| blob_name(old));
        let new = self.after.map_or(NO_CONTENT.into(), |_| blob_name(new));
        let mut line = format!("index {old}..{new}");
        if let (Some(mode), true) = (modes.0, modes.0 == modes.1) {
            let _ = write!(line, " {mode}");
        }
        self.line(&[line.as_bytes()]);
    }

    /// Writes a change of text.
    pub fn text(&mut self, old: &[u8], new: &[u8], hunks: &[FileHunk]) {
        if let Some([mut deleted, mut added]) = self.halves() {
            deleted.text(old, b"", &super::lines::hunks(None, old, b""));
            added.text(b"", new, &super::lines::hunks(None, b"", new));
            self.text.extend(deleted.text);
            self.text.extend(added.text);
            return;
        }
        self.header(Some((old, new)));
        if hunks.is_empty() {
            return;
        }
        let name_line = |side: Option<&FileSide>, prefix: &[u8]| match side {
            Some(side) => ended(name(prefix, side)),
            None => b"/dev/null".to_vec(),
        };
        self.line(&[b"--- ", &name_line(self.before, b"a/")]);
        self.line(&[b"+++ ", &name_line(self.after, b"b/")]);
        let old = split(old);
        for hunk in hunks {
            self.hunk(&old, hunk);
        }
    }

    fn hunk(&mut self, old: &[&[u8]], hunk: &FileHunk) {
        let lead = hunk.before.start.min(CONTEXT);
        let trail = (old.len() as u32 - hunk.before.end).min(CONTEXT);
        let before = (hunk.before.start - lead, hunk.before.end + trail);
        let after = (hunk.after.start - lead, hunk.after.end + trail);
        let line = format!("@@ -{} +{} @@", range(before), range(after));
        self.line(&[line.as_bytes()]);
        self.lines(b' ', &old[as_usize(&(before.0..hunk.before.start))]);
        self.lines(b'-', &split(&hunk.old));
        self.lines(b'+', &split(&hunk.new));
        self.lines(b' ', &old[as_usize(&(hunk.before.end..before.1))]);
    }

    fn lines(&mut self, mark: u8, lines: &[&[u8]]) {
        for line in lines {
            self.text.push(mark);
            self.text.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                self.text
                    .extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }

    /// Writes both contents of a change that is not text.
    pub fn binary(&mut self, old: &[u8], new: &[u8]) {
        if let Some([mut deleted, mut added]) = self.halves() {
            deleted.content(old, b"");
            added.content(b"", new);
            self.text.extend(deleted.text);
            self.text.extend(added.text);
            return;
        }
        self.header(Some((old, new)));
        self.line(&[b"GIT binary patch"]);
        binary::literal(&mut self.text, new);
        binary::literal(&mut self.text, old);
    }

    /// Writes a content as text if it is text.
    fn content(&mut self, old: &[u8], new: &[u8]) {
        match old.contains(&0) || new.contains(&0) {
            true => self.binary(old, new),
            false => self.text(old, new, &super::lines::hunks(None, old, new)),
        }
    }

    /// Writes that the contents differ, and not how.
    pub fn omitted(&mut self) {
        // Without the contents there are no names for them.
        let (Some(from), Some(to)) = (self.before.or(self.after), self.after.or(self.before))
        else {
            return;
        };
        let (old, new) = (name(b"a/", from), name(b"b/", to));
        self.line(&[b"diff --git ", &old, b" ", &new]);
        let null = || b"/dev/null".to_vec();
        let old = self.before.map_or_else(null, |_| old);
        let new = self.after.map_or_else(null, |_| new);
        self.line(&[b"Binary files ", &old, b" and ", &new, b" differ"]);
    }

    fn line(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.text.extend_from_slice(part);
        }
        self.text.push(b'\n');
    }
}

/// Formats a range: lines count from one; an empty range names the line before it.
fn range((start, end): (u32, u32)) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    }
}

/// Formats a path as git does: in quotation marks if a byte of it needs an escape.
fn name(prefix: &[u8], side: &FileSide) -> Vec<u8> {
    let path = [prefix, side.path.as_bytes()].concat();
    let is_plain = |it: &u8| (0x20..0x7f).contains(it) && *it != b'"' && *it != b'\\';
    if path.iter().all(is_plain) {
        return path;
    }
    let mut quoted = b"\"".to_vec();
    for byte in &path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            it if is_plain(it) => quoted.push(*it),
            it => quoted.extend(format!("\\{it:03o}").bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

/// A tab ends a name with a space, so that what follows a space is not taken for a time.
fn ended(mut name: Vec<u8>) -> Vec<u8> {
    if !name.starts_with(b"\"") && name.contains(&b' ') {
        name.push(b'\t');
    }
    name
}

/// Returns the name that git gives to a content.
fn blob_name(content: &[u8]) -> String {
    let header = format!("blob {}\0", content.len());
    let hash = Sha1::new().chain_update(header).chain_update(content);
    data_encoding::HEXLOWER.encode(&hash.finalize())
}
