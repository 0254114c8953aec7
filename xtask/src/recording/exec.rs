//! The recordings of `raddle exec`, with a scripted model.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use super::pty::Pty;
use super::svg::Caption;
use super::terminal::Terminal;
use super::{
    COLUMNS, Guard, MODEL_MS, READ_MS, ROWS, folder, neutral, program, shell_line, start_mock,
};

/// A run of `raddle exec`, and the answers of its user.
pub(super) struct Scene {
    pub file: &'static str,
    pub caption: Caption,
    /// Name of the scene's folders.
    name: &'static str,
    /// The file that the agent writes, which the recording shows at its end.
    written: &'static str,
    /// Its content before; `None` if it does not exist.
    before: Option<&'static str>,
    prompt: &'static str,
    /// The script of the model.
    script: &'static str,
    /// Ends of questions, and the answers.
    answers: &'static [(&'static str, &'static str)],
}

/// Options of every run: each change of a file needs an approval.
const OPTIONS: [&str; 2] = ["--sandbox", "read-only"];

const HUNK: &str = "[y/n/s/a/d/?/…] ";

pub(super) const SCENES: &[Scene] = &[
    Scene {
        file: "docs/images/exec.svg",
        caption: Caption {
            command: "raddle exec",
            description: "The agent wants to write a file. raddle exec shows the change and asks; \
                          the user answers y, and the file is written.",
        },
        name: "looms",
        written: "loom.txt",
        before: None,
        prompt: "Write a haiku about looms to loom.txt.",
        script: r#"
[[answer]]
match = "haiku"
steps = [{ call = "apply_patch", arguments = { input = "*** Begin Patch\n*** Add File: loom.txt\n+Warp threads hold the light,\n+the shuttle passes between,\n+cloth remembers both.\n*** End Patch\n" } }]

[[answer]]
steps = [{ text = "I wrote the haiku to loom.txt." }]
"#,
        answers: &[("[y/a/n/?/…] ", "y")],
    },
    Scene {
        file: "docs/images/hunks.svg",
        caption: Caption {
            command: "raddle exec",
            description: "The agent wants to change a file in two places. The user answers h, \
                          applies the first hunk, and says why the second is dropped. The file \
                          has the first change alone, and the agent has read the reason.",
        },
        name: "greet",
        written: "greet.py",
        before: Some(
            "import sys\n\ndef greet(name):\n    print(\"hello\", name)\n\n\ndef leave(name):\n    \
             print(\"bye\", name)\n\n\nfor name in sys.argv[1:]:\n    greet(name)\n    leave(name)\n",
        ),
        prompt: "Greet in French.",
        script: r#"
[[answer]]
match = "French"
steps = [{ call = "apply_patch", arguments = { input = "*** Begin Patch\n*** Update File: greet.py\n@@\n-    print(\"hello\", name)\n+    print(\"bonjour\", name)\n@@\n-    leave(name)\n+    # leave(name)\n*** End Patch\n" } }]

[[answer]]
steps = [{ text = "The greeting is in French now. I kept the call of leave." }]
"#,
        answers: &[
            ("[y/a/h/n/?/…] ", "h"),
            (HUNK, "y"),
            (HUNK, "we still say bye"),
        ],
    },
];

pub(super) fn record(scene: &Scene, raddle: &Path) -> Result<Terminal> {
    let (home, work) = (
        folder(&format!("{}-home", scene.name))?,
        folder(scene.name)?,
    );
    let script = home.join("script.toml");
    fs::write(&script, scene.script)?;
    if let Some(text) = scene.before {
        fs::write(work.join(scene.written), text)?;
    }
    let (_mock, base_url) = start_mock(raddle, &home, &script)?;
    fs::write(
        home.join("config.toml"),
        format!(
            "model = \"mock/mock\"\n\n[model_providers.mock]\nbase_url = \"{}\"\n",
            base_url.trim()
        ),
    )?;

    let mut terminal = Terminal::new(usize::from(COLUMNS));
    let options = OPTIONS.join(" ");
    shell_line(
        &mut terminal,
        &format!("raddle exec {options} \"{}\"", scene.prompt),
    )?;
    let mut exec = program(raddle, &home);
    exec.current_dir(&work);
    exec.arg("exec").args(OPTIONS).arg(scene.prompt);
    let mut pty = Pty::open(COLUMNS, ROWS)?;
    let mut exec = Guard(pty.start(exec)?);
    for (question_end, answer) in scene.answers {
        terminal.wait(MODEL_MS);
        terminal.output(&neutral(&pty.read_until(question_end)?))?;
        terminal.wait(READ_MS);
        terminal.type_text(answer);
        terminal.enter();
        pty.enter(answer)?;
    }
    terminal.wait(MODEL_MS);
    terminal.output(&neutral(&pty.read_to_end()?))?;
    let status = exec.0.wait()?;
    if !status.success() {
        bail!("`raddle exec` ended with {status}:\n{}", terminal.text());
    }

    shell_line(&mut terminal, &format!("cat {}", scene.written))?;
    terminal.output(&fs::read_to_string(work.join(scene.written))?)?;
    Ok(terminal)
}
