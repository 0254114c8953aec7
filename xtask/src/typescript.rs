//! Check of the generated TypeScript types with the strict compiler, together with code that uses
//! them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cache::{Cache, remove_folder};
use crate::parts;
use crate::run::Run;

const SOURCE: &str = "tests/typescript";
const FILES: &[&str] = &["tsconfig.json", "usage.ts"];

/// Sets of types that clients can generate: the stable ones, and those with experimental types.
const SETS: &[(&str, &[&str])] = &[("stable", &[]), ("experimental", &["--experimental"])];

/// Generates each set beside the code that uses it, and compiles both.
pub fn run(root: &Path, cache: &Cache, raddle: &Path) -> Result<()> {
    for (name, words) in SETS {
        let folder = cache.target().join("typescript").join(name);
        // A removed type must not survive from an earlier run.
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
