//! Briefs about a thread's environment: the workspace's own instructions, its location and limits,
//! and skills. A workspace's files are text for the model, never configuration.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::{Skills, TrustError, UndecidedFolder};
use raddle_core::{ApprovalPolicy, Briefed, Input, Sandbox, Settings, Timestamp, Topic};
use rustix::fs::{Mode, OFlags};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::skills;

/// File with the instructions of a workspace.
const NAME: &str = "AGENTS.md";

/// Limit: content of a workspace's `AGENTS.md` files that the model reads; beyond it, the rest is
/// left out, and the model is notified.
const BYTES_MAX: usize = 32 << 10;

/// Maximum number of parent folders that are searched.
const DEPTH_MAX: usize = 64;

/// Limit: time a turn waits for the disk of the `AGENTS.md` files and skills; beyond it, the model
/// keeps the previous instructions and skills.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// Limit: reads of `AGENTS.md` files and skills that hang at a time; beyond it, further turns begin
/// without a read.
const READS_MAX: usize = 16;

/// Instructions from the files of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// Text for the model; empty if there are no files.
    pub text: String,
    /// Paths of the files, from the outermost folder inwards.
    pub sources: Vec<String>,
}

/// Reads the environment of threads.
#[derive(Debug)]
pub(crate) struct EnvironmentReader {
    permits: Arc<Semaphore>,
    skills: Arc<dyn Skills>,
}

impl EnvironmentReader {
    pub(crate) fn new(skills: Arc<dyn Skills>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(READS_MAX)),
            skills,
        }
    }

    /// Returns the briefs for a thread with these settings, and whose next message is `input`.
    pub(crate) async fn briefs(
        &self,
        settings: &Settings,
        input: Vec<Input>,
        now: Timestamp,
    ) -> Vec<Briefed> {
        let (skills, thread_settings) = (self.skills.clone(), settings.clone());
        let reading = self.on_disk(&settings.cwd, move |folder| {
            let instructions = read(folder);
            let skills = skills::briefs(&*skills, &thread_settings, &input);
            (instructions, skills)
        });
        let (instructions, skills) = reading.await.unzip();
        let instructions = instructions.map(|it| Briefed {
            topic: Topic::Instructions,
            text: it.text,
            sources: it.sources,
            is_asked: false,
        });
        let environment = Briefed {
            topic: Topic::Environment,
            text: environment(settings, now),
            sources: Vec::new(),
            is_asked: false,
        };
        let briefs = instructions.into_iter().chain([environment]);
        briefs.chain(skills.unwrap_or_default()).collect()
    }

    /// Returns the workspace's instructions, or `None` if reading times out.
    pub(crate) async fn instructions(&self, cwd: &str) -> Option<Instructions> {
        self.on_disk(cwd, read).await
    }

    /// Returns the folder around `cwd` whose skills wait for the decision whether it is trusted.
    pub(crate) async fn undecided(&self, cwd: &str) -> Option<UndecidedFolder> {
        let skills = self.skills.clone();
        let folder = cwd.to_owned();
        let reading = self.on_disk(cwd, move |_| skills.offer(&folder).undecided);
        reading.await.flatten()
    }

    /// Stores whether a folder is trusted.
    pub(crate) async fn decide(&self, folder: String, is_trusted: bool) -> Result<(), TrustError> {
        let skills = self.skills.clone();
        let stored = tokio::task::spawn_blocking(move || skills.decide(&folder, is_trusted));
        let stored = stored.await;
        stored.unwrap_or_else(|error| Err(TrustError(error.to_string())))
    }

    /// Reads something in a folder on a thread that may block. Returns `None` if that times out.
    async fn on_disk<T, F>(&self, cwd: &str, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: FnOnce(&Path) -> T + Send + 'static,
    {
        let (permits, folder) = (self.permits.clone(), PathBuf::from(cwd));
        let reading = async {
            let permit = permits.acquire_owned().await.ok()?;
            let reading = tokio::task::spawn_blocking(move || {
                // Held until the disk answers, even after the timeout.
                let _permit = permit;
                work(&folder)
            });
            reading.await.ok()
        };
        let outcome = timeout(DISK_TIMEOUT, reading).await.ok().flatten();
        if outcome.is_none() {
            tracing::warn!(
                cwd,
                "the instructions and skills of the workspace could not be read in time"
            );
        }
        outcome
    }
}

/// Reads the instructions from the root of the repository down to a folder.
fn read(cwd: &Path) -> Instructions {
    if !cwd.is_absolute() {
        return Instructions::default();
    }
    let mut folders: Vec<&Path> = cwd.ancestors().take(DEPTH_MAX).collect();
    let root = folders.iter().position(|it| it.join(".git").exists());
    folders.truncate(root.unwrap_or_default() + 1);
    let mut instructions = Instructions::default();
    let Some(root) = folders.last().and_then(|it| it.canonicalize().ok()) else {
        return instructions;
    };
    let mut remaining = BYTES_MAX;
    for folder in folders.into_iter().rev() {
        let path = folder.join(NAME);
        let Some((text, is_whole)) =
            open(&path, &root).and_then(|file| read_prefix(file, remaining))
        else {
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        remaining -= text.len().min(remaining);
        let path = path.display().to_string();
        instructions.text += &match instructions.sources.len() {
            0 => format!("# Instructions of this workspace\n\nFrom {path}:\n\n"),
            _ => format!("\nFrom {path}, which counts above the ones before it:\n\n"),
        };
        instructions.text += text.trim_end();
        instructions.text += "\n";
        instructions.sources.push(path);
        if !is_whole {
            instructions.text += "\n(It goes on, but no more is read than this.)\n";
            break;
        }
    }
    instructions
}

/// Opens an ordinary file inside the repository. Its text is sent to the model's vendor. A link
/// must therefore lead to Markdown in the same repository: a home folder may itself be a repository
/// that holds keys and settings. A command may exchange a link at any moment. So the kernel is
/// asked for the path of the opened file, and that very file is read.
fn open(path: &Path, root: &Path) -> Option<File> {
    let fd = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let file = File::from(fd);
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    let real = fs::read_link(&handle).ok()?;
    let is_markdown = real
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("md"));
    let is_allowed = real.starts_with(root) && is_markdown && file.metadata().ok()?.is_file();
    is_allowed.then(|| File::open(&handle).ok()).flatten()
}

/// Reads the beginning of a text. Also returns whether it is complete.
fn read_prefix(file: File, bytes_max: usize) -> Option<(String, bool)> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    let is_whole = bytes.len() <= bytes_max;
    if !is_whole {
        bytes.truncate(bytes_max);
        // Do not cut within a character.
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
    }
    Some((String::from_utf8_lossy(&bytes).into_owned(), is_whole))
}

/// Describes the location, the date and the permissions for the model.
fn environment(settings: &Settings, now: Timestamp) -> String {
    let (year, month, day) = now.date();
    let mut lines = vec![
        format!("folder: {}", settings.cwd),
        format!("system: {}", std::env::consts::OS),
        format!("date: {year:04}-{month:02}-{day:02}"),
    ];
    let roots = settings.roots.iter().filter(|it| **it != settings.cwd);
    lines.extend(roots.map(|it| format!("also in the workspace: {it}")));
    let (files, network) = match &settings.sandbox {
        Sandbox::FullAccess => ("everything can be written", true),
        Sandbox::ReadOnly { network, .. } => ("files can be read, not written", *network),
        Sandbox::WorkspaceWrite { network, .. } => ("the workspace can be written", *network),
        Sandbox::External { network } => ("as the host's own sandbox allows", *network),
    };
    lines.push(format!("files: {files}"));
    if let Some(reads) = settings.sandbox.reads() {
        let others = reads.iter().map(|it| format!(", {it}"));
        let others: String = others.collect();
        lines.push(format!(
            "readable: only the workspace, writable folders, the system's files{others}"
        ));
    }
    lines.push(format!("network: {}", if network { "yes" } else { "no" }));
    let asks = match &settings.approval {
        ApprovalPolicy::Untrusted => "before every command not known to be harmless",
        ApprovalPolicy::OnRequest => "when you ask to go beyond this",
        ApprovalPolicy::Never => "never; what is not allowed fails",
        ApprovalPolicy::Granular(_) => "depending on what you ask for",
    };
    lines.push(format!("the user is asked: {asks}"));
    format!("# Where you work\n\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Creates files in a folder, and reads the instructions for `w/a/b`.
    fn read_tree(files: &[(&str, &str)]) -> (String, Vec<String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("a path");
        fs::create_dir_all(base.join("w/a/b")).expect("folders");
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            match text.strip_prefix("-> ") {
                Some(to) => std::os::unix::fs::symlink(base.join(to), path).expect("a link"),
                None => fs::write(path, text).expect("a file"),
            }
        }
        let instructions = read(&base.join("w/a/b"));
        let base = format!("{}/", base.display());
        let sources = instructions.sources.iter().map(|it| it.replace(&base, ""));
        (instructions.text.replace(&base, ""), sources.collect())
    }

    #[test]
    fn from_the_root_of_the_repository_down() {
        let (text, sources) = read_tree(&[
            ("AGENTS.md", "outside"),
            ("w/.git/HEAD", ""),
            ("w/AGENTS.md", "use tabs\n\n"),
            ("w/a/b/AGENTS.md", "use spaces"),
        ]);
        assert_eq!(sources, ["w/AGENTS.md", "w/a/b/AGENTS.md"]);
        assert_eq!(
            text,
            "# Instructions of this workspace\n\nFrom w/AGENTS.md:\n\nuse tabs\n\n\
             From w/a/b/AGENTS.md, which counts above the ones before it:\n\nuse spaces\n"
        );
    }

    #[test]
    fn only_the_folder_itself_without_a_repository() {
        let files = [("w/AGENTS.md", "above"), ("w/a/b/AGENTS.md", "here")];
        assert_eq!(read_tree(&files).1, ["w/a/b/AGENTS.md"]);
        assert_eq!(
            read_tree(&[("w/a/b/AGENTS.md", " \n")]),
            (String::new(), vec![])
        );
    }

    #[test]
    fn nothing_from_outside_and_nothing_special() {
        let git = ("w/.git/HEAD", "");
        let secret = ("secret", "do not tell");
        let out = ("w/a/b/AGENTS.md", "-> secret");
        assert_eq!(read_tree(&[git, secret, out]), (String::new(), vec![]));
        let endless = ("w/a/b/AGENTS.md", "-> w/dev");
        let device = ("w/dev", "-> ../../../../../../../../dev/zero");
        assert_eq!(read_tree(&[git, device, endless]), (String::new(), vec![]));
        let keys = ("w/.config/raddle/config.toml", "key = 'do not tell'");
        let to_keys = ("w/a/b/AGENTS.md", "-> w/.config/raddle/config.toml");
        assert_eq!(read_tree(&[git, keys, to_keys]), (String::new(), vec![]));
        // A link that stays inside counts as a file.
        let inside = [
            git,
            ("w/CLAUDE.md", "be kind"),
            ("w/AGENTS.md", "-> w/CLAUDE.md"),
        ];
        assert_eq!(read_tree(&inside).1, ["w/AGENTS.md"]);
    }

    #[test]
    fn a_link_exchanged_during_the_read_is_not_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("a path");
        fs::create_dir(base.join("w")).expect("a folder");
        fs::write(base.join("secret"), "do not tell").expect("a file");
        fs::write(base.join("w/kind.md"), "be kind").expect("a file");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let targets = ["../secret", "kind.md"];
                for target in targets.iter().cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let link = base.join("w/link");
                    std::os::unix::fs::symlink(target, &link).expect("a link");
                    fs::rename(link, base.join("w/AGENTS.md")).expect("a rename");
                }
            });
            let read: Vec<String> = (0..20_000).map(|_| read(&base.join("w")).text).collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(read.iter().any(|it| it.contains("be kind")));
            assert!(!read.iter().any(|it| it.contains("do not tell")));
        });
    }

    #[test]
    fn no_more_than_a_bound_and_no_half_letters() {
        let long = "ä".repeat(BYTES_MAX);
        let git = ("w/.git/HEAD", "");
        let files = [
            git,
            ("w/AGENTS.md", long.as_str()),
            ("w/a/b/AGENTS.md", "more"),
        ];
        let (text, sources) = read_tree(&files);
        assert!(text.len() <= BYTES_MAX + 200, "{}", text.len());
        assert!(text.contains('ä') && !text.contains('\u{fffd}'));
        assert!(text.ends_with("no more is read than this.)\n"));
        assert_eq!(sources, ["w/AGENTS.md"]);
    }

    #[test]
    fn an_environment() {
        let settings = Settings {
            cwd: "/w".to_owned(),
            roots: vec!["/w".to_owned(), "/x".to_owned()],
            ..Settings::default()
        };
        let text = environment(&settings, Timestamp(951_782_400_000));
        let os = std::env::consts::OS;
        assert_eq!(
            text,
            format!(
                "# Where you work\n\nfolder: /w\nsystem: {os}\ndate: 2000-02-29\n\
                 also in the workspace: /x\nfiles: files can be read, not written\nnetwork: no\n\
                 the user is asked: when you ask to go beyond this\n"
            )
        );
    }
}
