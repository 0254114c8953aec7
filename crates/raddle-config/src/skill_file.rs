//! The file of a skill, `SKILL.md`: its heading, and the limits of both.

/// Name of a skill's file.
pub const SKILL_FILE: &str = "SKILL.md";

/// Limit: a skill's file; beyond it, the skill is listed as an error.
pub const SKILL_BYTES_MAX: u64 = 256 << 10;

/// The longest name; longer ones are truncated.
pub const SKILL_NAME_BYTES_MAX: usize = 256;

/// The longest description; longer ones are truncated.
const DESCRIPTION_BYTES_MAX: usize = 4096;

/// The heading of a skill's file: the block between two `---` lines at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillHeading {
    /// Name; `None` if the folder of the file names the skill.
    pub name: Option<String>,
    /// Purpose of the skill, and when to use it.
    pub description: String,
}

/// Reason why a file has no usable heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillHeadingError {
    /// The first line is another one.
    #[error("must begin with a line `---`, then name and description, then `---`")]
    NotAtTop,
    /// There is no description.
    #[error("`description` is missing")]
    NoDescription,
    /// The second `---` is missing.
    #[error("the heading has no closing `---`")]
    NotClosed,
}

impl SkillHeading {
    /// Parses the heading of a file. Unknown keys have no effect.
    pub fn parse(text: &str) -> Result<Self, SkillHeadingError> {
        let mut lines = text.lines();
        if lines.next().map(str::trim_end) != Some("---") {
            return Err(SkillHeadingError::NotAtTop);
        }
        let (mut name, mut description) = (None, None);
        for line in lines {
            if line.trim_end() == "---" {
                let description = description.ok_or(SkillHeadingError::NoDescription)?;
                return Ok(Self { name, description });
            }
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim().trim_matches(['"', '\'']);
            match key {
                "name" if !value.is_empty() => name = Some(truncated(value, SKILL_NAME_BYTES_MAX)),
                "description" if !value.is_empty() => {
                    description = Some(truncated(value, DESCRIPTION_BYTES_MAX));
                }
                _ => {}
            }
        }
        Err(SkillHeadingError::NotClosed)
    }
}

/// Returns the beginning of a text, at most this many bytes.
fn truncated(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        let text = "---\nname: a\ndescription: \"does a: well\"\nother: x\n---\nbody";
        let expected = SkillHeading {
            name: Some("a".into()),
            description: "does a: well".into(),
        };
        assert_eq!(SkillHeading::parse(text), Ok(expected));
        for (invalid, error) in [
            ("", SkillHeadingError::NotAtTop),
            ("name: a", SkillHeadingError::NotAtTop),
            ("---\nname: a\n", SkillHeadingError::NotClosed),
            ("---\nname: a\n---\n", SkillHeadingError::NoDescription),
        ] {
            assert_eq!(SkillHeading::parse(invalid), Err(error), "{invalid}");
        }
    }

    #[test]
    fn long_names_and_descriptions_are_cut() {
        let long = "ü".repeat(5000);
        let parsed =
            SkillHeading::parse(&format!("---\nname: x{long}\ndescription: {long}\n---\n"));
        let parsed = parsed.expect("a heading");
        // A letter is not cut in half.
        let name = parsed.name.map(|name| name.len());
        assert_eq!(name, Some(SKILL_NAME_BYTES_MAX - 1));
        assert_eq!(parsed.description.len(), DESCRIPTION_BYTES_MAX);
    }
}
