//! What exactly a command is: a yes is good for this and nothing else.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use raddle_core::policy::is_shell;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// The longest file that counts with all it holds; of a longer one its length and when it was changed do.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The most files of a command that count.
const FILES_MAX: usize = 32;

/// Everything that makes a command this one and no other.
#[derive(Clone, Copy, Debug)]
pub struct Digested<'a> {
    /// Its words.
    pub words: &'a [String],
    /// The words of everything that it runs, in which the files that it runs are found.
    pub commands: &'a [Vec<String>],
    /// Where it runs.
    pub cwd: &'a str,
    /// What is set for it beside the usual.
    pub environment: &'a BTreeMap<String, String>,
    /// The sandbox in which it runs, however it is written down.
    pub sandbox: &'a str,
}

/// Its SHA-256 in hex. It reads the files that the command runs, so it may
/// wait for a disk.
pub fn digest(it: Digested<'_>) -> String {
    let mut sum = Sha256::new();
    // Each part says how long it is, so that no two lists of parts look alike.
    let mut part = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    let count = |of: usize| (of as u64).to_le_bytes();
    part(&count(it.words.len()));
    it.words.iter().for_each(|word| part(word.as_bytes()));
    part(it.cwd.as_bytes());
    part(&count(it.environment.len()));
    for (name, value) in it.environment {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(it.sandbox.as_bytes());
    for (path, content) in scripts(it) {
        part(path.as_os_str().as_encoded_bytes());
        part(&content);
    }
    hex(&sum.finalize())
}

/// The files that are run, each with what it holds, summed up.
fn scripts(it: Digested<'_>) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for word in it.commands.iter().flat_map(|words| run_by(words)) {
        let path = Path::new(it.cwd).join(word);
        if found.len() < FILES_MAX
            && !found.contains_key(&path)
            && let Some(content) = content(&path)
        {
            found.insert(path, content);
        }
    }
    found
}

/// Names of files that decide what a command does: the program, if it is named by its path, and the script
/// that it is given or finds.
fn run_by(words: &[String]) -> Vec<&str> {
    let Some((program, rest)) = words.split_first() else {
        return Vec::new();
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let mut found: Vec<&str> = Vec::new();
    if program.contains('/') {
        found.push(program);
    }
    if is_shell(words) || INTERPRETERS.iter().any(|it| name.starts_with(it)) || name == "." {
        found.extend(
            rest.iter()
                .map(String::as_str)
                .find(|it| !it.starts_with('-')),
        );
    }
    if let Some((_, files)) = RECIPES.iter().find(|(tool, _)| *tool == name) {
        found.extend(*files);
    }
    found.retain(|it| !it.is_empty() && !it.contains('\0'));
    found
}

/// Programs that run a script, whatever follows their names.
const INTERPRETERS: [&str; 9] = [
    "bun", "deno", "lua", "node", "perl", "php", "python", "ruby", "source",
];

/// Programs that run what a file of the folder says.
const RECIPES: [(&str, &[&str]); 5] = [
    ("just", &["justfile", "Justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
];

/// A plain file's sum; of one that is too long, its length and when it was changed.
fn content(path: &Path) -> Option<Vec<u8>> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() {
        return None;
    }
    if about.len() > FILE_BYTES_MAX {
        return Some(format!("{} {:?}", about.len(), about.modified().ok()).into_bytes());
    }
    let mut sum = Sha256::new();
    // It may have become a pipe by now, for which nobody waits.
    let mut options = std::fs::OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let mut file = options.open(path).ok()?.take(FILE_BYTES_MAX + 1);
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(sum.finalize().to_vec()),
            bytes => sum.update(&piece[..bytes]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
