//! Liveness of a server, as reported by its own `/livez` page.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The timeout of the probe. Each part that the server checks has two seconds.
const LIVEZ_TIMEOUT: Duration = Duration::from_secs(5);

/// The start of a response that reports a healthy server.
const OK_STATUS_LINE: &[u8] = b"HTTP/1.1 200 ";

/// Probes a server at an address in the form of `--listen`.
pub(super) fn is_well(address: &str) -> io::Result<bool> {
    if let Some(path) = address.strip_prefix("unix://") {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(LIVEZ_TIMEOUT))?;
        stream.set_write_timeout(Some(LIVEZ_TIMEOUT))?;
        return probe(stream, "localhost");
    }
    let host = address.strip_prefix("ws://").unwrap_or(address);
    let socket_address = host
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TcpStream::connect_timeout(&socket_address, LIVEZ_TIMEOUT)?;
    stream.set_read_timeout(Some(LIVEZ_TIMEOUT))?;
    stream.set_write_timeout(Some(LIVEZ_TIMEOUT))?;
    probe(stream, host)
}

fn probe(mut stream: impl Read + Write, host: &str) -> io::Result<bool> {
    let request = format!("GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut begin = [0; OK_STATUS_LINE.len()];
    stream.read_exact(&mut begin)?;
    Ok(begin == OK_STATUS_LINE)
}
