//! The claims of a lane. A path also claims the folders above it, weakly: only a request for such a
//! folder as a whole waits for it.

use raddle_protocol::table::{Lane, Resource};

/// Deeper paths queue for their ancestor at this depth.
const DEPTH_MAX: usize = 32;

/// Longer paths queue for their nearest ancestor that is shorter.
const BYTES_MAX: usize = 1024;

/// No system has a file with a longer name or path: such a request is rejected, so its order does
/// not matter.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4096;

/// A resource. `connection` is 0 for resources that all connections share. Each ancestor of a path
/// is a separate resource. A path belongs to the connection that names it: one client's hanging
/// disk must not block another client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimKey {
    connection: u64,
    resource: Resource,
}

impl ClaimKey {
    /// Whether it is this resource of all connections.
    pub(super) fn is_shared(&self, resource: &Resource) -> bool {
        self.connection == 0 && self.resource == *resource
    }
}

/// A resource and the access to it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) key: ClaimKey,
    pub(super) mode: Mode,
}

/// The access to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Reads something below it.
    ReadBelow,
    /// Changes something below it.
    WriteBelow,
    Read,
    Write,
    /// Reads it and everything below it.
    ReadAll,
    /// Changes it and everything below it.
    WriteAll,
}

impl Mode {
    pub(super) const ALL: [Self; 6] = [
        Self::ReadBelow,
        Self::WriteBelow,
        Self::Read,
        Self::Write,
        Self::ReadAll,
        Self::WriteAll,
    ];
    pub(super) const COUNT: usize = Self::ALL.len();

    /// Whether both accesses may happen at once.
    pub(super) fn goes_with(self, other: Self) -> bool {
        use Mode::{Read, ReadAll, ReadBelow, Write, WriteAll, WriteBelow};
        match (self, other) {
            (WriteAll, _) | (_, WriteAll) => false,
            (Write, Read | Write | ReadAll) | (Read | ReadAll, Write) => false,
            (ReadAll, WriteBelow) | (WriteBelow, ReadAll) => false,
            (ReadBelow | WriteBelow | Read | ReadAll, _) | (Write, ReadBelow | WriteBelow) => true,
        }
    }

    /// Returns one mode for a request that needs both.
    fn and(self, other: Self) -> Self {
        use Mode::{ReadBelow, WriteAll};
        match (self, other) {
            (a, b) if a == b => a,
            (ReadBelow, more) | (more, ReadBelow) => more,
            _ => WriteAll,
        }
    }
}

/// Returns the claims of a lane, each resource once.
pub(super) fn of(lane: Lane, connection: u64) -> Vec<Claim> {
    let mut claims = Vec::new();
    match lane {
        Lane::Free => {}
        Lane::Shared(resource) => claim(resource, false, connection, &mut claims),
        Lane::Exclusive(resource) => claim(resource, true, connection, &mut claims),
        Lane::FromTo(from, to) => {
            claim(from, false, connection, &mut claims);
            claim(to, true, connection, &mut claims);
        }
    }
    claims
}

fn claim(resource: Resource, changes: bool, connection: u64, claims: &mut Vec<Claim>) {
    let pick = |read, write| if changes { write } else { read };
    let one = pick(Mode::Read, Mode::Write);
    let all = pick(Mode::ReadAll, Mode::WriteAll);
    let (connection, mode) = match resource {
        Resource::Path(path) => return claim_path(&path, one, all, connection, claims),
        Resource::Tree(path) => return claim_path(&path, all, all, connection, claims),
        Resource::Config | Resource::Account | Resource::Thread(_) => (0, one),
        Resource::Process(_) | Resource::Watch(_) | Resource::Search(_) => (connection, one),
    };
    let key = ClaimKey {
        connection,
        resource,
    };
    add(key, mode, claims);
}

/// Claims a plain path in mode `at`, or the ancestor that stands for it in mode `all`.
fn claim_path(path: &str, at: Mode, all: Mode, connection: u64, claims: &mut Vec<Claim>) {
    let below = match all {
        Mode::WriteAll => Mode::WriteBelow,
        _ => Mode::ReadBelow,
    };
    let path = path.trim_end_matches('/');
    if path.len() > PATH_BYTES_MAX || path.split('/').any(|name| name.len() > NAME_BYTES_MAX) {
        return;
    }
    // End positions of the folders above, the root first, and of the path itself.
    let ends: Vec<usize> = path
        .match_indices('/')
        .map(|(end, _)| end)
        .chain([path.len()])
        .take(DEPTH_MAX + 1)
        .take_while(|end| *end <= BYTES_MAX)
        .collect();
    let Some((last, above)) = ends.split_last() else {
        return;
    };
    let key = |end: usize| ClaimKey {
        connection,
        resource: Resource::Path(path[..end].into()),
    };
    for end in above {
        add(key(*end), below, claims);
    }
    let mode = if *last == path.len() { at } else { all };
    add(key(*last), mode, claims);
}

fn add(key: ClaimKey, mode: Mode, claims: &mut Vec<Claim>) {
    match claims.iter_mut().find(|claim| claim.key == key) {
        Some(claim) => claim.mode = claim.mode.and(mode),
        None => claims.push(Claim { key, mode }),
    }
}
