//! The limits of the tools of plugins in a model call.

use std::collections::BTreeSet;

use raddle_core::ports::ToolSpec;

/// Limit: tools of plugins that are part of a model call; beyond it, the others are not offered, and
/// that is logged.
const OFFERED_MAX: usize = 64;

/// Limit: definitions of all tools of plugins that are part of a model call; beyond it, the others
/// are not offered, and that is logged.
const DEFINITIONS_BYTES_MAX: usize = 40_000;

/// Tools that are named in a text for the model.
const NAMED_MAX: usize = 20;

/// Returns the length of a definition in a model call.
pub(super) fn spec_bytes(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.schema.to_string().len()
}

/// Returns the names of those tools that are beyond the limits, from the names and lengths of all. A
/// tool that does not fit leaves the space to shorter ones after it.
pub(super) fn unoffered<'a>(tools: impl Iterator<Item = (&'a str, usize)>) -> BTreeSet<String> {
    let (mut count, mut bytes) = (0, 0);
    let beyond = tools.filter(|(_, length)| {
        let fits = count < OFFERED_MAX && bytes + length <= DEFINITIONS_BYTES_MAX;
        if fits {
            count += 1;
            bytes += length;
        }
        !fits
    });
    beyond.map(|(name, _)| name.to_owned()).collect()
}

/// Names the tools that are not offered, as the end of a text for the model; empty if there are none.
pub(super) fn explanation(unoffered: &BTreeSet<String>) -> String {
    if unoffered.is_empty() {
        return String::new();
    }
    let named: Vec<&str> = unoffered
        .iter()
        .take(NAMED_MAX)
        .map(String::as_str)
        .collect();
    let more = match unoffered.len() - named.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    format!(
        " These tools of plugins can be called, but are not offered, because all of them are more \
         than {OFFERED_MAX} or have more than {DEFINITIONS_BYTES_MAX} bytes: {}{more}.",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lengths: &[usize]) -> String {
        let names: Vec<String> = (0..lengths.len()).map(|it| format!("tool{it}")).collect();
        let tools = names.iter().zip(lengths);
        let beyond = unoffered(tools.map(|(name, length)| (name.as_str(), *length)));
        beyond.into_iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tools_beyond_the_limits_are_not_offered() {
        for (lengths, expected) in [
            (&[][..], ""),
            (&[20_000, 20_000], ""),
            (&[20_000, 20_001, 20_000, 10], "tool1 tool3"),
            (&[40_001, 100], "tool0"),
            (&[100; OFFERED_MAX], ""),
            (&[100; OFFERED_MAX + 1], "tool64"),
        ] {
            assert_eq!(names(lengths), expected, "{lengths:?}");
        }
        // Tools of the longest definition that a manifest may have.
        assert_eq!(names(&[20 << 10; OFFERED_MAX]).split(' ').count(), 63);
    }

    #[test]
    fn some_tools_that_are_not_offered_are_named() {
        let explained = |count: usize| {
            let names = (0..count).map(|it| format!("tool{it:02}"));
            explanation(&names.collect())
        };
        assert_eq!(explained(0), "");
        assert!(explained(2).ends_with(" bytes: tool00, tool01."));
        assert!(explained(23).ends_with(", tool18, tool19 and 3 more."));
    }
}
