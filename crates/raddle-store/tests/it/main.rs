//! Tests that every journal passes, and tests of the local journal alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod crash;
mod damage;
mod faulty;
mod files;
mod forks;
mod imports;
mod lag;
mod layout;
mod makers;
mod node;
mod readonly;
mod size;
mod suite;
#[macro_use]
mod transfer;
mod transfers;
#[macro_use]
mod bundle;
mod bundles;

use store_suite::records;
