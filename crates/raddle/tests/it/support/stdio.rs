//! The parent's end of stdin and stdout.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use serde_json::Value;

use super::{TEST_TIMEOUT, initialize};

/// Both pipes of a server. Every line of stdout must be a JSON object.
pub struct Pipes {
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Pipes {
    pub fn of(child: &mut Child) -> Self {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.expect("stdout is text");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { stdin, lines }
    }

    pub fn send(&mut self, line: &[u8]) {
        let mut all = line.to_vec();
        all.push(b'\n');
        self.raw(&all);
    }

    /// Sends bytes without a line end.
    pub fn raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).expect("the server reads");
    }

    /// Closes stdin.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// Returns stdin, to be written from another thread.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin is open")
    }

    /// The next message; `None` at the end of stdout.
    pub fn next(&mut self) -> Option<Value> {
        match self.lines.recv_timeout(TEST_TIMEOUT) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("not JSON on stdout: {error}: {line}"));
                assert!(message.is_object(), "not a message on stdout: {line}");
                Some(message)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came from stdout"),
        }
    }

    pub fn receive(&mut self) -> Value {
        self.next().expect("stdout is open")
    }

    pub fn ask(&mut self, frame: &[u8]) -> Value {
        self.send(frame);
        self.receive()
    }

    pub fn hello(&mut self) {
        let answer = self.ask(&initialize("hello"));
        assert!(answer["result"].is_object(), "{answer}");
    }
}
