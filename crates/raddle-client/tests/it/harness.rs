//! A server in memory, and a transport to it that fails where a test wants it to.

use std::collections::VecDeque;
use std::future::ready;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use raddle_client::protocol::methods::ThreadRead;
use raddle_client::protocol::{ThreadId, ThreadReadParams, Turn};
use raddle_client::{
    Client, Connection, ConnectionLimits, Dialer, Options, RequestHandler, ServerAddress, memory,
};
use raddle_rpc::{Close, Frame};
use raddle_server::{Paths, Server};
use tempfile::TempDir;
use tokio::sync::Semaphore;

/// A server with a scripted model.
#[derive(Clone)]
pub struct ClientHarness {
    shared: Arc<HarnessState>,
}

struct HarnessState {
    _home: TempDir,
    server: Mutex<Server>,
    /// Numbers of frames to the client after which each further connection is cut. Once the list is
    /// empty, no connection is cut.
    cuts: Mutex<VecDeque<usize>>,
    /// Frames that clients sent on the connections that are cut.
    requests: Mutex<Vec<String>>,
}

impl ClientHarness {
    pub fn open(says: &[&str]) -> Self {
        let home = TempDir::new().expect("a home");
        let root = home.path();
        let paths = Paths {
            home: root.to_owned(),
            system_config: root.join("system.toml"),
            user_config: root.join("config.toml"),
            skills: root.join("skills"),
            shared_skills: Vec::new(),
            rules: Vec::new(),
            threads: None,
        };
        let options = raddle_server::Options::new(paths);
        let server = Server::open(options, crate::script::threads(says)).expect("a server");
        let shared = HarnessState {
            _home: home,
            server: Mutex::new(server),
            cuts: Mutex::default(),
            requests: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Cuts each further connection after this many frames to the client.
    pub fn cut(&self, after: impl IntoIterator<Item = usize>) {
        locked(&self.shared.cuts).extend(after);
    }

    /// Counts the frames with this text that clients sent, on connections that are cut.
    pub fn count_requests(&self, what: &str) -> usize {
        let requests = locked(&self.shared.requests);
        requests.iter().filter(|it| it.contains(what)).count()
    }

    pub fn address(&self) -> ServerAddress {
        let harness = self.clone();
        ServerAddress::Memory(Dialer::new(move || ready(Ok(harness.dial()))))
    }

    pub async fn client(&self, handler: impl RequestHandler) -> Client {
        self.client_with(Options::new("it", "1"), handler).await
    }

    pub async fn client_with(&self, options: Options, handler: impl RequestHandler) -> Client {
        let client = Client::connect(self.address(), options, handler).await;
        client.expect("a client")
    }

    /// An address that accepts as many connections as there are permits.
    pub fn gated(&self, permits: &Arc<Semaphore>) -> ServerAddress {
        let (harness, permits) = (self.clone(), permits.clone());
        ServerAddress::Memory(Dialer::new(move || {
            let (harness, permits) = (harness.clone(), permits.clone());
            async move {
                permits.acquire().await.expect("open").forget();
                Ok(harness.dial())
            }
        }))
    }

    fn dial(&self) -> Connection {
        let cut = locked(&self.shared.cuts).pop_front();
        let (near, far) = memory(ConnectionLimits::default());
        let Some(frames) = cut else {
            locked(&self.shared.server).serve(far);
            return near;
        };
        let (middle, server) = memory(ConnectionLimits::default());
        locked(&self.shared.server).serve(server);
        tokio::spawn(carry(self.shared.clone(), far, middle, frames));
        near
    }
}

/// Forwards frames between a client and a server, until the client has received this many.
async fn carry(
    shared: Arc<HarnessState>,
    mut client: Connection,
    mut server: Connection,
    frames: usize,
) {
    let mut remaining = frames;
    while remaining > 0 {
        // When one end closes, both do.
        tokio::select! {
            frame = server.incoming.next() => match frame {
                Some(Frame::Message(frame)) => {
                    client.outgoing.send(frame);
                    remaining -= 1;
                }
                _ => break,
            },
            frame = client.incoming.next() => match frame {
                Some(Frame::Message(frame)) => {
                    locked(&shared.requests).push(String::from_utf8_lossy(&frame).into_owned());
                    server.outgoing.send(frame);
                }
                _ => break,
            },
        }
    }
    client.outgoing.close(Close::NORMAL);
    server.outgoing.close(Close::NORMAL);
}

/// Reads the turns of a thread from the server.
pub async fn read_turns(client: &Client, thread: ThreadId) -> Vec<Turn> {
    let params = ThreadReadParams {
        thread_id: thread,
        include_turns: true,
    };
    let read = client.call::<ThreadRead>(params).await;
    read.expect("the thread").thread.turns
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().expect("no panic")
}

/// An address without a server.
pub fn unreachable_address() -> ServerAddress {
    ServerAddress::Memory(Dialer::new(|| {
        ready(Err(io::Error::from(io::ErrorKind::NotFound)))
    }))
}
