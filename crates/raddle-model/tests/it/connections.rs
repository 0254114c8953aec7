use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use raddle_model::scripted::{ModelScript, ScriptedServer};
use raddle_model::{Dial, DialFuture, Io, ModelClient, StreamEvent};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::support::Vendor;

#[tokio::test]
async fn ten_calls_take_one_connection() {
    let vendor = Vendor::listen().await;
    for _ in 0..10 {
        assert_eq!(vendor.text("MOCK text say=hi").await.as_deref(), Ok("hi"));
    }
    for _ in 0..10 {
        vendor.events("MOCK 500").await.expect_err("a fault");
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

/// Waits for several futures at once.
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
async fn a_request_that_the_vendor_may_have_received_is_not_resent() {
    let script = "[[answer]]\nsteps = [{ text = 'one' }]\n[[answer]]\nsteps = [{ fault = 'hang-up' }]\n\
                  [[answer]]\nsteps = [{ fault = 'hang-up' }]\n[[answer]]\nsteps = [{ text = 'two' }]";
    let vendor = Vendor::in_memory(script);
    assert_eq!(vendor.text("a").await.as_deref(), Ok("one"));
    // First on the idle connection, then on a new one.
    for (calls, connections) in [(2, 1), (3, 2)] {
        let error = vendor.text("b").await.expect_err("a failure");
        assert!(
            error.is_before_answer() && error.is_transient(),
            "{error:?}"
        );
        let counts = vendor.server.counts();
        assert_eq!((counts.calls, counts.connections), (calls, connections));
    }
    assert_eq!(vendor.text("c").await.as_deref(), Ok("two"));
}

/// A connection whose end is not visible at the first read after it was closed.
struct LateClose {
    inner: Box<dyn Io>,
    is_closed: Arc<AtomicBool>,
    was_polled: bool,
}

impl Io for LateClose {}

impl AsyncRead for LateClose {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_closed.load(Ordering::Relaxed) && std::mem::replace(&mut self.was_polled, true) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_read(context, bytes)
    }
}

impl AsyncWrite for LateClose {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Makes such connections. Closing it closes those that were made so far.
#[derive(Debug)]
struct ClosingDial {
    inner: Arc<dyn Dial>,
    open: Mutex<Vec<Arc<AtomicBool>>>,
}

impl ClosingDial {
    fn close(&self) {
        for it in self.open.lock().expect("connections").drain(..) {
            it.store(true, Ordering::Relaxed);
        }
    }
}

impl Dial for ClosingDial {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        let is_closed = Arc::<AtomicBool>::default();
        let mut open = self.open.lock().expect("connections");
        open.push(is_closed.clone());
        Box::pin(async move {
            let inner = self.inner.dial(host, port).await?;
            let stream = LateClose {
                inner,
                is_closed,
                was_polled: false,
            };
            Ok(Box::new(stream) as Box<dyn Io>)
        })
    }
}

#[tokio::test]
async fn a_connection_that_turns_out_to_be_closed_is_replaced() {
    let (server, inner) = ScriptedServer::in_memory(ModelScript::default());
    let closing = Arc::new(ClosingDial {
        inner,
        open: Mutex::default(),
    });
    let vendor = Vendor::of(server, ModelClient::with_dial(closing.clone()));
    for round in 1..=3 {
        for _ in 0..2 {
            assert_eq!(vendor.text("MOCK text say=hi").await.as_deref(), Ok("hi"));
        }
        let counts = vendor.server.counts();
        assert_eq!((counts.calls, counts.connections), (2 * round, round));
        closing.close();
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed() {
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
            while !matches!(stream.next().await, Ok(Some(StreamEvent::Text { .. }))) {}
        }
        assert_eq!(vendor.server.counts().open, 1, "{steps}");
        drop(stream);
        vendor.server.until(|counts| counts.open == 0).await;
    }
    // Cancelling a call before there is an answer closes it too.
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
