//! Journals: where the records of threads are kept.
//!
//! [`MemoryJournal`] keeps them in memory, for tests and for threads that need not outlive the process.
//! [`LocalJournal`] keeps them in one SQLite file. Both honour the same ports and pass the same suite.
//! [`FaultyJournal`] is one in memory that fails as it is told to.
//! A journal never knows who asks.
//!
//! Below: `raddle-core`. Above: `raddle`, which picks one.

mod blob;
mod bundle;
mod cuts;
mod faulty;
mod local;
mod memory;
mod node;
mod page;
mod records;
mod text;

pub use bundle::{BundleEnd, BundleEntry, BundleError, BundleHeader, BundleReader};
pub use faulty::{FaultyJournal, Mood};
pub use local::{
    Archive, Damage, DamageKind, ExportError, Exported, Extent, ImportError, ImportOptions,
    Imported, Inventory, Lag, LocalJournal, Options, Report, Salvage,
};
pub use memory::MemoryJournal;
pub use node::{NodeError, NodeLock};
