//! The test program as a keeper: it is started again to run only the test below, which then is one.

use std::process::ExitCode;

use raddle_sandbox::{ExitStatus, KeeperCommand, Launch, Launcher, Stdio, keep};

/// Set for the test program that is a keeper.
const IS_KEEPER: &str = "IS_KEEPER";

/// Returns the command that makes this test program a keeper.
pub fn of_tests() -> KeeperCommand {
    KeeperCommand {
        program: std::env::current_exe().expect("a program"),
        args: [
            "--exact",
            "keeper::is_a_keeper_when_asked_to_be",
            "--nocapture",
        ]
        .map(Into::into)
        .to_vec(),
        env: vec![(IS_KEEPER.into(), "yes".into())],
    }
}

#[tokio::test]
async fn is_a_keeper_when_asked_to_be() {
    if std::env::var_os(IS_KEEPER).is_some() {
        let code = i32::from(keep() != ExitCode::SUCCESS);
        std::process::exit(code);
    }
    let launch = Launch {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), "exit 7".into()],
        cwd: "/".into(),
        env: vec![],
    };
    let launcher = Launcher::new(of_tests());
    let mut process = launcher
        .start(launch, Stdio::Pipes { input: false })
        .expect("a process");
    process.exit.started().await.expect("it runs");
    assert_eq!(process.exit.ended().await.status, Some(ExitStatus::Exit(7)));
}
