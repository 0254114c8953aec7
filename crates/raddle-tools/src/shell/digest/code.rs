//! The code that a line runs: files that programs read because of what they are, and not because the line
//! names them by path.
//!
//! Some of it can be listed: the module behind `python3 -m`, a `Makefile`. What that code loads in turn cannot
//! be: a yes to such a line is good for one call.

use std::path::{Path, PathBuf};

use raddle_core::policy::{UNKNOWN, wrapped_command};

use super::DigestInput;
use super::expansion::DATA;
use super::named_files::NAME_BYTES_MAX;

/// Programs that load code from the folder they run in, or beside a file that they run, without being told to.
/// What they load cannot be listed. A version behind the name does not count.
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

/// Those of them that other programs are mostly told to run, and that are hardly a word with another meaning.
const INTERPRETERS: &str = "bun deno java lua make node perl php python ruby";

/// Programs that run nothing of a folder unless the line says so, besides those in [`DATA`]. Outside the sandbox every
/// other program, found by its name, is taken for one that may.
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

/// Programs that work like docker.
const DOCKERS: &str = "docker nerdctl podman";

/// Their use of the files of a folder.
const DOCKER: &str = "bake build buildx compose stack";

/// Programs that run the file they are given, and of it nothing but what it says.
const SHELLS: &str = ". ash bash dash ksh mksh sh source zsh";

/// Programs that do what a file of the folder says, which their command lines do not name.
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

/// The most names of code that are kept of a line.
const NAMES_MAX: usize = 256;

/// Whether the first line of a script names something else than a shell, which may load code that cannot be listed.
pub(super) fn is_loader_line(line: &str) -> bool {
    let is_other = |it: &&str| !it.starts_with('-') && !it.contains('=') && base(it) != "env";
    let mut programs = line.split_whitespace().filter(is_other);
    programs.any(|it| !is_one_of(SHELLS, base(it)))
}

/// The files of the folder that a program of this name is known to read.
pub(super) fn recipe(program: &str) -> &'static [&'static str] {
    let found = RECIPES.iter().find(|(tool, _)| *tool == base(program));
    found.map_or(&[], |(_, files)| files)
}

/// Whether the line runs a program that loads code which cannot be listed.
pub(super) fn loads(it: DigestInput<'_>) -> bool {
    // In the sandbox a yes is about the line.
    let is_outside = !it.folders.is_empty();
    it.commands.iter().any(|words| {
        let is_any = words.len() > 1 && words[0].contains(UNKNOWN);
        is_any || is_load(words) || is_outside && !is_plain(words, it.folders)
    })
}

/// Whether these words run a program that is known to run nothing of a folder, or one that counts as a file.
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
        // Behind a program that is not known to run others.
        || rest.iter().any(|it| is_one_of(INTERPRETERS, plain(it)))
}

/// Whether this program loads code that cannot be listed.
pub(super) fn is_loader(program: &str) -> bool {
    is_one_of(LOADERS, plain(program))
}

/// The names of files that the line runs or loads as code, as far as they can be listed, whether they are
/// there or not.
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
            let given = rest.iter().filter(|it| !it.starts_with('-'));
            names.extend(given.cloned());
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

/// The files behind modules that a program is told to load by name.
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

/// What stands behind any of these options, in the same word or in the next.
fn values<'a>(words: &'a [String], options: &[&str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for option in options {
            match word.strip_prefix(option) {
                Some("") => found.extend(words.get(at + 1).map(String::as_str)),
                Some(rest) if option.starts_with("--") => found.extend(rest.strip_prefix('=')),
                Some(rest) => found.push(rest),
                None => {}
            }
        }
    }
    found
}

/// Whether a shell gets its script in these words.
pub(super) fn hands_over(words: &[String]) -> bool {
    let options = words.iter().take_while(|it| it.starts_with(['-', '+']));
    let is_script = |it: &String| !it.starts_with("--") && it.contains('c');
    options.into_iter().any(is_script)
}

/// The name of a program without its folder.
pub(super) fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The same without a version.
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

    /// What is kept of a word does not grow with it.
    #[test]
    fn names_of_modules_have_a_bound() {
        let letters = "m".repeat(10_000);
        for (program, module, first) in [
            ("python", ".".repeat(10_000), "/__init__.py"),
            // What is around a name that is too long is loaded nevertheless.
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
