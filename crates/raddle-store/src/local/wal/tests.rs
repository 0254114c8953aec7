use super::*;

/// Creates a WAL with some pages. Returns the number of pages according to SQLite.
fn log() -> (tempfile::TempDir, Connection, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    for round in 0..20 {
        connection
            .execute(
                "INSERT INTO item (at, before, sum) VALUES (?1, 0, x'')",
                [round],
            )
            .expect("capacity");
    }
    let pages = pages(&connection).expect("a log");
    (folder, connection, usize::try_from(pages).expect("a count"))
}

#[test]
fn all_frames_that_sqlite_wrote_are_valid() {
    let (folder, _connection, pages) = log();
    assert!(pages > 20);
    assert_eq!(write_again(&path(folder.path())).expect("written"), pages);
}

#[test]
fn frames_are_valid_up_to_the_first_changed_byte() {
    let (folder, _connection, pages) = log();
    let bytes = std::fs::read(path(folder.path())).expect("a log");
    for at in [0, 9, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        let frame = FRAME_HEADER_BYTES + 1024;
        let expected = at.saturating_sub(HEADER_BYTES) / frame;
        assert_eq!(valid_frames(&bytes), expected.min(pages), "byte {at}");
    }
    assert_eq!(valid_frames(&[]), 0);
    assert_eq!(valid_frames(&bytes[..HEADER_BYTES]), 0);
}

#[test]
fn a_log_that_lost_pages_is_not_moved_into_the_file() {
    let (folder, connection, _) = log();
    let log = path(folder.path());
    let mut bytes = std::fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, &bytes).expect("written");
    let renewed = renew(&connection, folder.path());
    assert!(
        matches!(renewed, Err(AppendError::Unavailable(_))),
        "{renewed:?}"
    );
    assert_eq!(std::fs::read(&log).expect("a log"), bytes);
}

#[test]
fn a_log_that_is_whole_is_emptied() {
    let (folder, connection, _) = log();
    renew(&connection, folder.path()).expect("renewed");
    assert!(
        std::fs::read(path(folder.path()))
            .expect("a log")
            .is_empty()
    );
    let count: i64 = connection
        .query_row("SELECT count(*) FROM item", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(count, 20);
}

const STEP: usize = FRAME_HEADER_BYTES + 1024;

/// Builds a WAL of transactions with these numbers of pages. Each page is filled with the number of
/// its transaction.
fn build_log(transactions: &[usize]) -> Vec<u8> {
    let mut log = vec![0; HEADER_BYTES];
    log[8..12].copy_from_slice(&1024_u32.to_be_bytes());
    log[16..24].copy_from_slice(b"salted!!");
    let mut sum = LogChecksum(0, 0);
    sum.add(&log[..24], false);
    log[24..28].copy_from_slice(&sum.0.to_be_bytes());
    log[28..32].copy_from_slice(&sum.1.to_be_bytes());
    for (number, pages) in transactions.iter().enumerate() {
        for page in 1..=*pages {
            let mut frame = vec![u8::try_from(number).expect("few"); STEP];
            frame[..4].copy_from_slice(&u32::try_from(page).expect("few").to_be_bytes());
            frame[4..8].copy_from_slice(&u32::from(page == *pages).to_be_bytes());
            frame[8..16].copy_from_slice(b"salted!!");
            sum.add(&frame[..8], false);
            sum.add(&frame[FRAME_HEADER_BYTES..], false);
            frame[16..20].copy_from_slice(&sum.0.to_be_bytes());
            frame[20..24].copy_from_slice(&sum.1.to_be_bytes());
            log.extend(frame);
        }
    }
    log
}

/// Returns the number of committed frames, and whether acknowledged transactions after them were
/// lost.
fn inspect(log: &[u8]) -> (usize, bool) {
    let frames = Frames::of(log);
    (frames.committed.len(), frames.are_lost())
}

/// Returns the WAL with a changed byte in a frame.
fn corrupt_frame(log: &[u8], frame: usize) -> Vec<u8> {
    let mut log = log.to_vec();
    log[HEADER_BYTES + frame * STEP + 500] ^= 1;
    log
}

#[test]
fn frames_of_a_killed_writer_are_no_loss() {
    let whole = build_log(&[2, 3, 4]);
    assert_eq!(inspect(&whole), (9, false));
    // Killed during a write.
    for frames in 5..9 {
        assert_eq!(inspect(&whole[..HEADER_BYTES + frames * STEP]), (5, false));
    }
    // Killed during a sync; another process then overwrote the first pages of the transaction.
    for other in [&[2, 3, 1][..], &[2, 3, 3], &[2, 3, 1, 1], &[2, 3, 1, 2]] {
        let mut log = build_log(other);
        let committed = other.iter().sum();
        log.extend(&whole[log.len()..]);
        assert_eq!(inspect(&log), (committed, false), "{other:?}");
    }
}

#[test]
fn commits_after_a_damaged_frame_are_lost() {
    let whole = build_log(&[2, 3, 4]);
    let table = [
        (0, 0),
        (1, 0),
        (2, 2),
        (3, 2),
        (4, 2),
        (6, 5),
        (7, 5),
        (8, 5),
    ];
    for (frame, committed) in table {
        assert_eq!(
            inspect(&corrupt_frame(&whole, frame)),
            (committed, true),
            "{frame}"
        );
    }
    // First page of the last transaction: that transaction may as well be an unacknowledged one.
    assert_eq!(inspect(&corrupt_frame(&whole, 5)), (5, false));
}
