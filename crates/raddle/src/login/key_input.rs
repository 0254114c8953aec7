//! Input of a key: from a terminal without echo, else from stdin.

use std::io::{self, IsTerminal, Read, Write};

use anyhow::{Context, Result, bail};
use raddle_console::sanitize;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Longer than any key.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// Control characters that a user types instead of a key.
const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const ERASE_LINE: u8 = 0x15;
const BACKSPACES: [u8; 2] = [0x08, 0x7f];

/// Reads a key. The prompt is shown on a terminal only.
pub(super) fn read(prompt: &str) -> Result<String> {
    if io::stdin().is_terminal() {
        return on_terminal(prompt);
    }
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(KEY_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .context("cannot read the key from stdin")?;
    if text.len() as u64 > KEY_BYTES_MAX {
        bail!("stdin has more than {KEY_BYTES_MAX} bytes, too much for a key; nothing was stored");
    }
    Ok(text)
}

fn on_terminal(prompt: &str) -> Result<String> {
    let silence = SilentTerminal::new().context("cannot turn off the echo of the terminal")?;
    let mut stderr = io::stderr();
    write!(stderr, "{}", sanitize(prompt))?;
    stderr.flush()?;
    let line = line(&mut io::stdin().lock());
    drop(silence);
    writeln!(stderr)?;
    line
}

/// Reads a line byte by byte: the terminal itself neither edits it nor sends signals.
fn line(input: &mut impl Read) -> Result<String> {
    let mut typed: Vec<u8> = Vec::new();
    let mut byte = [0];
    loop {
        let count = input.read(&mut byte).context("cannot read the key")?;
        match (count, byte[0]) {
            (1, b'\n' | b'\r') => break,
            (1, INTERRUPT) => bail!("interrupted; nothing was stored"),
            (0, _) | (_, END) if typed.is_empty() => bail!("no key was given; nothing was stored"),
            (0, _) | (_, END) => break,
            (_, ERASE_LINE) => typed.clear(),
            (_, it) if BACKSPACES.contains(&it) => {
                typed.pop();
            }
            (_, it) => typed.push(it),
        }
        if typed.len() as u64 > KEY_BYTES_MAX {
            bail!("too much for a key; nothing was stored");
        }
    }
    String::from_utf8(typed).context("the key is not text; nothing was stored")
}

/// A terminal without echo, restored on drop.
struct SilentTerminal {
    before: Termios,
}

impl SilentTerminal {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut modes = before.clone();
        // Without signals of the terminal, a key press cannot end this process before it restores
        // the echo. A signal from elsewhere can; `stty sane` restores the echo then.
        let off = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        modes.local_modes.remove(off);
        tcsetattr(io::stdin(), OptionalActions::Flush, &modes)?;
        Ok(Self { before })
    }
}

impl Drop for SilentTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_it_is_typed() {
        for (typed, expected) in [
            (&b"key\n"[..], Some("key")),
            (b"kx\x7fey\r", Some("key")),
            (b"other\x15key\n", Some("key")),
            (b"\x08key", Some("key")),
            (b"\n", Some("")),
            (b"key\x04", Some("key")),
            (b"key\x03\n", None),
            (b"\x04", None),
            (b"", None),
            (b"\xff\n", None),
        ] {
            let mut input = typed;
            let actual = line(&mut input).ok();
            assert_eq!(actual.as_deref(), expected, "{typed:?}");
        }
    }
}
