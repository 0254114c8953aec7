//! Bubblewrap as coding agents usually call it, for comparison: everything can be read, the workspace can be
//! written but for its `.git`, there is no network, and a filter refuses the calls of networks.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use raddle_sandbox::Launch;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::host::EscapeHost;

/// How one attempt is started there.
pub fn launch(bubblewrap: &Path, ground: &EscapeHost, launch: Launch) -> Launch {
    let workspace = ground.stage.workspace();
    let mut args: Vec<OsString> = Vec::new();
    let mut say = |words: &[&str], path: Option<PathBuf>| {
        args.extend(words.iter().map(OsString::from));
        if let Some(path) = path {
            args.extend([path.clone().into(), path.into()]);
        }
    };
    say(
        &[
            "--new-session",
            "--die-with-parent",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
        ],
        None,
    );
    say(&["--bind"], Some(workspace.clone()));
    say(&["--bind"], Some(ground.stage.folder.join("tree")));
    say(&["--ro-bind"], Some(workspace.join(".git")));
    say(
        &[
            "--unshare-user",
            "--unshare-pid",
            "--unshare-ipc",
            "--unshare-net",
            "--proc",
            "/proc",
        ],
        None,
    );
    say(&["--cap-drop", "ALL", "--"], None);
    args.push(launch.program);
    args.push("usual".into());
    args.extend(launch.args.into_iter().skip(1));
    Launch {
        program: bubblewrap.into(),
        args,
        cwd: launch.cwd,
        env: launch.env,
    }
}

/// The calls of networks, and the few others that usually go with them.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_connect,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_getpeername,
    libc::SYS_getsockname,
    libc::SYS_shutdown,
    libc::SYS_sendto,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
];

/// Puts the filter on this process.
pub fn filter() -> Result<()> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|it| (*it, Vec::new())).collect();
    let not_unix = SeccompCondition::new(
        0,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::Ne,
        libc::AF_UNIX as u64,
    )?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(vec![not_unix])?]);
    refuse(rules, libc::EPERM)
}

/// Takes Landlock from this process and all that it starts, as if the kernel had none.
pub fn without_landlock() -> Result<()> {
    refuse(
        BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]),
        libc::ENOSYS,
    )
}

fn refuse(rules: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<()> {
    let refuse = SeccompAction::Errno(error as u32);
    let machine = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, machine)?;
    let program: BpfProgram = filter.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}
