//! Cost of other clients, as a ratio. The median of the pairs counts, so that a short load of the
//! machine does not decide.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};

#[derive(Debug, Default)]
pub struct Ratio(Vec<f64>);

impl Ratio {
    /// Adds a pair of runs, one right after the other.
    pub fn add(&mut self, alone: Duration, loaded: Duration) {
        self.0.push(loaded.as_secs_f64() / alone.as_secs_f64());
    }

    pub fn at_most(mut self, most: f64) -> Result<()> {
        self.0.sort_unstable_by(f64::total_cmp);
        let median = self.0.get(self.0.len() / 2).context("at least one pair")?;
        println!("figure: ratios {:.2?}, of which {median:.2} counts", self.0);
        if *median > most {
            return Err(TooSlow {
                median: *median,
                most,
            }
            .into());
        }
        Ok(())
    }
}

/// Error for a ratio that is too high, when nothing else failed.
#[derive(Debug)]
pub struct TooSlow {
    median: f64,
    most: f64,
}

impl std::error::Error for TooSlow {}

impl fmt::Display for TooSlow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.2}, and at most {} is good", self.median, self.most)
    }
}
