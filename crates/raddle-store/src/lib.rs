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
mod export;
mod faulty;
#[cfg(feature = "fleet")]
mod fleet;
mod import;
mod local;
mod memory;
mod node;
mod page;
mod records;
mod reverted_ranges;
mod text;
mod transfer;
mod verify;

pub use bundle::{BundleEnd, BundleEntry, BundleError, BundleHeader, BundleReader};
pub use export::{ExportError, ExportSummary, Extent, export};
pub use faulty::{FaultMode, FaultyJournal};
#[cfg(feature = "fleet")]
pub use fleet::{DatabaseReport, FleetJournal, FleetOptions};
pub use import::{ImportError, ImportOptions, ImportSummary, import};
pub use local::{Archive, Inventory, Lag, LocalJournal, Options, Salvage};
pub use memory::MemoryJournal;
pub use node::{NodeError, NodeLock};
pub use transfer::{ThreadStore, Transfer, TransferError, TransferSummary};
pub use verify::{Damage, DamageKind, VerifyReport, verify};
