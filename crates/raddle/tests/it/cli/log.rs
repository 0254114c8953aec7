//! The log as docs/operating.md describes it.

use super::CliHome;

/// A server that exits at once logs at the configured levels, and prints nothing to stdout.
#[test]
fn log_levels_come_from_raddle_log_only() {
    let warned = "modle = 'x'\n";
    for (name, value, warns, informs) in [
        ("", "", true, false),
        ("RADDLE_LOG", "off", false, false),
        ("RADDLE_LOG", "error", false, false),
        ("RADDLE_LOG", "info", true, true),
        ("RADDLE_LOG", "error,raddle::app_server=info", false, true),
        ("RUST_LOG", "trace", true, false),
    ] {
        let mut home = CliHome::with(warned);
        home.set(name, value);
        home.variables.retain(|(name, _)| !name.is_empty());
        let output = home.run(&["app-server"]);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(0), ""),
            "{}",
            output.err
        );
        assert_eq!(
            output.err.contains("did you mean `model`?"),
            warns,
            "{name}={value}: {}",
            output.err
        );
        assert_eq!(
            output.err.contains("draining"),
            informs,
            "{name}={value}: {}",
            output.err
        );
    }
}
