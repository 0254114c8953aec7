//! A reader of git's configuration files, for the paths that control git.
//!
//! It accepts what git accepts and stops where git stops with an error; it returns the settings
//! before that. The length of the text bounds the work.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limit: settings in one configuration file of git; beyond it, the rest is not read.
pub const SETTINGS_MAX: usize = 10_000;
/// Words of a command that are examined.
const WORDS_MAX: usize = 64;
/// Folders that a command may change to before it uses a path.
const FOLDERS_MAX: usize = 16;
/// Bytes shown of a section, and of a name.
const SHOWN_BYTES_MAX: usize = 100;

/// One setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// All settings of a section share it: a section may be as long as the file.
    section: Arc<Section>,
    name: Vec<u8>,
    /// `None` for a name without `=`.
    pub value: Option<Vec<u8>>,
}

/// The header of a section: its name, and perhaps a dot and a subsection.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    text: Vec<u8>,
    /// Position of the first dot.
    dot: Option<usize>,
}

/// The use that git makes of a path that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// It runs the programs in this folder.
    Folder,
    /// It reads this file as configuration.
    Include,
    /// It runs this program, or hands this file to one.
    Program,
}

/// A path that controls git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPath {
    /// The path as the setting spells it, relative to the folder that its use implies.
    pub path: PathBuf,
    /// The use that git makes of the path.
    pub use_: PathUse,
    /// The key of the setting.
    pub key: String,
    /// Folders that a command may change to before it uses the path, each relative to where it
    /// starts.
    pub folders: Arc<[PathBuf]>,
}

/// Parses a configuration file.
pub fn parse(text: &[u8]) -> Vec<Setting> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = ConfigReader { text, at: 0 };
    let mut settings = Vec::new();
    let _ = reader.settings(&mut settings);
    settings
}

/// Returns the paths that settings name.
pub fn named_paths(settings: &[Setting]) -> impl Iterator<Item = NamedPath> {
    settings.iter().flat_map(|setting| {
        let used = setting.use_of().zip(setting.value.as_deref());
        used.into_iter().flat_map(move |(use_, value)| {
            // Git passes it on as a string that ends at a zero.
            let value = value.split(|it| *it == 0).next().unwrap_or_default();
            let (paths, folders) = match use_ {
                PathUse::Folder | PathUse::Include => {
                    let whole = value.strip_prefix(b":(optional)").unwrap_or(value);
                    let whole = (!value.is_empty()).then(|| whole.to_vec());
                    (whole.into_iter().collect(), Arc::default())
                }
                PathUse::Program => {
                    let words = words(value);
                    let folders = folders(value);
                    let is_path = |(at, word): &(usize, Vec<u8>)| *at > 0 || word.contains(&b'/');
                    let words = words.into_iter().enumerate().filter(is_path);
                    (words.map(|(_, it)| it).collect::<Vec<_>>(), folders)
                }
            };
            paths.into_iter().map(move |path| NamedPath {
                path: OsStr::from_bytes(&path).into(),
                use_,
                key: setting.short_key(),
                folders: folders.clone(),
            })
        })
    })
}

/// Returns the keys of settings that run a program by a path that is known only at run time.
pub fn unknown_programs(settings: &[Setting]) -> impl Iterator<Item = String> {
    let programs = settings
        .iter()
        .filter(|it| it.use_of() == Some(PathUse::Program));
    let is_unknown = |it: &&Setting| {
        let value = it.value.as_deref().unwrap_or_default();
        has_unknown_path(&expand_known(value))
    };
    programs.filter(is_unknown).map(Setting::short_key)
}

impl Setting {
    /// Returns the key as git prints it: section, perhaps a subsection, and name, with dots between
    /// them.
    pub fn key(&self) -> Vec<u8> {
        match self.section.text.is_empty() {
            true => self.name.clone(),
            false => [&self.section.text, &self.name[..]].join(&b'.'),
        }
    }

    /// Returns the key as users see it, truncated.
    fn short_key(&self) -> String {
        let short = |it: &[u8]| {
            let cut = it.get(..SHOWN_BYTES_MAX).unwrap_or(it);
            String::from_utf8_lossy(cut).into_owned()
        };
        format!("{}.{}", short(&self.section.text), short(&self.name))
    }

    /// Whether the setting has this section, no subsection, and this name.
    pub fn is(&self, section: &str, name: &str) -> bool {
        let (own_section, subsection, variable) = self.parts();
        own_section == section.as_bytes() && subsection.is_none() && variable == name.as_bytes()
    }

    /// Returns the section, the subsection and the name.
    fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        let Section { text, dot } = &*self.section;
        match *dot {
            Some(dot) => (&text[..dot], Some(&text[dot + 1..]), &self.name),
            None => (text, None, &self.name),
        }
    }

    /// Whether the value is an address that a command serves.
    fn runs_transport(&self) -> bool {
        self.value
            .as_ref()
            .is_some_and(|it| it.starts_with(b"ext::"))
    }

    fn use_of(&self) -> Option<PathUse> {
        let (section, subsection, name) = self.parts();
        let is_sub = subsection.is_some();
        Some(match (section, is_sub, name) {
            (b"core", false, b"hookspath") | (b"init", false, b"templatedir") => PathUse::Folder,
            (b"include", false, b"path") | (b"includeif", true, b"path") => PathUse::Include,
            (
                b"core",
                false,
                b"fsmonitor"
                | b"sshcommand"
                | b"editor"
                | b"pager"
                | b"askpass"
                | b"gitproxy"
                | b"alternaterefscommand",
            )
            | (b"sequence", false, b"editor")
            | (b"pager", _, _)
            | (b"gpg", _, b"program" | b"defaultkeycommand")
            | (b"diff", _, b"external" | b"command" | b"textconv")
            | (b"merge", true, b"driver")
            | (b"filter", true, b"clean" | b"smudge" | b"process")
            | (b"credential", _, b"helper")
            | (b"interactive", false, b"difffilter")
            | (b"trailer", true, b"command" | b"cmd")
            | (b"hook", true, b"command")
            | (b"uploadpack", false, b"packobjectshook")
            | (b"remote", true, b"uploadpack" | b"receivepack" | b"vcs")
            | (b"submodule", true, b"update")
            | (b"tar", true, b"command")
            | (b"difftool" | b"mergetool", true, b"cmd" | b"path")
            | (b"lfs", true, b"path" | b"clean" | b"smudge")
            | (b"gc", false, b"recentobjectshook")
            | (b"imap", _, b"tunnel")
            | (
                b"sendemail",
                _,
                b"smtpserver" | b"sendmailcmd" | b"tocmd" | b"cccmd" | b"headercmd",
            )
            | (b"browser" | b"man" | b"guitool", true, b"cmd" | b"path") => PathUse::Program,
            (b"remote", true, b"url" | b"pushurl") if self.runs_transport() => PathUse::Program,
            _ => return None,
        })
    }
}

/// Expansions whose value is known before git runs a command: it starts at the top of the work
/// tree.
const KNOWN_EXPANSIONS: [(&[u8], &[u8]); 12] = [
    (b"${PWD}", b"."),
    (b"$PWD", b"."),
    (b"$(pwd)", b"."),
    (b"`pwd`", b"."),
    (b"~+/", b"./"),
    (b"$(git rev-parse --show-toplevel)", b"."),
    (b"`git rev-parse --show-toplevel`", b"."),
    (b"${GIT_WORK_TREE}", b"."),
    (b"$GIT_WORK_TREE", b"."),
    (b"${HOME}/", b"~/"),
    (b"$HOME/", b"~/"),
    (b"ext::", b" "),
];

/// Removes quotes from a command and replaces known expansions by their values.
fn expand_known(command: &[u8]) -> Vec<u8> {
    let is_plain = |it: &&u8| !b"\"'\\".contains(it);
    let command: Vec<u8> = command.iter().filter(is_plain).copied().collect();
    let mut expanded = Vec::with_capacity(command.len());
    let mut rest = &command[..];
    while let Some(first) = rest.first() {
        let is_next = |(name, _): &&(&[u8], &[u8])| {
            let is_longer = |it: &u8| it.is_ascii_alphanumeric() || *it == b'_';
            let end = rest
                .strip_prefix(*name)
                .map(|it| it.first().is_some_and(is_longer));
            // `$PWDX` is another variable.
            end.is_some_and(|is_longer| {
                !is_longer || !name.last().is_some_and(u8::is_ascii_alphabetic)
            })
        };
        match KNOWN_EXPANSIONS.iter().find(is_next) {
            Some((name, value)) => {
                expanded.extend_from_slice(value);
                rest = &rest[name.len()..];
            }
            None => {
                expanded.push(*first);
                rest = &rest[1..];
            }
        }
    }
    expanded
}

/// Whether a path in a command begins with an expansion, or has one in it.
fn has_unknown_path(command: &[u8]) -> bool {
    let is_end = |it: &u8| it.is_ascii_whitespace() || b";|&<>=".contains(it);
    let mut words = command.split(is_end);
    words.any(|word| {
        let expansion = word.iter().position(|it| b"$`*?{".contains(it));
        let is_in_path = expansion.is_some_and(|at| word[at..].contains(&b'/'));
        // The end of a substitution with spaces in it.
        let ends = |it: &[u8]| it == b")/" || it == b"`/";
        is_in_path || word.windows(2).any(ends)
    })
}

/// Returns the words of a command that may be paths, as written, and without quotes where that
/// differs. The shell looks up a first word without a slash on `PATH`.
fn words(command: &[u8]) -> Vec<Vec<u8>> {
    let mut words = split(command);
    for word in split(&expand_known(command)) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

fn split(command: &[u8]) -> Vec<Vec<u8>> {
    let is_end = |it: &u8| it.is_ascii_whitespace() || b"\"'`;|&()<>$=!\\{}".contains(it);
    let words = command.split(is_end).filter(|it| !it.is_empty());
    words.take(WORDS_MAX).map(<[u8]>::to_vec).collect()
}

/// Returns the folders that a command may change to: the arguments of `cd` and similar builtins,
/// even in sequence.
fn folders(command: &[u8]) -> Arc<[PathBuf]> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut add = |name: &[u8]| {
        let name = PathBuf::from(OsStr::from_bytes(name));
        let below: Vec<PathBuf> = folders.iter().map(|it| it.join(&name)).collect();
        folders.push(name);
        folders.extend(below);
        folders.truncate(FOLDERS_MAX);
    };
    let words = split(&expand_known(command));
    for (at, word) in words.iter().enumerate() {
        let next = words[at + 1..].iter().find(|it| !it.starts_with(b"-"));
        match &word[..] {
            b"cd" | b"pushd" | b"chdir" | b"-C" | b"--chdir" | b"--directory" => {
                if let Some(name) = next {
                    add(name);
                }
            }
            [b'-', b'C', name @ ..] => add(name),
            _ => {}
        }
    }
    folders.into()
}

/// Expands a leading `~/` as git does. Returns `None` for a path that begins with another user's
/// home or with git's own prefix.
pub fn expand(path: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let bytes = path.as_os_str().as_bytes();
    if let Some(rest) = bytes.strip_prefix(b"~/") {
        return Some(home?.join(OsStr::from_bytes(rest)));
    }
    let is_other = bytes.starts_with(b"~") || bytes.starts_with(b"%(prefix)/");
    (!is_other).then(|| path.to_owned())
}

/// Text that git does not accept; it ends the parsing.
struct SyntaxError;

struct ConfigReader<'a> {
    text: &'a [u8],
    at: usize,
}

impl ConfigReader<'_> {
    /// Returns the next byte. The end of the text reads as one more end of a line.
    fn next(&mut self) -> u8 {
        let byte = self.text.get(self.at).copied().unwrap_or(b'\n');
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        byte
    }

    fn is_over(&self) -> bool {
        self.at > self.text.len()
    }

    fn settings(&mut self, settings: &mut Vec<Setting>) -> Result<(), SyntaxError> {
        let mut section = Arc::new(Section::default());
        loop {
            match self.next() {
                b'\n' if self.is_over() => return Ok(()),
                it if is_space(it) => {}
                b'#' | b';' => while self.next() != b'\n' {},
                b'[' => {
                    let text = self.section()?;
                    let dot = text.iter().position(|it| *it == b'.');
                    section = Arc::new(Section { text, dot });
                }
                it if it.is_ascii_alphabetic() => {
                    let mut name = vec![it.to_ascii_lowercase()];
                    let value = self.setting(&mut name)?;
                    if settings.len() == SETTINGS_MAX {
                        return Err(SyntaxError);
                    }
                    let section = section.clone();
                    settings.push(Setting {
                        section,
                        name,
                        value,
                    });
                }
                _ => return Err(SyntaxError),
            }
            if self.is_over() {
                return Ok(());
            }
        }
    }

    fn section(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut name = Vec::new();
        loop {
            let byte = self.next();
            match byte {
                _ if self.is_over() => return Err(SyntaxError),
                b']' if name.is_empty() => return Err(SyntaxError),
                b']' => return Ok(name),
                _ if is_space(byte) => break self.subsection(byte, &mut name)?,
                _ if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return Err(SyntaxError),
            }
        }
        Ok(name)
    }

    fn subsection(&mut self, mut byte: u8, name: &mut Vec<u8>) -> Result<(), SyntaxError> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(SyntaxError);
            }
            byte = self.next();
        }
        if byte != b'"' {
            return Err(SyntaxError);
        }
        name.push(b'.');
        loop {
            let mut byte = self.next();
            match byte {
                b'"' => break,
                b'\\' => byte = self.next(),
                _ => {}
            }
            if byte == b'\n' {
                return Err(SyntaxError);
            }
            name.push(byte);
        }
        match self.next() {
            b']' => Ok(()),
            _ => Err(SyntaxError),
        }
    }

    fn setting(&mut self, name: &mut Vec<u8>) -> Result<Option<Vec<u8>>, SyntaxError> {
        let mut byte = self.next();
        while is_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.next();
        }
        while byte == b' ' || byte == b'\t' {
            byte = self.next();
        }
        match byte {
            b'\n' => Ok(None),
            b'=' => self.value().map(Some),
            _ => Err(SyntaxError),
        }
    }

    fn value(&mut self) -> Result<Vec<u8>, SyntaxError> {
        let mut value = Vec::new();
        let (mut is_quoted, mut is_comment) = (false, false);
        // Start of the trailing spaces.
        let mut end = None;
        loop {
            let byte = self.next();
            match byte {
                b'\n' if is_quoted => return Err(SyntaxError),
                b'\n' => {
                    value.truncate(end.unwrap_or(value.len()));
                    return Ok(value);
                }
                _ if is_comment => {}
                _ if is_space(byte) && !is_quoted => {
                    end = end.or(Some(value.len()));
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                b'#' | b';' if !is_quoted => is_comment = true,
                b'\\' => {
                    end = None;
                    value.push(match self.next() {
                        b'\n' => continue,
                        b't' => b'\t',
                        b'b' => 8,
                        b'n' => b'\n',
                        it @ (b'\\' | b'"') => it,
                        _ => return Err(SyntaxError),
                    });
                }
                b'"' => {
                    end = None;
                    is_quoted = !is_quoted;
                }
                _ => {
                    end = None;
                    value.push(byte);
                }
            }
        }
    }
}

/// The whitespace of git: neither form feeds nor vertical tabs.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Returns the output of git for a file: each key, a line end, its value, a zero.
    fn as_git_reads(text: &[u8]) -> Option<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("it is written");
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let git = git.args(["config", "--no-includes", "-z", "--list", "-f"]);
        let output = git.arg(file.path()).output().expect("git runs");
        output.status.success().then_some(output.stdout)
    }

    fn as_we_read(text: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        for setting in parse(text) {
            output.extend(setting.key());
            if let Some(value) = setting.value {
                output.push(b'\n');
                output.extend(value);
            }
            output.push(0);
        }
        output
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        let texts: [&[u8]; 21] = [
            b"",
            b"\xef\xbb\xbf[core]\n\thooksPath = .husky\n",
            b"[core]hooksPath=.husky ; and more\n",
            b"[Core]\r\n  HooksPath = \"a b\" # c\r\n",
            b"[core \"Sub\"] x = 1\n[core.Sub] y\n",
            b"[include]\n\tpath = ../a\\\n b\\tc\n",
            b"[includeIf \"gitdir:~/w/\"]\n path = x\n",
            b"[a \"b\\\"c\\\\d\"] e = f",
            b"[a] b = \"c;d\" e  #f\n",
            b"[a] b = c  \"  \"\n",
            b"[a]\nb\nc=\nd =  \n",
            b"[a] b-2 = 1\n",
            b"; only\n# this\n",
            b"[a]\n b = \\\n\n c = 1\n",
            b"[a]\n b = x\\\\ \n",
            b"[a]\rb=1\r",
            b"[a] b = c \\\n  d \n",
            b"[a]b=c[d]e=f\n[g]h=i",
            b"[a \"\"] b = c\n",
            b"[a..b] c = d\n",
            b"[a] b = \" x \" \n",
        ];
        for text in texts {
            let git = as_git_reads(text);
            let about = String::from_utf8_lossy(text);
            let git = git.unwrap_or_else(|| panic!("git refuses {about:?}"));
            assert_eq!(
                String::from_utf8_lossy(&as_we_read(text)),
                String::from_utf8_lossy(&git),
                "{about:?}"
            );
        }
    }

    #[test]
    fn text_that_git_rejects_ends_the_parsing() {
        let texts: [&[u8]; 10] = [
            b"[a] b = 1\n[c",
            b"[a] b = 1\n[c \"d]\n",
            b"[a] b = 1\n[c \"d\n\"] e = 1\n",
            b"[a] b = 1\n=\n",
            b"[a] b = 1\n c = \"d\n",
            b"[a] b = 1\n c = \\q\n",
            b"[a] b = 1\n c d\n",
            b"[a] b = 1\n[]\n",
            b"[a] b = 1\n[c d]\n",
            b"[a] b = 1\n1 = 2\n",
        ];
        for text in texts {
            let about = String::from_utf8_lossy(text);
            assert_eq!(as_git_reads(text), None, "{about:?}");
            assert_eq!(as_we_read(text), b"a.b\n1\0", "{about:?}");
        }
    }

    #[test]
    fn paths_are_those_that_control_git() {
        let text = b"[core]\n hooksPath = .husky\n excludesFile = x\n fsmonitor = true\n\
            [include] path = ../team\n[includeIf \"onbranch:x\"] path = ~/y\n\
            [filter \"lfs\"] process = git-lfs filter-process\n\
            [diff \"d\"] textconv = scripts/show.sh -x\n[merge \"m\"] driver = python3 'tools/m.py' %A\n\
            [alias] t = !./t.sh\n[user] name = a/b\n\
            [core] editor = $PWD/a.sh\n pager = \\\"${PWD}\\\"/b.sh\n sshCommand = \\\"$HOME\\\"/c.sh\n\
            [remote \"r\"] url = ext::./d.sh\n pushurl = ./e.sh\n\
            [sequence] editor = cd s && sh f.sh\n";
        let settings = parse(text);
        let paths = named_paths(&settings);
        let paths: Vec<String> = paths
            .map(|it| format!("{} {:?} {}", it.key, it.use_, it.path.display()))
            .collect();
        assert_eq!(
            paths,
            [
                "core.hookspath Folder .husky",
                "include.path Include ../team",
                "includeif.onbranch:x.path Include ~/y",
                "filter.lfs.process Program filter-process",
                "diff.d.textconv Program scripts/show.sh",
                "diff.d.textconv Program -x",
                "merge.m.driver Program tools/m.py",
                "merge.m.driver Program %A",
                "core.editor Program PWD/a.sh",
                "core.editor Program ./a.sh",
                "core.pager Program /b.sh",
                "core.pager Program ./b.sh",
                "core.sshcommand Program /c.sh",
                "core.sshcommand Program ~/c.sh",
                "remote.r.url Program ext::./d.sh",
                "remote.r.url Program ./d.sh",
                "sequence.editor Program s",
                "sequence.editor Program sh",
                "sequence.editor Program f.sh",
            ]
        );
        let home = Path::new("/home/me");
        let expand = |it: &str| expand(Path::new(it), Some(home));
        assert_eq!(expand("~/y"), Some(home.join("y")));
        assert_eq!(expand("y"), Some("y".into()));
        assert_eq!(expand("~other/y"), None);
        assert_eq!(expand("%(prefix)/y"), None);
    }

    #[test]
    fn a_long_section_is_not_repeated_for_each_of_its_settings() {
        let text = format!(
            "[pager \"{}\"]\n{}",
            "x".repeat(10_000),
            "a=b\n".repeat(1_000)
        );
        let settings = parse(text.as_bytes());
        let first = &settings[0];
        let shares = |it: &Setting| Arc::ptr_eq(&it.section, &first.section);
        assert!(settings.len() == 1_000 && settings.iter().all(shares));
        let bytes: usize = settings.iter().map(|it| it.name.len()).sum();
        assert!(bytes <= text.len(), "{bytes}");
        let word = Setting {
            value: Some(b"./x".to_vec()),
            ..first.clone()
        };
        let named: Vec<NamedPath> = named_paths(&[word]).collect();
        assert!(named.len() == 1 && named[0].key.len() < 300, "{named:?}");
    }
}
