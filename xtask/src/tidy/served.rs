//! Check that the README's number of served methods is that of the page of compatibility.

use super::numbered;
use crate::repository::Tree;

const README: &str = "README.md";
const PAGE: &str = "docs/compatibility.md";
/// Row of the README, up to its figure.
const CLAIM: &str = "| methods of Codex ";
/// Row of the page, up to its figures: declared, in Codex, served.
const ROW: &str = "| Methods | ";

pub fn check(tree: &Tree) -> Vec<String> {
    let page = tree.text(PAGE).unwrap_or_default();
    let Some(figure) = measured(page) else {
        return vec![format!(
            "{PAGE} has no row `{ROW}…`; tidy reads the number of served methods from it"
        )];
    };
    let readme = tree.text(README).unwrap_or_default();
    let mut claims = numbered(readme).filter(|(_, line)| line.starts_with(CLAIM));
    let Some((number, line)) = claims.next() else {
        return vec![format!(
            "{README} has no row `{CLAIM}…`; tidy compares its figure with {PAGE}"
        )];
    };
    if claimed(line) == Some(figure.as_str()) {
        return Vec::new();
    }
    vec![format!(
        "{README}:{number}: the row must begin with `{figure}`, as {PAGE} has it"
    )]
}

/// Returns the figure of the page, as in `90 of 179`.
fn measured(page: &str) -> Option<String> {
    let row = page.lines().find_map(|it| it.strip_prefix(ROW))?;
    let cells: Vec<&str> = row.split(" | ").collect();
    let (reference, served) = (cells.get(1)?, cells.get(2)?);
    Some(format!("{served} of {reference}"))
}

/// Returns the second cell of the README's row up to its first comma.
fn claimed(row: &str) -> Option<&str> {
    let cell = row.split(" | ").nth(1)?;
    cell.split(',').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &str = "| | declared | in Codex | served | choices |\n|---|---|---|---|---|\n\
        | Methods | 91 | 179 | 90 | 31379 |\n";

    fn problems(figure: &str, page: &str) -> Vec<String> {
        let readme = format!("{CLAIM}0.166.0, against ours | {figure}, with clients | here |\n");
        check(&Tree::of(&[(README, &readme), (PAGE, page)]))
    }

    #[test]
    fn figure_of_the_page_is_accepted() {
        assert_eq!(problems("90 of 179", FIGURES), Vec::<String>::new());
    }

    #[test]
    fn every_other_figure_is_reported() {
        for figure in ["88 of 179", "91 of 179", "90 of 178", "190 of 179", ""] {
            let reported = problems(figure, FIGURES);
            assert!(reported[0].contains("90 of 179"), "{figure}: {reported:?}");
        }
    }

    #[test]
    fn missing_row_is_reported() {
        assert_eq!(problems("90 of 179", "").len(), 1);
        assert_eq!(check(&Tree::of(&[(PAGE, FIGURES)])).len(), 1);
    }
}
