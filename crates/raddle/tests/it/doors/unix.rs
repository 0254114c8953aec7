//! The unix socket: for its owner only.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::process::{Uid, geteuid};
use tempfile::TempDir;

use crate::support::PATIENCE;
use crate::support::http::{self, UPGRADE};
use crate::support::server::{Server, command};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path is text")
}

#[test]
fn the_socket_is_private_and_goes_away() {
    let server = Server::start(&["--listen", "unix://"]);
    let socket = server.socket();
    assert!(socket.ends_with("app-server-control/app-server-control.sock"));
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a folder")), 0o700);
    server.unix_client().leave();
    // The folder of the home goes with the server; look before.
    let gone = TempDir::new().expect("a folder");
    let kept = gone.path().join("s");
    let other = Server::start(&["--listen", &format!("unix://{}", text(&kept))]);
    assert_eq!(other.socket(), kept);
    assert_eq!(mode(&kept), 0o600);
    other.stop();
    assert!(!kept.exists(), "the socket is removed at the end");
    server.stop();
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("s");
    let listen = format!("unix://{}", text(&path));
    // What a killed server leaves behind.
    drop(UnixListener::bind(&path).expect("a socket"));
    let first = Server::start(&["--listen", &listen]);
    first.socket();
    first.unix_client().leave();

    let home = TempDir::new().expect("a home");
    let mut second = command(home.path());
    second.args(["app-server", "--listen", &listen]);
    let output = second.output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("another server is listening on"),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
    // The first one was not disturbed.
    first.unix_client().leave();
    first.stop();
}

#[test]
fn nothing_but_a_socket_is_removed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("precious");
    std::fs::write(&path, "data").expect("a file");
    let home = TempDir::new().expect("a home");
    let mut server = command(home.path());
    server.args(["app-server", "--listen", &format!("unix://{}", text(&path))]);
    let output = server.output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("not a socket"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "data");
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = TempDir::new().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a mode");
    let home = TempDir::new().expect("a home");
    let mut server = command(home.path());
    let listen = format!("unix://{}", text(&folder.path().join("s")));
    server.args(["app-server", "--listen", &listen]);
    let output = server.output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("others may write to its folder"),
        "{stderr}"
    );
}

#[test]
fn an_origin_is_refused_here_too() {
    let server = Server::start(&["--listen", "unix://"]);
    let mut stream = UnixStream::connect(server.socket()).expect("the door is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}Origin: null\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    assert_eq!(http::exchange(&mut stream).status, 403);
    let ended = server.stop();
    assert_eq!(ended.connections(), 0);
}

/// Only root can become someone else, so without root there is nobody here to refuse.
#[test]
fn another_user_is_refused() {
    if !geteuid().is_root() {
        return eprintln!("skipped: only root can connect as another user");
    }
    let server = Server::start(&["--listen", "unix://"]);
    let socket = server.socket();
    // With every file mode out of the way, only the check of the peer is left.
    let folders = socket.ancestors().skip(1);
    let ours = folders.take_while(|folder| folder.starts_with(server.home()));
    for folder in ours {
        std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("a mode");
    }
    std::fs::set_permissions(&socket, Permissions::from_mode(0o666)).expect("a mode");

    // On Linux a thread has its own user id; the test's other threads keep theirs.
    let stranger = std::thread::spawn(move || {
        let nobody = Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may do this");
        let mut stream = UnixStream::connect(socket).expect("the file modes allow it");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        let head = http::upgrade("localhost", "");
        let _ = stream.write_all(head.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    assert_eq!(
        stranger.join().expect("no panic"),
        b"",
        "a stranger is told nothing"
    );
    server.wait_for("another user's connection refused");
    server.unix_client().leave();
    let ended = server.stop();
    assert_eq!(ended.connections(), 1, "{:?}", ended.log);
}
