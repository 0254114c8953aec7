//! Vocabulary of the code: `cargo xtask words`, and the checks of it in `tidy`.
//!
//! Identifiers do not contain the words of `xtask/rename-list.toml`, and no comment begins with a
//! pronoun.

mod identifiers;
mod prose;
mod rename_list;

use anyhow::{Result, bail};

use crate::arguments::Arguments;
use crate::repository::{self, Tree};
use identifiers::identifiers;
use prose::ProseCounts;
use rename_list::{RenameList, WordRule};

/// Keywords before the name of a type that is defined or imported.
const BEFORE_TYPES: &[&str] = &["struct", "enum", "trait", "type", "union", "as"];

pub fn command(mut arguments: Arguments) -> Result<()> {
    let counts = arguments.flag("--counts");
    arguments.end()?;
    let tree = Tree::read(&repository::root()?)?;
    if counts {
        print!("{}", ProseCounts::of(&tree));
        return Ok(());
    }
    let list = RenameList::read(&tree)?;
    for it in uses(&tree, &list) {
        println!("{}", it.describe());
    }
    let problems = check(&tree);
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    println!(
        "every use above is an exception, of which there are {}",
        list.exceptions.len()
    );
    Ok(())
}

/// Reports identifiers with a word of the rename list, unless they are exceptions, and exceptions
/// for more uses than there are.
pub fn check(tree: &Tree) -> Vec<String> {
    let list = match RenameList::read(tree) {
        Ok(list) => list,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut uses = uses(tree, &list);
    let mut problems = Vec::new();
    for exception in &list.exceptions {
        let is_excepted = |it: &WordUse<'_>| it.path == exception.path && it.name == exception.name;
        let count = uses.iter().filter(|it| is_excepted(it)).count();
        if count <= exception.count {
            uses.retain(|it| !is_excepted(it));
        }
        if count < exception.count {
            problems.push(format!(
                "{}: the exception `{}` of {} has {} uses, and there are {count}; lower its count, \
                 or remove it at 0",
                rename_list::FILE,
                exception.name,
                exception.path,
                exception.count
            ));
        }
    }
    problems.extend(uses.iter().map(WordUse::describe));
    problems
}

/// Reports comments that begin with a pronoun.
pub fn check_prose(tree: &Tree) -> Vec<String> {
    prose::check(tree)
}

/// Use of a word of the rename list.
struct WordUse<'a> {
    path: &'a str,
    line: usize,
    /// The whole identifier, or the name of the module.
    name: &'a str,
    rule: &'a WordRule,
}

impl WordUse<'_> {
    fn describe(&self) -> String {
        let Self {
            path, line, name, ..
        } = self;
        let WordRule { word, instead, .. } = self.rule;
        format!("{path}:{line}: `{name}` has `{word}` of the rename list; instead: {instead}")
    }
}

fn uses<'a>(tree: &'a Tree, list: &'a RenameList) -> Vec<WordUse<'a>> {
    let mut uses = Vec::new();
    for (path, text) in tree.texts() {
        let Some(module) = path.strip_suffix(".rs") else {
            continue;
        };
        let module = module.rsplit('/').next().unwrap_or(module);
        let mut add = |at: usize, name: &'a str, rule: Option<&'a WordRule>| {
            let rule = rule.filter(|it| it.applies_to(path));
            uses.extend(rule.map(|rule| WordUse {
                path,
                line: text[..at].matches('\n').count() + 1,
                name,
                rule,
            }));
        };
        add(0, module, list.modules.find_exact(module));
        let mut before = "";
        for it in identifiers(text) {
            if BEFORE_TYPES.contains(&before) {
                add(it.at, it.text, list.types.find_exact(it.text));
            }
            if before == "as" {
                add(it.at, it.text, list.aliases.find_exact(it.text));
            }
            add(it.at, it.text, list.names.find_exact(it.text));
            for part in identifiers::parts(it.text) {
                add(it.at, it.text, list.parts.find(part));
            }
            before = it.text;
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [types]
        Leave = "Authorization"
        Form = { instead = "RowCodec", only = ["crates/raddle-store/"] }
        [aliases]
        Turn = "Mutex"
        [names]
        last_word = "recheck"
        [parts]
        door = "listener"
        fence = { instead = "sandbox", except = ["crates/raddle-store/"] }
        [modules]
        rooms = "services"
        [not_searched]
        bound = "an ordinary word"
        [[exception]]
        name = "front_door"
        path = "crates/raddle-x/src/stored.rs"
        count = 2
        reason = "the name of a stored field"
    "#;

    const LIB: &str = "crates/raddle-x/src/lib.rs";

    const STORED: (&str, &str) = (
        "crates/raddle-x/src/stored.rs",
        "let front_door = 1; f(front_door)",
    );

    fn problems(path: &str, code: &str) -> Vec<String> {
        let files = [(rename_list::FILE, LIST), STORED, (path, code)];
        check(&Tree::of(&files))
    }

    #[test]
    fn planted_words_are_reported() {
        for code in [
            "pub struct Leave;",
            "pub(crate) enum\n    Leave { A }",
            "use a::B as Leave;",
            "use tokio::sync::Mutex as Turn;",
            "fn last_word() {}",
            "const DOOR_TIMEOUT: u8 = 0;",
            "let x = HTTPDoor::new();",
            "fn a_fence_holds() {}",
            "let x = '\"'; let door = \"\";",
            "let x = r#\" \" \"#; let door = 1;",
            "fn f<'a>(x: &'a str) { let door = '\\''; }",
        ] {
            let reported = problems(LIB, code);
            assert_eq!(reported.len(), 1, "{code}: {reported:?}");
        }
        let store = problems("crates/raddle-store/src/a.rs", "\nstruct Form;");
        let expected = "crates/raddle-store/src/a.rs:2: `Form` has `Form` of the rename list; \
            instead: RowCodec";
        assert_eq!(store, [expected]);
        assert_eq!(problems("crates/raddle-x/src/rooms.rs", "").len(), 1);
    }

    #[test]
    fn other_meanings_strings_and_comments_are_accepted() {
        for (path, code) in [
            (LIB, "enum A { Leave, Form }"),
            (LIB, "struct Form; struct Turn;"),
            (LIB, "// door\n/* door */ f(\"door\")"),
            (LIB, "f(r#\"\"door\"\"#, b\"door\", '\\'')"),
            (LIB, "#[serde(rename = \"door\")]"),
            (LIB, "let indoors = bound;"),
            ("crates/raddle-store/src/fence.rs", "fn move_fence() {}"),
            ("docs/rooms.md", "struct Leave;"),
        ] {
            assert_eq!(problems(path, code), Vec::<String>::new(), "{code}");
        }
    }

    #[test]
    fn exceptions_only_shrink() {
        let (path, _) = STORED;
        for (code, expected) in [
            ("let front_door = 1; f(front_door)", 0),
            // Fewer uses than the list says.
            ("let front_door = 1;", 1),
            ("", 1),
            // More, of which all are reported.
            ("let front_door = 1; f(front_door, front_door)", 3),
            // Another identifier.
            ("let front_door = 1; f(front_door, back_door)", 1),
        ] {
            let reported = check(&Tree::of(&[(rename_list::FILE, LIST), (path, code)]));
            assert_eq!(reported.len(), expected, "{code}: {reported:?}");
        }
    }

    #[test]
    fn an_unreadable_list_is_reported() {
        for list in [
            "",
            "[types]\nLeave = 1\n",
            &LIST.replace("only = ", "near = "),
            &LIST.replace("reason = \"the name of a stored field\"", ""),
        ] {
            let reported = check(&Tree::of(&[(rename_list::FILE, list)]));
            assert_eq!(reported.len(), 1, "{list}: {reported:?}");
        }
    }
}
