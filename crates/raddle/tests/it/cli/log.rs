//! What docs/operating.md says of the log.

use super::CliHome;

/// A server that ends at once says what it does at the levels that are asked for, and nothing on stdout.
#[test]
fn levels_are_those_of_raddle_log_alone() {
    let warned = "modle = 'x'\n";
    for (name, value, warns, informs) in [
        ("", "", true, false),
        ("RADDLE_LOG", "off", false, false),
        ("RADDLE_LOG", "error", false, false),
        ("RADDLE_LOG", "info", true, true),
        ("RADDLE_LOG", "error,raddle::app_server=info", false, true),
        ("RUST_LOG", "trace", true, false),
    ] {
        let mut place = CliHome::with(warned);
        place.set(name, value);
        place.variables.retain(|(name, _)| !name.is_empty());
        let went = place.run(&["app-server"]);
        assert_eq!(
            (went.code, went.out.as_str()),
            (Some(0), ""),
            "{}",
            went.err
        );
        assert_eq!(
            went.err.contains("did you mean `model`?"),
            warns,
            "{name}={value}: {}",
            went.err
        );
        assert_eq!(
            went.err.contains("draining"),
            informs,
            "{name}={value}: {}",
            went.err
        );
    }
}
