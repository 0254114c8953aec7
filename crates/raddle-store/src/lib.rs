//! Journals: storage of the records of threads.
//!
//! [`MemoryJournal`] stores them in memory, for tests and for threads that need not outlive the
//! process. [`LocalJournal`] stores them in one SQLite file. Both implement the same ports and pass
//! the same suite. [`FaultyJournal`] is an in-memory journal with injected faults. A journal does
//! not know its callers.
//!
//! Below: `raddle-core`. Above: `raddle`, which picks one.

mod blob;
mod bundle;
mod faulty;
#[cfg(feature = "fleet")]
mod fleet;
mod local;
mod memory;
mod node;
mod page;
mod records;
mod reverted_ranges;
mod text;
mod transfer;

pub use bundle::{BundleEnd, BundleEntry, BundleError, BundleHeader, BundleReader};
pub use faulty::{FaultMode, FaultyJournal};
#[cfg(feature = "fleet")]
pub use fleet::{DatabaseReport, FleetJournal, FleetOptions};
pub use local::{
    Archive, Damage, DamageKind, ExportError, ExportSummary, Extent, ImportError, ImportOptions,
    ImportSummary, Inventory, Lag, LocalJournal, Options, Salvage, VerifyReport,
};
pub use memory::MemoryJournal;
pub use node::{NodeError, NodeLock};
pub use transfer::{ThreadStore, Transfer, TransferError, TransferSummary};
