//! The routes: one line per served method. A method that is declared in the table but has no line
//! here is answered like one that does not exist.

use crate::gate::Admission;
use crate::handlers::*;

macro_rules! routes {
    ($( $name:literal => $($part:ident)::+, )+) => {
        /// The methods this server serves.
        pub const SERVED: &[&str] = &[$($name),+];

        /// Hands a request to the handler of its name.
        pub(crate) fn dispatch(method: &str, admission: Admission<'_>) {
            match method {
                $( $name => admission.run($($part)::+::handle), )+
                _ => admission.unknown(method),
            }
        }
    };
}

routes! {
    "initialize" => initialize,
    "account/read" => account::read,
    "model/list" => model::list,
    "config/read" => config::read,
    "config/value/write" => config::value::write,
    "config/batchWrite" => config::batch_write,
    "configRequirements/read" => config_requirements::read,
    "permissionProfile/list" => permission_profile::list,
    "skills/list" => skills::list,
    "fs/readFile" => fs::read_file,
    "fs/writeFile" => fs::write_file,
    "fs/createDirectory" => fs::create_directory,
    "fs/getMetadata" => fs::get_metadata,
    "fs/readDirectory" => fs::read_directory,
    "fs/remove" => fs::remove,
    "fs/copy" => fs::copy,
    "fs/watch" => fs::watch,
    "fs/unwatch" => fs::unwatch,
    "fuzzyFileSearch" => fuzzy_file_search,
}
