//! Whether a server does what it is for, as it says itself on `/livez`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long it may take to say so. Each part that it looks at has two seconds.
const LIVEZ_TIMEOUT: Duration = Duration::from_secs(5);

/// What an answer begins with if all is well.
const OK_STATUS_LINE: &[u8] = b"HTTP/1.1 200 ";

/// Asks at an address as `--listen` writes it.
pub(super) fn is_well(address: &str) -> io::Result<bool> {
    if let Some(path) = address.strip_prefix("unix://") {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(LIVEZ_TIMEOUT))?;
        stream.set_write_timeout(Some(LIVEZ_TIMEOUT))?;
        return ask(stream, "localhost");
    }
    let host = address.strip_prefix("ws://").unwrap_or(address);
    let here = host
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TcpStream::connect_timeout(&here, LIVEZ_TIMEOUT)?;
    stream.set_read_timeout(Some(LIVEZ_TIMEOUT))?;
    stream.set_write_timeout(Some(LIVEZ_TIMEOUT))?;
    ask(stream, host)
}

fn ask(mut stream: impl Read + Write, host: &str) -> io::Result<bool> {
    let request = format!("GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut begin = [0; OK_STATUS_LINE.len()];
    stream.read_exact(&mut begin)?;
    Ok(begin == OK_STATUS_LINE)
}
