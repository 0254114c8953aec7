//! `unarchive`.

use raddle_core::Event;

use super::{StoredHome, block_on};
use crate::records::ThreadScript;

#[test]
fn an_archived_thread_is_listed_again() {
    let home = StoredHome::new();
    let (thread, other) = block_on(async {
        let journal = home.journal();
        let (mut script, mut other) = (ThreadScript::new(), ThreadScript::new());
        for script in [&mut script, &mut other] {
            script.start(&journal, "/w").await;
            script.turn(&journal, "t1", "kept").await;
            let archived = Event::Archived { principal: None };
            script.append(&journal, vec![archived.into()]).await;
        }
        (script.thread.to_string(), other.thread.to_string())
    });
    assert_eq!(home.listed(&[]), Vec::<String>::new());
    // The second time there is nothing to do.
    for _ in 0..2 {
        let output = home.run(&["unarchive", &thread]);
        assert_eq!(
            (output.code, output.out.as_str()),
            (0, ""),
            "{}",
            output.err
        );
        assert!(output.err.contains(&thread), "{}", output.err);
        assert_eq!(home.listed(&[]), [thread.as_str()]);
        assert_eq!(home.listed(&["--archived"]), [other.as_str()]);
    }
    home.good(&["verify"]);
    let output = home.run(&["unarchive", "no-such-id"]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("no thread has an id"), "{}", output.err);
}
