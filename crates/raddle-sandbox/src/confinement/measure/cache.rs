//! Cached measurements, in a small file of lines. An invalid file counts as absent.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Finding, Measurement, Options, sandbox_host};
use crate::confinement::Tier;
use crate::confinement::attempt::CORE;

const HEADER: &str = "raddle fence 1";

/// Returns the properties on which the findings depend; `None` if one cannot be read.
pub(super) fn key(options: &Options) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let bubblewrap = match &options.bubblewrap {
        Ok(file) => identity(file)?,
        // The cached result includes the reason.
        Err(why) => format!("none ({why})").replace('\n', " "),
    };
    // These settings may change while the machine runs.
    let switches = [
        "/proc/sys/user/max_user_namespaces",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    ]
    .map(|it| fs::read_to_string(it).unwrap_or_default().trim().to_owned());
    Some(format!(
        "{} {} {bubblewrap} {} {}",
        boot.trim(),
        identity(&options.helper)?,
        rustix::process::geteuid().as_raw(),
        switches.join(",")
    ))
}

/// Returns an identity that changes when the file is written again.
fn identity(file: &Path) -> Option<String> {
    let it = fs::metadata(file).ok()?;
    Some(format!(
        "{}:{}:{}:{}.{}",
        it.dev(),
        it.ino(),
        it.size(),
        it.mtime(),
        it.mtime_nsec()
    ))
}

pub(super) fn write(file: &Path, key: &str, measurement: &Measurement) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let temporary = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(temporary.path(), text(key, measurement))?;
    temporary.persist(file)?;
    Ok(())
}

fn text(key: &str, measurement: &Measurement) -> String {
    let mut text = format!(
        "{HEADER}\nkey {key}\ntier {}\nlandlock {}\n",
        measurement.sandbox.tier().letter(),
        measurement.landlock
    );
    for finding in &measurement.findings {
        let verdict = if finding.stopped { "held" } else { "open" };
        text.push_str(&format!("{verdict} {}\n", finding.attempt.name));
    }
    for why in &measurement.short_of {
        text.push_str(&format!("short {}\n", why.replace('\n', " ")));
    }
    text
}

pub(super) fn read(file: &Path, key: &str, options: &Options) -> Option<Measurement> {
    parse(&fs::read_to_string(file).ok()?, key, options)
}

fn parse(text: &str, key: &str, options: &Options) -> Option<Measurement> {
    let mut lines = text.lines();
    if lines.next()? != HEADER || lines.next()?.strip_prefix("key ")? != key {
        return None;
    }
    let tier = match lines.next()?.strip_prefix("tier ")? {
        "a" => Tier::A,
        "b" => Tier::B,
        "c" => Tier::C,
        _ => return None,
    };
    let landlock = lines.next()?.strip_prefix("landlock ")?.parse().ok()?;
    let (mut findings, mut short_of) = (Vec::new(), Vec::new());
    for line in lines {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "held" | "open" => findings.push(Finding {
                attempt: CORE.iter().find(|it| it.name == rest)?,
                stopped: word == "held",
            }),
            "short" => short_of.push(rest.to_owned()),
            _ => return None,
        }
    }
    Some(Measurement {
        sandbox: sandbox_host(options, tier),
        landlock,
        findings,
        short_of,
        cached: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::ProgramError;

    fn options() -> Options {
        Options {
            helper: "/bin/sh".into(),
            bubblewrap: Err(ProgramError::NoBubblewrap { ignored: None }),
            scratch: "/tmp".into(),
            cache: None,
        }
    }

    fn measured() -> Measurement {
        let findings = CORE.iter().enumerate().map(|(at, attempt)| Finding {
            attempt,
            stopped: at % 3 > 0,
        });
        Measurement {
            sandbox: sandbox_host(&options(), Tier::B),
            landlock: 7,
            findings: findings.collect(),
            short_of: vec!["bubblewrap is not\ninstalled".to_owned()],
            cached: false,
        }
    }

    #[test]
    fn a_written_measurement_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state/fence");
        write(&file, "k 1", &measured()).expect("it is written");
        let read = read(&file, "k 1", &options()).expect("it is read");
        assert!(read.cached);
        assert_eq!((read.sandbox.tier(), read.landlock), (Tier::B, 7));
        assert_eq!(read.short_of, ["bubblewrap is not installed"]);
        let stopped =
            |of: &Measurement| of.findings.iter().map(|it| it.stopped).collect::<Vec<_>>();
        assert_eq!(stopped(&read), stopped(&measured()));
    }

    #[test]
    fn another_key_or_an_invalid_file_counts_as_absent() {
        let text = text("k 1", &measured());
        assert!(parse(&text, "k 1", &options()).is_some());
        assert!(parse(&text, "k 2", &options()).is_none());
        for (is, was) in [
            ("raddle fence 1", "raddle fence 2"),
            ("tier b", "tier d"),
            ("landlock 7", "landlock seven"),
            ("held write-through-link", "held another"),
            ("short ", "shorter "),
        ] {
            assert!(text.contains(is), "{is}");
            assert!(
                parse(&text.replace(is, was), "k 1", &options()).is_none(),
                "{was}"
            );
        }
    }

    #[test]
    fn the_key_changes_with_the_binary() {
        let folder = tempfile::tempdir().expect("a folder");
        let helper = folder.path().join("helper");
        let key_for = |text: &str| {
            fs::write(&helper, text).expect("it is written");
            key(&Options {
                helper: helper.clone(),
                ..options()
            })
        };
        let first = key_for("1");
        assert!(first.is_some());
        assert_ne!(first, key_for("12"));
    }
}
