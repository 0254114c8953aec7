//! Start, end, input and output of programs.

use std::time::Duration;

use raddle_sandbox::{
    ChildProcess, ExitStatus, Launch, Launcher, Output, StartError, Stdio, TerminalSize,
};
use tokio::time::timeout;

use crate::keeper;

/// Timeout of every operation. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(30);

const PIPES: Stdio = Stdio::Pipes { input: true };
const TERMINAL: Stdio = Stdio::Terminal(TerminalSize { rows: 24, cols: 80 });

fn sh(script: &str) -> Launch {
    Launch {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
    }
}

fn launcher() -> Launcher {
    Launcher::new(keeper::of_tests())
}

async fn all(output: &Output) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match output.read(&mut buffer).await.unwrap() {
            0 => return String::from_utf8(bytes).unwrap(),
            count => bytes.extend(&buffer[..count]),
        }
    }
}

/// Runs a script on this input, and returns its exit status and output.
async fn run(launch: Launch, stdio: Stdio, input: &str) -> (ExitStatus, String, String) {
    let work = async {
        let ChildProcess {
            input: stdin,
            stdout,
            stderr,
            mut exit,
            ..
        } = launcher().start(launch, stdio).unwrap();
        if let Some(stdin) = stdin {
            stdin.write(input.into()).unwrap();
            stdin.close();
        }
        exit.started().await.unwrap();
        let err = async {
            match &stderr {
                Some(stderr) => all(stderr).await,
                None => String::new(),
            }
        };
        let (report, stdout, stderr) = tokio::join!(exit.ended(), all(&stdout), err);
        assert_eq!((report.killed, report.names.len()), (0, 0), "{report:?}");
        (report.status.unwrap(), stdout, stderr)
    };
    timeout(LIMIT, work).await.expect("an end")
}

#[tokio::test]
async fn exit_statuses_and_outputs_are_returned() {
    for (script, input, status, stdout, stderr) in [
        ("exit 0", "", ExitStatus::Exit(0), "", ""),
        ("exit 255", "", ExitStatus::Exit(255), "", ""),
        ("kill -KILL $$", "", ExitStatus::Signal(9), "", ""),
        ("kill -TERM $$", "", ExitStatus::Signal(15), "", ""),
        ("echo a; echo b >&2", "", ExitStatus::Exit(0), "a\n", "b\n"),
        ("cat", "fed", ExitStatus::Exit(0), "fed", ""),
        ("pwd", "", ExitStatus::Exit(0), "/\n", ""),
        // A command does not inherit the signals that the server ignores or blocks.
        ("yes | head -1", "", ExitStatus::Exit(0), "y\n", ""),
        ("ls /proc/$$/fd", "", ExitStatus::Exit(0), "0\n1\n2\n", ""),
    ] {
        let result = run(sh(script), PIPES, input).await;
        assert_eq!(result, (status, stdout.into(), stderr.into()), "{script}");
    }
}

#[tokio::test]
async fn a_command_without_input_finds_its_end() {
    let result = run(sh("cat; echo done"), Stdio::Pipes { input: false }, "").await;
    assert_eq!(
        result,
        (ExitStatus::Exit(0), "done\n".into(), String::new())
    );
}

#[tokio::test]
async fn output_to_one_pipe_keeps_its_order() {
    let script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done; cat";
    let result = run(sh(script), Stdio::Joined, "").await;
    let expected: String = (1..=9).map(|it| format!("{it}\n{it}\n")).collect();
    assert_eq!(result, (ExitStatus::Exit(0), expected, String::new()));
}

#[tokio::test]
async fn a_program_inherits_no_environment() {
    let launch = Launch {
        program: "/usr/bin/env".into(),
        args: vec![],
        env: vec![("ONLY".into(), "this".into())],
        ..sh("")
    };
    let (_, stdout, _) = run(launch, PIPES, "").await;
    assert_eq!(stdout, "ONLY=this\n");
}

#[tokio::test]
async fn much_output_and_much_input_arrive_whole() {
    let input = "0123456789abcdef".repeat(1 << 16);
    let (status, stdout, _) = run(sh("cat"), PIPES, &input).await;
    assert_eq!(status, ExitStatus::Exit(0));
    assert!(stdout == input, "{} of {} bytes", stdout.len(), input.len());
}

#[tokio::test]
async fn a_long_order_arrives_whole() {
    let word = "x".repeat(100_000);
    let launch = Launch {
        args: [vec!["-c".into(), "echo ${#1} $#".into(), "sh".into()]]
            .concat()
            .into_iter()
            .chain((0..10).map(|_| word.clone().into()))
            .collect(),
        ..sh("")
    };
    let (_, stdout, _) = run(launch, PIPES, "").await;
    assert_eq!(stdout, "100000 10\n");
}

#[tokio::test]
async fn a_terminal_is_one() {
    let script = "test -t 0 && test -t 1 && test -t 2 && stty size && read line && echo \"got $line\" </dev/tty";
    let (status, stdout, _) = run(sh(script), TERMINAL, "typed\n").await;
    assert_eq!(status, ExitStatus::Exit(0), "{stdout}");
    assert!(stdout.contains("24 80\r\n"), "{stdout:?}");
    assert!(stdout.ends_with("got typed\r\n"), "{stdout:?}");
}

#[tokio::test]
async fn the_end_of_a_terminals_input_is_typed() {
    let (status, stdout, _) = run(sh("cat; echo over"), TERMINAL, "").await;
    assert_eq!(status, ExitStatus::Exit(0));
    assert!(stdout.ends_with("over\r\n"), "{stdout:?}");
}

#[tokio::test]
async fn a_resized_terminal_signals_the_program() {
    let script = "trap 'stty size; exit 0' WINCH; printf ready; while :; do sleep 0.01; done";
    let mut process = launcher().start(sh(script), TERMINAL).unwrap();
    process.exit.started().await.unwrap();
    let mut buffer = [0; 64];
    let count = process.stdout.read(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..count], b"ready");
    let size = TerminalSize {
        rows: 50,
        cols: 132,
    };
    assert!(process.control.resize(size).unwrap());
    let rest = timeout(LIMIT, all(&process.stdout)).await.expect("an end");
    assert_eq!(rest, "50 132\r\n");
}

#[tokio::test]
async fn pipes_have_no_size() {
    let process = launcher().start(sh("cat"), PIPES).unwrap();
    let size = TerminalSize { rows: 1, cols: 1 };
    assert!(!process.control.resize(size).unwrap());
}

#[tokio::test]
async fn a_failed_start_reports_the_reason() {
    for (program, cwd, is_folder, message) in [
        ("/nowhere/to/be/found", "/", false, "No such file"),
        ("/", "/", false, "Permission denied"),
        ("sh", "/nowhere/to/be/found", true, "No such file"),
        ("sh", "/dev/null", true, "Not a directory"),
        ("a\0b", "/", false, "Invalid argument"),
    ] {
        let launch = Launch {
            program: program.into(),
            cwd: cwd.into(),
            ..sh("")
        };
        let mut process = launcher().start(launch, PIPES).unwrap();
        let error = process.exit.started().await.expect_err(program);
        let text = error.to_string();
        assert!(text.contains(message), "{program} in {cwd}: {text}");
        assert_eq!(matches!(error, StartError::Folder(_)), is_folder, "{text}");
    }
}

#[tokio::test]
async fn an_end_before_the_start_is_an_end() {
    let mut process = launcher().start(sh("sleep 1000"), PIPES).unwrap();
    process.control.end();
    let end = async {
        if process.exit.started().await.is_ok() {
            process.exit.ended().await;
        }
        assert_eq!(all(&process.stdout).await, "");
    };
    timeout(LIMIT, end).await.expect("an end");
}

#[tokio::test]
async fn a_program_that_is_asked_to_end_may_clean_up() {
    let script = "trap 'echo tidy; exit 3' TERM; echo ready; while :; do sleep 0.01; done";
    let mut process = launcher().start(sh(script), PIPES).unwrap();
    process.exit.started().await.unwrap();
    let mut buffer = [0; 64];
    let count = process.stdout.read(&mut buffer).await.unwrap();
    assert_eq!(&buffer[..count], b"ready\n");
    process.control.end();
    assert_eq!(all(&process.stdout).await, "tidy\n");
    assert_eq!(process.exit.ended().await.status, Some(ExitStatus::Exit(3)));
}

#[tokio::test]
async fn unread_input_is_bounded() {
    let process = launcher().start(sh("sleep 1000"), PIPES).unwrap();
    let input = process.input.unwrap();
    let piece = vec![0; 256 << 10];
    let accepted = (0..100)
        .take_while(|_| input.write(piece.clone()).is_ok())
        .count();
    assert!((4..=5).contains(&accepted), "{accepted} pieces");
}
