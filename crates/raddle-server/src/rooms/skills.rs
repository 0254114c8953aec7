//! Skills: folders with a `SKILL.md` that tell the agent how to do something.
//!
//! A skill's file is text for the model. Nothing in it is configuration and nothing is run.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use raddle_protocol::{SkillErrorInfo, SkillMetadata, SkillScope, SkillsListEntry};

use crate::rooms::files;
use crate::wire_error::WireError;

/// The longest `SKILL.md` that is read.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The longest name that is told.
const NAME_BYTES_MAX: usize = 256;

/// The longest description that is told.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// How many skills are read from one folder.
const SKILLS_MAX: usize = 1000;

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
    let mut count = 0;
    for child in children.flatten() {
        let file = child.path().join("SKILL.md");
        if !file.is_file() {
            continue;
        }
        if count == SKILLS_MAX {
            entry.errors.push(SkillErrorInfo {
                message: format!("has more than {SKILLS_MAX} skills; the others are left out"),
                path: folder.display().to_string(),
            });
            return;
        }
        count += 1;
        let path = file.display().to_string();
        match read(&file) {
            Ok(Heading { name, description }) => entry.skills.push(SkillMetadata {
                name: name
                    .unwrap_or_else(|| cut(&child.file_name().to_string_lossy(), NAME_BYTES_MAX)),
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
    let (file, _) = files::open(file).map_err(told)?;
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

/// Why a file could not be opened.
fn told(error: WireError) -> String {
    match error {
        WireError::Io(error) => error.to_string(),
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
    fn a_file_that_lies_about_its_length_is_not_read_to_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("SKILL.md");
        // The words of a command say that they are empty, however long they are.
        let word = "x".repeat(100_000);
        let mut command = std::process::Command::new("sh")
            .args(["-c", "read line", "sh", &word, &word, &word])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("a command");
        let words = format!("/proc/{}/cmdline", command.id());
        // Until the command is there, they are still ours.
        let begun = std::time::Instant::now();
        while fs::read(&words).map_or(0, |it| it.len()) < 3 * word.len() {
            assert!(begun.elapsed().as_secs() < 10, "the command did not start");
            std::thread::yield_now();
        }
        std::os::unix::fs::symlink(words, &file).expect("a link");
        let outcome = read(&file);
        // It ends when nobody can write to it any more.
        command.wait().expect("an end");
        assert_eq!(outcome, Err(format!("larger than {FILE_BYTES_MAX} bytes")));
    }

    #[test]
    fn a_folder_tells_no_more_skills_than_it_may() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in 0..=SKILLS_MAX {
            let skill = folder.path().join(number.to_string());
            fs::create_dir(&skill).expect("a folder");
            fs::write(skill.join("SKILL.md"), "---\ndescription: x\n---\n").expect("a file");
        }
        let told = in_folder(folder.path(), "/nowhere");
        assert_eq!(told.skills.len(), SKILLS_MAX);
        let path = folder.path().display().to_string();
        let errors: Vec<_> = told.errors.iter().map(|error| &error.path).collect();
        assert_eq!(errors, [&path]);
    }
}
