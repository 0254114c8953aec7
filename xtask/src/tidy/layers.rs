//! Check that crates depend on each other only as the `layers` block of ARCHITECTURE.md allows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::numbered;
use crate::repository::{Tree, cargo};

const FILE: &str = "ARCHITECTURE.md";
const OPEN: &str = "```layers";
const CLOSE: &str = "```";

/// A crate of the workspace and its dependencies in the workspace.
pub struct Package {
    pub name: String,
    pub depends_on: BTreeSet<String>,
    /// Dependencies that only its tests need.
    pub tests_need: BTreeSet<String>,
}

/// Reads the crates from cargo without resolving dependencies, so this works in a broken workspace
/// too.
pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let text = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()?;
    let metadata: Value = serde_json::from_str(&text).context("the answer of cargo metadata")?;
    Ok(from_metadata(&metadata))
}

fn from_metadata(metadata: &Value) -> Vec<Package> {
    let packages = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    packages
        .iter()
        .map(|package| {
            // Normal, dev and build dependencies are in one list.
            let below = |for_tests: bool| {
                let all = package["dependencies"].as_array().into_iter().flatten();
                all.filter(|it| (it["kind"] == "dev") == for_tests)
                    .map(name)
                    .filter(|it| ours.contains(it) && *it != name(package))
                    .collect()
            };
            Package {
                name: name(package),
                depends_on: below(false),
                tests_need: below(true),
            }
        })
        .collect()
}

pub fn check(tree: &Tree, packages: &[Package]) -> Vec<String> {
    let Some(text) = tree.text(FILE) else {
        return vec![format!(
            "{FILE} is missing; it holds the {OPEN} block with the arrows"
        )];
    };
    let layers = match parse(text) {
        Ok(layers) => layers,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    for package in packages {
        let allowed = layers.get(&package.name);
        let allowed_for_tests = format!("{}{TESTS}", package.name);
        let allowed_for_tests = layers.get(&allowed_for_tests);
        let dependencies = package.depends_on.iter().map(|it| (it, false));
        for (below, for_tests) in dependencies.chain(package.tests_need.iter().map(|it| (it, true)))
        {
            let has = |list: Option<&BTreeSet<String>>| list.is_some_and(|it| it.contains(below));
            if !(has(allowed) || for_tests && has(allowed_for_tests)) {
                problems.push(format!(
                    "{0} depends on {below}, but {FILE} has no such arrow; drop the \
                     dependency, or add `{below}` to the line `{0}:` of the {OPEN} block in a \
                     change of its own",
                    package.name
                ));
            }
        }
    }
    let named: BTreeSet<&String> = layers
        .iter()
        .flat_map(|(it, below)| below.iter().chain([it]))
        .collect();
    for name in named {
        let name = name.strip_suffix(TESTS).unwrap_or(name);
        if !packages.iter().any(|package| package.name == name) {
            problems.push(format!(
                "the {OPEN} block of {FILE} names {name}, but the workspace has no such crate; \
                 take it out or mend its name"
            ));
        }
    }
    problems
}

/// Suffix of a crate name in a line with the arrows of its tests only.
const TESTS: &str = " (tests)";

type Layers = BTreeMap<String, BTreeSet<String>>;

/// Parses one crate per line: `name: below below`, or `name:` for one without our dependencies.
fn parse(text: &str) -> Result<Layers, String> {
    let mut lines = numbered(text).skip_while(|(_, line)| line.trim() != OPEN);
    if lines.next().is_none() {
        return Err(format!(
            "{FILE} has no {OPEN} block; write one with a line `crate: crate crate` per crate"
        ));
    }
    let mut layers = Layers::new();
    for (number, line) in lines {
        let line = line.trim();
        if line == CLOSE {
            return Ok(layers);
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, below)) = line.split_once(':') else {
            return Err(format!(
                "{FILE}:{number}: `{line}` is not of the form `crate: crate crate`"
            ));
        };
        let below = below.split_whitespace().map(str::to_owned);
        layers.entry(name.to_owned()).or_default().extend(below);
    }
    Err(format!("the {OPEN} block of {FILE} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, depends_on: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            depends_on: depends_on.iter().map(|it| (*it).to_owned()).collect(),
            tests_need: BTreeSet::new(),
        }
    }

    #[test]
    fn tests_may_have_arrows_of_their_own() {
        let mut a = package("a", &[]);
        a.tests_need.insert("b".to_owned());
        let packages = [a, package("b", &[])];
        assert!(problems("a:\na (tests): b\nb:", &packages).is_empty());
        assert!(problems("a: b\nb:", &packages).is_empty());
        assert_eq!(problems("a:\nb:", &packages).len(), 1);
        let product = [package("a", &["b"]), package("b", &[])];
        assert_eq!(problems("a:\na (tests): b\nb:", &product).len(), 1);
    }

    fn problems(block: &str, packages: &[Package]) -> Vec<String> {
        let text = format!("# Architecture\n\n```layers\n{block}\n```\n");
        check(&Tree::of(&[("ARCHITECTURE.md", &text)]), packages)
    }

    #[test]
    fn listed_dependencies_are_accepted() {
        let packages = [
            package("a", &["b", "c"]),
            package("b", &[]),
            package("c", &["b"]),
        ];
        assert!(problems("a: b c\n# Words.\n\nb:\nc: b", &packages).is_empty());
    }

    #[test]
    fn unlisted_dependency_is_reported() {
        let packages = [package("a", &["b"]), package("b", &["a"])];
        let reported = problems("a: b\nb:", &packages);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].starts_with("b depends on a"), "{reported:?}");
    }

    #[test]
    fn missing_listed_crate_is_reported() {
        let reported = problems("a: gone", &[package("a", &[])]);
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("names gone"), "{reported:?}");
    }

    #[test]
    fn a_block_that_cannot_be_read_is_a_problem() {
        let packages = [package("a", &[])];
        assert_eq!(check(&Tree::of(&[]), &packages).len(), 1);
        assert_eq!(
            check(&Tree::of(&[("ARCHITECTURE.md", "no block")]), &packages).len(),
            1
        );
        assert_eq!(
            check(
                &Tree::of(&[("ARCHITECTURE.md", "```layers\na:")]),
                &packages
            )
            .len(),
            1
        );
        assert_eq!(problems("a depends on b", &packages).len(), 1);
    }

    #[test]
    fn metadata_gives_arrows_of_every_kind_and_only_ours() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "dependencies": [
                {"name": "b", "kind": "dev"},
                {"name": "c", "kind": null},
                {"name": "serde", "kind": null},
            ]},
            {"name": "b", "dependencies": []},
            {"name": "c", "dependencies": [{"name": "b", "kind": "build"}]},
        ]});
        let described: Vec<String> = from_metadata(&metadata)
            .iter()
            .flat_map(|it| {
                it.depends_on
                    .iter()
                    .chain(&it.tests_need)
                    .map(move |below| format!("{}>{below}", it.name))
            })
            .collect();
        assert_eq!(described, ["a>c", "a>b", "c>b"]);
    }
}
