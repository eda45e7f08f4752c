//! The fault proxy does what its faults say, and outboxd works through it.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::proxy::{Direction, Fault, Frames, Framing, Proxy};
use crate::support::services::{OwnKafka, Services};
use crate::support::{PATIENCE, eventually, topic};

/// A connection through a proxy of its own, seen from both ends.
struct Connection {
    proxy: Proxy,
    client: TcpStream,
    server: TcpStream,
    listener: TcpListener,
}

impl Connection {
    async fn new(framing: Framing) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap().to_string();
        let proxy = Proxy::to(&target, framing).await;
        let client = TcpStream::connect(proxy.address()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        Self {
            proxy,
            client,
            server,
            listener,
        }
    }

    async fn server_says(&mut self, text: &[u8]) {
        self.server.write_all(text).await.unwrap();
        assert_eq!(read(&mut self.client, text.len()).await.unwrap(), text);
    }

    async fn client_says(&mut self, text: &[u8]) {
        self.client.write_all(text).await.unwrap();
        assert_eq!(read(&mut self.server, text.len()).await.unwrap(), text);
    }
}

async fn read(stream: &mut TcpStream, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size];
    let reading = stream.read_exact(&mut bytes);
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("bytes or an end")?;
    Ok(bytes)
}

/// What still comes before the end, and how it ends.
async fn rest(stream: &mut TcpStream) -> (Vec<u8>, Option<io::ErrorKind>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let reading = tokio::time::timeout(PATIENCE, stream.read(&mut buffer));
        match reading.await.expect("an end") {
            Ok(0) => return (bytes, None),
            Ok(size) => bytes.extend_from_slice(&buffer[..size]),
            Err(error) => return (bytes, Some(error.kind())),
        }
    }
}

/// Nothing is there to be read; asked after something that came later went another way.
fn is_silent(stream: &TcpStream) -> bool {
    let nothing = stream.try_read(&mut [0; 1]);
    nothing.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn without_a_fault_bytes_and_ends_pass() {
    let mut connection = Connection::new(Framing::Kafka).await;
    connection.client_says(b"question").await;
    connection.server_says(b"answer").await;
    assert_eq!(connection.proxy.accepted(), 1);
    assert_eq!(connection.proxy.links().len(), 1);
    connection.client.shutdown().await.unwrap();
    assert_eq!(rest(&mut connection.server).await, (Vec::new(), None));
    // The other way is still open.
    connection.server_says(b"last words").await;
    drop(connection.server);
    assert_eq!(rest(&mut connection.client).await, (Vec::new(), None));
    eventually("the link ends", async || {
        connection.proxy.links().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cut_is_a_reset_at_both_ends() {
    let mut connection = Connection::new(Framing::Kafka).await;
    connection.server_says(b"before").await;
    connection.proxy.cut();
    let reset = (Vec::new(), Some(io::ErrorKind::ConnectionReset));
    assert_eq!(rest(&mut connection.client).await, reset);
    assert_eq!(rest(&mut connection.server).await, reset);
    // Later ones are not touched.
    connection.client = TcpStream::connect(connection.proxy.address())
        .await
        .unwrap();
    (connection.server, _) = connection.listener.accept().await.unwrap();
    connection.client_says(b"again").await;
    assert_eq!(connection.proxy.accepted(), 2);
}

#[tokio::test]
async fn a_stall_holds_its_direction_back_and_loses_nothing() {
    let mut connection = Connection::new(Framing::Kafka).await;
    let proxy = &connection.proxy;
    proxy.set(Fault::Stalled(Direction::ToClient));
    connection.server.write_all(b"held back").await.unwrap();
    connection.client.write_all(b"passes").await.unwrap();
    read(&mut connection.server, 6).await.unwrap();
    assert!(is_silent(&connection.client));
    connection.proxy.set(Fault::Stalled(Direction::ToServer));
    read(&mut connection.client, 9).await.unwrap();
    connection.client.write_all(b"held back").await.unwrap();
    connection.server_says(b"passes").await;
    assert!(is_silent(&connection.server));
    connection.proxy.set(Fault::None);
    assert_eq!(read(&mut connection.server, 9).await.unwrap(), b"held back");
}

#[tokio::test]
async fn half_open_the_server_sees_an_end_and_the_client_nothing() {
    let mut connection = Connection::new(Framing::Kafka).await;
    connection.server_says(b"before").await;
    connection.proxy.set(Fault::HalfOpen);
    rest(&mut connection.server).await;
    assert!(is_silent(&connection.client));
    connection.client.write_all(b"into the void").await.unwrap();
    assert!(is_silent(&connection.client));
    connection.proxy.cut();
    let (_, end) = rest(&mut connection.client).await;
    assert_eq!(end, Some(io::ErrorKind::ConnectionReset));
}

/// Three messages of 9, 5 and 8 bytes, as PostgreSQL frames them.
const MESSAGES: &[u8] = b"D\0\0\0\x08bodyC\0\0\0\x04d\0\0\0\x07xyz";

#[test]
fn a_cut_inside_a_message_is_never_between_two() {
    for after in 0..MESSAGES.len() {
        let expected = if matches!(after, 0 | 9 | 14) {
            after + 1
        } else {
            after
        };
        let mut frames = Frames::new(Framing::Postgres);
        assert_eq!(frames.until_inside(MESSAGES, after), (expected, true));
        // The same however the bytes are read.
        let mut frames = Frames::new(Framing::Postgres);
        let passed = MESSAGES.iter().enumerate().position(|(index, byte)| {
            let left = after.saturating_sub(index);
            frames.until_inside(std::slice::from_ref(byte), left) == (0, true)
        });
        assert_eq!(passed, Some(expected));
    }
    let mut frames = Frames::new(Framing::Kafka);
    let messages = b"\0\0\0\x03abc\0\0\0\x01d";
    assert_eq!(frames.until_inside(messages, 7), (8, true));
}

#[tokio::test]
async fn a_cut_inside_a_message_resets_both_ends() {
    let mut connection = Connection::new(Framing::Postgres).await;
    connection.server_says(&MESSAGES[..9]).await;
    connection.proxy.set(Fault::CutInside(3));
    connection.server.write_all(&MESSAGES[9..]).await.unwrap();
    let (got, end) = rest(&mut connection.client).await;
    assert_eq!(end, Some(io::ErrorKind::ConnectionReset));
    // A reset throws away what its receiver has not read yet.
    assert!(got.len() <= 3, "{got:?}");
    let (_, end) = rest(&mut connection.server).await;
    assert_eq!(end, Some(io::ErrorKind::ConnectionReset));
}

#[tokio::test]
async fn throttled_all_bytes_come_slowly() {
    let mut connection = Connection::new(Framing::Kafka).await;
    connection.proxy.set(Fault::Throttled(80_000));
    let bytes = vec![7; 40_000];
    let begun = Instant::now();
    connection.server_says(&bytes).await;
    println!("40,000 bytes at 80,000 a second took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn outboxd_delivers_through_proxies_and_again_after_each_was_cut() {
    let kafka_proxy = Proxy::new(Framing::Kafka).await;
    let kafka = OwnKafka::start_behind(&kafka_proxy);
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let target = format!("127.0.0.1:{}", database.services.pg_port);
    let database_proxy = Proxy::to(&target, Framing::Postgres).await;
    let mut setup = Setup::of(&database);
    setup.database_behind(&database_proxy);
    setup.kafka_behind(&kafka_proxy);
    let _outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;

    kafka_proxy.cut();
    database.event("CLM-2", "{}").await;
    database.all_confirmed().await;

    let before = database_proxy.accepted();
    database_proxy.cut();
    database.event("CLM-3", "{}").await;
    database.all_confirmed().await;
    assert!(database_proxy.accepted() > before);

    let keys: Vec<String> =
        topic::read_all(&kafka.address(), &format!("{}.claim.events", database.name))
            .iter()
            .map(|record| record.key_text())
            .collect();
    for key in ["CLM-1", "CLM-2", "CLM-3"] {
        assert!(keys.iter().any(|found| found == key), "{keys:?}");
    }
    println!(
        "connections: {} to PostgreSQL, {} to Kafka",
        database_proxy.accepted(),
        kafka_proxy.accepted()
    );
}
