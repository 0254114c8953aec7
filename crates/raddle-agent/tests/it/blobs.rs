//! Blobs of threads: each is stored and read for the thread whose record names it.

use std::sync::{Arc, Mutex};

use raddle_agent::{ForkPoint, ForkRequest, NewImage, Options, Threads};
use raddle_core::ports::{AppendError, Blobs, BoxFuture, Journal, ReadError};
use raddle_core::{Blob, Command, Input, SettingsChange, ThreadId};
use raddle_store::MemoryJournal;
use tokio::sync::oneshot;

use super::script::{ScriptLine, ScriptedAnswers};
use super::{begin, client, execute, options, turn, until};

/// A call of the store, with its thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BlobCall {
    Put(ThreadId),
    Get(ThreadId),
}

/// A store that records its calls.
struct RecordingBlobs {
    inner: Arc<MemoryJournal>,
    calls: Mutex<Vec<BlobCall>>,
}

impl RecordingBlobs {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::default(),
            calls: Mutex::default(),
        })
    }

    fn record(&self, call: BlobCall) {
        self.calls.lock().expect("the calls").push(call);
    }

    /// Returns the calls since the last time, without repetitions.
    fn take_calls(&self) -> Vec<BlobCall> {
        let mut calls = std::mem::take(&mut *self.calls.lock().expect("the calls"));
        calls.dedup();
        calls
    }
}

impl Blobs for RecordingBlobs {
    fn put(
        &self,
        thread: ThreadId,
        bytes: Vec<u8>,
        media: String,
    ) -> BoxFuture<'_, Result<Blob, AppendError>> {
        self.record(BlobCall::Put(thread));
        self.inner.put(thread, bytes, media)
    }

    fn get(&self, thread: ThreadId, blob: Blob) -> BoxFuture<'_, Result<Vec<u8>, ReadError>> {
        self.record(BlobCall::Get(thread));
        self.inner.get(thread, blob)
    }
}

/// Runs a turn, whose model call reads all images of the thread.
async fn run_turn(threads: &Threads, id: ThreadId, images: Vec<Input>) {
    let thread = threads.get(id).await.expect("the thread");
    let (me, mut deliveries) = client();
    super::subscribe(&thread, me).await;
    let mut command = turn(&ThreadId::mint().to_string(), "hi");
    if let Command::StartTurn(start) = &mut command {
        let message = start.message.as_mut().expect("a message");
        message.input.extend(images);
    }
    execute(&thread, command).await.expect("a turn");
    until(&mut deliveries, "turn/completed").await;
}

async fn fork(threads: &Threads, from: ThreadId, to: ThreadId, ephemeral: bool) {
    let request = ForkRequest {
        from,
        point: ForkPoint::Now,
        to,
        change: SettingsChange::default(),
        ephemeral,
        principal: None,
        idempotency: None,
    };
    let (sender, forked) = oneshot::channel();
    let reply = move |subscribed: Result<_, _>| {
        drop(sender.send(subscribed.map(drop)));
        Box::pin(std::future::ready(true)) as BoxFuture<'static, bool>
    };
    threads.fork(request, client().0, reply).await;
    let forked = forked.await.expect("a reply");
    forked.expect("a fork");
}

#[tokio::test]
async fn a_fork_stores_and_reads_blobs_as_its_own() {
    let (durable, memory) = (RecordingBlobs::new(), RecordingBlobs::new());
    let journal: Arc<dyn Journal> = durable.inner.clone();
    let calls: &[ScriptLine] = &[ScriptLine::Says("hello")];
    let threads = Threads::new(Options {
        pages: durable.inner.clone(),
        blobs: durable.clone(),
        memory: memory.inner.clone(),
        memory_pages: memory.inner.clone(),
        memory_blobs: memory.clone(),
        ..options(&journal, Arc::new(ScriptedAnswers::new(&[calls; 4])))
    });
    let [source, fork_on_disk, fork_in_memory, stored_again] = [(); 4].map(|()| ThreadId::mint());
    begin(&threads, source, client().0).await;
    let image = NewImage::of(b"GIF89a\x03\0\x02\0".to_vec()).expect("an image");
    let image = threads.keep(source, image).await.expect("stored");
    let image = Input::Image {
        image,
        detail: None,
        path: None,
    };
    run_turn(&threads, source, vec![image]).await;
    let expected = [BlobCall::Put(source), BlobCall::Get(source)];
    assert_eq!(durable.take_calls(), expected);

    // The records of a fork in the same journal are shared, and name the blobs of their source.
    fork(&threads, source, fork_on_disk, false).await;
    run_turn(&threads, fork_on_disk, Vec::new()).await;
    assert_eq!(durable.take_calls(), [BlobCall::Get(fork_on_disk)]);

    fork(&threads, source, fork_in_memory, true).await;
    assert_eq!(durable.take_calls(), [BlobCall::Get(source)]);
    run_turn(&threads, fork_in_memory, Vec::new()).await;
    let expected = [BlobCall::Put(fork_in_memory), BlobCall::Get(fork_in_memory)];
    assert_eq!(memory.take_calls(), expected);

    fork(&threads, fork_in_memory, stored_again, false).await;
    assert_eq!(memory.take_calls(), [BlobCall::Get(fork_in_memory)]);
    run_turn(&threads, stored_again, Vec::new()).await;
    let expected = [BlobCall::Put(stored_again), BlobCall::Get(stored_again)];
    assert_eq!(durable.take_calls(), expected);
}
