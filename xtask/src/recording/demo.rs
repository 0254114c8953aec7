//! The recording of `raddle demo`, which has its own model, home and folder.

use std::path::Path;

use anyhow::{Result, bail};

use super::pty::Pty;
use super::svg::Caption;
use super::terminal::Terminal;
use super::{COLUMNS, Guard, MODEL_MS, READ_MS, ROWS, folder, neutral, program, shell_line};

pub(super) const FILE: &str = "docs/images/demo.svg";
pub(super) const CAPTION: Caption = Caption {
    command: "raddle demo",
    description: "The agent wants to change a file, and the server asks for approval. The server \
                  is killed. Another one asks again under the same id; the user answers y, and \
                  the turn completes.",
};

/// End of the question, which the user answers.
const QUESTION_END: &str = "[y/n] ";
const ANSWER: &str = "y";

pub(super) fn record(raddle: &Path) -> Result<Terminal> {
    let (home, work) = (folder("demo-home")?, folder("demo-work")?);
    let mut terminal = Terminal::new(usize::from(COLUMNS));
    shell_line(&mut terminal, "raddle demo")?;
    let mut demo = program(raddle, &home);
    demo.current_dir(&work).arg("demo");
    let mut pty = Pty::open(COLUMNS, ROWS)?;
    let mut demo = Guard(pty.start(demo)?);
    terminal.wait(MODEL_MS);
    terminal.output(&neutral(&pty.read_until(QUESTION_END)?))?;
    terminal.wait(READ_MS);
    terminal.type_text(ANSWER);
    terminal.enter();
    pty.enter(ANSWER)?;
    terminal.wait(MODEL_MS);
    terminal.output(&neutral(&pty.read_to_end()?))?;
    let status = demo.0.wait()?;
    if !status.success() {
        bail!("`raddle demo` ended with {status}:\n{}", terminal.text());
    }
    Ok(terminal)
}
