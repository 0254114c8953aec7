//! The file of results: a run goes on where the last one ended.

use std::fs;

use simulator::results::ResultsFile;

#[test]
fn a_run_continues_after_the_recorded_seeds() {
    let name = format!("simulator-results-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = ResultsFile::open(&path).expect("there is none");
    assert_eq!(file.next(200), 0..200);
    file.add(0, 100, "first", 0).expect("it is written");
    let mut file = ResultsFile::open(&path).expect("it is read");
    assert_eq!(file.next(200), 100..200);
    file.add(100, 200, "first", 1).expect("it is written");
    file.add(200, 400, "second", 0).expect("it is written");
    let file = ResultsFile::open(&path).expect("it is read");
    assert_eq!(file.next(200), 400..600);
    assert_eq!(file.sum(), (400, 1));
    let text = fs::read_to_string(&path).expect("it is there");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines, ["0..200 | first | 1", "200..400 | second | 0"]);
    fs::write(&path, "nonsense\n").expect("it is written");
    assert!(ResultsFile::open(&path).is_err());
    fs::remove_file(&path).expect("it is removed");
}
