//! Skills: folders with a `SKILL.md` that tell the agent how to do something.
//!
//! A skill's file is text for the model. Nothing in it is configuration and nothing is run.

use std::fs;
use std::path::{Path, PathBuf};

use raddle_protocol::{SkillErrorInfo, SkillMetadata, SkillScope, SkillsListEntry};

/// The longest `SKILL.md` that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The longest description that is told.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Where a repository keeps its skills.
const REPO_FOLDER: &str = ".agents/skills";

/// The skills that apply in a folder: the user's, and those of the repository around it.
pub(crate) fn in_folder(user: &Path, cwd: &str) -> SkillsListEntry {
    let mut entry = SkillsListEntry {
        cwd: cwd.to_owned(),
        errors: Vec::new(),
        skills: Vec::new(),
    };
    collect(user, &SkillScope::User, &mut entry);
    for folder in repository_folders(Path::new(cwd)) {
        collect(&folder.join(REPO_FOLDER), &SkillScope::Repo, &mut entry);
    }
    entry
        .skills
        .sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
    entry
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

fn collect(folder: &Path, scope: &SkillScope, entry: &mut SkillsListEntry) {
    let Ok(children) = fs::read_dir(folder) else {
        return;
    };
    for child in children.flatten() {
        let file = child.path().join("SKILL.md");
        if !file.is_file() {
            continue;
        }
        let path = file.display().to_string();
        match read(&file) {
            Ok(Heading { name, description }) => entry.skills.push(SkillMetadata {
                name: name.unwrap_or_else(|| child.file_name().to_string_lossy().into_owned()),
                description,
                enabled: true,
                path,
                scope: scope.clone(),
                dependencies: None,
                interface: None,
                plugin_id: None,
                short_description: None,
            }),
            Err(message) => entry.errors.push(SkillErrorInfo { message, path }),
        }
    }
}

/// What a skill says of itself.
#[derive(Debug, PartialEq, Eq)]
struct Heading {
    name: Option<String>,
    description: String,
}

fn read(file: &Path) -> Result<Heading, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("larger than {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    heading(&text)
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
            let description: String = description.ok_or("`description` is missing")?;
            return Ok(Heading {
                name,
                description: description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
            });
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match key {
            "name" if !value.is_empty() => name = Some(value),
            "description" if !value.is_empty() => description = Some(value),
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
}
