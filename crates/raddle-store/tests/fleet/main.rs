//! Tests of the journal on PostgreSQL, with a real server.
//!
//! `tests/fleet/pg-cluster.sh` starts one server for all tests that run at the same time, and ends
//! it after them. Each test has its own schema. Without PostgreSQL they fail, and say what to
//! install.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod doubts;
mod durability;
mod ended_nodes;
mod hosts;
mod layout;
mod lists;
mod lost_commits;
mod maker;
mod node_log;
mod proxy;
mod races;
mod search;
mod server;
mod sql_session;
mod suite;
mod tenants;

/// Makers of the other stores.
#[path = "../it/makers.rs"]
mod makers;
/// Moves of threads, as they are tested between the other stores.
#[path = "../it/transfer.rs"]
#[macro_use]
mod transfer;
mod transfers;
/// Files of threads, as they are tested between the other stores.
#[path = "../it/bundle.rs"]
#[macro_use]
mod bundle;
mod bundles;

use store_suite::records;
