//! How a fenced command comes to the proxy, from a network in which there is nothing else.
//!
//! The helper listens inside, on the loopback of the fence's own network, hands that listener out through a
//! socket that is mounted for it, and only then locks itself in. So the proxy accepts what comes inside although
//! it stands outside, nothing has to carry bytes between the two, and the command needs no unix socket.

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

use super::proxy::Proxy;
use crate::descriptors;

/// Where the proxy is inside. Nothing else is on that network before the command.
pub const PORT: u16 = 3128;

/// How many connections of one command are served at once; more wait.
const CONNECTIONS_MAX: usize = 128;

/// How long nothing is accepted after that went wrong.
const PAUSE: Duration = Duration::from_millis(100);

/// A command's way to the proxy.
#[derive(Debug)]
pub struct EgressSocket {
    listener: UnixListener,
    folder: SocketFolder,
}

/// A folder of ours, removed with what is in it.
#[derive(Debug)]
struct SocketFolder(PathBuf);

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl EgressSocket {
    /// Makes a socket in a new folder below this one that only we can enter.
    pub fn open(below: &Path, name: &str) -> io::Result<Self> {
        let path = below.join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = SocketFolder(path);
        let socket = folder.0.join("out");
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        Ok(Self { listener, folder })
    }

    /// What is to be mounted for the helper.
    pub fn socket(&self) -> PathBuf {
        self.folder.0.join("out")
    }

    /// Serves whoever comes from inside, until this is dropped.
    pub async fn serve(self, proxy: Proxy) -> io::Result<()> {
        let (helper, _) = self.listener.accept().await?;
        let inside = helper
            .async_io(Interest::READABLE, || {
                descriptors::receive(&helper, &mut [0])
            })
            .await?;
        let [inside] = inside;
        let inside = TcpListener::from(inside);
        // There is one helper, and it has been here.
        drop((helper, self));
        inside.set_nonblocking(true)?;
        let inside = tokio::net::TcpListener::from_std(inside)?;
        let mut served = JoinSet::new();
        loop {
            while served.len() >= CONNECTIONS_MAX {
                served.join_next().await;
            }
            while served.try_join_next().is_some() {}
            let Ok((client, _)) = inside.accept().await else {
                // Most likely there are too many descriptors for now.
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let proxy = proxy.clone();
            served.spawn(async move {
                // How it ended is the client's to see.
                let _ = proxy.serve(client).await;
            });
        }
    }
}

/// For the helper inside: listens where the command will look for the proxy, and hands that out.
pub(crate) fn listen_inside(socket: &Path) -> io::Result<()> {
    let inside = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    descriptors::send(UnixStream::connect(socket)?, &[0], &[inside.as_fd()])
}

/// The variables by which programs find the proxy.
pub fn variables() -> Vec<(String, String)> {
    let proxy = format!("http://127.0.0.1:{PORT}");
    let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
    let mut variables: Vec<_> = names.map(|name| (name.to_owned(), proxy.clone())).into();
    // What a command serves for itself needs no way out.
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
    async fn what_the_helper_hands_out_is_served() {
        let below = tempfile::tempdir().expect("a folder");
        let way = EgressSocket::open(below.path(), "one").expect("a way out");
        let (socket, folder) = (way.socket(), below.path().join("one"));
        let proxy = Proxy::new(EgressRules::default(), Arc::new(SystemDialer), |_| {});
        let serving = tokio::spawn(way.serve(proxy));
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
        assert!(!folder.exists(), "nobody can hand out another");
        serving.abort();
    }
}
