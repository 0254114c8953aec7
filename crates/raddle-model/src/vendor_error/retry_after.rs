//! The delay that a vendor asks for before a retry.

use std::time::{Duration, SystemTime};

use hyper::HeaderMap;
use serde_json::Value;

/// Reads it from headers: milliseconds, seconds, or a date.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|it| it.to_str().ok());
    let number = |name: &str| text(name).and_then(|it| it.trim().parse::<f64>().ok());
    let wait = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    if let Some(ms) = number("retry-after-ms") {
        return wait(ms / 1000.0);
    }
    if let Some(seconds) = number("retry-after") {
        return wait(seconds);
    }
    let date = httpdate::parse_http_date(text("retry-after")?.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// Reads it from a message: "try again in 1.5s", "in 6m0s", "in 20 seconds", "in 300ms".
pub(super) fn from_message(message: &str) -> Option<Duration> {
    let message = message.to_lowercase();
    let phrases = ["try again in ", "retry in "].into_iter();
    let (_, mut rest) = phrases.filter_map(|it| message.split_once(it)).next()?;
    let mut seconds = None;
    loop {
        rest = rest.trim_start();
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.');
        let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else {
            break;
        };
        let after = after.trim_start();
        let letters = after.find(|it: char| !it.is_ascii_alphabetic());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let scale = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * scale);
        rest = after;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

/// Reads it from the members of an error: seconds until a quota resets, or a detail such as "7.5s".
pub(super) fn from_error(error: &Value) -> Option<Duration> {
    if let Some(seconds) = error["resets_in_seconds"].as_f64() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let details = error["details"].as_array()?;
    let delay = details.iter().find_map(|it| it["retryDelay"].as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn retry_delays_are_read_from_headers_and_messages() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, expected) in [
            ("retry-after", "7", Some(7000)),
            ("retry-after", " 1.5 ", Some(1500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7000)),
            ("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT", Some(0)),
            ("retry-after", "-3", None),
            ("retry-after", "soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a header"));
            let delay = from_headers(&headers, now).map(|it| it.as_millis());
            assert_eq!(delay, expected, "{name}: {value}");
        }
        for (message, expected) in [
            (
                "Rate limit reached. Please try again in 1.898s. Visit …",
                Some(1898),
            ),
            ("try again in 20ms", Some(20)),
            ("Try again in 6m0s.", Some(360_000)),
            ("please try again in 35 seconds.", Some(35_000)),
            ("try again in 1h2m3s", Some(3_723_000)),
            ("try again in a while", None),
            ("try again", None),
        ] {
            assert_eq!(
                from_message(message).map(|it| it.as_millis()),
                expected,
                "{message}"
            );
        }
    }
}
