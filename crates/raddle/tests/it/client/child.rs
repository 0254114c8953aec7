//! A server that the client starts.

use std::path::Path;

use raddle_client::protocol::TurnStatus;
use raddle_client::{Program, ServerAddress, ThreadEvent};
use rustix::process::{Pid, Signal, kill_process};

use super::{LONG, connect, follow_to_the_end, follow_until, mock, next, start};
use crate::model::MockModel;
use crate::support::eventually;

pub(super) fn program(home: &Path, mock: &MockModel) -> ServerAddress {
    let mut arguments = vec!["app-server".to_owned()];
    arguments.extend(mock.arguments(&[]));
    let mut program = Program::new(env!("CARGO_BIN_EXE_raddle"), arguments);
    program.env.push(("RADDLE_HOME".into(), home.into()));
    program.dir = Some(home.to_owned());
    ServerAddress::Child(program)
}

/// The servers that this process started with this home.
fn children(home: &Path) -> Vec<Pid> {
    let mine = format!("PPid:\t{}", std::process::id());
    let folders = std::fs::read_dir("/proc").expect("processes");
    let pids = folders.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let is_mine = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        let is_child = status.is_ok_and(|it| it.lines().any(|line| line == mine));
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd"));
        is_child && folder.is_ok_and(|it| it == home)
    };
    pids.filter(is_mine).filter_map(Pid::from_raw).collect()
}

/// Whether no process is left, not even a zombie.
fn is_gone(child: Pid) -> bool {
    !Path::new(&format!("/proc/{}", child.as_raw_nonzero())).exists()
}

fn only_child(home: &Path) -> Pid {
    let [child] = children(home)[..] else {
        panic!("one child: {:?}", children(home));
    };
    child
}

#[tokio::test]
async fn a_child_that_is_killed_in_the_middle_is_started_again_and_nothing_is_missed() {
    let mock = mock();
    let folder = tempfile::tempdir().expect("a home");
    let home = folder.path().canonicalize().expect("its real path");
    let client = connect(program(&home, &mock)).await;
    let mut follow = start(&client).await;
    follow.say(LONG).await.expect("a turn");
    follow_until(&mut follow, 100).await;
    let before = follow.thread().last_message().expect("text").to_owned();

    let child = only_child(&home);
    kill_process(child, Signal::KILL).expect("killed");
    while !matches!(next(&mut follow).await, ThreadEvent::Disconnected { .. }) {}
    while !matches!(next(&mut follow).await, ThreadEvent::Reconnected) {}
    // The turn is interrupted because the parent of a server on stdio counts as dead with it.
    let ended = follow_to_the_end(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Interrupted);
    let stored = follow.thread().last_message().expect("text");
    assert!(
        stored.starts_with(&before),
        "{before} was told, and {stored} kept"
    );

    follow.say("MOCK text say=again").await.expect("a turn");
    let ended = follow_to_the_end(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    assert_eq!(follow.thread().last_message(), Some("again"));
    let second = only_child(&home);
    client.close().await;
    assert!(is_gone(child) && is_gone(second), "nobody is left");
}

#[tokio::test]
async fn a_child_ends_with_the_last_handle() {
    let mock = mock();
    let folder = tempfile::tempdir().expect("a home");
    let home = folder.path().canonicalize().expect("its real path");
    let client = connect(program(&home, &mock)).await;
    let follow = start(&client).await;
    drop(client);
    let child = only_child(&home);
    drop(follow);
    // The client's task notices the end of the child.
    tokio::task::spawn_blocking(move || {
        eventually("the end of the child", || is_gone(child).then_some(()));
    })
    .await
    .expect("no panic");
}

#[tokio::test]
async fn a_program_that_is_no_server_is_reported() {
    let why = |program: &str, argument: &str| {
        let program = Program::new(program, [argument]);
        let address = ServerAddress::Child(program);
        let options = raddle_client::Options::new("it", "1");
        async move {
            let client = raddle_client::Client::connect(address, options, raddle_client::RejectAll);
            client.await.expect_err("no server").to_string()
        }
    };
    let missing = why("/no/such/program", "app-server").await;
    assert!(
        missing.contains("cannot start /no/such/program"),
        "{missing}"
    );
    let ended = why(env!("CARGO_BIN_EXE_raddle"), "no-such-word").await;
    assert!(
        ended.contains("ended before it answered initialize: exit status: 2"),
        "{ended}"
    );
}
