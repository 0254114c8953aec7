//! The system calls that a sandboxed process may not make.
//!
//! The numbers are those of the target architecture. A call made for another architecture ends the
//! process, so no list for a second architecture is needed.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

use super::Tier;
use super::plan::HelperPlan;
use crate::policy::Network;

/// Newer calls have the same number on every architecture, and older C libraries do not define
/// them.
mod syscall_numbers {
    pub const OPEN_TREE: i64 = 428;
    pub const MOVE_MOUNT: i64 = 429;
    pub const FSOPEN: i64 = 430;
    pub const FSCONFIG: i64 = 431;
    pub const FSMOUNT: i64 = 432;
    pub const FSPICK: i64 = 433;
    pub const CLONE3: u32 = 435;
    pub const OPENAT2: u32 = 437;
    pub const PIDFD_GETFD: i64 = 438;
    pub const PROCESS_MADVISE: i64 = 440;
    pub const MOUNT_SETATTR: i64 = 442;
    pub const QUOTACTL_FD: i64 = 443;
    pub const FCHMODAT2: i64 = 452;
    pub const SETXATTRAT: i64 = 463;
    pub const REMOVEXATTRAT: i64 = 466;
    pub const OPEN_TREE_ATTR: i64 = 467;
}

/// Not every C library defines it on every architecture.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: c_long = 320;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: c_long = 294;

/// Calls that are refused whatever the arguments.
const ALWAYS_REFUSED: &[c_long] = &[
    // Access to other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    syscall_numbers::PIDFD_GETFD,
    syscall_numbers::PROCESS_MADVISE,
    // Calls that bypass the rules for sockets and files.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Other namespaces and other mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    syscall_numbers::OPEN_TREE,
    syscall_numbers::OPEN_TREE_ATTR,
    syscall_numbers::MOVE_MOUNT,
    syscall_numbers::FSOPEN,
    syscall_numbers::FSCONFIG,
    syscall_numbers::FSMOUNT,
    syscall_numbers::FSPICK,
    syscall_numbers::MOUNT_SETATTR,
    // Parts of the kernel that no build needs and that many exploits used.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The machine itself.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    syscall_numbers::QUOTACTL_FD,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
];

/// Calls that Landlock does not cover. They are refused where only Landlock guards the disk and
/// nothing may be written.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    syscall_numbers::FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    syscall_numbers::SETXATTRAT,
    syscall_numbers::REMOVEXATTRAT,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// Queues, semaphores and shared memory that are found by a number or a name. Without an IPC
/// namespace they are those of the host's programs.
const SHARED: &[c_long] = &[
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Calls that set the scheduling of another process.
const SCHEDULING: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// Calls that set the mode of a file, with the index of that argument.
const MODES: &[(c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (syscall_numbers::FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// Calls that set a mode only if their flags, the argument before it, ask for a new file, with the
/// index of the mode. Otherwise that argument is undefined.
const OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
];

/// Flags for every kind of namespace that `clone` can make.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Terminal requests that insert input, directly or through the console's menu, and those that set
/// a line discipline, which loads modules.
const TERMINAL: &[u64] = &[0x5412, 0x541c, 0x5423];

/// The value of `ioprio_set` that selects all processes of a user.
const IOPRIO_USER: u64 = 3;

#[derive(Debug, thiserror::Error)]
#[error("the kernel rejects the seccomp filter: {0}")]
pub(super) struct Error(#[from] seccompiler::Error);

/// Installs the filters. They cannot be removed.
pub(super) fn install(plan: &HelperPlan) -> Result<(), Error> {
    seccompiler::apply_filter(&absent_calls_filter())?;
    seccompiler::apply_filter(&refused_calls_filter(plan)?)?;
    Ok(())
}

/// Returns a filter that answers `ENOSYS`, as a kernel without these calls would, because programs
/// then fall back. `clone3` and `openat2` hide their arguments from a filter, and the x32 calls are
/// a second entry to all of them.
fn absent_calls_filter() -> BpfProgram {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const X32: u32 = 0x4000_0000;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    vec![
        step(LOAD_NUMBER, 0, 0),
        step(AT_LEAST, 3, X32),
        step(EQUAL, 2, syscall_numbers::CLONE3),
        step(EQUAL, 1, syscall_numbers::OPENAT2),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
    ]
}

fn refused_calls_filter(plan: &HelperPlan) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut refuse_when = |call: c_long, all: &[(u8, SeccompCmpOp, u64)]| {
        let conditions: Result<Vec<_>, _> = all
            .iter()
            // The kernel reads these arguments as 32 bits. To compare more would let a command hide
            // behind the upper half.
            .map(|(argument, compare, value)| {
                SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, compare.clone(), *value)
            })
            .collect();
        rules
            .entry(call)
            .or_default()
            .push(SeccompRule::new(conditions?)?);
        Ok::<(), seccompiler::Error>(())
    };

    for flag in NAMESPACES {
        let flag = *flag as u64;
        refuse_when(libc::SYS_clone, &[(0, SeccompCmpOp::MaskedEq(flag), flag)])?;
    }
    for request in TERMINAL {
        refuse_when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, *request)])?;
    }
    // A setuid file would let a command act outside the sandbox.
    let has = |argument, bits: u64| (argument, SeccompCmpOp::MaskedEq(bits), bits);
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        for (call, mode) in MODES {
            refuse_when(*call, &[has(*mode, bit)])?;
        }
        for (call, mode) in OPENS {
            for flag in [libc::O_CREAT, libc::O_TMPFILE] {
                refuse_when(*call, &[has(mode - 1, flag as u64), has(*mode, bit)])?;
            }
        }
    }
    // Priorities and limits of other processes: a process names itself 0. With `PRIO_USER` all
    // processes of a user are named 0 too.
    refuse_when(libc::SYS_setpriority, &[(1, SeccompCmpOp::Ne, 0)])?;
    let user = libc::PRIO_USER as u64;
    refuse_when(libc::SYS_setpriority, &[(0, SeccompCmpOp::Eq, user)])?;
    refuse_when(libc::SYS_ioprio_set, &[(1, SeccompCmpOp::Ne, 0)])?;
    refuse_when(libc::SYS_ioprio_set, &[(0, SeccompCmpOp::Eq, IOPRIO_USER)])?;
    refuse_when(libc::SYS_prlimit64, &[(0, SeccompCmpOp::Ne, 0)])?;
    for all in sockets() {
        refuse_when(libc::SYS_socket, &all)?;
    }
    // Pairs are harmless where each end has only the other. Datagrams can be sent elsewhere, to any
    // visible path.
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let kind = (1, SeccompCmpOp::MaskedEq(0xf), kind as u64);
        refuse_when(libc::SYS_socketpair, &[kind])?;
    }
    let mut calls = ALWAYS_REFUSED.to_vec();
    if plan.tier == Tier::B {
        // Without a PID namespace the processes of the host are visible. A thread can still name
        // itself 0.
        for call in SCHEDULING {
            refuse_when(*call, &[(0, SeccompCmpOp::Ne, 0)])?;
        }
        calls.extend(SHARED);
        if plan.write.is_empty() {
            calls.extend(METADATA);
        }
        // Without a network namespace the sandbox shares the network of the host.
        if plan.network == Network::None {
            calls.push(libc::SYS_socket);
        }
    }
    // Without conditions a call is always refused, whatever the rules above allow.
    rules.extend(calls.into_iter().map(|call| (call, Vec::new())));

    let machine = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        machine,
    )?;
    Ok(filter.try_into()?)
}

/// Returns the conditions under which `socket` is refused. A unix socket leads to every service of
/// the host that has a visible path, and a filter cannot see the path, so all are refused. Pairs
/// are made by another call and stay allowed. Of netlink, programs need only the list of addresses.
fn sockets() -> Vec<Vec<(u8, SeccompCmpOp, u64)>> {
    let [inet, inet6, netlink] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|it| it as u64);
    let kind = SeccompCmpOp::MaskedEq(0xf);
    let raw = libc::SOCK_RAW as u64;
    vec![
        vec![
            (0, SeccompCmpOp::Ne, inet),
            (0, SeccompCmpOp::Ne, inet6),
            (0, SeccompCmpOp::Ne, netlink),
        ],
        vec![(0, SeccompCmpOp::Eq, inet), (1, kind.clone(), raw)],
        vec![(0, SeccompCmpOp::Eq, inet6), (1, kind, raw)],
        vec![
            (0, SeccompCmpOp::Eq, netlink),
            (2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE as u64),
        ],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter that examines nothing but the number of the call.
    fn answer(program: &[sock_filter], number: u32) -> u32 {
        let mut at = 0;
        loop {
            let step = &program[at];
            let jump = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            at += 1 + match u32::from(step.code) {
                code if code == libc::BPF_RET => return step.k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ => jump(number == step.k),
                code if code == libc::BPF_JMP | libc::BPF_JGE => jump(number >= step.k),
                _ => 0,
            };
        }
    }

    #[test]
    fn calls_that_hide_their_arguments_and_x32_calls_are_absent() {
        let absent = absent_calls_filter();
        let is_absent = |number| answer(&absent, number) == libc::SECCOMP_RET_ERRNO | 38;
        for number in [435, 437, 0x4000_0000, 0x4000_0027, u32::MAX] {
            assert!(is_absent(number), "{number:#x}");
        }
        for number in [0, 59, 434, 436, 438, 0x3fff_ffff] {
            assert_eq!(
                answer(&absent, number),
                libc::SECCOMP_RET_ALLOW,
                "{number:#x}"
            );
        }
    }

    #[test]
    fn a_filter_can_be_built_for_every_plan() {
        for tier in [Tier::A, Tier::B] {
            for network in [Network::None, Network::Open] {
                for write in [Vec::new(), vec!["/w".into()]] {
                    let plan = HelperPlan {
                        tier,
                        network: network.clone(),
                        read: Vec::new(),
                        write,
                        inode_pins: Vec::new(),
                        processes_max: None,
                    };
                    assert!(refused_calls_filter(&plan).is_ok_and(|it| it.len() > 100));
                }
            }
        }
    }
}
