//! Every column of every table is changed, every row and every entry of an index vanishes. What is shown
//! then is what was stored, or an error; or a thread is missing from a list, and whoever verifies is told.

mod continuing;

use std::collections::BTreeMap;
use std::path::Path;

use raddle_core::ports::{Journal, ListQuery, PageQuery, ReadError};
use raddle_core::{Base, Event, Seq, Thread, ThreadId};
use raddle_store::Archive;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::{file, move_log};
use crate::records::{ThreadScript, completed, delta, forked, item_started, renamed, reverted};
use crate::suite::local;

/// What is asked, and what is said then.
type QueryResults = BTreeMap<String, Result<String, ReadError>>;

/// Threads of every kind, and their ids.
async fn journal(folder: &Path) -> Vec<ThreadId> {
    let journal = local(folder);
    let mut scripts = vec![
        ThreadScript::new(),
        ThreadScript::new(),
        ThreadScript::new(),
    ];
    for (round, script) in scripts.iter_mut().enumerate() {
        script.start(&journal, &format!("/w{}", round % 2)).await;
        for turn in 0..4 {
            let words = format!("{round} {turn}");
            script.turn(&journal, &format!("t{turn}"), &words).await;
        }
    }
    let fork = scripts[0].fork(&journal, scripts[0].head).await;
    scripts.push(fork);
    let (of, at) = (scripts[0].thread, scripts[0].head);
    let fork = &mut scripts[3];
    let bodies = vec![forked(fork.thread, of, at, 4), renamed("the fork")];
    fork.append(&journal, bodies).await;
    fork.turn(&journal, "f", "of the fork").await;
    let cut = scripts[1].head;
    scripts[1].turn(&journal, "t9", "to be cut").await;
    scripts[1]
        .append(&journal, vec![reverted("t9", cut.next(), 4)])
        .await;
    let archived = Event::Archived { principal: None };
    scripts[2].append(&journal, vec![archived.into()]).await;
    scripts[0]
        .append(
            &journal,
            vec![completed("t0", "long", &"long ".repeat(9_000))],
        )
        .await;
    scripts[0]
        .append(&journal, vec![item_started("t0", "i")])
        .await;
    scripts[0].append(&journal, vec![delta("i", 0, "ab")]).await;
    let mut folded = Thread::new();
    let records = journal.read(of, Seq::ZERO, usize::MAX).await.unwrap();
    records.iter().for_each(|record| folded.apply(record));
    journal.save_base(of, Base::of(&folded)).await.unwrap();
    scripts.iter().map(|it| it.thread).collect()
}

/// Asks for everything that is shown.
fn ask(folder: &Path, threads: &[ThreadId]) -> QueryResults {
    let mut answers = QueryResults::new();
    let archive = match Archive::open(folder) {
        Ok(archive) => archive.unwrap(),
        Err(error) => {
            answers.insert("open".to_owned(), Err(error));
            return answers;
        }
    };
    fn told<T: std::fmt::Debug>(outcome: Result<T, ReadError>) -> Result<String, ReadError> {
        outcome.map(|it| format!("{it:?}"))
    }
    answers.insert("all".to_owned(), told(archive.threads()));
    for (archived, cwd) in [(false, None), (true, None), (false, Some("/w0"))] {
        let query = ListQuery {
            archived,
            cwds: cwd.map(str::to_owned).into_iter().collect(),
            limit: 100,
            ..ListQuery::default()
        };
        answers.insert(
            format!("list {archived} {cwd:?}"),
            told(archive.list(&query)),
        );
    }
    for thread in threads {
        let mut note = |what: &str, said| answers.insert(format!("{what} of {thread}"), said);
        note("summary", told(archive.summary(*thread)));
        note(
            "records",
            told(archive.records(*thread, Seq::ZERO, usize::MAX)),
        );
        for newest_first in [false, true] {
            let query = PageQuery {
                limit: 100,
                newest_first,
                ..PageQuery::default()
            };
            let turns = archive.turns(*thread, &query);
            if let Ok(turns) = &turns {
                for turn in &turns.entries {
                    let items = archive.items(*thread, Some(&turn.turn), &query);
                    note(
                        &format!("{newest_first} items of {}", turn.turn),
                        told(items),
                    );
                }
            }
            note(&format!("{newest_first} turns"), told(turns));
            let items = archive.items(*thread, None, &query);
            note(&format!("{newest_first} items"), told(items));
        }
    }
    answers
}

/// A base may be missing, but not another.
fn bases(folder: &Path, threads: &[ThreadId]) -> Vec<Option<Base>> {
    let Ok(Some(archive)) = Archive::open(folder) else {
        return vec![None; threads.len()];
    };
    let bases = threads.iter().map(|it| archive.base(*it, None));
    bases.map(Result::unwrap_or_default).collect()
}

/// A journal at rest, and what it says.
struct IdleJournal {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    threads: Vec<ThreadId>,
    said: QueryResults,
    bases: Vec<Option<Base>>,
}

impl IdleJournal {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let threads = journal(folder.path()).await;
        move_log(folder.path());
        let said = ask(folder.path(), &threads);
        assert!(said.values().all(Result::is_ok), "{said:?}");
        let bases = bases(folder.path(), &threads);
        assert!(bases[0].is_some());
        Self {
            bytes: std::fs::read(file(folder.path())).unwrap(),
            folder,
            threads,
            said,
            bases,
        }
    }

    fn open(&self) -> Connection {
        Connection::open(file(self.folder.path())).unwrap()
    }

    /// Changes the file behind the journal's back, if it can be changed so, and holds what is shown
    /// against what was.
    fn hit(&self, what: &str, change: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> bool {
        let changed = self.change(change);
        let answers = ask(self.folder.path(), &self.threads);
        for (question, said) in answers {
            if question.starts_with("list ") && Some(&said) != self.said.get(&question) {
                self.lacks_what_is_damaged(what, &question, said);
            } else {
                self.is_so(what, &question, said);
            }
        }
        self.bases_are_so(what);
        changed
    }

    /// A list shows what it did, but for threads of which `verify` says that they are damaged.
    fn lacks_what_is_damaged(&self, what: &str, question: &str, said: Result<String, ReadError>) {
        let said = match said {
            Ok(said) => said,
            // Without its tables there is no list.
            Err(ReadError::Corrupt { .. }) if what.contains("sqlite_") => return,
            Err(error) => panic!("{what}: {question}: {error}"),
        };
        let archive = Archive::open(self.folder.path()).unwrap().unwrap();
        let sound = self.threads.iter().filter(|it| {
            let verified = archive.verify(**it);
            verified.is_ok_and(|report| report.damage.is_empty())
        });
        let Some(Ok(before)) = self.said.get(question) else {
            panic!("{what}: {question}");
        };
        for thread in sound {
            let shown = format!("thread: ThreadId({thread}),");
            assert!(
                before.contains(&shown) == said.contains(&shown),
                "{what}: {question}: {thread}: {said}"
            );
        }
    }

    /// The same to an index of the list: a thread may be missing there if that is noticed.
    fn hit_list(
        &self,
        what: &str,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> bool {
        let changed = self.change(change);
        let archive = Archive::open(self.folder.path()).unwrap().unwrap();
        assert_ne!(
            archive.check_file().unwrap(),
            Vec::<String>::new(),
            "{what}"
        );
        for (question, said) in ask(self.folder.path(), &self.threads) {
            if !question.starts_with("list ") {
                self.is_so(what, &question, said);
            }
        }
        self.bases_are_so(what);
        changed
    }

    fn change(&self, change: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> bool {
        std::fs::write(file(self.folder.path()), &self.bytes).unwrap();
        let connection = self.open();
        let changed = change(&connection);
        let refused = |error: &rusqlite::Error| {
            error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
        };
        assert!(
            !changed.as_ref().is_err_and(|it| !refused(it)),
            "{changed:?}"
        );
        let changed = changed.is_ok();
        drop(connection);
        move_log(self.folder.path());
        changed
    }

    fn is_so(&self, what: &str, question: &str, said: Result<String, ReadError>) {
        match said {
            Ok(said) => {
                let before = self.said.get(question).cloned();
                assert_eq!(Some(Ok(said)), before, "{what}: {question}");
            }
            Err(ReadError::Corrupt { .. }) => {}
            Err(other) => panic!("{what}: {question}: {other:?}"),
        }
    }

    fn bases_are_so(&self, what: &str) {
        let bases = bases(self.folder.path(), &self.threads);
        for (found, before) in bases.iter().zip(&self.bases) {
            assert!(found.is_none() || found == before, "{what}: a base");
        }
    }

    /// The same to a table alone: no index follows what becomes of its rows.
    fn hit_table(&self, what: &str, sql: &str, values: &[&Value]) -> bool {
        self.hit(what, |connection| {
            connection.pragma_update(None, "writable_schema", true)?;
            connection.execute_batch(
                "CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE type = 'index';
                 DELETE FROM sqlite_schema WHERE type = 'index'",
            )?;
            let changed = self.open().execute(sql, params_from_iter(values));
            connection.execute_batch("INSERT INTO sqlite_schema SELECT * FROM kept")?;
            changed.map(|_| ())
        })
    }

    fn names(&self, sql: &str) -> Vec<String> {
        let connection = self.open();
        let mut statement = connection.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    }

    /// The columns of a table and some of its rows: the first ones and the last.
    fn rows(&self, table: &str) -> (Vec<String>, Vec<Vec<Value>>) {
        let connection = self.open();
        let mut statement = connection
            .prepare(&format!("SELECT * FROM {table}"))
            .unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let count = columns.len();
        let rows = statement.query_map([], |row| (0..count).map(|at| row.get(at)).collect());
        let mut rows: Vec<Vec<Value>> = rows.unwrap().map(Result::unwrap).collect();
        if rows.len() > 4 {
            rows.drain(2..rows.len() - 2);
        }
        (columns, rows)
    }
}

/// A value that differs in one bit; nothing where there is none.
fn flipped(value: &Value, bit: u8) -> Option<Value> {
    match value {
        Value::Integer(number) => Some(Value::Integer(number ^ (1 << bit))),
        Value::Blob(bytes) => {
            let mut bytes = bytes.clone();
            let at = usize::from(bit) % bytes.len().max(1);
            *bytes.get_mut(at)? ^= 1 << (bit % 8);
            Some(Value::Blob(bytes))
        }
        Value::Text(text) => {
            let mut bytes = text.clone().into_bytes();
            *bytes.last_mut()? ^= 1;
            String::from_utf8(bytes).ok().map(Value::Text)
        }
        Value::Null | Value::Real(_) => None,
    }
}

const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";

#[tokio::test]
async fn a_changed_column_of_any_table() {
    let rest = IdleJournal::new().await;
    let tables = rest.names(TABLES);
    assert!(tables.len() > 12, "{tables:?}");
    let mut hits = 0;
    for table in tables {
        let (columns, rows) = rest.rows(&table);
        let is_it = columns.iter().map(|it| format!("{it} IS ?"));
        let is_it = is_it.collect::<Vec<_>>().join(" AND ");
        for row in rows {
            for (column, value) in columns.iter().zip(&row) {
                for bit in [0, 1, 5] {
                    let Some(value) = flipped(value, bit) else {
                        continue;
                    };
                    let sql = format!("UPDATE {table} SET {column} = ? WHERE {is_it}");
                    let values: Vec<&Value> = [&value].into_iter().chain(&row).collect();
                    let what = format!("{sql}: {value:?} in {row:?}");
                    let hit = rest.hit_table(&what, &sql, &values);
                    hits += u32::from(hit);
                }
            }
        }
    }
    assert!(hits > 200, "{hits}");
}

#[tokio::test]
async fn a_row_of_any_table_that_vanished() {
    let rest = IdleJournal::new().await;
    let mut hits = 0;
    // The last text of an open item goes unnoticed, and that is said.
    for table in rest.names(TABLES).iter().filter(|it| *it != "delta") {
        let (columns, rows) = rest.rows(table);
        let is_it = columns.iter().map(|it| format!("{it} IS ?"));
        let sql = format!(
            "DELETE FROM {table} WHERE {}",
            is_it.collect::<Vec<_>>().join(" AND ")
        );
        for row in rows {
            let values: Vec<&Value> = row.iter().collect();
            let hit = rest.hit_table(&format!("{sql}: {row:?}"), &sql, &values);
            hits += u32::from(hit);
        }
    }
    assert!(hits > 25, "{hits}");
}

#[tokio::test]
async fn an_entry_of_any_index_that_vanished() {
    let rest = IdleJournal::new().await;
    let indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT LIKE '%WHERE%'";
    let indexes = rest.names(indexes);
    assert!(indexes.len() > 7, "{indexes:?}");
    for index in indexes {
        let tables = format!("SELECT tbl_name FROM sqlite_schema WHERE name = '{index}'");
        let table = rest.names(&tables).remove(0);
        let (columns, rows) = rest.rows(&table);
        for row in rows {
            let Value::Integer(key) = &row[0] else {
                continue;
            };
            let without = format!(" WHERE {} <> {key}", columns[0]);
            let what = format!("{index}{without}");
            let vanish = |connection: &Connection| {
                let edit = "UPDATE sqlite_schema SET sql = ?2 WHERE name = ?1";
                let sql: String = connection.query_row(
                    "SELECT sql FROM sqlite_schema WHERE name = ?1",
                    [&index],
                    |row| row.get(0),
                )?;
                // The index is made again as one that has not all, and then called one that has.
                connection.pragma_update(None, "writable_schema", true)?;
                connection.execute(edit, [&index, &format!("{sql}{without}")])?;
                let other = rest.open();
                other.execute_batch(&format!("REINDEX {index}"))?;
                other.pragma_update(None, "writable_schema", true)?;
                other.execute(edit, [&index, &sql]).map(|_| ())
            };
            let hit = if table == "summary" {
                rest.hit_list(&what, vanish)
            } else {
                rest.hit(&what, vanish)
            };
            assert!(hit, "{what}");
        }
    }
}
