//! Which server it is: lists, names, standbys and what only looks like a server.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::database::{TestDatabase, connect};
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};

/// Nothing listens on it: it is reserved (IANA, tcpmux) and no test asks for it.
const DEAD_PORT: u16 = 1;

#[tokio::test(flavor = "multi_thread")]
async fn the_next_host_is_tried_when_one_cannot_be_reached() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let port = database.services.pg_port;
    let mut setup = Setup::of(&database);
    setup.set(
        "database.hostname",
        "no-such-host.invalid,127.0.0.1,localhost",
    );
    setup.set("database.port", &format!("{port},{DEAD_PORT},{port}"));
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    assert!(
        outboxd.log().contains(&format!("at localhost:{port} (")),
        "{}",
        outboxd.log()
    );
    assert_eq!(outboxd.stop().await, 0);

    // None is left: each is named, and it goes on trying.
    setup.set("database.hostname", "no-such-host.invalid,127.0.0.1");
    setup.set("database.port", &DEAD_PORT.to_string());
    let mut outboxd = setup.spawn();
    outboxd
        .says("no server of database.hostname can be used now")
        .await;
    for reason in [
        "no-such-host.invalid:1 failed while looking up its address",
        "127.0.0.1:1 failed while connecting: Connection refused",
    ] {
        assert!(outboxd.log().contains(reason), "{}", outboxd.log());
    }
    assert_eq!(outboxd.stop().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_ends_the_search() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let port = database.services.pg_port;
    let mut setup = Setup::of(&database);
    setup.set("database.hostname", "localhost,127.0.0.1");
    setup.set("database.port", &format!("{port},{DEAD_PORT}"));
    setup.set("database.password", "S3cr3t-wrong");
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("28P01") && !said.contains("refused;"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_recovery_is_waited_for() {
    let postgres = OwnPostgres::start();
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    postgres.become_standby();
    outboxd.says("is in recovery").await;

    let standby = database.session().await;
    standby.execute("SELECT pg_promote()", &[]).await.unwrap();
    eventually("it streams again", async || {
        (outboxd.log().matches("Streaming ").count() > 1).then_some(())
    })
    .await;
    assert_eq!(outboxd.stop().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_in_recovery_is_passed_over() {
    let standby = OwnPostgres::start();
    let database = TestDatabase::with_outbox(Services::shared()).await;
    connect(standby.port(), "postgres")
        .await
        .batch_execute(&format!("CREATE DATABASE {}", database.name))
        .await
        .unwrap();
    standby.become_standby();
    let port = database.services.pg_port;
    let mut setup = Setup::of(&database);
    setup.set("database.hostname", "localhost,localhost");
    setup.set("database.port", &format!("{},{port}", standby.port()));
    let mut outboxd = setup.start().await;
    assert!(
        outboxd.log().contains(&format!("at localhost:{port} (")),
        "{}",
        outboxd.log()
    );
    assert_eq!(outboxd.stop().await, 0);
}

/// Lets ordinary sessions through and refuses the other kind, as PgBouncer before 1.23 does.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_is_recognised() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(pooler(listener, database.services.pg_port));
    let mut setup = Setup::of(&database);
    setup.set("database.hostname", "127.0.0.1");
    setup.set("database.port", &port.to_string());
    setup.set("database.sslmode", "disable");
    let setup = std::sync::Arc::new(setup);
    let (code, said) = tokio::task::spawn_blocking(move || setup.fails())
        .await
        .unwrap();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("looks like a connection pooler"), "{said}");
}

async fn pooler(listener: TcpListener, pg_port: u16) {
    const REFUSAL: &[u8] = b"SFATAL\0C08P01\0Munsupported startup parameter: replication\0\0";
    while let Ok((mut client, _)) = listener.accept().await {
        tokio::spawn(async move {
            let length = client.read_u32().await.unwrap();
            let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
            client.read_exact(&mut startup).await.unwrap();
            if startup.windows(12).any(|part| part == b"replication\0") {
                client.write_u8(b'E').await.unwrap();
                let length = u32::try_from(REFUSAL.len() + 4).unwrap();
                client.write_u32(length).await.unwrap();
                client.write_all(REFUSAL).await.unwrap();
                return;
            }
            let mut server = TcpStream::connect(("127.0.0.1", pg_port)).await.unwrap();
            server.write_u32(length).await.unwrap();
            server.write_all(&startup).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}
