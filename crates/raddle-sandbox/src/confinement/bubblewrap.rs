//! Arguments of bubblewrap: namespaces, mounts, and the helper that it starts.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::mounts::{HELPER, Mount, Mounts};
use crate::policy::Network;

/// Size limit of a private `/tmp`; it is memory.
const TMP_BYTES_MAX: u64 = 1 << 30;

/// Arguments for every sandbox.
const NAMESPACES: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--as-pid-1",
    "--disable-userns",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];

/// Returns the arguments up to the path of the helper, which starts in `cwd`. The arguments of the
/// helper follow.
pub(super) fn args(network: &Network, mounts: &Mounts, cwd: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = NAMESPACES.iter().map(OsString::from).collect();
    if *network != Network::Open {
        args.push("--unshare-net".into());
    }
    args.extend(mount_args(mounts));
    args.extend(["--chdir".into(), cwd.into(), "--".into(), HELPER.into()]);
    args
}

/// Returns the arguments for the mounts. Bubblewrap mounts in the order of its arguments.
pub(super) fn mount_args(mounts: &Mounts) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |all: &[&OsStr]| args.extend(all.iter().map(|it| (*it).to_owned()));
    let arg = OsStr::new;
    for (path, mount) in mounts.iter() {
        let path = path.as_os_str();
        match mount {
            Mount::Read(from) => push(&[arg("--ro-bind"), from.as_os_str(), path]),
            Mount::Write(from) => push(&[arg("--bind"), from.as_os_str(), path]),
            Mount::Link(target) => push(&[arg("--symlink"), target.as_os_str(), path]),
            // Bubblewrap starts with a root.
            Mount::Empty if path == "/" => {}
            Mount::Empty => push(&[arg("--perms"), arg("0555"), arg("--tmpfs"), path]),
            Mount::HiddenFile => push(&[arg("--ro-bind"), arg("/dev/null"), path]),
            Mount::Scratch => {
                let size = TMP_BYTES_MAX.to_string();
                push(&[
                    arg("--size"),
                    size.as_ref(),
                    arg("--perms"),
                    arg("1777"),
                    arg("--tmpfs"),
                    path,
                ]);
            }
            Mount::Devices => push(&[arg("--dev"), path]),
            Mount::Processes => push(&[arg("--proc"), path]),
        }
    }
    // Only now, because bubblewrap had to create the mount points inside them.
    for (path, mount) in mounts.iter() {
        if *mount == Mount::Empty {
            push(&[arg("--remount-ro"), path.as_os_str()]);
        }
    }
    args
}
