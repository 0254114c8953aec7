use super::{Allocator, LARGE_BYTES, install_in_sqlite};

#[global_allocator]
static MEMORY: Allocator = Allocator;

/// Bytes survive every change of size, within an owner and across.
#[test]
fn what_is_written_stays_through_changes_of_size() {
    let sizes = [
        1,
        LARGE_BYTES - 1,
        LARGE_BYTES,
        LARGE_BYTES + 1,
        8 * LARGE_BYTES,
    ];
    for from in sizes {
        for to in sizes {
            let byte = |at: usize| (at % 251) as u8;
            let mut bytes: Vec<u8> = (0..from).map(byte).collect();
            bytes.shrink_to_fit();
            if to > from {
                bytes.reserve_exact(to - from);
            } else {
                bytes.truncate(to);
                bytes.shrink_to_fit();
            }
            assert!(
                bytes.iter().copied().eq((0..from.min(to)).map(byte)),
                "{from} to {to}"
            );
        }
    }
}

#[test]
fn what_should_be_zero_is() {
    for size in [LARGE_BYTES - 1, LARGE_BYTES] {
        // Likely the block that was just freed.
        drop(vec![7_u8; size]);
        assert!(vec![0_u8; size].iter().all(|it| *it == 0), "{size}");
    }
}

#[test]
fn blocks_are_aligned_as_asked() {
    #[repr(align(4096))]
    struct AlignedBlock([u8; 4096]);
    for count in [1, 15, 16, 17] {
        let mut pages = Vec::new();
        for at in 0..count {
            pages.push(AlignedBlock([at as u8; 4096]));
        }
        assert_eq!(pages.as_ptr().addr() % 4096, 0);
        assert!(
            pages
                .iter()
                .enumerate()
                .all(|(at, it)| it.0 == [at as u8; 4096])
        );
    }
}

#[test]
fn sqlite_lives_on_it() {
    assert!(install_in_sqlite());
    let connection = rusqlite::Connection::open_in_memory().expect("a database");
    connection
        .execute_batch("CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)")
        .expect("a table");
    for bytes in [0, 1, 1000, 100_000, 3_000_000] {
        connection
            .execute("INSERT INTO t (b) VALUES (zeroblob(?1))", [bytes])
            .expect("a row");
    }
    let sum = "SELECT sum(length(b)), count(*) FROM (SELECT b FROM t ORDER BY b DESC)";
    let sum = connection.query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(sum, Ok((3_101_001, 5)));
    assert!(!install_in_sqlite(), "it runs, and is too late to ask");
}

/// Blocks are freed by others than those who asked for them.
#[test]
fn threads_free_for_each_other() {
    let (give, take) = std::sync::mpsc::channel();
    let giver = std::thread::spawn(move || {
        for at in 0..2_000_usize {
            let bytes = at * 379 % (2 * LARGE_BYTES);
            give.send(vec![at as u8; bytes]).expect("it is taken");
        }
    });
    for (at, block) in take.iter().enumerate() {
        assert!(block.iter().all(|it| *it == at as u8));
    }
    giver.join().expect("it gave everything");
}
