//! `fuzzyFileSearch`: files by a few letters of their path.

use std::sync::Arc;

use raddle_protocol::FuzzyFileSearchResponse;
use raddle_protocol::methods::FuzzyFileSearch;

use crate::call::Call;
use crate::rooms::Rooms;

pub(crate) fn handle(rooms: &Arc<Rooms>, call: Call<FuzzyFileSearch>) {
    // One client's token does not call off another's search.
    let name = call
        .params
        .cancellation_token
        .as_ref()
        .map(|token| format!("{}/{token}", call.session.number));
    // Begun here, in the order of arrival: the newest search must be the one that stays.
    let search = rooms.searches.begin(name);
    let session = call.session.clone();
    call.on_disk(move |params| {
        Ok(FuzzyFileSearchResponse {
            files: search.run(&params.query, &params.roots, || session.is_gone()),
        })
    });
}
