//! Numbers that order a thread's records, and the time that callers pass in.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Number of a record in its thread. It rises, is never reused and may skip; a gap means nothing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first record.
    pub const ZERO: Self = Self(0);

    /// Returns the number after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Returns the number `count` later.
    pub fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Period of one owner. A later owner has a higher epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// Milliseconds since 1970. Order never depends on it: clocks jump.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time `ms` milliseconds later.
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds since an earlier time; never negative, whatever the clock did.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }

    /// Whether a wait from `since` until `until` is over. It also ends if the clock was set back by
    /// more than the whole wait, because the clock then cannot measure it.
    pub(crate) fn is_over(self, since: Self, until: Self) -> bool {
        self >= until || since.since(self) > until.since(since)
    }

    /// The calendar date in UTC: year, month, day. The computation counts years from March, so that
    /// a leap day is the last day of its year.
    pub fn date(self) -> (i64, i64, i64) {
        let days = self.0.div_euclid(24 * 60 * 60 * 1000) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year + era * 400 + i64::from(month <= 2), month, day)
    }

    /// Whole seconds, the unit of most times on the wire.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }
}

impl From<SystemTime> for Timestamp {
    /// Converts a time that the caller read. A time before 1970 counts as 1970.
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_of_the_system_count_from_1970() {
        for (time, ms) in [
            (UNIX_EPOCH, 0),
            (UNIX_EPOCH + Duration::from_micros(999_999), 999),
            (UNIX_EPOCH + Duration::from_secs(1), 1_000),
            (UNIX_EPOCH - Duration::from_secs(1), 0),
        ] {
            assert_eq!(Timestamp::from(time), Timestamp(ms), "{time:?}");
        }
    }

    #[test]
    fn days_of_the_calendar() {
        for (ms, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (68_169_599_999, (1972, 2, 28)),
            (68_169_600_000, (1972, 2, 29)),
            (946_684_799_999, (1999, 12, 31)),
            (946_684_800_000, (2000, 1, 1)),
            (951_782_400_000, (2000, 2, 29)),
            (951_868_800_000, (2000, 3, 1)),
            (1_709_251_199_999, (2024, 2, 29)),
            (1_709_251_200_000, (2024, 3, 1)),
            (1_793_491_199_999, (2026, 10, 31)),
            (1_793_491_200_000, (2026, 11, 1)),
            (4_107_542_399_999, (2100, 2, 28)),
            (4_107_542_400_000, (2100, 3, 1)),
            (13_574_563_200_000, (2400, 2, 29)),
            (-2_203_891_200_000, (1900, 3, 1)),
            (-62_167_219_200_000, (0, 1, 1)),
            (-62_167_305_600_000, (-1, 12, 31)),
        ] {
            assert_eq!(Timestamp(ms).date(), date, "{ms}");
        }
    }

    #[test]
    fn seconds_are_whole_and_begin_with_their_first_millisecond() {
        for (ms, seconds) in [(0, 0), (999, 0), (1_000, 1), (61_500, 61), (-1, -1)] {
            assert_eq!(Timestamp(ms).seconds(), seconds, "{ms}");
        }
    }

    /// Checks every day of one full cycle of the calendar, 400 years.
    #[test]
    fn every_day_follows_the_one_before() {
        let mut today = Timestamp(0).date();
        for day in 1..=146_097 {
            let (year, month, date) = today;
            let is_long = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = match month {
                2 => 28 + i64::from(is_long),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            today = match (month, date) {
                (12, 31) => (year + 1, 1, 1),
                (_, date) if date == last => (year, month + 1, 1),
                _ => (year, month, date + 1),
            };
            assert_eq!(Timestamp(day * 86_400_000).date(), today);
        }
    }
}
