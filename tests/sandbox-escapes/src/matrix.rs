//! Every attempt in every arm, compared with the promises.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use raddle_sandbox::attempt::Attempt;
use raddle_sandbox::{Options, find_bubblewrap, measure};

use crate::arm::Arm;
use crate::attempts;
use crate::host::CANARY;

/// Percentage of the attempts that must succeed without a sandbox.
const CONTROL_PERCENT_MIN: usize = 90;

/// Attempts that succeed when everything may be read and there is network, because it was granted.
const GRANTED: &[&str] = &[
    "read-unlisted",
    "list-outside",
    "tcp-to-host",
    "udp-to-host",
    "mptcp-to-host",
    "fast-open-to-host",
];

/// Attempts that succeed when the folder around the workspace can be written.
const WRITABLE_PARENT: &[&str] = &[
    "write-outside",
    "write-through-link",
    "chmod-outside",
    "read-unlisted",
    "truncate-outside",
    "append-outside",
    "unlink-outside",
    "mkdir-outside",
    "write-by-dots",
    "write-by-own-root",
    "list-outside",
    "touch-outside",
    "xattr-outside",
];

/// A user without any rights, on every Linux.
const NOBODY: &str = "65534";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Root,
    Plain,
}

impl User {
    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Plain => "user",
        }
    }
}

/// One arm as one user, and the outcome of each attempt: `None` if it succeeded.
struct Column {
    arm: Arm,
    user: User,
    outcomes: Outcomes,
    /// Ordinary work that could not be done.
    failed_work: Vec<String>,
}

impl Column {
    fn is_open(&self, attempt: &Attempt) -> bool {
        self.outcomes.get(attempt.name).is_some_and(Option::is_none)
    }

    fn title(&self) -> String {
        let arm = match self.arm {
            Arm::A => "A",
            Arm::Granted => "A+",
            Arm::Around => "A~",
            Arm::Old => "A-",
            Arm::B => "B",
            Arm::Usual => "usual",
            Arm::Open => "none",
        };
        format!("{arm} {}", self.user.name())
    }
}

pub fn run() -> Result<bool> {
    let bubblewrap = find_bubblewrap(None, None)
        .context("without bubblewrap there is no first tier to try; install it")?;
    // Readable for every user, unlike the folder that it was built in.
    let home = tempfile::Builder::new()
        .prefix("sandbox-escapes-")
        .tempdir()?;
    fs::set_permissions(home.path(), Permissions::from_mode(0o755))?;
    let program = home.path().join("sandbox-escapes");
    fs::copy(std::env::current_exe()?, &program)?;

    let measurement = measure(&Options {
        helper: program.clone(),
        bubblewrap: Ok(bubblewrap.clone()),
        scratch: home.path().to_owned(),
        cache: None,
    });
    println!(
        "measured: tier {}, Landlock {}",
        measurement.sandbox.tier().letter(),
        measurement.landlock
    );
    for why in &measurement.short_of {
        println!("  not stronger: {why}");
    }

    let users: &[User] = match rustix::process::geteuid().is_root() {
        true => &[User::Root, User::Plain],
        false => &[User::Plain],
    };
    let mut columns = Vec::new();
    for arm in [
        Arm::A,
        Arm::Granted,
        Arm::Around,
        Arm::Old,
        Arm::B,
        Arm::Usual,
        Arm::Open,
    ] {
        let start = |user: &User| ArmStart {
            arm,
            user: *user,
            program: &program,
            bubblewrap: &bubblewrap,
            home: home.path(),
        };
        // The users do not interfere, so they run at the same time.
        let both: Vec<Result<Column>> = std::thread::scope(|scope| {
            let running: Vec<_> = users
                .iter()
                .map(|user| scope.spawn(move || start(user).column()))
                .collect();
            running
                .into_iter()
                .map(|it| it.join().unwrap_or_else(|_| bail!("an arm panicked")))
                .collect()
        });
        for column in both {
            columns.push(column?);
        }
    }
    print_table(&columns);
    let is_ok = judge(&columns, measurement.landlock);
    if users.len() < 2 {
        println!("not tried as root: only root can");
    }
    Ok(is_ok)
}

struct ArmStart<'a> {
    arm: Arm,
    user: User,
    program: &'a Path,
    bubblewrap: &'a Path,
    home: &'a Path,
}

impl ArmStart<'_> {
    fn column(&self) -> Result<Column> {
        let scratch = self.scratch()?;
        let mut words: Vec<OsString> = Vec::new();
        if self.user == User::Plain && rustix::process::geteuid().is_root() {
            words.extend(
                [
                    "setpriv",
                    "--reuid",
                    NOBODY,
                    "--regid",
                    NOBODY,
                    "--clear-groups",
                    "--",
                ]
                .map(Into::into),
            );
        }
        let mut program = self.program.to_owned();
        if self.arm == Arm::Open {
            words.extend(self.private());
            program = "/tmp/sandbox-escapes".into();
        }
        words.push(program.into());
        let arm = self
            .arm
            .to_possible_value()
            .context("every arm has a name")?;
        words.extend([
            "arm".into(),
            arm.get_name().into(),
            self.bubblewrap.into(),
            scratch.into(),
        ]);
        let output = Command::new(&words[0])
            .args(&words[1..])
            .env("RADDLE_ESCAPES_SECRET", CANARY)
            .current_dir("/")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("{} does not start", words[0].display()))?;
        if !output.status.success() {
            bail!(
                "the arm {:?} as {} broke off: {}",
                self.arm,
                self.user.name(),
                output.status
            );
        }
        let (outcomes, failed_work) = parse(&String::from_utf8(output.stdout)?)?;
        Ok(Column {
            arm: self.arm,
            user: self.user,
            outcomes,
            failed_work,
        })
    }

    fn scratch(&self) -> Result<PathBuf> {
        // Without a sandbox it has a `/tmp` of its own.
        if self.arm == Arm::Open {
            return Ok("/tmp".into());
        }
        let scratch = self
            .home
            .join(format!("{:?}-{}", self.arm, self.user.name()));
        fs::create_dir(&scratch)?;
        fs::set_permissions(&scratch, Permissions::from_mode(0o777))?;
        Ok(scratch)
    }

    /// Returns a bubblewrap command that contains the damage of attempts without a sandbox, because
    /// they succeed: the disk is read-only, and `/tmp`, the network, processes and devices are
    /// private.
    fn private(&self) -> Vec<OsString> {
        let mut words = vec![self.bubblewrap.as_os_str().to_owned()];
        words.extend(
            [
                "--unshare-user",
                "--unshare-pid",
                "--unshare-net",
                "--unshare-ipc",
                "--unshare-uts",
                "--die-with-parent",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                "--tmpfs",
                "/tmp",
                "--ro-bind",
            ]
            .map(OsString::from),
        );
        words.extend([
            self.program.into(),
            "/tmp/sandbox-escapes".into(),
            "--".into(),
        ]);
        words
    }
}

type Outcomes = BTreeMap<String, Option<String>>;

fn parse(text: &str) -> Result<(Outcomes, Vec<String>)> {
    let (mut outcomes, mut failed_work) = (Outcomes::new(), Vec::new());
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("idle ") {
            failed_work.push(line.to_owned());
            continue;
        }
        let mut words = line.splitn(3, ' ');
        let (verdict, name) = (words.next(), words.next().context("a name")?);
        let outcome = match verdict {
            Some("open") => None,
            Some("held") => Some(words.next().unwrap_or_default().to_owned()),
            _ => bail!("this is no outcome: {line}"),
        };
        outcomes.insert(name.to_owned(), outcome);
    }
    ensure!(
        outcomes.len() == attempts::all().count(),
        "an arm did not make every attempt"
    );
    Ok((outcomes, failed_work))
}

fn print_table(columns: &[Column]) {
    print!("\n{:<32}", "attempt");
    for column in columns {
        print!("{:>11}", column.title());
    }
    println!();
    for attempt in attempts::all() {
        print!("{:<32}", attempt.name);
        for column in columns {
            print!("{:>11}", if column.is_open(attempt) { "open" } else { "." });
        }
        println!();
    }
    print!("{:<32}", format!("open, of {}", attempts::all().count()));
    for column in columns {
        print!(
            "{:>11}",
            attempts::all().filter(|it| column.is_open(it)).count()
        );
    }
    println!("\n");
}

/// Prints every promise that does not hold.
fn judge(columns: &[Column], landlock: i64) -> bool {
    let mut is_ok = true;
    let mut miss = |line: String| {
        println!("MISSED {line}");
        is_ok = false;
    };
    for column in columns {
        for work in &column.failed_work {
            miss(format!(
                "{}: ordinary work could not be done: {work}",
                column.title()
            ));
        }
        match column.arm {
            Arm::A | Arm::Old => judge_each(column, |_| true, &mut miss),
            Arm::Granted => judge_each(column, |it| !GRANTED.contains(&it.name), &mut miss),
            Arm::Around => judge_each(column, |it| !WRITABLE_PARENT.contains(&it.name), &mut miss),
            Arm::B => judge_each(column, |it| it.second_tier.stops(landlock), &mut miss),
            // For comparison only.
            Arm::Usual => {}
            Arm::Open => {
                let open = attempts::all().filter(|it| column.is_open(it)).count();
                let (title, all) = (column.title(), attempts::all().count());
                if open * 100 < all * CONTROL_PERCENT_MIN {
                    miss(format!(
                        "{title}: only {open} of {all} succeeded without a sandbox"
                    ));
                }
            }
        }
    }
    if is_ok {
        println!(
            "figure: {} attempts, every arm is as promised",
            attempts::all().count()
        );
    }
    is_ok
}

/// Compares each outcome. The promises must be exact: an unexpected success of the sandbox is
/// reported too.
fn judge_each(column: &Column, promised: impl Fn(&Attempt) -> bool, miss: &mut impl FnMut(String)) {
    let word = |held| if held { "held" } else { "open" };
    for attempt in attempts::all() {
        let (is_held, is_promised) = (!column.is_open(attempt), promised(attempt));
        if is_held != is_promised {
            let (title, name) = (column.title(), attempt.name);
            miss(format!(
                "{title}: {name} is {}, and said to be {}",
                word(is_held),
                word(is_promised)
            ));
        }
    }
}
