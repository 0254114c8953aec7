//! Skills: folders with a `SKILL.md` that tell the agent how to do something.
//!
//! A skill's file is text for the model. Nothing in it is configuration and nothing is run.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use raddle_protocol::{SkillErrorInfo, SkillMetadata, SkillScope, SkillsListEntry};
use serde::Serialize;

use crate::services::files::PathAdmission;
use crate::wire_error::WireError;

/// The longest `SKILL.md` that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The longest name that is told.
const NAME_BYTES_MAX: usize = 256;

/// The longest description that is told.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// How many skills are read from one folder.
const SKILLS_MAX: usize = 1000;

/// How many bytes one answer tells of skills, as the wire writes them.
const LIST_BYTES_MAX: usize = 8 << 20;

/// The file of a skill,
const FILE: &str = "SKILL.md";

/// and how its name ends, also where a link leads.
const MARKDOWN: &str = "md";

/// The error for a link that leads nowhere, or to a file that skills are not read from.
const NOT_FOLLOWED: &str = "is behind a link that is not followed";

/// Where a repository keeps its skills.
const REPO_FOLDER: &str = ".agents/skills";

/// One answer, as it is filled.
#[derive(Debug)]
pub(crate) struct SkillList<'a> {
    admission: &'a PathAdmission,
    entries: Vec<SkillsListEntry>,
    bytes_left: usize,
}

impl<'a> SkillList<'a> {
    /// Nothing is read but what this rule admits.
    pub(crate) fn new(admission: &'a PathAdmission) -> Self {
        Self::within(LIST_BYTES_MAX, admission)
    }

    fn within(bytes_max: usize, admission: &'a PathAdmission) -> Self {
        Self {
            admission,
            entries: Vec::new(),
            bytes_left: bytes_max,
        }
    }

    /// Adds the skills that apply in a folder: the user's if they are to be told, and those of the repository
    /// around it. Links in a repository lead no further than the repository, as those of `AGENTS.md`.
    pub(crate) fn add_folder(&mut self, user: Option<&Path>, cwd: &str) {
        let mut entry = SkillsListEntry {
            cwd: cwd.to_owned(),
            errors: Vec::new(),
            skills: Vec::new(),
        };
        let user = user.map(|it| SkillSource {
            folder: it.to_owned(),
            scope: SkillScope::User,
            admission: self.admission.clone(),
        });
        let repository = repository_folders(Path::new(cwd));
        let root = repository.last().and_then(|it| fs::canonicalize(it).ok());
        let inside = root.map(|it| self.admission.below(&it));
        let repository = repository.iter().filter_map(|it| {
            Some(SkillSource {
                folder: it.join(REPO_FOLDER),
                scope: SkillScope::Repo,
                admission: inside.clone()?,
            })
        });
        let mut sources = user.into_iter().chain(repository);
        let all = sources.all(|it| it.collect(&mut entry, &mut self.bytes_left));
        if !all {
            entry.errors.push(SkillErrorInfo {
                message: "the answer would be too long; the other skills are left out, ask for fewer folders at once".to_owned(),
                path: cwd.to_owned(),
            });
        }
        entry
            .skills
            .sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
        self.entries.push(entry);
    }

    /// What was added, in the order it was.
    pub(crate) fn entries(self) -> Vec<SkillsListEntry> {
        self.entries
    }
}

/// Takes what one row needs from what is left; false when that is not enough.
fn takes<T: Serialize>(row: &T, bytes_left: &mut usize) -> bool {
    let bytes = serde_json::to_vec(row).map_or(0, |row| row.len() + 1);
    match bytes_left.checked_sub(bytes) {
        Some(left) => *bytes_left = left,
        // Nothing shorter goes in instead: which ones are told must not depend on their length.
        None => *bytes_left = 0,
    }
    *bytes_left > 0
}

/// The folder and those above it, up to the root of its repository. Without a repository, only itself.
fn repository_folders(cwd: &Path) -> Vec<PathBuf> {
    let above: Vec<PathBuf> = cwd.ancestors().map(Path::to_owned).collect();
    let root = above
        .iter()
        .position(|folder| folder.join(".git").exists())
        .unwrap_or(0);
    above.into_iter().take(root + 1).collect()
}

/// A folder of skills.
#[derive(Debug)]
struct SkillSource {
    folder: PathBuf,
    scope: SkillScope,
    /// The rule for reading it.
    admission: PathAdmission,
}

impl SkillSource {
    /// Adds the skills in the folder; false when there is no room for all of them.
    fn collect(&self, entry: &mut SkillsListEntry, bytes_left: &mut usize) -> bool {
        // The listed folder is the judged one, whatever is put in its place meanwhile.
        let Ok(opened) = self.admission.open(&self.folder) else {
            return true;
        };
        let Ok(children) = fs::read_dir(opened.path()) else {
            return true;
        };
        let mut count = 0;
        for child in children.flatten() {
            let name = child.file_name();
            let file = child.path().join(FILE);
            let is_link = is_link(&child.path()) || is_link(&file);
            if !is_link && !file.is_file() {
                continue;
            }
            if *bytes_left == 0 {
                return false;
            }
            if count == SKILLS_MAX {
                entry.errors.push(SkillErrorInfo {
                    message: format!("has more than {SKILLS_MAX} skills; the others are left out"),
                    path: self.folder.display().to_string(),
                });
                return true;
            }
            count += 1;
            let path = self.folder.join(&name).join(FILE).display().to_string();
            let is_told = match self.read(&file, is_link) {
                Ok(heading) => {
                    let folder = || cut(&name.to_string_lossy(), NAME_BYTES_MAX);
                    let skill = SkillMetadata {
                        name: heading.name.unwrap_or_else(folder),
                        description: heading.description,
                        enabled: true,
                        path,
                        scope: self.scope.clone(),
                        dependencies: None,
                        interface: None,
                        plugin_id: None,
                        short_description: None,
                    };
                    let is_told = takes(&skill, bytes_left);
                    entry.skills.extend(is_told.then_some(skill));
                    is_told
                }
                Err(message) => {
                    let error = SkillErrorInfo { message, path };
                    let is_told = takes(&error, bytes_left);
                    entry.errors.extend(is_told.then_some(error));
                    is_told
                }
            };
            if !is_told {
                return false;
            }
        }
        true
    }

    fn read(&self, file: &Path, is_link: bool) -> Result<Heading, String> {
        let opened = self.admission.open(file);
        let opened = opened.and_then(|it| match it.is_named_like(MARKDOWN)? {
            true => it.file(file),
            false => Err(WireError::Refused("is no Markdown".into())),
        });
        let (file, _) = opened.map_err(|error| match is_link {
            // Whether something is at its end is not told.
            true => NOT_FOLLOWED.to_owned(),
            false => told(error),
        })?;
        // Not every file says truly how long it is, so it is the reading that is bounded.
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(format!("larger than {FILE_BYTES_MAX} bytes"));
        }
        let text = String::from_utf8(text).map_err(|_| "is not UTF-8")?;
        heading(&text)
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}

/// What a skill says of itself.
#[derive(Debug, PartialEq, Eq)]
struct Heading {
    name: Option<String>,
    description: String,
}

/// Why a file could not be opened.
fn told(error: WireError) -> String {
    match error {
        WireError::Io(error) => error.to_string(),
        WireError::ClosedPath { .. } => "is not served".to_owned(),
        _ => "is not a regular file".to_owned(),
    }
}

/// The beginning of a text, so many bytes or a little less.
fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

/// Reads `name` and `description` from the block between two `---` lines at the top.
fn heading(text: &str) -> Result<Heading, String> {
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err(
            "must begin with a line `---`, then name and description, then `---`".to_owned(),
        );
    }
    let (mut name, mut description) = (None, None);
    for line in lines {
        if line.trim_end() == "---" {
            let description = description.ok_or("`description` is missing")?;
            return Ok(Heading { name, description });
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']);
        match key {
            "name" if !value.is_empty() => name = Some(cut(value, NAME_BYTES_MAX)),
            "description" if !value.is_empty() => {
                description = Some(cut(value, DESCRIPTION_BYTES_MAX));
            }
            _ => {}
        }
    }
    Err("the heading has no closing `---`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        let read = heading("---\nname: a\ndescription: \"does a: well\"\nother: x\n---\nbody");
        let expected = Heading {
            name: Some("a".into()),
            description: "does a: well".into(),
        };
        assert_eq!(read, Ok(expected));
        for bad in ["", "name: a", "---\nname: a\n", "---\nname: a\n---\n"] {
            assert!(heading(bad).is_err(), "{bad}");
        }
    }
    #[test]
    fn long_names_and_descriptions_are_cut() {
        let long = "ü".repeat(5000);
        let read = heading(&format!("---\nname: x{long}\ndescription: {long}\n---\n"));
        let read = read.expect("a heading");
        // A letter is not cut in half.
        assert_eq!(read.name.map(|name| name.len()), Some(NAME_BYTES_MAX - 1));
        assert_eq!(read.description.len(), DESCRIPTION_BYTES_MAX);
    }

    #[test]
    fn a_folder_tells_no_more_skills_than_it_may() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..=SKILLS_MAX {
            let skill = folder.path().join(number.to_string());
            fs::create_dir(&skill).expect("a folder");
            fs::write(skill.join("SKILL.md"), "---\ndescription: x\n---\n").expect("a file");
        }
        let admission = PathAdmission::default();
        let mut list = SkillList::new(&admission);
        list.add_folder(Some(folder.path()), "/nowhere");
        let told = &list.entries()[0];
        assert_eq!(told.skills.len(), SKILLS_MAX);
        let path = folder.path().display().to_string();
        let errors: Vec<_> = told.errors.iter().map(|error| &error.path).collect();
        assert_eq!(errors, [&path]);
    }

    #[test]
    fn an_answer_tells_no_more_than_it_may_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..20 {
            let skill = folder.path().join(number.to_string());
            fs::create_dir(&skill).expect("a folder");
            // Half of them cannot be read, and are told of as errors.
            let closing = if number % 2 == 0 { "---\n" } else { "" };
            let text = format!("---\ndescription: {}\n{closing}", "\u{1}".repeat(100));
            fs::write(skill.join("SKILL.md"), text).expect("a file");
        }
        let admission = PathAdmission::default();
        let length = |list: SkillList<'_>| {
            let entries = list.entries();
            let rows = entries.iter().map(|it| it.skills.len() + it.errors.len());
            let rows = rows.collect::<Vec<_>>();
            (serde_json::to_vec(&entries).expect("JSON").len(), rows)
        };
        let fill = |bytes_max: usize| {
            let mut list = SkillList::within(bytes_max, &admission);
            list.add_folder(Some(folder.path()), "/nowhere");
            list.add_folder(Some(folder.path()), "/elsewhere");
            length(list)
        };
        assert_eq!(fill(1 << 20).1, [20, 20]);
        for bytes_max in [1, 1000, 5000, 9000] {
            let (bytes, rows) = fill(bytes_max);
            // Beside the rows, each folder has its name and the word that some are left out.
            assert!(bytes < bytes_max + 2 * 300, "{bytes} for {bytes_max}");
            assert!(rows[0] + rows[1] < 40, "{rows:?} for {bytes_max}");
            assert_eq!(rows[1] > 1, bytes_max == 9000, "{rows:?} for {bytes_max}");
        }
    }
}
