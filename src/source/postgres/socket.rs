use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use postgres_protocol::authentication::sasl::ChannelBinding;
use postgres_protocol::message::frontend;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::error::is_tls_refusal;
use super::server_list::Server;
use super::{SourceError, tls};

/// A server that does not take our few bytes for this long is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// A peer that acknowledges nothing for this long is gone: what we sent last, or a probe.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(15);
/// Time between two probes, and of silence before the first.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Probes without an answer until the peer is gone; with the above, within 15 s.
const PROBES: u32 = 2;

/// A byte stream in both directions, encrypted or not.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection on which the startup message may be sent.
pub(super) struct Socket {
    pub(super) io: Box<dyn Duplex>,
    pub(super) is_encrypted: bool,
    /// What a SCRAM login can be bound to, where encrypted.
    pub(super) binding: Option<ChannelBinding>,
}

/// Whether one attempt to connect asks for TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    /// It does not.
    Never,
    /// It does, and goes on in the clear where the server has none.
    IfOffered,
    /// It does, and ends where the server has none.
    Always,
}

impl Socket {
    /// Connects to the server's address and encrypts before anything else is said
    /// (PostgreSQL documentation, "SSL Session Encryption").
    ///
    /// # Errors
    /// When the server cannot be reached, has no TLS, or its certificate or ours is refused.
    pub(super) async fn open(
        server: &Server,
        keepalive: bool,
        encryption: Encryption,
        config: &Arc<ClientConfig>,
    ) -> Result<Self, SourceError> {
        let io_error = |doing| {
            move |source| SourceError::Io {
                server: server.to_string(),
                doing,
                source,
            }
        };
        let mut socket = TcpStream::connect(server.address)
            .await
            .map_err(io_error("connecting"))?;
        notice_a_dead_peer(&socket, keepalive).map_err(io_error("connecting"))?;
        // Positions are few bytes and should leave at once.
        socket.set_nodelay(true).map_err(io_error("connecting"))?;
        if encryption == Encryption::Never {
            return Ok(Self::plain(socket));
        }
        let mut request = BytesMut::new();
        frontend::ssl_request(&mut request);
        write_all(&mut socket, &mut request)
            .await
            .map_err(io_error("asking for TLS"))?;
        match (
            socket.read_u8().await.map_err(io_error("asking for TLS"))?,
            encryption,
        ) {
            (b'S', _) => {}
            (b'N', Encryption::IfOffered) => return Ok(Self::plain(socket)),
            (b'N', _) => {
                return Err(SourceError::Tls(format!(
                    "database.sslmode asks for TLS, but the server at {server} has none; set ssl=on there, or database.sslmode=disable here if the network is trusted"
                )));
            }
            // What it says is not shown: nobody knows yet who says it (CVE-2024-10977).
            _ => {
                return Err(SourceError::NotYet(format!(
                    "the server at {server} answered the request for TLS with an error; its log says which"
                )));
            }
        }
        let name = ServerName::try_from(server.name.clone()).map_err(|_| {
            SourceError::Tls(format!(
                "database.hostname '{}' is no host name that a certificate could be for",
                server.name
            ))
        })?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, socket).await.map_err(|error| {
            if is_tls_refusal(&error) {
                SourceError::tls_refused(server, &error)
            } else {
                io_error("setting up TLS")(error)
            }
        })?;
        let certificate = stream.get_ref().1.peer_certificates();
        let binding = certificate
            .and_then(|chain| chain.first())
            .and_then(tls::channel_binding);
        Ok(Self {
            io: Box::new(stream),
            is_encrypted: true,
            binding,
        })
    }

    fn plain(socket: TcpStream) -> Self {
        Self {
            io: Box::new(socket),
            is_encrypted: false,
            binding: None,
        }
    }
}

/// Lets the kernel end a connection whose other end is gone without a word: idle ones by
/// probes (`database.tcpKeepAlive`), ones with unacknowledged data by a time limit (Linux:
/// `TCP_USER_TIMEOUT`, tcp(7)).
fn notice_a_dead_peer(socket: &TcpStream, keepalive: bool) -> std::io::Result<()> {
    let socket = SockRef::from(socket);
    if keepalive {
        let probes = TcpKeepalive::new()
            .with_time(PROBE_INTERVAL)
            .with_interval(PROBE_INTERVAL)
            .with_retries(PROBES);
        socket.set_tcp_keepalive(&probes)?;
    }
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_LIMIT))?;
    Ok(())
}

/// Writes all that waits in `outbound`.
///
/// # Errors
/// The socket's own, or `TimedOut` when the server takes nothing for 20 s.
pub(super) async fn write_all(
    io: &mut (impl AsyncWrite + Unpin),
    outbound: &mut BytesMut,
) -> std::io::Result<()> {
    let writing = async {
        io.write_all_buf(outbound).await?;
        io.flush().await
    };
    match tokio::time::timeout(WRITE_TIMEOUT, writing).await {
        Ok(outcome) => outcome,
        Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_is_told_when_a_peer_counts_as_gone() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for keepalive in [true, false] {
            let socket = TcpStream::connect(address).await.unwrap();
            notice_a_dead_peer(&socket, keepalive).unwrap();
            let socket = SockRef::from(&socket);
            assert_eq!(socket.keepalive().unwrap(), keepalive);
            assert_eq!(
                socket.tcp_user_timeout().unwrap(),
                Some(UNACKNOWLEDGED_LIMIT)
            );
            if keepalive {
                assert_eq!(socket.tcp_keepalive_time().unwrap(), PROBE_INTERVAL);
                assert_eq!(socket.tcp_keepalive_interval().unwrap(), PROBE_INTERVAL);
                assert_eq!(socket.tcp_keepalive_retries().unwrap(), PROBES);
            }
        }
    }
}
