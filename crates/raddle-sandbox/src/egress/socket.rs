//! Connects a sandboxed command to the proxy, from a network in which there is nothing else.
//!
//! The helper listens inside, on the loopback of the sandbox's own network, passes that listener
//! out through a mounted socket, and only then restricts itself. So the proxy accepts connections
//! from inside although it runs outside. No process has to copy bytes between the two, and the
//! command needs no unix socket.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixListener;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::proxy::Proxy;
use crate::descriptors;

/// Port of the proxy inside. Nothing else is on that network before the command.
pub const PORT: u16 = 3128;

/// Connections of one command that are served at once; more wait.
const CONNECTIONS_MAX: usize = 128;

/// Pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The socket through which the helper of a command passes its listener to the proxy.
#[derive(Debug)]
pub struct EgressSocket {
    listener: UnixListener,
    folder: SocketFolder,
}

/// A folder that is removed with its contents.
#[derive(Debug)]
struct SocketFolder(PathBuf);

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl EgressSocket {
    /// Creates a socket in a new folder below this one that only this user can enter.
    pub fn open(below: &Path, name: &str) -> io::Result<Self> {
        let path = below.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = SocketFolder(path);
        let socket = folder.0.join("out");
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        Ok(Self { listener, folder })
    }

    /// Returns the path that is mounted for the helper.
    pub fn socket(&self) -> PathBuf {
        self.folder.0.join("out")
    }

    /// Serves connections from inside, until the future is dropped.
    pub async fn serve(self, proxy: Proxy) -> io::Result<()> {
        let (helper, _) = self.listener.accept().await?;
        let inside = helper
            .async_io(Interest::READABLE, || {
                descriptors::receive(&helper, &mut [0])
            })
            .await?;
        let [inside] = inside;
        let inside = TcpListener::from(inside);
        // There is only one helper, and it has connected.
        drop((helper, self));
        inside.set_nonblocking(true)?;
        let inside = tokio::net::TcpListener::from_std(inside)?;
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= CONNECTIONS_MAX {
                connections.join_next().await;
            }
            while connections.try_join_next().is_some() {}
            let Ok((client, _)) = inside.accept().await else {
                // Most likely there are too many descriptors for now.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let proxy = proxy.clone();
            let serving = async move {
                // The client sees the result.
                let _ = proxy.serve(client).await;
            };
            connections.spawn(serving.in_current_span());
        }
    }
}

/// Listens inside, where the command looks for the proxy, and passes the listener out. The helper
/// calls it.
pub(crate) fn listen_inside(socket: &Path) -> io::Result<()> {
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    descriptors::send(UnixStream::connect(socket)?, &[0], &[inside.as_fd()])
}

/// Returns the variables by which programs find the proxy.
pub fn variables() -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
    let mut variables: Vec<_> = names.map(|name| (name.to_owned(), proxy.clone())).into();
    // A command reaches its own services without the proxy.
    let own = "localhost,127.0.0.1,::1";
    variables.extend(["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), own.to_owned())));
    variables
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::super::{EgressRules, SystemDialer};
    use super::*;

    #[tokio::test]
    async fn the_listener_of_the_helper_is_served() {
        let below = tempfile::tempdir().expect("a folder");
        let egress_socket = EgressSocket::open(below.path(), "one").expect("a way out");
        let (socket, folder) = (egress_socket.socket(), below.path().join("one"));
        let proxy = Proxy::new(EgressRules::default(), Arc::new(SystemDialer), |_| {});
        let serving = tokio::spawn(egress_socket.serve(proxy));
        // As the helper does, on a port that is free here.
        let inside = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = inside.local_addr().expect("an address");
        let helper = UnixStream::connect(&socket).expect("the mounted socket");
        descriptors::send(&helper, &[0], &[inside.as_fd()]).expect("handed out");
        drop((helper, inside));
        let mut client = TcpStream::connect(address).await.expect("a connection");
        let request = b"CONNECT example.com:443 HTTP/1.1\r\n\r\n";
        client.write_all(request).await.expect("written");
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(!folder.exists(), "its folder is removed");
        serving.abort();
    }
}
