//! The parser handles any command line, and never judges a longer line less strictly than its
//! parts.
//!
//! `crates/raddle-tools/tests/it/shell/property.rs` defines the input. A test of that crate replays
//! the seeds.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/raddle-tools/tests/it/shell/property.rs"]
#[allow(dead_code)]
mod property;

fuzz::target!(|input: &[u8]| property::more_is_no_looser(input));
