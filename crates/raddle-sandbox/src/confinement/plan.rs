//! The plan for the helper inside: a list of arguments in front of the command.
//!
//! Arguments and not the environment, which belongs to the command; and not JSON, because paths
//! need not be text.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Tier;
use super::inode_pins::InodePin;
use super::mounts::PROXY_SOCKET;
use crate::policy::Network;

/// The restrictions that the helper applies to itself before it becomes the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HelperPlan {
    pub tier: Tier,
    pub network: Network,
    /// Paths below which the command may read and run files.
    pub read: Vec<PathBuf>,
    /// Paths below which the command may also write.
    pub write: Vec<PathBuf>,
    /// The inodes that these paths and others named when the plan was made.
    pub inode_pins: Vec<InodePin>,
    pub processes_max: Option<u64>,
}

const COMMAND: &str = "--";

impl HelperPlan {
    /// Returns the arguments up to those of the command.
    pub fn args(&self) -> Vec<OsString> {
        let network = match self.network {
            Network::None => "none",
            Network::Proxy(_) => "proxy",
            Network::Open => "open",
        };
        let mut args = Vec::new();
        // One argument each, because bubblewrap limits their number.
        let mut push = |key: &str, value: &OsStr| {
            let mut arg = OsString::from(format!("{key}="));
            arg.push(value);
            args.push(arg);
        };
        push("tier", self.tier.letter().as_ref());
        push("network", network.as_ref());
        for path in &self.read {
            push("read", path.as_os_str());
        }
        for path in &self.write {
            push("write", path.as_os_str());
        }
        for pin in &self.inode_pins {
            push("place", &pin.word());
        }
        if let Some(count) = self.processes_max {
            push("processes", count.to_string().as_ref());
        }
        args.push(COMMAND.into());
        args
    }

    /// Parses the arguments up to those of the command. An unknown argument is an error: it asks
    /// for a restriction that the helper would not apply.
    pub fn parse(args: &mut impl Iterator<Item = OsString>) -> Option<Self> {
        let (mut tier, mut network) = (None, None);
        let (mut read, mut write, mut inode_pins) = (Vec::new(), Vec::new(), Vec::new());
        let mut processes_max = None;
        loop {
            let arg = args.next()?;
            if arg == COMMAND {
                break;
            }
            let mut parts = arg.as_bytes().splitn(2, |it| *it == b'=');
            let (key, value) = (parts.next()?, OsStr::from_bytes(parts.next()?));
            match (std::str::from_utf8(key).ok()?, value.to_str()) {
                ("tier", Some("a")) => tier = Some(Tier::A),
                ("tier", Some("b")) => tier = Some(Tier::B),
                ("network", Some("none")) => network = Some(Network::None),
                ("network", Some("proxy")) => network = Some(Network::Proxy(PROXY_SOCKET.into())),
                ("network", Some("open")) => network = Some(Network::Open),
                ("read", _) => read.push(PathBuf::from(value)),
                ("write", _) => write.push(PathBuf::from(value)),
                ("place", _) => inode_pins.push(InodePin::parse(value)?),
                ("processes", Some(count)) => processes_max = Some(count.parse().ok()?),
                _ => return None,
            }
        }
        Some(Self {
            tier: tier?,
            network: network?,
            read,
            write,
            inode_pins,
            processes_max,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    #[test]
    fn the_proxy_socket_is_where_the_mounts_put_it() {
        let plan = HelperPlan {
            network: Network::Proxy("/elsewhere".into()),
            ..plan()
        };
        let parsed = HelperPlan::parse(&mut plan.args().into_iter()).expect("a plan");
        assert_eq!(parsed.network, Network::Proxy(PROXY_SOCKET.into()));
    }

    fn plan() -> HelperPlan {
        HelperPlan {
            tier: Tier::B,
            network: Network::Open,
            read: vec!["/".into()],
            write: vec![
                "--".into(),
                OsString::from_vec(b"/w\xff \n".to_vec()).into(),
            ],
            inode_pins: vec![InodePin::new("/w:".as_ref(), "/".as_ref()).expect("a place")],
            processes_max: Some(7),
        }
    }

    #[test]
    fn a_plan_is_parsed_with_any_path_and_leaves_the_command_alone() {
        let mut args = plan().args();
        args.extend(["ls".into(), "--".into()]);
        let mut args = args.into_iter();
        assert_eq!(HelperPlan::parse(&mut args), Some(plan()));
        assert_eq!(args.collect::<Vec<_>>(), ["ls", "--"]);
    }

    #[test]
    fn unknown_arguments_are_no_plan() {
        for line in [
            "",
            "tier=a network=none",
            "tier=a --",
            "network=none --",
            "tier=c network=none --",
            "tier=a network=some --",
            "tier=a network=none colour=red --",
            "tier=a network=none processes=many --",
            "tier=a network=none place=/w --",
            "tier=a network=none read --",
        ] {
            let mut args = line.split_whitespace().map(OsString::from);
            assert_eq!(HelperPlan::parse(&mut args), None);
        }
    }
}
