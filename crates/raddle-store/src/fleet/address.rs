//! Address of the database: one configuration for each host, in the order of the address.

use std::net::IpAddr;
use std::ops::Range;
use std::str::FromStr;

use raddle_core::ports::ReadError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::error::with_causes;

/// Value of `sslmode` that tokio-postgres does not know. `require` means the same here, because the
/// certificate and the name in it are always verified.
const VERIFY_FULL: &str = "verify-full";

/// Parses an address into one configuration for each of its hosts.
pub(super) fn parse(address: &str) -> Result<Vec<Config>, ReadError> {
    let sslmode = find_sslmode(address);
    let mut address = address.to_owned();
    if let Some(value) = &sslmode
        && address[value.clone()].trim_matches('\'') == VERIFY_FULL
    {
        address.replace_range(value.clone(), "require");
    }
    let config = Config::from_str(&address).map_err(|error| {
        // The address may contain a password, and is not part of the message.
        let what = with_causes(&error);
        ReadError::Unusable(format!(
            "the address of the database is invalid ({what}); write it as \
             postgres://user:password@host:port/database"
        ))
    })?;
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    let (ports, addresses) = (config.get_ports().len(), config.get_hostaddrs().len());
    let names = config.get_hosts().len();
    let fits = |count: usize| count <= 1 || count == hosts;
    if hosts == 0 || !fits(ports) || (names > 0 && addresses > 0 && names != addresses) {
        return Err(ReadError::Unusable(
            "the address of the database is invalid; name at least one host, and no port, one port, \
             or as many as hosts"
                .to_owned(),
        ));
    }
    let hosts = (0..hosts).map(|at| host(&config, at, sslmode.is_none()));
    Ok(hosts.collect())
}

/// Returns the configuration of one host.
fn host(all: &Config, at: usize, is_default_mode: bool) -> Config {
    let mut config = Config::new();
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(dbname) = all.get_dbname() {
        config.dbname(dbname);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    config
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding());
    let name = all.get_hosts().get(at);
    match name {
        Some(Host::Tcp(name)) => {
            config.host(name);
        }
        #[cfg(unix)]
        Some(Host::Unix(path)) => {
            config.host_path(path);
            // A socket of this machine has no TLS.
            config.ssl_mode(SslMode::Disable);
        }
        None => {}
    }
    let address = all.get_hostaddrs().get(at);
    if let Some(address) = address {
        config.hostaddr(*address);
    }
    if is_default_mode && !is_local(name, address) {
        config.ssl_mode(SslMode::Require);
    }
    let ports = all.get_ports();
    if let Some(port) = ports.get(at).or_else(|| ports.first()) {
        config.port(*port);
    }
    config
}

/// Whether a host is this machine.
fn is_local(name: Option<&Host>, address: Option<&IpAddr>) -> bool {
    if let Some(address) = address {
        return address.is_loopback();
    }
    match name {
        Some(Host::Tcp(name)) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|it| it.is_loopback())
        }
        #[cfg(unix)]
        Some(Host::Unix(_)) => true,
        None => false,
    }
}

/// Finds the last value of `sslmode` in an address, with its quotes. Returns nothing of an address
/// that cannot be parsed.
fn find_sslmode(address: &str) -> Option<Range<usize>> {
    let url = ["postgres://", "postgresql://"];
    match url.iter().find(|scheme| address.starts_with(**scheme)) {
        Some(scheme) => find_in_url(address, scheme.len()),
        None => find_in_keywords(address),
    }
}

/// Finds `sslmode` among the parameters of a URL.
fn find_in_url(address: &str, scheme: usize) -> Option<Range<usize>> {
    // A name or a password before `@` may contain `?`.
    let rest = &address[scheme..];
    let host = rest.find('@').map_or(scheme, |at| scheme + at + 1);
    let mut at = host + address[host..].find('?')? + 1;
    let mut found = None;
    for parameter in address[at..].split('&') {
        if let Some(value) = parameter.strip_prefix("sslmode=") {
            let end = at + parameter.len();
            found = Some(end - value.len()..end);
        }
        at += parameter.len() + 1;
    }
    found
}

/// Finds `sslmode` among keywords and values.
fn find_in_keywords(address: &str) -> Option<Range<usize>> {
    let mut found = None;
    let mut rest = address.char_indices().peekable();
    loop {
        while rest.next_if(|(_, it)| it.is_whitespace()).is_some() {}
        let Some((start, _)) = rest.peek().copied() else {
            return found;
        };
        let is_key = |it: &(usize, char)| it.1 != '=' && !it.1.is_whitespace();
        while rest.next_if(is_key).is_some() {}
        let key = &address[start..rest.peek()?.0];
        while rest.next_if(|(_, it)| it.is_whitespace()).is_some() {}
        rest.next_if(|(_, it)| *it == '=')?;
        while rest.next_if(|(_, it)| it.is_whitespace()).is_some() {}
        let value = rest.peek()?.0;
        let is_quoted = rest.next_if(|(_, it)| *it == '\'').is_some();
        while let Some((_, it)) = rest.next_if(|(_, it)| is_quoted || !it.is_whitespace()) {
            match it {
                '\\' => {
                    rest.next();
                }
                '\'' if is_quoted => break,
                _ => {}
            }
        }
        let end = rest.peek().map_or(address.len(), |(at, _)| *at);
        if key == "sslmode" {
            found = Some(value..end);
        }
        if end == address.len() {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_host_needs_tls_unless_the_address_says_otherwise() {
        use SslMode::{Disable, Prefer, Require};
        for (address, expected) in [
            ("host=db.example user=a", vec![Require]),
            ("host=10.0.0.1 user=a", vec![Require]),
            ("host=db.example hostaddr=10.0.0.1 user=a", vec![Require]),
            ("hostaddr=10.0.0.1 user=a", vec![Require]),
            ("host=localhost user=a", vec![Prefer]),
            ("host=127.0.0.1 user=a", vec![Prefer]),
            ("host=::1 user=a", vec![Prefer]),
            ("host=127.0.0.1,db.example user=a", vec![Prefer, Require]),
            ("host=db.example sslmode=prefer", vec![Prefer]),
            ("host=db.example sslmode=disable", vec![Disable]),
            ("host=db.example sslmode=disable ", vec![Disable]),
            ("host=localhost sslmode=require", vec![Require]),
            ("host=localhost sslmode=verify-full", vec![Require]),
            (
                "host=localhost sslmode = 'verify-full' user=a",
                vec![Require],
            ),
            (
                "password='a sslmode=disable\\' b' host=db.example",
                vec![Require],
            ),
            (
                "host=localhost password='x sslmode=verify-full'",
                vec![Prefer],
            ),
            ("host=/run/postgresql", vec![Disable]),
            ("host=/run/postgresql sslmode=require", vec![Disable]),
            ("postgres://a@db.example/b", vec![Require]),
            ("postgres://a:b@localhost/b", vec![Prefer]),
            ("postgres://a:?sslmode=disable@db.example/b", vec![Require]),
            ("postgres://a@db.example/b?sslmode=disable", vec![Disable]),
            (
                "postgres://a@localhost/b?application_name=c&sslmode=verify-full",
                vec![Require],
            ),
            (
                "postgresql://a@localhost:1,db.example:2/b?sslmode=verify-full",
                vec![Require, Require],
            ),
            ("postgres://%2Frun%2Fpostgresql/b?user=a", vec![Disable]),
        ] {
            let hosts = parse(address).expect(address);
            let modes: Vec<SslMode> = hosts.iter().map(Config::get_ssl_mode).collect();
            assert_eq!(modes, expected, "{address}");
        }
    }

    #[test]
    fn each_host_has_its_own_port() {
        for (address, expected) in [
            ("host=a,b port=1,2 password=c", vec![1, 2]),
            ("host=a,b port=7", vec![7, 7]),
            ("postgres://u@a:1,b:2/c", vec![1, 2]),
        ] {
            let hosts = parse(address).expect(address);
            let ports = hosts.iter().map(|it| it.get_ports()[0]);
            assert_eq!(ports.collect::<Vec<_>>(), expected, "{address}");
            assert!(hosts.iter().all(|it| it.get_hosts().len() == 1));
        }
        for address in [
            "user=a",
            "host=a,b,c port=1,2",
            "host=a sslmode=maybe",
            "=",
            "a",
        ] {
            assert!(parse(address).is_err(), "{address}");
        }
    }
}
