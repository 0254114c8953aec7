//! The system calls that a fenced process may not make.
//!
//! Numbers are those of the machine it is built for. A call made for another machine ends the process,
//! and so no list for a second machine is needed.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

use super::Tier;
use super::plan::HelperPlan;
use crate::policy::Network;

/// Newer calls have the same number on every machine, and older C libraries do not name them.
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

/// Not named by every C library on every machine.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: c_long = 320;
#[cfg(not(target_arch = "x86_64"))]
const KEXEC_FILE_LOAD: c_long = 294;

/// Refused whatever the arguments.
const NEVER: &[c_long] = &[
    // Into other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    syscall_numbers::PIDFD_GETFD,
    syscall_numbers::PROCESS_MADVISE,
    // Around the rules for sockets and files.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Into other namespaces and other views of the disk.
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
    // Parts of the kernel that no build needs and that many break-ins did.
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

/// Landlock does not see these, so where nothing may be written and only Landlock guards the disk, they go.
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

/// Queues, semaphores and shared memory that are found by a number or a name, and so those of the host's
/// programs where they are not the fence's own.
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

/// When and where another process runs.
const SCHEDULE: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The calls that give a file its mode, and which argument that is.
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

/// The same for calls that have a mode only if their flags, the argument before it, ask for a new file. If
/// not, the argument is whatever was left in a register.
const OPENS: &[(c_long, u8)] = &[
    (libc::SYS_openat, 3),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 2),
];

/// New namespaces of every kind that `clone` can make.
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Typing into a terminal, for the person in front of it or through the console's own menu; and line
/// disciplines, which load modules.
const TERMINAL: &[u64] = &[0x5412, 0x541c, 0x5423];

/// All processes of a user, to `ioprio_set`.
const IOPRIO_USER: u64 = 3;

#[derive(Debug, thiserror::Error)]
#[error("the kernel takes no filter of system calls: {0}")]
pub(super) struct Error(#[from] seccompiler::Error);

/// Installs the filters, for good.
pub(super) fn install(plan: &HelperPlan) -> Result<(), Error> {
    seccompiler::apply_filter(&absent())?;
    seccompiler::apply_filter(&refused(plan)?)?;
    Ok(())
}

/// These are answered as by a kernel that has not got them, because programs then take another way:
/// `clone3` and `openat2` hide their arguments from a filter, and the x32 calls are a second door to all of
/// them.
fn absent() -> BpfProgram {
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

fn refused(plan: &HelperPlan) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut when = |call: c_long, all: &[(u8, SeccompCmpOp, u64)]| {
        let conditions: Result<Vec<_>, _> = all
            .iter()
            // The kernel reads these arguments as 32 bits. To compare more would let a command hide behind
            // the upper half.
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
        when(libc::SYS_clone, &[(0, SeccompCmpOp::MaskedEq(flag), flag)])?;
    }
    for request in TERMINAL {
        when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, *request)])?;
    }
    // A file that runs as its owner would carry a command's will out of the fence.
    let has = |argument, bits: u64| (argument, SeccompCmpOp::MaskedEq(bits), bits);
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        for (call, mode) in MODES {
            when(*call, &[has(*mode, bit)])?;
        }
        for (call, mode) in OPENS {
            for flag in [libc::O_CREAT, libc::O_TMPFILE] {
                when(*call, &[has(mode - 1, flag as u64), has(*mode, bit)])?;
            }
        }
    }
    // Priorities and limits of others; its own a process calls 0. All that belong to a user are called 0 too.
    when(libc::SYS_setpriority, &[(1, SeccompCmpOp::Ne, 0)])?;
    let user = libc::PRIO_USER as u64;
    when(libc::SYS_setpriority, &[(0, SeccompCmpOp::Eq, user)])?;
    when(libc::SYS_ioprio_set, &[(1, SeccompCmpOp::Ne, 0)])?;
    when(libc::SYS_ioprio_set, &[(0, SeccompCmpOp::Eq, IOPRIO_USER)])?;
    when(libc::SYS_prlimit64, &[(0, SeccompCmpOp::Ne, 0)])?;
    for all in sockets() {
        when(libc::SYS_socket, &all)?;
    }
    // Pairs are harmless where each end has only the other. Datagrams can be sent elsewhere, to any path in sight.
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
        let kind = (1, SeccompCmpOp::MaskedEq(0xf), kind as u64);
        when(libc::SYS_socketpair, &[kind])?;
    }
    let mut calls = NEVER.to_vec();
    if plan.tier == Tier::B {
        // Only processes of its own keep those of others out of sight. A thread can still be called 0 by itself.
        for call in SCHEDULE {
            when(*call, &[(0, SeccompCmpOp::Ne, 0)])?;
        }
        calls.extend(SHARED);
        if plan.write.is_empty() {
            calls.extend(METADATA);
        }
        // Only a network of its own keeps the fence apart.
        if plan.network == Network::None {
            calls.push(libc::SYS_socket);
        }
    }
    // Without conditions a call is refused always, whatever was said of it above.
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

/// Which sockets are refused. A unix socket leads to every service of the host that has a path in sight, and
/// no filter can see the path, so there are none; pairs are made by another call and stay. Of netlink,
/// programs need only the list of addresses.
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

    /// Runs a filter that looks at nothing but the number of the call.
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
    fn calls_that_hide_their_arguments_and_the_second_door_are_absent() {
        let absent = absent();
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
                    assert!(refused(&plan).is_ok_and(|it| it.len() > 100));
                }
            }
        }
    }
}
