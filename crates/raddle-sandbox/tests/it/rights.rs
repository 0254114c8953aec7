//! Keepers that run as a user without rights, and may fail to end or to start a process. Only root
//! can become another user; other users skip these tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use raddle_sandbox::{KeeperCommand, Launch, Launcher, StartError, Stdio};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::keeper;
use crate::unruly::{MARK, marked};

/// Timeout of every operation. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(30);

const PIPES: Stdio = Stdio::Pipes { input: false };

/// Returns a user that no other test uses, so that its processes can be counted.
fn user(test: u32) -> String {
    (1_000_000 + 2 * std::process::id() + test).to_string()
}

/// Returns a keeper of this user, with a limit on processes and threads.
fn without_rights(folder: &TempDir, user: &str, processes: u32) -> KeeperCommand {
    let plain = keeper::of_tests();
    // Readable for every user, unlike the folder that it was built in.
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("keeper");
    if !program.exists() {
        fs::copy(&plain.program, &program).unwrap();
    }
    let mut args = vec![format!("--nproc={processes}").into(), "setpriv".into()];
    args.extend(["--reuid", user, "--regid", user, "--clear-groups"].map(Into::into));
    args.push(program.into());
    args.extend(plain.args);
    let mut env = plain.env;
    env.push(("PATH".into(), std::env::var_os("PATH").unwrap()));
    KeeperCommand {
        program: "prlimit".into(),
        args,
        env,
    }
}

fn sh(script: &str, mark: &str) -> Launch {
    Launch {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            (MARK.into(), mark.into()),
        ],
    }
}

#[tokio::test]
async fn processes_that_cannot_be_killed_are_reported() {
    if !geteuid().is_root() {
        return eprintln!("not tried: only root can");
    }
    let folder = TempDir::new().unwrap();
    let launcher = Launcher::new(without_rights(&folder, &user(0), 100));
    // A setuid program: its process becomes root, as with `sudo`.
    let setpriv = folder.path().join("setpriv");
    fs::copy("/usr/bin/setpriv", &setpriv).unwrap();
    fs::set_permissions(&setpriv, Permissions::from_mode(0o4755)).unwrap();
    let script = format!(
        "{} --reuid=0 --regid=0 --clear-groups sh -c 'echo ready; exec sleep 1000' & sleep 1000 & wait",
        setpriv.display()
    );
    let mark = format!("{}-rights", std::process::id());
    let mut process = launcher.start(sh(&script, &mark), PIPES).unwrap();
    process.exit.started().await.unwrap();
    let mut buffer = [0; 64];
    let count = process.stdout.read(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..count], b"ready\n");
    process.control.end();
    let report = timeout(LIMIT, process.exit.ended()).await.expect("an end");
    for pid in marked(&mark) {
        let _ = kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL);
    }
    assert!(report.status.is_some(), "{report:?}");
    assert_eq!(report.survivors, ["sleep"], "{report:?}");
}

#[tokio::test]
async fn a_process_limit_prevents_the_start() {
    if !geteuid().is_root() {
        return eprintln!("not tried: only root can");
    }
    let folder = TempDir::new().unwrap();
    // One for the keeper, two for its threads, and one for the program.
    for (processes, works) in [(1, false), (2, false), (3, false), (50, true)] {
        let launcher = Launcher::new(without_rights(&folder, &user(1), processes));
        let mut process = launcher.start(sh("exit 0", ""), PIPES).unwrap();
        let started = timeout(LIMIT, process.exit.started())
            .await
            .expect("an answer");
        match started {
            Err(StartError::Program(error)) if !works => {
                assert_eq!(error.raw_os_error(), Some(libc::EAGAIN));
            }
            Ok(_) if works => {
                let report = timeout(LIMIT, process.exit.ended()).await.expect("an end");
                assert_eq!(report.status.map(|it| it.code()), Some(0));
            }
            other => panic!("{processes}: {other:?}"),
        }
    }
}
