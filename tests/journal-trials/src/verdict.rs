//! What was found, beside what was asked for.

use serde::{Deserialize, Serialize};

/// What a number must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Limit {
    /// It is only shown.
    None,
    /// Not above this.
    AtMost(f64),
    /// Not below this.
    AtLeast(f64),
}

/// One number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerdictRow {
    what: String,
    found: f64,
    unit: String,
    limit: Limit,
}

impl VerdictRow {
    /// The same with ten times the time: a small part of the full size, beside other work, shows what is
    /// wrong by far and not by little.
    pub fn with_slack(mut self) -> Self {
        if let (Limit::AtMost(most), "ms") = (&mut self.limit, self.unit.as_str()) {
            *most *= 10.0;
        }
        self
    }

    /// A number and what it must keep to.
    pub fn new(what: impl Into<String>, found: f64, unit: &str, limit: Limit) -> Self {
        Self {
            what: what.into(),
            found,
            unit: unit.to_owned(),
            limit,
        }
    }

    /// Something that must never happen, and how often it did.
    pub fn never(what: impl Into<String>, count: u64) -> Self {
        Self::new(what, count as f64, "", Limit::AtMost(0.0))
    }

    /// How often something happened.
    pub fn count(what: impl Into<String>, count: u64) -> Self {
        Self::new(what, count as f64, "", Limit::None)
    }

    /// Whether it keeps to its limit.
    pub fn is_kept(&self) -> bool {
        match self.limit {
            Limit::None => true,
            Limit::AtMost(most) => self.found <= most,
            Limit::AtLeast(least) => self.found >= least,
        }
    }

    fn line(&self) -> String {
        let Self {
            what, found, unit, ..
        } = self;
        let limit = match self.limit {
            Limit::None => String::new(),
            Limit::AtMost(most) => format!("at most {}", number(most)),
            Limit::AtLeast(least) => format!("at least {}", number(least)),
        };
        let verdict = match self.limit {
            Limit::None => "",
            _ if self.is_kept() => "ok",
            _ => "MISSED",
        };
        let found = format!("{} {unit}", number(*found));
        let line = format!("{what:<58}{found:>16}  {limit:<16}{verdict}");
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

/// Prints rows, and says whether all are kept.
pub fn print(title: &str, rows: &[VerdictRow]) -> bool {
    println!("\n{title}");
    for row in rows {
        println!("figure: {title}: {}", row.line().trim());
    }
    rows.iter().all(VerdictRow::is_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_missed_is_seen() {
        assert!(VerdictRow::new("a", 1.5, "x", Limit::AtMost(1.5)).is_kept());
        assert!(!VerdictRow::new("a", 1.51, "x", Limit::AtMost(1.5)).is_kept());
        assert!(!VerdictRow::new("a", 0.49, "x", Limit::AtLeast(0.5)).is_kept());
        assert!(!VerdictRow::never("a", 1).is_kept());
        assert!(VerdictRow::count("a", 1).is_kept());
        assert!(VerdictRow::never("a", 1).line().ends_with("MISSED"));
    }
}
