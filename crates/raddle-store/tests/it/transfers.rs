//! Moves between the stores of one machine.

use crate::makers::{LocalMaker, MemoryMaker};

transfer_tests!(mod memory_to_local, MemoryMaker => LocalMaker);
transfer_tests!(mod local_to_memory, LocalMaker => MemoryMaker);
transfer_tests!(mod local_to_local, LocalMaker => LocalMaker);
