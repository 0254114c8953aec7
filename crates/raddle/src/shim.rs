//! `raddle shim install`: a link named `codex` to this program, for clients of Codex.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use raddle_tools::shell::quoted;

use crate::cli::ShimInstall;
use crate::log;

/// The name of the link, and the name under which this program takes the role of Codex.
pub(crate) const NAME: &str = "codex";

/// The usual name of this program, by which a link to an earlier one is known.
const PROGRAM: &str = "raddle";

/// The variable that names VS Code's agent host the folder of its packages.
const SDK_ROOT: &str = "VSCODE_AGENT_HOST_CODEX_SDK_ROOT";

pub(crate) fn install(args: &ShimInstall) -> Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let (root, folder) = match (&args.dir, &args.vscode) {
        (Some(dir), _) => (absolute(dir)?, PathBuf::new()),
        (None, Some(root)) => (absolute(root)?, package_folder()?),
        (None, None) => bail!("name a folder with --dir DIR or --vscode DIR"),
    };
    let folder = root.join(folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let link = folder.join(NAME);
    // With links in the path too: the program would become a link to itself.
    if folder
        .canonicalize()
        .is_ok_and(|it| it.join(NAME) == program)
    {
        bail!(
            "{} is this program itself; choose another folder, or call the program {PROGRAM}",
            link.display()
        );
    }
    if !args.force {
        check_replaceable(&link, &program)?;
    }
    replace(&link, &program).with_context(|| format!("cannot link {}", link.display()))?;
    log::print_line(&format!(
        "linked {} to {}",
        link.display(),
        program.display()
    ));
    let shown = quoted(&[root.to_string_lossy().into_owned()]);
    match args.vscode {
        Some(_) => log::print_line(&format!(
            "start VS Code with {SDK_ROOT}={shown} in its environment"
        )),
        None => log::print_line(&format!(
            "put the folder first on PATH: export PATH={shown}:\"$PATH\""
        )),
    }
    Ok(ExitCode::SUCCESS)
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).with_context(|| folder.display().to_string())
}

/// The folder of the program in the npm package of Codex for this platform.
fn package_folder() -> Result<PathBuf> {
    let (package, target) = match std::env::consts::ARCH {
        "x86_64" => ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        "aarch64" => ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
        other => bail!(
            "the folder of Codex's package is not known for {other}; use --dir with the folder in which your client looks"
        ),
    };
    let folder = format!("node_modules/@openai/{package}/vendor/{target}/bin");
    Ok(folder.into())
}

/// Rejects a path that holds anything but a link to this program, or to an earlier one.
fn check_replaceable(link: &Path, program: &Path) -> Result<()> {
    let is_own = match fs::read_link(link) {
        Ok(target) => target == program || target.file_name().is_some_and(|it| it == PROGRAM),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_own {
        return Ok(());
    }
    bail!(
        "{} is there already and is not a link to raddle; choose another folder, or replace it with --force",
        link.display()
    )
}

/// Puts the link in place in one step, by a name that no other file has.
fn replace(link: &Path, program: &Path) -> io::Result<()> {
    let new = link.with_extension(format!("new-{}", std::process::id()));
    symlink(program, &new)?;
    let renamed = fs::rename(&new, link);
    if renamed.is_err() {
        // The error of the rename counts.
        let _ = fs::remove_file(&new);
    }
    renamed
}
