//! Skills, as the agent sees them: folders with instructions for one kind of task each.

use std::fmt::Debug;

/// Access to the skills of the user, of the administrator and of workspaces.
pub trait Skills: Debug + Send + Sync {
    /// Reads the skills that apply in a folder. Blocks on the disk.
    fn offer(&self, cwd: &str) -> SkillOffer;

    /// Reads the file of a skill that was offered in this folder. Returns `None` if that is no
    /// longer possible. Blocks on the disk.
    fn text(&self, cwd: &str, skill: &OfferedSkill) -> Option<String>;

    /// Stores in the operator's configuration whether a folder is trusted. Blocks on the disk.
    fn decide(&self, folder: &str, is_trusted: bool) -> Result<(), TrustError>;
}

/// Reason why the trust in a folder was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TrustError(pub String);

/// The skills that apply in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillOffer {
    /// Enabled skills that the model may use, sorted by name and path.
    pub skills: Vec<OfferedSkill>,
    /// Folder whose skills are withheld, because the operator has not said whether it is trusted.
    pub undecided: Option<UndecidedFolder>,
}

/// A folder that the operator has not said to be trusted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedFolder {
    /// Its absolute path.
    pub folder: String,
    /// Warning for the user, with the remedy.
    pub warning: String,
}

/// A skill that the model may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedSkill {
    /// Name by which the user mentions it.
    pub name: String,
    /// Purpose of the skill, and when to use it.
    pub description: String,
    /// Absolute path of its file.
    pub path: String,
    /// Whether its file is hidden from commands in a sandbox.
    pub is_hidden: bool,
}
