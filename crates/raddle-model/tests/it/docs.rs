use std::path::Path;

use raddle_model::scripted::ModelScript;

use crate::support::Vendor;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mock.md");
    std::fs::read_to_string(path).expect("the page of the mock")
}

/// Returns the blocks of a page in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    let blocks = page.split(&opening).skip(1);
    blocks.filter_map(|it| it.split("```").next()).collect()
}

#[test]
fn the_scripts_of_its_page_can_be_played() {
    let page = page();
    let scripts = blocks(&page, "toml").into_iter();
    let scripts: Vec<_> = scripts.filter(|it| it.contains("[[answer]]")).collect();
    assert_eq!(scripts.len(), 1);
    for script in scripts {
        ModelScript::parse(script).expect(script);
    }
}

#[tokio::test(start_paused = true)]
async fn the_markers_of_its_page_are_understood() {
    let page = page();
    let markers: Vec<_> = blocks(&page, "text")
        .iter()
        .flat_map(|it| it.lines())
        .collect();
    assert_eq!(markers.len(), 4);
    let vendor = Vendor::in_memory("");
    for marker in markers {
        if let Err(error) = vendor.events(marker).await {
            let message = error.to_string();
            assert!(!message.contains("cannot be read"), "{marker}: {message}");
        }
    }
}

#[test]
fn its_page_names_every_fault_and_no_other() {
    let page = page();
    let (_, table) = page.split_once("| Fault |").expect("the table of faults");
    let (table, _) = table.split_once("\n\n").expect("the end of the table");
    let mut named: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let unknown = ModelScript::parse("[[answer]]\nsteps = [{ fault = 'unknown' }]");
    let error = unknown.expect_err("no such fault").to_string();
    let (_, all) = error.split_once("there are ").expect("all faults");
    let mut all: Vec<&str> = all.split(", ").collect();
    named.sort_unstable();
    all.sort_unstable();
    assert_eq!(named, all);
}
