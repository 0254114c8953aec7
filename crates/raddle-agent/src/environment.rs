//! What there is to say about where a thread works: what the workspace's own files ask for, and where it
//! is. A workspace's files are text for the model, never configuration.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_core::{ApprovalPolicy, Briefed, Sandbox, Settings, Timestamp, Topic};
use rustix::fs::{Mode, OFlags};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The file in which a workspace says how it wants to be worked on.
const NAME: &str = "AGENTS.md";

/// How much of such files is read, all together.
const BYTES_MAX: usize = 32 << 10;

/// How many folders above the working one are looked at.
const DEPTH_MAX: usize = 64;

/// How long a disk may take. A turn does not wait longer; the model keeps what it was told before.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// How many disks may hang at a time.
const READS_MAX: usize = 16;

/// What the files of a workspace ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// What the model reads; nothing if there are none.
    pub text: String,
    /// The files, the one for the widest folder first.
    pub sources: Vec<String>,
}

/// Looks around.
#[derive(Debug)]
pub(crate) struct EnvironmentReader {
    permits: Arc<Semaphore>,
}

impl EnvironmentReader {
    pub(crate) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// What there is to say about a thread with these settings.
    pub(crate) async fn briefs(&self, settings: &Settings, now: Timestamp) -> Vec<Briefed> {
        let asked = self.instructions(&settings.cwd).await.map(|it| Briefed {
            topic: Topic::Instructions,
            text: it.text,
            sources: it.sources,
        });
        let environment = Briefed {
            topic: Topic::Environment,
            text: environment(settings, now),
            sources: Vec::new(),
        };
        asked.into_iter().chain([environment]).collect()
    }

    /// What the workspace asks for, unless its disk hangs.
    pub(crate) async fn instructions(&self, cwd: &str) -> Option<Instructions> {
        let (looks, folder) = (self.permits.clone(), PathBuf::from(cwd));
        let reading = async {
            let turn = looks.acquire_owned().await.ok()?;
            let reading = tokio::task::spawn_blocking(move || {
                // For as long as the disk takes, also when nobody waits any more.
                let _turn = turn;
                read(&folder)
            });
            reading.await.ok()
        };
        let read = timeout(DISK_TIMEOUT, reading).await.ok().flatten();
        if read.is_none() {
            tracing::warn!(
                cwd,
                "the instructions of the workspace could not be read in time"
            );
        }
        read
    }
}

/// What the files from the root of the repository down to a folder ask for.
fn read(cwd: &Path) -> Instructions {
    if !cwd.is_absolute() {
        return Instructions::default();
    }
    let mut folders: Vec<&Path> = cwd.ancestors().take(DEPTH_MAX).collect();
    let root = folders.iter().position(|it| it.join(".git").exists());
    folders.truncate(root.unwrap_or_default() + 1);
    let mut found = Instructions::default();
    let Some(root) = folders.last().and_then(|it| it.canonicalize().ok()) else {
        return found;
    };
    let mut left = BYTES_MAX;
    for folder in folders.into_iter().rev() {
        let path = folder.join(NAME);
        let Some((text, is_whole)) = open(&path, &root).and_then(|file| take(file, left)) else {
            continue;
        };
        if text.trim().is_empty() {
            continue;
        }
        left -= text.len().min(left);
        let path = path.display().to_string();
        found.text += &match found.sources.len() {
            0 => format!("# Instructions of this workspace\n\nFrom {path}:\n\n"),
            _ => format!("\nFrom {path}, which counts above the ones before it:\n\n"),
        };
        found.text += text.trim_end();
        found.text += "\n";
        found.sources.push(path);
        if !is_whole {
            found.text += "\n(It goes on, but no more is read than this.)\n";
            break;
        }
    }
    found
}

/// An ordinary file inside the repository. What is read is sent to the model's vendor, so a link leads to Markdown in
/// the same repository or nowhere: where a home folder is a repository, keys and settings lie in it too. A command may
/// exchange a link at any moment, so the kernel is asked where the file is that was found, and that very file is read.
fn open(path: &Path, root: &Path) -> Option<File> {
    let found = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let found = File::from(found);
    let handle = format!("/proc/self/fd/{}", found.as_raw_fd());
    let real = fs::read_link(&handle).ok()?;
    let is_markdown = real
        .extension()
        .is_some_and(|it| it.eq_ignore_ascii_case("md"));
    let is_ours = real.starts_with(root) && is_markdown && found.metadata().ok()?.is_file();
    is_ours.then(|| File::open(&handle).ok()).flatten()
}

/// The beginning of a text, and whether it is all of it.
fn take(file: File, bytes_max: usize) -> Option<(String, bool)> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    let is_whole = bytes.len() <= bytes_max;
    if !is_whole {
        bytes.truncate(bytes_max);
        // Not in the middle of a letter.
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
    }
    Some((String::from_utf8_lossy(&bytes).into_owned(), is_whole))
}

/// Where and when it works, and what it may touch.
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
        Sandbox::External { network } => ("as the machine's own fence allows", *network),
    };
    lines.push(format!("files: {files}"));
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

    /// A folder with files in it, and what is read from below `w/a/b`.
    fn found(files: &[(&str, &str)]) -> (String, Vec<String>) {
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
        let found = read(&base.join("w/a/b"));
        let base = format!("{}/", base.display());
        let sources = found.sources.iter().map(|it| it.replace(&base, ""));
        (found.text.replace(&base, ""), sources.collect())
    }

    #[test]
    fn from_the_root_of_the_repository_down() {
        let (text, sources) = found(&[
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
        assert_eq!(found(&files).1, ["w/a/b/AGENTS.md"]);
        assert_eq!(
            found(&[("w/a/b/AGENTS.md", " \n")]),
            (String::new(), vec![])
        );
    }

    #[test]
    fn nothing_from_outside_and_nothing_special() {
        let git = ("w/.git/HEAD", "");
        let secret = ("secret", "do not tell");
        let out = ("w/a/b/AGENTS.md", "-> secret");
        assert_eq!(found(&[git, secret, out]), (String::new(), vec![]));
        let endless = ("w/a/b/AGENTS.md", "-> w/dev");
        let device = ("w/dev", "-> ../../../../../../../../dev/zero");
        assert_eq!(found(&[git, device, endless]), (String::new(), vec![]));
        let keys = ("w/.config/raddle/config.toml", "key = 'do not tell'");
        let to_keys = ("w/a/b/AGENTS.md", "-> w/.config/raddle/config.toml");
        assert_eq!(found(&[git, keys, to_keys]), (String::new(), vec![]));
        // One that stays inside is as good as a file.
        let inside = [
            git,
            ("w/CLAUDE.md", "be kind"),
            ("w/AGENTS.md", "-> w/CLAUDE.md"),
        ];
        assert_eq!(found(&inside).1, ["w/AGENTS.md"]);
    }

    #[test]
    fn a_link_that_is_exchanged_meanwhile_leads_nowhere() {
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
        let (text, sources) = found(&files);
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
