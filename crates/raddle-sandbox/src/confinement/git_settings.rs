//! A repository, and the paths that its configuration and the user's configuration name.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::budget::SurveyBudget;
use super::git_config::{self, NamedPath, PathUse, Setting};
use super::home::home;
use super::policy_path::PolicyPath;
use super::safe_open::{ordinary_file, read_at_most};

/// Limit: the path in a `.git` file; beyond it, the file is ignored.
///
/// Git itself does not follow a longer path.
const PATH_BYTES_MAX: usize = 4_095;
/// Limit: a configuration file of git; beyond it, the rest is not read.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
/// Configuration files that are read for one repository.
const CONFIGS_MAX: usize = 64;
/// Depth of includes in configuration files, the same as in git.
const INCLUDES_MAX: usize = 10;
/// Folders that count as the work tree of one repository.
const WORK_TREES_MAX: usize = 4;

/// A repository with a work tree.
#[derive(Debug)]
pub(super) struct Repository {
    /// The top of its work tree.
    pub folder: PathBuf,
    pub git_dir: PathBuf,
    /// The git directory that all work trees share; often the same one.
    common: PathBuf,
}

impl Repository {
    /// Returns the repository whose work tree has its top here.
    pub fn at(folder: &Path) -> Option<Self> {
        let dot_git = folder.join(".git");
        let git_dir = match fs::metadata(&dot_git).ok()?.is_dir() {
            true => dot_git,
            false => named_in(&dot_git, "gitdir: ", folder)?,
        };
        if fs::symlink_metadata(git_dir.join("HEAD")).is_err() {
            return None;
        }
        let common = named_in(&git_dir.join("commondir"), "", &git_dir);
        Some(Self {
            folder: folder.to_owned(),
            common: common.unwrap_or_else(|| git_dir.clone()),
            git_dir,
        })
    }

    /// Returns the repository whose work tree contains this folder.
    pub fn around(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }
}

/// The settings that apply to a repository, each with the folder of its file.
pub(super) struct GitSettings {
    all: Vec<(Rc<Path>, Setting)>,
    files: usize,
}

impl GitSettings {
    /// Reads the settings of the machine and of the user.
    pub fn shared(home: Option<&Path>, budget: &mut SurveyBudget) -> Self {
        let mut settings = Self {
            all: Vec::new(),
            files: 0,
        };
        settings.read(Path::new("/etc/gitconfig"), home, 0, budget);
        if let Some(home) = home {
            let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
            let xdg = xdg.filter(|it| it.is_absolute());
            let xdg = xdg.unwrap_or_else(|| home.join(".config"));
            settings.read(&xdg.join("git/config"), Some(home), 0, budget);
            settings.read(&home.join(".gitconfig"), Some(home), 0, budget);
        }
        settings
    }

    /// Reads the settings of one repository.
    pub fn of(repository: &Repository, home: Option<&Path>, budget: &mut SurveyBudget) -> Self {
        let mut settings = Self {
            all: Vec::new(),
            files: 0,
        };
        settings.read(&repository.common.join("config"), home, 0, budget);
        settings.read(&repository.git_dir.join("config.worktree"), home, 0, budget);
        settings
    }

    /// Reads a file and the files that it includes, whatever the condition.
    fn read(&mut self, file: &Path, home: Option<&Path>, depth: usize, budget: &mut SurveyBudget) {
        if self.files == CONFIGS_MAX || depth > INCLUDES_MAX || budget.look(file).is_err() {
            return;
        }
        let Ok(text) = read_at_most(file, CONFIG_BYTES_MAX) else {
            return;
        };
        self.files += 1;
        budget.spend(text.len());
        if budget.is_spent() {
            return;
        }
        let folder: Rc<Path> = file.parent().unwrap_or(Path::new("/")).into();
        let settings = git_config::parse(&text);
        for named in git_config::named_paths(&settings) {
            if named.use_ == PathUse::Include
                && let Some(path) = git_config::expand(&named.path, home)
            {
                self.read(&folder.join(path), home, depth + 1, budget);
            }
        }
        let settings = settings.into_iter();
        self.all.extend(settings.map(|it| (folder.clone(), it)));
    }

    pub fn oid_bytes(&self) -> usize {
        let is_long = |it: &Setting| {
            it.is("extensions", "objectformat") && it.value.as_deref() == Some(b"sha256")
        };
        match self.all.iter().any(|(_, it)| is_long(it)) {
            true => 32,
            false => 20,
        }
    }

    /// Returns the tops of the work tree of a repository with these settings: the folder with its
    /// `.git`, and those that `core.worktree` names.
    pub fn tops(&self, repository: &Repository, budget: &mut SurveyBudget) -> Vec<PathBuf> {
        let mut tops = vec![repository.folder.clone()];
        let own = fs::canonicalize(&repository.folder).ok();
        let named = self.all.iter().filter(|(_, it)| it.is("core", "worktree"));
        for value in named.filter_map(|(_, it)| it.value.as_deref()) {
            let path = repository.git_dir.join(OsStr::from_bytes(value));
            let Ok(PolicyPath { real, .. }) = PolicyPath::within(&path, budget) else {
                break;
            };
            if tops.len() < WORK_TREES_MAX && own.as_ref() != Some(&real) && !tops.contains(&real) {
                tops.push(real);
            }
        }
        tops
    }

    /// Returns the keys of settings that run a program by a path that is known only at run time.
    pub fn unknown_programs(&self) -> impl Iterator<Item = String> {
        let settings = self.all.iter().map(|(_, it)| std::slice::from_ref(it));
        settings.flat_map(git_config::unknown_programs)
    }

    /// Returns the absolute paths that control git in the work tree with one of these tops.
    pub fn paths(
        &self,
        tops: &[PathBuf],
        home: Option<&Path>,
    ) -> impl Iterator<Item = (PathBuf, NamedPath)> {
        self.all.iter().flat_map(move |(folder, setting)| {
            let named = git_config::named_paths(std::slice::from_ref(setting));
            named.flat_map(move |named| {
                let bases = match named.use_ {
                    PathUse::Include => vec![folder.to_path_buf()],
                    PathUse::Folder | PathUse::Program => bases(tops, &named, home),
                };
                let path = git_config::expand(&named.path, home);
                let paths = path.into_iter().flat_map(move |path| {
                    // An absolute path is the same from every base.
                    let count = if path.is_absolute() { 1 } else { bases.len() };
                    let bases = bases.clone().into_iter().take(count);
                    bases.map(move |it| it.join(&path))
                });
                paths.map(move |path| (path, named.clone()))
            })
        })
    }
}

/// Returns the folders that the path of a setting may be relative to.
fn bases(tops: &[PathBuf], named: &NamedPath, home: Option<&Path>) -> Vec<PathBuf> {
    let mut bases = tops.to_vec();
    for folder in named.folders.iter() {
        let folder = git_config::expand(folder, home);
        let folders = folder
            .iter()
            .flat_map(|it| tops.iter().map(move |top| top.join(it)));
        bases.extend(folders);
    }
    bases
}

/// Returns the existing paths that control git, besides `.git`, in the repository that contains a
/// folder: hooks, included settings and programs that its configuration names. They are absolute
/// and without links; most lie outside of the folder. If the budget runs out, the work tree of the
/// repository is among them.
pub fn git_control_paths(folder: &Path) -> Vec<PathBuf> {
    control_paths_within(folder, SurveyBudget::of_file())
}

fn control_paths_within(folder: &Path, mut budget: SurveyBudget) -> Vec<PathBuf> {
    let home = home();
    let home = home.as_deref();
    let Some(repository) = Repository::around(folder) else {
        return Vec::new();
    };
    let shared = GitSettings::shared(home, &mut budget);
    let own = GitSettings::of(&repository, home, &mut budget);
    let tops = own.tops(&repository, &mut budget);
    let shared = shared.paths(&tops, home);
    let mut real = BTreeSet::new();
    for (path, named) in shared.chain(own.paths(&tops, home)) {
        if budget.is_spent() {
            break;
        }
        let Ok(policy_path) = PolicyPath::within(&path, &mut budget) else {
            continue;
        };
        let controls_git = match named.use_ {
            PathUse::Program => policy_path.real.is_file(),
            PathUse::Folder | PathUse::Include => true,
        };
        // To protect a folder that contains the repository would leave nothing to work in.
        if controls_git && !repository.folder.starts_with(&policy_path.real) {
            real.insert(policy_path.real);
        }
    }
    if budget.is_spent() {
        real.insert(repository.folder);
    }
    real.into_iter().collect()
}

/// Returns the path that a small file names after a prefix, relative to a folder.
pub(super) fn named_in(file: &Path, prefix: &str, folder: &Path) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.is_file() {
        return None;
    }
    Some(folder.join(gitfile_path(ordinary_file(file).ok()?, prefix)?))
}

/// Returns the path that a file holds after a prefix, as git reads `.git` files and `commondir`. It
/// reads no more than the longest path and ignores a longer one.
pub fn gitfile_path(file: impl Read, prefix: &str) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    // One more byte distinguishes a path that is too long from one that is not.
    let bytes_max = prefix.len() + PATH_BYTES_MAX + 1;
    file.take(bytes_max as u64).read_to_end(&mut bytes).ok()?;
    let path = bytes.strip_prefix(prefix.as_bytes())?;
    let end = path.iter().rposition(|it| !matches!(it, b'\n' | b'\r'))?;
    // Git passes it on as a string that ends at a zero.
    let path = path[..=end].split(|it| *it == 0).next()?;
    let is_path = (1..=PATH_BYTES_MAX).contains(&path.len());
    is_path.then(|| OsStr::from_bytes(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lookup runs for each file of a patch.
    #[test]
    fn a_repository_that_exceeds_the_budget_is_protected_as_a_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(folder.path()).expect("its plain path");
        fs::create_dir(root.join(".git")).expect("a folder");
        fs::write(root.join(".git/HEAD"), "").expect("a file");
        let hooks = "[core]\n hooksPath = hooks\n";
        for (more, is_whole) in [
            (String::new(), false),
            ("# a long comment\n".repeat(60_000), true),
            ("[include]\n path = config\n".to_owned(), false),
            (
                format!("[pager]\n a = sh{}\n", " ./x".repeat(60)).repeat(2_000),
                true,
            ),
            // Each setting costs a lookup on the disk, however short it is.
            ("[includeIf \"x\"]\n path = n\n".repeat(20), false),
            ("[includeIf \"x\"]\n path = n\n".repeat(2_000), true),
            ("[core]\n editor = ./n\n".repeat(2_000), true),
        ] {
            fs::write(root.join(".git/config"), format!("{hooks}{more}")).expect("a file");
            let paths = control_paths_within(&root, SurveyBudget::of_bytes(1_000_000));
            assert_eq!(paths.contains(&root), is_whole, "{}", more.len());
            assert!(is_whole || paths.contains(&root.join("hooks")), "{paths:?}");
        }
    }

    #[test]
    fn a_path_is_read_no_further_than_a_path_may_be_long() {
        let longest = "a".repeat(PATH_BYTES_MAX);
        for (text, expected) in [
            ("gitdir: store\n".to_owned(), Some("store")),
            (
                format!("gitdir: store{}", "\n".repeat(100_000)),
                Some("store"),
            ),
            (
                format!("gitdir: store\0{}", "a".repeat(100_000)),
                Some("store"),
            ),
            ("gitdir: \0store".to_owned(), None),
            (format!("gitdir: {longest}\n"), Some(&longest[..])),
            (format!("gitdir: {longest}a\n"), None),
            (format!("gitdir: {}", "a/".repeat(100_000)), None),
            ("gitdir: \n".to_owned(), None),
            ("store".to_owned(), None),
            (String::new(), None),
        ] {
            let mut file = std::io::Cursor::new(&text);
            let path = gitfile_path(&mut file, "gitdir: ");
            let about = &text[..text.len().min(20)];
            assert_eq!(path.as_deref(), expected.map(Path::new), "{about}");
            let read = file.position();
            assert!(read < 5_000, "{read} bytes of {about}");
        }
    }
}
