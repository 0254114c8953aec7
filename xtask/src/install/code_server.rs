//! Installation of code-server from npm, without its install scripts: one of its packages needs the
//! headers of Kerberos, which the checks do not use. The one compiled module that VS Code's agent
//! host needs is built afterwards.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Install;
use crate::run::Run;

const NPM_OPTIONS: &[&str] = &[
    "install",
    "--no-audit",
    "--no-fund",
    "--save-exact",
    "--ignore-scripts",
    "--omit=dev",
];
/// VS Code itself, a package of its own inside code-server.
const VSCODE: &str = "node_modules/code-server/lib/vscode";
/// The module with which the agent host stores its sessions.
const COMPILED: &str = "node_modules/@vscode/sqlite3";
const NODE_GYP: &str = "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js";

pub fn fill(install: &Install<'_>, version: &str, log: &File) -> Result<()> {
    let node = install.node.context("code-server needs the part `node`")?;
    let vscode = install.folder.join(VSCODE);
    let npm = |folder: &Path| -> Result<Run> {
        Ok(install
            .run(node.join("npm"), log)?
            .path_first(node)
            .directory(folder)
            .args(NPM_OPTIONS))
    };
    npm(install.folder)?
        .arg("--prefix")
        .arg(install.folder)
        .arg(format!("code-server@{version}"))
        .go()?;
    npm(&vscode)?.go()?;
    let distribution = distribution(node)?;
    install
        .run(node.join("node"), log)?
        .path_first(node)
        .directory(&vscode.join(COMPILED))
        .arg(distribution.join(NODE_GYP))
        .arg("rebuild")
        .arg("--nodedir")
        .arg(&distribution)
        .go()
}

/// Returns the directory of the Node distribution, which has its headers. The program on the path
/// may be a wrapper elsewhere.
fn distribution(node: &Path) -> Result<PathBuf> {
    let program = Run::new(node.join("node"))
        .args(["-p", "process.execPath"])
        .output()?;
    let program = PathBuf::from(program.trim());
    let folder = program.ancestors().nth(2).context("Node has no folder")?;
    Ok(folder.to_owned())
}
