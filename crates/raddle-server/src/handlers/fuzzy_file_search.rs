//! `fuzzyFileSearch`: find files by a few letters of their path.

use std::path::Path;
use std::sync::Arc;

use raddle_protocol::methods::FuzzyFileSearch;
use raddle_protocol::{FuzzyFileSearchParams, FuzzyFileSearchResponse};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::spans;
use crate::wire_error::WireError;

/// The maximum number of folders of one search.
const ROOTS_MAX: usize = 64;

/// The longest query. No path is longer.
const QUERY_BYTES_MAX: usize = 4096;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<FuzzyFileSearch>) {
    // Before the search begins: a rejected request cancels no other search.
    if let Err(error) = check(&call.params) {
        return call.reply.error(error);
    }
    // A client's token does not cancel another client's search.
    let name = call
        .params
        .cancellation_token
        .as_ref()
        .map(|token| format!("{}/{token}", call.session.number));
    // Begins in the order of arrival: the newest search must be the one that remains.
    let search = state.searches.begin(name);
    let session = call.session.clone();
    let work = PathAdmission::on_disk(state.clone(), call, move |params, admission| {
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
    spans::spawn(work);
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
