//! The line of a method's page that says whether the method is served, from the route table.

use super::GeneratedFiles;

/// First fact of a page, before which the line is inserted.
const FIRST_FACT: &str = "\n- Tier: ";

const SERVED: &str = "\n- Served: yes";
const NOT_SERVED: &str = "\n- Served: no; the server returns the error -32601";

/// Adds the line to the pages of the methods. Returns the served methods without a page.
pub fn mark(routes: &[String], pages: &mut GeneratedFiles) -> Vec<String> {
    let mut without_page: Vec<String> = routes.to_vec();
    for (path, bytes) in pages.iter_mut() {
        let path = path.to_string_lossy();
        let method = path.strip_prefix("methods/");
        let Some(method) = method.and_then(|it| it.strip_suffix(".md")) else {
            continue;
        };
        without_page.retain(|it| it != method);
        let is_served = routes.iter().any(|it| it == method);
        let line = if is_served { SERVED } else { NOT_SERVED };
        let text = String::from_utf8_lossy(bytes).into_owned();
        let text = text.replacen(FIRST_FACT, &format!("{line}{FIRST_FACT}"), 1);
        *bytes = text.into_bytes();
    }
    without_page
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn each_page_of_a_method_says_whether_it_is_served() {
        let page = |path: &str| (PathBuf::from(path), b"# A\n\n- Tier: core\n".to_vec());
        let paths = ["methods/a/b.md", "methods/a/c.md", "types/A.md"];
        let mut pages: GeneratedFiles = paths.map(page).into_iter().collect();
        let routes = [String::from("a/b"), String::from("a/d")];
        assert_eq!(mark(&routes, &mut pages), ["a/d"]);
        let texts: Vec<_> = pages
            .values()
            .map(|it| String::from_utf8_lossy(it))
            .collect();
        assert_eq!(
            texts,
            [
                "# A\n\n- Served: yes\n- Tier: core\n",
                "# A\n\n- Served: no; the server returns the error -32601\n- Tier: core\n",
                "# A\n\n- Tier: core\n",
            ]
        );
    }
}
