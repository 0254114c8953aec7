//! Examples of the methods on the reference pages: a request and its response, taken from the
//! conversations in conformance/, which the tests play.

use std::collections::BTreeMap;

use super::GeneratedFiles;
use super::pattern::Pattern;

/// Folder of the conversations, relative to the root of the repository.
pub const CONVERSATIONS: &str = "conformance";

/// Heading before which the example is inserted.
const NEXT_HEADING: &str = "\n## Params\n";

/// The best example of each method.
pub struct Examples {
    by_method: BTreeMap<String, Example>,
}

/// A request and its response in a conversation.
struct Example {
    /// Path of the conversation, relative to [`CONVERSATIONS`].
    path: String,
    request: Pattern,
    response: Pattern,
    rank: Rank,
}

/// Usefulness of an example; the smallest is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// A result in the conversation of the method itself.
    OwnPage,
    /// A result elsewhere.
    OtherPage,
    /// A result whose members are not shown.
    Blank,
    Error,
}

impl Examples {
    /// Collects the examples from the conversations, by path.
    pub fn collect(conversations: &GeneratedFiles) -> Self {
        let mut examples = Self {
            by_method: BTreeMap::new(),
        };
        for (path, bytes) in conversations {
            let path = path.to_string_lossy();
            for conversation in blocks(&String::from_utf8_lossy(bytes)) {
                examples.add(&path, &conversation);
            }
        }
        examples
    }

    fn add(&mut self, path: &str, conversation: &[String]) {
        let mut requests: BTreeMap<String, (String, Pattern)> = BTreeMap::new();
        for line in conversation {
            if let Some(request) = line.strip_prefix("--> ").and_then(Pattern::parse) {
                if let (Some(id), Some(method)) = (request.text("id"), request.text("method")) {
                    let method = method.trim_matches('"').to_owned();
                    requests.insert(id.to_owned(), (method, request));
                }
                continue;
            }
            let Some(response) = line.strip_prefix("<-- ").and_then(Pattern::parse) else {
                continue;
            };
            if response.text("method").is_some() {
                continue;
            }
            let answered = response.text("id").and_then(|id| requests.remove(id));
            if let Some((method, request)) = answered {
                self.offer(path, &method, request, response);
            }
        }
    }

    /// Keeps the example if it is better than the earlier ones.
    fn offer(&mut self, path: &str, method: &str, request: Pattern, response: Pattern) {
        let rank = match response.member("result") {
            None => Rank::Error,
            Some(result) if result.is_blank() => Rank::Blank,
            Some(_) if is_page_of(path, method) => Rank::OwnPage,
            Some(_) => Rank::OtherPage,
        };
        let earlier = self.by_method.get(method);
        if earlier.is_none_or(|it| rank < it.rank) {
            let example = Example {
                path: path.to_owned(),
                request,
                response,
                rank,
            };
            self.by_method.insert(method.to_owned(), example);
        }
    }

    /// Adds the examples to the pages of the methods. Returns the methods that have none.
    pub fn insert_into(&self, pages: &mut GeneratedFiles) -> Vec<String> {
        let mut missing = Vec::new();
        for (path, bytes) in pages.iter_mut() {
            let path = path.to_string_lossy();
            let method = path.strip_prefix("methods/");
            let Some(method) = method.and_then(|it| it.strip_suffix(".md")) else {
                continue;
            };
            match self.by_method.get(method) {
                Some(example) => {
                    let up = "../".repeat(path.matches('/').count() + 2);
                    let section = format!("\n{}{NEXT_HEADING}", example.section(&up));
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    *bytes = text.replacen(NEXT_HEADING, &section, 1).into_bytes();
                }
                None => missing.push(method.to_owned()),
            }
        }
        missing
    }
}

impl Example {
    fn section(&self, up: &str) -> String {
        let Self { path, .. } = self;
        format!(
            "## Example\n\nFrom the [conversation]({up}{CONVERSATIONS}/{path}) that the tests \
             play.\n`/* … */` stands for further members.\n\n\
             ```jsonc\n{}\n```\n\n```jsonc\n{}\n```\n",
            self.request.layout(),
            self.response.layout()
        )
    }
}

/// Returns the lines of each conversation on a page.
fn blocks(page: &str) -> Vec<Vec<String>> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<String>> = None;
    for line in page.lines() {
        match &mut open {
            None if line == "```conversation" => open = Some(Vec::new()),
            None => {}
            Some(_) if line == "```" => blocks.extend(open.take()),
            Some(lines) => lines.push(line.to_owned()),
        }
    }
    blocks
}

/// Returns whether the page is about the method: `fs/read_file.md` is about `fs/readFile`.
fn is_page_of(path: &str, method: &str) -> bool {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let name = path.strip_suffix(".md").unwrap_or(path);
    plain(name) == plain(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn files(of: &[(&str, &str)]) -> GeneratedFiles {
        of.iter()
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
            .collect()
    }

    fn conversation(lines: &[&str]) -> String {
        format!("# A page\n\n```conversation\n{}\n```\n", lines.join("\n"))
    }

    #[test]
    fn first_result_of_the_own_page_is_shown() {
        let other = conversation(&[
            r#"--> {"id": 1, "method": "a/readIt", "params": {"path": "other"}}"#,
            r#"<-- {"id": 1, "result": {"text": "other"}}"#,
        ]);
        let own = conversation(&[
            "initialized",
            r#"--> {"id": 1, "method": "a/readIt", "params": {}}"#,
            r#"<-- {"id": 1, "error": {"code": 1}}"#,
            r#"--> {"id": 2, "method": "a/readIt", "params": {"path": "$workspace/own"}}"#,
            r#"<-- {"method": "a/noted", "params": {}}"#,
            r#"<-- {"id": 2, "result": {"text": "own", "at": …}}"#,
            r#"--> {"id": 3, "method": "a/readIt", "params": {"path": "third"}}"#,
            r#"<-- {"id": 3, "result": {"text": "third"}}"#,
        ]);
        let examples = Examples::collect(&files(&[("a/b.md", &other), ("a/read_it.md", &own)]));
        let mut pages = files(&[
            ("README.md", "# Reference\n"),
            (
                "methods/a/readIt.md",
                "# `a/readIt`\n\n- Tier: core\n\n## Params\n\nNone.\n",
            ),
            ("methods/a/other.md", "# `a/other`\n\n## Params\n"),
        ]);
        assert_eq!(examples.insert_into(&mut pages), ["a/other"]);
        let page = &pages[&PathBuf::from("methods/a/readIt.md")];
        assert_eq!(
            String::from_utf8_lossy(page),
            "# `a/readIt`\n\n- Tier: core\n\n## Example\n\n\
             From the [conversation](../../../../conformance/a/read_it.md) that the tests play.\n\
             `/* … */` stands for further members.\n\n\
             ```jsonc\n\
             { \"id\": 2, \"method\": \"a/readIt\", \
             \"params\": { \"path\": \"/home/ada/loom/own\" } }\n\
             ```\n\n\
             ```jsonc\n{ \"id\": 2, \"result\": { \"text\": \"own\" /* … */ } }\n```\n\n\
             ## Params\n\nNone.\n"
        );
    }

    #[test]
    fn error_is_shown_only_without_a_result() {
        let page = conversation(&[
            r#"--> {"id": 1, "method": "a", "params": {}}"#,
            r#"<-- {"id": 1, "error": {"code": 1}}"#,
            r#"--> {"id": 1, "method": "b", "params": {}}"#,
            r#"<-- {"id": 1, "error": {"code": 1}}"#,
            r#"--> {"id": 2, "method": "b", "params": {}}"#,
            r#"<-- {"id": 2, "result": {…}}"#,
        ]);
        let examples = Examples::collect(&files(&[("gate.md", &page)]));
        assert!(examples.by_method["a"].response.member("error").is_some());
        assert!(examples.by_method["b"].response.member("result").is_some());
    }
}
