//! Files between the stores of one machine, through the ports.

use crate::makers::{LocalMaker, MemoryMaker};

bundle_tests!(mod memory_to_local, MemoryMaker => LocalMaker);
bundle_tests!(mod local_to_memory, LocalMaker => MemoryMaker);
