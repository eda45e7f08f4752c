//! An idle outbox holds back no log, however busy the rest of the server is (rule R2).

use std::time::Instant;

use crate::support::database::{OUTBOX, TestDatabase};
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnPostgres, Services};

/// How much log the others write, in MB.
const WRITTEN: i64 = 500;
/// How much of it may be unconfirmed, or be kept because of the slot.
const BOUND: i64 = 32;

/// Not compressed, so that what is written is what the log grows by.
const ELSEWHERE: &str = "CREATE TABLE elsewhere (content text);
     ALTER TABLE elsewhere ALTER content SET STORAGE EXTERNAL";

/// Writes about 1 MB of log into a table of this database.
async fn write_elsewhere(database: &TestDatabase) {
    let sql = "INSERT INTO elsewhere SELECT repeat('x', 100000) FROM generate_series(1, 10)";
    database.execute(sql).await;
}

/// How far the server has decoded the log for outboxd.
const DECODED: &str = "(SELECT sent_lsn FROM pg_stat_replication WHERE pid = active_pid)";

/// A difference of two positions in KiB.
async fn kib(database: &TestDatabase, later: &str, earlier: &str) -> i64 {
    let sql = format!(
        "SELECT (pg_wal_lsn_diff({later}, {earlier}) / 1024)::bigint::text FROM pg_replication_slots WHERE slot_name = '{}'",
        database.name
    );
    database.ask(&sql).await.unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_server_is_not_held_back_by_an_idle_outbox() {
    // Its own, so that nobody else writes or makes checkpoints.
    let postgres = OwnPostgres::start();
    let services = Services::shared().with_postgres(&postgres);
    let database = TestDatabase::empty(services.clone()).await;
    let other = TestDatabase::empty(services).await;
    database.execute(OUTBOX).await;
    for written in [&database, &other] {
        written.execute(ELSEWHERE).await;
    }
    // No more rights than it needs: it could not write a heartbeat.
    database
        .execute(&format!(
            "CREATE ROLE reader LOGIN REPLICATION PASSWORD 'reader';
             GRANT SELECT ON outbox TO reader;
             CREATE PUBLICATION {} FOR TABLE outbox",
            database.name
        ))
        .await;
    let mut setup = Setup::of(&database);
    setup.set("database.user", "reader");
    setup.set("database.password", "reader");
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;

    let begin = database.wal_end().await;
    let begun = Instant::now();
    let (mut samples, mut most_unconfirmed, mut most_retained) = (0, 0, 0);
    let end = "pg_current_wal_lsn()";
    while kib(&database, end, &format!("'{begin}'")).await < WRITTEN * 1024 {
        write_elsewhere(if samples % 2 == 0 { &database } else { &other }).await;
        let unconfirmed = kib(&database, end, "confirmed_flush_lsn").await;
        assert!(
            unconfirmed < BOUND * 1024,
            "{unconfirmed} KiB are unconfirmed after {samples} MB"
        );
        // The server tells how far it is when it has decoded what there was, and on a busy machine
        // it decodes more slowly than we write. That is not what this test is about.
        eventually("the server keeps up", async || {
            (kib(&database, end, DECODED).await < BOUND * 1024 / 8).then_some(())
        })
        .await;
        most_unconfirmed = most_unconfirmed.max(unconfirmed);
        most_retained = most_retained.max(kib(&database, end, "restart_lsn").await);
        samples += 1;
    }
    let written = begun.elapsed();

    // The server moves what it keeps at its own pace: with a note of running transactions in the
    // log, every 15 s or at a checkpoint.
    let begun = Instant::now();
    let retained = eventually("the server lets go of the log", async || {
        let retained = kib(&database, end, "restart_lsn").await;
        (retained < BOUND * 1024).then_some(retained)
    })
    .await;
    println!(
        "{WRITTEN} MB of log written by others in {written:.1?} ({samples} samples): at most {most_unconfirmed} KiB unconfirmed and {most_retained} KiB retained; \
         {retained} KiB retained {:.1?} after the end",
        begun.elapsed()
    );
    assert_eq!(outboxd.log().matches("Streaming ").count(), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}

/// BR-024: nothing but the server's own records, and no heartbeat that would move anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_which_nothing_happens_keeps_no_log_for_an_idle_outbox() {
    const SEGMENT: i64 = 16 * 1024;
    let postgres = OwnPostgres::start();
    let database = TestDatabase::with_outbox(Services::shared().with_postgres(&postgres)).await;
    let mut outboxd = Setup::of(&database).start().await;
    let begin = database.wal_end().await;
    let end = "pg_current_wal_lsn()";
    while kib(&database, end, &format!("'{begin}'")).await < 30 * SEGMENT {
        database.execute("SELECT pg_switch_wal(); CHECKPOINT").await;
    }
    eventually("the server lets go of the log", async || {
        database.execute("CHECKPOINT").await;
        (kib(&database, end, "restart_lsn").await < 10 * SEGMENT).then_some(())
    })
    .await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
