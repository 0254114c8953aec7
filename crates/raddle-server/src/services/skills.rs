//! Skills: folders with a `SKILL.md` that tell the agent how to do something.
//!
//! A skill's file is text for the model. Nothing in it is configuration, and nothing in it is run.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use raddle_config::{SKILL_BYTES_MAX, SKILL_FILE, SKILL_NAME_BYTES_MAX, SkillHeading, projects};
use raddle_core::ports::PluginSkill;
use raddle_protocol::{SkillErrorInfo, SkillMetadata, SkillScope, SkillsListEntry};
use serde::Serialize;

use crate::services::files::PathAdmission;
use crate::services::skill_roots::SkillFolder;
use crate::wire_error::WireError;

/// The maximum number of skills read from one folder.
const SKILLS_MAX: usize = 1000;

/// Limit: skills in one response; beyond it, the rest is left out, and the response holds an error.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Required extension of a skill's file, also of the target of a link.
const MARKDOWN: &str = "md";

/// The error for a link that is broken, or leads to a file that skills are not read from.
const NOT_FOLLOWED: &str = "is behind a link that is not followed";

/// Folders of a repository's skills, in each of its folders.
const REPO_FOLDERS: [&str; 2] = [".agents/skills", ".codex/skills"];

/// The skills of one response, while it is filled.
#[derive(Debug)]
pub(crate) struct SkillList<'a> {
    admission: &'a PathAdmission,
    /// The folders that apply everywhere.
    shared: &'a [SkillFolder],
    /// The skills in these folders.
    shared_skills: SkillsListEntry,
    /// Whether these are all of them.
    is_shared_complete: bool,
    entries: Vec<SkillsListEntry>,
    bytes_left: usize,
}

impl<'a> SkillList<'a> {
    /// Creates an empty list, and reads the folders that apply everywhere. It reads only paths that
    /// this rule admits. The skills of plugins apply everywhere, too.
    pub(crate) fn new(
        shared: &'a [SkillFolder],
        of_plugins: Vec<PluginSkill>,
        admission: &'a PathAdmission,
    ) -> Self {
        Self::within(LIST_BYTES_MAX, shared, of_plugins, admission)
    }

    fn within(
        bytes_max: usize,
        shared: &'a [SkillFolder],
        of_plugins: Vec<PluginSkill>,
        admission: &'a PathAdmission,
    ) -> Self {
        let mut entry = empty_entry("");
        let mut bytes_left = bytes_max;
        let mut sources = shared_sources(shared, admission).into_iter();
        let mut of_plugins = of_plugins.into_iter().map(plugin_skill);
        // Skills that do not fit here do not fit into the first entry either.
        let is_complete = sources.all(|it| it.collect(&mut entry, &mut bytes_left))
            && of_plugins.all(|skill| {
                let fits = reserve_row(&skill, &mut bytes_left);
                entry.skills.extend(fits.then_some(skill));
                fits
            });
        Self {
            admission,
            shared,
            shared_skills: entry,
            is_shared_complete: is_complete,
            entries: Vec::new(),
            bytes_left: bytes_max,
        }
    }

    /// Adds the skills that apply in a folder: those that apply everywhere, and those of the
    /// repository around it.
    pub(crate) fn add_folder(&mut self, cwd: &str) {
        let mut entry = empty_entry(cwd);
        let sources = repository_sources(Path::new(cwd), self.shared, self.admission);
        let mut sources = sources.into_iter();
        let is_complete = self.add_shared(&mut entry)
            && sources.all(|it| it.collect(&mut entry, &mut self.bytes_left));
        if !is_complete {
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

    /// Adds the skills that apply everywhere to an entry; returns false when they do not all fit.
    fn add_shared(&mut self, entry: &mut SkillsListEntry) -> bool {
        for error in &self.shared_skills.errors {
            if !reserve_row(error, &mut self.bytes_left) {
                return false;
            }
            entry.errors.push(error.clone());
        }
        for skill in &self.shared_skills.skills {
            if !reserve_row(skill, &mut self.bytes_left) {
                return false;
            }
            entry.skills.push(skill.clone());
        }
        if !self.is_shared_complete {
            self.bytes_left = 0;
        }
        self.is_shared_complete
    }

    /// Returns the entries, in the order in which they were added.
    pub(crate) fn entries(self) -> Vec<SkillsListEntry> {
        self.entries
    }
}

/// Returns the row of a plugin's skill.
fn plugin_skill(skill: PluginSkill) -> SkillMetadata {
    SkillMetadata {
        name: skill.name,
        description: skill.description,
        enabled: true,
        path: skill.path,
        scope: SkillScope::User,
        dependencies: None,
        interface: None,
        plugin_id: Some(skill.plugin),
        short_description: None,
    }
}

fn empty_entry(cwd: &str) -> SkillsListEntry {
    SkillsListEntry {
        cwd: cwd.to_owned(),
        errors: Vec::new(),
        skills: Vec::new(),
    }
}

/// Subtracts the size of a row from the remaining bytes; returns false when they do not suffice.
fn reserve_row<T: Serialize>(row: &T, bytes_left: &mut usize) -> bool {
    let bytes = serde_json::to_vec(row).map_or(0, |row| row.len() + 1);
    match bytes_left.checked_sub(bytes) {
        Some(remaining) => *bytes_left = remaining,
        // No shorter row may follow: the selection must not depend on the length of rows.
        None => *bytes_left = 0,
    }
    *bytes_left > 0
}

/// Reads the file of a skill that applies in a folder, from where it would be listed. Returns `None`
/// for any other file, and if it cannot be read.
pub(crate) fn text_of(
    path: &Path,
    cwd: &str,
    shared: &[SkillFolder],
    admission: &PathAdmission,
) -> Option<String> {
    let folder = path.parent()?;
    let mut sources = shared_sources(shared, admission);
    sources.extend(repository_sources(Path::new(cwd), shared, admission));
    let is_source = |it: &&SkillSource| folder.parent() == Some(it.folder.as_path());
    let source = sources.iter().find(is_source)?;
    // The folder that is read is the judged one, even if it is replaced meanwhile.
    let opened = source.admission.open(&source.folder).ok()?;
    let file = opened.path().join(folder.file_name()?).join(SKILL_FILE);
    source.text(&file, false).ok()
}

/// Whether any folder exists whose skills apply in a folder.
pub(crate) fn have_folders(cwd: &str, shared: &[SkillFolder]) -> bool {
    let below = |it: &PathBuf| REPO_FOLDERS.iter().any(|name| it.join(name).is_dir());
    shared.iter().any(|it| it.path.is_dir()) || projects::folders(Path::new(cwd)).iter().any(below)
}

fn shared_sources(shared: &[SkillFolder], admission: &PathAdmission) -> Vec<SkillSource> {
    let sources = shared.iter().map(|it| SkillSource {
        folder: it.path.clone(),
        scope: it.scope.clone(),
        admission: admission.clone(),
    });
    sources.collect()
}

/// Returns the sources of the repository around a folder, without those that apply everywhere. Links
/// in a repository must stay inside it, as those of `AGENTS.md`.
fn repository_sources(
    cwd: &Path,
    shared: &[SkillFolder],
    admission: &PathAdmission,
) -> Vec<SkillSource> {
    let folders = projects::folders(cwd);
    let root = folders.last().and_then(|it| fs::canonicalize(it).ok());
    let Some(root) = root else {
        return Vec::new();
    };
    let admission = admission.below(&root);
    let paths = folders
        .iter()
        .flat_map(|it| REPO_FOLDERS.map(|name| it.join(name)));
    let of_repository = paths.filter(|it| !shared.iter().any(|shared| shared.path == *it));
    let sources = of_repository.map(|folder| SkillSource {
        folder,
        scope: SkillScope::Repo,
        admission: admission.clone(),
    });
    sources.collect()
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
    /// Adds the skills in the folder; returns false when they do not all fit.
    fn collect(&self, entry: &mut SkillsListEntry, bytes_left: &mut usize) -> bool {
        // The listed folder is the judged one, even if it is replaced meanwhile.
        let Ok(opened) = self.admission.open(&self.folder) else {
            return true;
        };
        let Ok(children) = fs::read_dir(opened.path()) else {
            return true;
        };
        let mut count = 0;
        for child in children.flatten() {
            let name = child.file_name();
            let file = child.path().join(SKILL_FILE);
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
            let path = self
                .folder
                .join(&name)
                .join(SKILL_FILE)
                .display()
                .to_string();
            let heading = self.text(&file, is_link).and_then(|text| {
                let heading = SkillHeading::parse(&text);
                heading.map_err(|error| error.to_string())
            });
            let fits = match heading {
                Ok(heading) => {
                    let folder = || truncated(&name.to_string_lossy(), SKILL_NAME_BYTES_MAX);
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
                    let fits = reserve_row(&skill, bytes_left);
                    entry.skills.extend(fits.then_some(skill));
                    fits
                }
                Err(message) => {
                    let error = SkillErrorInfo { message, path };
                    let fits = reserve_row(&error, bytes_left);
                    entry.errors.extend(fits.then_some(error));
                    fits
                }
            };
            if !fits {
                return false;
            }
        }
        true
    }

    /// Reads the file of a skill.
    fn text(&self, file: &Path, is_link: bool) -> Result<String, String> {
        let opened = self.admission.open(file);
        let opened = opened.and_then(|it| match it.is_named_like(MARKDOWN)? {
            true => it.file(file),
            false => Err(WireError::Refused("is no Markdown".into())),
        });
        let (file, _) = opened.map_err(|error| match is_link {
            // Does not reveal whether the target exists.
            true => NOT_FOLLOWED.to_owned(),
            false => open_error_text(error),
        })?;
        // Not every file reports its true length, so the read itself is bounded.
        let mut text = Vec::new();
        file.take(SKILL_BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(|error| error.to_string())?;
        if text.len() as u64 > SKILL_BYTES_MAX {
            return Err(format!("larger than {SKILL_BYTES_MAX} bytes"));
        }
        String::from_utf8(text).map_err(|_| "is not UTF-8".to_owned())
    }
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink())
}

/// Returns the reason why a file could not be opened.
fn open_error_text(error: WireError) -> String {
    match error {
        WireError::Io(error) => error.to_string(),
        WireError::ClosedPath { .. } => "is not served".to_owned(),
        _ => "is not a regular file".to_owned(),
    }
}

/// Returns the beginning of a text, at most this many bytes.
fn truncated(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user(path: &Path) -> SkillFolder {
        SkillFolder {
            path: path.to_owned(),
            scope: SkillScope::User,
        }
    }

    #[test]
    fn a_folder_lists_a_limited_number_of_skills() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..=SKILLS_MAX {
            let skill = folder.path().join(number.to_string());
            fs::create_dir(&skill).expect("a folder");
            fs::write(skill.join("SKILL.md"), "---\ndescription: x\n---\n").expect("a file");
        }
        let admission = PathAdmission::default();
        let shared = [of_user(folder.path())];
        let mut list = SkillList::new(&shared, Vec::new(), &admission);
        list.add_folder("/nowhere");
        let entry = &list.entries()[0];
        assert_eq!(entry.skills.len(), SKILLS_MAX);
        let path = folder.path().display().to_string();
        let errors: Vec<_> = entry.errors.iter().map(|error| &error.path).collect();
        assert_eq!(errors, [&path]);
    }

    #[test]
    fn a_response_has_a_limited_size_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..20 {
            let skill = folder.path().join(number.to_string());
            fs::create_dir(&skill).expect("a folder");
            // Half of them cannot be read, and are listed as errors.
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
            let shared = [of_user(folder.path())];
            let mut list = SkillList::within(bytes_max, &shared, Vec::new(), &admission);
            list.add_folder("/nowhere");
            list.add_folder("/elsewhere");
            length(list)
        };
        assert_eq!(fill(1 << 20).1, [20, 20]);
        for bytes_max in [1, 1000, 5000, 9000] {
            let (bytes, rows) = fill(bytes_max);
            // Beside the rows, each folder has its name and the note that some are left out.
            assert!(bytes < bytes_max + 2 * 300, "{bytes} for {bytes_max}");
            assert!(rows[0] + rows[1] < 40, "{rows:?} for {bytes_max}");
            assert_eq!(rows[1] > 1, bytes_max == 9000, "{rows:?} for {bytes_max}");
        }
    }
}
