//! A thread that streams to ten ordinary clients, and to guests beside them.

use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::fold::{Fold, PIECE};
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::hear_out;

/// How many messages the text is shared by.
const MESSAGES: usize = 10;

/// The ordinary ones.
pub const ORDINARY: usize = 10;

/// What a stream came to.
pub struct StreamResult {
    /// What the ordinary ones know.
    pub fold: Fold,
    /// How long all but the slowest of a hundred pieces took to come to them.
    pub p99: Duration,
    pub p50: Duration,
}

/// Lets the model say so many pieces to the ordinary ones and to those who are let in beside them. Whoever is
/// there knows the same in the end.
pub fn stream<G>(
    server: &CrowdServer,
    pieces: usize,
    let_in: impl FnOnce(&str) -> Result<G>,
) -> Result<(StreamResult, G)> {
    let mut driver = server.client(ServerEndpoint::Tcp)?;
    let thread = driver.start_thread()?;
    let mut clients = Vec::new();
    for at in 0..ORDINARY {
        let door = [ServerEndpoint::Tcp, ServerEndpoint::Unix][at % 2];
        let mut client = server.client(door)?;
        client.join(&thread)?;
        clients.push(client);
    }
    let guests = let_in(&thread)?;
    let each = pieces / MESSAGES;
    let text = format!(" text n={each} size={PIECE} stamp=1 gap_us=200").repeat(MESSAGES);
    driver.say(&thread, &format!("MOCK{text}"))?;
    // It hears no more of it.
    drop(driver);
    let hearing = clients.into_iter().map(|mut client| {
        thread::spawn(move || {
            let mut fold = Fold::default();
            hear_out(&mut client, &mut fold).map(|()| fold)
        })
    });
    let hearing: Vec<_> = hearing.collect();
    let mut heard = Vec::new();
    for hearing in hearing {
        let fold = hearing.join();
        heard.push(fold.map_err(|_| anyhow!("one of them panicked"))??);
    }
    let mut taken: Vec<u32> = heard.iter_mut().flat_map(|it| it.taken.drain(..)).collect();
    taken.sort_unstable();
    let part = |of: usize| {
        let at = taken.len() * of / 100;
        Duration::from_micros(taken.get(at).copied().unwrap_or_default().into())
    };
    let (p50, p99) = (part(50), part(99));
    let fold = heard.pop().ok_or_else(|| anyhow!("there are ten"))?;
    for other in &heard {
        other.is(&fold)?;
    }
    anyhow::ensure!(
        fold.letters() >= each * MESSAGES * PIECE,
        "{} letters of {pieces} pieces",
        fold.letters()
    );
    Ok((StreamResult { fold, p99, p50 }, guests))
}
