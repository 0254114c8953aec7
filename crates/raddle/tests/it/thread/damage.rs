//! `verify` and `export` on damaged homes.

use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use serde_json::Value;

use super::{StoredHome, files, filled};

fn open(home: &StoredHome) -> Connection {
    Connection::open(home.threads().join("journal.sqlite")).expect("a journal")
}

/// Every file with its content, except those with which processes of SQLite coordinate.
fn stored(home: &StoredHome) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = files(home.path());
    files.retain(|(path, bytes)| {
        let name = path.to_string_lossy();
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    });
    files
}

/// Changes a word in the body of a record of the first thread.
fn damage_record(home: &StoredHome) {
    let changed = open(home).execute(
        "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'first question', 'worst question') AS BLOB)
         WHERE instr(body, CAST('first question' AS BLOB))",
        [],
    );
    assert_eq!(changed, Ok(1));
}

#[test]
fn a_whole_home_verifies_and_nothing_is_changed_by_it() {
    let (home, threads) = filled();
    let before = stored(&home);
    let text = home.good(&["verify"]);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("whole    the file"));
    for (line, thread) in lines.zip(threads) {
        assert!(line.starts_with(&format!("whole    {thread}  ")), "{line}");
    }
    for line in home.good(&["verify", "--json"]).lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let state = line.get("state").or(line.get("file"));
        assert_eq!(state, Some(&Value::from("whole")));
    }
    assert_eq!(stored(&home), before);
}

#[test]
fn a_damaged_record_is_named_and_the_others_go_on() {
    let (home, [one, two, three]) = filled();
    damage_record(&home);
    let output = home.run(&["verify"]);
    assert_eq!(output.code, 1);
    let expected = format!(
        "         at record 4: its hash does not follow from the record before it\n         the thread takes \
         nothing more; `raddle thread export --partial {one}` saves what comes before that record\n"
    );
    assert!(output.out.contains(&expected), "{}", output.out);
    assert!(
        output.out.contains(&format!("damaged  {one}  3 records")),
        "{}",
        output.out
    );
    assert!(
        output.out.contains(&format!("whole    {two}  ")),
        "{}",
        output.out
    );
    assert_eq!(home.run(&["verify", &two.to_string()]).code, 0);
    let output = home.run(&["verify", "--json", &one.to_string()]);
    assert_eq!(output.code, 1);
    let line: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(line["state"], "damaged");
    assert_eq!(line["damage"][0]["kind"], "record");
    assert_eq!(line["damage"][0]["at"], 4);
    // It is not exported, but the others are.
    let out = home.path().join("files");
    let output = home.run(&["export", "--all", "--out", out.to_str().expect("text")]);
    assert_eq!(output.code, 1);
    assert!(
        output.err.contains(&format!("{one} was not written")),
        "{}",
        output.err
    );
    assert!(output.err.contains("--partial"), "{}", output.err);
    let mut names: Vec<_> = std::fs::read_dir(&out).expect("files").collect();
    assert_eq!(names.len(), 2);
    names.sort_by_key(|it| it.as_ref().map(std::fs::DirEntry::file_name).ok());
    for thread in [two, three] {
        assert!(out.join(format!("{thread}.jsonl")).exists());
    }
}

#[test]
fn the_intact_part_of_a_damaged_thread_can_be_saved() {
    let (home, [one, ..]) = filled();
    let all = home.records(one);
    damage_record(&home);
    let output = home.run(&["export", "--partial", &one.to_string()]);
    assert_eq!(output.code, 1);
    assert!(
        output.err.contains("it lacks: everything after record 3"),
        "{}",
        output.err
    );
    let other = StoredHome::new();
    let imported = other.run_with(&["import", "-"], output.out.as_bytes());
    assert_eq!(imported.code, 0, "{}", imported.err);
    assert!(
        imported
            .err
            .contains("it ends with record 3; the thread had"),
        "{}",
        imported.err
    );
    assert_eq!(other.records(one)[..3], all[..3]);
    other.good(&["verify"]);
}

#[test]
fn a_damaged_blob_is_named_and_the_rest_can_be_saved() {
    let (home, [one, ..]) = filled();
    let all = home.records(one);
    let text = home.good(&["export", &one.to_string()]);
    let blob = text.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["blob"]["hash"].as_str().map(str::to_owned)
    });
    let blob = blob.expect("a blob");
    let path = home
        .threads()
        .join("blobs")
        .join(&blob[..2])
        .join(&blob[2..]);
    std::fs::write(path, "something else").expect("written");
    let output = home.run(&["verify", &one.to_string()]);
    assert_eq!(output.code, 1);
    assert!(output.out.contains(&blob), "{}", output.out);
    assert!(
        output.out.contains("the conversation is whole"),
        "{}",
        output.out
    );
    let output = home.run(&["export", &one.to_string()]);
    assert_eq!(output.code, 1);
    assert!(
        output
            .err
            .contains("--partial writes the thread without those bytes"),
        "{}",
        output.err
    );
    let output = home.run(&["export", "--partial", &one.to_string()]);
    assert_eq!(output.code, 1);
    assert_eq!(output.out.matches("{\"record\":").count(), all.len());
    let other = StoredHome::new();
    let refused = other.run_with(&["import", "-"], output.out.as_bytes());
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("give --partial"), "{}", refused.err);
    let imported = other.run_with(&["import", "--partial", "-"], output.out.as_bytes());
    assert_eq!(imported.code, 0, "{}", imported.err);
    let records = other.records(one);
    let same = records.iter().zip(&all).take_while(|(it, was)| it == was);
    assert!(same.count() > 10);
}

#[test]
fn a_list_that_does_not_fit_its_records_is_noticed() {
    for sql in [
        "UPDATE summary SET name = 'another' WHERE number = 1",
        "DELETE FROM summary WHERE number = 1",
        "DELETE FROM item WHERE at = (SELECT min(at) FROM item)",
        "DELETE FROM turn WHERE at = (SELECT min(at) FROM turn)",
        "INSERT INTO cut VALUES ((1 << 36) + 9, 0, x'', 3)",
    ] {
        let (home, [one, ..]) = filled();
        assert_eq!(open(&home).execute(sql, []), Ok(1), "{sql}");
        let output = home.run(&["verify"]);
        assert_eq!(output.code, 1, "{sql}");
        assert!(
            output.out.contains(&format!("damaged  {one}")),
            "{sql}: {}",
            output.out
        );
        assert!(
            output.out.contains("the records are whole"),
            "{sql}: {}",
            output.out
        );
        // As the advice says: exporting and importing it repairs it.
        let file = home.good(&["export", &one.to_string()]);
        home.good(&["delete", "--yes", &one.to_string()]);
        assert_eq!(home.run_with(&["import", "-"], file.as_bytes()).code, 0);
        home.good(&["verify"]);
    }
}

#[test]
fn threads_are_saved_from_a_file_that_sqlite_cannot_open() {
    let (home, threads) = filled();
    let all = threads.map(|it| home.records(it));
    let moved = open(&home).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    assert_eq!(moved, Ok(0));
    let file = std::fs::File::options()
        .write(true)
        .open(home.threads().join("journal.sqlite"));
    // The first page: the file's header, and the location of its tables.
    file.expect("a file")
        .write_all_at(&[0; 1024], 0)
        .expect("written");
    for arguments in [&["list"][..], &["verify"], &["show", "0"]] {
        let output = home.run(arguments);
        assert_eq!(output.code, 1, "{arguments:?}");
        assert!(
            output.err.contains("raddle thread export --all --out DIR"),
            "{}",
            output.err
        );
    }
    let out = home.path().join("files");
    let output = home.run(&["export", "--all", "--out", out.to_str().expect("text")]);
    assert_eq!(output.code, 1);
    let other = StoredHome::new();
    for (thread, records) in threads.into_iter().zip(all) {
        let file = out.join(format!("{thread}.jsonl"));
        other.good(&["import", file.to_str().expect("text")]);
        assert_eq!(other.records(thread)[..records.len()], records);
    }
    other.good(&["verify"]);
    // Without SQLite, one thread by a prefix of its id.
    let id = threads[0].to_string();
    let output = home.run(&["export", &id[..id.len() - 1]]);
    assert_eq!(output.code, 0, "{}", output.err);
}
