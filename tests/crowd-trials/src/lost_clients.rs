//! Clients whose machine is gone: nothing comes back from it, not even that it is gone.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use socket2::{SockFilter, SockRef};

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::wire::TestWire;

/// The program of a filter that lets nothing through.
const NOTHING: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// How long a peer may be gone before that is noticed: a ping after at most a minute, and 375 s in which its system
/// does not take it.
const NOTICED: Duration = Duration::from_secs(60 + 375 + 20);

/// One with nothing to hear and one who hears of a thread vanish; others, who say nothing either, stay.
pub fn run(server: &CrowdServer) -> Result<()> {
    let mut witness = server.client(ServerEndpoint::Tcp)?;
    let thread = witness.start_thread()?;
    let before = server.descriptors()?;
    let mut vanished = Vec::new();
    for hears in [false, true] {
        let stream = TcpStream::connect(server.address)?;
        let held = stream.try_clone()?;
        let mut client = CrowdClient::introduced(TestWire::over(stream, server.address)?)?;
        if hears {
            client.join(&thread)?;
        }
        SockRef::from(&held).attach_filter(&NOTHING)?;
        vanished.push(client);
    }
    let there = server.descriptors()?;
    ensure!(there == before + vanished.len(), "{there} descriptors");
    witness.say(&thread, "MOCK text n=10 size=20")?;
    let begun = Instant::now();
    while server.descriptors()? > before {
        ensure!(begun.elapsed() < NOTICED, "not noticed in {NOTICED:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
    println!(
        "figure: noticed after {:.0?} that clients vanished",
        begun.elapsed()
    );
    // The one who stayed reads its pings and is still served.
    witness.ask("account/read", serde_json::json!({}))?;
    println!("who was there was pinged {} times", witness.wire.pings);
    Ok(())
}
