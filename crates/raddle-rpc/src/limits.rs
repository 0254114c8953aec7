//! Limits of listeners and connections.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limits of one listener, and of each of its connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Maximum length of an incoming message.
    pub message_bytes_max: usize,
    /// Queued outgoing bytes above which the peer is no longer read (backpressure).
    pub outgoing_bytes_max: usize,
    /// Timeout of the HTTP request before a websocket.
    pub handshake: Duration,
    /// Timeout of a peer that accepts no bytes. Its operating system accepts more only when its
    /// buffer is nearly empty: on loopback after 128 KiB, and after 272 KiB if the peer read fast
    /// before. At a kilobyte a second the latter takes more than four minutes.
    pub write: Duration,
    /// Maximum number of connected peers of one listener.
    pub connections_max: usize,
    /// Maximum number of sockets of one listener in their HTTP request.
    pub handshakes_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // Limit: a message from a client (`--max-message-bytes` changes it); beyond it, a
            // websocket closes with 1009, and stdio skips the line.
            message_bytes_max: 32 << 20,
            // Limit: frames queued for one client; beyond it, the server stops reading the client,
            // and pauses its file reads and watches; responses of running requests are still
            // queued.
            outgoing_bytes_max: 8 << 20,
            // Limit: time for the HTTP request of a websocket; beyond it, the socket closes.
            handshake: Duration::from_secs(10),
            // Limit: time in which a client, or another process of the home, reads nothing of a
            // pending write; beyond it, the connection ends: a websocket with 1008, and a server on
            // stdio exits non-zero.
            write: Duration::from_secs(300),
            // Limit: connections of one listener (fewer where descriptors are scarce); beyond it,
            // the server responds with 503; `/readyz`, `/healthz`, `/livez` and `/metrics` still
            // respond.
            connections_max: 4096,
            // Limit: sockets of one listener before their upgrade (fewer where descriptors are
            // scarce); beyond it, the oldest socket without a whole request is closed, or else the
            // new one.
            handshakes_max: 512,
        }
    }
}

impl ConnectionLimits {
    /// Limits for each of several listeners that share this many descriptors. Half of the
    /// descriptors is reserved for files. A quarter of a listener's sockets may be in the
    /// handshake.
    pub fn sharing(mut self, descriptors: usize, listeners: usize) -> Self {
        let sockets = descriptors / 2 / listeners.max(1);
        let handshakes = (sockets / 4).max(2);
        self.handshakes_max = self.handshakes_max.min(handshakes);
        let connections = sockets.saturating_sub(handshakes).max(1);
        self.connections_max = self.connections_max.min(connections);
        self
    }
}

/// Raises the descriptor limit of this process to the maximum, and returns it. The usual limit of
/// 1024 is for programs that use `select`, which this one does not.
pub fn raise_descriptor_limit() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "cannot raise the descriptor limit");
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |now| usize::try_from(now).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(descriptors: usize, listeners: usize) -> (usize, usize) {
        let limits = ConnectionLimits::default().sharing(descriptors, listeners);
        (limits.connections_max, limits.handshakes_max)
    }

    #[test]
    fn listeners_never_overcommit_descriptors() {
        assert_eq!(shared(usize::MAX, 2), (4096, 512));
        assert_eq!(shared(1024, 1), (384, 128));
        assert_eq!(shared(1024, 2), (192, 64));
        assert_eq!(shared(1024, 0), (384, 128));
        assert_eq!(shared(4, 1), (1, 2));
        for descriptors in [64, 256, 1024, 4096, 65_536] {
            for listeners in 1..4 {
                let (connections, handshakes) = shared(descriptors, listeners);
                assert!((connections + handshakes) * listeners <= descriptors / 2);
            }
        }
    }
}
