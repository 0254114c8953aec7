//! Hosts that an address names, and the settings of a connection to one.

use std::net::TcpListener;
use std::time::Duration;

use raddle_core::ports::{Journal, ReadError};
use raddle_store::{FleetJournal, FleetOptions};
use store_suite::records::ThreadScript;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::maker::{open, options};
use crate::proxy::Proxy;
use crate::server;

/// Checks that a thread can be started at an address.
async fn check_starts(address: &str) {
    let journal = open(&options(address)).await;
    let mut script = ThreadScript::new();
    script.start(&journal, "/w").await;
    assert_eq!(journal.head(script.thread).await, Ok(script.head));
}

/// The kernel of a host accepts connections for a process that is paused.
#[tokio::test]
async fn a_host_that_never_answers_is_passed_over() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let address = server::shared();
    let port = server::port(address);
    let address = address
        .replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1")
        .replace(
            &format!("port={port}"),
            &format!("port={silent_port},{port}"),
        );
    check_starts(&address).await;
    // Later connections begin with the host that answered.
    silent.set_nonblocking(true).unwrap();
    assert!(silent.accept().is_ok());
    assert!(silent.accept().is_err());
}

#[tokio::test]
async fn a_socket_of_this_machine_connects() {
    let port = server::port(server::shared());
    let folder = server::sockets();
    let folder = folder.display();
    for sslmode in ["", " sslmode=disable", " sslmode=require"] {
        let address = format!("host={folder} port={port} user=raddle dbname=raddle{sslmode}");
        check_starts(&address).await;
    }
}

/// Request for TLS, after its length.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

#[tokio::test]
async fn a_server_without_tls_learns_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for address in [
        // Not a loopback address, although it leads to one.
        format!("host=0.0.0.0 port={port} user=raddle password=secret"),
        format!("host=127.0.0.1 port={port} user=raddle password=secret sslmode=verify-full"),
        format!("postgres://raddle:secret@127.0.0.1:{port}/raddle?sslmode=verify-full"),
    ] {
        let server = async {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut request = [0; 8];
            client.read_exact(&mut request).await.unwrap();
            assert_eq!(request, SSL_REQUEST, "{address}");
            client.write_all(b"N").await.unwrap();
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.unwrap();
            rest
        };
        let options = options(&address);
        let both = async { tokio::join!(server, FleetJournal::open(&options)) };
        let both = tokio::time::timeout(Duration::from_secs(30), both).await;
        let (rest, opened) = both.unwrap();
        assert_eq!(rest, b"", "{address}");
        assert!(
            matches!(opened, Err(ReadError::Unavailable(_))),
            "{opened:?}"
        );
    }
}

/// A pooler may drop the options of a connection.
#[tokio::test]
async fn a_session_with_other_settings_is_refused() {
    let address = server::shared();
    for (option, replacement) in [
        ("search_path=t", "search_path=u"),
        ("statement_timeout=", "raddle.notimeouts="),
    ] {
        let proxy = Proxy::start(server::port(address)).await;
        let options = options(&proxy.address(address));
        open(&options).await;
        proxy.rewrite(option, replacement);
        let refused = match FleetJournal::open(&options).await {
            Ok(journal) => journal.head(ThreadScript::new().thread).await.map(|_| ()),
            Err(error) => Err(error),
        };
        let Err(ReadError::Unusable(what)) = refused else {
            panic!("{option}: {refused:?}");
        };
        let name = option.split('=').next();
        assert!(name.is_some_and(|it| what.contains(it)), "{what}");
    }
}

#[tokio::test]
async fn a_database_with_another_encoding_is_refused() {
    let address = server::shared();
    let options = options(address);
    let name = &options.schema;
    let create = "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'";
    server::sql(format!("CREATE DATABASE {name} {create}")).await;
    let other = FleetOptions {
        address: address.replace("dbname=raddle", &format!("dbname={name}")),
        ..options.clone()
    };
    let refused = FleetJournal::open(&other).await;
    let Err(ReadError::Unusable(what)) = refused else {
        panic!("{refused:?}");
    };
    assert!(what.contains("LATIN1"), "{what}");
    server::sql(format!("DROP DATABASE {name} WITH (FORCE)")).await;
}
