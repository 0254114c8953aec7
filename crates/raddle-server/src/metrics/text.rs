//! The text format of Prometheus, as far as the server needs it.

use std::fmt::Write;
use std::time::Duration;

/// Type of a family of samples.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A value that only grows.
    Counter,
    /// A value that may fall.
    Gauge,
    /// A sum and a count.
    Summary,
}

/// Encoder of a page.
#[derive(Debug, Default)]
pub(super) struct TextEncoder {
    page: String,
    /// Family of the samples that follow.
    family: &'static str,
}

impl TextEncoder {
    /// Begins a family; the samples that follow belong to it.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Summary => "summary",
        };
        self.family = name;
        // Writing to a string cannot fail.
        let _ = write!(self.page, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub(super) fn sample(&mut self, labels: &[(&str, &str)], value: u64) {
        self.line("", labels, &value.to_string());
    }

    pub(super) fn seconds(&mut self, labels: &[(&str, &str)], time: Duration) {
        self.line("", labels, &time.as_secs_f64().to_string());
    }

    /// Writes the two samples of a summary.
    pub(super) fn times(&mut self, labels: &[(&str, &str)], sum: Duration, count: u64) {
        self.line("_sum", labels, &sum.as_secs_f64().to_string());
        self.line("_count", labels, &count.to_string());
    }

    pub(super) fn finish(self) -> String {
        self.page
    }

    /// Writes a sample. Labels are plain names, so nothing in them needs escaping.
    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: &str) {
        self.page.push_str(self.family);
        self.page.push_str(suffix);
        for (at, (name, label)) in labels.iter().enumerate() {
            let separator = if at == 0 { '{' } else { ',' };
            let _ = write!(self.page, "{separator}{name}=\"{label}\"");
        }
        if !labels.is_empty() {
            self.page.push('}');
        }
        let _ = writeln!(self.page, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_follow_their_family() {
        let mut text = TextEncoder::default();
        text.family("looms", Kind::Gauge, "Looms.");
        text.sample(&[], 3);
        text.family("weaving_seconds", Kind::Summary, "Time.");
        text.times(
            &[("yarn", "wool"), ("ply", "2")],
            Duration::from_millis(1500),
            2,
        );
        assert_eq!(
            text.finish(),
            "# HELP looms Looms.\n\
             # TYPE looms gauge\n\
             looms 3\n\
             # HELP weaving_seconds Time.\n\
             # TYPE weaving_seconds summary\n\
             weaving_seconds_sum{yarn=\"wool\",ply=\"2\"} 1.5\n\
             weaving_seconds_count{yarn=\"wool\",ply=\"2\"} 2\n"
        );
    }
}
