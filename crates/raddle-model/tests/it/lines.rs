use raddle_model::Event;

use crate::support::Vendor;

#[tokio::test]
async fn ten_calls_take_one_connection() {
    let vendor = Vendor::listen().await;
    for _ in 0..10 {
        assert_eq!(vendor.text("MOCK text say=hi").await.as_deref(), Ok("hi"));
    }
    for _ in 0..10 {
        vendor.hear("MOCK 500").await.expect_err("a fault");
    }
    let counts = vendor.server.counts();
    assert_eq!((counts.calls, counts.connections), (20, 1));
}

#[tokio::test]
async fn calls_at_once_have_connections_of_their_own_and_share_them_later() {
    let vendor = Vendor::listen().await;
    for round in 1..=3 {
        let calls: Vec<_> = (0..8)
            .map(|_| vendor.text("MOCK held text say=hi"))
            .collect();
        let all = async {
            let mut texts = Vec::new();
            for call in join_all(calls).await {
                texts.push(call.expect("an answer"));
            }
            texts
        };
        let release = async {
            vendor.server.until(|counts| counts.held == 8).await;
            vendor.server.release(8);
        };
        let (texts, ()) = tokio::join!(all, release);
        assert_eq!(texts, ["hi"; 8], "round {round}");
    }
    assert_eq!(vendor.server.counts().connections, 8);
}

/// Waits for several pieces of work at once.
async fn join_all<F: Future>(work: Vec<F>) -> Vec<F::Output> {
    let mut work: Vec<_> = work.into_iter().map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(move |context| {
        let mut is_done = true;
        for (work, done) in &mut work {
            if done.is_none()
                && let std::task::Poll::Ready(it) = work.as_mut().poll(context)
            {
                *done = Some(it);
            }
            is_done &= done.is_some();
        }
        if !is_done {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(
            work.iter_mut()
                .filter_map(|(_, done)| done.take())
                .collect(),
        )
    })
    .await
}

#[tokio::test]
async fn a_stale_connection_is_replaced_once() {
    let script = "[[answer]]\nsteps = [{ text = 'one' }]\n[[answer]]\nsteps = [{ fault = 'hang-up' }]\n\
                  [[answer]]\nsteps = [{ text = 'two' }]\n[[answer]]\nsteps = [{ fault = 'hang-up' }]\n\
                  [[answer]]\nsteps = [{ fault = 'hang-up' }]\n[[answer]]\nsteps = [{ text = 'three' }]";
    let vendor = Vendor::in_memory(script);
    assert_eq!(vendor.text("a").await.as_deref(), Ok("one"));
    assert_eq!(vendor.text("b").await.as_deref(), Ok("two"));
    assert_eq!(vendor.server.counts().connections, 2);
    // A fresh one that breaks as well is a failure.
    let error = vendor.text("c").await.expect_err("a failure");
    assert!(
        error.is_before_answer() && error.is_transient(),
        "{error:?}"
    );
    assert_eq!(vendor.server.counts().calls, 5);
    assert_eq!(vendor.text("d").await.as_deref(), Ok("three"));
}

#[tokio::test(start_paused = true)]
async fn connections_that_nobody_uses_are_closed() {
    let vendor = Vendor::in_memory("");
    vendor.text("hi").await.expect("an answer");
    assert_eq!(vendor.server.counts().open, 1);
    vendor.server.until(|counts| counts.open == 0).await;
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    let vendor = Vendor::listen().await;
    for steps in ["text say=hi stall", "text n=100000 size=16", "held"] {
        let mut stream = vendor
            .ask(&format!("MOCK {steps}"))
            .await
            .expect("an answer");
        if steps != "held" {
            while !matches!(stream.next().await, Ok(Some(Event::Text { .. }))) {}
        }
        assert_eq!(vendor.server.counts().open, 1, "{steps}");
        drop(stream);
        vendor.server.until(|counts| counts.open == 0).await;
    }
    // So does giving up before there is an answer.
    {
        let call = vendor.ask("MOCK mute");
        tokio::pin!(call);
        tokio::select! {
            _ = &mut call => panic!("it answered"),
            () = vendor.server.until(|counts| counts.calls == 4) => {}
        }
    }
    vendor.server.until(|counts| counts.open == 0).await;
}
