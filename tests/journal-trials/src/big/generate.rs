//! Generates the measured threads, through the same port and the same rules as the server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use raddle_core::ports::{AppendError, Blobs, ListQuery, Pages};
use raddle_core::{Class, Event, Image, Input, Output, Record, RecordBody, Settings, ThreadId};
use raddle_store::{Archive, LocalJournal, Options};
use support::Rng;

use crate::content::RandomContent;
use crate::live::{AppendListener, LiveThread, Pace, weight};
use crate::turn::{self, Grain, ModelOutput};

/// Bytes per append to the journal.
const BATCH_BYTES: usize = 1 << 20;

/// Timeout for the search index to catch up.
const INDEX_MAX: Duration = Duration::from_secs(30 * 60);

/// Size of a thread.
#[derive(Clone, Debug)]
pub struct ThreadSize {
    records: u64,
    images: u64,
    image_bytes: usize,
    inline_bytes: usize,
    diff_bytes: usize,
    full_bytes: usize,
    compact_every: Option<u64>,
}

impl ThreadSize {
    /// Returns the size of 150,000 records and 5 GB with 2,000 images, divided by `part`.
    pub fn of_part(part: u64, compacts: bool) -> Self {
        Self {
            records: 150_000 / part,
            images: 2_000 / part,
            image_bytes: 660_000,
            inline_bytes: 60_000,
            diff_bytes: 140_000,
            full_bytes: 300_000,
            compact_every: compacts.then_some(250.min(7_500 / part / 3)),
        }
    }
}

/// Generated threads, and their amount of data.
#[derive(Clone, Debug)]
pub struct GeneratedThreads {
    /// The thread, or the newest of them.
    pub thread: ThreadId,
    pub threads: u64,
    /// A word that occurs nowhere else.
    pub marker: String,
    /// Number of records, without deltas.
    pub records: u64,
    /// Size of the records as JSON.
    pub record_bytes: u64,
    pub images: u64,
    pub compactions: u64,
    /// Size of all blobs.
    pub blob_bytes: u64,
}

impl GeneratedThreads {
    fn new(thread: ThreadId, rng: &mut Rng) -> Self {
        Self {
            thread,
            threads: 1,
            marker: format!("marker{:026x}", u128::from(rng.bits()) << 40 | 0xa5),
            records: 0,
            record_bytes: 0,
            images: 0,
            compactions: 0,
            blob_bytes: 0,
        }
    }

    /// Stores a blob of the live thread.
    async fn blob(&mut self, store: &LocalJournal, bytes: Vec<u8>) -> Result<raddle_core::Blob> {
        self.blob_bytes += bytes.len() as u64;
        Ok(store
            .put(self.thread, bytes, "image/png".to_owned())
            .await?)
    }
}

impl AppendListener for GeneratedThreads {
    fn stored(&mut self, _: ThreadId, records: &[Record], _: Class) {
        for record in records {
            let RecordBody::Event(event) = &record.body else {
                continue;
            };
            self.records += 1;
            self.record_bytes += weight(record) as u64;
            self.compactions += u64::from(matches!(**event, Event::Compacted(_)));
        }
    }

    fn failed(&mut self, _: &AppendError, _: Class) {}
}

fn settings(cwd: &str) -> Settings {
    Settings {
        cwd: cwd.to_owned(),
        ..Settings::default()
    }
}

/// Generates one huge thread.
pub async fn thread(home: &Path, size: &ThreadSize) -> Result<GeneratedThreads> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut rng = Rng::new(size.records);
    let mut generated = GeneratedThreads::new(ThreadId::mint(), &mut rng);
    let id = generated.thread;
    let pace = Pace::Buffered(BATCH_BYTES);
    let mut live =
        LiveThread::start(&store, id, "maker", settings("/w"), pace, &mut generated).await?;
    let mut turns = 0;
    // A turn has about twenty records, and one image comes with this many turns.
    let turns_per_image = (size.records / 20 / size.images.max(1)).max(1);
    while generated.records < size.records {
        turns += 1;
        let mut input = vec![Input::text(rng.text(1500))];
        if turns % turns_per_image == 0 && generated.images < size.images {
            generated.images += 1;
            let mut bytes = rng.bytes(size.image_bytes);
            bytes[1000..1000 + generated.marker.len()].copy_from_slice(generated.marker.as_bytes());
            let image = Image::Blob(generated.blob(&store, bytes).await?);
            input.push(Input::Image {
                image,
                detail: None,
                path: None,
            });
        }
        let full = generated.blob(&store, rng.bytes(size.full_bytes)).await?;
        let long = Output {
            full: Some(full),
            ..Output::text(rng.text(size.inline_bytes / 3))
        };
        let short = Output::text(rng.text(size.inline_bytes));
        let outputs = [Some(short), Some(long), None].map(|tool| ModelOutput {
            pieces: vec![rng.text(1500)],
            diff: tool.is_none().then(|| rng.text(size.diff_bytes)),
            tool,
        });
        let outputs = outputs.to_vec();
        turn::play(
            &mut live,
            input,
            outputs,
            Grain::Coarse,
            &mut rng,
            &mut generated,
        )
        .await?;
        if size.compact_every.is_some_and(|every| turns % every == 0) {
            turn::compact(&mut live, &mut rng, &mut generated).await?;
        }
    }
    let input = vec![Input::text(format!("the word is {}", generated.marker))];
    turn::play(
        &mut live,
        input,
        Vec::new(),
        Grain::Coarse,
        &mut rng,
        &mut generated,
    )
    .await?;
    live.release(&mut generated).await?;
    wait_until_indexed(&store, &generated, home).await?;
    Ok(generated)
}

/// One in this many threads is reopened after all were created.
pub const REOPEN_EVERY: u64 = 100;

/// One in this many threads has a rare folder.
pub const FOLDER_EVERY: u64 = 1000;

/// Generates many small threads. The older half, except the reopened ones, has a word that the
/// others lack.
pub async fn threads(home: &Path, count: u64) -> Result<GeneratedThreads> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut rng = Rng::new(count);
    let mut generated = GeneratedThreads::new(ThreadId::mint(), &mut rng);
    generated.threads = count;
    let mut reopened = Vec::new();
    for number in 0..count {
        let last = number + 1 == count;
        let id = if last {
            generated.thread
        } else {
            ThreadId::mint()
        };
        if number % REOPEN_EVERY == 0 {
            reopened.push(id);
        }
        let pace = Pace::Buffered(usize::MAX);
        let rare = number % FOLDER_EVERY == 0;
        let settings = settings(if rare { "/rare" } else { "/w" });
        let mut live =
            LiveThread::start(&store, id, "maker", settings, pace, &mut generated).await?;
        let words = if last {
            generated.marker.clone()
        } else {
            rng.text(200)
        };
        let old = number < count / 2 && number % REOPEN_EVERY != 0;
        let age = if old { "olden" } else { "new" };
        let input = format!("{words} number-{number}-of-many {age}");
        play(&mut live, input, &mut rng, &mut generated).await?;
        live.release(&mut generated).await?;
    }
    // These are now the newest of the list, and far apart in storage.
    while !reopened.is_empty() {
        let id = reopened.swap_remove(rng.index(reopened.len()));
        let mut live = LiveThread::open(&store, id, "maker", &mut generated).await?;
        let input = rng.text(200);
        play(&mut live, input, &mut rng, &mut generated).await?;
        live.release(&mut generated).await?;
    }
    wait_until_indexed(&store, &generated, home).await?;
    Ok(generated)
}

async fn play(
    live: &mut LiveThread<'_>,
    input: String,
    rng: &mut Rng,
    generated: &mut GeneratedThreads,
) -> Result<()> {
    let output = ModelOutput {
        pieces: vec![rng.text(600)],
        tool: Some(Output::text(rng.text(2000))),
        diff: None,
    };
    let input = vec![Input::text(input)];
    turn::play(live, input, vec![output], Grain::Coarse, rng, generated).await?;
    Ok(())
}

/// Waits until all text is in the search index.
async fn wait_until_indexed(
    store: &LocalJournal,
    generated: &GeneratedThreads,
    home: &Path,
) -> Result<()> {
    let start = Instant::now();
    let archive = Archive::open(home)?.context("there is a journal")?;
    let mut lag = archive.lag()?;
    while lag.threads() > 0 {
        let late = start.elapsed() > INDEX_MAX;
        ensure!(!late, "the index of words does not catch up");
        // A search makes the indexer hurry.
        store
            .search(generated.marker.clone(), ListQuery::default())
            .await?;
        std::thread::sleep(Duration::from_millis(50));
        lag.refresh()?;
    }
    Ok(())
}
