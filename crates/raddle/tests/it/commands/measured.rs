//! Nothing is left of a server that is killed while its fence tries to break out of itself.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;

use crate::support::{TEST_TIMEOUT, eventually, server};
use crate::unruly::GONE_MAX;

/// How many servers are killed, each a little later than the one before.
const KILLS: u32 = 30;

/// In this time a server has started and measured. Where it takes longer, all are killed before that.
const MEASURED: Duration = Duration::from_millis(90);

/// A folder that nobody else knows. Our binary has a second name in it, so all that a server starts has it in its
/// name or in its arguments.
struct PrivateFolder {
    folder: TempDir,
    path: String,
}

impl PrivateFolder {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let own = folder.path().join("raddle");
        // Another disk takes no second name.
        fs::hard_link(env!("CARGO_BIN_EXE_raddle"), &own)
            .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_raddle"), &own).map(drop))
            .expect("a second name");
        fs::create_dir(folder.path().join("tmp")).expect("it is made");
        let path = std::env::var("PATH").expect("a PATH");
        Self { folder, path }
    }

    fn tmp(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// Folders in which the self-test of a home's server takes place.
    fn stages(&self, home: &str) -> Vec<PathBuf> {
        let mut stages = Vec::new();
        let mut folders = vec![self.folder.path().join(home)];
        while let Some(folder) = folders.pop() {
            let inner = fs::read_dir(folder).into_iter().flatten().flatten();
            for path in inner.map(|it| it.path()).filter(|it| it.is_dir()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                match name.starts_with("raddle-self-test-") {
                    true => stages.push(path),
                    false => folders.push(path),
                }
            }
        }
        stages
    }

    fn raddle(&self, home: &str, word: &str) -> Command {
        let plain = server::command(&self.folder.path().join(home));
        let mut command = Command::new(self.folder.path().join("raddle"));
        command
            .arg(word)
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", &self.path)
            .env("TMPDIR", self.tmp())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts a server that has never measured.
    fn server(&self, home: &str) -> Child {
        let mut command = self.raddle(home, "app-server");
        command.spawn().expect("the binary starts")
    }

    /// What runs of it, by name.
    fn running(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").expect("the processes");
        let is_number = |name: &str| name.bytes().all(|it| it.is_ascii_digit());
        entries
            .flatten()
            .filter(|it| it.file_name().to_str().is_some_and(is_number))
            .filter_map(|it| shown(&it.path(), self.folder.path()))
            .collect()
    }

    fn wait_until_gone(&self, since: Instant) {
        loop {
            let left = self.running();
            if left.is_empty() {
                return;
            }
            assert!(since.elapsed() < GONE_MAX, "they live: {left:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The words of a process, if it is ours.
fn shown(process: &Path, folder: &Path) -> Option<String> {
    let program = fs::read_link(process.join("exe")).unwrap_or_default();
    let words = fs::read(process.join("cmdline")).ok()?;
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    let is_ours = program.starts_with(folder) || words.contains(folder.to_str()?);
    (is_ours && !words.is_empty()).then_some(words)
}

fn kill(mut server: Child) -> Instant {
    server.kill().expect("it is killed");
    server.wait().expect("it ends");
    Instant::now()
}

/// A bubblewrap ties itself to its parent only after a moment. This one never does.
#[test]
fn a_self_test_that_hangs_ends_with_a_killed_server() {
    let place = PrivateFolder::new();
    let bubblewrap = place.folder.path().join("bwrap");
    let begun = place.folder.path().join("begun");
    let pipe = place.folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let (at, from) = (begun.display(), pipe.display());
    let script = format!("#!/bin/sh\n: > {at}\nread nothing < {from}\n");
    fs::write(&bubblewrap, script).expect("it is written");
    fs::set_permissions(&bubblewrap, Permissions::from_mode(0o755)).expect("it is marked");
    let home = place.folder.path().join("home");
    fs::create_dir(&home).expect("it is made");
    let setting = format!("sandbox_bwrap_path = '{}'\n", bubblewrap.display());
    fs::write(home.join("config.toml"), setting).expect("it is written");

    let server = place.server("home");
    eventually("the self-test", || begun.exists().then_some(()));
    let killed = kill(server);
    place.wait_until_gone(killed);
}

/// Wherever in the self-test it is when the server is killed, with the bubblewrap of the machine.
#[test]
fn a_server_killed_while_it_measures_leaves_nothing() {
    let place = PrivateFolder::new();
    for round in 0..KILLS {
        let begun = Instant::now();
        let server = place.server(&format!("home-{round}"));
        // To be killed at this moment is what is tried.
        while begun.elapsed() < MEASURED * round / KILLS {
            std::thread::yield_now();
        }
        let killed = kill(server);
        place.wait_until_gone(killed);
    }
    let homes = (0..KILLS).map(|round| format!("home-{round}"));
    let left: Vec<String> = homes.filter(|it| !place.stages(it).is_empty()).collect();
    eprintln!("{KILLS} kills left folders in {} homes", left.len());
    for home in left {
        for stage in place.stages(&home) {
            let mode = stage.metadata().expect("it is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", stage.display());
        }
        let begun = Instant::now();
        let measured = place.raddle(&home, "doctor").status().expect("it starts");
        assert!(measured.success() && begun.elapsed() < TEST_TIMEOUT);
        assert!(place.stages(&home).is_empty(), "the next one removes them");
    }
    let in_scratch = fs::read_dir(place.tmp()).expect("it is there");
    assert_eq!(in_scratch.count(), 0, "commands of others may write there");
}
