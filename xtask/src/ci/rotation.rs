//! Rotation of slices that CI runs on alternating days, because running all of them every time
//! takes too long.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use super::plan::CiStep;

/// Number of days of a rotation.
pub const DAYS: u64 = 3;

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// A day in UTC, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day(pub u64);

impl Day {
    pub fn today() -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Ok(Self(since.as_secs() / DAY_SECONDS))
    }

    /// Returns whether CI runs the step on this day.
    pub fn runs(self, step: &CiStep) -> bool {
        step.rotation.is_none_or(|on| self.0 % DAYS == on)
    }

    /// Describes the slices of this day and of the other days.
    pub fn describe(self, steps: &[CiStep]) -> String {
        let rotating = |today: bool| {
            let steps = steps.iter().filter(|it| it.rotation.is_some());
            let names: Vec<&str> = steps
                .filter(|it| self.runs(it) == today)
                .map(|it| it.name)
                .collect();
            names.join(", ")
        };
        format!(
            "slices of {self} (day {}): {}; of other days: {} (`--only NAME` or `--every-slice` runs them)",
            self.0,
            rotating(true),
            rotating(false)
        )
    }
}

impl fmt::Display for Day {
    /// Formats the date, as in 2026-11-17.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut year, mut remaining) = (1970, self.0);
        loop {
            let length = if is_leap(year) { 366 } else { 365 };
            if remaining < length {
                break;
            }
            remaining -= length;
            year += 1;
        }
        let mut month = 1;
        for days in months(year) {
            if remaining < days {
                break;
            }
            remaining -= days;
            month += 1;
        }
        write!(out, "{year:04}-{month:02}-{:02}", remaining + 1)
    }
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn months(year: u64) -> [u64; 12] {
    let february = if is_leap(year) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::steps::STEPS;

    #[test]
    fn a_day_is_shown_as_its_date() {
        for (day, date) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_774, "2026-11-17"),
        ] {
            assert_eq!(Day(day).to_string(), date);
        }
    }

    #[test]
    fn every_step_is_run_within_one_rotation() {
        for step in STEPS {
            let days = (0..DAYS).filter(|day| Day(*day).runs(step)).count();
            let expected = if step.rotation.is_some() {
                1
            } else {
                DAYS as usize
            };
            assert_eq!(days, expected, "{}", step.name);
        }
    }
}
