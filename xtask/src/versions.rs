//! Check that every manifest has the version of the workspace, and that the changelog has its
//! section.

use anyhow::{Context, Result, bail};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::changelog;
use crate::repository::Tree;

const WORKSPACE: &str = "Cargo.toml";
const LOCK: &str = "Cargo.lock";

/// Programs of users of third-party clients, which are not members of the workspace.
const FOREIGN: &str = "tests/clients/";

/// Page that lists the files of a release by name.
const PACKAGES: &str = "packages/README.md";

/// Placeholder that `packages/package.py` replaces by the version of the binary.
const PLACEHOLDER: &str = "$VERSION";

/// Returns the version of the workspace.
pub fn version(tree: &Tree) -> Result<String> {
    let manifest: Table = tree.text(WORKSPACE).unwrap_or_default().parse()?;
    let package = manifest.get("workspace").and_then(|it| it.get("package"));
    let version = package.and_then(|it| it.get("version"));
    let version = version.and_then(Value::as_str);
    let version = version.with_context(|| format!("{WORKSPACE} has no version"))?;
    Ok(version.to_owned())
}

/// Reports every manifest with another version, and a changelog without a section for it.
pub fn check(tree: &Tree) -> Vec<String> {
    let version = match version(tree) {
        Ok(version) => version,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut problems = Vec::new();
    let own = tree.texts().filter(|(path, _)| !path.starts_with(FOREIGN));
    for (path, text) in own {
        let result = match path.rsplit('/').next() {
            Some(WORKSPACE) => check_manifest(text),
            Some(LOCK) => check_lock(text, &version),
            Some("package.json") if path.starts_with("packages/") => check_npm(text, &version),
            _ if path == PACKAGES => check_names(text, &version),
            _ => Ok(()),
        };
        if let Err(error) = result {
            problems.push(format!("{path}: {error:#}"));
        }
    }
    if !changelog::has_release(tree, &version) {
        problems.push(format!(
            "CHANGELOG.md: no section `## {version}` with text; write what the version of \
             {WORKSPACE} contains"
        ));
    }
    problems
}

fn check_manifest(text: &str) -> Result<()> {
    let manifest: Table = text.parse()?;
    let Some(package) = manifest.get("package") else {
        return Ok(());
    };
    let inherited = package.get("version").and_then(|it| it.get("workspace"));
    if inherited.and_then(Value::as_bool) != Some(true) {
        bail!("the package has its own version; write `version.workspace = true`");
    }
    Ok(())
}

/// Packages without a source are those of the repository.
fn check_lock(text: &str, version: &str) -> Result<()> {
    let lock: Table = text.parse()?;
    let packages = lock.get("package").and_then(Value::as_array);
    let own = packages.into_iter().flatten();
    for package in own.filter(|it| it.get("source").is_none()) {
        let locked = package.get("version").and_then(Value::as_str);
        if locked != Some(version) {
            let name = package.get("name").and_then(Value::as_str);
            bail!(
                "`{}` is not locked at {version}; run `cargo update --workspace`",
                name.unwrap_or_default()
            );
        }
    }
    Ok(())
}

/// Checks the version of an npm package and of the packages that belong to it.
fn check_npm(text: &str, version: &str) -> Result<()> {
    let manifest: Json = serde_json::from_str(text)?;
    let needed = manifest["optionalDependencies"].as_object();
    let needed = needed.into_iter().flat_map(|it| it.values());
    for it in [&manifest["version"]].into_iter().chain(needed) {
        if *it != PLACEHOLDER && *it != version {
            bail!("{it} is not the version {version}; write `{PLACEHOLDER}`");
        }
    }
    Ok(())
}

/// Checks the version in the names of files, such as `raddle-0.1.0.tgz`.
fn check_names(text: &str, version: &str) -> Result<()> {
    for rest in text.split("raddle-").skip(1) {
        let rest = rest.strip_prefix("linux-x64-").unwrap_or(rest);
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.');
        let named = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
        if named.contains('.') && named != version {
            bail!("a file name has {named}, and the version is {version}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "crates/raddle/Cargo.toml";
    const NPM: &str = "packages/npm/raddle/package.json";

    const FILES: &[(&str, &str)] = &[
        (
            "Cargo.toml",
            "[workspace.package]\nversion = \"0.2.0\"\n[workspace.dependencies]\n",
        ),
        (
            MANIFEST,
            "[package]\nname = \"raddle\"\nversion.workspace = true\n",
        ),
        (
            "Cargo.lock",
            "[[package]]\nname = \"raddle\"\nversion = \"0.2.0\"\n\n[[package]]\nname = \"toml\"\n\
             version = \"1.1.8\"\nsource = \"registry\"\n",
        ),
        (
            NPM,
            r#"{"version": "$VERSION", "optionalDependencies": {"raddle-linux-x64": "$VERSION"}}"#,
        ),
        (
            PACKAGES,
            "`raddle-0.2.0-linux-x64.tar.gz`, `raddle-linux-x64-0.2.0.tgz`, raddle-0.2.0.\n",
        ),
        (
            "CHANGELOG.md",
            "# Changelog\n\n## Unreleased\n\nNothing yet.\n\n## 0.2.0\n\nWords.\n",
        ),
    ];

    #[test]
    fn one_version_everywhere_is_accepted() {
        assert_eq!(check(&Tree::of(FILES)), Vec::<String>::new());
    }

    #[test]
    fn every_other_version_is_reported() {
        for (path, old, new) in [
            // The workspace alone was changed: lock file, page and changelog are stale.
            ("Cargo.toml", "0.2.0", "0.3.0"),
            (MANIFEST, ".workspace = true", " = \"0.2.0\""),
            ("Cargo.lock", "\"0.2.0\"", "\"0.1.0\""),
            (NPM, ": \"$VERSION\",", ": \"0.1.0\","),
            (NPM, ": \"$VERSION\"}", ": \"0.1.0\"}"),
            (PACKAGES, "x64-0.2.0.tgz", "x64-0.1.0.tgz"),
            (PACKAGES, "raddle-0.2.0.\n", "raddle-0.1.0.\n"),
            ("CHANGELOG.md", "## 0.2.0", "## 0.1.0"),
            ("CHANGELOG.md", "Words.", ""),
        ] {
            let files: Vec<(&str, String)> = FILES
                .iter()
                .map(|(name, text)| {
                    let is_changed = *name == path;
                    let new = if is_changed { new } else { old };
                    (*name, text.replace(old, new))
                })
                .collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (*a, &**b)).collect();
            let reported = check(&Tree::of(&files));
            let expected = if path == "Cargo.toml" { 3 } else { 1 };
            assert_eq!(reported.len(), expected, "{path} {new}: {reported:?}");
        }
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
