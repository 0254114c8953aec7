//! Makes what is measured, through the same port and the same rules as the server.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use raddle_core::ports::{AppendError, Blobs, ListQuery, Pages};
use raddle_core::{Class, Event, Image, Input, Output, Record, RecordBody, Settings, ThreadId};
use raddle_store::{Archive, LocalJournal, Options};

use crate::live::{AppendListener, LiveThread, Pace, weight};
use crate::rng::Rng;
use crate::turn::{self, Grain, ModelOutput};

/// How much goes to the journal at once.
const BATCH_BYTES: usize = 1 << 20;

/// How long the index of words may take to catch up.
const INDEX_MAX: Duration = Duration::from_secs(30 * 60);

/// How large a thread is made.
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
    /// 150,000 records and 5 GB with 2,000 images, or one of so many parts of that.
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

/// What was made.
#[derive(Clone, Debug)]
pub struct GeneratedThreads {
    /// The thread, or the newest of them.
    pub thread: ThreadId,
    /// How many threads there are.
    pub threads: u64,
    /// A word that is nowhere else.
    pub marker: String,
    /// How many records there are; pieces of whole items are not.
    pub records: u64,
    /// What they have as JSON.
    pub record_bytes: u64,
    /// How many images.
    pub images: u64,
    /// How often the history was condensed.
    pub compactions: u64,
    /// Bytes of all that is kept beside the records.
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

    async fn blob(&mut self, store: &LocalJournal, bytes: Vec<u8>) -> Result<raddle_core::Blob> {
        self.blob_bytes += bytes.len() as u64;
        Ok(store.put(bytes, "image/png".to_owned()).await?)
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

/// One huge thread.
pub async fn thread(home: &Path, size: &ThreadSize) -> Result<GeneratedThreads> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut rng = Rng::new(size.records);
    let mut made = GeneratedThreads::new(ThreadId::mint(), &mut rng);
    let id = made.thread;
    let pace = Pace::Buffered(BATCH_BYTES);
    let mut live = LiveThread::start(&store, id, "maker", settings("/w"), pace, &mut made).await?;
    let mut turns = 0;
    // A turn has about twenty records, and one image comes with so many of them.
    let turns_per_image = (size.records / 20 / size.images.max(1)).max(1);
    while made.records < size.records {
        turns += 1;
        let mut input = vec![Input::text(rng.text(1500))];
        if turns % turns_per_image == 0 && made.images < size.images {
            made.images += 1;
            let mut bytes = rng.bytes(size.image_bytes);
            bytes[1000..1000 + made.marker.len()].copy_from_slice(made.marker.as_bytes());
            let image = Image::Blob(made.blob(&store, bytes).await?);
            input.push(Input::Image {
                image,
                detail: None,
                path: None,
            });
        }
        let full = made.blob(&store, rng.bytes(size.full_bytes)).await?;
        let long = Output {
            full: Some(full),
            ..Output::text(rng.text(size.inline_bytes / 3))
        };
        let short = Output::text(rng.text(size.inline_bytes));
        let says = [Some(short), Some(long), None].map(|tool| ModelOutput {
            pieces: vec![rng.text(1500)],
            diff: tool.is_none().then(|| rng.text(size.diff_bytes)),
            tool,
        });
        let says = says.to_vec();
        turn::play(&mut live, input, says, Grain::Coarse, &mut rng, &mut made).await?;
        if size.compact_every.is_some_and(|every| turns % every == 0) {
            turn::compact(&mut live, &mut rng, &mut made).await?;
        }
    }
    let input = vec![Input::text(format!("the word is {}", made.marker))];
    turn::play(
        &mut live,
        input,
        Vec::new(),
        Grain::Coarse,
        &mut rng,
        &mut made,
    )
    .await?;
    live.release(&mut made).await?;
    indexed(&store, &made, home).await?;
    Ok(made)
}

/// One in so many threads is taken up again when all are there.
pub const REOPEN_EVERY: u64 = 100;

/// One in so many has a folder that others do not have.
pub const FOLDER_EVERY: u64 = 1000;

/// Many small threads. The older half, but for those that are taken up again, has a word that the others do
/// not have.
pub async fn threads(home: &Path, count: u64) -> Result<GeneratedThreads> {
    let folder = home.to_owned();
    let store = LocalJournal::open(&Options { folder })?;
    let mut rng = Rng::new(count);
    let mut made = GeneratedThreads::new(ThreadId::mint(), &mut rng);
    made.threads = count;
    let mut again = Vec::new();
    for number in 0..count {
        let last = number + 1 == count;
        let id = if last { made.thread } else { ThreadId::mint() };
        if number % REOPEN_EVERY == 0 {
            again.push(id);
        }
        let pace = Pace::Buffered(usize::MAX);
        let rare = number % FOLDER_EVERY == 0;
        let settings = settings(if rare { "/rare" } else { "/w" });
        let mut live = LiveThread::start(&store, id, "maker", settings, pace, &mut made).await?;
        let words = if last {
            made.marker.clone()
        } else {
            rng.text(200)
        };
        let old = number < count / 2 && number % REOPEN_EVERY != 0;
        let age = if old { "olden" } else { "new" };
        let input = format!("{words} number-{number}-of-many {age}");
        play(&mut live, input, &mut rng, &mut made).await?;
        live.release(&mut made).await?;
    }
    // These are the newest of the list now, and lie far from one another.
    while !again.is_empty() {
        let id = again.swap_remove(rng.index(again.len()));
        let mut live = LiveThread::open(&store, id, "maker", &mut made).await?;
        let input = rng.text(200);
        play(&mut live, input, &mut rng, &mut made).await?;
        live.release(&mut made).await?;
    }
    indexed(&store, &made, home).await?;
    Ok(made)
}

async fn play(
    live: &mut LiveThread<'_>,
    input: String,
    rng: &mut Rng,
    made: &mut GeneratedThreads,
) -> Result<()> {
    let said = ModelOutput {
        pieces: vec![rng.text(600)],
        tool: Some(Output::text(rng.text(2000))),
        diff: None,
    };
    let input = vec![Input::text(input)];
    turn::play(live, input, vec![said], Grain::Coarse, rng, made).await?;
    Ok(())
}

/// Waits until all words can be searched for.
async fn indexed(store: &LocalJournal, made: &GeneratedThreads, home: &Path) -> Result<()> {
    let begun = Instant::now();
    let archive = Archive::open(home)?.context("there is a journal")?;
    let mut lag = archive.lag()?;
    while lag.threads() > 0 {
        let late = begun.elapsed() > INDEX_MAX;
        ensure!(!late, "the index of words does not catch up");
        // Whoever searches makes it hurry.
        store
            .search(made.marker.clone(), ListQuery::default())
            .await?;
        std::thread::sleep(Duration::from_millis(50));
        lag.look()?;
    }
    Ok(())
}
