//! Measured values and their limits.

use serde::{Deserialize, Serialize};

/// Limit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Limit {
    /// No limit; the value is only printed.
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// A measured value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerdictRow {
    what: String,
    value: f64,
    unit: String,
    limit: Limit,
}

impl VerdictRow {
    /// Multiplies a limit of time by ten: a small part of the full size, beside other work, detects
    /// only large deviations.
    pub fn with_slack(mut self) -> Self {
        if let (Limit::AtMost(most), "ms") = (&mut self.limit, self.unit.as_str()) {
            *most *= 10.0;
        }
        self
    }

    /// Creates a value with its limit.
    pub fn new(what: impl Into<String>, value: f64, unit: &str, limit: Limit) -> Self {
        Self {
            what: what.into(),
            value,
            unit: unit.to_owned(),
            limit,
        }
    }

    /// Creates a count of something that must never happen.
    pub fn never(what: impl Into<String>, count: u64) -> Self {
        Self::new(what, count as f64, "", Limit::AtMost(0.0))
    }

    /// Creates a count without a limit.
    pub fn count(what: impl Into<String>, count: u64) -> Self {
        Self::new(what, count as f64, "", Limit::None)
    }

    /// Whether the value is within its limit.
    pub fn is_met(&self) -> bool {
        match self.limit {
            Limit::None => true,
            Limit::AtMost(most) => self.value <= most,
            Limit::AtLeast(least) => self.value >= least,
        }
    }

    fn line(&self) -> String {
        let Self {
            what, value, unit, ..
        } = self;
        let limit = match self.limit {
            Limit::None => String::new(),
            Limit::AtMost(most) => format!("at most {}", number(most)),
            Limit::AtLeast(least) => format!("at least {}", number(least)),
        };
        let verdict = match self.limit {
            Limit::None => "",
            _ if self.is_met() => "ok",
            _ => "MISSED",
        };
        let value_text = format!("{} {unit}", number(*value));
        let line = format!("{what:<58}{value_text:>16}  {limit:<16}{verdict}");
        line.trim_end().to_owned()
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

/// Prints rows. Returns whether all limits are met.
pub fn print(title: &str, rows: &[VerdictRow]) -> bool {
    println!("\n{title}");
    for row in rows {
        println!("figure: {title}: {}", row.line().trim());
    }
    rows.iter().all(VerdictRow::is_met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_limit_is_detected() {
        assert!(VerdictRow::new("a", 1.5, "x", Limit::AtMost(1.5)).is_met());
        assert!(!VerdictRow::new("a", 1.51, "x", Limit::AtMost(1.5)).is_met());
        assert!(!VerdictRow::new("a", 0.49, "x", Limit::AtLeast(0.5)).is_met());
        assert!(!VerdictRow::never("a", 1).is_met());
        assert!(VerdictRow::count("a", 1).is_met());
        assert!(VerdictRow::never("a", 1).line().ends_with("MISSED"));
    }
}
