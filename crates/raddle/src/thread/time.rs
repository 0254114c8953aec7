//! Formats points in time.

use raddle_core::Timestamp;

const DAY_SECONDS: i64 = 86_400;

/// Formats a point in time, to the second, in UTC.
pub(crate) fn utc(at: Timestamp) -> String {
    let (year, month, day) = at.date();
    let rest = at.seconds().rem_euclid(DAY_SECONDS);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59Z"),
            (1_709_251_200_000, "2024-03-01 00:00:00Z"),
            (4_107_542_399_000, "2100-02-28 23:59:59Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00Z"),
            (-1_000, "1969-12-31 23:59:59Z"),
        ] {
            assert_eq!(utc(Timestamp(ms)), text);
        }
    }
}
