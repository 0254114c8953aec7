//! `raddle plugin new`: a plugin from a template.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use raddle_console::print_lines;
use raddle_plugin::{MANIFEST_FILE, Manifest};

use crate::cli::{PluginLanguage, PluginNew};

/// The text in templates that stands for the id of the plugin.
const ID_MARK: &str = "PLUGIN_ID";

/// The text in the manifest that stands for the entrypoint.
const ENTRYPOINT_MARK: &str = "PLUGIN_ENTRYPOINT";

const MANIFEST: &str = include_str!("templates/plugin.toml");

/// The files of a language.
struct Template {
    file: &'static str,
    text: &'static str,
    entrypoint: &'static str,
    /// The command that builds the program, in its folder.
    build: Option<&'static str>,
}

impl Template {
    fn of(language: PluginLanguage) -> Self {
        match language {
            PluginLanguage::Python => Self {
                file: "main.py",
                text: include_str!("templates/main.py"),
                entrypoint: r#"["python3", "main.py"]"#,
                build: None,
            },
            PluginLanguage::Typescript => Self {
                file: "main.ts",
                text: include_str!("templates/main.ts"),
                entrypoint: r#"["node", "main.ts"]"#,
                build: None,
            },
            PluginLanguage::Go => Self {
                file: "main.go",
                text: include_str!("templates/main.go.txt"),
                entrypoint: r#"["./plugin"]"#,
                build: Some("go build -o plugin main.go"),
            },
            PluginLanguage::Rust => Self {
                file: "main.rs",
                text: include_str!("templates/main.rs.txt"),
                entrypoint: r#"["./plugin"]"#,
                build: Some("rustc -O --edition 2021 -o plugin main.rs"),
            },
        }
    }
}

pub(super) fn run(args: &PluginNew) -> Result<ExitCode> {
    let folder = &args.folder;
    let template = Template::of(args.lang);
    let id = match &args.id {
        Some(id) => id.clone(),
        None => default_id(folder),
    };
    let unusable = || {
        format!(
            "cannot write a plugin to {}; name another folder",
            folder.display()
        )
    };
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(error).with_context(unusable),
    };
    ensure!(
        is_empty,
        "{} is not empty; name a folder that is empty or does not exist",
        folder.display()
    );
    let manifest = MANIFEST
        .replace(ID_MARK, &id)
        .replace(ENTRYPOINT_MARK, template.entrypoint);
    fs::create_dir_all(folder).with_context(unusable)?;
    fs::write(folder.join(MANIFEST_FILE), manifest).with_context(unusable)?;
    if let Err(error) = Manifest::read(folder) {
        // Only the id can be wrong.
        let _ = fs::remove_file(folder.join(MANIFEST_FILE));
        return Err(error).context("the id cannot be used; name another one with --id");
    }
    let text = template.text.replace(ID_MARK, &id);
    fs::write(folder.join(template.file), text).with_context(unusable)?;
    let shown = folder.display();
    let mut lines = vec![format!("wrote the plugin {id} to {shown}; now run:")];
    if let Some(build) = template.build {
        lines.push(format!("  (cd {shown} && {build})"));
    }
    lines.push(format!("  raddle plugin test {shown}"));
    print_lines(lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns an id from the name of a folder.
fn default_id(folder: &Path) -> String {
    let name = std::path::absolute(folder).ok();
    let name = name.as_deref().and_then(Path::file_name);
    let name = name.map(|it| it.to_string_lossy()).unwrap_or_default();
    let letters = name.chars().map(|it| match it {
        it if it.is_ascii_alphanumeric() || it == '_' => it,
        _ => '-',
    });
    let name: String = letters.collect();
    match name.is_empty() {
        true => "local.plugin".to_owned(),
        false => format!("local.{name}"),
    }
}
