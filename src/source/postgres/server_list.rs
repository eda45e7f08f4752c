use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::SourceError;

/// Where the database may be: hosts that are tried in order until one is a primary
/// (PostgreSQL documentation, libpq, "Specifying Multiple Hosts").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerList(Vec<Host>);

/// One entry of a [`ServerList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    name: String,
    port: u16,
}

/// One server: a host of the list and one of its addresses. Sessions that belong together are
/// opened to the same one, whatever the name means by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The host as configured, which its certificate has to name.
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

/// Why a list of hosts and ports cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerListError {
    /// Nothing between two commas.
    #[error("host {0} of the list is empty")]
    EmptyHost(usize),
    /// Not a TCP port.
    #[error("'{0}' is no port")]
    Port(String),
    /// Ports are given neither once nor for each host.
    #[error("there are {hosts} hosts and {ports} ports")]
    Count {
        /// Entries of `database.hostname`.
        hosts: usize,
        /// Entries of `database.port`.
        ports: usize,
    },
}

impl ServerList {
    /// Reads `database.hostname` and `database.port`: hosts with commas between them, and one
    /// port for all or one for each. A host may bring its own port (`db1:5433`), as it can in
    /// the URL that Debezium makes of it.
    ///
    /// # Errors
    /// When a host is empty, a port is no port, or their numbers differ.
    pub fn new(hosts: &str, ports: &str) -> Result<Self, ServerListError> {
        let ports: Vec<u16> = ports.split(',').map(port).collect::<Result<_, _>>()?;
        let names: Vec<&str> = hosts.split(',').map(str::trim).collect();
        let count = ServerListError::Count {
            hosts: names.len(),
            ports: ports.len(),
        };
        let ports = match ports.as_slice() {
            [one] => vec![*one; names.len()],
            each if each.len() == names.len() => ports,
            _ => return Err(count),
        };
        let hosts = names.into_iter().zip(ports).enumerate();
        hosts
            .map(|(index, (name, port))| match name {
                "" => Err(ServerListError::EmptyHost(index + 1)),
                name => Host::new(name, port),
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Host> {
        self.0.iter()
    }
}

impl Host {
    fn new(text: &str, default_port: u16) -> Result<Self, ServerListError> {
        let (name, port) = match text.rsplit_once(':') {
            // More than one colon is an IPv6 address, unless brackets set the port apart.
            Some((name, own)) if !name.contains(':') || name.ends_with(']') => (name, port(own)?),
            _ => (text, default_port),
        };
        let bare = name
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        Ok(Self {
            name: bare.unwrap_or(name).to_owned(),
            port,
        })
    }

    /// Asks what the name means now. A name can have several addresses.
    ///
    /// # Errors
    /// When it means nothing, or nobody answers within `limit`.
    pub(super) async fn resolve(&self, limit: Duration) -> Result<Vec<Server>, SourceError> {
        let asking = tokio::net::lookup_host((self.name.as_str(), self.port));
        let found = match tokio::time::timeout(limit, asking).await {
            Ok(found) => found,
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        };
        let addresses = found.map_err(|source| SourceError::Io {
            server: self.to_string(),
            doing: "looking up its address",
            source,
        })?;
        Ok(addresses
            .map(|address| Server {
                name: self.name.clone(),
                address,
            })
            .collect())
    }
}

fn port(text: &str) -> Result<u16, ServerListError> {
    let port = text.trim().parse().ok().filter(|port| *port != 0);
    port.ok_or_else(|| ServerListError::Port(text.trim().to_owned()))
}

/// `db1:5432`, with brackets around an IPv6 address.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
            _ => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// `db1:5432, db2:5432`
impl fmt::Display for ServerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, host) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{host}")?;
        }
        Ok(())
    }
}

/// `db1:5432 (10.0.0.7)`, and the address alone where no name was given.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.parse::<IpAddr>().is_ok() {
            return write!(f, "{}", self.address);
        }
        write!(
            f,
            "{}:{} ({})",
            self.name,
            self.address.port(),
            self.address.ip()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_as_libpq_does() {
        for (hosts, ports, expected) in [
            ("db", "5432", "db:5432"),
            (" a , b ", "5432", "a:5432, b:5432"),
            ("a,b", "1, 2", "a:1, b:2"),
            ("a:7,b", "5432", "a:7, b:5432"),
            ("::1,[::2],[::3]:9", "5", "[::1]:5, [::2]:5, [::3]:9"),
        ] {
            let list = ServerList::new(hosts, ports).unwrap();
            assert_eq!(list.to_string(), expected);
        }
    }

    #[test]
    fn refuses_what_is_no_list() {
        use ServerListError::{Count, EmptyHost, Port};
        for (hosts, ports, expected) in [
            ("a,,b", "1", EmptyHost(2)),
            ("a", "0", Port("0".to_owned())),
            ("a:x", "1", Port("x".to_owned())),
            ("a,b", "1,2,3", Count { hosts: 2, ports: 3 }),
        ] {
            assert_eq!(ServerList::new(hosts, ports), Err(expected));
        }
    }

    #[test]
    fn a_server_is_shown_with_name_and_address() {
        let server = |name: &str, address: &str| Server {
            name: name.to_owned(),
            address: address.parse().unwrap(),
        };
        assert_eq!(
            server("db", "10.0.0.7:5432").to_string(),
            "db:5432 (10.0.0.7)"
        );
        assert_eq!(server("::1", "[::1]:5432").to_string(), "[::1]:5432");
    }
}
