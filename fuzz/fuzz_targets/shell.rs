//! Command lines of any kind are taken apart, and more is never judged more loosely than less.
//!
//! `crates/raddle-tools/tests/it/shell/property.rs` says what an input is. A test of that crate replays the seeds.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/raddle-tools/tests/it/shell/property.rs"]
#[allow(dead_code)]
mod property;

fuzz::target!(|input: &[u8]| property::more_is_no_looser(input));
