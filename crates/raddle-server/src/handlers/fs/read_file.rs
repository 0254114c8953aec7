//! `fs/readFile`: a whole file.

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

/// The longest answer; what a client may send is bounded alike.
const MESSAGE_BYTES_MAX: u64 = 32 << 20;

/// What an answer needs beside the file: an id, which may be escaped, and a few names.
const FRAME_BYTES: u64 = 8 << 10;

/// The largest file that is read.
const BYTES_MAX: u64 = (MESSAGE_BYTES_MAX - FRAME_BYTES) / 4 * 3;

/// A file is taken to be at least this large. Those of the system often say that they are empty.
const BYTES_MIN: u64 = 64 << 10;

/// How long a request stays in its lane while its client takes no answers. After that it lets the
/// others go, and is answered like one too many if they change the file before its turn comes.
const LANE_TIMEOUT: Duration = Duration::from_secs(1);

/// How much is read at once; a multiple of three, so that the pieces' base64 can be joined.
const PIECE_BYTES: usize = 48 << 10;

pub(crate) fn handle(rooms: &Arc<ServerState>, call: Call<FsReadFile>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    let path = match files::absolute(&params.path) {
        Ok(path) => path,
        Err(error) => return reply.error(error),
    };
    let rooms = rooms.clone();
    tokio::spawn(async move {
        let admission = PathAdmission::of(&rooms, &session).await;
        read(path, admission, reply, session).await;
    });
}

/// Reads the file once there is room for the answer, and answers.
async fn read(
    path: PathBuf,
    admission: PathAdmission,
    mut reply: Reply<FsReadFileResponse>,
    session: Arc<Session>,
) {
    let client = &session.outgoing;
    let path = Arc::new((path, admission));
    let looked_at = path.clone();
    let look = move || look(&looked_at.0, &looked_at.1.resolved());
    let seen = session.disk.run(client, look).await;
    let (mut room, seen) = match seen.flatten() {
        Ok(seen) => seen,
        Err(error) => return reply.error(error),
    };
    let mut unchanged_since = None;
    loop {
        let bytes = (room.div_ceil(3) * 4 + FRAME_BYTES) as usize;
        // Nothing is open while this waits, which may be as long as the client reads nothing.
        let hold = match timeout(LANE_TIMEOUT, client.reserve(bytes)).await {
            Ok(hold) => hold,
            Err(_) => {
                drop(reply.take_pass());
                unchanged_since = Some(seen);
                client.reserve(bytes).await
            }
        };
        let turn = match session.disk.acquire(client).await {
            Ok(turn) => turn,
            Err(error) => return reply.error(error),
        };
        let path = path.clone();
        let job = move || match read_at_most(&path.0, &path.1.resolved(), room, unchanged_since) {
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
        let Ok(Some(larger)) = turn.run(job).await else {
            return;
        };
        drop(hold);
        (room, reply) = larger;
    }
}

/// Tells one state of a file from another: device, inode, size and time of change.
type FileVersion = (u64, u64, u64, (i64, i64));

fn stamp(file: &Metadata) -> FileVersion {
    let changed = (file.ctime(), file.ctime_nsec());
    (file.dev(), file.ino(), file.len(), changed)
}

/// How large the file seems to be, and its state.
fn look(path: &Path, admission: &PathAdmission) -> Result<(u64, FileVersion), WireError> {
    let (_, metadata) = files::open(path, admission)?;
    if metadata.is_dir() {
        let message = format!("{} is not a file", path.display());
        return Err(WireError::Refused(message.into()));
    }
    let room = within_max(path, metadata.len().max(BYTES_MIN))?;
    Ok((room, stamp(&metadata)))
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
    /// All of it, in base64.
    Whole(String),
    /// It has become larger, or never said how large it is: there must be room for this many bytes.
    Larger(u64),
}

/// Reads the file, unless it has more bytes than there is room for. Outside its lane it must also be
/// as it was: what came after this request may have changed it.
fn read_at_most(
    path: &Path,
    admission: &PathAdmission,
    room: u64,
    unchanged_since: Option<FileVersion>,
) -> Result<Contents, WireError> {
    let (mut file, metadata) = files::open(path, admission)?;
    let _stay = FileLock::to_read(&metadata)?;
    // Who wrote it until now may have made it longer.
    let metadata = file.metadata()?;
    let check = |metadata: &Metadata| match unchanged_since {
        Some(seen) if seen != stamp(metadata) => Err(WireError::Overloaded),
        _ => Ok(()),
    };
    check(&metadata)?;
    if metadata.len() > room {
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
        if read > room {
            let larger = if room < BYTES_MAX {
                (room * 2).min(BYTES_MAX)
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
