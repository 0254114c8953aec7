use std::os::unix::fs::{PermissionsExt, symlink};

use raddle_core::ChangeKind;
use raddle_core::policy::PathPattern;
use raddle_sandbox::Tmp;
use raddle_tools::files::{
    ApplyError, EditFile, ListFiles, ReadFile, SearchFiles, ViewImage, WriteFile,
};
use raddle_tools::patch;
use serde_json::{Value, json};

use crate::support::TestWorkspace;

/// Creates a workspace with files of all kinds.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new();
    world.write("a.txt", "one\ntwo\nthree\n");
    world.write("dos.txt", "one\r\ntwo\r\n");
    world.write("data.bin", b"one\0two\n");
    world.write("latin.txt", b"gr\xfcn\n");
    world.write("empty.txt", "");
    world.write("src/main.rs", "fn main() {\n    greet();\n}\n");
    world.write("src/deep/lib.rs", "pub fn greet() {}\n");
    world.write("target/out.rs", "fn greet() {}\n");
    world.write(".gitignore", "target/\n*.log\n!keep.log\n");
    world.write("x.log", "greet\n");
    world.write("keep.log", "greet\n");
    world.write("src/.gitignore", "/deep/*.tmp\n");
    world.write("src/deep/a.tmp", "greet\n");
    world.write(".git/config", "greet\n");
    world
}

/// Runs a tool on cases: arguments, and the expected text, or words of the error after `!`.
fn check(tool: &str, cases: &[(Value, &str)]) {
    let world = world();
    let roots = world.roots();
    for (arguments, expected) in cases {
        let result = match tool {
            "read_file" => args::<ReadFile>(arguments).run(&roots),
            "list_files" => args::<ListFiles>(arguments).run(&roots),
            "search_files" => args::<SearchFiles>(arguments).run(&roots),
            _ => panic!("no tool"),
        };
        match (result, expected.strip_prefix('!')) {
            (Ok(text), None) => assert_eq!(text, *expected, "{arguments}"),
            (Err(error), Some(words)) => {
                let error = error.to_string();
                assert!(error.contains(words), "{arguments}: {error}");
            }
            (Ok(text), Some(_)) => panic!("{arguments}: {text}"),
            (Err(error), None) => panic!("{arguments}: {error}"),
        }
    }
}

fn args<T: serde::de::DeserializeOwned>(arguments: &Value) -> T {
    serde_json::from_value(arguments.clone()).expect("arguments")
}

#[test]
fn reading() {
    check(
        "read_file",
        &[
            (json!({"path": "a.txt"}), "one\ntwo\nthree\n"),
            (json!({"path": "a.txt", "offset": 2}), "two\nthree\n"),
            (
                json!({"path": "a.txt", "offset": 2, "limit": 1}),
                "two\n[more follows; go on with offset 3]\n",
            ),
            (
                json!({"path": "a.txt", "offset": 3, "numbers": true}),
                "     3\tthree\n",
            ),
            (json!({"path": "a.txt", "offset": 4}), "!has only 3 lines"),
            (json!({"path": "empty.txt"}), "[the file is empty]\n"),
            (
                json!({"path": "dos.txt", "limit": 1, "offset": 2}),
                "two\r\n",
            ),
            (json!({"path": "latin.txt"}), "gr\u{fffd}n\n"),
            (json!({"path": "data.bin"}), "!is binary"),
            (json!({"path": "nowhere"}), "!does not exist"),
        ],
    );
}

#[test]
fn long_files_are_truncated_with_the_next_offset() {
    let world = TestWorkspace::new();
    world.write("lines", "x\n".repeat(2_001));
    world.write("bytes", format!("{}\n", "y".repeat(999)).repeat(60));
    world.write("line", format!("{}\nend\n", "z".repeat(5_000)));
    let read = |path: &str| {
        let read = args::<ReadFile>(&json!({"path": path}));
        read.run(&world.roots()).expect("text")
    };
    assert!(read("lines").ends_with("x\n[more follows; go on with offset 2001]\n"));
    assert!(read("bytes").ends_with("y\n[more follows; go on with offset 51]\n"));
    assert!(read("line").ends_with("z [… of 5001 bytes]\nend\n"));
}

#[test]
fn listing() {
    check(
        "list_files",
        &[
            (
                json!({"depth": 1}),
                ".gitignore\na.txt\ndata.bin\ndos.txt\nempty.txt\nkeep.log\nlatin.txt\nsrc/\n",
            ),
            (
                json!({"path": "src", "depth": 2}),
                "src/.gitignore\nsrc/deep/\nsrc/main.rs\nsrc/deep/lib.rs\n",
            ),
            (json!({"pattern": "*.rs"}), "src/main.rs\nsrc/deep/lib.rs\n"),
            (json!({"pattern": "src/*.rs"}), "src/main.rs\n"),
            (json!({"pattern": "*.zig"}), "[nothing]\n"),
            (json!({"pattern": "a{"}), "!is no glob"),
            (json!({"path": "a.txt"}), "!is not a folder"),
            (json!({"path": "nowhere"}), "!does not exist"),
        ],
    );
}

#[test]
fn searching() {
    check(
        "search_files",
        &[
            (
                json!({"pattern": "greet"}),
                "keep.log:1:greet\nsrc/main.rs:2:    greet();\nsrc/deep/lib.rs:1:pub fn greet() {}\n",
            ),
            (
                json!({"pattern": r"^pub\s+fn", "path": "src"}),
                "src/deep/lib.rs:1:pub fn greet() {}\n",
            ),
            (
                json!({"pattern": "GREET", "glob": "main.*", "ignore_case": true}),
                "src/main.rs:2:    greet();\n",
            ),
            (json!({"pattern": "one$", "path": "a.txt"}), "a.txt:1:one\n"),
            (
                json!({"pattern": "greet", "max": 1}),
                "keep.log:1:greet\n[there may be more; search a deeper folder, or for something rarer]\n",
            ),
            (json!({"pattern": "zebra"}), "[no line matches]\n"),
            (
                json!({"pattern": "two", "path": "data.bin"}),
                "[no line matches]\n",
            ),
            (json!({"pattern": "("}), "!no usable regular expression"),
            (
                json!({"pattern": "a", "path": "nowhere"}),
                "!does not exist",
            ),
        ],
    );
}

/// Pipes, links and hidden folders in a tree are skipped.
#[test]
fn a_hostile_tree_does_not_block() {
    let world = TestWorkspace::new();
    world.write("a.txt", "needle\n");
    world.write("secret/key", "needle\n");
    world.write("x/b.txt", "needle\n");
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, world.work.join(name), mode).expect("a pipe");
    };
    pipe("pipe");
    pipe("x/.gitignore");
    symlink("/dev/zero", world.work.join(".ignore")).expect("a link");
    symlink("..", world.work.join("x/up")).expect("a link");
    let roots = world.roots_with(|rules| rules.hidden = vec![world.work.join("secret")]);
    let search = args::<SearchFiles>(&json!({"pattern": "needle"}));
    let matches = search.run(&roots).expect("matches");
    assert_eq!(matches, "a.txt:1:needle\nx/b.txt:1:needle\n");
}

/// Ignore rules that cost too much to parse ignore nothing, and the others count.
#[test]
fn a_hostile_ignore_file_does_not_stop_a_walk() {
    let world = TestWorkspace::new();
    let nested = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
    world.write(".gitignore", format!("*.log\n{nested}\n*.tmp\n"));
    for name in ["a.txt", "b.log", "c.tmp"] {
        world.write(name, "needle\n");
    }
    let result = args::<ListFiles>(&json!({})).run(&world.roots());
    assert_eq!(result.expect("a list"), ".gitignore\na.txt\n");
    let result = args::<SearchFiles>(&json!({"pattern": "needle"})).run(&world.roots());
    assert_eq!(result.expect("matches"), "a.txt:1:needle\n");
}

/// A walk never shows paths that rules close, wherever it begins and by whatever path it gets
/// there.
#[test]
fn a_walk_skips_closed_paths() {
    let world = TestWorkspace::new();
    world.write("a.txt", "needle\n");
    world.write("private/key", "needle\n");
    world.write("private/deep/key", "needle\n");
    world.write("x/.env", "needle\n");
    world.write("x/b.txt", "needle\n");
    symlink("private", world.work.join("way")).expect("a link");
    symlink("../private/key", world.work.join("x/key")).expect("a link");
    let work = world.work.canonicalize().expect("its plain path");
    let closed = [format!("{}/private", work.display()), "**/.env".to_owned()];
    let closed: Vec<PathPattern> = closed
        .iter()
        .map(|it| PathPattern::parse(it).expect("a pattern"))
        .collect();
    let roots = world.roots().without(closed);
    let search = args::<SearchFiles>(&json!({"pattern": "needle"}));
    let matches = search.run(&roots).expect("matches");
    assert_eq!(matches, "a.txt:1:needle\nx/b.txt:1:needle\n");
    let list = args::<ListFiles>(&json!({"depth": 9}));
    let entries = list.run(&roots).expect("a list");
    assert_eq!(entries, "a.txt\nway\nx/\nx/b.txt\nx/key\n");
}

/// Where commands have their own `/tmp`, files of the other one are not visible.
#[test]
fn the_shared_tmp_is_hidden() {
    let world = TestWorkspace::new();
    let file = tempfile::NamedTempFile::new_in("/tmp").expect("a file");
    let path = file.path().display().to_string();
    let read = args::<ReadFile>(&json!({ "path": path }));
    for (tmp, is_visible) in [
        (Tmp::Plain, true),
        (Tmp::Private, false),
        (Tmp::Folder(world.folder.path().to_owned()), false),
    ] {
        let roots = world.roots_with(|rules| rules.tmp = tmp.clone());
        assert_eq!(read.run(&roots).is_ok(), is_visible, "{tmp:?}");
    }
}

#[test]
fn writing_and_editing() {
    let world = world();
    let roots = world.roots();
    let path = world.work.join("a.txt");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).expect("a mode");
    symlink("a.txt", world.work.join("link")).expect("a link");
    let edit = |arguments: Value| {
        let planned = args::<EditFile>(&arguments).plan(&roots);
        planned.map(|it| it.apply(&roots).expect("it is written"))
    };
    edit(json!({"path": "link", "old": "two\n", "new": "2\n"})).expect("an edit");
    assert_eq!(world.read("a.txt"), "one\n2\nthree\n");
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o750, "who may do what with it changed");
    let link = std::fs::symlink_metadata(world.work.join("link")).expect("a link");
    assert!(link.is_symlink(), "the link was replaced");

    edit(json!({"path": "dos.txt", "old": "one\ntwo\n", "new": "1\n2\n"})).expect("an edit");
    assert_eq!(world.read("dos.txt"), "1\r\n2\r\n");
    edit(json!({"path": "a.txt", "old": "e", "new": "E", "all": true})).expect("an edit");
    assert_eq!(world.read("a.txt"), "onE\n2\nthrEE\n");

    let refused = [
        (
            json!({"path": "a.txt", "old": "E", "new": ""}),
            "stands 3 times",
        ),
        (
            json!({"path": "a.txt", "old": "zebra", "new": ""}),
            "is not in",
        ),
        (
            json!({"path": "a.txt", "old": "", "new": "x"}),
            "use write_file",
        ),
        (
            json!({"path": "data.bin", "old": "one", "new": "x"}),
            "is binary",
        ),
        (
            json!({"path": "nowhere", "old": "one", "new": "x"}),
            "does not exist",
        ),
        (
            json!({"path": ".git/config", "old": "g", "new": "x"}),
            "is protected",
        ),
    ];
    for (arguments, words) in refused {
        let error = edit(arguments.clone()).expect_err("a refusal").to_string();
        assert!(error.contains(words), "{arguments}: {error}");
    }
    let write = args::<WriteFile>(&json!({"path": "new/deep/a.txt", "content": "one"}));
    let applied = write.plan(&roots).expect("a plan").apply(&roots);
    let changes = applied.expect("it is written").changes;
    assert_eq!(changes[0].diff, "one");
    assert_eq!(world.read("new/deep/a.txt"), "one");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).expect("a mode");
    let error = edit(json!({"path": "a.txt", "old": "2", "new": "x"})).expect_err("read-only");
    assert!(error.to_string().contains("is read-only"));
}

/// A client that approves a change sees every changed line, even of binary files.
#[test]
fn every_change_is_shown_in_full_or_marked_as_truncated() {
    let world = world();
    let top = world.folder.path();
    std::fs::write(top.join("nul"), "a\n\0b\n").expect("a file");
    std::fs::write(top.join("rc"), "a\nb\n").expect("a file");
    std::fs::write(top.join("escape"), "\\x00\n").expect("a file");
    let rename = "*** Begin Patch\n*** Update File: latin.txt\n*** Move to: ../rc\n*** End Patch\n";
    let copy = "*** Begin Patch\n*** Update File: latin.txt\n*** Move to: ../new\n*** Add File: latin.txt\n+x\n*** End Patch\n";
    let moved = "*** Begin Patch\n*** Update File: latin.txt\n*** Move to: ../new\n*** End Patch\n";
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    let roots = world.roots();
    // Arguments of the tool, and the diff of the file outside; `…` if it is truncated.
    for (arguments, expected) in [
        (
            write("../rc", "a\nb\nevil # \0\n"),
            "@@ -1,2 +1,3 @@\n a\n b\n+evil # \\x00\n",
        ),
        (
            write("../nul", "a\n\0c\n"),
            "@@ -0,0 +1,2 @@\n+a\n+\\x00c\n",
        ),
        (write("../nul", ""), "(binary, 5 bytes)\n"),
        (write("../nul", "a\n"), "@@ -0,0 +1 @@\n+a\n"),
        (write("../escape", "\0\n"), "@@ -1 +1 @@\n-\\x00\n+\\x00\n"),
        (write("../new", "evil\0"), "evil\\x00"),
        (json!(rename), "…"),
        (json!(copy), "…"),
        (json!(moved), ""),
    ] {
        let planned = match arguments.as_str() {
            Some(text) => patch::plan(&roots, text).expect("a plan"),
            None => args::<WriteFile>(&arguments).plan(&roots).expect("a plan"),
        };
        assert!(planned.is_beyond(), "{arguments}");
        let changes = planned.changes();
        let is_beyond = |path: &str| !path.starts_with(world.work.to_str().expect("text"));
        let change = changes.iter().find(|it| match &it.kind {
            ChangeKind::Update { moved_to: Some(to) } => is_beyond(to),
            _ => is_beyond(&it.path),
        });
        let change = change.expect("a change beyond");
        match expected {
            "…" => assert!(change.is_cut(), "{arguments}: {change:?}"),
            _ => assert_eq!(change.diff, expected, "{arguments}"),
        }
    }
}

/// The result of an edit is measured before it is built.
#[test]
fn an_edit_respects_the_maximum_file_size() {
    let world = world();
    world.write("many", "a".repeat(1 << 10));
    let edit = |bytes: usize| {
        let new = "b".repeat(bytes);
        let edit = json!({"path": "many", "old": "a", "new": new, "all": true});
        let planned = args::<EditFile>(&edit).plan(&world.roots());
        planned.map(|it| it.files[0].now.as_ref().map_or(0, |it| it.bytes.len()))
    };
    assert_eq!(edit(16 << 10).expect("a plan"), 16 << 20);
    let error = edit((16 << 10) + 1).expect_err("too large").to_string();
    assert!(error.contains("has 16778240 bytes, more than"), "{error}");
    let write = json!({"path": "new", "content": "b".repeat((16 << 20) + 1)});
    let error = args::<WriteFile>(&write)
        .plan(&world.roots())
        .expect_err("too large");
    assert!(error.to_string().contains("more than"), "{error}");
}

/// Another writer changes a file between the plan and the write.
#[test]
fn concurrent_changes_are_not_overwritten() {
    type Interference = fn(&TestWorkspace);
    let cases: [(&str, Interference); 6] = [
        ("another text", |it| it.write("b.txt", "theirs\n")),
        ("gone", |it| {
            std::fs::remove_file(it.work.join("b.txt")).expect("gone")
        }),
        ("there already", |it| it.write("new/c.txt", "theirs\n")),
        ("a link", |it| {
            std::fs::remove_file(it.work.join("b.txt")).expect("gone");
            symlink("a.txt", it.work.join("b.txt")).expect("a link");
        }),
        ("a folder", |it| {
            std::fs::remove_file(it.work.join("d.txt")).expect("gone");
            it.write("d.txt/x", "theirs\n");
        }),
        ("removed, but changed", |it| it.write("d.txt", "theirs\n")),
    ];
    for (name, interfere) in cases {
        for is_older in [false, true] {
            let world = TestWorkspace::new();
            world.write("a.txt", "one\n");
            world.write("b.txt", "two\n");
            world.write("d.txt", "four\n");
            let roots = match is_older {
                true => world.roots().on_an_older_kernel(),
                false => world.roots(),
            };
            let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: b.txt\n-two\n+2\n*** Add File: new/c.txt\n+3\n*** Delete File: d.txt\n*** End Patch";
            let planned = patch::plan(&roots, text).expect("a plan");
            interfere(&world);
            let before = world.files();
            let error = planned.apply(&roots).expect_err(name);
            assert!(matches!(error, ApplyError::Changed(_)), "{name}: {error}");
            assert!(
                error.to_string().ends_with("read it again"),
                "{name}: {error}"
            );
            assert_eq!(world.files(), before, "{name}: something was written");
        }
    }
}

/// If the disk rejects one file, none is written.
#[test]
fn a_failure_half_way_is_undone() {
    for is_older in [false, true] {
        let world = TestWorkspace::new();
        world.write("a.txt", "one\n");
        world.write("x", "two\n");
        let roots = match is_older {
            true => world.roots().on_an_older_kernel(),
            false => world.roots(),
        };
        let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Add File: new/b.txt\n+2\n*** Add File: y/z\n+3\n*** End Patch";
        let planned = patch::plan(&roots, text).expect("a plan");
        std::fs::rename(world.work.join("x"), world.work.join("y")).expect("a file in the way");
        let before = world.files();
        let error = planned.apply(&roots).expect_err("it fails").to_string();
        assert!(error.starts_with("nothing was written"), "{error}");
        assert_eq!(world.files(), before);
    }
}

/// The digest covers exactly one plan.
#[test]
fn a_digest_identifies_one_plan() {
    let world = world();
    let roots = world.roots();
    let digest = |path: &str, content: &str| {
        let write = args::<WriteFile>(&json!({"path": path, "content": content}));
        write.plan(&roots).expect("a plan").digest()
    };
    let first = digest("a.txt", "x");
    assert_eq!(first.len(), 64);
    assert_eq!(first, digest("./a.txt", "x"), "the same by another name");
    let mut others = vec![
        digest("a.txt", "y"),
        digest("b.txt", "x"),
        digest("new", "x"),
    ];
    world.write("a.txt", "another base\n");
    others.push(digest("a.txt", "x"));
    assert!(!others.contains(&first));
}

#[test]
fn images_are_measured_without_decoding() {
    let png = |width: u32, height: u32| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    };
    let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x02\0\x03".to_vec();
    let gif = b"GIF89a\x03\0\x02\0".to_vec();
    let webp = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0".to_vec();
    let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x02\x40\0\0".to_vec();
    let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x03\0\x02\0".to_vec();
    let cases: [(&str, Vec<u8>, Result<&str, &str>); 12] = [
        ("png", png(3, 2), Ok("image/png")),
        ("jpeg", jpeg, Ok("image/jpeg")),
        ("gif", gif, Ok("image/gif")),
        ("webp", webp, Ok("image/webp")),
        ("lossless", lossless, Ok("image/webp")),
        ("lossy", lossy, Ok("image/webp")),
        ("bomb", png(60_000, 60_000), Err("60000×60000 pixels")),
        ("wide", png(20_000, 1), Err("20000×1 pixels")),
        ("nothing", png(0, 5), Err("0×5 pixels")),
        ("cut", b"\x89PNG\r\n\x1a\n".to_vec(), Err("is no PNG")),
        ("text", b"hello".to_vec(), Err("is no PNG")),
        (
            "large",
            vec![0; (8 << 20) + 1],
            Err("more than the 8388608"),
        ),
    ];
    let world = TestWorkspace::new();
    for (name, bytes, expected) in cases {
        world.write(name, &bytes);
        let view = args::<ViewImage>(&json!({"path": name}));
        match (view.run(&world.roots()), expected) {
            (Ok(picture), Ok(media_type)) => {
                assert_eq!(picture.media_type, media_type, "{name}");
                assert_eq!((picture.width, picture.height), (3, 2), "{name}");
                assert_eq!(picture.bytes, bytes, "{name}");
            }
            (Err(error), Err(words)) => {
                assert!(error.to_string().contains(words), "{name}: {error}");
            }
            (result, _) => panic!("{name}: {result:?}"),
        }
    }
}

/// A schema rejects unknown properties, and so do the arguments.
#[test]
fn schemas_reject_unknown_properties() {
    for spec in [
        ReadFile::spec(),
        ListFiles::spec(),
        SearchFiles::spec(),
        ViewImage::spec(),
        WriteFile::spec(),
        EditFile::spec(),
        patch::spec(),
    ] {
        assert_eq!(
            spec.schema["additionalProperties"],
            json!(false),
            "{}",
            spec.name
        );
        let properties = spec.schema["properties"].as_object().expect("properties");
        assert!(!properties.is_empty(), "{}", spec.name);
    }
    let odd = json!({"path": "a", "mode": 7});
    assert!(serde_json::from_value::<ReadFile>(odd).is_err());
}
