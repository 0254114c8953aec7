//! Digests of approvals: for each kind of act, everything that an approval of it covers.
//!
//! An approval holds for one digest. A property of an act that no digest here contains may change
//! between the approval and the run, and from one call to the next. An approval for the session is
//! stored as its digest, so no encoding may ever change.
//!
//! | Act | Digest |
//! |---|---|
//! | A command | [`command()`] in its [`launch_scope()`] |
//! | Input to a running command | [`command()`] in its [`input_scope()`] |
//! | A command whose files cannot be listed | [`unlisted_command()`]: no approval matches |
//! | A read of a file or folder | [`read()`] |
//! | A change of files | [`write()`] of its [`change_plan()`] |
//! | A change of files, for the session | [`session_file()`] of each file |
//! | A change that does not fit the files | [`mismatch()`] |
//! | A call that is judged by the name of its tool | [`tool_call()`] |
//! | A call of an MCP server's tool | [`mcp_call()`] |
//!
//! `shell/digest.rs` in `raddle-tools` determines which files a command may run, and their state.
//! Permissions that the user grants widen the sandbox and have no digest: see
//! [`Grant`](crate::Grant).

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{ItemId, Sandbox, Settings, TurnId};

/// Everything that identifies a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandIdentity<'a> {
    /// Words of the command, or the input to a running one.
    pub words: &'a [String],
    /// Path of its working folder.
    pub cwd: &'a str,
    /// Device and inode of the working folder: another folder with the same name is not covered.
    pub cwd_identity: &'a [u8],
    /// Variables set for it in addition to the usual ones.
    pub environment: &'a BTreeMap<String, String>,
    /// Result of [`launch_scope()`] or [`input_scope()`].
    pub scope: &'a str,
    /// Each path that the command may run or load code from, and its state.
    pub files: &'a [(&'a [u8], &'a [u8])],
    /// Id of the call, if `files` is not complete: an approval then covers this call only.
    pub call: Option<&'a str>,
}

/// Returns the digest of a command.
pub fn command(it: CommandIdentity<'_>) -> String {
    let mut sum = Sha256::new();
    // Each part is prefixed with its length, so that no two lists have the same encoding.
    let mut part = |bytes: &[u8]| {
        sum.update((bytes.len() as u64).to_le_bytes());
        sum.update(bytes);
    };
    let count = |of: usize| (of as u64).to_le_bytes();
    part(&count(it.words.len()));
    it.words.iter().for_each(|word| part(word.as_bytes()));
    part(it.cwd.as_bytes());
    part(it.cwd_identity);
    part(&count(it.environment.len()));
    for (name, value) in it.environment {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(it.scope.as_bytes());
    for (path, state) in it.files {
        part(path);
        part(state);
    }
    if let Some(call) = it.call {
        part(call.as_bytes());
    }
    HEXLOWER.encode(&sum.finalize())
}

/// Returns the scope of a new command: its sandbox, the folders of the thread, and whether it has a
/// terminal.
pub fn launch_scope(settings: &Settings, beyond: bool, tty: bool) -> String {
    let Settings {
        sandbox,
        cwd,
        roots,
        ..
    } = settings;
    json!([sandbox, cwd, roots, beyond, tty]).to_string()
}

/// A running command that gets input.
#[derive(Clone, Copy, Debug)]
pub struct InputTarget<'a> {
    /// Number of the running command.
    pub process: u64,
    /// Item of the call that started it.
    pub item: &'a ItemId,
    /// Turn of the call that started it.
    pub turn: &'a TurnId,
    /// The command as the user saw it.
    pub command: &'a str,
    /// Whether it runs outside the sandbox.
    pub beyond: bool,
    /// Text that was typed before and is not yet a complete line.
    pub typed_line: &'a str,
}

/// Returns the scope of input: it is covered for one running command only.
pub fn input_scope(it: InputTarget<'_>) -> String {
    let InputTarget {
        process,
        item,
        turn,
        command,
        beyond,
        typed_line,
    } = it;
    json!(["typed", process, item, turn, command, beyond, typed_line]).to_string()
}

/// Returns a text in place of the digest of a command whose files cannot be listed. No digest
/// equals it, so no approval of the command takes effect.
pub fn unlisted_command(call: &str) -> String {
    format!("unseen files of {call}")
}

/// Returns the digest of reading a file or folder at its real path.
pub fn read(path: &str, sandbox: &Sandbox) -> String {
    of_json(&json!(["read", path, sandbox]))
}

/// Contents and mode of a file.
#[derive(Clone, Copy, Debug)]
pub struct PlannedContents<'a> {
    /// Permission bits, as in `chmod`.
    pub mode: u32,
    /// All bytes of the file.
    pub bytes: &'a [u8],
}

/// A file of a plan, by its real path.
#[derive(Clone, Copy, Debug)]
pub struct PlannedVersions<'a> {
    /// Real path of the file.
    pub path: &'a [u8],
    /// The file before the change; `None` if it does not exist.
    pub before: Option<PlannedContents<'a>>,
    /// The file after the change; `None` if it does not exist.
    pub after: Option<PlannedContents<'a>>,
}

/// Returns the digest of a plan, the first part of [`write()`]: all files, before and afterwards.
pub fn change_plan<'a>(files: impl Iterator<Item = PlannedVersions<'a>>) -> String {
    let mut sum = Sha256::new();
    sum.update(b"raddle files 1\0");
    for file in files {
        // Each part has a fixed length, so that no two plans have the same encoding.
        sum.update(Sha256::digest(file.path));
        for version in [file.before, file.after] {
            match version {
                None => sum.update([0]),
                Some(it) => {
                    sum.update([1]);
                    sum.update(it.mode.to_be_bytes());
                    sum.update(Sha256::digest(it.bytes));
                }
            }
        }
    }
    HEXLOWER.encode(&sum.finalize())
}

/// Returns the digest of writing a plan. `reads` are the files that are changed in part or moved.
/// The same change in another sandbox is another act.
pub fn write(plan: &str, sandbox: &Sandbox, beyond: bool, reads: &[String]) -> String {
    of_json(&json!(["write", plan, sandbox, beyond, reads]))
}

/// Returns the digest of a change that does not fit the files. It writes nothing, but its error
/// reveals contents of these files.
pub fn mismatch(reads: &[String], sandbox: &Sandbox) -> String {
    of_json(&json!(["misfit", reads, sandbox]))
}

/// Returns the key of one file in an approval of a change for the session. The client shows the
/// files and not the content, so the approval covers any change of these files. It ends with the
/// sandbox and the folders in which it was given.
pub fn session_file(path: &str, settings: &Settings) -> String {
    let Settings {
        sandbox,
        cwd,
        roots,
        ..
    } = settings;
    json!(["files", path, sandbox, cwd, roots]).to_string()
}

/// Returns the digest of a call that is judged by the name of its tool. An approval covers calls
/// with the same arguments only.
pub fn tool_call(name: &str, arguments: &str) -> String {
    let sum = Sha256::new()
        .chain_update("tool\0")
        .chain_update(name)
        .chain_update("\0")
        .chain_update(arguments);
    HEXLOWER.encode(&sum.finalize())
}

/// Returns the digest of a call of an MCP server's tool. An approval covers calls with the same
/// arguments only, of the same tool as its server defined it, on the same server as the operator
/// configured it.
pub fn mcp_call(server: &str, definition: &Value, arguments: &Value) -> String {
    of_json(&json!(["mcp", server, definition, arguments]))
}

fn of_json(parts: &Value) -> String {
    HEXLOWER.encode(&Sha256::digest(parts.to_string()))
}
