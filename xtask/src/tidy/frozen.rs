//! Check that the protocol still has every name that docs/versioning.md freezes.

use std::collections::BTreeSet;

use super::numbered;
use crate::repository::Tree;

const PAGE: &str = "docs/versioning.md";
const BLOCK: &str = "```frozen";
/// The page of all messages, generated from the tables of the protocol.
const REFERENCE: &str = "docs/reference/README.md";
/// Part of the reference whose messages have no tier: all of them are core.
const REQUESTS: &str = "## Server requests";

pub fn check(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let frozen: Vec<(usize, &str)> = frozen(page).collect();
    if frozen.is_empty() {
        return vec![format!(
            "{PAGE} has no block {BLOCK}; it names the frozen core"
        )];
    }
    let core = core(tree.text(REFERENCE).unwrap_or_default());
    let gone = frozen.into_iter().filter(|(_, name)| !core.contains(name));
    gone.map(|(number, name)| {
        format!(
            "{PAGE}:{number}: `{name}` is frozen, but not core and stable in {REFERENCE}; restore \
             it, or remove it in a new release line"
        )
    })
    .collect()
}

/// Returns the names in the block with their lines. A line that ends with `:` is a heading.
fn frozen(page: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(page)
        .skip_while(|(_, line)| *line != BLOCK)
        .skip(1)
        .take_while(|(_, line)| *line != "```")
        .filter(|(_, line)| !line.ends_with(':'))
        .flat_map(|(number, line)| line.split_whitespace().map(move |name| (number, name)))
}

/// Returns the names of all core and stable messages.
fn core(reference: &str) -> BTreeSet<&str> {
    let (tables, requests) = reference.split_once(REQUESTS).unwrap_or((reference, ""));
    let core = tables.lines().filter(|it| it.contains("| core | stable |"));
    core.chain(requests.lines()).filter_map(row_name).collect()
}

/// Returns the name in the first cell of a row: ``| [`NAME`](PAGE) | …``.
fn row_name(line: &str) -> Option<&str> {
    let (name, _) = line.strip_prefix("| [`")?.split_once('`')?;
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = "## Methods\n\
        | [`turn/start`](a.md) | core | stable | free | Starts. |\n\
        | [`turn/new`](a.md) | core | experimental | free | New. |\n\
        | [`turn/extra`](a.md) | useful | stable | free | More. |\n\
        ## Server requests\n\
        | [`item/ask`](a.md) | Asks. |\n";

    fn problems(names: &str) -> Vec<String> {
        let page = format!("# Versioning\n{BLOCK}\nmethods:\n{names}\n```\nturn/gone\n");
        check(&Tree::of(&[(PAGE, &page), (REFERENCE, MESSAGES)]))
    }

    #[test]
    fn core_and_stable_names_may_be_frozen() {
        assert_eq!(problems("turn/start item/ask"), Vec::<String>::new());
    }

    #[test]
    fn name_that_is_gone_or_not_core_is_reported() {
        for name in ["turn/gone", "turn/new", "turn/extra"] {
            let reported = problems(&format!("turn/start\n{name}"));
            assert_eq!(reported.len(), 1, "{name}");
            assert!(
                reported[0].starts_with("docs/versioning.md:5: "),
                "{reported:?}"
            );
        }
    }

    #[test]
    fn missing_list_is_reported() {
        assert_eq!(problems("").len(), 1);
        assert_eq!(check(&Tree::of(&[(PAGE, "")])).len(), 1);
    }
}
