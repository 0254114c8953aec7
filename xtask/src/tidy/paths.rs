//! No file names a place that exists on one machine only, or a server that packages come from.

use super::numbered;
use crate::repository::Tree;

/// What may stand around a needle for it to count.
#[derive(Clone, Copy)]
enum NeedleContext {
    /// Anything.
    Anything,
    /// It begins a path: what stands before is no part of a name.
    PathBegins,
    /// It begins a path, and a name ends with it.
    WholeName,
}

/// Written in pieces, so that this file does not hold what it forbids.
fn needles() -> Vec<(String, NeedleContext)> {
    let hosts = [
        ["registry.", "npmjs.org"],
        ["registry.", "yarnpkg.com"],
        ["index.", "crates.io"],
        ["static.", "crates.io"],
        ["pypi", ".org"],
        ["python", "hosted.org"],
        ["deb.", "debian.org"],
    ];
    let mut needles = vec![
        (["/wo", "rk/"].concat(), NeedleContext::PathBegins),
        (["/ro", "ot/"].concat(), NeedleContext::PathBegins),
        (["/tm", "p/p"].concat(), NeedleContext::WholeName),
        (["../sh", "ared"].concat(), NeedleContext::Anything),
    ];
    needles.extend(hosts.map(|host| (host.concat(), NeedleContext::Anything)));
    needles
}

pub fn check(tree: &Tree) -> Vec<String> {
    let needles = needles();
    let mut problems = Vec::new();
    for (path, text) in tree.texts() {
        for (number, line) in numbered(text) {
            for (needle, around) in &needles {
                if contains(line, needle, *around) {
                    problems.push(format!(
                        "{path}:{number}: `{needle}` means something on one machine only; use a \
                         relative path, a variable or a made-up example, and name packages, not \
                         the servers they come from"
                    ));
                }
            }
        }
    }
    problems
}

fn contains(line: &str, needle: &str, around: NeedleContext) -> bool {
    let in_name = |it: char| it.is_alphanumeric() || "_-.~}$".contains(it);
    line.match_indices(needle).any(|(at, _)| {
        let begins = !line[..at].chars().next_back().is_some_and(in_name);
        let ends = !line[at + needle.len()..]
            .chars()
            .next()
            .is_some_and(in_name);
        match around {
            NeedleContext::Anything => true,
            NeedleContext::PathBegins => begins,
            NeedleContext::WholeName => begins && ends,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        check(&Tree::of(&[("docs/a.md", text)]))
    }

    #[test]
    fn every_needle_is_found() {
        for (needle, _) in needles() {
            for text in [
                format!("see {needle}\n"),
                format!("\"{needle}/x\""),
                needle.clone(),
            ] {
                let found = problems(&text);
                assert_eq!(found.len(), 1, "{text}");
                assert!(found[0].starts_with("docs/a.md:1: "), "{found:?}");
            }
        }
    }

    #[test]
    fn a_scheme_in_front_does_not_hide_it() {
        let place = needles()[0].0.clone();
        assert_eq!(problems(&format!("unix://{place}a.sock")).len(), 1);
    }

    #[test]
    fn made_up_examples_are_fine() {
        let text = ["/home/ada/wo", "rk/project ~/wo", "rk/x /tm", "p/project"].concat();
        assert_eq!(problems(&text), Vec::<String>::new());
    }
}
