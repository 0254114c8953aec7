//! A release as a dry run: builds and checks everything that would be published, and publishes
//! nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::{Cache, remove_folder};
use crate::repository::{self, Tree};
use crate::reproducible::CleanBuilds;
use crate::run::Run;
use crate::{changelog, packages, versions};

pub fn command(mut arguments: Arguments) -> Result<()> {
    let is_dry_run = arguments.flag("--dry-run");
    let tag = arguments.value("--tag")?;
    let out = arguments.value("--out")?.map(PathBuf::from);
    arguments.end()?;
    if !is_dry_run {
        bail!("there is no release key yet, so nothing can be published; pass --dry-run");
    }
    let root = repository::root()?;
    let out = match out {
        Some(path) => std::path::absolute(path)?,
        None => root.join("target/release-dry-run"),
    };
    let tree = Tree::read(&root)?;
    let version = checked_version(&tree, tag.as_deref())?;
    println!("the manifests and the changelog agree on {version}");
    if let Some(open) = open_fragments(&tree, &version) {
        println!("warning: {open}");
    }

    let cache = Cache::open()?;
    let _lock = cache.lock("ci")?;
    let builds = CleanBuilds::compare(&root, &cache)?;
    println!("two builds in two folders do not differ");
    let names = write_packages(&builds, &out)?;
    println!("two writings of the packages do not differ, and the checksums are right");
    builds.remove()?;

    let steps = publications(&version, &names)?;
    println!("\nNothing was published. A release of {version} would run, in this order:\n");
    for step in steps {
        println!("  {}\n    {}", step.command, step.reason);
    }
    println!("\nThe files are in {}", out.display());
    Ok(())
}

/// Returns the version to release. Fails if the tree is not ready for its release. Only a tag makes
/// a release: without one, fragments may be open.
fn checked_version(tree: &Tree, tag: Option<&str>) -> Result<String> {
    let version = versions::version(tree)?;
    let mut problems = versions::check(tree);
    if let Some(tag) = tag {
        if tag != format!("v{version}") {
            problems.push(format!("the tag is `{tag}`, not `v{version}`"));
        }
        problems.extend(open_fragments(tree, &version));
    }
    if !problems.is_empty() {
        bail!(
            "{version} is not ready for its release:\n  {}",
            problems.join("\n  ")
        );
    }
    Ok(version)
}

/// Describes the fragments that the section of the version does not contain yet.
fn open_fragments(tree: &Tree, version: &str) -> Option<String> {
    let paths: Vec<&str> = changelog::fragments(tree).map(|(path, _)| path).collect();
    let first = paths.first()?;
    Some(format!(
        "CHANGELOG.md describes a part of {version} as Unreleased (fragments in {}: {}, such as \
         {first}); move their text to its section, delete them, and run `cargo xtask changelog`",
        changelog::FOLDER,
        paths.len(),
    ))
}

/// Writes the packages twice, compares them, and verifies their checksums. Returns the names of the
/// files.
fn write_packages(builds: &CleanBuilds, out: &Path) -> Result<Vec<String>> {
    let again = out.with_extension("again");
    remove_folder(&again)?;
    for folder in [out, &again] {
        packages::write(&builds.source, &builds.binary, folder)?;
    }
    let files = read_folder(out)?;
    if files != read_folder(&again)? {
        bail!(
            "the packages in {} and {} differ",
            out.display(),
            again.display()
        );
    }
    remove_folder(&again)?;
    Run::new("sha256sum")
        .directory(out)
        .args(["--check", "--strict", "SHA256SUMS"])
        .go()?;
    Ok(files.into_keys().collect())
}

fn read_folder(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        files.insert(name.into_owned(), fs::read(&path)?);
    }
    Ok(files)
}

/// Step that publishes something.
#[derive(Debug, PartialEq, Eq)]
struct Publication {
    command: String,
    reason: &'static str,
}

/// Returns the steps in order. Every file must be published by one of them, and none be missing.
fn publications(version: &str, names: &[String]) -> Result<Vec<Publication>> {
    let mut rest: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut take = |is_it: &dyn Fn(&str) -> bool, what: &str| -> Result<String> {
        let at = rest.iter().position(|it| is_it(it));
        let at = at.with_context(|| format!("there is no {what} of {version}"))?;
        Ok(rest.remove(at).to_owned())
    };
    let carrier = format!("raddle-linux-x64-{version}.tgz");
    let carrier = take(&|it| it == carrier, "npm package with the binary")?;
    let launcher = format!("raddle-{version}.tgz");
    let launcher = take(&|it| it == launcher, "npm package")?;
    let wheel = format!("raddle-{version}-py3-none-");
    let wheel = take(
        &|it| it.starts_with(&wheel) && it.ends_with(".whl"),
        "Python wheel",
    )?;
    let archive = format!("raddle-{version}-linux-x64.tar.gz");
    let archive = take(&|it| it == archive, "archive")?;
    let debian = format!("raddle_{version}-1_amd64.deb");
    let debian = take(&|it| it == debian, "Debian package")?;
    let rpm = format!("raddle-{version}-1.x86_64.rpm");
    let rpm = take(&|it| it == rpm, "RPM package")?;
    let script = take(&|it| it == "install.sh", "install script")?;
    let formula = take(&|it| it == "raddle.rb", "Homebrew formula")?;
    let flake = take(&|it| it == "flake.nix", "Nix flake")?;
    let image = take(&|it| it == "Dockerfile", "Dockerfile")?;
    let sums = take(&|it| it == "SHA256SUMS", "list of checksums")?;
    if !rest.is_empty() {
        bail!("no step publishes {}", rest.join(", "));
    }
    let step = |command: String, reason: &'static str| Publication { command, reason };
    Ok(vec![
        step(
            "cargo xtask package --out FOLDER --url URL --sign KEY --minisign KEY".to_owned(),
            "the same files, signed, and with the address and the key of the release; those of the \
             dry run have neither, and are not for users",
        ),
        step(
            format!("npm publish {carrier}"),
            "first, because the package `raddle` depends on it",
        ),
        step(
            format!("npm publish {launcher}"),
            "the package that users install",
        ),
        step(
            format!("python3 -m twine upload {wheel}"),
            "the wheel, with the same binary",
        ),
        step(
            format!(
                "gh release create v{version} --verify-tag {archive} {debian} {rpm} {script} \
                 {formula} {flake} {image} {sums} {sums}.sig {sums}.minisig"
            ),
            "last, because it announces the others",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 11] = [
        "Dockerfile",
        "SHA256SUMS",
        "flake.nix",
        "install.sh",
        "raddle-0.1.0-1.x86_64.rpm",
        "raddle-0.1.0-linux-x64.tar.gz",
        "raddle-0.1.0-py3-none-manylinux_2_17_x86_64.whl",
        "raddle-0.1.0.tgz",
        "raddle-linux-x64-0.1.0.tgz",
        "raddle.rb",
        "raddle_0.1.0-1_amd64.deb",
    ];

    fn steps(names: &[&str]) -> Result<Vec<Publication>> {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        publications("0.1.0", &names)
    }

    #[test]
    fn a_package_is_published_after_its_dependency_and_the_announcement_last() {
        let steps = steps(&NAMES).expect("all files");
        let commands: Vec<&str> = steps.iter().map(|it| it.command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "cargo xtask package --out FOLDER --url URL --sign KEY --minisign KEY",
                "npm publish raddle-linux-x64-0.1.0.tgz",
                "npm publish raddle-0.1.0.tgz",
                "python3 -m twine upload raddle-0.1.0-py3-none-manylinux_2_17_x86_64.whl",
                "gh release create v0.1.0 --verify-tag raddle-0.1.0-linux-x64.tar.gz \
                 raddle_0.1.0-1_amd64.deb raddle-0.1.0-1.x86_64.rpm install.sh raddle.rb flake.nix \
                 Dockerfile SHA256SUMS SHA256SUMS.sig SHA256SUMS.minisig",
            ]
        );
    }

    #[test]
    fn missing_and_additional_files_are_errors() {
        for at in 0..NAMES.len() {
            let mut names = NAMES.to_vec();
            let name = names.remove(at);
            assert!(steps(&names).is_err(), "without {name}");
        }
        let mut names = NAMES.to_vec();
        names.push("raddle-0.0.9.tgz");
        let error = steps(&names).expect_err("it is of another version");
        assert!(error.to_string().contains("raddle-0.0.9.tgz"), "{error}");
    }

    #[test]
    fn only_a_tag_of_the_version_without_open_fragments_is_released() {
        let files = [
            ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"\n"),
            ("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\nWords.\n"),
            ("changes/README.md", "how to"),
        ];
        let version = |tag| checked_version(&Tree::of(&files), tag).ok();
        assert_eq!(version(None).as_deref(), Some("0.1.0"));
        assert_eq!(version(Some("v0.1.0")).as_deref(), Some("0.1.0"));
        assert_eq!(version(Some("v0.1.1")), None);
        assert_eq!(version(Some("0.1.0")), None);

        let mut files = files.to_vec();
        files.push(("changes/a.md", "added: something"));
        let tree = Tree::of(&files);
        let error = checked_version(&tree, Some("v0.1.0")).expect_err("an open fragment");
        assert!(error.to_string().contains("changes/a.md"), "{error}");
        // Without a tag it is a warning.
        assert_eq!(checked_version(&tree, None).ok().as_deref(), Some("0.1.0"));
        let warning = open_fragments(&tree, "0.1.0").expect("an open fragment");
        assert!(warning.contains("changes/a.md"), "{warning}");
    }
}
