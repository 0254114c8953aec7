//! Code that a line runs without naming its path: files that programs load by convention.
//!
//! Some of it can be listed: the module for `python3 -m`, a `Makefile`. Code that these load in
//! turn cannot be listed, so an approval of such a line covers one call.

use std::path::{Path, PathBuf};

use raddle_core::policy::{UNKNOWN, wrapped_command};

use super::DigestInput;
use super::file_name::NAME_BYTES_MAX;

/// Programs that load code from their working folder, or from the folder of a file that they run,
/// without an argument for it. The loaded code cannot be listed. A version suffix of the name is
/// ignored.
const LOADERS: &str = "R Rscript act ansible ansible-playbook ant ava bazel bazelisk buck bun bundle \
    bundler bunx bmake cabal cargo celery clj clojure cmake composer corepack coverage cross ctest cypress \
    deno django-admin docker-compose doit dotnet dune earthly electron elixir emacs erl esbuild escript eslint \
    expect fab flask gdb gem ghc go gradle gradlew groovy grunt guile guix gulp gunicorn hatch iex inv invoke ipython \
    irb java jest jruby jshell julia jupyter just jython kotlin lein lerna lldb lua luajit mage make \
    meson mill mix mocha msbuild mvn mvnw mypy next nextflow ng ninja nix nix-build nix-shell node nodejs nox \
    npm npx nuxt nvim nx opam packer pants pdm perl php phpunit pip pipenv pipx playwright pnpm poetry pre-commit \
    prettier pulumi pwsh py.test pypy pytest python racket rake raku rebar rollup rspec ruby runghc rye sbt scala \
    scons snakemake stack streamlit swift task tclsh terraform terragrunt tofu tox trunk ts-node tsc tsx turbo uv \
    uvicorn uvx vagrant vim vite vitest waf wasm-pack webpack xcodebuild yarn zig";

/// Loaders that other programs often run, and whose names hardly have another meaning as words.
const INTERPRETERS: &str = "bun deno java lua make node perl php python ruby";

/// Programs that run no file because of their arguments.
pub(super) const DATA: &str = ": [ basename cat cd chmod chown cp curl cut date df dirname docker du echo exit export false gh \
    grep head hostname id jq kill ln ls mkdir mktemp mv popd printf ps pushd pwd readlink realpath rm rmdir set sleep \
    stat tail tee test touch tr true type uname uniq wait wc which whoami";

/// Programs that run nothing from a folder unless the line names it, in addition to [`DATA`].
/// Outside the sandbox every other program found by name counts as one that may.
const PLAIN: &str = ". 7z adduser alias apt apt-get arch aws az base64 bg blkid break brew bunzip2 bzip2 cal chgrp chsh cksum cmp \
    column comm continue createdb crontab dd declare dig dirs disown dmesg dnf dpkg dpkg-query dropdb egrep eval \
    expand expr fd fdisk fg fgrep file find findmnt fold free fuser gcloud getent getopts git git-lfs glab gpg \
    groupadd groups gunzip gzip hash hexdump host hostnamectl hub iconv ifconfig install iostat ip jobs join \
    journalctl killall kubectl last let local locale logger lsblk lsmod lsof md5sum mapfile mkfifo modprobe mount \
    mysql mysqldump nc ncat nerdctl netstat nl nproc nslookup od openssl pacman passwd paste patch pg_dump \
    pg_isready pg_restore pgrep ping pkill podman printenv psql read readarray readonly reboot redis-cli return rg \
    route rsync scp seq service sftp sha1sum sha256sum sha512sum shift shopt shred shutdown snap sort source split \
    sqlite3 ss ssh ssh-add ssh-keygen ssh-keyscan strings stty sudo sync sysctl systemctl tac tar timedatectl \
    traceroute trap tree truncate tty typeset ulimit umask umount unalias unexpand unset unxz unzip uptime useradd \
    userdel usermod uuidgen vmstat w wget whereis who xxd xz yes yum zcat zip zstd";

/// Programs with the command line of docker.
const DOCKERS: &str = "docker nerdctl podman";

/// Docker commands that use files of a folder.
const DOCKER: &str = "bake build buildx compose stack";

/// Programs that run a given file, and only its text.
const SHELLS: &str = ". ash bash dash ksh mksh sh source zsh";

/// Programs that a file of the folder controls, which their command lines do not name.
const RECIPES: [(&str, &[&str]); 14] = [
    ("bun", &["package.json", "bunfig.toml"]),
    ("cargo", &["Cargo.toml", "build.rs", ".cargo/config.toml"]),
    ("cmake", &["CMakeLists.txt"]),
    (
        "docker",
        &["Dockerfile", "compose.yaml", "docker-compose.yml"],
    ),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("mvn", &["pom.xml"]),
    ("ninja", &["build.ninja"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("pytest", &["conftest.py", "pytest.ini", "pyproject.toml"]),
    ("rake", &["Rakefile"]),
    ("yarn", &["package.json"]),
];

/// Maximum number of code names per line.
const NAMES_MAX: usize = 256;

/// Whether the first line of a script names another program than a shell, which may load code that
/// cannot be listed.
pub(super) fn is_loader_line(line: &str) -> bool {
    let is_other = |it: &&str| !it.starts_with('-') && !it.contains('=') && base(it) != "env";
    let mut programs = line.split_whitespace().filter(is_other);
    programs.any(|it| !is_one_of(SHELLS, base(it)))
}

/// Returns the files of the folder that a program of this name is known to read.
pub(super) fn recipe(program: &str) -> &'static [&'static str] {
    let recipe = RECIPES.iter().find(|(tool, _)| *tool == base(program));
    recipe.map_or(&[], |(_, files)| files)
}

/// Whether the line runs a program that loads code that cannot be listed.
pub(super) fn loads(it: DigestInput<'_>) -> bool {
    // In the sandbox an approval covers the line only.
    let is_outside = !it.folders.is_empty();
    it.commands.iter().any(|words| {
        let is_any = words.len() > 1 && words[0].contains(UNKNOWN);
        is_any || is_load(words) || is_outside && !is_plain(words, it.folders)
    })
}

/// Whether these words run a program that is known to run nothing from a folder, or one that counts
/// as a file.
fn is_plain(words: &[String], folders: &[PathBuf]) -> bool {
    let Some(program) = words.first() else {
        return true;
    };
    let is_own = || folders.iter().any(|it| Path::new(program).starts_with(it));
    let is_file = program.contains('/') && (!program.starts_with('/') || is_own());
    let name = base(program);
    is_file
        || program.contains(UNKNOWN)
        || is_one_of(DATA, name)
        || is_one_of(PLAIN, name)
        || is_one_of(SHELLS, name)
        || wrapped_command(words).is_some()
}

/// Whether these words run a program that loads code.
pub(super) fn is_load(words: &[String]) -> bool {
    let Some((program, rest)) = words.split_first() else {
        return false;
    };
    is_loader(program)
        || is_one_of(DOCKERS, base(program)) && rest.iter().any(|it| is_one_of(DOCKER, it))
        // As an argument of a program that is not known to run others.
        || rest.iter().any(|it| is_one_of(INTERPRETERS, plain(it)))
}

/// Whether this program loads code that cannot be listed.
pub(super) fn is_loader(program: &str) -> bool {
    is_one_of(LOADERS, plain(program))
}

/// Returns the names of files that the line runs or loads as code, if they can be listed, including
/// missing ones.
pub(super) fn names(it: DigestInput<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for words in it.commands {
        let Some((program, rest)) = words.split_first() else {
            continue;
        };
        if program.contains('/') {
            names.push(program.clone());
        }
        names.extend(recipe(program).iter().map(|it| (*it).to_owned()));
        if is_loader(program) || is_one_of(SHELLS, base(program)) {
            let operands = rest.iter().filter(|it| !it.starts_with('-'));
            names.extend(operands.cloned());
        }
        modules(plain(program), rest, &mut names);
        if names.len() >= NAMES_MAX {
            break;
        }
    }
    names.retain(|it| !it.is_empty() && !it.contains([UNKNOWN, '\0']));
    names.truncate(NAMES_MAX);
    names
}

/// Adds the files of modules that a program loads by name.
fn modules(program: &str, words: &[String], names: &mut Vec<String>) {
    match program {
        "python" | "pypy" | "ipython" | "coverage" => {
            for module in values(words, &["-m"]) {
                let path = module.replace('.', "/");
                let dots = path.match_indices('/').map(|(at, _)| at);
                for at in dots.take_while(|at| *at <= NAME_BYTES_MAX) {
                    if names.len() >= NAMES_MAX {
                        return;
                    }
                    names.push(format!("{}/__init__.py", &path[..at]));
                }
                for end in [".py", "/__init__.py", "/__main__.py"] {
                    names.push(format!("{path}{end}"));
                }
            }
        }
        "node" | "nodejs" | "bun" | "deno" | "tsx" | "ts-node" => {
            let options = ["-r", "--require", "--import", "--loader", "--preload"];
            let scripts = words.iter().filter(|it| !it.starts_with('-'));
            let loaded = values(words, &options);
            for module in loaded.into_iter().chain(scripts.map(String::as_str)) {
                for end in ["", ".js", ".cjs", ".mjs", ".ts", ".json"] {
                    names.push(format!("{module}{end}"));
                }
                for end in ["index.js", "package.json"] {
                    names.push(format!("{module}/{end}"));
                    names.push(format!("node_modules/{module}/{end}"));
                }
            }
        }
        "ruby" | "jruby" | "irb" | "rspec" => {
            for module in values(words, &["-r", "--require"]) {
                names.extend([format!("{module}.rb"), format!("lib/{module}.rb")]);
            }
        }
        "perl" => {
            for module in values(words, &["-M", "-m"]) {
                let module = module.split('=').next().unwrap_or(module);
                let path = module.trim_start_matches('-').replace("::", "/");
                names.extend([format!("{path}.pm"), format!("lib/{path}.pm")]);
            }
        }
        _ => {}
    }
}

/// Returns the values of these options, in the same word or in the next.
fn values<'a>(words: &'a [String], options: &[&str]) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for option in options {
            match word.strip_prefix(option) {
                Some("") => values.extend(words.get(at + 1).map(String::as_str)),
                Some(rest) if option.starts_with("--") => values.extend(rest.strip_prefix('=')),
                Some(rest) => values.push(rest),
                None => {}
            }
        }
    }
    values
}

/// Whether these words contain the script of a shell.
pub(super) fn has_inline_script(words: &[String]) -> bool {
    let options = words.iter().take_while(|it| it.starts_with(['-', '+']));
    let is_script = |it: &String| !it.starts_with("--") && it.contains('c');
    options.into_iter().any(is_script)
}

/// Returns the name of a program without its folder.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Returns the name of a program without its folder and version.
fn plain(program: &str) -> &str {
    let name = base(program);
    let plain = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    // As in `pytest-3`.
    plain.strip_suffix('-').unwrap_or(plain)
}

pub(super) fn is_one_of(list: &str, name: &str) -> bool {
    !name.is_empty() && list.split_whitespace().any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the result is limited, whatever the length of the word.
    #[test]
    fn names_of_modules_are_limited() {
        let letters = "m".repeat(10_000);
        for (program, module, first) in [
            ("python", ".".repeat(10_000), "/__init__.py"),
            // The packages around a name that is too long are loaded nevertheless.
            ("python", format!("tests.{letters}"), "tests/__init__.py"),
            ("python", "a.b".to_owned(), "a/__init__.py"),
        ] {
            let words = ["-m".to_owned(), module];
            let mut names = Vec::new();
            modules(program, &words, &mut names);
            assert_eq!(names[0], first);
            let bytes: usize = names.iter().map(String::len).sum();
            assert!(bytes <= 2 << 20, "{bytes} bytes in {} names", names.len());
        }
    }
}
