//! The simulator itself: a few hundred seeds with every run of the tests.

mod bugs;
mod clean;
mod results;
mod seeds;
