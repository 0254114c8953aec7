//! Messages as lines, over the two pipes of a child.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use anyhow::{Context, Result, ensure};

use crate::server::MessageChannel;

const READ_BYTES: usize = 256 * 1024;

pub struct Pipe {
    input: ChildStdin,
    output: ChildStdout,
    /// Received bytes that are not yet a complete line.
    rest: Vec<u8>,
    chunk: Vec<u8>,
}

impl Pipe {
    pub fn new(child: &mut Child) -> Result<Self> {
        Ok(Self {
            input: child.stdin.take().context("no stdin")?,
            output: child.stdout.take().context("no stdout")?,
            rest: Vec::new(),
            chunk: vec![0; READ_BYTES],
        })
    }
}

impl MessageChannel for Pipe {
    fn frame(&self, message: &str, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.input.write_all(bytes)?)
    }

    fn read(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let count = self.output.read(&mut self.chunk)?;
        ensure!(count > 0, "the server ended");
        self.rest.extend_from_slice(&self.chunk[..count]);
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &self.rest) {
            each(&self.rest[begin..end])?;
            begin = end + 1;
        }
        self.rest.drain(..begin);
        Ok(())
    }
}
