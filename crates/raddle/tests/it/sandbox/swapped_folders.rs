//! Files in a workspace can be replaced while a sandbox is set up, by a concurrent command.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use raddle_sandbox::{
    ConfinedLaunch, Launch, Policy, SandboxHost, SandboxRules, Tier, find_bubblewrap,
};
use tempfile::TempDir;

/// A workspace with a repository in it, and another repository beside it, which is out of bounds.
struct RepositoryFixture(TempDir);

impl RepositoryFixture {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        for path in ["work/package/.git", "work/empty", "other/.git"] {
            fs::create_dir_all(folder.path().join(path)).expect("it is made");
            fs::write(folder.path().join(path).join("file"), "").expect("it is written");
        }
        Self(folder)
    }

    fn path(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.0.path())
            .expect("it is there")
            .join(path)
    }

    fn confine(&self, tier: Tier, script: &str) -> ConfinedLaunch {
        let bubblewrap = find_bubblewrap(None, None).expect("bubblewrap");
        let sandbox = SandboxHost::new(tier, bubblewrap, env!("CARGO_BIN_EXE_raddle").into());
        let launch = Launch {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: self.path("work"),
            env: Vec::new(),
        };
        let mut rules = SandboxRules::workspace_write(vec![self.path("work")]);
        if tier == Tier::B {
            rules.protected.clear();
        }
        sandbox
            .wrap(launch, &Policy::Confined(rules))
            .expect("it is sandboxed")
    }
}

fn run(confined: &ConfinedLaunch) -> Output {
    let launch = &confined.launch;
    Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().cloned())
        .current_dir(&launch.cwd)
        .output()
        .expect("it starts")
}

/// Replaces a folder by a link, or by another folder.
fn exchange(folder: &Path, link: Option<&str>) {
    let away = folder.with_file_name("away");
    fs::rename(folder, away).expect("it is moved");
    match link {
        Some(target) => symlink(target, folder).expect("it is linked"),
        None => fs::create_dir_all(folder.join(".git")).expect("it is made"),
    }
}

#[test]
fn a_folder_replaced_during_sandbox_setup_opens_nothing() {
    let package = "work/package";
    for (tier, folder, link) in [
        (Tier::A, package, Some("../other")),
        (Tier::A, package, Some("empty")),
        (Tier::A, package, None),
        (Tier::A, "work", Some("other")),
        (Tier::B, "work", Some("other")),
        (Tier::B, "work", None),
    ] {
        let fixture = RepositoryFixture::new();
        let other = fixture.path("other/mark");
        let script = format!("echo ran; echo x > {}; echo x > mark", other.display());
        let confined = fixture.confine(tier, &script);
        exchange(&fixture.path(folder), link);
        let output = run(&confined);
        let at = format!("{tier:?} {folder} {link:?}: {output:?}");
        assert!(!other.exists(), "it leads outside: {at}");
        assert!(output.stdout.is_empty() && !output.status.success(), "{at}");
    }
    for tier in [Tier::A, Tier::B] {
        let output = run(&RepositoryFixture::new().confine(tier, "echo ran > mark; cat mark"));
        assert_eq!(output.stdout, b"ran\n", "{output:?}");
    }
}
