//! Suite that every journal passes. Each test runs against each journal.

pub mod blobs;
mod fence;
mod forks;
mod lists;
mod reading;
mod search;
mod turns;

/// Makes a test of each function for each journal.
macro_rules! for_each_journal {
    ($($name:ident),* $(,)?) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(raddle_store::MemoryJournal::new()).await;
                }
            )*
        }
        mod faulty {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name(raddle_store::FaultyJournal::new()).await;
                }
            )*
        }
        mod local {
            $(
                #[tokio::test]
                async fn $name() {
                    let folder = tempfile::tempdir().unwrap();
                    super::$name(crate::suite::local(folder.path())).await;
                }
            )*
        }
    };
}
use for_each_journal;

/// Maximum lag of search on a busy machine before a test fails.
const LAG_MAX: std::time::Duration = std::time::Duration::from_secs(60);

pub fn local(folder: &std::path::Path) -> raddle_store::LocalJournal {
    let folder = folder.to_owned();
    raddle_store::LocalJournal::open(&raddle_store::Options { folder }).unwrap()
}
