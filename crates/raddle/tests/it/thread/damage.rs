//! `verify` and `export` on homes that were hit.

use std::os::unix::fs::FileExt;

use rusqlite::Connection;
use serde_json::Value;

use super::{StoredHome, files, filled};

fn open(home: &StoredHome) -> Connection {
    Connection::open(home.threads().join("journal.sqlite")).expect("a journal")
}

/// Every file with what is in it, except those by which SQLite's processes find each other.
fn stored(home: &StoredHome) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = files(home.path());
    files.retain(|(path, bytes)| {
        let name = path.to_string_lossy();
        !(name.ends_with("-shm") || name.ends_with("-wal") && bytes.is_empty())
    });
    files
}

/// Changes a byte in the body of a record of the first thread.
fn hit(home: &StoredHome) {
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
    hit(&home);
    let ran = home.run(&["verify"]);
    assert_eq!(ran.code, 1);
    let expected = format!(
        "         at record 4: its hash does not follow from the record before it\n         the thread takes \
         nothing more; `raddle thread export --partial {one}` saves what comes before that record\n"
    );
    assert!(ran.out.contains(&expected), "{}", ran.out);
    assert!(
        ran.out.contains(&format!("damaged  {one}  3 records")),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains(&format!("whole    {two}  ")),
        "{}",
        ran.out
    );
    assert_eq!(home.run(&["verify", &two.to_string()]).code, 0);
    let ran = home.run(&["verify", "--json", &one.to_string()]);
    assert_eq!(ran.code, 1);
    let line: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(line["state"], "damaged");
    assert_eq!(line["damage"][0]["kind"], "record");
    assert_eq!(line["damage"][0]["at"], 4);
    // It is written to no file, the others are.
    let out = home.path().join("files");
    let ran = home.run(&["export", "--all", "--out", out.to_str().expect("text")]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(&format!("{one} was not written")),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("--partial"), "{}", ran.err);
    let mut names: Vec<_> = std::fs::read_dir(&out).expect("files").collect();
    assert_eq!(names.len(), 2);
    names.sort_by_key(|it| it.as_ref().map(std::fs::DirEntry::file_name).ok());
    for thread in [two, three] {
        assert!(out.join(format!("{thread}.jsonl")).exists());
    }
}

#[test]
fn what_is_sound_of_a_damaged_thread_can_be_saved() {
    let (home, [one, ..]) = filled();
    let all = home.records(one);
    hit(&home);
    let ran = home.run(&["export", "--partial", &one.to_string()]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("it lacks: everything after record 3"),
        "{}",
        ran.err
    );
    let other = StoredHome::new();
    let imported = other.run_with(&["import", "-"], ran.out.as_bytes());
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
fn a_blob_that_was_hit_is_named_and_the_rest_can_be_saved() {
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
    let ran = home.run(&["verify", &one.to_string()]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains(&blob), "{}", ran.out);
    assert!(ran.out.contains("the conversation is whole"), "{}", ran.out);
    let ran = home.run(&["export", &one.to_string()]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("--partial writes the thread without those bytes"),
        "{}",
        ran.err
    );
    let ran = home.run(&["export", "--partial", &one.to_string()]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out.matches("{\"record\":").count(), all.len());
    let other = StoredHome::new();
    let refused = other.run_with(&["import", "-"], ran.out.as_bytes());
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("give --partial"), "{}", refused.err);
    let imported = other.run_with(&["import", "--partial", "-"], ran.out.as_bytes());
    assert_eq!(imported.code, 0, "{}", imported.err);
    let kept = other.records(one);
    let same = kept.iter().zip(&all).take_while(|(it, was)| it == was);
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
        let ran = home.run(&["verify"]);
        assert_eq!(ran.code, 1, "{sql}");
        assert!(
            ran.out.contains(&format!("damaged  {one}")),
            "{sql}: {}",
            ran.out
        );
        assert!(
            ran.out.contains("the records are whole"),
            "{sql}: {}",
            ran.out
        );
        // As it says: copying it mends it.
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
    // The first page: what the file is, and where its tables are.
    file.expect("a file")
        .write_all_at(&[0; 1024], 0)
        .expect("written");
    for arguments in [&["list"][..], &["verify"], &["show", "0"]] {
        let ran = home.run(arguments);
        assert_eq!(ran.code, 1, "{arguments:?}");
        assert!(
            ran.err.contains("raddle thread export --all --out DIR"),
            "{}",
            ran.err
        );
    }
    let out = home.path().join("files");
    let ran = home.run(&["export", "--all", "--out", out.to_str().expect("text")]);
    assert_eq!(ran.code, 1);
    let other = StoredHome::new();
    for (thread, records) in threads.into_iter().zip(all) {
        let file = out.join(format!("{thread}.jsonl"));
        other.good(&["import", file.to_str().expect("text")]);
        assert_eq!(other.records(thread)[..records.len()], records);
    }
    other.good(&["verify"]);
    // Without SQLite, one thread by the beginning of its id.
    let id = threads[0].to_string();
    let ran = home.run(&["export", &id[..id.len() - 1]]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}
