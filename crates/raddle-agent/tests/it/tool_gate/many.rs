//! More calls in one model response than are executed.

use super::*;

/// Each call waits for seven others, so fewer than eight at once would never end; the maximum is
/// counted.
#[tokio::test]
async fn eight_of_two_hundred_calls_run_at_once_and_each_has_an_output() {
    let calls = [ScriptLine::Calls("do", "gathers"); 200];
    let mut harness = harness(&[&calls, DONE]).await;
    execute(&harness.thread, turn("t1", "hi"))
        .await
        .expect("a turn");
    until(&mut harness.deliveries, "turn/completed").await;
    assert_eq!(harness.tools.runs().len(), 128);
    assert_eq!(harness.tools.gathered.most.load(Relaxed), 8);
    let whole = harness.script.whole();
    let outputs = whole[1].iter().filter_map(|piece| match &**piece {
        ContextEntry::Output { output, .. } => Some(output.text.as_str()),
        _ => None,
    });
    let (did, denied): (Vec<&str>, Vec<&str>) = outputs.partition(|it| *it == "did gathers");
    assert_eq!((did.len(), denied.len()), (128, 72));
    let expected = "This was not done: one answer may make 128 calls";
    assert!(
        denied.iter().all(|it| it.starts_with(expected)),
        "{denied:?}"
    );
}
