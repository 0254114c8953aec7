use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use raddle_tools::files::{Roots, WriteFile};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::TestWorkspace;

const CANARY: &str = "nobody writes here\n";

/// Returns how often a file is written while links are exchanged. `RADDLE_RACE_ROUNDS` overrides
/// it.
fn rounds() -> u64 {
    let variable = std::env::var("RADDLE_RACE_ROUNDS").ok();
    variable.map_or(5_000, |it| it.parse().expect("a number"))
}

/// Writes a file repeatedly while another thread exchanges two paths, one of which leads outside.
fn race(world: &TestWorkspace, roots: &Roots, file: &str, flipped: (&str, &str)) {
    let outside = world.folder.path().join("outside");
    let (is_over, flips) = (AtomicBool::new(false), AtomicU64::new(0));
    let (one, other) = (world.work.join(flipped.0), world.work.join(flipped.1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).is_ok() {
                    flips.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for round in 0..rounds() {
            // Planned as often as written, so that a link is met at every step.
            let write = WriteFile {
                path: file.to_owned(),
                content: format!("{round}\n"),
            };
            match write.plan(roots) {
                Ok(planned) if !planned.is_beyond() => drop(planned.apply(roots)),
                _ => {}
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(flips.into_inner() > 0, "nothing was ever exchanged");
    assert_untouched(&outside);
}

fn assert_untouched(outside: &Path) {
    let entries = fs::read_dir(outside).expect("a folder");
    let names: Vec<_> = entries
        .map(|it| it.expect("an entry").file_name())
        .collect();
    assert_eq!(names, ["a.txt"], "something was made outside");
    let canary = fs::read_to_string(outside.join("a.txt")).expect("the canary");
    assert_eq!(canary, CANARY, "something was written outside");
}

fn world() -> TestWorkspace {
    let world = TestWorkspace::new();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("a.txt"), CANARY).expect("a canary");
    world
}

/// A file is exchanged with a link to a file outside.
#[test]
fn symlink_race_for_a_file() {
    for kernel in [|it| it, Roots::on_an_older_kernel] {
        let world = world();
        world.write("a.txt", "first\n");
        let outside = world.folder.path().join("outside/a.txt");
        symlink(outside, world.work.join("b.txt")).expect("a link");
        race(&world, &kernel(world.roots()), "a.txt", ("a.txt", "b.txt"));
    }
}

/// The parent folder is exchanged with a link to a folder outside.
#[test]
fn symlink_race_for_a_folder() {
    for kernel in [|it| it, Roots::on_an_older_kernel] {
        for file in ["x/a.txt", "x/new.txt"] {
            let world = world();
            world.write("x/a.txt", "first\n");
            let outside = world.folder.path().join("outside");
            symlink(outside, world.work.join("y")).expect("a link");
            race(&world, &kernel(world.roots()), file, ("x", "y"));
        }
    }
}
