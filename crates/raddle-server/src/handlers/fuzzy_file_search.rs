//! `fuzzyFileSearch`: find files by a few letters of their path.

pub(crate) mod session_start;
pub(crate) mod session_stop;
pub(crate) mod session_update;

use std::path::Path;
use std::sync::Arc;

use raddle_protocol::methods::FuzzyFileSearch;
use raddle_protocol::{FuzzyFileSearchResponse, FuzzyFileSearchResult};

use crate::call::Call;
use crate::services::ServerState;
use crate::services::files::{self, PathAdmission};
use crate::services::searches::Search;
use crate::session::Session;
use crate::spans;
use crate::wire_error::WireError;

/// The maximum number of folders of one search.
const ROOTS_MAX: usize = 64;

/// The longest query. No path is longer.
const QUERY_BYTES_MAX: usize = 4096;

pub(crate) fn handle(state: &Arc<ServerState>, call: Call<FuzzyFileSearch>) {
    // Before the search begins: a rejected request cancels no other search.
    let checked = check_roots(&call.params.roots).and_then(|()| check_query(&call.params.query));
    if let Err(error) = checked {
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
        let files = matches(&search, &params.query, &params.roots, admission, &session);
        Ok(FuzzyFileSearchResponse { files })
    });
    spans::spawn(work);
}

/// Runs a search, and returns the matches that the client may see.
fn matches(
    search: &Search,
    query: &str,
    roots: &[String],
    admission: &PathAdmission,
    session: &Session,
) -> Vec<FuzzyFileSearchResult> {
    let mut files = search.run(query, roots, || session.is_gone());
    files.retain(|it| {
        let path = Path::new(&it.root).join(&it.path);
        std::path::absolute(path).is_ok_and(|it| admission.check_name(&it).is_ok())
    });
    files
}

fn check_roots(roots: &[String]) -> Result<(), WireError> {
    if roots.len() > ROOTS_MAX {
        let what = format!("roots has more than {ROOTS_MAX} folders");
        return Err(WireError::Refused(what.into()));
    }
    roots.iter().try_for_each(|it| files::refuse_too_long(it))
}

fn check_query(query: &str) -> Result<(), WireError> {
    if query.len() > QUERY_BYTES_MAX {
        let what = format!("query is longer than {QUERY_BYTES_MAX} bytes");
        return Err(WireError::Refused(what.into()));
    }
    Ok(())
}
