use super::{Allocator, LARGE_BYTES, install_in_sqlite};

#[global_allocator]
static MEMORY: Allocator = Allocator;

/// Bytes survive every resize, within an allocator and across.
#[test]
fn bytes_survive_every_resize() {
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
fn zeroed_blocks_are_zero() {
    for size in [LARGE_BYTES - 1, LARGE_BYTES] {
        // Probably the block that was just freed.
        drop(vec![7_u8; size]);
        assert!(vec![0_u8; size].iter().all(|it| *it == 0), "{size}");
    }
}

#[test]
fn blocks_have_the_requested_alignment() {
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
fn sqlite_works_with_the_allocator() {
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

/// Blocks are freed by other threads than those that allocated them.
#[test]
fn threads_free_blocks_of_each_other() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        for at in 0..2_000_usize {
            let bytes = at * 379 % (2 * LARGE_BYTES);
            sender.send(vec![at as u8; bytes]).expect("it is taken");
        }
    });
    for (at, block) in receiver.iter().enumerate() {
        assert!(block.iter().all(|it| *it == at as u8));
    }
    thread.join().expect("it gave everything");
}
