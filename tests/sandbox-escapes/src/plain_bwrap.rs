//! Bubblewrap as coding agents usually call it, for comparison: everything can be read, the
//! workspace can be written except its `.git`, there is no network, and a filter refuses network
//! calls.

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

/// Returns the launch of one attempt in it.
pub fn launch(bubblewrap: &Path, host: &EscapeHost, launch: Launch) -> Launch {
    let workspace = host.testbed.workspace();
    let mut args: Vec<OsString> = Vec::new();
    let mut push = |words: &[&str], path: Option<PathBuf>| {
        args.extend(words.iter().map(OsString::from));
        if let Some(path) = path {
            args.extend([path.clone().into(), path.into()]);
        }
    };
    push(
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
    push(&["--bind"], Some(workspace.clone()));
    push(&["--bind"], Some(host.testbed.folder.join("tree")));
    push(&["--ro-bind"], Some(workspace.join(".git")));
    push(
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
    push(&["--cap-drop", "ALL", "--"], None);
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

/// The network calls, and the few others that are usually refused with them.
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

/// Installs the filter on this process.
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

/// Removes Landlock from this process and its children, as if the kernel had none.
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
