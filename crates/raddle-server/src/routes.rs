//! The routes: one line per served method. A declared method without a line here is rejected like
//! an unknown one.

use raddle_protocol::table::Method;

use crate::gate::Admission;
use crate::handler::Handler;
use crate::handlers::*;

macro_rules! routes {
    ($( $name:literal => $($part:ident)::+, )+) => {
        /// Passes a request to the handler of its method.
        pub(crate) fn dispatch(method: &str, admission: Admission<'_>) {
            match method {
                $( $name => admission.run($($part)::+::handle), )+
                _ => admission.unknown(method),
            }
        }

        // A line whose handler serves another method does not compile.
        $( const _: () = assert!(
            is_same($name, name_of(&$($part)::+::handle)),
            concat!("the handler of ", $name, " serves another method"),
        ); )+
    };
}

/// Returns the name of the method that a handler serves.
const fn name_of<M: Method, Form, H: Handler<M, Form>>(_: &H) -> &'static str {
    M::NAME
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

routes! {
    "initialize" => initialize,
    "thread/start" => thread::start,
    "thread/list" => thread::list,
    "thread/loaded/list" => thread::loaded::list,
    "thread/read" => thread::read,
    "thread/turns/list" => thread::turns::list,
    "thread/items/list" => thread::items::list,
    "thread/items/read" => thread::items::read,
    "thread/search" => thread::search,
    "thread/resume" => thread::resume,
    "thread/fork" => thread::fork,
    "thread/revert" => thread::revert,
    "thread/rollback" => thread::rollback,
    "thread/backgroundTerminals/clean" => thread::background_terminals::clean,
    "thread/backgroundTerminals/list" => thread::background_terminals::list,
    "thread/backgroundTerminals/terminate" => thread::background_terminals::terminate,
    "thread/checkpoint/list" => thread::checkpoint::list,
    "thread/checkpoint/preview" => thread::checkpoint::preview,
    "thread/checkpoint/restore" => thread::checkpoint::restore,
    "thread/diff/read" => thread::diff::read,
    "thread/workspace/read" => thread::workspace::read,
    "thread/workspace/apply" => thread::workspace::apply,
    "thread/archive" => thread::archive,
    "thread/delete" => thread::delete,
    "thread/unsubscribe" => thread::unsubscribe,
    "thread/name/set" => thread::name::set,
    "thread/metadata/update" => thread::metadata::update,
    "thread/inject_items" => thread::inject_items,
    "thread/goal/set" => thread::goal::set,
    "thread/goal/get" => thread::goal::get,
    "thread/goal/clear" => thread::goal::clear,
    "thread/queue/add" => thread::queue::add,
    "thread/queue/list" => thread::queue::list,
    "thread/queue/update" => thread::queue::update,
    "thread/queue/delete" => thread::queue::delete,
    "thread/queue/reorder" => thread::queue::reorder,
    "thread/queue/start" => thread::queue::start,
    "thread/settings/update" => thread::settings::update,
    "thread/unarchive" => thread::unarchive,
    "thread/shellCommand" => thread::shell_command,
    "thread/compact/start" => thread::compact::start,
    "turn/start" => turn::start,
    "turn/steer" => turn::steer,
    "turn/interrupt" => turn::interrupt,
    "turn/diff/read" => turn::diff::read,
    "turn/settings/update" => turn::settings::update,
    "review/start" => review::start,
    "account/read" => account::read,
    "account/login/start" => account::login::start,
    "account/login/cancel" => account::login::cancel,
    "account/logout" => account::logout,
    "account/rateLimits/read" => account::rate_limits::read,
    "model/list" => model::list,
    "modelProvider/capabilities/read" => model_provider::capabilities::read,
    "command/exec" => command::exec,
    "command/exec/write" => command::exec::write,
    "command/exec/terminate" => command::exec::terminate,
    "command/exec/resize" => command::exec::resize,
    "config/read" => config::read,
    "config/value/write" => config::value::write,
    "config/batchWrite" => config::batch_write,
    "config/mcpServer/reload" => config::mcp_server::reload,
    "configRequirements/read" => config_requirements::read,
    "permissionProfile/list" => permission_profile::list,
    "collaborationMode/list" => collaboration_mode::list,
    "experimentalFeature/list" => experimental_feature::list,
    "mcpServerStatus/list" => mcp_server_status::list,
    "mcpServer/oauth/login" => mcp_server::oauth::login,
    "mcpServer/resource/read" => mcp_server::resource::read,
    "mcpServer/tool/call" => mcp_server::tool::call,
    "app/list" => app::list,
    "plugin/call" => plugin::call,
    "plugin/installed" => plugin::installed,
    "plugin/list" => plugin::list,
    "plugin/read" => plugin::read,
    "plugin/uninstall" => plugin::uninstall,
    "hooks/list" => hooks::list,
    "threadSection/list" => thread_section::list,
    "server/diagnostics" => server::diagnostics,
    "skills/list" => skills::list,
    "skills/config/write" => skills::config::write,
    "skills/extraRoots/set" => skills::extra_roots::set,
    "fs/readFile" => fs::read_file,
    "fs/writeFile" => fs::write_file,
    "fs/createDirectory" => fs::create_directory,
    "fs/getMetadata" => fs::get_metadata,
    "fs/readDirectory" => fs::read_directory,
    "fs/remove" => fs::remove,
    "fs/copy" => fs::copy,
    "fs/watch" => fs::watch,
    "fs/unwatch" => fs::unwatch,
    "process/spawn" => process::spawn,
    "process/writeStdin" => process::write_stdin,
    "process/kill" => process::kill,
    "process/resizePty" => process::resize_pty,
    "fuzzyFileSearch" => fuzzy_file_search,
    "fuzzyFileSearch/sessionStart" => fuzzy_file_search::session_start,
    "fuzzyFileSearch/sessionUpdate" => fuzzy_file_search::session_update,
    "fuzzyFileSearch/sessionStop" => fuzzy_file_search::session_stop,
}
