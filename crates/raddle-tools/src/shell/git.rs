//! Commands that a git command line runs: aliases, and programs that its settings and options name.

use raddle_core::policy::UNKNOWN;

use super::programs::value_of;

/// Commands that a git command line may run besides itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitInvocations {
    /// Lines that git passes to a shell.
    pub(super) scripts: Vec<String>,
    /// Whether it may run any command.
    pub(super) any: bool,
}

/// Commands of every git since 2.30. Any other name may be an alias: git looks for an alias only if
/// it has no command of that name.
const COMMANDS: &str = "\
    add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap \
    check-ref-format checkout checkout-index cherry cherry-pick clean clone commit commit-graph commit-tree config \
    count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch \
    fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help \
    index-pack init interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base \
    merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects \
    pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace \
    request-pull rerere reset restore rev-list rev-parse revert rm send-pack shortlog show show-branch show-index \
    show-ref sparse-checkout stash status stripspace submodule switch symbolic-ref tag unpack-file unpack-objects \
    update-index update-ref update-server-info upload-pack var verify-commit verify-pack verify-tag version worktree \
    write-tree";

/// Options before the command that have their value in the next word.
const VALUED: &str = "-C --git-dir --work-tree --namespace --super-prefix --attr-source";

/// Settings that name no program, and sections without such settings.
const SETTINGS: &str = "\
    core.abbrev core.autocrlf core.bare core.eol core.filemode core.ignorecase core.longpaths core.preloadindex \
    core.quotepath core.safecrlf core.symlinks core.untrackedcache core.whitespace commit.gpgsign tag.gpgsign \
    merge.conflictstyle merge.ff merge.renames diff.algorithm diff.context diff.mnemonicprefix diff.noprefix \
    diff.renames diff.submodule protocol.version protocol.file.allow http.sslverify http.postbuffer http.version";
const SECTIONS: &str = "\
    advice author branch color committer feature fetch gc index init log pack pull push rebase safe status user";

/// Settings whose value is a line for a shell, and suffixes of further ones.
const SCRIPT_SETTINGS: &str = "\
    core.askpass core.editor core.fsmonitor core.pager core.sshcommand credential.helper diff.external gpg.program \
    sequence.editor";
const SCRIPT_ENDS: &str = "clean cmd command driver helper process program smudge textconv";

/// Options whose value is a line for a shell.
const SCRIPT_OPTIONS: &str = "--exec --extcmd --open-files-in-pager --receive-pack --upload-pack";

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

/// Returns the commands that the words after `git` run.
pub(super) fn run_by(words: &[String]) -> GitInvocations {
    let mut run = GitInvocations::default();
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|it| it.starts_with('-')) {
        let next = words.get(at + 1).map(String::as_str);
        if word == "-c" {
            run.setting(next.unwrap_or_default());
            at += 1;
        } else if word == "--config-env" {
            run.named_setting(next.unwrap_or_default());
            at += 1;
        } else if let Some(setting) = word.strip_prefix("--config-env=") {
            run.named_setting(setting);
        } else if word.starts_with("--exec-path=") {
            run.any = true;
        } else if has(VALUED, word) {
            at += 1;
        }
        at += 1;
    }
    let Some((command, words)) = words.get(at..).and_then(<[String]>::split_first) else {
        return run;
    };
    // Rules handle unknown words by themselves.
    run.any |= !has(COMMANDS, command) && !command.contains(UNKNOWN);
    run.options(command, words);
    run
}

impl GitInvocations {
    fn setting(&mut self, setting: &str) {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match () {
            () if is_free(name) => {}
            // No hook is run.
            () if name.eq_ignore_ascii_case("core.hookspath") && value == "/dev/null" => {}
            () if is_script(name) => self.script(value),
            () => self.any = true,
        }
    }

    /// Handles a setting whose value is in a variable.
    fn named_setting(&mut self, setting: &str) {
        let name = setting.split('=').next().unwrap_or_default();
        self.any |= !is_free(name);
    }

    fn script(&mut self, line: &str) {
        let line = line.trim_start_matches('!');
        if !line.is_empty() {
            self.scripts.push(line.to_owned());
        }
    }

    fn options(&mut self, command: &str, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = || words.get(at + 1).cloned().unwrap_or_default();
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let (short, valued) = match command {
                "clone" => ("u", "bcjo"),
                "difftool" => ("x", "t"),
                "grep" => ("O", "ABCefm"),
                "rebase" => ("x", "CSsX"),
                _ => ("", ""),
            };
            let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            let letters = letters.unwrap_or_default();
            let is_filter = command == "filter-branch" && name.ends_with("-filter");
            // Many commands accept abbreviated options.
            let is_abbreviation =
                |it: &str| name.len() > 4 && name.starts_with("--") && it.starts_with(name);
            if is_filter || SCRIPT_OPTIONS.split(' ').any(is_abbreviation) {
                self.script(&value.unwrap_or_else(next));
            } else if let Some(joined) = value_of(letters, short, valued) {
                match joined {
                    None => self.script(&next()),
                    Some(joined) => self.script(joined),
                }
            } else if command == "merge-index" && !word.starts_with('-') {
                self.script(word);
            } else if command == "config" && is_script(word) {
                self.script(&next());
            } else if command == "clone" && ("--config".starts_with(name) && name.len() > 4) {
                self.setting(&value.unwrap_or_else(next));
            } else if command == "clone"
                && let Some(joined) = value_of(letters, "c", "bjou")
            {
                self.setting(&joined.map_or_else(next, str::to_owned));
            } else if command == "config" && name.trim_start_matches('-').starts_with("rename") {
                let section = words.get(at + 2).map_or("", String::as_str);
                self.any |= !is_free(&format!("{section}.x"));
            }
            let is_include = |it: &str| it.starts_with("include.") || it.starts_with("includeif.");
            self.any |= command == "config" && is_include(&word.to_ascii_lowercase());
            self.any |= word.starts_with("ext::") || is_alias(word);
        }
    }
}

fn is_free(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let section = name.split('.').next().unwrap_or_default();
    has(SETTINGS, &name) || has(SECTIONS, section)
}

fn is_script(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let end = name.rsplit_once('.').map_or("", |it| it.1);
    name.starts_with("pager.") || has(SCRIPT_SETTINGS, &name) || has(SCRIPT_ENDS, end)
}

/// Whether a word is a setting that defines an alias.
fn is_alias(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word.starts_with("alias.") || word.contains(UNKNOWN) && word.contains("alias")
}
