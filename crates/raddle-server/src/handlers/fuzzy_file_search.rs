//! `fuzzyFileSearch`: files by a few letters of their path.

use std::path::Path;
use std::sync::Arc;

use raddle_protocol::methods::FuzzyFileSearch;
use raddle_protocol::{FuzzyFileSearchParams, FuzzyFileSearchResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::wire_error::WireError;

/// How many folders one search may go through.
const ROOTS_MAX: usize = 64;

/// The longest text that is searched for. No path is longer.
const QUERY_BYTES_MAX: usize = 4096;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<FuzzyFileSearch>) {
    // Before it is begun: what is refused calls nothing off.
    if let Err(error) = check(&call.params) {
        return call.reply.error(error);
    }
    // One client's token does not call off another's search.
    let name = call
        .params
        .cancellation_token
        .as_ref()
        .map(|token| format!("{}/{token}", call.session.number));
    // Begun here, in the order of arrival: the newest search must be the one that stays.
    let search = rooms.searches.begin(name);
    let session = call.session.clone();
    PathAdmission::on_disk(rooms, call, move |params, admission| {
        for root in &params.roots {
            admission.check(&std::path::absolute(root)?)?;
        }
        let mut files = search.run(&params.query, &params.roots, || session.is_gone());
        files.retain(|it| {
            let path = Path::new(&it.root).join(&it.path);
            std::path::absolute(path).is_ok_and(|it| admission.check_name(&it).is_ok())
        });
        Ok(FuzzyFileSearchResponse { files })
    });
}

fn check(params: &FuzzyFileSearchParams) -> Result<(), WireError> {
    let what = if params.roots.len() > ROOTS_MAX {
        format!("roots has more than {ROOTS_MAX} folders")
    } else if params.query.len() > QUERY_BYTES_MAX {
        format!("query is longer than {QUERY_BYTES_MAX} bytes")
    } else {
        return params
            .roots
            .iter()
            .try_for_each(|it| files::refuse_too_long(it));
    };
    Err(WireError::Refused(what.into()))
}
