//! Import cycles: in each crate, no more than three modules import each other in a circle.
//!
//! A module is a file. An import is a `use`, or a path that begins with `crate`, `super`, `self`,
//! the name of a submodule or a name that a `use` imports. It counts for the module that defines
//! the name, also where the name comes through a re-export. A glob counts for the modules that
//! define the capitalised names of the file. A module contains its submodules, so its imports from
//! them are no part of a cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::{code_lines, is_product_code, without_tests};
use crate::repository::Tree;

/// The longest cycle that is allowed, in modules.
const MODULES_MAX: usize = 3;

type ModulePath = Vec<String>;

pub fn check(tree: &Tree) -> Vec<String> {
    let mut crates: BTreeMap<&str, BTreeMap<ModulePath, String>> = BTreeMap::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_product_code(path)) {
        let stem = path.trim_start_matches("crates/").trim_end_matches(".rs");
        let Some((name, stem)) = stem.split_once("/src/") else {
            continue;
        };
        let module = match stem {
            "lib" | "main" => Vec::new(),
            _ => stem.split('/').map(str::to_owned).collect(),
        };
        crates.entry(name).or_default().insert(module, code(text));
    }
    let problems = crates.into_iter().flat_map(|(name, texts)| {
        let cycles = Modules::new(texts).cycles();
        let cycles = cycles.into_iter().filter(|it| it.len() > MODULES_MAX);
        cycles.map(move |cycle| {
            let modules: Vec<String> = cycle.iter().map(|it| display(it)).collect();
            format!(
                "{} modules of {name} import each other in a circle: {}; move what they share into one of its own",
                cycle.len(),
                modules.join(", ")
            )
        })
    });
    problems.collect()
}

/// The code of a file without comments, strings and its unit tests.
fn code(text: &str) -> String {
    let mut code = String::new();
    for (_, line) in code_lines(without_tests(text)) {
        let line = line.split("//").next().unwrap_or_default();
        // Every second part is inside a string.
        let parts = line.split('"').step_by(2);
        code.extend(parts.flat_map(|it| [it, " "]));
        code.push('\n');
    }
    code
}

fn display(module: &[String]) -> String {
    match module {
        [] => "lib".to_owned(),
        _ => module.join("/"),
    }
}

/// A path of an import, and whether it is a re-export.
struct ImportPath {
    is_public: bool,
    /// The name that the import defines; `*` for a glob.
    name: String,
    segments: Vec<String>,
}

impl ImportPath {
    /// The path whose names a glob imports.
    fn glob(&self) -> Option<&[String]> {
        let (last, path) = self.segments.split_last()?;
        (last == "*").then_some(path)
    }
}

/// Names of modules that a search has visited; re-exports may form a circle.
type Visited = BTreeSet<(ModulePath, String)>;

struct Modules {
    imports: BTreeMap<ModulePath, Vec<ImportPath>>,
    /// Names that each module defines.
    names: BTreeMap<ModulePath, BTreeSet<String>>,
    /// Paths in the code of each module outside `use`.
    paths: BTreeMap<ModulePath, Vec<Vec<String>>>,
    /// Capitalised names in the code of each module outside `use`.
    types: BTreeMap<ModulePath, BTreeSet<String>>,
}

impl Modules {
    fn new(texts: BTreeMap<ModulePath, String>) -> Self {
        let mut modules = Self {
            imports: BTreeMap::new(),
            names: BTreeMap::new(),
            paths: BTreeMap::new(),
            types: BTreeMap::new(),
        };
        for (module, text) in texts {
            let words = words(&text);
            let (imports, rest) = split_imports(&words);
            modules.names.insert(module.clone(), defined(&rest));
            modules.paths.insert(module.clone(), inline_paths(&rest));
            modules.types.insert(module.clone(), type_names(&rest));
            modules.imports.insert(module, imports);
        }
        modules
    }

    /// The module that defines what a path in a module names.
    fn resolve(
        &self,
        from: &[String],
        path: &[String],
        visited: &mut Visited,
    ) -> Option<ModulePath> {
        let (at, rest) = self.walk(from, path, visited)?;
        let Some(name) = rest.first() else {
            return Some(at);
        };
        // The names that a glob imports are counted one by one.
        if name == "*" || !self.names.contains_key(&at) {
            return None;
        }
        let found = self.find(&at, name, visited);
        Some(found.unwrap_or(at))
    }

    /// The last module of a path in a module, and the names that follow it.
    fn walk(
        &self,
        from: &[String],
        path: &[String],
        visited: &mut Visited,
    ) -> Option<(ModulePath, Vec<String>)> {
        let mut at: ModulePath = from.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => {
                at.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|it| it == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            first if self.imports.contains_key(&child(&at, first)) => {}
            first => {
                if !visited.insert((at, first.to_owned())) {
                    return None;
                }
                let mut imports = self.imports[from].iter().filter(|it| it.name == first);
                return imports.find_map(|it| {
                    let path = [&it.segments[..], &rest[1..]].concat();
                    self.walk(from, &path, visited)
                });
            }
        }
        while let Some(first) = rest.first() {
            let next = child(&at, first);
            if !self.imports.contains_key(&next) {
                break;
            }
            at = next;
            rest = &rest[1..];
        }
        Some((at, rest.to_vec()))
    }

    /// The module that defines a name of this module.
    fn find(&self, at: &[String], name: &str, visited: &mut Visited) -> Option<ModulePath> {
        if self.names.get(at)?.contains(name) {
            return Some(at.to_vec());
        }
        if !visited.insert((at.to_vec(), name.to_owned())) {
            return None;
        }
        let imports = &self.imports[at];
        let mut named = imports.iter().filter(|it| it.name == name);
        let found = named.find_map(|it| self.resolve(at, &it.segments, visited));
        let mut globs = imports.iter().filter_map(ImportPath::glob);
        found.or_else(|| {
            globs.find_map(|it| {
                let module = self.module(at, it, visited)?;
                self.find(&module, name, visited)
            })
        })
    }

    /// The module that a path names, unless it names something else.
    fn module(
        &self,
        from: &[String],
        path: &[String],
        visited: &mut Visited,
    ) -> Option<ModulePath> {
        let (at, rest) = self.walk(from, path, visited)?;
        rest.is_empty().then_some(at)
    }

    /// The modules that define what a module imports with globs.
    fn glob_targets(&self, module: &[String]) -> Vec<ModulePath> {
        let imports = &self.imports[module];
        let globs = imports.iter().filter(|it| !it.is_public);
        let globs = globs.filter_map(ImportPath::glob);
        let sources: Vec<ModulePath> = globs
            .filter_map(|it| self.module(module, it, &mut Visited::new()))
            .collect();
        let mut targets = Vec::new();
        for name in &self.types[module] {
            let is_imported = imports.iter().any(|it| it.name == *name);
            if !is_imported && !self.names[module].contains(name) {
                let sources = sources.iter();
                targets.extend(sources.filter_map(|it| self.find(it, name, &mut Visited::new())));
            }
        }
        targets
    }

    /// The modules that each module imports from, without its own submodules.
    fn arrows(&self) -> BTreeMap<&ModulePath, BTreeSet<ModulePath>> {
        let arrows = self.imports.iter().map(|(module, imports)| {
            let imports = imports.iter().filter(|it| !it.is_public);
            let paths = imports.map(|it| &it.segments).chain(&self.paths[module]);
            let targets = paths.filter_map(|it| self.resolve(module, it, &mut Visited::new()));
            let targets = targets.chain(self.glob_targets(module));
            let targets = targets.filter(|it| !it.starts_with(module));
            (module, targets.collect())
        });
        arrows.collect()
    }

    /// Sets of two or more modules, each of which leads to each other.
    fn cycles(&self) -> Vec<Vec<ModulePath>> {
        let arrows = self.arrows();
        let reach: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> = arrows
            .keys()
            .map(|start| {
                let mut found = BTreeSet::new();
                let mut open: Vec<&ModulePath> = arrows[start].iter().collect();
                while let Some(module) = open.pop() {
                    if found.insert(module) {
                        open.extend(arrows.get(module).into_iter().flatten());
                    }
                }
                (*start, found)
            })
            .collect();
        let mut cycles = BTreeSet::new();
        for (module, targets) in &reach {
            let is_back =
                |it: &&&ModulePath| reach.get(**it).is_some_and(|back| back.contains(*module));
            let cycle: Vec<ModulePath> = targets
                .iter()
                .filter(is_back)
                .map(|it| (*it).clone())
                .collect();
            if cycle.len() > 1 {
                cycles.insert(cycle);
            }
        }
        cycles.into_iter().collect()
    }
}

fn child(module: &[String], name: &str) -> ModulePath {
    let mut path = module.to_vec();
    path.push(name.to_owned());
    path
}

/// Names and marks; two colons are one mark.
fn words(text: &str) -> Vec<&str> {
    let is_name = |it: char| it.is_alphanumeric() || it == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_name(first) {
            rest.find(|it| !is_name(it)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (word, next) = rest.split_at(end);
        if !word.trim().is_empty() {
            words.push(word);
        }
        rest = next;
    }
    words
}

/// The imports of a file, and its words without them.
fn split_imports<'a>(words: &[&'a str]) -> (Vec<ImportPath>, Vec<&'a str>) {
    let mut imports = Vec::new();
    let mut rest = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if words[at] != "use" {
            rest.push(words[at]);
            at += 1;
            continue;
        }
        let is_public = matches!(rest.last(), Some(&"pub" | &")"));
        if is_public {
            let visibility = rest.iter().rposition(|it| *it == "pub");
            rest.truncate(visibility.unwrap_or(rest.len()));
        }
        let length = words[at..].iter().position(|it| *it == ";");
        let end = at + length.unwrap_or(words.len() - at);
        let mut tree = &words[at + 1..end];
        let mut found = Vec::new();
        expand(&mut tree, &[], &mut found);
        let found = found.into_iter();
        imports.extend(found.map(|it| ImportPath { is_public, ..it }));
        at = end + 1;
    }
    (imports, rest)
}

/// Adds the paths of one tree of an import, as private ones.
fn expand(words: &mut &[&str], prefix: &[String], found: &mut Vec<ImportPath>) {
    let mut path = prefix.to_vec();
    let mut alias = None;
    while let Some((first, rest)) = words.split_first() {
        *words = rest;
        match *first {
            "::" => {}
            "{" => {
                while words.first().is_some_and(|it| *it != "}") {
                    expand(words, &path, found);
                    if words.first() == Some(&",") {
                        *words = &words[1..];
                    }
                }
                *words = words.get(1..).unwrap_or_default();
                return;
            }
            "as" => {
                alias = words.first().map(|it| (*it).to_owned());
                *words = words.get(1..).unwrap_or_default();
            }
            "self" if !path.is_empty() => {}
            name => path.push(name.to_owned()),
        }
        if matches!(words.first(), Some(&"," | &"}") | None) {
            break;
        }
    }
    let name = alias.or_else(|| path.last().cloned());
    found.push(ImportPath {
        is_public: false,
        name: name.unwrap_or_default(),
        segments: path,
    });
}

/// Names that a file defines at any level.
fn defined(words: &[&str]) -> BTreeSet<String> {
    const KEYWORDS: &[&str] = &[
        "struct", "enum", "trait", "type", "union", "fn", "const", "static", "mod",
    ];
    let pairs = words.windows(2).filter(|it| KEYWORDS.contains(&it[0]));
    let mut names: BTreeSet<String> = pairs.map(|it| it[1].to_owned()).collect();
    let macros = words.windows(3).filter(|it| it[0] == "macro_rules");
    names.extend(macros.map(|it| it[2].to_owned()));
    names
}

/// Capitalised names, without those that follow another name in a path.
fn type_names(words: &[&str]) -> BTreeSet<String> {
    let is_type = |it: &str| it.starts_with(|first: char| first.is_ascii_uppercase());
    let pairs = words.windows(2);
    let names = pairs.filter(|it| it[0] != "::" && is_type(it[1]));
    names.map(|it| it[1].to_owned()).collect()
}

/// Paths outside `use`, as far as they could begin in this crate.
fn inline_paths(words: &[&str]) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while at + 2 < words.len() {
        let is_start = words[at + 1] == "::" && (at == 0 || words[at - 1] != "::");
        if !is_start {
            at += 1;
            continue;
        }
        let mut path = vec![words[at].to_owned()];
        while words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some() {
            path.push(words[at + 2].to_owned());
            at += 2;
        }
        paths.push(path);
        at += 1;
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(name, text)| (format!("crates/raddle-x/src/{name}.rs"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, *text)).collect();
        check(&Tree::of(&files))
    }

    const CIRCLE: [(&str, &str); 5] = [
        ("lib", "mod a;\nmod b;\nmod c;\nmod d;\n"),
        ("a", "use crate::b::{Bee, other::Thing};\npub struct Ay;\n"),
        ("b", "pub struct Bee;\nfn f() { crate::c::run() }\n"),
        ("c", "use super::d::{self};\npub fn run() { d::go() }\n"),
        ("d", "use crate::a::Ay;\npub fn go() {}\n"),
    ];

    #[test]
    fn a_circle_of_four_modules_is_found() {
        let found = problems(&CIRCLE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("4 modules of raddle-x"), "{found:?}");
        assert!(found[0].contains("a, b, c, d"), "{found:?}");
        // Tests in a file of their own hide nothing of the file that declares them.
        let mut files = CIRCLE;
        files[4].1 = "#[cfg(test)]\nmod tests;\nuse crate::a::Ay;\npub fn go() {}\n";
        assert_eq!(problems(&files).len(), 1);
    }

    #[test]
    fn three_modules_tests_and_comments_are_no_problem() {
        for d in [
            "pub fn go() {}\n",
            "// use crate::a::Ay;\npub fn go() {}\n",
            "pub fn go() {}\n#[cfg(test)]\nmod tests {\n    use crate::a::Ay;\n}\n",
        ] {
            let mut files = CIRCLE;
            files[4].1 = d;
            assert_eq!(problems(&files), Vec::<String>::new(), "{d}");
        }
    }

    #[test]
    fn a_name_counts_for_the_module_that_defines_it() {
        let mut files = CIRCLE.to_vec();
        // Through the root, or behind a re-export: still a circle of four.
        files[3].1 = "pub(crate) use std::fmt;\nuse super::d::{self};\npub fn run() { d::go() }\n";
        assert_eq!(problems(&files).len(), 1);
        files[0].1 = "mod a;\nmod b;\nmod c;\nmod d;\npub use a::Ay;\n";
        files[4].1 = "use crate::Ay;\npub fn go() {}\n";
        assert_eq!(problems(&files).len(), 1);
        files[0].1 = "mod a;\nmod b;\nmod c;\nmod d;\npub use a::Ay as Other;\n";
        files[4].1 = "use crate::Other;\npub fn go() {}\n";
        assert_eq!(problems(&files).len(), 1);
        files[0].1 = "mod a;\nmod b;\nmod c;\nmod d;\npub use a::*;\n";
        files[4].1 = "use crate::Ay;\npub fn go() {}\n";
        assert_eq!(problems(&files).len(), 1);
    }

    #[test]
    fn a_glob_counts_for_the_modules_that_define_its_names() {
        let root = "mod a;\nmod b;\nmod c;\nmod d;\n\
            pub use a::*;\npub use b::*;\npub use c::*;\npub use d::*;\n";
        for (d, expected) in [
            ("use crate::*;\npub struct Dee(Ay);\n", 1),
            ("use super::*;\npub struct Dee(Option<Ay>);\n", 1),
            ("use crate::*;\npub struct Dee(u8);\n", 0),
            ("use crate::*;\npub struct Ay;\npub struct Dee(Ay);\n", 0),
            ("use crate::*;\nuse std::Ay;\npub struct Dee(Ay);\n", 0),
            ("use crate::*;\npub struct Dee(std::Ay);\n", 0),
            ("use std::*;\npub struct Dee(Ay);\n", 0),
        ] {
            let found = problems(&[
                ("lib", root),
                ("a", "use crate::*;\npub struct Ay(Bee);\n"),
                ("b", "use crate::*;\npub struct Bee(See);\n"),
                ("c", "use crate::*;\npub struct See(Dee);\n"),
                ("d", d),
            ]);
            assert_eq!(found.len(), expected, "{d}: {found:?}");
            let is_whole = found.iter().all(|it| it.contains("a, b, c, d"));
            assert!(is_whole, "{d}: {found:?}");
        }
    }

    #[test]
    fn a_path_through_an_imported_module_counts_for_the_module_that_defines_its_name() {
        let mut files = CIRCLE.to_vec();
        files[4] = ("d", "mod inner;\npub use inner::go;\n");
        files.push(("d/inner", "use crate::a::Ay;\npub fn go() {}\n"));
        for c in [
            "use crate::d;\npub fn run() { d::go() }\n",
            "use crate::d as other;\npub fn run() { other::go() }\n",
        ] {
            files[3].1 = c;
            let found = problems(&files);
            assert_eq!(found.len(), 1, "{c}: {found:?}");
            assert!(found[0].contains("a, b, c, d/inner"), "{c}: {found:?}");
        }
        files[3].1 = "use crate::d;\npub fn run() { d::other() }\n";
        assert_eq!(problems(&files), Vec::<String>::new());
    }

    #[test]
    fn a_module_may_use_its_submodules_and_they_its_types() {
        let files = [
            ("lib", "mod top;\n"),
            (
                "top",
                "mod a;\nmod b;\nmod c;\nmod d;\npub struct Top;\nfn f() { a::f(); b::f(); c::f(); d::f() }\n",
            ),
            ("top/a", "use super::Top;\npub fn f() {}\n"),
            ("top/b", "use super::Top;\npub fn f() {}\n"),
            ("top/c", "use super::Top;\npub fn f() {}\n"),
            ("top/d", "use super::Top;\npub fn f() {}\n"),
        ];
        assert_eq!(problems(&files), Vec::<String>::new());
    }
}
