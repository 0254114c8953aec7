//! Changes every column of every table, and removes every row and every index entry. The result
//! must be the stored data or an error; or a thread is missing from a list, and a verification
//! reports that.

mod continuing;

use std::collections::BTreeMap;
use std::path::Path;

use raddle_core::ports::{Journal, ListQuery, PageQuery, ReadError};
use raddle_core::{Base, Event, Seq, Thread, ThreadId};
use raddle_store::Archive;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::{checkpoint, file};
use crate::makers::local;
use crate::records::{ThreadScript, completed, delta, forked, item_started, renamed, reverted};

/// Results of all queries, by name.
type QueryResults = BTreeMap<String, Result<String, ReadError>>;

/// Creates threads of every kind. Returns their ids.
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
    let last_live = scripts[1].head;
    scripts[1].turn(&journal, "t9", "to be cut").await;
    scripts[1]
        .append(&journal, vec![reverted("t9", last_live.next(), 4)])
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

fn query_all(folder: &Path, threads: &[ThreadId]) -> QueryResults {
    let mut answers = QueryResults::new();
    let archive = match Archive::open(folder) {
        Ok(archive) => archive.unwrap(),
        Err(error) => {
            answers.insert("open".to_owned(), Err(error));
            return answers;
        }
    };
    fn to_text<T: std::fmt::Debug>(outcome: Result<T, ReadError>) -> Result<String, ReadError> {
        outcome.map(|it| format!("{it:?}"))
    }
    answers.insert("all".to_owned(), to_text(archive.threads()));
    for (archived, cwd) in [(false, None), (true, None), (false, Some("/w0"))] {
        let query = ListQuery {
            archived,
            cwds: cwd.map(str::to_owned).into_iter().collect(),
            limit: 100,
            ..ListQuery::default()
        };
        answers.insert(
            format!("list {archived} {cwd:?}"),
            to_text(archive.list(&query)),
        );
    }
    for thread in threads {
        let mut note = |what: &str, result| answers.insert(format!("{what} of {thread}"), result);
        note("summary", to_text(archive.summary(*thread)));
        note(
            "records",
            to_text(archive.records(*thread, Seq::ZERO, usize::MAX)),
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
                        to_text(items),
                    );
                }
            }
            note(&format!("{newest_first} turns"), to_text(turns));
            let items = archive.items(*thread, None, &query);
            note(&format!("{newest_first} items"), to_text(items));
        }
    }
    answers
}

/// Returns the bases. One may be missing, but not differ.
fn bases(folder: &Path, threads: &[ThreadId]) -> Vec<Option<Base>> {
    let Ok(Some(archive)) = Archive::open(folder) else {
        return vec![None; threads.len()];
    };
    let bases = threads.iter().map(|it| archive.base(*it, None));
    bases.map(Result::unwrap_or_default).collect()
}

/// A journal at rest, and its query results.
struct IdleJournal {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    threads: Vec<ThreadId>,
    results: QueryResults,
    bases: Vec<Option<Base>>,
}

impl IdleJournal {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let threads = journal(folder.path()).await;
        checkpoint(folder.path());
        let results = query_all(folder.path(), &threads);
        assert!(results.values().all(Result::is_ok), "{results:?}");
        let bases = bases(folder.path(), &threads);
        assert!(bases[0].is_some());
        Self {
            bytes: std::fs::read(file(folder.path())).unwrap(),
            folder,
            threads,
            results,
            bases,
        }
    }

    fn open(&self) -> Connection {
        Connection::open(file(self.folder.path())).unwrap()
    }

    /// Changes the file behind the journal's back, if SQLite allows it, and compares the query
    /// results with the original ones. Returns whether it was changed.
    fn check_change(
        &self,
        what: &str,
        change: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    ) -> bool {
        let changed = self.change(change);
        let answers = query_all(self.folder.path(), &self.threads);
        for (question, result) in answers {
            if question.starts_with("list ") && Some(&result) != self.results.get(&question) {
                self.check_list(what, &question, result);
            } else {
                self.check_result(what, &question, result);
            }
        }
        self.check_bases(what);
        changed
    }

    /// Checks that a list lacks only threads that `verify` reports as damaged.
    fn check_list(&self, what: &str, question: &str, result: Result<String, ReadError>) {
        let text = match result {
            Ok(text) => text,
            // Without its tables there is no list.
            Err(ReadError::Corrupt { .. }) if what.contains("sqlite_") => return,
            Err(error) => panic!("{what}: {question}: {error}"),
        };
        let archive = Archive::open(self.folder.path()).unwrap().unwrap();
        let sound = self.threads.iter().filter(|it| {
            let verified = archive.verify(**it);
            verified.is_ok_and(|report| report.damage.is_empty())
        });
        let Some(Ok(before)) = self.results.get(question) else {
            panic!("{what}: {question}");
        };
        for thread in sound {
            let entry = format!("thread: ThreadId({thread}),");
            assert!(
                before.contains(&entry) == text.contains(&entry),
                "{what}: {question}: {thread}: {text}"
            );
        }
    }

    /// Changes an index of the list: a thread may be missing there if the check of the file reports
    /// it.
    fn check_list_change(
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
        for (question, result) in query_all(self.folder.path(), &self.threads) {
            if !question.starts_with("list ") {
                self.check_result(what, &question, result);
            }
        }
        self.check_bases(what);
        changed
    }

    fn change(&self, change: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> bool {
        std::fs::write(file(self.folder.path()), &self.bytes).unwrap();
        let connection = self.open();
        let changed = change(&connection);
        let is_constraint = |error: &rusqlite::Error| {
            error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
        };
        assert!(
            !changed.as_ref().is_err_and(|it| !is_constraint(it)),
            "{changed:?}"
        );
        let changed = changed.is_ok();
        drop(connection);
        checkpoint(self.folder.path());
        changed
    }

    fn check_result(&self, what: &str, question: &str, result: Result<String, ReadError>) {
        match result {
            Ok(text) => {
                let before = self.results.get(question).cloned();
                assert_eq!(Some(Ok(text)), before, "{what}: {question}");
            }
            Err(ReadError::Corrupt { .. }) => {}
            Err(other) => panic!("{what}: {question}: {other:?}"),
        }
    }

    fn check_bases(&self, what: &str) {
        let bases = bases(self.folder.path(), &self.threads);
        for (base, before) in bases.iter().zip(&self.bases) {
            assert!(base.is_none() || base == before, "{what}: a base");
        }
    }

    /// Changes a table alone: no index follows the change of its rows.
    fn check_table_change(&self, what: &str, sql: &str, values: &[&Value]) -> bool {
        self.check_change(what, |connection| {
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

    /// Returns the columns of a table and some of its rows: the first ones and the last.
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

/// Returns a value that differs in one bit, or `None` if there is none.
fn flip_bit(value: &Value, bit: u8) -> Option<Value> {
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
    let idle = IdleJournal::new().await;
    let tables = idle.names(TABLES);
    assert!(tables.len() > 12, "{tables:?}");
    let mut hits = 0;
    for table in tables {
        let (columns, rows) = idle.rows(&table);
        let is_it = columns.iter().map(|it| format!("{it} IS ?"));
        let is_it = is_it.collect::<Vec<_>>().join(" AND ");
        for row in rows {
            for (column, value) in columns.iter().zip(&row) {
                for bit in [0, 1, 5] {
                    let Some(value) = flip_bit(value, bit) else {
                        continue;
                    };
                    let sql = format!("UPDATE {table} SET {column} = ? WHERE {is_it}");
                    let values: Vec<&Value> = [&value].into_iter().chain(&row).collect();
                    let what = format!("{sql}: {value:?} in {row:?}");
                    let changed = idle.check_table_change(&what, &sql, &values);
                    hits += u32::from(changed);
                }
            }
        }
    }
    assert!(hits > 200, "{hits}");
}

#[tokio::test]
async fn a_row_of_any_table_that_vanished() {
    let idle = IdleJournal::new().await;
    let mut hits = 0;
    // The loss of the last text of an open item cannot be detected, which is documented.
    for table in idle.names(TABLES).iter().filter(|it| *it != "delta") {
        let (columns, rows) = idle.rows(table);
        let is_it = columns.iter().map(|it| format!("{it} IS ?"));
        let sql = format!(
            "DELETE FROM {table} WHERE {}",
            is_it.collect::<Vec<_>>().join(" AND ")
        );
        for row in rows {
            let values: Vec<&Value> = row.iter().collect();
            let changed = idle.check_table_change(&format!("{sql}: {row:?}"), &sql, &values);
            hits += u32::from(changed);
        }
    }
    assert!(hits > 25, "{hits}");
}

#[tokio::test]
async fn an_entry_of_any_index_that_vanished() {
    let idle = IdleJournal::new().await;
    let indexes = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql NOT LIKE '%WHERE%'";
    let indexes = idle.names(indexes);
    assert!(indexes.len() > 7, "{indexes:?}");
    for index in indexes {
        let tables = format!("SELECT tbl_name FROM sqlite_schema WHERE name = '{index}'");
        let table = idle.names(&tables).remove(0);
        let (columns, rows) = idle.rows(&table);
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
                // The index is rebuilt as a partial one, and then declared complete.
                connection.pragma_update(None, "writable_schema", true)?;
                connection.execute(edit, [&index, &format!("{sql}{without}")])?;
                let other = idle.open();
                other.execute_batch(&format!("REINDEX {index}"))?;
                other.pragma_update(None, "writable_schema", true)?;
                other.execute(edit, [&index, &sql]).map(|_| ())
            };
            let changed = if table == "summary" {
                idle.check_list_change(&what, vanish)
            } else {
                idle.check_change(&what, vanish)
            };
            assert!(changed, "{what}");
        }
    }
}
