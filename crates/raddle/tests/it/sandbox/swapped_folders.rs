//! What lies in a workspace can be exchanged while a fence is built: by a command that runs beside it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use raddle_sandbox::{
    ConfinedLaunch, Launch, Policy, SandboxHost, SandboxRules, Tier, find_bubblewrap,
};
use tempfile::TempDir;

/// A workspace with a repository in it, and another repository beside it that is nobody's business.
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

    fn fenced(&self, tier: Tier, script: &str) -> ConfinedLaunch {
        let bubblewrap = find_bubblewrap(None, None).expect("bubblewrap");
        let fence = SandboxHost::new(tier, bubblewrap, env!("CARGO_BIN_EXE_raddle").into());
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
        fence
            .wrap(launch, &Policy::Confined(rules))
            .expect("it is fenced")
    }
}

fn run(fenced: &ConfinedLaunch) -> Output {
    let launch = &fenced.launch;
    Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().cloned())
        .current_dir(&launch.cwd)
        .output()
        .expect("it starts")
}

/// Puts a link, or another folder, where this one was.
fn exchange(folder: &Path, link: Option<&str>) {
    let away = folder.with_file_name("away");
    fs::rename(folder, away).expect("it is moved");
    match link {
        Some(target) => symlink(target, folder).expect("it is linked"),
        None => fs::create_dir_all(folder.join(".git")).expect("it is made"),
    }
}

#[test]
fn a_folder_that_is_exchanged_while_the_fence_is_built_opens_nothing() {
    let package = "work/package";
    for (tier, folder, link) in [
        (Tier::A, package, Some("../other")),
        (Tier::A, package, Some("empty")),
        (Tier::A, package, None),
        (Tier::A, "work", Some("other")),
        (Tier::B, "work", Some("other")),
        (Tier::B, "work", None),
    ] {
        let ground = RepositoryFixture::new();
        let other = ground.path("other/mark");
        let script = format!("echo ran; echo x > {}; echo x > mark", other.display());
        let fenced = ground.fenced(tier, &script);
        exchange(&ground.path(folder), link);
        let ran = run(&fenced);
        let at = format!("{tier:?} {folder} {link:?}: {ran:?}");
        assert!(!other.exists(), "it leads outside: {at}");
        assert!(ran.stdout.is_empty() && !ran.status.success(), "{at}");
    }
    for tier in [Tier::A, Tier::B] {
        let ran = run(&RepositoryFixture::new().fenced(tier, "echo ran > mark; cat mark"));
        assert_eq!(ran.stdout, b"ran\n", "{ran:?}");
    }
}
