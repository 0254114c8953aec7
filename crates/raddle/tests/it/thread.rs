//! `raddle thread`: the output of each command, its exit status, and its effects on the home.

mod damage;
mod export_import;
mod removal;
mod server_views;
mod unarchive;
mod undo;
mod views;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use raddle_core::ports::Blobs;
use raddle_core::{
    Event, Image, Input, InputAccepted, ItemBody, ItemStatus, RecordBody, UserMessage,
};
use raddle_core::{Record, Seq, ThreadId};
use raddle_store::{Archive, LocalJournal, Options};
use serde_json::Value;
use tempfile::TempDir;

use crate::records::{ThreadScript, delta, item, item_started, renamed};
use crate::support::server::command;

/// A home that commands are run on.
pub struct StoredHome {
    folder: TempDir,
}

/// The result of a command.
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl StoredHome {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a home");
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn threads(&self) -> PathBuf {
        self.path().join("threads")
    }

    pub fn journal(&self) -> LocalJournal {
        let folder = self.threads();
        LocalJournal::open(&Options { folder }).expect("a journal")
    }

    pub fn archive(&self) -> Archive {
        let archive = Archive::open(&self.threads()).expect("a journal");
        archive.expect("a journal")
    }

    /// Runs `raddle thread` with these arguments.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.run_with(arguments, b"")
    }

    /// The same, with this stdin.
    pub fn run_with(&self, arguments: &[&str], stdin: &[u8]) -> CommandOutput {
        let mut command = command(self.path());
        command.arg("thread").args(arguments);
        Self::output_of(command, stdin)
    }

    /// Runs `raddle` with these arguments in a folder.
    pub fn run_in(&self, folder: &Path, arguments: &[&str]) -> CommandOutput {
        let mut command = command(self.path());
        command.args(arguments).current_dir(folder);
        Self::output_of(command, b"")
    }

    fn output_of(mut command: Command, stdin: &[u8]) -> CommandOutput {
        let mut child = command.spawn().expect("the binary starts");
        let mut pipe = child.stdin.take().expect("stdin");
        // A command may exit without reading it all.
        let _ = pipe.write_all(stdin);
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let command_output = CommandOutput {
            code: output.status.code().expect("no signal ends it"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        };
        assert!(
            !command_output.err.contains("panicked"),
            "{}",
            command_output.err
        );
        command_output
    }

    /// Runs a command that must succeed, and returns its stdout.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.code, 0,
            "{arguments:?}: {}{}",
            output.out, output.err
        );
        output.out
    }

    /// The ids that `list` shows.
    pub fn listed(&self, arguments: &[&str]) -> Vec<String> {
        let out = self.good(&[&["list", "--json"], arguments].concat());
        let page: Value = serde_json::from_str(&out).expect("JSON");
        let data = page["data"].as_array().expect("a page").iter();
        let ids = data.map(|it| it["id"].as_str().expect("an id").to_owned());
        ids.collect()
    }

    /// All records of a thread.
    pub fn records(&self, thread: ThreadId) -> Vec<Record> {
        let records = self.archive().records(thread, Seq::ZERO, usize::MAX);
        records.expect("records")
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.build().expect("a runtime");
    runtime.block_on(future)
}

/// Three threads: two turns with an image and a name; one turn in another folder; one with an open
/// item.
pub fn filled() -> (StoredHome, [ThreadId; 3]) {
    let home = StoredHome::new();
    let threads = block_on(fill(&home));
    (home, threads)
}

async fn fill(home: &StoredHome) -> [ThreadId; 3] {
    let journal = home.journal();
    let mut one = ThreadScript::new();
    one.start(&journal, "/code/one").await;
    one.turn(&journal, "t1", "first question").await;
    one.turn(&journal, "t2", "second question").await;
    let image = journal.put(one.thread, vec![7; 3_000], "image/png".to_owned());
    let image = image.await.expect("capacity");
    let long = "a long answer ".repeat(10_000);
    let bodies = vec![
        with_image("t2", Image::Blob(image)),
        crate::records::completed("t2", "long", &long),
        renamed("the first"),
    ];
    one.append(&journal, bodies).await;
    let mut two = ThreadScript::new();
    two.now = 2_000_000;
    two.start(&journal, "/code/two").await;
    two.turn(&journal, "t1", "only here: xylophone").await;
    let mut three = ThreadScript::new();
    three.now = 3_000_000;
    three.start(&journal, "/code/one").await;
    three.turn(&journal, "t1", "third").await;
    three
        .append(&journal, vec![item_started("t1", "open")])
        .await;
    three.append(&journal, vec![delta("open", 0, "so f")]).await;
    three.append(&journal, vec![delta("open", 4, "ar")]).await;
    [one.thread, two.thread, three.thread]
}

fn with_image(turn: &str, image: Image) -> RecordBody {
    let body = ItemBody::UserMessage(UserMessage {
        input: vec![Input::Image {
            image,
            detail: None,
            path: None,
        }],
        client_id: None,
    });
    let item = item(&format!("{turn}-image"), body, ItemStatus::Completed);
    let turn = turn.into();
    let principal = None;
    Event::InputAccepted(InputAccepted {
        turn,
        item,
        principal,
    })
    .into()
}

/// Every file of a folder, with its content.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            files.push((path, bytes));
        }
    }
    files.sort();
    files
}
