//! Nothing is left of the unruly ones, whichever way they are ended.

use std::time::Instant;

use raddle_sandbox::{ChildProcess, Launch, Launcher, Output, Stdio, TerminalSize};

use rustix::process::{Pid, Signal, kill_process};

use crate::keeper;
use crate::unruly::{ALL, MARK, UnrulyProgram, wait_until_gone, wait_until_there};

/// The ways in which a program is ended that does not end by itself.
#[derive(Clone, Copy, Debug)]
enum EndMethod {
    Ordered,
    Dropped,
    /// The program itself ends, and leaves the rest.
    Killed,
}

const TERMINAL: Stdio = Stdio::Terminal(TerminalSize { rows: 24, cols: 80 });

async fn check(engine: &Launcher, unruly: UnrulyProgram, way: EndMethod, stdio: Stdio) {
    let mark = format!("{}-{}-{way:?}-{stdio:?}", std::process::id(), unruly.name);
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
        control: leash,
        exit: mut life,
        ..
    } = engine.start(launch, stdio).unwrap();
    let pid = life.started().await.unwrap();
    // What is written is read, so that nobody waits for room.
    let outputs = [Some(stdout), stderr].into_iter().flatten();
    let readers: Vec<_> = outputs.map(|output| tokio::spawn(read(output))).collect();
    let for_all = (unruly, mark.clone());
    tokio::task::spawn_blocking(move || wait_until_there(for_all.0, &for_all.1))
        .await
        .unwrap();

    let begun = Instant::now();
    match way {
        EndMethod::Ordered => {
            leash.end();
            let ended = life.ended().await;
            assert!(ended.status.is_some(), "{}", unruly.name);
        }
        EndMethod::Dropped => drop(life),
        EndMethod::Killed => {
            kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
            let ended = life.ended().await;
            assert_eq!(ended.status.map(|over| over.code()), Some(128 + 9));
            let is_told = ended.ended > 0 && !ended.names.is_empty();
            assert!(is_told, "{}: {ended:?}", unruly.name);
        }
    }
    wait_until_gone(unruly.name, &mark, begun);
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
    let engine = Launcher::new(keeper::of_tests());
    let launch = Launch {
        program: "/bin/sleep".into(),
        args: vec!["1000".into()],
        cwd: "/".into(),
        env: vec![],
    };
    let mut process = engine.start(launch, TERMINAL).unwrap();
    let pid = process.exit.started().await.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = Pid::from_raw(parent.unwrap().trim().parse().unwrap());
    kill_process(parent.unwrap(), Signal::KILL).unwrap();
    assert_eq!(process.exit.ended().await.status, None);
    // Nobody has the other end of the terminal any more.
    read(process.stdout).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_told_to_end() {
    let engine = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(
            &engine,
            unruly,
            EndMethod::Ordered,
            Stdio::Pipes { input: true },
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_nobody_cares_any_more() {
    let engine = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(&engine, unruly, EndMethod::Dropped, TERMINAL).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_program_itself_is_over() {
    let engine = Launcher::new(keeper::of_tests());
    for unruly in ALL.iter().copied() {
        check(
            &engine,
            unruly,
            EndMethod::Killed,
            Stdio::Pipes { input: false },
        )
        .await;
    }
}
