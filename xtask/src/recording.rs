//! docs/images/exec.svg, hunks.svg and demo.svg: recordings of `raddle exec` with an approval, as a
//! whole and hunk by hunk, and of `raddle demo`.
//!
//! The binary runs in a pseudo-terminal, `exec` with `raddle mock` as its model, and this program
//! answers the approval. The text of the recording is the binary's own; its times are fixed, and so are the
//! folder and the id of the thread. So two recordings of one binary are the same file.

mod demo;
mod exec;
mod pty;
mod svg;
mod terminal;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::{Cache, remove_folder};
use crate::r#gen::{self, Mode};
use crate::recording::terminal::Terminal;
use crate::repository;

/// The folder of the recording. It is removed before and after.
const FOLDER: &str = "/tmp/raddle-recording";

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// Id in place of the thread's own, which differs in each run.
const THREAD_ID: &str = "0199a3f2-5c1e-7d40-9b26-31c0e8f7a654";

/// Pauses of the recording: before typing, while the model works, and while the user reads.
const START_MS: u64 = 600;
const MODEL_MS: u64 = 900;
const READ_MS: u64 = 2200;

pub fn command(mut arguments: Arguments) -> Result<()> {
    let check = arguments.flag("--check");
    let raddle = arguments
        .value("--raddle")?
        .map(std::path::absolute)
        .transpose()?;
    arguments.end()?;
    let root = repository::root()?;
    let raddle = match raddle {
        Some(program) => program,
        None => r#gen::build(&root)?,
    };
    let mode = if check { Mode::Check } else { Mode::Write };
    run(&root, &Cache::open()?, &raddle, mode)
}

/// Records the binary, and compares the recordings with the committed ones or writes them.
pub fn run(root: &Path, cache: &Cache, raddle: &Path, mode: Mode) -> Result<()> {
    let _lock = cache.lock("recording")?;
    remove_folder(Path::new(FOLDER))?;
    let recorded = record_all(raddle);
    remove_folder(Path::new(FOLDER))?;
    let mut all_match = Ok(());
    for (file, image) in recorded? {
        // A stale recording must not hide another.
        all_match = all_match.and(check_or_write(root, file, &image, &mode));
    }
    all_match
}

/// Records every program. Returns the images, each with its file.
fn record_all(raddle: &Path) -> Result<Vec<(&'static str, String)>> {
    let mut images = Vec::new();
    for scene in exec::SCENES {
        let terminal = exec::record(scene, raddle)?;
        images.push((scene.file, svg::svg(&scene.caption, terminal.rows())));
    }
    let demo = demo::record(raddle)?;
    images.push((demo::FILE, svg::svg(&demo::CAPTION, demo.rows())));
    Ok(images)
}

/// Compares a recording with the committed file, or writes it.
fn check_or_write(root: &Path, file: &str, fresh: &str, mode: &Mode) -> Result<()> {
    let path = root.join(file);
    match mode {
        Mode::Check if fs::read_to_string(&path).is_ok_and(|it| it == fresh) => {
            println!("{file} is what the binary shows");
            Ok(())
        }
        Mode::Check => bail!("{file} is stale; run `cargo xtask recording` and commit it"),
        Mode::Write => {
            fs::create_dir_all(path.parent().context("the file has a folder")?)?;
            fs::write(&path, fresh).with_context(|| format!("cannot write {file}"))?;
            println!("wrote {file}");
            Ok(())
        }
    }
}

/// Types a line at the prompt of a shell.
fn shell_line(terminal: &mut Terminal, line: &str) -> Result<()> {
    terminal.output("\u{1b}[2m$\u{1b}[0m ")?;
    terminal.wait(START_MS);
    terminal.type_text(line);
    terminal.enter();
    Ok(())
}

fn folder(name: &str) -> Result<PathBuf> {
    let folder = Path::new(FOLDER).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Prepares the binary with a home of its own, and without the settings of this machine.
fn program(raddle: &Path, home: &Path) -> Command {
    let mut command = Command::new(raddle);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", home)
        .env("RADDLE_HOME", home)
        .env("LANG", "C.UTF-8")
        .env("TERM", "xterm-256color");
    command
}

/// Starts the model, and returns it with its URL.
fn start_mock(raddle: &Path, home: &Path, script: &Path) -> Result<(Guard, String)> {
    let mut mock = Guard(
        program(raddle, home)
            .args(["mock", "--listen", "127.0.0.1:0", "--script"])
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", raddle.display()))?,
    );
    let stdout = mock.0.stdout.take().context("the mock has no stdout")?;
    let mut base_url = String::new();
    if BufReader::new(stdout).read_line(&mut base_url)? == 0 {
        bail!("`raddle mock` ended at once");
    }
    Ok((mock, base_url))
}

/// A child process that ends with its owner.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Replaces ids of threads.
fn neutral(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let is_start = !out.ends_with(|it: char| it.is_ascii_alphanumeric());
        if is_start && rest.get(..THREAD_ID.len()).is_some_and(is_id) {
            out.push_str(THREAD_ID);
            rest = &rest[THREAD_ID.len()..];
        } else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    out
}

fn is_id(text: &str) -> bool {
    text.char_indices().all(|(at, letter)| match at {
        8 | 13 | 18 | 23 => letter == '-',
        _ => letter.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_threads_are_replaced() {
        assert!(is_id(THREAD_ID));
        let own = "\u{1b}[2mthread 01999999-aaaa-7bbb-8ccc-dddddddddddd\u{1b}[0m\r\n…";
        let expected = format!("\u{1b}[2mthread {THREAD_ID}\u{1b}[0m\r\n…");
        assert_eq!(neutral(own), expected);
    }

    #[test]
    fn other_text_stays() {
        for text in ["", "…", "0123456789-0123-0123-0123-012345678901"] {
            assert_eq!(neutral(text), text);
        }
    }
}
