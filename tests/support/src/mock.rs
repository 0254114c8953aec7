//! The process of `raddle mock`, and its administration.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process::{ChildGuard, append_to};

/// A process of `raddle mock`, on its own port.
pub struct MockModel {
    _process: ChildGuard,
    address: String,
}

impl MockModel {
    /// Starts the mock. Its stderr goes to a file in the home.
    pub fn start(raddle: &Path, home: &Path) -> Result<Self> {
        let mut command = Command::new(raddle);
        command
            .args(["mock", "--listen", "127.0.0.1:0"])
            .env("RADDLE_HOME", home)
            .current_dir(home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(append_to(&home.join("mock.stderr"))?);
        let mut process = ChildGuard::spawn(&mut command)?;
        let stdout = process.child.stdout.take().context("a pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim_end().to_owned();
        ensure!(
            address.starts_with("http://") && address.ends_with("/v1"),
            "the mock said {line:?}, not where it listens"
        );
        Ok(Self {
            _process: process,
            address,
        })
    }

    /// Returns its address, as a provider's `base_url`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns a configuration in which it is the default model. Its provider's table comes last.
    pub fn config(&self) -> String {
        format!(
            "model = \"mock\"\nmodel_provider = \"mock\"\n\n[model_providers.mock]\nbase_url = \"{}\"\n",
            self.address
        )
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> Result<usize> {
        let body: Value = serde_json::from_str(&self.request("GET /requests")?)?;
        let calls = body["calls"].as_u64().context("no count of calls")?;
        Ok(usize::try_from(calls)?)
    }

    /// Releases this many paused answers.
    pub fn release(&self, answers: usize) -> Result<()> {
        self.request(&format!("POST /release?n={answers}"))
            .map(drop)
    }

    /// Sends an HTTP request, and returns the body of the response.
    fn request(&self, target: &str) -> Result<String> {
        let host = self.address.trim_start_matches("http://");
        let host = host.trim_end_matches("/v1");
        let mut stream = TcpStream::connect(host)?;
        write!(
            stream,
            "{target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 2"), "{target}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
        Ok(body.to_owned())
    }
}
