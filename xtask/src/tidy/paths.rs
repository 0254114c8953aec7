//! Check that no file names a path that exists on one machine only, or a package registry.

use super::numbered;
use crate::repository::Tree;

/// Context in which a needle counts.
#[derive(Clone, Copy)]
enum NeedleContext {
    /// Any context.
    Anything,
    /// The needle begins a path: the text before is not part of a name.
    PathBegins,
    /// The needle begins a path and ends a name.
    WholeName,
}

/// Needles, written in pieces so that this file does not contain them.
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
    fn every_needle_is_reported() {
        for (needle, _) in needles() {
            for text in [
                format!("see {needle}\n"),
                format!("\"{needle}/x\""),
                needle.clone(),
            ] {
                let reported = problems(&text);
                assert_eq!(reported.len(), 1, "{text}");
                assert!(reported[0].starts_with("docs/a.md:1: "), "{reported:?}");
            }
        }
    }

    #[test]
    fn needle_after_a_scheme_is_reported() {
        let needle = needles()[0].0.clone();
        assert_eq!(problems(&format!("unix://{needle}a.sock")).len(), 1);
    }

    #[test]
    fn invented_examples_are_accepted() {
        let text = ["/home/ada/wo", "rk/project ~/wo", "rk/x /tm", "p/project"].concat();
        assert_eq!(problems(&text), Vec::<String>::new());
    }
}
