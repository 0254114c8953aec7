//! Calls that read or change files: what they would do, judged by what they lead to, and how it is done.

use std::path::{Path, PathBuf};

use raddle_core::policy::{Act, ActKind};
use raddle_core::ports::{Job, Meant, Ran};
use raddle_core::{Call, ImageView, ItemBody, ItemStatus, Output, Patch, Settings, Tool};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::arguments;
use crate::command;
use crate::files::{
    EditFile, Last, ListFiles, Planned, ReadFile, Roots, SearchFiles, Spot, TurnDiff, ViewImage,
    WriteFile,
};
use crate::hex::hex;
use crate::patch;
use crate::registry::Inner;

/// The longest diff of a turn that is told.
const DIFF_BYTES_MAX: usize = 1 << 20;

/// A call about files.
pub(crate) struct OnFiles {
    what: What,
    /// Where relative paths begin.
    cwd: PathBuf,
}

enum What {
    Read(ReadFile),
    List(ListFiles),
    Search(SearchFiles),
    View(ViewImage),
    Write(WriteFile),
    Edit(EditFile),
    Patch(String),
}

#[derive(Deserialize)]
struct ApplyPatch {
    #[serde(alias = "patch")]
    input: String,
}

impl OnFiles {
    /// What a call is about; nothing if it is no call of such a tool.
    pub(crate) fn of(settings: &Settings, call: &Call) -> Option<Result<Self, String>> {
        let what = match call.tool.as_str() {
            "read_file" => arguments::read(call).map(What::Read),
            "list_files" => arguments::read(call).map(What::List),
            "search_files" => arguments::read(call).map(What::Search),
            "view_image" => arguments::read(call).map(What::View),
            "write_file" => arguments::read(call).map(What::Write),
            "edit_file" => arguments::read(call).map(What::Edit),
            "apply_patch" if call.freeform => Ok(What::Patch(call.arguments.clone())),
            "apply_patch" => arguments::read(call).map(|it: ApplyPatch| What::Patch(it.input)),
            _ => return None,
        };
        let cwd = PathBuf::from(&settings.cwd);
        Some(what.map(|what| Self { what, cwd }))
    }

    /// A patch that was handed to a shell.
    pub(crate) fn patch(text: String, cwd: PathBuf) -> Self {
        let what = What::Patch(text);
        Self { what, cwd }
    }

    /// What it would do. It looks at the disk, and may wait for it.
    pub(crate) fn meant(
        &self,
        settings: &Settings,
        own: &[PathBuf],
        name: &str,
    ) -> (ItemBody, Meant) {
        let name = name.to_owned();
        let shown = match &self.what {
            What::View(it) => ItemBody::ImageView(ImageView {
                path: self.absolute(&it.path),
            }),
            _ => ItemBody::Tool(Tool { name }),
        };
        let roots = match self.roots(settings, own) {
            Ok(roots) => roots,
            Err(why) => return (shown, Meant::Refused(why)),
        };
        if let Some(path) = self.reads() {
            let meant = match read(&roots, path, settings) {
                Ok((act, _)) => Meant::Act(act),
                Err(why) => Meant::Refused(why),
            };
            return (shown, meant);
        }
        match self.plan(&roots) {
            Ok(planned) => {
                let changes = planned.changes();
                let act = write(&planned, settings);
                (ItemBody::Patch(Patch { changes }), Meant::Act(act))
            }
            Err(why) => (shown, Meant::Refused(why)),
        }
    }

    /// The path that it reads, if it only reads.
    fn reads(&self) -> Option<&str> {
        let path = match &self.what {
            What::Read(it) => Some(it.path.as_str()),
            What::View(it) => Some(it.path.as_str()),
            What::List(it) => it.path.as_deref(),
            What::Search(it) => it.path.as_deref(),
            What::Write(_) | What::Edit(_) | What::Patch(_) => return None,
        };
        Some(path.unwrap_or("."))
    }

    fn absolute(&self, path: &str) -> String {
        let path = match path {
            "" | "." => self.cwd.clone(),
            path => self.cwd.join(path),
        };
        path.display().to_string()
    }

    fn roots(&self, settings: &Settings, own: &[PathBuf]) -> Result<Roots, String> {
        let policy = command::policy(settings, own)?;
        Roots::new(&self.cwd, &policy).map_err(|error| error.to_string())
    }

    fn plan(&self, roots: &Roots) -> Result<Planned, String> {
        match &self.what {
            What::Write(it) => it.plan(roots).map_err(|error| error.to_string()),
            What::Edit(it) => it.plan(roots).map_err(|error| error.to_string()),
            What::Patch(text) => patch::plan(roots, text).map_err(|error| error.to_string()),
            What::Read(_) | What::List(_) | What::Search(_) | What::View(_) => {
                Err("This call writes nothing.".to_owned())
            }
        }
    }

    /// Does it, if it is what was allowed. It may wait for the disk.
    pub(crate) fn run(&self, inner: &Inner, job: Job) -> Ran {
        let body = job.item.body.clone();
        match self.reads() {
            Some(path) => {
                let roots = self.roots(&job.settings, &inner.own);
                let act = roots.and_then(|it| Ok((read(&it, path, &job.settings)?, it)));
                match act {
                    Ok(((act, spot), roots)) if job.may(&act.kind, || act.digest.clone()) => {
                        let closed = match &act.kind {
                            ActKind::Read { path } => inner.operator.closed_below(path),
                            _ => Vec::new(),
                        };
                        self.read(&roots.without(closed), &spot, body)
                    }
                    Ok(_) => failed(
                        body,
                        "Nothing was read: the path leads elsewhere than when it was allowed. Call again.",
                    ),
                    Err(why) => failed(body, &why),
                }
            }
            None => self.write(inner, &job, body),
        }
    }

    /// Reads there, and does not ask again where the path leads: that may have changed since it was judged.
    fn read(&self, roots: &Roots, spot: &Spot, body: ItemBody) -> Ran {
        let said = match &self.what {
            What::Read(it) => it.run_at(roots, spot),
            What::List(it) => it.run_at(roots, spot),
            What::Search(it) => it.run_at(roots, spot),
            What::View(it) => {
                return match it.run_at(roots, spot) {
                    Ok(picture) => {
                        let output = Output::text(format!("The picture {}.", picture.path));
                        Ran {
                            pictures: vec![picture.bytes],
                            ..Ran::new(ItemStatus::Completed, body, output)
                        }
                    }
                    Err(error) => failed(body, &error.to_string()),
                };
            }
            What::Write(_) | What::Edit(_) | What::Patch(_) => Ok(String::new()),
        };
        match said {
            Ok(text) => Ran::new(ItemStatus::Completed, body, Output::text(text)),
            Err(error) => failed(body, &error.to_string()),
        }
    }

    fn write(&self, inner: &Inner, job: &Job, body: ItemBody) -> Ran {
        let roots = match self.roots(&job.settings, &inner.own) {
            Ok(roots) => roots,
            Err(why) => return failed(body, &why),
        };
        let planned = match self.plan(&roots) {
            Ok(planned) => planned,
            Err(why) => return failed(body, &why),
        };
        let act = write(&planned, &job.settings);
        if !job.may(&act.kind, || act.digest.clone()) {
            return failed(
                body,
                "Nothing was written: what would change is no longer what was allowed. Look again, and call again.",
            );
        }
        match planned.apply(&roots) {
            Ok(applied) => {
                let changes = applied.changes;
                let body = ItemBody::Patch(Patch { changes });
                let diff = inner.diffs.changed(job, &planned);
                Ran {
                    diff: Some(diff),
                    ..Ran::new(ItemStatus::Completed, body, Output::text(applied.summary))
                }
            }
            Err(error) => failed(body, &error.to_string()),
        }
    }
}

/// The act of reading what a path leads to: rules are about that, whatever it is called.
fn read(roots: &Roots, path: &str, settings: &Settings) -> Result<(Act, Spot), String> {
    let spot = roots.spot(Path::new(path), Last::Follow);
    let spot = spot.map_err(|error| error.to_string())?;
    let path = spot.plain.display().to_string();
    let whole = json!(["read", path, settings.sandbox]).to_string();
    let act = Act {
        digest: hex(&Sha256::digest(whole)),
        why: None,
        kind: ActKind::Read { path },
    };
    Ok((act, spot))
}

/// The act of writing what is planned. The same change in another sandbox is another act.
fn write(planned: &Planned, settings: &Settings) -> Act {
    let beyond = planned.is_beyond();
    let whole = json!(["write", planned.digest(), settings.sandbox, beyond]).to_string();
    Act {
        digest: hex(&Sha256::digest(whole)),
        why: None,
        kind: ActKind::Write {
            paths: planned.paths(),
            beyond,
        },
    }
}

/// The diff of a turn with this in it.
pub(crate) fn told(diff: &TurnDiff) -> String {
    let mut text = diff.text();
    if text.len() > DIFF_BYTES_MAX {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(DIFF_BYTES_MAX));
        text.push_str(&format!("\n… of {whole} bytes\n"));
    }
    text
}

pub(crate) fn base(job: &Job) -> &Path {
    Path::new(&job.settings.cwd)
}

fn failed(body: ItemBody, why: &str) -> Ran {
    Ran::new(ItemStatus::Failed, body, Output::failure(why))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Rules are about files, not about what they are called.
    #[test]
    fn a_read_is_judged_by_where_it_leads() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        let work = top.join("work");
        std::fs::create_dir_all(work.join("src")).expect("folders");
        std::fs::create_dir(top.join("private")).expect("a folder");
        std::fs::write(top.join("private/diary"), "x").expect("a file");
        symlink("../private", work.join("way")).expect("a link");
        let settings = Settings {
            cwd: work.display().to_string(),
            sandbox: raddle_core::Sandbox::default(),
            ..Settings::default()
        };
        let diary = top.join("private/diary").display().to_string();
        for path in [
            diary.as_str(),
            "../private/diary",
            "way/diary",
            "src/../way/../private/./diary",
        ] {
            let call = Call {
                id: "c1".to_owned(),
                tool: "read_file".to_owned(),
                arguments: json!({ "path": path }).to_string(),
                freeform: false,
                alone: false,
            };
            let it = OnFiles::of(&settings, &call).expect("a tool of ours");
            let (_, meant) = it.expect("arguments").meant(&settings, &[], "read_file");
            let Meant::Act(act) = meant else {
                panic!("{path}: {meant:?}");
            };
            let wanted = ActKind::Read {
                path: diary.clone(),
            };
            assert_eq!(act.kind, wanted, "{path}");
        }
    }

    /// What is read is what was judged, also if the path leads elsewhere by then.
    #[test]
    fn a_read_goes_where_it_was_judged_to_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its plain path");
        for (name, text) in [("open", "weft"), ("shut", "secret")] {
            std::fs::create_dir(top.join(name)).expect("a folder");
            std::fs::write(top.join(name).join("it"), text).expect("a file");
        }
        symlink("open", top.join("way")).expect("a link");
        let settings = Settings {
            cwd: top.display().to_string(),
            sandbox: raddle_core::Sandbox::FullAccess,
            ..Settings::default()
        };
        for (tool, path) in [
            ("read_file", "way/it"),
            ("list_files", "way"),
            ("search_files", "way"),
        ] {
            let call = Call {
                id: "c1".to_owned(),
                tool: tool.to_owned(),
                arguments: json!({ "path": path, "pattern": "." }).to_string(),
                freeform: false,
                alone: false,
            };
            let call = match tool {
                "read_file" => Call {
                    arguments: json!({ "path": path }).to_string(),
                    ..call
                },
                _ => call,
            };
            let it = OnFiles::of(&settings, &call).expect("a tool of ours");
            let it = it.expect("arguments");
            let roots = it.roots(&settings, &[]).expect("roots");
            let (_, spot) = read(&roots, path, &settings).expect("an act");
            std::fs::remove_file(top.join("way")).expect("no link");
            symlink("shut", top.join("way")).expect("another link");
            let name = tool.to_owned();
            let ran = it.read(&roots, &spot, ItemBody::Tool(Tool { name }));
            let said = format!("{:?}", ran.output);
            assert!(
                !said.contains("secret") && !said.contains("shut"),
                "{tool}: {said}"
            );
            std::fs::remove_file(top.join("way")).expect("no link");
            symlink("open", top.join("way")).expect("the link");
        }
    }
}
