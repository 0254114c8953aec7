//! Skills in the model's context: the names and descriptions of all, and the content of those that
//! the user's message names. The model reads the files of others itself.

use std::collections::BTreeSet;
use std::path::Path;

use raddle_core::ports::{OfferedSkill, SkillOffer, Skills, TrustError};
use raddle_core::{ApprovalPolicy, Briefed, Input, Sandbox, Settings, Topic};

/// Limit: skills that the model is offered; beyond it, the rest is left out, and the model is
/// notified.
const SKILLS_MAX: usize = 100;

/// Limit: list of the skills that the model is offered; beyond it, the rest is left out, and the
/// model is notified.
const LIST_BYTES_MAX: usize = 24 << 10;

/// The longest description in the list; longer ones are truncated.
const DESCRIPTION_BYTES_MAX: usize = 1024;

/// Limit: content of the skills that one message names; beyond it, the rest is left out, and the
/// model is notified.
const TEXTS_BYTES_MAX: usize = 64 << 10;

/// Beginning of the list.
const LIST_HEAD: &str = "# Skills\n\n\
    A skill is a folder with instructions for one kind of task. If a task fits the description of a \
    skill, or the user names a skill as $NAME, read the file of that skill before you start, and \
    follow it. Paths in the file are relative to its folder. Read further files of the folder only \
    when the file refers to them. Do not read the files of other skills.\n\n";

/// Returns the notes about the skills that apply to a thread with these settings, and whose next
/// message is `input`. Blocks on the disk.
pub(crate) fn briefs(skills: &dyn Skills, settings: &Settings, input: &[Input]) -> Vec<Briefed> {
    let SkillOffer {
        skills: offered,
        undecided,
    } = skills.offer(&settings.cwd);
    let named = named_skills(&offered, input);
    let is_asked = undecided.is_some() && settings.approval.may_ask(ApprovalPolicy::SKILLS);
    let (text, sources) = texts(&named, |it| skills.text(&settings.cwd, it));
    vec![
        Briefed {
            topic: Topic::Skills,
            text: list(&offered, settings),
            sources: Vec::new(),
            is_asked: false,
        },
        Briefed {
            topic: Topic::SkillTexts,
            text,
            sources,
            is_asked: false,
        },
        Briefed {
            topic: Topic::WithheldSkills,
            text: undecided.map(|it| it.warning).unwrap_or_default(),
            sources: Vec::new(),
            is_asked,
        },
    ]
}

/// Whether input may name a skill.
pub(crate) fn may_name_skill(input: &[Input]) -> bool {
    input.iter().any(|it| match it {
        Input::Skill { .. } => true,
        Input::Text { text, .. } => text.contains('$'),
        _ => false,
    })
}

/// Describes the skills for the model.
fn list(offered: &[OfferedSkill], settings: &Settings) -> String {
    if offered.is_empty() {
        return String::new();
    }
    let mut list = LIST_HEAD.to_owned();
    for (index, skill) in offered.iter().enumerate() {
        let name = one_line(&skill.name);
        let description = one_line(truncated(&skill.description, DESCRIPTION_BYTES_MAX));
        let file = match is_readable(skill, settings) {
            true => format!("file: {}", one_line(&skill.path)),
            false => format!("hidden from commands; you get it when the user writes ${name}"),
        };
        let line = format!("- {name}: {description} ({file})\n");
        if index == SKILLS_MAX || list.len() + line.len() > LIST_BYTES_MAX {
            let omitted = offered.len() - index;
            list += &format!("\n({omitted} more skills are not listed.)\n");
            break;
        }
        list += &line;
    }
    list
}

/// Whether commands of a thread can read the file of a skill.
fn is_readable(skill: &OfferedSkill, settings: &Settings) -> bool {
    let sandbox = &settings.sandbox;
    if matches!(sandbox, Sandbox::FullAccess | Sandbox::External { .. }) {
        return true;
    }
    let is_listed = sandbox.reads().is_none_or(|reads| {
        let workspace = std::iter::once(&settings.cwd).chain(&settings.roots);
        let mut folders = workspace.chain(reads).chain(sandbox.roots());
        folders.any(|it| Path::new(&skill.path).starts_with(it))
    });
    is_listed && !skill.is_hidden
}

/// Returns the skills that input names: by a part of its own, or as `$NAME` in its text.
fn named_skills<'a>(offered: &'a [OfferedSkill], input: &[Input]) -> Vec<&'a OfferedSkill> {
    let (mut parts, mut paths, mut names) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for part in input {
        match part {
            Input::Skill { name, path } => {
                parts.insert(name.as_str());
                paths.insert(path.as_str());
            }
            Input::Text { text, .. } => {
                let is_offered = |name: &str| offered.iter().any(|it| it.name == name);
                names.extend(mentions(text).map(|it| it.name(is_offered)));
            }
            _ => {}
        }
    }
    let is_named = |it: &&OfferedSkill| {
        let name = it.name.as_str();
        // Of several skills of one name, a part selects the one with its path.
        paths.contains(it.path.as_str()) || names.contains(name) && !parts.contains(name)
    };
    offered.iter().filter(is_named).collect()
}

/// A mention in a text.
#[derive(Debug, PartialEq, Eq)]
struct Mention<'a> {
    /// Name without dots.
    plain: &'a str,
    /// Name of a plugin's skill: the id of the plugin has dots, and ends with a colon.
    of_plugin: Option<&'a str>,
}

impl<'a> Mention<'a> {
    /// Returns the name that is meant. A dot may also end a sentence.
    fn name(self, is_offered: impl Fn(&str) -> bool) -> &'a str {
        let of_plugin = self.of_plugin.filter(|it| is_offered(it));
        of_plugin.unwrap_or(self.plain)
    }
}

/// Returns the skills that a text mentions as `$NAME`.
fn mentions(text: &str) -> impl Iterator<Item = Mention<'_>> {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_');
    let is_name = move |it: char| is_part(it) || it == ':';
    let length = |text: &str, is_inside: &dyn Fn(char) -> bool| {
        text.find(|it: char| !is_inside(it)).unwrap_or(text.len())
    };
    text.match_indices('$').filter_map(move |(at, _)| {
        let is_inside = text[..at].ends_with(|it: char| is_name(it) || matches!(it, '$' | '\\'));
        let rest = &text[at + 1..];
        let plain = rest[..length(rest, &is_name)].trim_end_matches([':', '-']);
        let id = length(rest, &|it| is_part(it) || it == '.');
        let skill = rest[id..]
            .strip_prefix(':')
            .map_or(0, |it| length(it, &is_part));
        let of_plugin = rest[..id].contains('.') && skill > 0;
        (!is_inside && !plain.is_empty()).then(|| Mention {
            plain,
            of_plugin: of_plugin.then(|| rest[..id + 1 + skill].trim_end_matches('-')),
        })
    })
}

/// Returns the content of skills for the model, and the paths of their files.
fn texts(
    named: &[&OfferedSkill],
    read: impl Fn(&OfferedSkill) -> Option<String>,
) -> (String, Vec<String>) {
    let (mut all, mut sources) = (String::new(), Vec::new());
    let mut remaining = TEXTS_BYTES_MAX;
    for skill in named {
        let Some(content) = read(skill) else {
            continue;
        };
        if !all.is_empty() {
            all += "\n";
        }
        let (name, path) = (one_line(&skill.name), one_line(&skill.path));
        all += &format!("# Skill {name}\n\nThe user names this skill. From {path}:\n\n");
        let part = truncated(&content, remaining);
        remaining -= part.len();
        all += part.trim_end();
        all += "\n";
        sources.push(skill.path.clone());
        if part.len() < content.len() {
            all += "\n(It goes on, but no more is read than this.)\n";
            break;
        }
    }
    (all, sources)
}

/// Returns the beginning of a text, at most this many bytes.
fn truncated(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Returns a text without control characters: a name must not look like several lines.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// No skills.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSkills;

impl Skills for NoSkills {
    fn offer(&self, _: &str) -> SkillOffer {
        SkillOffer::default()
    }

    fn text(&self, _: &str, _: &OfferedSkill) -> Option<String> {
        None
    }

    fn decide(&self, _: &str, _: bool) -> Result<(), TrustError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, path: &str) -> OfferedSkill {
        OfferedSkill {
            name: name.to_owned(),
            description: format!("does {name}"),
            path: path.to_owned(),
            is_hidden: false,
        }
    }

    #[test]
    fn mentions_in_texts() {
        for (text, expected) in [
            ("use $tidy, then $ship-it: now", &["tidy", "ship-it"][..]),
            ("($tidy)", &["tidy"]),
            ("$a:b $c_1.", &["a:b", "c_1"]),
            ("US$tidy \\$tidy $$tidy costs $ 5 $", &[]),
            ("\u{e4}$tidy\u{e4}", &["tidy"]),
        ] {
            let found: Vec<&str> = mentions(text).map(|it| it.name(|_| true)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn a_mention_with_dots_is_one_of_a_plugins_skill_or_ends_a_sentence() {
        let offered = [skill("org", "/a"), skill("org.x-1:tidy", "/b")];
        for (text, expected) in [
            ("$org.x-1:tidy", &["/b"][..]),
            ("use $org.x-1:tidy.", &["/b"]),
            ("use $org.x-1:tidy-", &["/b"]),
            ("$org.x-1:tidy:", &["/b"]),
            ("$org.x-1:other", &["/a"]),
            ("$org.x-1", &["/a"]),
            ("Use $org.Then: go", &["/a"]),
            ("$org.x-1:tidier", &["/a"]),
        ] {
            let input = [Input::text(text)];
            let named = named_skills(&offered, &input);
            let paths: Vec<&str> = named.iter().map(|it| it.path.as_str()).collect();
            assert_eq!(paths, expected, "{text}");
        }
    }

    #[test]
    fn a_part_selects_one_of_several_skills_of_a_name() {
        let offered = [
            skill("tidy", "/a"),
            skill("tidy", "/b"),
            skill("ship", "/c"),
        ];
        let paths = |input: &[Input]| -> Vec<String> {
            let named = named_skills(&offered, input);
            named.iter().map(|it| it.path.clone()).collect()
        };
        let part = |path: &str| Input::Skill {
            name: "tidy".to_owned(),
            path: path.to_owned(),
        };
        let text = Input::text("$tidy and $ship and $tidy");
        assert_eq!(paths(std::slice::from_ref(&text)), ["/a", "/b", "/c"]);
        assert_eq!(paths(&[text.clone(), part("/b")]), ["/b", "/c"]);
        // A file that is not offered is not read, whatever a client names.
        assert_eq!(paths(&[text, part("/etc/passwd")]), ["/c"]);
        assert!(paths(&[Input::text("tidy")]).is_empty());
    }

    #[test]
    fn the_list_is_bounded_and_says_so() {
        let settings = Settings::default();
        assert_eq!(list(&[], &settings), "");
        let mut few = [skill("tidy", "/a/SKILL.md"), skill("two\nlines", "/b")];
        few[1].is_hidden = true;
        let expected = "- tidy: does tidy (file: /a/SKILL.md)\n\
             - two lines: does two lines (hidden from commands; you get it when the user writes $two lines)\n";
        assert_eq!(list(&few, &settings), format!("{LIST_HEAD}{expected}"));
        let unconfined = Settings {
            sandbox: Sandbox::FullAccess,
            ..Settings::default()
        };
        assert!(list(&few, &unconfined).contains("(file: /b)"));
        let limited = Settings {
            cwd: "/w".to_owned(),
            sandbox: Sandbox::ReadOnly {
                roots: Vec::new(),
                network: false,
                reads: Some(vec!["/a".to_owned()]),
            },
            ..Settings::default()
        };
        assert!(is_readable(&few[0], &limited) && !is_readable(&skill("c", "/c"), &limited));
        let many = vec![skill("tidy", "/a"); SKILLS_MAX + 5];
        assert!(list(&many, &settings).ends_with("\n(5 more skills are not listed.)\n"));
        let mut long = skill("tidy", "/a");
        long.description = "\u{e4}".repeat(5000);
        let text = list(&vec![long; SKILLS_MAX], &settings);
        assert!(text.len() < LIST_BYTES_MAX + 50, "{}", text.len());
        assert!(text.ends_with(" more skills are not listed.)\n"));
    }

    #[test]
    fn texts_are_bounded_and_say_so() {
        let skills = [
            skill("gone", "/gone"),
            skill("tidy", "/a"),
            skill("b", "/b"),
        ];
        let named: Vec<&OfferedSkill> = skills.iter().collect();
        let read = |it: &OfferedSkill| (it.name != "gone").then(|| format!("use {}\n", it.name));
        let (text, sources) = texts(&named, read);
        let expected = "# Skill tidy\n\nThe user names this skill. From /a:\n\nuse tidy\n\n\
             # Skill b\n\nThe user names this skill. From /b:\n\nuse b\n";
        assert_eq!(
            (text.as_str(), sources),
            (expected, vec!["/a".to_owned(), "/b".to_owned()])
        );
        let (text, sources) = texts(&named, |_| Some("\u{e4}".repeat(TEXTS_BYTES_MAX)));
        assert!(text.len() < TEXTS_BYTES_MAX + 200, "{}", text.len());
        assert!(text.ends_with("no more is read than this.)\n"));
        assert_eq!(sources, ["/gone"]);
    }
}
