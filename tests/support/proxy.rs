//! A TCP proxy between outboxd and PostgreSQL or Kafka that breaks connections in chosen ways.

use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What a connection suffers, from now on until something else is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// Nothing: all bytes pass.
    #[default]
    None,
    /// Nothing passes in these directions; it passes later if the fault goes away. Both ends
    /// can write until the buffers of the kernel are full.
    Stalled(Direction),
    /// The server's end is gone and nobody tells the client, as after a power cut of a
    /// firewall: its writes succeed, and nothing ever comes. Lasts for the connection's life.
    HalfOpen,
    /// At most so many bytes a second pass in each direction.
    Throttled(u32),
    /// Reset (RST) at both ends. As a fault of new connections: they are refused.
    Cut,
    /// Reset after so many further bytes from the server and, unless they are all there will
    /// be, in the middle of a message.
    CutInside(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToClient,
    ToServer,
    Both,
}

/// How the server's bytes fall into messages, so that a cut can be in the middle of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A type byte and a length that counts itself (protocol 3, from the server's first byte
    /// on: without TLS).
    Postgres,
    /// A length that does not count itself (without TLS).
    Kafka,
}

/// Ends, and cuts everything, when dropped.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    framing: Framing,
    target: Mutex<Option<String>>,
    /// Of connections still to come.
    fault: Mutex<Fault>,
    links: Mutex<Vec<Link>>,
    accepted: AtomicUsize,
}

/// One connection through the proxy, in the order of their arrival.
#[derive(Clone)]
pub struct Link {
    fault: watch::Sender<Fault>,
}

impl Proxy {
    /// Listens on a free port. Refuses connections until it is told the target.
    pub async fn new(framing: Framing) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            framing,
            target: Mutex::new(None),
            fault: Mutex::new(Fault::None),
            links: Mutex::new(Vec::new()),
            accepted: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            port,
            shared,
            accepting,
        }
    }

    /// In front of a server at `host:port`.
    pub async fn to(target: &str, framing: Framing) -> Self {
        let proxy = Self::new(framing).await;
        proxy.aim(target);
        proxy
    }

    /// Connects to `host:port` from now on.
    pub fn aim(&self, target: &str) {
        *lock(&self.shared.target) = Some(target.to_owned());
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sets the fault of every connection, those to come included.
    pub fn set(&self, fault: Fault) {
        self.set_new(fault);
        for link in self.links() {
            link.set(fault);
        }
    }

    /// Sets the fault of connections to come.
    pub fn set_new(&self, fault: Fault) {
        *lock(&self.shared.fault) = fault;
    }

    /// Resets the connections there are; new ones are not touched.
    pub fn cut(&self) {
        for link in self.links() {
            link.set(Fault::Cut);
        }
    }

    /// The connections still open, oldest first.
    pub fn links(&self) -> Vec<Link> {
        let mut links = lock(&self.shared.links);
        links.retain(Link::is_open);
        links.clone()
    }

    /// How many connections were ever accepted.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Link {
    /// Sets the fault of this connection.
    pub fn set(&self, fault: Fault) {
        // Nobody listens any more when it has ended meanwhile.
        let _ = self.fault.send(fault);
    }

    pub fn is_open(&self) -> bool {
        !self.fault.is_closed()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.expect("accept");
        let fault = *lock(&shared.fault);
        let target = lock(&shared.target).clone();
        shared.accepted.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = watch::channel(fault);
        lock(&shared.links).push(Link { fault: sender });
        tokio::spawn(serve(client, target, receiver, shared.framing));
    }
}

/// How a connection ended.
enum End {
    Closed,
    Reset,
    HalfOpen,
}

async fn serve(
    mut client: TcpStream,
    target: Option<String>,
    mut fault: watch::Receiver<Fault>,
    framing: Framing,
) {
    let refused = *fault.borrow() == Fault::Cut;
    let server = match target {
        Some(target) if !refused => TcpStream::connect(target).await.ok(),
        _ => None,
    };
    let Some(mut server) = server else {
        let _ = client.set_zero_linger();
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    match pass(&mut client, &mut server, &mut fault, framing).await {
        End::Closed => {}
        End::Reset => {
            let _ = (client.set_zero_linger(), server.set_zero_linger());
        }
        End::HalfOpen => {
            drop(server);
            let _ = fault.wait_for(|fault| *fault == Fault::Cut).await;
            let _ = client.set_zero_linger();
        }
    }
}

async fn pass(
    client: &mut TcpStream,
    server: &mut TcpStream,
    fault: &mut watch::Receiver<Fault>,
    framing: Framing,
) -> End {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let mut upwards = Pump {
        direction: Direction::ToServer,
        fault: fault.clone(),
        frames: None,
    };
    let mut downwards = Pump {
        direction: Direction::ToClient,
        fault: fault.clone(),
        frames: Some(Frames::new(framing)),
    };
    let both = async {
        tokio::try_join!(
            upwards.run(from_client, to_server),
            downwards.run(from_server, to_client)
        )
    };
    let broken = fault.wait_for(|fault| matches!(fault, Fault::Cut | Fault::HalfOpen));
    tokio::select! {
        biased;
        fault = broken => match fault.as_deref() {
            Ok(Fault::HalfOpen) => End::HalfOpen,
            // The proxy is gone in case of an error.
            _ => End::Reset,
        },
        ended = both => match ended {
            Ok(_) => End::Closed,
            Err(_) => End::Reset,
        },
    }
}

/// Carries the bytes of one direction.
struct Pump {
    direction: Direction,
    fault: watch::Receiver<Fault>,
    frames: Option<Frames>,
}

impl Pump {
    async fn run(&mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
        let mut buffer = vec![0; 16 * 1024];
        // Bytes of the server still to pass before a cut, and the fault they are counted for.
        let mut cut = None;
        loop {
            let held = |fault: &Fault| matches!(fault, Fault::Stalled(which) if *which == self.direction || *which == Direction::Both);
            let fault = match self.fault.wait_for(|fault| !held(fault)).await {
                Ok(fault) => *fault,
                Err(_) => return Err(io::ErrorKind::ConnectionReset.into()),
            };
            let limit = match fault {
                // An eighth of a second's worth at a time.
                Fault::Throttled(rate) => (rate as usize / 8).clamp(1, buffer.len()),
                _ => buffer.len(),
            };
            let size = tokio::select! {
                biased;
                changed = self.fault.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Err(io::ErrorKind::ConnectionReset.into()),
                },
                size = from.read(&mut buffer[..limit]) => size?,
            };
            if size == 0 {
                return to.shutdown().await;
            }
            let mut bytes = &buffer[..size];
            if let (Fault::CutInside(after), Some(frames)) = (fault, &mut self.frames) {
                let left = cut.get_or_insert(after);
                let (passing, is_last) = frames.until_inside(bytes, *left);
                *left -= passing.min(*left);
                bytes = &bytes[..passing];
                if is_last {
                    to.write_all(bytes).await?;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            } else {
                cut = None;
                if let Some(frames) = &mut self.frames {
                    frames.advance(bytes);
                }
            }
            if let Fault::Throttled(rate) = fault {
                tokio::time::sleep(Duration::from_secs(1).mul_f64(size as f64 / f64::from(rate)))
                    .await;
            }
            to.write_all(bytes).await?;
        }
    }
}

/// Where in a message the bytes that have passed end.
pub struct Frames {
    framing: Framing,
    /// The header of the message under way, as far as it has passed.
    header: Vec<u8>,
    /// Bytes of it still to come after its header.
    body: usize,
}

impl Frames {
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            header: Vec::new(),
            body: 0,
        }
    }

    fn is_boundary(&self) -> bool {
        self.header.is_empty() && self.body == 0
    }

    fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.body > 0 {
            self.body -= 1;
            return;
        }
        self.header.push(byte);
        let body = match (self.framing, self.header.as_slice()) {
            (Framing::Postgres, [_, a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]) - 4,
            (Framing::Kafka, [a, b, c, d]) => u32::from_be_bytes([*a, *b, *c, *d]),
            _ => return,
        };
        self.body = body as usize;
        self.header.clear();
    }

    /// How many of `bytes` pass when the cut comes after `left` more, but not between two
    /// messages; and whether it comes there.
    pub fn until_inside(&mut self, bytes: &[u8], left: usize) -> (usize, bool) {
        for (index, byte) in bytes.iter().enumerate() {
            if index >= left && !self.is_boundary() {
                return (index, true);
            }
            self.step(*byte);
        }
        (bytes.len(), false)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no test panics while it holds this")
}
