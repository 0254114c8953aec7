//! Tests of the server through the in-memory connection, from a client's view.
//!
//! Each method has its own file, named like it. It plays the conversation from `conformance/` and
//! adds cases that a conversation cannot express. Tests of no single method come first.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod checkpoints;
mod client;
mod copies;
mod deep_folder;
/// This program as the keeper of commands.
#[path = "../../../raddle-sandbox/tests/it/keeper.rs"]
mod keeper;
mod player;
mod script;

mod bounds;
mod client_tools;
mod closed_paths;
mod connection;
mod disk;
mod folder_trust;
mod frames;
mod gate;
mod idempotency;
mod images;
mod lanes;
mod offered_skills;
mod overload;
mod rejoin;
mod relay;
mod requests;
mod slow_reader;
mod status_pages;

mod initialize;

mod account {
    mod login {
        mod cancel;
        mod start;
    }
    mod logout;
    mod rate_limits {
        mod read;
    }
    mod read;
}
mod app {
    mod list;
}
mod collaboration_mode {
    mod list;
}
mod experimental_feature {
    mod list;
}
mod hooks {
    mod list;
}
mod mcp_server {
    mod oauth {
        mod login;
    }
    mod resource {
        mod read;
    }
    mod tool {
        mod call;
    }
}
mod mcp_server_status {
    mod list;
}
mod model {
    mod list;
}
mod model_provider {
    mod capabilities {
        mod read;
    }
}
mod plugin {
    mod call;
    mod installed;
    mod list;
    mod read;
    mod uninstall;
}
mod server {
    mod diagnostics;
}
mod thread_section {
    mod list;
}
mod thread {
    mod items {
        mod list;
        mod read;
    }
    mod list;
    mod loaded {
        mod list;
    }
    mod read;
    mod search;
    mod turns {
        mod list;
    }
    mod archive;
    mod background_terminals {
        mod clean;
        mod list;
        mod terminate;
    }
    mod checkpoint {
        mod list;
        mod preview;
        mod restore;
    }
    mod compact {
        mod start;
    }
    mod delete;
    mod diff {
        mod read;
    }
    mod fork;
    mod goal {
        mod clear;
        mod get;
        mod set;
    }
    mod inject_items;
    mod metadata {
        mod update;
    }
    mod name {
        mod set;
    }
    mod queue {
        mod add;
        mod delete;
        mod list;
        mod reorder;
        mod start;
        mod update;
    }
    mod resume;
    mod revert;
    mod rollback;
    mod settings {
        mod update;
    }
    mod shell_command;
    mod start;
    mod unarchive;
    mod unsubscribe;
    mod workspace {
        mod apply;
        mod read;
    }
}
mod turn {
    mod diff {
        mod read;
    }
    mod interrupt;
    mod settings {
        mod update;
    }
    mod start;
    mod steer;
}
mod review {
    mod start;
}
mod command {
    mod exec;
}
mod config {
    mod batch_write;
    mod mcp_server {
        mod reload;
    }
    mod read;
    mod value {
        mod write;
    }
}
mod config_requirements {
    mod read;
}
mod permission_profile {
    mod list;
}
mod skills {
    mod config {
        mod write;
    }
    mod extra_roots {
        mod set;
    }
    mod list;
}
mod fs {
    mod copy;
    mod create_directory;
    mod get_metadata;
    mod read_directory;
    mod read_file;
    mod remove;
    mod unwatch;
    mod watch;
    mod write_file;
}
mod process {
    mod kill;
    mod resize_pty;
    mod spawn;
    mod write_stdin;
}
mod fuzzy_file_search;
