//! Bounds of doors and connections.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bounds of one door, and of each connection that came through it.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The longest message a peer may send.
    pub message_bytes_max: usize,
    /// Above this many queued bytes the peer is no longer read.
    pub outgoing_bytes_max: usize,
    /// How long the HTTP request before a websocket may take.
    pub handshake: Duration,
    /// How long a peer may take nothing of what is written to it before it counts as gone. Its system takes
    /// more only when its buffer is nearly empty: on loopback after 128 KiB, and after 272 KiB of one that read fast
    /// before, which at a kilobyte a second is more than four minutes.
    pub write: Duration,
    /// How many peers may be connected to one door.
    pub connections_max: usize,
    /// How many sockets of one door may be at their HTTP request.
    pub handshakes_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            message_bytes_max: 32 << 20,
            outgoing_bytes_max: 8 << 20,
            handshake: Duration::from_secs(10),
            write: Duration::from_secs(300),
            connections_max: 4096,
            handshakes_max: 512,
        }
    }
}

impl ConnectionLimits {
    /// The same for each of several doors that share this many descriptors. Half of the descriptors
    /// is left for files; a quarter of a door's sockets may be at their handshake.
    pub fn sharing(mut self, descriptors: usize, doors: usize) -> Self {
        let sockets = descriptors / 2 / doors.max(1);
        let handshakes = (sockets / 4).max(2);
        self.handshakes_max = self.handshakes_max.min(handshakes);
        let connections = sockets.saturating_sub(handshakes).max(1);
        self.connections_max = self.connections_max.min(connections);
        self
    }
}

/// Lets this process open as many descriptors as the system allows it to; says how many that are.
/// The usual limit of 1024 is for programs that use `select`, which this one does not.
pub fn raise_descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the descriptor limit stays");
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |now| usize::try_from(now).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(descriptors: usize, doors: usize) -> (usize, usize) {
        let limits = ConnectionLimits::default().sharing(descriptors, doors);
        (limits.connections_max, limits.handshakes_max)
    }

    #[test]
    fn descriptors_are_never_promised_twice() {
        assert_eq!(shared(usize::MAX, 2), (4096, 512));
        assert_eq!(shared(1024, 1), (384, 128));
        assert_eq!(shared(1024, 2), (192, 64));
        assert_eq!(shared(1024, 0), (384, 128));
        assert_eq!(shared(4, 1), (1, 2));
        for descriptors in [64, 256, 1024, 4096, 65_536] {
            for doors in 1..4 {
                let (connections, handshakes) = shared(descriptors, doors);
                assert!((connections + handshakes) * doors <= descriptors / 2);
            }
        }
    }
}
