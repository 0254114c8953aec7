//! One prompt to the new model, if the user wants it.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::prompt::{ask, ask_until_valid, print};

const PROMPT: &str = "Reply with the word hello.";

/// Offers the check, and runs it with `raddle exec`. The configuration stays in any case.
pub(super) fn offer() -> Result<()> {
    let question = "4. Ask the model for one word now? yes or no";
    let answer = ask_until_valid(
        || match ask(question, Some("yes"))?.to_lowercase().as_str() {
            "y" | "yes" => Ok(true),
            "n" | "no" => Ok(false),
            other => bail!("`{other}` is neither yes nor no"),
        },
    );
    // The end of input is a no.
    if !answer.unwrap_or(false) {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let output = Command::new(program)
        .args(["exec", "--ephemeral", "--sandbox", "read-only", PROMPT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start `raddle exec`")?;
    let answer = String::from_utf8_lossy(&output.stdout);
    for line in answer.lines() {
        print(line)?;
    }
    match output.status.success() {
        true => print("the model answers"),
        false => print(
            "the model did not answer; the configuration is written, and `raddle doctor` checks it",
        ),
    }
}
