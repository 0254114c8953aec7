//! Order and limits of the waiters of [`Outgoing`].

use super::*;

/// Whether a wait has ended.
async fn is_over<T>(wait: &mut tokio::task::JoinHandle<T>) -> bool {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    wait.is_finished()
}

fn reserve(outgoing: &Outgoing, bytes: usize) -> tokio::task::JoinHandle<OutgoingPermit> {
    let outgoing = outgoing.clone();
    tokio::spawn(async move { outgoing.reserve(bytes).await })
}

#[tokio::test]
async fn reservations_stay_under_the_limit() {
    let outgoing = Outgoing::new(100);
    let first = outgoing.reserve(60).await;
    let second = outgoing.reserve(40).await;
    let mut third = reserve(&outgoing, 10);
    assert!(!is_over(&mut third).await, "it would be over the bound");
    // The first permit becomes a frame, which occupies the same capacity.
    outgoing.send(Bytes::from(vec![b'x'; 60]));
    drop(first);
    assert!(!is_over(&mut third).await, "the frame is queued");
    let mut batch = Vec::new();
    outgoing.take(&mut batch).await;
    assert!(!is_over(&mut third).await, "the frame is being written");
    assert!(outgoing.take_now(&mut batch).is_none());
    assert!(is_over(&mut third).await, "the frame is written");
    drop(second);
}

#[tokio::test]
async fn an_oversized_frame_passes_alone_and_is_not_overtaken() {
    let outgoing = Outgoing::new(100);
    let small = outgoing.reserve(10).await;
    let mut large = reserve(&outgoing, 1000);
    assert!(!is_over(&mut large).await);
    let mut late = reserve(&outgoing, 10);
    assert!(!is_over(&mut late).await, "it came after the large one");
    drop(small);
    assert!(is_over(&mut large).await);
    assert!(!is_over(&mut late).await);
    drop(large.await);
    assert!(is_over(&mut late).await);
}

#[tokio::test]
async fn frames_of_any_length_leave_whole_and_in_order() {
    let outgoing = Outgoing::new(1 << 20);
    let lengths = [1, 700, SHORT_BYTES_MAX, SHORT_BYTES_MAX + 1, CHUNK_BYTES, 3];
    let frame = |number: usize| {
        let length = lengths[number % lengths.len()];
        Bytes::from(vec![(number % 251) as u8; length])
    };
    let mut batch = Vec::new();
    for round in 0..20 {
        let numbers = round * 50..(round + 1) * 50;
        numbers
            .clone()
            .for_each(|number| outgoing.send(frame(number)));
        outgoing.take(&mut batch).await;
        // While these wait to be written, no other frame may overwrite them.
        outgoing.send(Bytes::from_static(b"not yours"));
        assert!(batch.ends_with(&numbers.map(frame).collect::<Vec<_>>()));
    }
}

/// Queues one more small frame before the previous one is written.
fn write_one_and_queue_another(outgoing: &Outgoing) {
    outgoing.send(Bytes::from_static(b"0123456789"));
    assert!(outgoing.take_now(&mut Vec::new()).is_some());
    assert!(outgoing.queued_bytes() > 0, "it is never empty");
}

#[tokio::test]
async fn small_frames_do_not_starve_a_large_one() {
    for bytes in [1000, 95] {
        let outgoing = Outgoing::new(100);
        write_one_and_queue_another(&outgoing);
        let mut large = reserve(&outgoing, bytes);
        assert!(!is_over(&mut large).await, "the peer has taken nothing");
        write_one_and_queue_another(&outgoing);
        assert!(is_over(&mut large).await, "what was before it is written");
    }
}

#[tokio::test]
async fn a_large_frame_waits_for_earlier_reservations() {
    let outgoing = Outgoing::new(100);
    let permit = outgoing.reserve(60).await;
    let mut large = reserve(&outgoing, 1000);
    for _ in 0..3 {
        write_one_and_queue_another(&outgoing);
        assert!(!is_over(&mut large).await, "60 bytes are still promised");
    }
    outgoing.send(Bytes::from(vec![b'x'; 60]));
    drop(permit);
    assert!(!is_over(&mut large).await, "they are queued");
    write_one_and_queue_another(&outgoing);
    assert!(!is_over(&mut large).await, "they are being written");
    write_one_and_queue_another(&outgoing);
    assert!(is_over(&mut large).await, "they are written");
}

#[tokio::test]
async fn waiters_are_released_when_the_peer_is_gone() {
    let outgoing = Outgoing::new(100);
    let permit = outgoing.reserve(100).await;
    let mut waiting = reserve(&outgoing, 100);
    assert!(!is_over(&mut waiting).await);
    outgoing.mark_gone();
    assert!(is_over(&mut waiting).await);
    drop(permit);
}

#[tokio::test]
async fn abort_finishes_frames_in_flight_and_then_sends_the_reason() {
    let outgoing = Outgoing::new(100);
    let mut batch = Vec::new();
    outgoing.send(Bytes::from_static(b"being written"));
    outgoing.take(&mut batch).await;
    outgoing.send(Bytes::from_static(b"queued"));
    outgoing.abort(Close::NOT_READ);
    outgoing.abort(Close::NORMAL);
    assert_eq!(outgoing.queued_bytes(), b"being written".len());
    outgoing.send(Bytes::from_static(b"too late"));
    match outgoing.take(&mut batch).await {
        WriterStep::Closed(close) => assert_eq!(close, Close::NOT_READ),
        WriterStep::Frames => panic!("{batch:?} were queued"),
    }
    assert_eq!(outgoing.queued_bytes(), 0);
}
