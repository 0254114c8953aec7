use raddle_core::{ChangeKind, HunkDecision, ProposedHunk, hunk_path, proposed_hunks};
use raddle_tools::files::{ChangePlan, SelectionError};
use raddle_tools::patch::plan;
use raddle_workspace::{DiffLimits, FileChange, ProposedFile, WorkspacePath};

use crate::support::TestWorkspace;
use crate::unified::apply_unified;

/// Decision on each hunk, in order: `+` accepts, `-` drops, `=TEXT` accepts with other lines.
fn decisions(hunks: &[ProposedHunk], marks: &[&str]) -> Vec<HunkDecision> {
    let marked = hunks.iter().zip(marks);
    let decisions = marked.map(|(hunk, mark)| HunkDecision {
        id: hunk.id.clone(),
        accept: *mark != "-",
        comment: None,
        replacement: mark.strip_prefix('=').map(str::to_owned),
    });
    decisions.collect()
}

/// Lines of a file, of which each number is one.
fn numbers(changed: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let change = changed.iter().find(|(it, _)| *it == number);
        change.map_or_else(|| format!("{number}\n"), |(_, text)| (*text).to_owned())
    };
    (1..=40).map(line).collect()
}

const PATCH: &str = "*** Begin Patch\n\
    *** Update File: a\n@@\n-5\n+five\n@@\n-20\n+twenty\n+more\n@@\n-35\n\
    *** Update File: b\n*** Move to: moved\n@@\n-5\n+five\n@@\n-30\n+thirty\n\
    *** Add File: new\n+x\n+y\n\
    *** Delete File: old\n\
    *** End Patch\n";

fn world() -> TestWorkspace {
    let world = TestWorkspace::new();
    world.write("a", numbers(&[]));
    world.write("b", numbers(&[]));
    world.write("old", "z\n");
    world
}

#[test]
fn only_accepted_hunks_are_applied() {
    let a = |changed: &[(usize, &str)]| ("a", numbers(changed));
    let (five, twenty, no_35) = ((5, "five\n"), (20, "twenty\nmore\n"), (35, ""));
    let old = || ("old", "z\n".to_owned());
    let new = || ("new", "x\ny\n".to_owned());
    let b = || ("b", numbers(&[]));
    let all_moved = || ("moved", numbers(&[five, (30, "thirty\n")]));
    for (marks, expected) in [
        // The hunks: three of `a`, two of `b`, then `new` and `old`.
        (
            ["+"; 7],
            vec![a(&[five, twenty, no_35]), all_moved(), new()],
        ),
        (
            ["+", "-", "-", "-", "-", "-", "-"],
            vec![a(&[five]), b(), old()],
        ),
        (
            ["-", "+", "+", "-", "-", "+", "-"],
            vec![a(&[twenty, no_35]), b(), new(), old()],
        ),
        (["-", "-", "-", "-", "-", "-", "+"], vec![a(&[]), b()]),
        // A file with an accepted hunk is moved.
        (
            ["-", "-", "-", "-", "+", "-", "-"],
            vec![a(&[]), ("moved", numbers(&[(30, "thirty\n")])), old()],
        ),
        // Other lines, also without a line end, and none.
        (
            ["=V", "=", "+", "+", "=X\n", "=only", "-"],
            vec![
                a(&[(5, "V\n"), (20, ""), no_35]),
                ("moved", numbers(&[five, (30, "X\n")])),
                ("new", "only".to_owned()),
                old(),
            ],
        ),
    ] {
        let world = world();
        let roots = world.roots();
        let cwd = world.work.display().to_string();
        let planned = plan(&roots, PATCH).expect("a plan");
        let hunks = proposed_hunks(&cwd, &planned.changes());
        assert_eq!(hunks.len(), 7);
        let accepted = planned
            .accepted(&cwd, &planned.changes(), &decisions(&hunks, &marks))
            .expect("a part");
        let applied = accepted.plan.apply(&roots).expect("written");
        let files = world.files().into_iter();
        let files: Vec<_> = files
            .map(|(path, it)| (path, String::from_utf8_lossy(&it).into_owned()))
            .collect();
        let mut expected: Vec<_> = expected
            .into_iter()
            .map(|(path, it)| (path.to_owned(), it))
            .collect();
        expected.sort();
        assert_eq!(files, expected, "{marks:?}");
        // The item shows what was written, and no more.
        let of_a = applied.changes.iter().find(|it| it.path.ends_with("/a"));
        let written =
            of_a.map_or_else(|| numbers(&[]), |it| apply_unified(&numbers(&[]), &it.diff));
        assert_eq!(written, world.read("a"), "{marks:?}");
    }
}

#[test]
fn a_change_without_lines_is_one_hunk() {
    let world = TestWorkspace::new();
    world.write("a", "one\n");
    world.write("data", b"a\0b");
    let roots = world.roots();
    let cwd = world.work.display().to_string();
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Delete File: data\n*** End Patch\n";
    let planned = plan(&roots, text).expect("a plan");
    let hunks = proposed_hunks(&cwd, &planned.changes());
    let is_empty = |it: &ProposedHunk| it.before.is_empty() && it.after.is_empty();
    assert!(hunks.len() == 2 && hunks.iter().all(is_empty), "{hunks:?}");
    let accepted = planned
        .accepted(&cwd, &planned.changes(), &decisions(&hunks, &["-", "+"]))
        .expect("a part");
    accepted.plan.apply(&roots).expect("written");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn hunks_of_another_plan_are_refused() {
    let world = world();
    let roots = world.roots();
    let cwd = world.work.display().to_string();
    let planned = plan(&roots, PATCH).expect("a plan");
    let mut decisions = decisions(&proposed_hunks(&cwd, &planned.changes()), &["+"; 7]);
    decisions[3].id = "0".repeat(16);
    let refused = planned.accepted(&cwd, &planned.changes(), &decisions);
    assert!(
        matches!(refused, Err(SelectionError::OtherHunks)),
        "{refused:?}"
    );
}

/// A file has another name once the thread works in another folder that leads to it. What the user saw
/// counts, as long as the change is the same.
#[test]
fn hunks_are_those_that_were_shown_under_other_names() {
    let world = world();
    let roots = world.roots();
    let planned = plan(&roots, PATCH).expect("a plan");
    let (cwd, work) = ("/link", world.work.display().to_string());
    let renamed = |path: &str| path.replacen(&work, cwd, 1);
    let mut shown = planned.changes();
    for change in &mut shown {
        change.path = renamed(&change.path);
        if let ChangeKind::Update { moved_to: Some(to) } = &mut change.kind {
            *to = renamed(to);
        }
    }
    let marks = ["+", "-", "-", "-", "-", "-", "-"];
    let decisions = decisions(&proposed_hunks(cwd, &shown), &marks);
    let accepted = planned.accepted(cwd, &shown, &decisions).expect("a part");
    let report = accepted.report;
    assert!(report.contains("Not applied: /link/a @@ -20 "), "{report}");
    accepted.plan.apply(&roots).expect("written");
    assert_eq!(world.read("a"), numbers(&[(5, "five\n")]));

    let mut other = shown.clone();
    other[0].diff.push_str("@@ -40 +40 @@\n-40\n+forty\n");
    for other in [&other[..], &shown[..1], &[]] {
        let refused = planned.accepted(cwd, other, &decisions);
        assert!(
            matches!(refused, Err(SelectionError::OtherHunks)),
            "{refused:?}"
        );
    }
}

fn side<'a>(path: &'a WorkspacePath, text: &'a str) -> ProposedFile<'a> {
    ProposedFile {
        path,
        mode: 0o644,
        bytes: text.as_bytes(),
    }
}

/// Two files whose hunks look alike, of which one is outside of the folder.
#[test]
fn a_hunk_of_another_file_is_not_applied() {
    let world = TestWorkspace::new();
    let roots = world.roots();
    let cwd = world.work.display().to_string();
    let outside = world.work.join("other").display().to_string();
    let inside = outside.trim_start_matches('/');
    let text = format!(
        "*** Begin Patch\n*** Add File: {inside}\n+a\n*** Add File: {outside}\n+a\n*** End Patch\n"
    );
    let planned = plan(&roots, &text).expect("a plan");
    let hunks = proposed_hunks("/", &planned.changes());
    assert_eq!(hunks.len(), 2);
    let accepted = planned
        .accepted("/", &planned.changes(), &decisions(&hunks[..1], &["+"]))
        .expect("a part");
    assert_eq!(accepted.plan.files.len(), 1);
    let hunks = proposed_hunks(&cwd, &planned.changes());
    let accepted = planned
        .accepted(&cwd, &planned.changes(), &decisions(&hunks[..1], &["+"]))
        .expect("a part");
    accepted.plan.apply(&roots).expect("written");
    assert_eq!(world.files().into_keys().collect::<Vec<_>>(), [inside]);
}

/// A text with a zero byte is shown escaped, so none of its hunks is applied alone.
#[test]
fn parts_of_what_is_no_text_are_refused() {
    let world = TestWorkspace::new();
    world.write("f", numbers(&[]));
    let roots = world.roots();
    let cwd = world.work.display().to_string();
    let now = numbers(&[(5, "fi\0ve\n"), (30, "thirty\n")]);
    let write = serde_json::json!({ "path": "f", "content": now });
    let write: raddle_tools::files::WriteFile = serde_json::from_value(write).expect("arguments");
    let planned = write.plan(&roots).expect("a plan");
    let hunks = proposed_hunks(&cwd, &planned.changes());
    assert_eq!(hunks.len(), 2);
    for marks in [["+", "-"], ["-", "+"], ["+", "=x\n"]] {
        let refused = planned.accepted(&cwd, &planned.changes(), &decisions(&hunks, &marks));
        assert!(
            matches!(refused, Err(SelectionError::Indivisible(_))),
            "{refused:?}"
        );
    }
    let all = planned
        .accepted(&cwd, &planned.changes(), &decisions(&hunks, &["+", "+"]))
        .expect("all of it");
    all.plan.apply(&roots).expect("written");
    assert_eq!(world.read("f"), now);
}

/// Any choice of hunks of random changes leads to what a simple patcher makes of the same sections,
/// and each hunk has the id that it has in the diff of the turn.
#[test]
fn choices_of_random_changes_match_a_simple_patcher() {
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for round in 0..300 {
        let kinds = 2 + random(40);
        let mut lines: Vec<String> = (0..random(60))
            .map(|_| format!("{}\n", random(kinds)))
            .collect();
        let base = lines.concat();
        for _ in 0..=random(5) {
            let at = random(lines.len() as u64 + 1) as usize;
            match random(3) {
                0 => lines.insert(at, format!("new {}\n", random(3))),
                _ if at == lines.len() => {}
                1 => drop(lines.remove(at)),
                _ => lines[at] = "other\n".to_owned(),
            }
        }
        let mut now = lines.concat();
        if random(4) == 0 {
            now.truncate(now.trim_end().len());
        }
        if base == now || base.is_empty() || now.is_empty() {
            continue;
        }
        let world = TestWorkspace::new();
        world.write("f", &base);
        let roots = world.roots();
        let cwd = world.work.display().to_string();
        let write = serde_json::json!({ "path": "f", "content": now });
        let write: raddle_tools::files::WriteFile =
            serde_json::from_value(write).expect("arguments");
        let planned: ChangePlan = write.plan(&roots).expect("a plan");
        let changes = planned.changes();
        let hunks = proposed_hunks(&cwd, &changes);

        let path = WorkspacePath::new(hunk_path(&cwd, &changes[0])).expect("a path");
        let of_diff = FileChange::proposed(
            Some(side(&path, &base)),
            Some(side(&path, &now)),
            &DiffLimits::default(),
        );
        let of_diff = of_diff.expect("a change");
        let ids: Vec<&str> = of_diff.hunks().iter().map(|it| it.id.as_str()).collect();
        assert_eq!(
            hunks.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(),
            ids,
            "{round}"
        );

        let sections: Vec<&str> = changes[0].diff.split_inclusive("\n@@ ").collect();
        let mut sections: Vec<String> = sections
            .iter()
            .map(|it| it.trim_end_matches("@@ ").to_owned())
            .collect();
        for section in sections.iter_mut().skip(1) {
            section.insert_str(0, "@@ ");
        }
        assert_eq!(sections.len(), hunks.len());
        let marks: Vec<&str> = hunks
            .iter()
            .map(|_| if random(2) == 0 { "+" } else { "-" })
            .collect();
        let accepted = planned
            .accepted(&cwd, &planned.changes(), &decisions(&hunks, &marks))
            .expect("a part");
        accepted.plan.apply(&roots).expect("written");
        let chosen = sections
            .iter()
            .zip(&marks)
            .filter(|(_, mark)| **mark == "+");
        let diff: String = chosen.map(|(section, _)| section.as_str()).collect();
        assert_eq!(world.read("f"), apply_unified(&base, &diff), "{round}");
        assert!(matches!(changes[0].kind, ChangeKind::Update { .. }));
    }
}
