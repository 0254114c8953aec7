//! The methods that the server currently handles, read from its route table.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ROUTES: &str = "crates/raddle-server/src/routes.rs";

/// Returns the names in lines such as `"fs/readFile" => fs::read_file,`; empty if there is no table
/// yet.
pub fn served(root: &Path) -> BTreeSet<String> {
    fs::read_to_string(root.join(ROUTES))
        .map(|text| names(&text))
        .unwrap_or_default()
}

fn names(text: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let (name, path) = line.trim().strip_prefix('"')?.split_once("\" => ")?;
        path.ends_with(',').then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_one_line() {
        let text = "routes! {\n    \"initialize\" => initialize,\n    // \"fs/copy\" => fs::copy,\n    \"fs/watch\" => fs::watch,\n}";
        assert_eq!(
            names(text).into_iter().collect::<Vec<_>>(),
            ["fs/watch", "initialize"]
        );
    }
}
