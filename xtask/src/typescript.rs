//! The generated TypeScript types under the strict compiler, together with code that uses them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cache::{Cache, remove_folder};
use crate::parts;
use crate::run::Run;

const SOURCE: &str = "tests/typescript";
const FILES: &[&str] = &["tsconfig.json", "usage.ts"];

/// What clients may ask for: the types as they are, and those with the experimental ones.
const SETS: &[(&str, &[&str])] = &[("stable", &[]), ("experimental", &["--experimental"])];

/// Has the binary write each set beside the code that uses it, and compiles the two.
pub fn run(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    for (name, words) in SETS {
        let folder = cache.target().join("typescript").join(name);
        // A type that is gone must not live on from an earlier run.
        remove_folder(&folder)?;
        fs::create_dir_all(&folder)?;
        for file in FILES {
            let from = root.join(SOURCE).join(file);
            fs::copy(&from, folder.join(file))
                .with_context(|| format!("cannot copy {}", from.display()))?;
        }
        Run::new(raddle)
            .args(["app-server", "generate-ts", "--out"])
            .arg(folder.join("types"))
            .args(*words)
            .minutes(1)
            .go()?;
        parts::typescript(cache)
            .arg("--project")
            .arg(&folder)
            .minutes(5)
            .go()
            .with_context(|| {
                format!("the {name} types, as `generate-ts` writes them, do not fit {SOURCE}")
            })?;
    }
    Ok(())
}
