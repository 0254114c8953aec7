//! Digests of approvals. Journals contain them, so their values must never change.

use std::collections::BTreeMap;

use raddle_core::policy::approval_digest::{
    CommandIdentity, InputTarget, PlannedContents, PlannedVersions, change_plan, command,
    input_scope, launch_scope, mismatch, read, session_file, tool_call, unlisted_command, write,
};
use raddle_core::{ItemId, Sandbox, Settings, TurnId};

fn sandbox() -> Sandbox {
    Sandbox::WorkspaceWrite {
        roots: vec!["/data".to_owned()],
        network: true,
        without_tmp: true,
        without_tmpdir: false,
        reads: None,
    }
}

fn settings() -> Settings {
    Settings {
        cwd: "/w".to_owned(),
        roots: vec!["/w/other".to_owned()],
        sandbox: sandbox(),
        ..Settings::default()
    }
}

fn launch(call: Option<&str>) -> String {
    let words = ["bash", "-c", "./run.sh"].map(str::to_owned);
    let variables = [("A", "b"), ("C", "")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    command(CommandIdentity {
        words: &words,
        cwd: "/w",
        cwd_identity: b"65 12",
        environment: &BTreeMap::from(variables),
        scope: &launch_scope(&settings(), true, false),
        files: &[(b"/w/run.sh", b"/w/run.sh\0state"), (b"/w/.git", b"65 13")],
        call,
    })
}

fn input() -> String {
    let target = InputTarget {
        process: 7,
        item: &ItemId::from("i1"),
        turn: &TurnId::from("t1"),
        command: "python3",
        beyond: true,
        typed_line: "print(",
    };
    command(CommandIdentity {
        words: &["1)\n".to_owned()],
        cwd: "/w",
        cwd_identity: b"",
        environment: &BTreeMap::new(),
        scope: &input_scope(target),
        files: &[],
        call: None,
    })
}

fn version(mode: u32, bytes: &[u8]) -> Option<PlannedContents<'_>> {
    Some(PlannedContents { mode, bytes })
}

fn file<'a>(
    path: &'a [u8],
    before: Option<PlannedContents<'a>>,
    after: Option<PlannedContents<'a>>,
) -> PlannedVersions<'a> {
    PlannedVersions {
        path,
        before,
        after,
    }
}

fn plan() -> String {
    let files = [
        file(b"/w/a", version(0o644, b"old\n"), version(0o755, b"new\n")),
        file(b"/w/b", None, version(0o600, b"")),
        file(b"/w/c", version(0o644, b"x"), None),
    ];
    change_plan(files.into_iter())
}

/// The expected values were computed by another program from the definition of each digest.
#[test]
fn digests_keep_their_values() {
    let paths = ["/w/a", "/w/l"].map(str::to_owned);
    let external = Sandbox::External { network: true };
    let limited = Settings {
        cwd: "/w".to_owned(),
        sandbox: Sandbox::ReadOnly {
            roots: Vec::new(),
            network: false,
            reads: Some(vec!["/x".to_owned()]),
        },
        ..Settings::default()
    };
    for (act, digest, expected) in [
        (
            "a command whose files are all known",
            launch(None),
            "1d5133ef9e5f29bafcad81bce7c9c1c0711ac065b4aa01230f4c216ca8a94bc3",
        ),
        (
            "a command that may load further files",
            launch(Some("c1")),
            "2bfc93a8ee8ef3e0aa2bce16a45f6906680fdec24d9740c6019fa77326c585a4",
        ),
        (
            "input to a running command",
            input(),
            "cc0a3407740a68b484a8746144fa776985c87d971af61f5740e0371ea1dbda1a",
        ),
        (
            "a command whose files cannot be listed",
            unlisted_command("c1"),
            "unseen files of c1",
        ),
        (
            "a read",
            read("/w/a b", &Sandbox::default()),
            "31f87e330c96eb3c1d862896d3dadb6ea157d4ba5e7136dbbae0f088c0bf991e",
        ),
        (
            "a read without a sandbox",
            read("/w/a b", &Sandbox::FullAccess),
            "40a8ffe0b6d85f6a55ab2d8258951c068e30455a0c34391b7934dc84c1413c44",
        ),
        (
            "a plan",
            plan(),
            "63dc90c8ef7cb240b5551181c8ef870a308ff8ea16f0e4be21c8956ba221734d",
        ),
        (
            "a change of files",
            write(&plan(), &sandbox(), true, &paths[..1]),
            "869598527e89e9c49d6243cbd2066a3c3c107e2e4e9c31e77aa9af7899b95518",
        ),
        (
            "a change that does not fit the files",
            mismatch(&paths, &external),
            "0ee5b69874d525bea87645ea85dd05b6aa46cf103a44db697d9e8ee7688d8499",
        ),
        (
            "a file for the session",
            session_file("/w/a", &settings()),
            r#"["files","/w/a",{"workspaceWrite":{"roots":["/data"],"network":true,"withoutTmp":true}},"/w",["/w/other"]]"#,
        ),
        (
            "a file for the session, where reads are limited",
            session_file("/w/a", &limited),
            r#"["files","/w/a",{"readOnly":{"reads":["/x"]}},"/w",[]]"#,
        ),
        (
            "a call of a tool",
            tool_call("mail.send", r#"{"to": "x"}"#),
            "b9f1cf4ed33883407ca731430251a25d5045d46bf2c4f54c2b72176c640fe486",
        ),
    ] {
        assert_eq!(digest, expected, "{act}");
    }
}
