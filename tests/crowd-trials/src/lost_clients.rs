//! Clients whose machine vanishes: no packet comes back from it.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use socket2::{SockFilter, SockRef};
use support::Websocket;

use crate::client::CrowdClient;
use crate::server::{CrowdServer, ServerEndpoint};

/// Socket filter that drops every packet.
const NOTHING: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// Maximum time until a vanished peer is detected: a ping after at most a minute, and 375 s without
/// an acknowledgement.
const DETECTION_MAX: Duration = Duration::from_secs(60 + 375 + 20);

/// Makes an idle client and a subscriber vanish, while another idle client stays connected.
pub fn run(server: &CrowdServer) -> Result<()> {
    let mut witness = server.client(ServerEndpoint::Tcp)?;
    let thread = witness.start_thread()?;
    let before = server.descriptors()?;
    let address = server.address()?;
    let mut vanished = Vec::new();
    for subscribes in [false, true] {
        let stream = TcpStream::connect(address)?;
        let socket = stream.try_clone()?;
        let mut client = CrowdClient::initialized(Websocket::over(stream, address)?)?;
        if subscribes {
            client.subscribe(&thread)?;
        }
        SockRef::from(&socket).attach_filter(&NOTHING)?;
        vanished.push(client);
    }
    let open = server.descriptors()?;
    ensure!(open == before + vanished.len(), "{open} descriptors");
    witness.start_turn(&thread, "MOCK text n=10 size=20")?;
    let start = Instant::now();
    while server.descriptors()? > before {
        ensure!(
            start.elapsed() < DETECTION_MAX,
            "not noticed in {DETECTION_MAX:?}"
        );
        std::thread::sleep(Duration::from_secs(1));
    }
    println!(
        "figure: noticed after {:.0?} that clients vanished",
        start.elapsed()
    );
    // The remaining client answers its pings and is still served.
    witness.request("account/read", serde_json::json!({}))?;
    println!("who was there was pinged {} times", witness.wire.pings());
    Ok(())
}
