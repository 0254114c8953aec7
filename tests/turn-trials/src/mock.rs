//! The process of `raddle mock`, and its statistics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process::ChildGuard;

/// A process of `raddle mock`, on its own port.
pub struct MockModel {
    _process: ChildGuard,
    address: String,
}

impl MockModel {
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let words = ["mock", "--listen", "127.0.0.1:0"];
        let mut process = ChildGuard::start(raddle, &words, home)?;
        let stdout = process.0.stdout.take().context("a pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim_end().to_owned();
        let is_address = address.starts_with("http://") && address.ends_with("/v1");
        is_address
            .then_some(())
            .with_context(|| format!("the mock said {line:?}, not where it listens"))?;
        Ok(Self {
            _process: process,
            address,
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the number of calls to the mock.
    pub fn calls(&self) -> Result<usize> {
        let host = self.address.trim_start_matches("http://");
        let host = host.trim_end_matches("/v1");
        let mut stream = TcpStream::connect(host)?;
        write!(
            stream,
            "GET /requests HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
        let body: Value = serde_json::from_str(body)?;
        let calls = body["calls"].as_u64().context("no count of calls")?;
        Ok(usize::try_from(calls)?)
    }
}
