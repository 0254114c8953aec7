//! Listeners that must not open: the server reports why on stderr and does not start.

use std::process::Output;

use tempfile::TempDir;

use crate::support::server::command;

fn run(arguments: &[&str]) -> Output {
    let home = TempDir::new().expect("a home");
    let mut command = command(home.path());
    command.arg("app-server").args(arguments);
    command.output().expect("the binary starts")
}

fn refuses(arguments: &[&str], code: i32, message: &str) {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert!(stderr.contains(message), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "stdout is the wire");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn a_tcp_listener_needs_a_token() {
    let token = "without a token: add --ws-auth";
    refuses(&["--listen", "ws://127.0.0.1:0"], 1, token);
    refuses(&["--listen", "ws://[::1]:0"], 1, token);
    refuses(&["--listen", "ws://0.0.0.0:0"], 1, token);
    refuses(
        &["--listen", "stdio://", "--listen", "ws://127.0.0.1:0"],
        1,
        token,
    );
}

#[test]
fn insecure_means_loopback() {
    for address in ["ws://0.0.0.0:0", "ws://[::]:0", "ws://192.0.2.1:0"] {
        let arguments = ["--listen", address, "--insecure-loopback"];
        refuses(
            &arguments,
            1,
            "--insecure-loopback works on loopback addresses only",
        );
    }
}

#[test]
fn addresses_are_literal() {
    for listen in [
        "ws://localhost:1",
        "ws://127.0.0.1",
        "ws://:1",
        "ws://127.0.0.1:1/rpc",
        "ws://",
    ] {
        refuses(&["--listen", listen], 2, "is not an address");
    }
    for listen in ["tcp://127.0.0.1:1", "wss://127.0.0.1:1", "nonsense", ""] {
        refuses(&["--listen", listen], 2, "unknown transport");
    }
}

#[test]
fn secrets_must_be_usable() {
    let folder = TempDir::new().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("text").to_owned()
    };
    let (empty, guessed, short) = (
        file("empty", "\n"),
        file("guessed", "  0123456789abcde\n"),
        file("short", "0123456789abcdef0123456789abcde"),
    );
    let missing = folder.path().join("missing");
    let missing = missing.to_str().expect("text");
    // A sign is no digit, although a number may have one.
    let sign = "+f".repeat(32);
    let listen = ["--listen", "ws://127.0.0.1:0"];
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["--ws-auth", "capability-token"],
            1,
            "needs --ws-token-file",
        ),
        (
            &["--ws-auth", "capability-token", "--ws-token-file", &empty],
            1,
            "fewer than 16 bytes; put a random one in it",
        ),
        (
            &["--ws-auth", "capability-token", "--ws-token-file", &guessed],
            1,
            "fewer than 16 bytes; put a random one in it",
        ),
        (
            &["--ws-auth", "capability-token", "--ws-token-file", missing],
            1,
            "cannot read",
        ),
        (
            &["--ws-auth", "capability-token", "--ws-token-sha256", "abc"],
            1,
            "64 hex digits",
        ),
        (
            &["--ws-auth", "capability-token", "--ws-token-sha256", &sign],
            1,
            "64 hex digits",
        ),
        (
            &["--ws-auth", "signed-bearer-token"],
            1,
            "needs --ws-shared-secret-file",
        ),
        (
            &[
                "--ws-auth",
                "signed-bearer-token",
                "--ws-shared-secret-file",
                &short,
            ],
            1,
            "fewer than 32 bytes; put random bytes in it",
        ),
        (&["--ws-token-file", &short], 1, "add --ws-auth"),
        (&["--ws-auth", "none"], 2, "invalid value"),
    ];
    for (arguments, code, message) in cases {
        refuses(&[&listen, *arguments].concat(), *code, message);
    }
}
