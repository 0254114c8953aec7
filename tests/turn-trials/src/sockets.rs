//! Models that fail in ways the mock cannot.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use socket2::SockRef;

/// A listener that accepts a call and resets its connection.
pub struct ResettingSocket {
    address: String,
    calls: Arc<AtomicUsize>,
}

impl ResettingSocket {
    pub fn open() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = address_of(listener.local_addr()?.port());
        let calls = Arc::new(AtomicUsize::new(0));
        let call_count = calls.clone();
        // The thread ends with the process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let read_result = stream.read(&mut [0; 1024]);
                if read_result.is_ok_and(|bytes| bytes > 0) {
                    call_count.fetch_add(1, Ordering::Relaxed);
                }
                // Closing with a zero linger time sends a reset, even with unread data.
                let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            }
        });
        Ok(Self { address, calls })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

/// A port without a listener that no other process can bind: it is the local end of a connection.
pub struct ClosedPort {
    address: String,
    _near: TcpStream,
    _far: TcpListener,
}

impl ClosedPort {
    pub fn open() -> Result<Self> {
        let far = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpStream::connect(far.local_addr()?)?;
        Ok(Self {
            address: address_of(near.local_addr()?.port()),
            _near: near,
            _far: far,
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }
}

fn address_of(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}
