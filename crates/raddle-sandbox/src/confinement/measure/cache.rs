//! What was found earlier, in a small file of lines. Anything odd in it is no answer.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{Finding, Measurement, Options, sandbox_host};
use crate::confinement::Tier;
use crate::confinement::attempt::CORE;

const FIRST: &str = "raddle fence 1";

/// What the findings depend on; none if that cannot be known.
pub(super) fn key(options: &Options) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let bubblewrap = match &options.bubblewrap {
        Ok(file) => identity(file)?,
        // Why there is none is among what is kept.
        Err(why) => format!("none ({why})").replace('\n', " "),
    };
    // May be switched while the machine runs.
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

/// A file that is written anew gets another one of these.
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

pub(super) fn write(file: &Path, key: &str, found: &Measurement) -> io::Result<()> {
    let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    let whole = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(whole.path(), text(key, found))?;
    whole.persist(file)?;
    Ok(())
}

fn text(key: &str, found: &Measurement) -> String {
    let mut text = format!(
        "{FIRST}\nkey {key}\ntier {}\nlandlock {}\n",
        found.sandbox.tier().letter(),
        found.landlock
    );
    for finding in &found.findings {
        let verdict = if finding.stopped { "held" } else { "open" };
        text.push_str(&format!("{verdict} {}\n", finding.attempt.name));
    }
    for why in &found.short_of {
        text.push_str(&format!("short {}\n", why.replace('\n', " ")));
    }
    text
}

pub(super) fn read(file: &Path, key: &str, options: &Options) -> Option<Measurement> {
    parse(&fs::read_to_string(file).ok()?, key, options)
}

fn parse(text: &str, key: &str, options: &Options) -> Option<Measurement> {
    let mut lines = text.lines();
    if lines.next()? != FIRST || lines.next()?.strip_prefix("key ")? != key {
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
    fn what_was_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("state/fence");
        write(&file, "k 1", &measured()).expect("it is written");
        let read = read(&file, "k 1", &options()).expect("it is read");
        assert!(read.cached);
        assert_eq!((read.sandbox.tier(), read.landlock), (Tier::B, 7));
        assert_eq!(read.short_of, ["bubblewrap is not installed"]);
        let held = |of: &Measurement| of.findings.iter().map(|it| it.stopped).collect::<Vec<_>>();
        assert_eq!(held(&read), held(&measured()));
    }

    #[test]
    fn another_machine_or_anything_odd_is_no_answer() {
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
        let of = |text: &str| {
            fs::write(&helper, text).expect("it is written");
            key(&Options {
                helper: helper.clone(),
                ..options()
            })
        };
        let first = of("1");
        assert!(first.is_some());
        assert_ne!(first, of("12"));
    }
}
