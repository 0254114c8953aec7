//! No process of an unruly program is left, whichever way it is ended.

use std::time::Instant;

use raddle_sandbox::{ChildProcess, Launch, Launcher, Output, Stdio, TerminalSize};

use rustix::process::{Pid, Signal, kill_process};

use crate::keeper;
use crate::unruly::{ALL, MARK, UnrulyProgram, wait_until_gone, wait_until_started};

/// The ways to end a program that does not end by itself.
#[derive(Clone, Copy, Debug)]
enum EndMethod {
    Ordered,
    Dropped,
    /// The program itself ends, and leaves the rest.
    Killed,
}

const TERMINAL: Stdio = Stdio::Terminal(TerminalSize { rows: 24, cols: 80 });

async fn check(launcher: &Launcher, unruly: UnrulyProgram, method: EndMethod, stdio: Stdio) {
    let mark = format!(
        "{}-{}-{method:?}-{stdio:?}",
        std::process::id(),
        unruly.name
    );
    let launch = Launch {
        program: "sh".into(),
        args: vec!["-c".into(), unruly.script.into()],
        cwd: "/".into(),
        env: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            (MARK.into(), mark.clone().into()),
        ],
    };
    let ChildProcess {
        stdout,
        stderr,
        control,
        mut exit,
        ..
    } = launcher.start(launch, stdio).unwrap();
    let pid = exit.started().await.unwrap();
    // The output is read, so that no writer waits for capacity.
    let outputs = [Some(stdout), stderr].into_iter().flatten();
    let readers: Vec<_> = outputs.map(|output| tokio::spawn(read(output))).collect();
    let for_all = (unruly, mark.clone());
    tokio::task::spawn_blocking(move || wait_until_started(for_all.0, &for_all.1))
        .await
        .unwrap();

    let started = Instant::now();
    match method {
        EndMethod::Ordered => {
            control.end();
            let report = exit.ended().await;
            assert!(report.status.is_some(), "{}", unruly.name);
        }
        EndMethod::Dropped => drop(exit),
        EndMethod::Killed => {
            kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
            let report = exit.ended().await;
            assert_eq!(report.status.map(|status| status.code()), Some(128 + 9));
            let is_reported = report.killed > 0 && !report.names.is_empty();
            assert!(is_reported, "{}: {report:?}", unruly.name);
        }
    }
    wait_until_gone(unruly.name, &mark, started);
    for reader in readers {
        reader.await.unwrap();
    }
}

async fn read(output: Output) {
    let mut buffer = vec![0; 64 << 10];
    while output.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
}

#[tokio::test]
async fn a_keeper_that_is_killed_takes_the_command_with_it() {
    let launcher = Launcher::new(keeper::of_tests());
    let launch = Launch {
        program: "/bin/sleep".into(),
        args: vec!["1000".into()],
        cwd: "/".into(),
        env: vec![],
    };
    let mut process = launcher.start(launch, TERMINAL).unwrap();
    let pid = process.exit.started().await.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = Pid::from_raw(parent.unwrap().trim().parse().unwrap());
    kill_process(parent.unwrap(), Signal::KILL).unwrap();
    assert_eq!(process.exit.ended().await.status, None);
    // The other end of the terminal is closed.
    read(process.stdout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_after_an_order_to_end() {
    let launcher = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(
            &launcher,
            unruly,
            EndMethod::Ordered,
            Stdio::Pipes { input: true },
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_after_a_dropped_exit() {
    let launcher = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(&launcher, unruly, EndMethod::Dropped, TERMINAL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_after_the_program_exits() {
    let launcher = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(
            &launcher,
            unruly,
            EndMethod::Killed,
            Stdio::Pipes { input: false },
        )
        .await;
    }
}
