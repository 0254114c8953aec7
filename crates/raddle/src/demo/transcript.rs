//! The output of the demo on stdout.

use std::io;

use raddle_console::{Printer, allows_colours, sanitize};

const DIM: &str = "2";
const BOLD: &str = "1";
const RED: &str = "31";
const YELLOW: &str = "33";

/// The last lines: what happened, and what to type next.
const SUMMARY: [&str; 5] = [
    "A scripted model wanted to change a file. The server asked, and was killed.",
    "Another one read the thread from disk and asked again; the turn went on.",
    "The folder and the processes of the demo are gone. To use a model of your own:",
    "  raddle init                 choose a model, and what it may do",
    "  raddle exec 'say hello'     run one prompt; README.md describes the rest",
];

#[derive(Debug)]
pub(super) struct Transcript {
    printer: Printer,
    has_colours: bool,
    /// The number of the last step.
    step: u32,
}

impl Transcript {
    pub(super) fn new() -> Self {
        let printer = Printer::new();
        Self {
            has_colours: printer.is_terminal() && allows_colours(),
            printer,
            step: 0,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.printer.is_terminal()
    }

    pub(super) fn title(&mut self) -> io::Result<()> {
        self.print("raddle demo: a scripted model, no key, no network, nothing left behind")
    }

    /// Starts a numbered step.
    pub(super) fn step(&mut self, text: &str) -> io::Result<()> {
        self.step += 1;
        let line = self.painted(BOLD, &format!("{}. {text}", self.step));
        self.print(&line)
    }

    /// Prints a line of the step, after the name of its speaker.
    pub(super) fn line(&mut self, speaker: &str, text: &str) -> io::Result<()> {
        let speaker = self.painted(DIM, speaker);
        self.print(&format!("   {speaker}{}", sanitize(text)))
    }

    pub(super) fn diff(&mut self, diff: &str) -> io::Result<()> {
        for line in sanitize(diff).lines() {
            let style = match line.chars().next() {
                Some('-') => RED,
                Some('+') => YELLOW,
                _ => DIM,
            };
            let line = self.painted(style, line);
            self.print(&format!("          {line}"))?;
        }
        Ok(())
    }

    /// Prints a question, and leaves the cursor behind it.
    pub(super) fn prompt(&mut self, question: &str) -> io::Result<()> {
        write!(self.printer.file(), "   {question}")?;
        self.printer.flush()
    }

    pub(super) fn summary(&mut self) -> io::Result<()> {
        self.print("")?;
        SUMMARY.iter().try_for_each(|line| self.print(line))
    }

    /// Prints a line at once, so that the user sees each step as it happens.
    fn print(&mut self, line: &str) -> io::Result<()> {
        self.printer.line(line)?;
        self.printer.flush()
    }

    fn painted(&self, style: &str, text: &str) -> String {
        match self.has_colours && !text.is_empty() {
            true => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}
