//! Sockets that send one byte a second, beside ten clients that must not be affected.

use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow};
use support::{Websocket, upgrade};

use crate::ratio::Ratio;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::stream::stream;

const PAUSE: Duration = Duration::from_secs(1);

pub struct DripSize {
    pub sockets: usize,
    pub pieces: usize,
    pub pairs: usize,
    pub ratio_max: f64,
}

/// Half of them never finish their handshake; half are clients that never finish a message.
struct DripClients {
    stop: Sender<()>,
    dripping: JoinHandle<Result<usize>>,
}

enum DripClient {
    Handshaking { stream: TcpStream, sent: usize },
    Client(Box<Websocket>),
}

impl DripClients {
    fn start(server: &CrowdServer, sockets: usize) -> Result<Self> {
        let mut drips = Vec::new();
        for number in 0..sockets {
            drips.push(if number % 2 == 0 {
                connect_handshaking(server)?
            } else {
                let mut wire = server.client(ServerEndpoint::Tcp)?.wire;
                wire.send_raw(&message_head())?;
                DripClient::Client(Box::new(wire))
            });
        }
        let address = server.address()?;
        let (stop, stopped) = channel();
        let dripping = thread::spawn(move || {
            let mut closed = 0;
            let head = upgrade(&address.to_string());
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                for drip in &mut drips {
                    match drip {
                        DripClient::Client(wire) => wire.send_raw(b" ")?,
                        DripClient::Handshaking { stream, sent } => {
                            let byte = head.as_bytes()[*sent % head.len()];
                            *sent += 1;
                            // The handshake timed out, or the server closed it in favour of
                            // another: connect again.
                            if stream.write_all(&[byte]).is_err() {
                                closed += 1;
                                *stream = TcpStream::connect(address)?;
                                *sent = 0;
                            }
                        }
                    }
                }
            }
            Ok(closed)
        });
        Ok(Self { stop, dripping })
    }

    /// Stops the sockets. Returns how many the server closed.
    fn finish(self) -> Result<usize> {
        drop(self.stop);
        let dripped = self.dripping.join();
        dripped.map_err(|_| anyhow!("the drips panicked"))?
    }
}

fn connect_handshaking(server: &CrowdServer) -> Result<DripClient> {
    let stream = TcpStream::connect(server.address()?)?;
    Ok(DripClient::Handshaking { stream, sent: 0 })
}

/// Returns the beginning of a message of the maximum length.
fn message_head() -> Vec<u8> {
    // A text message whose length has eight bytes, and a mask of zeros.
    let mut head = vec![0x81, 0x80 | 127];
    head.extend((16_u64 << 20).to_be_bytes());
    head.extend([0; 4]);
    head
}

pub fn run(server: &CrowdServer, size: &DripSize) -> Result<()> {
    let mut ratio = Ratio::default();
    for pair in 1..=size.pairs {
        let (alone, ()) = stream(server, size.pieces, |_| Ok(()))?;
        let start_drips = |_: &str| DripClients::start(server, size.sockets);
        let (loaded, drips) = stream(server, size.pieces, start_drips)?;
        let closed = drips.finish()?;
        println!(
            "pair {pair}: p99 {:.1?}, and {:.1?} beside {} sockets that drip, {closed} of them closed",
            alone.p99, loaded.p99, size.sockets
        );
        ratio.add(alone.p99, loaded.p99);
    }
    ratio.at_most(size.ratio_max)
}
