//! The skills in the folder of a plugin.
//!
//! Their names begin with the id of the plugin, so none has the name of one of the user's.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use raddle_config::{SKILL_BYTES_MAX, SKILL_FILE, SkillHeading, SkillHeadingError};
use raddle_core::ports::PluginSkill;

use super::manifest::Manifest;

/// Folder of skills, unless the manifest names others.
const FOLDER: &str = "skills";

/// Limit: skills of one plugin; beyond it, the plugin is rejected.
const SKILLS_MAX: usize = 32;

/// Limit: name of a plugin's skill, without the id of the plugin; beyond it, the plugin is rejected.
const NAME_BYTES_MAX: usize = 50;

/// Reason why the skills of a plugin cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginSkillError {
    /// A file or a folder cannot be read.
    #[error("{} cannot be read: {error}; correct `contributions.skills`", path.display())]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// A file is too long.
    #[error("{} has more than {SKILL_BYTES_MAX} bytes; move parts of it into other files", path.display())]
    TooLong {
        /// Path of the file.
        path: PathBuf,
    },
    /// A path is no UTF-8.
    #[error("{} has a path or content that is no UTF-8; rename or correct it", path.display())]
    NotUtf8 {
        /// Path of the file.
        path: PathBuf,
    },
    /// The heading of a file is invalid.
    #[error("{} {error}", path.display())]
    Heading {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        error: SkillHeadingError,
    },
    /// A name cannot be mentioned in a message.
    #[error(
        "{}: the name `{name}` cannot be mentioned; use at most {NAME_BYTES_MAX} letters, digits, - \
         and _, with a letter or a digit at both ends",
        path.display()
    )]
    Name {
        /// Path of the file.
        path: PathBuf,
        /// Name of the skill.
        name: String,
    },
    /// Two skills have one name.
    #[error("{} and another skill have the name `{name}`; rename one of them", path.display())]
    Duplicate {
        /// Path of the file.
        path: PathBuf,
        /// Name of the skill.
        name: String,
    },
    /// There are too many skills.
    #[error("it has more than {SKILLS_MAX} skills; offer fewer")]
    TooMany,
}

/// Reads the skills of the plugin in this folder, in the order of their names. It may block on the
/// disk.
pub(super) fn read(
    folder: &Path,
    manifest: &Manifest,
) -> Result<Vec<PluginSkill>, PluginSkillError> {
    let mut skills: Vec<PluginSkill> = Vec::new();
    let named = manifest.skills.as_deref();
    let default = [FOLDER.to_owned()];
    for source in named.unwrap_or(&default) {
        let source = folder.join(source);
        let children = match fs::read_dir(&source) {
            Ok(children) => children,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(read_error(&source, error)),
        };
        for child in children {
            let child = child.map_err(|error| read_error(&source, error))?;
            let path = child.path().join(SKILL_FILE);
            // Other files and folders, such as a README, are none of a skill.
            if !path.is_file() {
                continue;
            }
            if skills.len() == SKILLS_MAX {
                return Err(PluginSkillError::TooMany);
            }
            let skill = skill(&manifest.id, &child.file_name().to_string_lossy(), path)?;
            if skills.iter().any(|it| it.name == skill.name) {
                let (name, path) = (skill.name, skill.path.into());
                return Err(PluginSkillError::Duplicate { path, name });
            }
            skills.push(skill);
        }
    }
    skills.sort_by(|first, second| first.name.cmp(&second.name));
    Ok(skills)
}

/// Reads the file of a skill. It may block on the disk.
pub(super) fn text(path: &Path) -> Result<String, PluginSkillError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SKILL_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| read_error(path, error))?;
    let path = || path.to_owned();
    if bytes.len() as u64 > SKILL_BYTES_MAX {
        return Err(PluginSkillError::TooLong { path: path() });
    }
    String::from_utf8(bytes).map_err(|_| PluginSkillError::NotUtf8 { path: path() })
}

fn skill(plugin: &str, folder: &str, path: PathBuf) -> Result<PluginSkill, PluginSkillError> {
    let heading = SkillHeading::parse(&text(&path)?).map_err(|error| {
        let path = path.clone();
        PluginSkillError::Heading { path, error }
    })?;
    let name = heading.name.unwrap_or_else(|| folder.to_owned());
    if !is_name(&name) {
        return Err(PluginSkillError::Name { path, name });
    }
    let Some(path) = path.to_str() else {
        return Err(PluginSkillError::NotUtf8 { path });
    };
    Ok(PluginSkill {
        plugin: plugin.to_owned(),
        name: format!("{plugin}:{name}"),
        description: heading.description,
        path: path.to_owned(),
    })
}

fn is_name(text: &str) -> bool {
    let is_valid = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    let is_end = |it: Option<u8>| it.is_some_and(|it| it.is_ascii_alphanumeric());
    let mut bytes = text.bytes();
    bytes.len() <= NAME_BYTES_MAX
        && text.bytes().all(is_valid)
        && is_end(text.bytes().next())
        && is_end(bytes.next_back())
}

fn read_error(path: &Path, error: io::Error) -> PluginSkillError {
    let path = path.to_owned();
    PluginSkillError::Read { path, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the skills of a plugin with these files, or returns the error with `DIR` for its path.
    fn read_files(contributions: &str, files: &[(&str, &str)]) -> Result<Vec<PluginSkill>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = "id = 'org.x'\nversion = '1'\nentrypoint = ['python3', 'main.py']\n";
        let manifest = format!("{manifest}[contributions]\n{contributions}\n");
        for (path, text) in [("plugin.toml", manifest.as_str())].iter().chain(files) {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let manifest = Manifest::read(folder.path()).expect("a manifest");
        let shown = folder.path().display().to_string();
        let skills = read(folder.path(), &manifest);
        let skills = skills.map_err(|error| error.to_string().replace(&shown, "DIR"))?;
        let relative = skills.into_iter().map(|it| PluginSkill {
            path: it.path.replace(&shown, "DIR"),
            ..it
        });
        Ok(relative.collect())
    }

    fn skill(name: &str, path: &str) -> PluginSkill {
        PluginSkill {
            plugin: "org.x".to_owned(),
            name: name.to_owned(),
            description: "Does it.".to_owned(),
            path: format!("DIR/{path}"),
        }
    }

    const FILE: &str = "---\ndescription: Does it.\n---\n";

    #[test]
    fn skills_are_named_after_the_plugin_and_their_folder_or_heading() {
        let named = "---\nname: ship-it\ndescription: Does it.\n---\n";
        let files = [
            ("skills/tidy/SKILL.md", FILE),
            ("skills/a/SKILL.md", named),
            ("skills/README.md", ""),
            ("skills/notes/README.md", ""),
            ("more/b/SKILL.md", FILE),
        ];
        let expected = [
            skill("org.x:ship-it", "skills/a/SKILL.md"),
            skill("org.x:tidy", "skills/tidy/SKILL.md"),
        ];
        assert_eq!(read_files("", &files).as_deref(), Ok(&expected[..]));
        let expected = [skill("org.x:b", "more/b/SKILL.md")];
        let found = read_files("skills = ['more']", &files);
        assert_eq!(found.as_deref(), Ok(&expected[..]));
        assert_eq!(read_files("", &[]), Ok(Vec::new()));
        assert_eq!(read_files("skills = []", &files), Ok(Vec::new()));
    }

    #[test]
    fn invalid_skills_are_rejected() {
        let named = |name: &str| format!("---\nname: {name}\ndescription: x\n---\n");
        let (long, spaced, other) = (named(&"x".repeat(51)), named("a b"), named("b"));
        let duplicates = [("skills/a/SKILL.md", &*other), ("skills/b/SKILL.md", FILE)];
        let large = "x".repeat(300 << 10);
        let path = "skills/a/SKILL.md";
        for (contributions, files, expected) in [
            ("skills = ['none']", &[][..], "DIR/none cannot be read: "),
            (
                "",
                &[(path, "")],
                "DIR/skills/a/SKILL.md must begin with a line `---`",
            ),
            (
                "",
                &[(path, &*long)],
                "DIR/skills/a/SKILL.md: the name `xxx",
            ),
            (
                "",
                &[(path, &*spaced)],
                "DIR/skills/a/SKILL.md: the name `a b`",
            ),
            (
                "",
                &[(path, &*named("-a"))],
                "DIR/skills/a/SKILL.md: the name `-a`",
            ),
            (
                "",
                &[(path, &*named("a:"))],
                "DIR/skills/a/SKILL.md: the name `a:`",
            ),
            (
                "",
                &[(path, &*large)],
                "DIR/skills/a/SKILL.md has more than 262144 bytes",
            ),
            ("", &duplicates, "DIR/skills/"),
        ] {
            let error = read_files(contributions, files).expect_err(expected);
            assert!(error.starts_with(expected), "{error}");
        }
        let error = read_files("", &duplicates).expect_err("duplicates");
        let expected = "and another skill have the name `org.x:b`; rename one of them";
        assert!(error.ends_with(expected), "{error}");
        let names: Vec<String> = (0..33).map(|it| format!("skills/{it}/SKILL.md")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), FILE)).collect();
        let error = read_files("", &files).expect_err("many");
        assert_eq!(error, "it has more than 32 skills; offer fewer");
        assert_eq!(read_files("", &files[..32]).map(|it| it.len()), Ok(32));
    }
}
