//! A server that is killed during the self-test of its sandbox leaves no process behind.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;

use crate::support::{TEST_TIMEOUT, eventually, server};
use crate::unruly::GONE_TIMEOUT;

/// How many servers are killed, each a little later than the one before.
const KILLS: u32 = 30;

/// The usual time of a start with its measurement. On a slower machine, all are killed before the
/// end.
const MEASURED: Duration = Duration::from_millis(90);

/// A private folder with a second name for the binary, so that all processes of its servers have
/// the folder in their program or arguments.
struct PrivateFolder {
    folder: TempDir,
    path: String,
}

impl PrivateFolder {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let own = folder.path().join("raddle");
        // A hard link is not possible across disks.
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

    /// Folders of the self-test of a home's server.
    fn testbeds(&self, home: &str) -> Vec<PathBuf> {
        let mut testbeds = Vec::new();
        let mut folders = vec![self.folder.path().join(home)];
        while let Some(folder) = folders.pop() {
            let inner = fs::read_dir(folder).into_iter().flatten().flatten();
            for path in inner.map(|it| it.path()).filter(|it| it.is_dir()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                match name.starts_with("raddle-self-test-") {
                    true => testbeds.push(path),
                    false => folders.push(path),
                }
            }
        }
        testbeds
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

    /// Starts a server without a cached measurement.
    fn server(&self, home: &str) -> Child {
        let mut command = self.raddle(home, "app-server");
        command.spawn().expect("the binary starts")
    }

    /// Returns the command lines of its processes.
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
            let remaining = self.running();
            if remaining.is_empty() {
                return;
            }
            assert!(since.elapsed() < GONE_TIMEOUT, "they live: {remaining:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Returns the command line of a process, if it is ours.
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
fn a_hanging_self_test_ends_with_a_killed_server() {
    let private = PrivateFolder::new();
    let bubblewrap = private.folder.path().join("bwrap");
    let begun = private.folder.path().join("begun");
    let pipe = private.folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let (at, from) = (begun.display(), pipe.display());
    let script = format!("#!/bin/sh\n: > {at}\nread nothing < {from}\n");
    fs::write(&bubblewrap, script).expect("it is written");
    fs::set_permissions(&bubblewrap, Permissions::from_mode(0o755)).expect("it is marked");
    let home = private.folder.path().join("home");
    fs::create_dir(&home).expect("it is made");
    let setting = format!("sandbox_bwrap_path = '{}'\n", bubblewrap.display());
    fs::write(home.join("config.toml"), setting).expect("it is written");

    let server = private.server("home");
    eventually("the self-test", || begun.exists().then_some(()));
    let killed = kill(server);
    private.wait_until_gone(killed);
}

/// The server is killed at any moment of the self-test, with the bubblewrap of the machine.
#[test]
fn a_server_killed_while_it_measures_leaves_nothing() {
    let private = PrivateFolder::new();
    for round in 0..KILLS {
        let begun = Instant::now();
        let server = private.server(&format!("home-{round}"));
        // A busy wait, to hit this moment exactly.
        while begun.elapsed() < MEASURED * round / KILLS {
            std::thread::yield_now();
        }
        let killed = kill(server);
        private.wait_until_gone(killed);
    }
    let homes = (0..KILLS).map(|round| format!("home-{round}"));
    let leftover_homes: Vec<String> = homes
        .filter(|it| !private.testbeds(it).is_empty())
        .collect();
    eprintln!(
        "{KILLS} kills left folders in {} homes",
        leftover_homes.len()
    );
    for home in leftover_homes {
        for testbed in private.testbeds(&home) {
            let mode = testbed
                .metadata()
                .expect("it is there")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o700, "{}", testbed.display());
        }
        let begun = Instant::now();
        let mut doctor = private.raddle(&home, "doctor");
        // With a model and its key a turn could run, so the status is 0.
        doctor
            .args(["-c", "model=openai/any"])
            .env("OPENAI_API_KEY", "k");
        let measured = doctor.status().expect("it starts");
        assert!(measured.success() && begun.elapsed() < TEST_TIMEOUT);
        assert!(
            private.testbeds(&home).is_empty(),
            "the next one removes them"
        );
    }
    let in_scratch = fs::read_dir(private.tmp()).expect("it is there");
    assert_eq!(in_scratch.count(), 0, "commands of others may write there");
}
