//! Rules and the state of the disk, and the arguments for bubblewrap that follow.

use super::*;
use crate::confinement::bubblewrap::mount_args;

struct MountCase {
    name: &'static str,
    rules: SandboxRules,
    rule_set: RuleSet,
    /// One mount per line.
    args: &'static str,
}

fn paths(of: &[&str]) -> Vec<PathBuf> {
    of.iter().map(PathBuf::from).collect()
}

fn rule_set() -> RuleSet {
    RuleSet {
        run: paths(&["/run"]),
        kernel: paths(&["/proc/sys"]),
        ..RuleSet::default()
    }
}

fn cases() -> Vec<MountCase> {
    vec![
        MountCase {
            name: "read everything, write nothing",
            rules: SandboxRules::read_only(),
            rule_set: rule_set(),
            args: "--ro-bind / /
                   --dev /dev
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --remount-ro /run",
        },
        MountCase {
            name: "a workspace: what is protected lies on top of what may be written",
            rules: SandboxRules::workspace_write(paths(&["/home/me/w"])),
            rule_set: RuleSet {
                write: paths(&["/home/me/w"]),
                protected: paths(&["/home/me/w/.git", "/home/me/w/.codex"]),
                ..rule_set()
            },
            args: "--ro-bind / /
                   --dev /dev
                   --bind /home/me/w /home/me/w
                   --ro-bind /home/me/w/.codex /home/me/w/.codex
                   --ro-bind /home/me/w/.git /home/me/w/.git
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --remount-ro /run",
        },
        MountCase {
            name: "a path inside a protected one that is named itself may be written",
            rules: SandboxRules::workspace_write(paths(&["/w", "/w/.git/objects"])),
            rule_set: RuleSet {
                write: paths(&["/w", "/w/.git/objects"]),
                protected: paths(&["/w/.git"]),
                ..rule_set()
            },
            args: "--ro-bind / /
                   --dev /dev
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --bind /w /w
                   --ro-bind /w/.git /w/.git
                   --bind /w/.git/objects /w/.git/objects
                   --remount-ro /run",
        },
        MountCase {
            name: "reading by list: the root is empty, links of the system are links",
            rules: SandboxRules {
                read: ReadScope::Listed(paths(&["/data"])),
                tmp: Tmp::Private,
                ..SandboxRules::read_only()
            },
            rule_set: RuleSet {
                system: vec![
                    ("/bin".into(), Some("usr/bin".into())),
                    ("/usr".into(), None),
                ],
                read: paths(&["/data"]),
                hidden: vec![("/data/keys".into(), HiddenKind::Folder), ("/data/key".into(), HiddenKind::File)],
                ..rule_set()
            },
            args: "--symlink usr/bin /bin
                   --ro-bind /data /data
                   --ro-bind /dev/null /data/key
                   --perms 0555 --tmpfs /data/keys
                   --dev /dev
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --size 1073741824 --perms 1777 --tmpfs /tmp
                   --ro-bind /usr /usr
                   --remount-ro /
                   --remount-ro /data/keys
                   --remount-ro /run",
        },
        MountCase {
            name: "a workspace inside a hidden folder and inside /tmp stays in sight",
            rules: SandboxRules {
                tmp: Tmp::Folder("/state/tmp".into()),
                ..SandboxRules::workspace_write(paths(&["/home/me/w", "/tmp/w"]))
            },
            rule_set: RuleSet {
                write: paths(&["/home/me/w", "/tmp/w"]),
                hidden: vec![("/home/me".into(), HiddenKind::Folder)],
                ..rule_set()
            },
            args: "--ro-bind / /
                   --dev /dev
                   --perms 0555 --tmpfs /home/me
                   --bind /home/me/w /home/me/w
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --bind /state/tmp /tmp
                   --bind /tmp/w /tmp/w
                   --remount-ro /home/me
                   --remount-ro /run",
        },
        MountCase {
            name: "with network, names can be resolved although /run is empty",
            rules: SandboxRules {
                network: Network::Open,
                ..SandboxRules::read_only()
            },
            rule_set: RuleSet {
                resolver: Some("/run/systemd/resolve/stub-resolv.conf".into()),
                ..rule_set()
            },
            args: "--ro-bind / /
                   --dev /dev
                   --proc /proc
                   --ro-bind /proc/sys /proc/sys
                   --perms 0555 --tmpfs /run
                   --ro-bind /helper /run/raddle-sandbox
                   --ro-bind /run/systemd/resolve/stub-resolv.conf /run/systemd/resolve/stub-resolv.conf
                   --remount-ro /run",
        },
    ]
}

#[test]
fn the_arguments_follow_from_the_rules() {
    for case in cases() {
        let mounts = Mounts::new(&case.rules, &case.rule_set, Path::new("/helper"));
        let args = mount_args(&mounts);
        let args: Vec<&str> = args.iter().filter_map(|it| it.to_str()).collect();
        let expected: Vec<&str> = case.args.split_whitespace().collect();
        assert_eq!(args, expected, "{}", case.name);
    }
}

#[test]
fn visible_paths_follow_from_the_mounts() {
    let rules = SandboxRules {
        read: ReadScope::Listed(paths(&["/data"])),
        tmp: Tmp::Folder("/state/tmp".into()),
        ..SandboxRules::workspace_write(paths(&["/home/me/w"]))
    };
    let rule_set = RuleSet {
        read: paths(&["/data"]),
        write: paths(&["/home/me/w"]),
        hidden: vec![("/data/keys".into(), HiddenKind::Folder)],
        ..rule_set()
    };
    let mounts = Mounts::new(&rules, &rule_set, Path::new("/helper"));
    for (path, shown) in [
        ("/home/me/w", true),
        ("/home/me/w/src", true),
        ("/home/me", false),
        ("/home/me/w2", false),
        ("/data/x", true),
        ("/data/keys/x", false),
        ("/dev/shm", true),
        ("/", true),
        ("/etc", false),
        // Inside, this is another folder of the host.
        ("/tmp/x", false),
    ] {
        assert_eq!(mounts.shows(Path::new(path)), shown, "{path}");
    }
    assert_eq!(mounts.writable(), paths(&["/home/me/w", "/tmp"]));
}
