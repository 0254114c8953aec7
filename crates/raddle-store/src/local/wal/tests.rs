use super::*;

/// A log with some pages, and how many SQLite says it has.
fn log() -> (tempfile::TempDir, Connection, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let connection = schema::open_or_create(folder.path()).expect("a journal");
    for round in 0..20 {
        connection
            .execute(
                "INSERT INTO item (at, before, sum) VALUES (?1, 0, x'')",
                [round],
            )
            .expect("room");
    }
    let pages = pages(&connection).expect("a log");
    (folder, connection, usize::try_from(pages).expect("a count"))
}

#[test]
fn a_log_is_sound_as_far_as_sqlite_wrote_it() {
    let (folder, _connection, pages) = log();
    assert!(pages > 20);
    assert_eq!(write_again(&path(folder.path())).expect("written"), pages);
}

#[test]
fn a_log_is_sound_only_up_to_its_first_wrong_byte() {
    let (folder, _connection, pages) = log();
    let bytes = std::fs::read(path(folder.path())).expect("a log");
    for at in [0, 9, 40, bytes.len() / 2, bytes.len() - 1] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        let frame = FRAME_HEADER_BYTES + 1024;
        let expected = at.saturating_sub(HEADER_BYTES) / frame;
        assert_eq!(sound(&bytes), expected.min(pages), "byte {at}");
    }
    assert_eq!(sound(&[]), 0);
    assert_eq!(sound(&bytes[..HEADER_BYTES]), 0);
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

/// A log of transactions of so many pages, each of which begins with its number.
fn made(transactions: &[usize]) -> Vec<u8> {
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

/// How many pages of a log are taken, and whether what comes after them was lost.
fn judged(log: &[u8]) -> (usize, bool) {
    let frames = Frames::of(log);
    (frames.taken.len(), frames.are_lost())
}

/// The log with a changed byte in a page.
fn hit(log: &[u8], frame: usize) -> Vec<u8> {
    let mut log = log.to_vec();
    log[HEADER_BYTES + frame * STEP + 500] ^= 1;
    log
}

#[test]
fn what_a_killed_writer_left_behind_is_no_loss() {
    let whole = made(&[2, 3, 4]);
    assert_eq!(judged(&whole), (9, false));
    // Killed while it wrote.
    for frames in 5..9 {
        assert_eq!(judged(&whole[..HEADER_BYTES + frames * STEP]), (5, false));
    }
    // Killed while it synced; another process then wrote over the first pages of what it wrote.
    for other in [&[2, 3, 1][..], &[2, 3, 3], &[2, 3, 1, 1], &[2, 3, 1, 2]] {
        let mut log = made(other);
        let taken = other.iter().sum();
        log.extend(&whole[log.len()..]);
        assert_eq!(judged(&log), (taken, false), "{other:?}");
    }
}

#[test]
fn what_was_ended_after_a_page_that_was_hit_is_lost() {
    let whole = made(&[2, 3, 4]);
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
    for (frame, taken) in table {
        assert_eq!(judged(&hit(&whole, frame)), (taken, true), "{frame}");
    }
    // Of the last transaction the first page: it could as well be one that nobody was told of.
    assert_eq!(judged(&hit(&whole, 5)), (5, false));
}
