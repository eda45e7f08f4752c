//! A lost database connection costs nothing: the same process goes on where it was, and what
//! the server sends again is not sent to the broker again (rule R4).

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::proxy::{Fault, Framing, Proxy};
use crate::support::services::{OwnPostgres, Services, postgres_version};
use crate::support::topic;
use crate::support::workload::{Verdict, Workload};

/// How a connection ends without outboxd's doing.
#[derive(Debug, Clone, Copy)]
enum Interruption {
    /// The network cuts it in the middle of a message, after so many bytes.
    Cut(usize),
    /// An administrator ends the server's process behind it.
    Ended,
    /// The server is stopped this way, and started again.
    Restarted(&'static str),
}

use Interruption::{Cut, Ended, Restarted};

/// Odd sizes, so that the cuts fall into all kinds of messages.
const INTERRUPTIONS: [Interruption; 14] = [
    Cut(1),
    Ended,
    Restarted("fast"),
    Cut(1_001),
    Cut(3_003),
    Ended,
    Restarted("immediate"),
    Cut(10_007),
    Ended,
    Restarted("fast"),
    Cut(31_013),
    Ended,
    Restarted("kill"),
    Cut(70_001),
];

/// Interrupts the connection in all these ways under load, with so many transactions remembered
/// (`outboxd.resume.transactions`); what the topic then shows.
async fn interrupted_under_load(postgres: &OwnPostgres, remembered: &str) -> (usize, Verdict) {
    let mut database = TestDatabase::with_outbox(Services::shared().with_postgres(postgres)).await;
    let target = format!("127.0.0.1:{}", postgres.port());
    let proxy = Proxy::to(&target, Framing::Postgres).await;
    let mut setup = Setup::of(&database);
    setup.database_behind(&proxy);
    setup.set("outboxd.resume.transactions", remembered);
    let mut outboxd = setup.start().await;
    let load = Workload::start(&database, 4).await;
    for (round, interruption) in INTERRUPTIONS.into_iter().enumerate() {
        let target = load.committed() + 500;
        eventually("the writers go on", async || {
            (load.committed() > target).then_some(())
        })
        .await;
        match interruption {
            Cut(after) => {
                // Those there are, and not those that follow.
                for link in proxy.links() {
                    link.set(Fault::CutInside(after));
                }
            }
            Ended => end_session(&database).await,
            Restarted(mode) => {
                postgres.stop(mode);
                postgres.start_again(&[]);
                database.reconnect().await;
            }
        }
        eventually("it streams again", async || {
            (outboxd.log().matches("Streaming ").count() > round + 1).then_some(())
        })
        .await;
    }
    let (events, verdict) = load.judge(&database).await;
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
    (events, verdict)
}

/// Ends the server's process that streams to outboxd.
async fn end_session(database: &TestDatabase) {
    database
        .execute(&format!(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
            database.name
        ))
        .await;
}

/// The same interruptions with the memory of what was handed over, and without it: that they
/// repeat events without it shows what it is for, and that the test would notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cuts_off_or_restarts_costs_nothing() {
    let postgres = OwnPostgres::start();
    let version = postgres_version();
    for remembered in ["65536", "0"] {
        let (events, verdict) = interrupted_under_load(&postgres, remembered).await;
        println!(
            "PostgreSQL {version} restarted and its connections broken {} times under load, {remembered} transactions remembered: {events} events, {verdict:?}",
            INTERRUPTIONS.len()
        );
        let expected = Verdict {
            duplicates: verdict.duplicates,
            ..Verdict::default()
        };
        assert_eq!(verdict, expected);
        assert_eq!(verdict.duplicates > 0, remembered == "0", "{verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_reconnects_leave_nothing_behind_and_never_take_a_third_session() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut setup = Setup::of(&database);
    // The catalog is asked whenever the stream describes the table.
    for converter in ["key.converter", "value.converter"] {
        setup.set(converter, "org.apache.kafka.connect.json.JsonConverter");
    }
    let mut outboxd = setup.start().await;
    let watcher = database.session().await;
    let (tell, mut ended) = tokio::sync::oneshot::channel::<()>();
    let name = database.name.clone();
    let watching = tokio::spawn(async move {
        let mut most = 0_i64;
        while ended.try_recv() == Err(tokio::sync::oneshot::error::TryRecvError::Empty) {
            let sessions = watcher
                .query_one(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name = 'outboxd'",
                    &[&name],
                )
                .await
                .expect("the server answers");
            most = most.max(sessions.get(0));
        }
        most
    });
    let mut early = (0, 0);
    for round in 1..=500 {
        database.event("CLM-1", "{}").await;
        database.all_confirmed().await;
        if round == 20 {
            early = outboxd.threads_and_descriptors();
        }
        database
            .execute(&format!(
                "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}' AND active",
                database.name
            ))
            .await;
    }
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let late = outboxd.threads_and_descriptors();
    let _ = tell.send(());
    let most = watching.await.unwrap();
    let reconnects = outboxd.metric("outboxd_reconnects_total").await;
    println!(
        "{reconnects:?} reconnects: threads and descriptors {early:?} after 20, {late:?} at the end; at most {most} sessions"
    );
    assert!(reconnects >= Some(500.0));
    // A thread of tokio's for blocking work comes and goes.
    assert!(late.0 <= early.0 + 2 && late.1 <= early.1 + 2);
    // One that was ended or dropped can still be seen for a moment.
    assert!(most <= 3, "{most} sessions");
    assert_eq!(outboxd.stop().await, 0);
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&database.services.kafka, &topic), 501);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_after_the_start_leaves_the_process_up_and_stoppable() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    // An event that no topic can take.
    database
        .execute("INSERT INTO outbox VALUES (gen_random_uuid(), 'not a topic', 'k', 't', '{}')")
        .await;
    outboxd.says("Failed.").await;
    assert!(outboxd.log().contains("not a topic"), "{}", outboxd.log());
    assert_eq!(outboxd.stop().await, 0);
}
