//! Copies of workspaces. Each case is a transcript: a line that begins with `>` is a step, and the
//! lines after it are its result.
//!
//! | Step | Does |
//! |---|---|
//! | `copy NAME [FOLDER]` | a thread with this name starts in a copy |
//! | `run NAME SCRIPT` | its agent changes files in the copy |
//! | `user SCRIPT` | an edit of the user in the folder itself |
//! | `changes NAME` | the changes that the folder does not have |
//! | `apply NAME [PATH …]` | applies all changes, or those of these files |
//! | `overwrite NAME PATH` | applies all changes, and this one although the user changed the file too |
//! | `hunks NAME PATH NUMBER …` | applies these hunks of a file, counted from one |
//! | `merge NAME PATH NUMBER …` | the same, although the user changed the file too |
//! | `replace NAME PATH NUMBER TEXT` | applies one hunk with another text |
//! | `see NAME PATH` | the user sees this change |
//! | `seen NAME PATH` | applies this file, if its change is the one that the user saw |
//! | `undo NAME` | undoes the newest apply, or the newest turn if there is none |
//! | `abandon NAME` | the thread did not start after all |
//! | `delete NAME` | the thread is deleted |
//! | `again NAME` | the thread starts again with the same id |
//! | `fork NAME OTHER` | a thread of this name is forked from the other |
//! | `start NAME` | a thread starts in the folder itself |
//! | `turn NAME TURN SCRIPT` | a turn of the thread, in which a command changes files |
//! | `fork-copy NAME OTHER [TURN]` | the same as `fork`, in a copy of its own, with the files before this turn |
//! | `move NAME FOLDER` | the thread works in another folder |
//! | `resolve NAME` | where the thread works if its client names the folder again |
//! | `show SCRIPT` | prints what the script prints in the folder |

mod forks;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use raddle_core::ports::{
    ApplyChanges, Checkpoints as _, CopyError, CreatedCopy, FileDiff, FileDiffContent, FileRestore,
    FileToApply, ForkedFiles, HunkToApply, NewCopy, RestoreFiles, ThreadFolder,
    WorkspaceCopies as _,
};
use raddle_core::{ThreadId, Timestamp};
use raddle_sandbox::FileHolds;
use raddle_tools::{CheckpointOptions, CheckpointedTools, CopyFolders, FileCheckpoints};
use tempfile::TempDir;

use crate::checkpoints::{ShellTools, run_turn};

/// The time of the next event.
static CLOCK: AtomicI64 = AtomicI64::new(1);

#[track_caller]
fn check(transcript: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut world = World::new();
    let mut actual = String::new();
    let lines = transcript.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|it| !it.is_empty()).collect();
    for line in &lines {
        if let Some(step) = line.strip_prefix("> ") {
            actual.push_str(&format!("> {step}\n"));
            for result in runtime.block_on(world.step(step)) {
                actual.push_str(&format!("{}\n", result.trim_end()));
            }
        }
    }
    let expected: String = lines.iter().map(|it| format!("{it}\n")).collect();
    assert_eq!(actual, expected, "\n--- actual ---\n{actual}");
}

struct World {
    at: TempDir,
    work: PathBuf,
    checkpoints: FileCheckpoints,
    tools: CheckpointedTools,
    threads: BTreeMap<String, (ThreadId, PathBuf)>,
    /// The id of the change that the user saw.
    seen: Option<String>,
}

impl World {
    fn new() -> Self {
        let at = TempDir::new().expect("a folder");
        let top = at.path().canonicalize().expect("a path");
        let work = top.join("user/work");
        fs::create_dir_all(&work).expect("a folder");
        let checkpoints = FileCheckpoints::new(CheckpointOptions {
            folder: top.join("home/checkpoints"),
            copies: top.join("home-copies"),
            too_wide: vec![top.join("home"), top.join("user")],
            holds: FileHolds::of(&top.join("home")),
            clock: || Timestamp(CLOCK.fetch_add(1, Ordering::Relaxed)),
            is_enabled: Box::new(|| true),
        });
        let inner = Arc::new(ShellTools::default());
        let tools = CheckpointedTools::new(inner, Arc::default(), checkpoints.clone());
        Self {
            at,
            work,
            checkpoints,
            tools,
            threads: BTreeMap::new(),
            seen: None,
        }
    }

    async fn step(&mut self, step: &str) -> Vec<String> {
        let (kind, rest) = step.split_once(' ').unwrap_or((step, ""));
        match kind {
            "user" => {
                self.shell(rest, &self.work);
                return Vec::new();
            }
            "show" => return self.shell(rest, &self.work),
            _ => {}
        }
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if kind == "fork" {
            let (from, copy) = self.threads[rest].clone();
            let fork = ThreadId::mint();
            let shared = self.checkpoints.fork(self.at(from), fork).await;
            shared.expect("a fork");
            self.threads.insert(name.to_owned(), (fork, copy));
            return Vec::new();
        }
        if kind == "fork-copy" {
            return self.fork_into_copy(name, rest).await;
        }
        if kind == "start" {
            let thread = (ThreadId::mint(), self.work.clone());
            self.threads.insert(name.to_owned(), thread);
            return Vec::new();
        }
        if kind == "copy" {
            // The ids of a client's requests are not in the order of creation.
            let number = u8::try_from(self.threads.len()).expect("few threads");
            let thread = ThreadId::of_hash([u8::MAX - number; 16]);
            let request = new_copy(&self.work.join(rest));
            return match self.checkpoints.create(thread, request).await {
                Ok(copy) => {
                    let copy = (thread, copy.cwd.into());
                    self.threads.insert(name.to_owned(), copy);
                    Vec::new()
                }
                Err(error) => vec![self.shown(&error)],
            };
        }
        let (thread, copy) = self.threads[name].clone();
        let mut words = rest.split(' ').filter(|it| !it.is_empty());
        match kind {
            "run" => self.shell(rest, &copy),
            "turn" => {
                let (turn, script) = rest.split_once(' ').expect("a script");
                run_turn(&self.tools, (thread, turn.into()), &copy, script).await;
                Vec::new()
            }
            "again" => {
                let request = new_copy(&self.work.join(rest));
                let created = self.checkpoints.create(thread, request).await;
                let is_same = |it: CreatedCopy| {
                    let is_same = copy == Path::new(&it.cwd);
                    format!("the same: {is_same}, new: {}", it.is_new)
                };
                vec![created.map_or_else(|it| self.shown(&it), is_same)]
            }
            "delete" => {
                self.checkpoints.forget(thread).await.expect("forgotten");
                Vec::new()
            }
            "move" => {
                let folder = self.work.join(rest);
                self.threads.insert(name.to_owned(), (thread, folder));
                Vec::new()
            }
            "resolve" => {
                let folder = self.work.display().to_string();
                let resolved = self
                    .checkpoints
                    .resolve(self.at(thread), vec![folder])
                    .await;
                let resolved = resolved.expect("paths").into_values();
                let is_copy = |it: String| it.contains("/home-copies/");
                resolved
                    .map(|it| format!("in the copy: {}", is_copy(it)))
                    .collect()
            }
            "see" => {
                let files = self.listed(thread).await;
                let file = files.into_iter().find(|it| it.path == rest);
                self.seen = Some(file.expect("a change").id);
                Vec::new()
            }
            "seen" => {
                let file = FileToApply {
                    change: self.seen.clone(),
                    ..file(rest, None)
                };
                self.apply(thread, Some(vec![file]), None).await
            }
            "changes" => self.changes(thread).await,
            "apply" => {
                let files: Vec<FileToApply> = words.map(|it| file(it, None)).collect();
                let files = (!files.is_empty()).then_some(files);
                self.apply(thread, files, None).await
            }
            "overwrite" => self.apply(thread, None, words.next()).await,
            "hunks" | "merge" => {
                let path = words.next().expect("a path");
                let ids = self.hunks(thread, path).await;
                let numbers = words.map(|it| it.parse::<usize>().expect("a number"));
                let chosen = numbers.map(|it| HunkToApply {
                    id: ids.get(it - 1).cloned().unwrap_or_default(),
                    replacement: None,
                });
                let files = vec![file(path, Some(chosen.collect()))];
                let overwrite = (kind == "merge").then_some(path);
                self.apply(thread, Some(files), overwrite).await
            }
            "replace" => {
                let path = words.next().expect("a path");
                let ids = self.hunks(thread, path).await;
                let number: usize = words.next().expect("a number").parse().expect("a number");
                let hunk = HunkToApply {
                    id: ids[number - 1].clone(),
                    replacement: Some(words.collect::<Vec<_>>().join(" ") + "\n"),
                };
                let files = vec![file(path, Some(vec![hunk]))];
                self.apply(thread, Some(files), None).await
            }
            "undo" => {
                let listed = self.checkpoints.list(thread).await.expect("a list");
                let listed: Vec<_> = listed.iter().filter(|it| it.restored.is_none()).collect();
                let applied = listed.iter().rfind(|it| it.turn.is_none());
                let applied = applied.or(listed.last());
                let request = RestoreFiles {
                    checkpoint: applied.expect("a checkpoint").id.clone(),
                    overwrite: Vec::new(),
                };
                let undone = self.checkpoints.restore(thread, request).await;
                described(undone.expect("undone"))
            }
            "abandon" => {
                self.checkpoints.abandon(thread).await.expect("removed");
                vec![format!("exists: {}", copy.exists())]
            }
            other => panic!("no step {other}"),
        }
    }

    async fn fork_into_copy(&mut self, name: &str, rest: &str) -> Vec<String> {
        let (other, turn) = rest.split_once(' ').unwrap_or((rest, ""));
        let (from, cwd) = self.threads[other].clone();
        let listed = self.checkpoints.list(from).await.expect("a list");
        let named = listed.into_iter().find(|it| {
            let its_turn = it.turn.as_ref();
            its_turn.is_some_and(|it| it.as_str() == turn)
        });
        let request = NewCopy {
            fork: Some(ForkedFiles {
                from: self.at(from),
                checkpoint: named.map(|it| it.id),
            }),
            ..new_copy(&cwd)
        };
        let fork = ThreadId::mint();
        match self.checkpoints.create(fork, request).await {
            Ok(created) => {
                self.threads
                    .insert(name.to_owned(), (fork, created.cwd.into()));
                let conflicts = created.conflicts.into_iter();
                conflicts
                    .map(|it| format!("conflict {}", it.path))
                    .collect()
            }
            Err(error) => vec![self.shown(&error)],
        }
    }

    async fn changes(&self, thread: ThreadId) -> Vec<String> {
        let changes = match self.checkpoints.changes(self.at(thread), true).await {
            Ok(changes) => changes.expect("a copy"),
            Err(error) => return vec![self.shown(&error)],
        };
        let files = changes.diff.files.iter();
        let files = files.map(|it| format!("{:?} {}", it.kind, it.path));
        let conflicts = changes.conflicts.iter();
        let conflicts = conflicts.map(|it| format!("conflict {}", it.path));
        let overlaps = changes.overlaps.iter().map(|it| {
            let named = self.threads.iter().find(|(_, (id, _))| *id == it.thread);
            let name = named.map_or("?", |(name, _)| name);
            format!("overlap with {name}: {}", it.paths.join(" "))
        });
        files.chain(conflicts).chain(overlaps).collect()
    }

    async fn hunks(&self, thread: ThreadId, path: &str) -> Vec<String> {
        let files = self.listed(thread).await;
        let file = files.into_iter().find(|it| it.path == path);
        match file.expect("a change").content {
            FileDiffContent::Text(hunks) => hunks.into_iter().map(|it| it.id).collect(),
            _ => Vec::new(),
        }
    }

    async fn listed(&self, thread: ThreadId) -> Vec<FileDiff> {
        let changes = self.checkpoints.changes(self.at(thread), true).await;
        let changes = changes.expect("changes").expect("a copy");
        changes.diff.files
    }

    async fn apply(
        &self,
        thread: ThreadId,
        files: Option<Vec<FileToApply>>,
        overwrite: Option<&str>,
    ) -> Vec<String> {
        let request = ApplyChanges {
            files,
            overwrite: overwrite.into_iter().map(str::to_owned).collect(),
        };
        match self.checkpoints.apply(self.at(thread), request).await {
            Ok(done) => described(done),
            Err(error) => vec![self.shown(&error)],
        }
    }

    /// Returns a thread with the folder in which it works.
    fn at(&self, thread: ThreadId) -> ThreadFolder {
        let mut threads = self.threads.values();
        let (_, copy) = threads.find(|(id, _)| *id == thread).expect("a thread");
        ThreadFolder {
            thread,
            cwd: copy.display().to_string(),
        }
    }

    /// Returns an error without the paths of this run.
    fn shown(&self, error: &CopyError) -> String {
        let top = self.at.path().canonicalize().expect("a path");
        let mut shown = error.to_string().replace(&top.display().to_string(), "");
        for (thread, _) in self.threads.values() {
            shown = shown.replace(&thread.to_string(), "ID");
        }
        shown
    }

    fn shell(&self, script: &str, folder: &Path) -> Vec<String> {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).current_dir(folder);
        let output = command.output().expect("a shell");
        assert!(output.status.success(), "{script}: {output:?}");
        let text = String::from_utf8(output.stdout).expect("text");
        text.lines().map(str::to_owned).collect()
    }
}

fn new_copy(cwd: &Path) -> NewCopy {
    NewCopy {
        cwd: cwd.display().to_string(),
        folders: Vec::new(),
        fork: None,
    }
}

fn file(path: &str, hunks: Option<Vec<HunkToApply>>) -> FileToApply {
    FileToApply {
        path: path.to_owned(),
        change: None,
        hunks,
    }
}

fn described(done: FileRestore) -> Vec<String> {
    let files = done.restored.iter();
    let files = files.map(|it| format!("{:?} {}", it.effect, it.path));
    let conflicts = done.conflicts.iter();
    let conflicts = conflicts.map(|it| format!("conflict {}", it.path));
    files.chain(conflicts).collect()
}

#[test]
fn changes_of_a_copy_are_applied_and_undone() {
    check(
        "
        > user echo 1 > a; echo 2 > b; mkdir d; echo 3 > d/c; printf 'x\\n' > run.sh; chmod 755 run.sh
        > user ln -s a link; echo target/ > .gitignore; mkdir target; echo old > target/out
        > copy one
        > run one cat target/out; readlink link; stat -c %a run.sh
        old
        a
        755
        > run one echo one > a; rm b; mkdir -p new/deep; echo x > new/deep/f; chmod 644 run.sh; echo new > target/out
        > show cat a b
        1
        2
        > changes one
        Modified a
        Deleted b
        Added new/deep/f
        ModeChanged run.sh
        > apply one
        Changed a
        Deleted b
        Created new/deep/f
        Changed run.sh
        > show cat a new/deep/f target/out; stat -c %a run.sh; ls
        one
        x
        old
        644
        a
        d
        link
        new
        run.sh
        target
        > changes one
        > apply one
        > undo one
        Changed a
        Created b
        Deleted new/deep/f
        Changed run.sh
        > show cat a b; ls
        1
        2
        a
        b
        d
        link
        run.sh
        target
        > changes one
        Modified a
        Deleted b
        Added new/deep/f
        ModeChanged run.sh
        > apply one a
        Changed a
        > changes one
        Deleted b
        Added new/deep/f
        ModeChanged run.sh
        > run one echo two > a
        > changes one
        Modified a
        Deleted b
        Added new/deep/f
        ModeChanged run.sh
        > apply one
        Changed a
        Deleted b
        Created new/deep/f
        Changed run.sh
        ",
    );
}

/// Changes that were applied and undone can be applied again, and no file is listed that the user
/// edited since.
#[test]
fn applied_changes_are_known_after_an_undo() {
    check(
        "
        > user echo 1 > a; echo 2 > b
        > copy one
        > run one echo one > a; echo two > b
        > user echo mine > b
        > apply one a
        Changed a
        > user echo edited > a
        > changes one
        Modified b
        conflict b
        > user echo one > a
        > run one echo three > a
        > apply one
        Changed a
        conflict b
        > undo one
        Changed a
        > show cat a
        one
        > changes one
        Modified a
        Modified b
        conflict b
        > overwrite one b
        Changed a
        Changed b
        > changes one
        > undo one
        Changed a
        Changed b
        > changes one
        Modified a
        Modified b
        conflict b
        > fork two one
        > overwrite two b
        Changed a
        Changed b
        > changes one
        > user echo edited > a
        > changes one
        ",
    );
}

/// A file that cannot be seen in the copy any more is not deleted in the user's folder.
#[test]
fn gaps_of_a_copy_are_no_deletions() {
    check(
        "
        > user mkdir d; echo 1 > d/a; echo 2 > b
        > copy one
        > run one echo one > d/a
        > apply one
        Changed d/a
        > run one rm d/a; mkfifo d/a; rm b; mkfifo b
        > changes one
        > apply one
        > show cat d/a b
        one
        2
        > run one rm b
        > apply one
        Deleted b
        ",
    );
}

#[test]
fn files_that_the_user_changed_too_are_conflicts() {
    check(
        "
        > user echo 1 > a; echo 2 > b; echo 3 > c; echo 4 > d
        > copy one
        > run one echo one > a; echo two > b; rm c; echo same > d; echo new > e
        > user echo mine > a; echo mine > c; echo same > d; echo other > e
        > changes one
        Modified a
        Modified b
        Deleted c
        Modified e
        conflict a
        conflict c
        conflict e
        > apply one
        Changed b
        conflict a
        conflict c
        conflict e
        > show cat a b c d e
        mine
        two
        mine
        same
        other
        > overwrite one c
        Deleted c
        conflict a
        conflict e
        > overwrite one b
        `b` has no change to apply: name a path of thread/workspace/read
        > apply one b
        `b` has no change to apply: name a path of thread/workspace/read
        ",
    );
}

#[test]
fn hunks_of_a_copy_are_applied_one_by_one() {
    check(
        "
        > user seq 30 > a; printf 'gone\\n' > b
        > copy one
        > run one sed -i -e 's/^3$/three/' -e 's/^15$/fifteen/' -e 's/^27$/twenty-seven/' a; rm b; seq 3 > c
        > hunks one a 1 3
        Changed a
        > show sed -n '3p;15p;27p' a
        three
        15
        twenty-seven
        > changes one
        Modified a
        Deleted b
        Added c
        > replace one a 1 FIFTEEN
        Changed a
        > show sed -n '3p;15p;27p' a
        three
        FIFTEEN
        twenty-seven
        > changes one
        Modified a
        Deleted b
        Added c
        conflict a
        > hunks one b 1
        Deleted b
        > hunks one c 1
        Created c
        > hunks one a 2
        the change has no hunk  in `a`: name each hunk once, by an id of thread/workspace/read
        > overwrite one a
        Changed a
        > changes one
        > show sed -n '15p' a; ls
        fifteen
        a
        c
        ",
    );
}

#[test]
fn the_repository_around_the_folder_is_copied() {
    check(
        "
        > user git init -q .; echo 1 > a; mkdir -p sub/inner; echo 2 > sub/b
        > copy one sub
        > run one git rev-parse --show-prefix; echo one > b; echo two > ../a
        sub/
        > changes one
        Modified a
        Modified sub/b
        > apply one sub/b
        Changed sub/b
        > show cat a sub/b
        1
        one
        > user mkdir -p skipped/in; echo skipped > .gitignore; echo 1 > skipped/in/c
        > copy two skipped/in
        > run two pwd | sed 's,.*/,,'; echo one > c
        in
        > apply two
        Changed c
        > show cat skipped/in/c
        one
        > user mkdir linked; echo gitdir: ../.git/worktrees/x > linked/.git; mkdir linked/e; echo 1 > linked/e/d
        > copy three linked/e
        > run three ls -A ..; echo one > d
        e
        > apply three
        Changed e/d
        ",
    );
}

#[test]
fn threads_that_change_the_same_files_overlap() {
    check(
        "
        > user echo 1 > a; echo 2 > b; echo 3 > c
        > copy one
        > copy two
        > copy three
        > run one echo one > a; echo one > b
        > run two echo two > b; echo two > c
        > changes one
        Modified a
        Modified b
        overlap with two: b
        > changes three
        > apply two
        Changed b
        Changed c
        > changes one
        Modified a
        Modified b
        conflict b
        > changes two
        ",
    );
}

#[test]
fn folders_that_cannot_be_copied_are_named() {
    check(
        "
        > copy one ..
        /user/work/..: it contains your home folder or the files of Raddle, so it cannot be copied; choose a folder in it
        > copy one absent
        /user/work/absent: cannot be copied: No such file or directory (os error 2)
        > user mkfifo pipe; echo 1 > a; mkdir closed; echo 2 > closed/b; chmod 555 closed
        > copy one
        > run one ls; cat closed/b
        a
        closed
        2
        > run one echo kept > kept
        > again one
        the same: true, new: false
        > again one sub
        /user/work/sub: cannot be copied: No such file or directory (os error 2)
        > run one cat kept
        kept
        > abandon one
        exists: false
        > again one
        the same: true, new: true
        > run one echo kept > kept
        > delete one
        > again one
        /user/work/: a deleted thread with the same `clientRequestId` left its copy in /home-copies/ID/work: use another one
        > run one cat kept
        kept
        ",
    );
}

/// A fork works in the copy of its origin, wherever it was meanwhile, and after its origin was deleted.
#[test]
fn a_fork_stays_in_the_copy() {
    check(
        "
        > user echo 1 > a
        > copy one
        > run one echo one > a
        > fork two one
        > fork three two
        > move two /tmp
        > move three /tmp
        > delete one
        > resolve two
        in the copy: true
        > changes two
        Modified a
        > apply three
        Changed a
        > changes two
        > delete two
        > delete three
        > resolve one
        in the copy: true
        ",
    );
}

/// Parts that were applied to a file of the user's are not taken for the agent's later.
#[test]
fn a_merged_file_stays_a_conflict() {
    check(
        "
        > user seq 30 > a; seq 30 > b
        > copy one
        > run one sed -i -e 's/^3$/three/' a; sed -i -e 's/^3$/three/' -e 's/^20$/twenty/' b
        > user sed -i -e 's/^27$/mine/' a
        > merge one a 1
        Changed a
        > show sed -n '3p;27p' a
        three
        mine
        > changes one
        Modified a
        Modified b
        conflict a
        > replace one b 1 THREE
        Changed b
        > changes one
        Modified a
        Modified b
        conflict a
        conflict b
        > apply one
        conflict a
        conflict b
        > undo one
        Changed b
        > changes one
        Modified a
        Modified b
        conflict a
        ",
    );
}

/// Only the change that the user saw is applied.
#[test]
fn a_change_that_became_another_one_is_not_applied() {
    check(
        "
        > user echo 1 > a; echo 2 > b; echo 3 > c
        > copy one
        > run one rm a; echo two > b; echo three > c
        > see one a
        > run one echo other > a
        > seen one a
        the change of `a` is another one since it was read: read thread/workspace/read again
        > see one b
        > run one chmod +x b
        > seen one b
        the change of `b` is another one since it was read: read thread/workspace/read again
        > see one c
        > seen one c
        Changed c
        > show cat a b
        1
        2
        ",
    );
}

/// A file that git runs is applied only if the user names it.
#[test]
fn files_that_control_git_are_conflicts() {
    check(
        "
        > user git init -q .; mkdir .hooks; echo true > .hooks/pre-commit; echo 1 > a
        > user git config core.hooksPath $PWD/.hooks
        > copy one
        > run one echo false > .hooks/pre-commit; echo one > a
        > changes one
        Modified .hooks/pre-commit
        Modified a
        conflict .hooks/pre-commit
        > apply one
        Changed a
        conflict .hooks/pre-commit
        > show cat .hooks/pre-commit
        true
        > overwrite one .hooks/pre-commit
        Changed .hooks/pre-commit
        > user git init -q in/ner; mkdir in/ner/.hooks; echo true > in/ner/.hooks/pre-push
        > user git -C in/ner config core.hooksPath $PWD/in/ner/.hooks
        > copy two
        > run two echo false > in/ner/.hooks/pre-push
        > changes two
        Modified in/ner/.hooks/pre-push
        conflict in/ner/.hooks/pre-push
        ",
    );
}

/// Each file of an apply is undone, or stays, on its own, also for a fork after the thread is deleted.
#[test]
fn an_undo_is_of_the_files_that_it_restored() {
    check(
        "
        > user echo 1 > a; echo 2 > b
        > copy one
        > run one echo one > a; echo two > b
        > apply one
        Changed a
        Changed b
        > user echo mine > b
        > undo one
        Changed a
        conflict b
        > changes one
        Modified a
        > fork two one
        > delete one
        > changes two
        Modified a
        > apply two
        Changed a
        > show cat a b
        one
        mine
        ",
    );
}

/// Bytes that are not UTF-8 are never replaced by the characters that stand for them.
#[test]
fn hunks_of_other_bytes_have_no_other_text() {
    check(
        "
        > user printf 'a\\ncaf\\351\\nb\\n' > a
        > copy one
        > run one printf 'A\\ncaf\\351\\nB\\n' > a
        > replace one a 1 x
        `a` is not UTF-8: its hunks cannot have another text
        > hunks one a 1
        Changed a
        > show od -An -tx1 a | xargs
         41 0a 63 61 66 e9 0a 42 0a
        ",
    );
}

/// An apply does not undo what the user did with an applied file.
#[test]
fn a_file_that_the_user_reverted_is_not_listed_again() {
    check(
        "
        > user echo 1 > a
        > copy one
        > run one echo one > a; echo n > n
        > apply one
        Changed a
        Created n
        > user echo 1 > a; rm n
        > run one echo b > b
        > changes one
        Added b
        > apply one
        Created b
        > show cat a; ls
        1
        a
        b
        ",
    );
}

#[test]
fn the_newest_copy_of_a_folder_is_found() {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let mut world = World::new();
    let top = world.work.join("../..");
    let folders = CopyFolders {
        checkpoints: top.join("home/checkpoints"),
        copies: top.join("home-copies"),
    };
    let sub = world.work.join("sub");
    for step in ["user mkdir sub", "copy one", "copy two", "copy inner sub"] {
        runtime.block_on(world.step(step));
    }
    let found = |folder: &PathBuf| {
        let threads = folders.threads_of(folder).into_iter();
        let name = |id| world.threads.iter().find(|(_, (it, _))| *it == id);
        let names = threads.map(|it| name(it).expect("a thread").0.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(found(&world.work), "two one");
    assert_eq!(found(&sub), "inner two one");
    assert_eq!(found(&world.at.path().to_owned()), "");
}
