//! What others cost, as a ratio. A machine that is busy for a moment does not decide: of the pairs the one in
//! the middle counts.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};

#[derive(Debug, Default)]
pub struct Ratio(Vec<f64>);

impl Ratio {
    /// A pair of runs, one right after the other.
    pub fn add(&mut self, alone: Duration, beside: Duration) {
        self.0.push(beside.as_secs_f64() / alone.as_secs_f64());
    }

    pub fn at_most(mut self, most: f64) -> Result<()> {
        self.0.sort_unstable_by(f64::total_cmp);
        let middle = self.0.get(self.0.len() / 2).context("at least one pair")?;
        println!("figure: ratios {:.2?}, of which {middle:.2} counts", self.0);
        if *middle > most {
            return Err(TooSlow {
                middle: *middle,
                most,
            }
            .into());
        }
        Ok(())
    }
}

/// Nothing was wrong but the ratio.
#[derive(Debug)]
pub struct TooSlow {
    middle: f64,
    most: f64,
}

impl std::error::Error for TooSlow {}

impl fmt::Display for TooSlow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2}, and at most {} is good", self.middle, self.most)
    }
}
