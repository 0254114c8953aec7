//! Tests of the workspace at its public face. Each works in folders of its own.

mod compositions;
mod crashes; // restores killed, or with failing disks, at each system call
mod diffs; // kinds of changes, and the patch, which git applies and reverses
mod fixture; // a workspace and a store in memory, states of folders, git
mod hunks; // some hunks of a change, against an independent patcher
mod patcher; // an independent patcher
mod restores; // plans, conflicts, the death of the process and full disks
mod snapshots; // what a snapshot covers, the cost of the next, the store
mod traps; // hostile repositories: nothing runs, nothing outside is touched
mod truth; // random sessions, against a plain comparison
