//! The two modes of a fuzz target.
//!
//! Built with `--cfg fuzzing`, a target is a libFuzzer program that searches for new inputs, as in
//! `cargo xtask prove fuzz`. In a normal build, it replays the given inputs, so that CI checks
//! every seed and every earlier finding deterministically and without a second build of the crates.

#[cfg(fuzzing)]
pub use libfuzzer_sys;

/// Declares a target: a property that holds for any bytes, or panics.
#[macro_export]
macro_rules! target {
    (|$input:ident: &[u8]| $property:expr) => {
        #[cfg(fuzzing)]
        use $crate::libfuzzer_sys;

        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|$input: &[u8]| $property);

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay(|$input: &[u8]| $property)
        }
    };
}

/// Runs the property on every file named on the command line, and on the files in every named
/// directory.
#[cfg(not(fuzzing))]
pub fn replay(property: impl Fn(&[u8])) -> std::process::ExitCode {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::ExitCode;

    let inputs = match inputs() {
        Ok(inputs) if inputs.is_empty() => {
            eprintln!("error: no input; name files, or folders of files");
            return ExitCode::FAILURE;
        }
        Ok(inputs) => inputs,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut broken = 0;
    for (path, bytes) in &inputs {
        if catch_unwind(AssertUnwindSafe(|| property(bytes))).is_err() {
            eprintln!("the property does not hold for {}", path.display());
            broken += 1;
        }
    }
    eprintln!("{} inputs replayed, {broken} broken", inputs.len());
    if broken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(not(fuzzing))]
fn inputs() -> std::io::Result<Vec<(std::path::PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for path in std::env::args_os().skip(1).map(std::path::PathBuf::from) {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                files.push(entry?.path());
            }
        } else {
            files.push(path);
        }
    }
    files.sort();
    let read = |path: std::path::PathBuf| Ok((path.clone(), std::fs::read(path)?));
    files.into_iter().map(read).collect()
}
