//! `fs/readFile`: read a whole file.

use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use raddle_protocol::FsReadFileResponse;
use raddle_protocol::methods::FsReadFile;
use tokio::time::timeout;

use crate::call::{Call, Reply};
use crate::services::ServerState;
use crate::services::files::{self, FileLock, PathAdmission};
use crate::session::Session;
use crate::wire_error::WireError;

/// Limit: a response with a file, which holds a file of about 24 MiB; beyond it, the server returns
/// an error with both sizes.
const MESSAGE_BYTES_MAX: u64 = 32 << 20;

/// Size of a response beside the file: an id, which may be escaped, and a few names.
const FRAME_BYTES: u64 = 8 << 10;

/// The largest file that is read.
const BYTES_MAX: u64 = (MESSAGE_BYTES_MAX - FRAME_BYTES) / 4 * 3;

/// Capacity reserved for a file at least. Files of the system often report a size of 0.
const BYTES_MIN: u64 = 64 << 10;

/// How long a request stays in its lane while its client reads no responses. After that it leaves
/// the lane, and fails as overloaded if the file changes before it is read.
const LANE_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes read at once; a multiple of three, so that the pieces' base64 can be joined.
const PIECE_BYTES: usize = 48 << 10;

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<FsReadFile>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let path = match files::absolute(&params.path) {
        Ok(path) => path,
        Err(error) => return reply.error(error),
    };
    let admission = PathAdmission::of(&state, &session).await;
    read(path, admission, reply, session).await;
}

/// Reserves capacity for the response, reads the file and responds.
async fn read(
    path: PathBuf,
    admission: PathAdmission,
    mut reply: Reply<FsReadFileResponse>,
    session: Arc<Session>,
) {
    let client = &session.outgoing;
    let path = Arc::new((path, admission));
    let probed_path = path.clone();
    let probe_job = move || probe(&probed_path.0, &probed_path.1.resolved());
    let probed = session.disk.run(client, probe_job).await;
    let (mut capacity, version) = match probed.flatten() {
        Ok(probed) => probed,
        Err(error) => return reply.error(error),
    };
    let mut unchanged_since = None;
    loop {
        let bytes = (capacity.div_ceil(3) * 4 + FRAME_BYTES) as usize;
        // No file is open during this wait, which lasts as long as the client reads nothing.
        let hold = match timeout(LANE_TIMEOUT, client.reserve(bytes)).await {
            Ok(hold) => hold,
            Err(_) => {
                drop(reply.take_pass());
                unchanged_since = Some(version);
                client.reserve(bytes).await
            }
        };
        let permit = match session.disk.acquire(client).await {
            Ok(permit) => permit,
            Err(error) => return reply.error(error),
        };
        let path = path.clone();
        let job = move || match read_at_most(&path.0, &path.1.resolved(), capacity, unchanged_since)
        {
            Ok(Contents::Larger(size)) => Some((size, reply)),
            Ok(Contents::Whole(data_base64)) => {
                reply.ok(&FsReadFileResponse { data_base64 });
                None
            }
            Err(error) => {
                reply.error(error);
                None
            }
        };
        let Ok(Some(larger)) = permit.run(job).await else {
            return;
        };
        drop(hold);
        (capacity, reply) = larger;
    }
}

/// Version of a file: device, inode, size and time of change.
type FileVersion = (u64, u64, u64, (i64, i64));

fn version_of(file: &Metadata) -> FileVersion {
    let changed = (file.ctime(), file.ctime_nsec());
    (file.dev(), file.ino(), file.len(), changed)
}

/// Returns the capacity that the file needs, and its version.
fn probe(path: &Path, admission: &PathAdmission) -> Result<(u64, FileVersion), WireError> {
    let (_, metadata) = files::open(path, admission)?;
    if metadata.is_dir() {
        let message = format!("{} is not a file", path.display());
        return Err(WireError::Refused(message.into()));
    }
    let capacity = within_max(path, metadata.len().max(BYTES_MIN))?;
    Ok((capacity, version_of(&metadata)))
}

fn within_max(path: &Path, bytes: u64) -> Result<u64, WireError> {
    if bytes <= BYTES_MAX {
        return Ok(bytes);
    }
    Err(WireError::FileTooLarge {
        path: path.to_owned(),
        bytes,
        bytes_max: BYTES_MAX,
        message_bytes_max: MESSAGE_BYTES_MAX,
    })
}

enum Contents {
    /// The contents in base64.
    Whole(String),
    /// The file has grown, or its size was unknown: it needs capacity for this many bytes.
    Larger(u64),
}

/// Reads the file, unless it exceeds the reserved capacity. Outside its lane the file must also be
/// unchanged: later requests may have changed it.
fn read_at_most(
    path: &Path,
    admission: &PathAdmission,
    capacity: u64,
    unchanged_since: Option<FileVersion>,
) -> Result<Contents, WireError> {
    let (mut file, metadata) = files::open(path, admission)?;
    let _lock = FileLock::to_read(&metadata)?;
    // A writer may have made it longer while this waited for the lock.
    let metadata = file.metadata()?;
    let check = |metadata: &Metadata| match unchanged_since {
        Some(version) if version != version_of(metadata) => Err(WireError::Overloaded),
        _ => Ok(()),
    };
    check(&metadata)?;
    if metadata.len() > capacity {
        return Ok(Contents::Larger(within_max(path, metadata.len())?));
    }
    let mut text = String::with_capacity(metadata.len().div_ceil(3) as usize * 4);
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut read = 0;
    loop {
        piece.clear();
        let count = file
            .by_ref()
            .take(PIECE_BYTES as u64)
            .read_to_end(&mut piece)?;
        read += count as u64;
        if read > capacity {
            let larger = if capacity < BYTES_MAX {
                (capacity * 2).min(BYTES_MAX)
            } else {
                read
            };
            return Ok(Contents::Larger(within_max(path, larger)?));
        }
        STANDARD.encode_string(&piece, &mut text);
        if count < PIECE_BYTES {
            check(&file.metadata()?)?;
            return Ok(Contents::Whole(text));
        }
    }
}
