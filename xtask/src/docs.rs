//! The book: README.md, docs/ and the other pages of the repository as a site with search.
//!
//! The sources of the book are generated in the cache: the pages with their links rewritten, the
//! files beside them, and a table of contents. mdBook then builds the site.

pub mod contents;
mod rewrite;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::{Cache, remove_folder};
use crate::repository::{self, Tree};
use crate::run::Run;
use crate::tidy::links;
use crate::tools;

/// `book.toml` of mdBook.
const SETTINGS: &str = "\
[book]
title = \"Raddle\"
language = \"en\"
src = \"source\"

[build]
build-dir = \"site\"
create-missing = false

[output.html]
smart-punctuation = false

[output.html.fold]
enable = true
level = 0

[output.html.print]
enable = false

[output.html.search]
enable = true
";

const SUMMARY: &str = "SUMMARY.md";
/// How the names of the files with the search index begin.
const SEARCH_INDEX: &str = "searchindex";

pub fn command(arguments: Arguments) -> Result<()> {
    arguments.end()?;
    build(&repository::root()?, &Cache::open()?)?;
    Ok(())
}

/// Builds the site from a checkout, and returns its folder.
pub fn build(root: &Path, cache: &Cache) -> Result<PathBuf> {
    let tree = Tree::read(root)?;
    let sources = sources(&tree)?;
    let mdbook = tools::mdbook(cache)?;

    let _lock = cache.lock("book")?;
    let folder = cache.book();
    remove_folder(&folder)?;
    for (path, text) in &sources {
        write(&folder.join("source").join(path), text.as_bytes())?;
    }
    for path in tree.paths().filter(|it| is_copied(it)) {
        let bytes = fs::read(root.join(path)).with_context(|| format!("cannot read {path}"))?;
        write(&folder.join("source").join(path), &bytes)?;
    }
    write(&folder.join("book.toml"), SETTINGS.as_bytes())?;
    Run::new(mdbook).arg("build").arg(&folder).minutes(5).go()?;

    let site = folder.join("site");
    if !has_search_index(&site)? {
        bail!("{} has no search index", site.display());
    }
    println!(
        "{} pages with search: {}",
        sources.len() - 1,
        site.join("index.html").display()
    );
    Ok(site)
}

/// Returns the Markdown files of the book by path: every page, and the table of contents.
fn sources(tree: &Tree) -> Result<Vec<(String, String)>> {
    let mut problems = contents::check(tree);
    problems.extend(links::check(tree));
    fail_on(&problems)?;
    let pages = contents::pages(tree);
    let mut sources = vec![(SUMMARY.to_owned(), contents::summary(tree))];
    for page in &pages {
        let text = rewrite::page(tree, &pages, page)?;
        sources.push((contents::book_path(page), text));
    }
    // The same check of links, now of the book.
    let mut files: Vec<(&str, &str)> = sources
        .iter()
        .filter(|(path, _)| path != SUMMARY)
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    files.extend(tree.paths().filter(|it| is_copied(it)).map(|it| (it, "")));
    fail_on(&links::check(&Tree::of(&files)))?;
    Ok(sources)
}

fn fail_on(problems: &[String]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    bail!("the book cannot be built:\n  {}", problems.join("\n  "))
}

/// Returns whether the file is in the book as it is, such as a picture or a schema.
fn is_copied(path: &str) -> bool {
    path.starts_with("docs/") && !path.ends_with(".md")
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn has_search_index(site: &Path) -> Result<bool> {
    for entry in fs::read_dir(site)? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with(SEARCH_INDEX) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_outside_the_sections_fails() {
        let error = sources(&Tree::of(&[("docs/new.md", "# New\n")])).expect_err("no section");
        assert!(format!("{error:#}").contains("docs/new.md"), "{error:#}");
    }
}
