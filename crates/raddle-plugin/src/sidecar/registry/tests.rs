use std::fs;

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;

use super::*;

const MANIFEST: &str = "id = 'org.example'\nversion = '1'\nentrypoint = ['x']\n";

/// A folder with a trusted plugin, and its entry in the configuration.
fn installed() -> (TempDir, InstalledPlugin) {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("plugin.toml"), MANIFEST).expect("a manifest");
    let plugin = InspectedPlugin::read(folder.path()).expect("a plugin");
    let installed = InstalledPlugin {
        id: "org.example".to_owned(),
        path: folder.path().to_owned(),
        enabled: true,
        trusted_hash: Some(plugin.hash.text),
        is_managed: false,
    };
    (folder, installed)
}

/// Returns why a plugin does not run; `None` if it is trusted.
fn reason(read: &ReadPlugin) -> Option<String> {
    match read {
        ReadPlugin::Unchanged => Some("unchanged".to_owned()),
        ReadPlugin::Changed { plugin, .. } => plugin.as_ref().err().map(|it| it.text.clone()),
    }
}

#[test]
fn a_pipe_in_the_folder_of_a_plugin_does_not_block_its_reader() {
    let (folder, installed) = installed();
    assert_eq!(
        reason(&read_plugin(&installed, None, &[], Instant::now())),
        None
    );
    let manifest = folder.path().join("plugin.toml");
    fs::remove_file(&manifest).expect("a file");
    mkfifoat(CWD, &manifest, Mode::RWXU).expect("a pipe");
    let reason = reason(&read_plugin(&installed, None, &[], Instant::now())).expect("a reason");
    assert!(
        reason.contains("is no ordinary file; remove it"),
        "{reason}"
    );
}

#[test]
fn a_plugin_that_does_not_run_is_read_again_after_a_pause() {
    let (folder, installed) = installed();
    let main = folder.path().join("main.py");
    fs::write(&main, "").expect("a file");
    let now = Instant::now();
    let ReadPlugin::Changed { stamp, plugin, .. } = read_plugin(&installed, None, &[], now) else {
        panic!("it is read");
    };
    let loaded = LoadedPlugin {
        installed: installed.clone(),
        stamp,
        read_at: now,
        hooks: Vec::new(),
        taken: None,
        instance: Err(plugin.expect_err("its files have changed")),
    };
    fs::remove_file(&main).expect("a file");
    let again =
        |installed: &InstalledPlugin, now| reason(&read_plugin(installed, Some(&loaded), &[], now));
    assert_eq!(again(&installed, now).as_deref(), Some("unchanged"));
    assert_eq!(again(&installed, now + RETRY_PAUSE), None);
    // The user trusts other files meanwhile.
    let trusted = InstalledPlugin {
        trusted_hash: None,
        ..installed
    };
    let reason = again(&trusted, now).expect("a reason");
    assert!(reason.contains("it is not trusted"), "{reason}");
}

/// Clients are warned of a trusted plugin that does not run.
#[test]
fn a_trusted_plugin_that_does_not_run_is_a_lasting_failure() {
    let (folder, trusted) = installed();
    let untrusted = InstalledPlugin {
        trusted_hash: None,
        ..trusted.clone()
    };
    let is_lasting = |installed: &InstalledPlugin, taken: &[String]| match read_plugin(
        installed,
        None,
        taken,
        Instant::now(),
    ) {
        ReadPlugin::Changed { plugin, .. } => plugin.err().map(|it| it.is_lasting),
        ReadPlugin::Unchanged => panic!("it is read"),
    };
    assert_eq!(is_lasting(&trusted, &[]), None);
    assert_eq!(is_lasting(&untrusted, &[]), Some(false));
    let manifest = folder.path().join("plugin.toml");
    for changed in ["# other files\n", "id = 'org.other'\n", "id = 7\n"] {
        let text = MANIFEST.replace("id = 'org.example'\n", "");
        let id = if changed.starts_with("id") {
            ""
        } else {
            "id = 'org.example'\n"
        };
        fs::write(&manifest, format!("{id}{changed}{text}")).expect("a manifest");
        assert_eq!(is_lasting(&trusted, &[]), Some(true), "{changed}");
        assert_eq!(is_lasting(&untrusted, &[]), Some(false), "{changed}");
    }
    let server = "[contributions.mcp_servers.a]\ncommand = 'x'\n";
    fs::write(&manifest, format!("{MANIFEST}{server}")).expect("a manifest");
    let plugin = InspectedPlugin::read(folder.path()).expect("a plugin");
    let taken = plugin.manifest.mcp_servers.iter().map(|it| it.name.clone());
    let taken: Vec<String> = taken.collect();
    let trusted = InstalledPlugin {
        trusted_hash: Some(plugin.hash.text),
        ..trusted
    };
    assert_eq!(is_lasting(&trusted, &[]), None);
    assert_eq!(is_lasting(&trusted, &taken), Some(true));
    // The disk may be back soon.
    drop(folder);
    assert_eq!(is_lasting(&trusted, &[]), Some(false));
}
