//! The Unix socket: for its owner only.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Child;

use rustix::process::{Uid, geteuid};
use tempfile::TempDir;

use crate::support::http::{self, UPGRADE};
use crate::support::server::{TestServer, command};
use crate::support::{TEST_TIMEOUT, eventually};

fn mode(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).expect("it is there").mode() & 0o7777
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path is text")
}

/// A folder for its owner only.
fn private_folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    set_mode(folder.path(), 0o700);
    folder
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// Starts a server that must fail to start, and returns its stderr.
fn refused(listen: &str, from: &Path) -> String {
    let home = TempDir::new().expect("a home");
    let mut server = command(home.path());
    // If it does start after all, the end of stdin ends it.
    server
        .args(["app-server", "--stdio", "--listen", listen])
        .current_dir(from);
    let output = server.output().expect("the binary starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty());
    stderr
}

#[test]
fn the_socket_is_private_and_goes_away() {
    let server = TestServer::start(&["--listen", "unix://"]);
    let socket = server.socket();
    assert!(socket.ends_with("app-server-control/app-server-control.sock"));
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a folder")), 0o700);
    server.unix_client().disconnect();
    // The folder of the home is removed with the server; look before.
    let folder = private_folder();
    let path = folder.path().join("s");
    let other = TestServer::start(&["--listen", &format!("unix://{}", text(&path))]);
    assert_eq!(other.socket(), path);
    assert_eq!(mode(&path), 0o600);
    other.stop();
    assert!(!path.exists(), "the socket is removed at the end");
    server.stop();
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let folder = private_folder();
    let path = folder.path().join("s");
    let listen = format!("unix://{}", text(&path));
    // The leftover of a killed server.
    drop(UnixListener::bind(&path).expect("a socket"));
    let first = TestServer::start(&["--listen", &listen]);
    first.socket();
    first.unix_client().disconnect();

    let in_use = "another server is listening on";
    let stderr = refused(&listen, folder.path());
    assert!(stderr.contains(in_use), "{stderr}");
    // The address is still in use if the file was moved away.
    std::fs::rename(&path, folder.path().join("elsewhere")).expect("a file");
    let stderr = refused(&listen, folder.path());
    assert!(stderr.contains(in_use), "{stderr}");
    std::fs::rename(folder.path().join("elsewhere"), &path).expect("a file");
    // The first server was not disturbed.
    first.unix_client().disconnect();
    first.stop();
}

#[test]
fn of_concurrent_starts_one_server_wins() {
    for _ in 0..5 {
        let folder = private_folder();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).expect("a socket"));
        let listen = format!("unix://{}", text(&path));
        let homes: Vec<TempDir> = (0..4).map(|_| TempDir::new().expect("a home")).collect();
        let mut servers: Vec<Child> = homes
            .iter()
            .map(|home| {
                let mut server = command(home.path());
                server.args(["app-server", "--listen", &listen]);
                server.spawn().expect("the binary starts")
            })
            .collect();
        // All but one exit on their own.
        eventually("the others to give up", || {
            let running = |server: &mut Child| server.try_wait().expect("a child").is_none();
            servers.retain_mut(running);
            (servers.len() <= 1).then_some(())
        });
        let mut winner = servers.pop().expect("one has it");
        eventually("the winner to listen", || UnixStream::connect(&path).ok());
        assert_eq!(winner.try_wait().expect("a child"), None);
        winner.kill().expect("it runs");
        winner.wait().expect("it ends");
    }
}

/// A full backlog is a sign of life.
#[test]
fn a_full_backlog_does_not_count_as_dead() {
    let folder = private_folder();
    let path = folder.path().join("s");
    let busy = UnixListener::bind(&path).expect("a socket");
    rustix::net::listen(&busy, 0).expect("a short queue");
    let _waiting = UnixStream::connect(&path).expect("the queue has one place");
    let stderr = refused(&format!("unix://{}", text(&path)), folder.path());
    assert!(
        stderr.contains("another server is listening on"),
        "{stderr}"
    );
    assert!(path.exists(), "it was not removed");
}

#[test]
fn only_its_own_socket_is_removed_at_the_end() {
    let folder = private_folder();
    let path = folder.path().join("s");
    let server = TestServer::start(&["--listen", &format!("unix://{}", text(&path))]);
    server.unix_client().disconnect();
    let lock = folder.path().join("s.lock");
    assert_eq!(mode(&lock), 0o600);
    std::fs::remove_file(&path).expect("a file");
    let _other = UnixListener::bind(&path).expect("a socket");
    server.stop();
    assert!(path.exists(), "someone else's socket is gone");
}

#[test]
fn nothing_but_a_socket_is_removed() {
    let folder = private_folder();
    let path = folder.path().join("precious");
    std::fs::write(&path, "data").expect("a file");
    let stderr = refused(&format!("unix://{}", text(&path)), folder.path());
    assert!(
        stderr.contains("is not a socket; move the file away, or name another path"),
        "{stderr}"
    );
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "data");
}

#[test]
fn a_folder_that_lets_others_in_is_refused() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("s");
    for mode in [0o755, 0o710, 0o701, 0o777, 0o1777, 0o770] {
        set_mode(folder.path(), mode);
        // By its absolute path, and by a bare name from inside.
        for listen in [&format!("unix://{}", text(&path)), "unix://s"] {
            let stderr = refused(listen, folder.path());
            assert!(
                stderr.contains("is accessible to others"),
                "{mode:o} {stderr}"
            );
            assert!(stderr.contains("chmod 700 it"), "{mode:o} {stderr}");
        }
    }
    assert!(!path.exists());
}

#[test]
fn an_origin_is_refused_here_too() {
    let server = TestServer::start(&["--listen", "unix://"]);
    let mut stream = UnixStream::connect(server.socket()).expect("the listener is open");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    let head = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{UPGRADE}Origin: null\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("the server reads");
    assert_eq!(http::exchange(&mut stream).status, 403);
    let ended = server.stop();
    assert_eq!(ended.connections(), 0);
}

/// Only root can become another user; without root this test cannot run.
#[test]
fn another_user_is_refused() {
    if !geteuid().is_root() {
        return eprintln!("skipped: only root can connect as another user");
    }
    let server = TestServer::start(&["--listen", "unix://"]);
    let socket = server.socket();
    // With permissive file modes, only the check of the peer is left.
    let folders = socket.ancestors().skip(1);
    let ours = folders.take_while(|folder| folder.starts_with(server.home()));
    for folder in ours {
        set_mode(folder, 0o755);
    }
    set_mode(&socket, 0o666);

    // On Linux a thread has its own user id; the test's other threads keep theirs.
    let client = std::thread::spawn(move || {
        let nobody = Uid::from_raw(65534);
        rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may do this");
        let mut stream = UnixStream::connect(socket).expect("the file modes allow it");
        stream
            .set_read_timeout(Some(TEST_TIMEOUT))
            .expect("an option");
        let head = http::upgrade("localhost", "");
        let _ = stream.write_all(head.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answer
    });
    assert_eq!(
        client.join().expect("no panic"),
        b"",
        "a stranger is told nothing"
    );
    server.wait_for("another user's connection refused");
    server.unix_client().disconnect();
    let ended = server.stop();
    assert_eq!(ended.connections(), 1, "{:?}", ended.log);
}
