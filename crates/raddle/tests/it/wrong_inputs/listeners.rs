//! Addresses to listen on, and servers to connect to.

use super::{WrongInput, wrong};

pub(super) const TABLE: &[WrongInput] = &[
    wrong(
        "messages of no size",
        &["app-server", "--max-message-bytes", "0"],
        2,
        &[
            "invalid value '0' for '--max-message-bytes <BYTES>'",
            "the first message of a client would not fit; give at least 1024",
        ],
    ),
    wrong(
        "an empty host name",
        &["app-server", "--allow-host", ""],
        2,
        &[
            "a value is required for '--allow-host <NAME>'",
            "try '--help'",
        ],
    ),
    wrong(
        "an empty variable of a token",
        &[
            "exec",
            "--remote",
            "unix://",
            "--remote-auth-token-env",
            "",
            "hi",
        ],
        2,
        &[
            "a value is required for '--remote-auth-token-env <NAME>'",
            "try '--help'",
        ],
    ),
    wrong(
        "an unknown transport",
        &["app-server", "--listen", "tcp://127.0.0.1:1"],
        2,
        &[
            "unknown transport `tcp://127.0.0.1:1`",
            "use stdio://, unix://, unix://PATH, ws://IP:PORT or off",
        ],
    ),
    wrong(
        "an address without a port",
        &["app-server", "--listen", "ws://nonsense"],
        2,
        &[
            "`ws://nonsense` is not an address",
            "write an IP and a port, like ws://127.0.0.1:4500",
        ],
    ),
    wrong(
        "a port that cannot exist",
        &["app-server", "--listen", "ws://127.0.0.1:99999"],
        2,
        &[
            "`ws://127.0.0.1:99999` is not an address",
            "write an IP and a port",
        ],
    ),
    wrong(
        "a port that is in use",
        &[
            "app-server",
            "--listen",
            "ws://{MOCK}",
            "--insecure-loopback",
        ],
        1,
        &[
            "cannot listen on ws://{MOCK}",
            "Address already in use",
            "name another address or port with --listen",
        ],
    ),
    wrong(
        "a port without a token",
        &["app-server", "--listen", "ws://127.0.0.1:0"],
        1,
        &[
            "refusing to listen on ws://127.0.0.1:0",
            "without a token",
            "add --ws-auth",
        ],
    ),
    wrong(
        "every address without a token",
        &[
            "app-server",
            "--listen",
            "ws://0.0.0.0:0",
            "--insecure-loopback",
        ],
        1,
        &[
            "--insecure-loopback works on loopback addresses only",
            "use --ws-auth",
        ],
    ),
    wrong(
        "tokens without a file",
        &["app-server", "--ws-auth", "capability-token"],
        1,
        &["--ws-auth capability-token needs --ws-token-file PATH or --ws-token-sha256 HEX"],
    ),
    wrong(
        "a token that is short",
        &[
            "app-server",
            "--listen",
            "ws://127.0.0.1:0",
            "--ws-auth",
            "capability-token",
            "--ws-token-file",
            "{HOME}/token",
        ],
        1,
        &[
            "the token in HOME/token has fewer than 16 bytes",
            "put a random one in it",
        ],
    )
    .with_files(&[("token", "short")]),
    wrong(
        "an unknown kind of token",
        &["app-server", "--ws-auth", "password"],
        2,
        &[
            "invalid value 'password'",
            "[possible values: capability-token, signed-bearer-token]",
        ],
    ),
    wrong(
        "a socket in a folder of all users",
        &["app-server", "--listen", "unix:///tmp/raddle-wrong.sock"],
        1,
        &[
            "cannot listen on /tmp/raddle-wrong.sock",
            "its folder /tmp is accessible to others",
            "chmod 700 it, or name a folder that does not exist yet",
        ],
    ),
    wrong(
        "a mock on every address",
        &["mock", "--listen", "0.0.0.0:0"],
        1,
        &[
            "can be reached from other machines",
            "listen on 127.0.0.1, or add --insecure-any-address",
        ],
    ),
    wrong(
        "a mock on a port that is in use",
        &["mock", "--listen", "{MOCK}"],
        1,
        &[
            "cannot listen on {MOCK}",
            "name another address or port with --listen",
            "Address already in use",
        ],
    ),
    wrong(
        "a server with an unknown transport",
        &["exec", "--remote", "http://127.0.0.1:1", "hi"],
        2,
        &[
            "--remote http://127.0.0.1:1",
            "use ws://, unix://PATH or unix://",
        ],
    ),
    wrong(
        "a server whose socket is missing",
        &["exec", "--remote", "unix:///nowhere/sock", "hi"],
        1,
        &[
            "/nowhere/sock",
            "No such file or directory",
            "`raddle daemon start`",
        ],
    ),
    wrong(
        "a server whose token is not set",
        &[
            "exec",
            "--remote",
            "ws://127.0.0.1:1",
            "--remote-auth-token-env",
            "NOT_SET",
            "hi",
        ],
        2,
        &[
            "the environment variable NOT_SET is not set",
            "set it to the token of the server",
        ],
    ),
];
