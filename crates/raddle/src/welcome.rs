//! `raddle` without arguments: prints how to start.

use std::io;

use raddle_console::Printer;

use crate::home::Home;

pub(crate) fn run() -> io::Result<()> {
    let socket = Home::find().map(|it| it.socket().display().to_string());
    let socket = socket.unwrap_or_else(|_| "PATH".to_owned());
    let mut printer = Printer::new();
    for line in [
        "Raddle hosts coding agents behind JSON-RPC. To begin:",
        "  raddle demo                 see a turn, an approval and a crash; needs no key",
        "  raddle init                 choose a model, and what it may do",
        "  raddle doctor               check this machine",
        "  raddle exec 'say hello'     run one prompt",
        "  raddle app-server           serve a client on stdin and stdout",
        "  raddle daemon start         serve many in the background; then, with Codex's TUI:",
        &format!("  codex --remote unix://{socket}"),
        "raddle --help lists all commands.",
    ] {
        printer.line(line)?;
    }
    printer.flush()
}
