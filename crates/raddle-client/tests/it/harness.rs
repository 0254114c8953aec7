//! A server in memory, and a way to it that ends where a test wants it to.

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

/// A server whose model follows a script.
#[derive(Clone)]
pub struct ClientHarness {
    shared: Arc<HarnessState>,
}

struct HarnessState {
    _home: TempDir,
    server: Mutex<Server>,
    /// After how many frames to the client each further connection is cut; when there are no more, none is.
    cuts: Mutex<VecDeque<usize>>,
    /// What clients said on the connections that are cut.
    said: Mutex<Vec<String>>,
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
            rules: Vec::new(),
            threads: None,
        };
        let options = raddle_server::Options::new(paths);
        let server = Server::open(options, crate::script::threads(says)).expect("a server");
        let shared = HarnessState {
            _home: home,
            server: Mutex::new(server),
            cuts: Mutex::default(),
            said: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Connections made from now on are cut after so many frames to the client.
    pub fn cut(&self, after: impl IntoIterator<Item = usize>) {
        locked(&self.shared.cuts).extend(after);
    }

    /// How often clients said something with this in it, on connections that are cut some time.
    pub fn said(&self, what: &str) -> usize {
        let said = locked(&self.shared.said);
        said.iter().filter(|it| it.contains(what)).count()
    }

    pub fn place(&self) -> ServerAddress {
        let stage = self.clone();
        ServerAddress::Memory(Dialer::new(move || ready(Ok(stage.dial()))))
    }

    pub async fn client(&self, answers: impl RequestHandler) -> Client {
        self.client_with(Options::new("it", "1"), answers).await
    }

    pub async fn client_with(&self, options: Options, answers: impl RequestHandler) -> Client {
        let client = Client::connect(self.place(), options, answers).await;
        client.expect("a client")
    }

    /// A place that lets in as many as there is leave for.
    pub fn gated(&self, leave: &Arc<Semaphore>) -> ServerAddress {
        let (stage, leave) = (self.clone(), leave.clone());
        ServerAddress::Memory(Dialer::new(move || {
            let (stage, leave) = (stage.clone(), leave.clone());
            async move {
                leave.acquire().await.expect("open").forget();
                Ok(stage.dial())
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

/// Carries frames between a client and a server, until the client has got so many.
async fn carry(
    shared: Arc<HarnessState>,
    mut client: Connection,
    mut server: Connection,
    frames: usize,
) {
    let mut left = frames;
    while left > 0 {
        // When one of them ends, both do.
        tokio::select! {
            frame = server.incoming.next() => match frame {
                Some(Frame::Message(frame)) => {
                    client.outgoing.send(frame);
                    left -= 1;
                }
                _ => break,
            },
            frame = client.incoming.next() => match frame {
                Some(Frame::Message(frame)) => {
                    locked(&shared.said).push(String::from_utf8_lossy(&frame).into_owned());
                    server.outgoing.send(frame);
                }
                _ => break,
            },
        }
    }
    client.outgoing.close(Close::NORMAL);
    server.outgoing.close(Close::NORMAL);
}

/// The turns of a thread, as the server shows them.
pub async fn shown(client: &Client, thread: ThreadId) -> Vec<Turn> {
    let params = ThreadReadParams {
        thread_id: thread,
        include_turns: true,
    };
    let read = client.call::<ThreadRead>(params).await;
    read.expect("the thread").thread.turns
}

fn locked<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().expect("nobody panicked")
}

/// A place where nobody is.
pub fn nowhere() -> ServerAddress {
    ServerAddress::Memory(Dialer::new(|| {
        ready(Err(io::Error::from(io::ErrorKind::NotFound)))
    }))
}
