//! More calls in one answer than can be carried out.

use super::*;

/// Each waits for seven others, so fewer than eight at once would never end; and more are counted.
#[tokio::test]
async fn of_two_hundred_calls_eight_run_at_once_and_none_is_lost() {
    let calls = [ScriptLine::Calls("do", "gathers"); 200];
    let mut stage = stage(&[&calls, DONE]).await;
    order(&stage.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut stage.hears, "turn/completed").await;
    assert_eq!(stage.bench.ran().len(), 128);
    assert_eq!(stage.bench.gathered.most.load(Relaxed), 8);
    let whole = stage.script.whole();
    let outputs = whole[1].iter().filter_map(|piece| match &**piece {
        ContextEntry::Output { output, .. } => Some(output.text.as_str()),
        _ => None,
    });
    let (did, left): (Vec<&str>, Vec<&str>) = outputs.partition(|it| *it == "did gathers");
    assert_eq!((did.len(), left.len()), (128, 72));
    let told = "This was not done: one answer may make 128 calls";
    assert!(left.iter().all(|it| it.starts_with(told)), "{left:?}");
}
