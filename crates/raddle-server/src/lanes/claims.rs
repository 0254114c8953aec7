//! What a lane claims. A path claims the folders above it too, weakly: only who wants such a folder as
//! a whole has to wait for it.

use raddle_protocol::table::{Lane, Resource};

/// Deeper paths stand in line for the folder at this depth.
const DEPTH_MAX: usize = 32;

/// Longer paths stand in line for the nearest folder above them that is shorter.
const BYTES_MAX: usize = 1024;

/// No system has a file with a longer name, or path: such a request will be refused and has no order.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4096;

/// A resource; those that belong to a connection carry its number. Of a path, each folder above it is a
/// resource of its own. A path belongs to the connection that names it: what hangs on one client's disk
/// must not stand in another's way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimKey {
    connection: u64,
    resource: Resource,
}

/// A resource and what is done with it.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    pub(super) key: ClaimKey,
    pub(super) mode: Mode,
}

/// What is done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Something below it is read.
    ReadBelow,
    /// Something below it is changed.
    WriteBelow,
    /// It is read.
    Read,
    /// It is changed.
    Write,
    /// It is read with all that is below it.
    ReadAll,
    /// It is changed with all that is below it.
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

    /// Whether both may be done at once.
    pub(super) fn goes_with(self, other: Self) -> bool {
        use Mode::{Read, ReadAll, ReadBelow, Write, WriteAll, WriteBelow};
        match (self, other) {
            (WriteAll, _) | (_, WriteAll) => false,
            (Write, Read | Write | ReadAll) | (Read | ReadAll, Write) => false,
            (ReadAll, WriteBelow) | (WriteBelow, ReadAll) => false,
            (ReadBelow | WriteBelow | Read | ReadAll, _) | (Write, ReadBelow | WriteBelow) => true,
        }
    }

    /// One mode for a request that does both.
    fn and(self, other: Self) -> Self {
        use Mode::{ReadBelow, WriteAll};
        match (self, other) {
            (one, two) if one == two => one,
            (ReadBelow, more) | (more, ReadBelow) => more,
            _ => WriteAll,
        }
    }
}

/// The claims of a lane, each resource once.
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

/// Claims a plain path in mode `at`, or the folder above it that stands for it in mode `all`.
fn claim_path(path: &str, at: Mode, all: Mode, connection: u64, claims: &mut Vec<Claim>) {
    let below = match all {
        Mode::WriteAll => Mode::WriteBelow,
        _ => Mode::ReadBelow,
    };
    let path = path.trim_end_matches('/');
    if path.len() > PATH_BYTES_MAX || path.split('/').any(|name| name.len() > NAME_BYTES_MAX) {
        return;
    }
    // Where the folders above end, the root first, and where the path itself ends.
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
