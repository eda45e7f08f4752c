//! A lost database connection costs nothing: the same process goes on where it was, and what
//! the server sends again is not sent to the broker again (rule R4).

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::Setup;
use crate::support::proxy::{Fault, Framing, Proxy};
use crate::support::services::{OwnPostgres, Services};
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
async fn interruptions_cost_nothing(version: u32) {
    let postgres = OwnPostgres::start(version);
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
async fn a_postgresql_14_that_is_cut_off_or_restarted_costs_nothing() {
    interruptions_cost_nothing(14).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgresql_18_that_is_cut_off_or_restarted_costs_nothing() {
    interruptions_cost_nothing(18).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_dropped_while_streaming_is_an_error_and_never_made_anew() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let mut outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let drop_slot = format!(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{0}' AND active;
         SELECT pg_drop_replication_slot('{0}')",
        database.name
    );
    eventually("the slot is dropped", async || {
        database.sql.batch_execute(&drop_slot).await.ok()
    })
    .await;
    outboxd.says("is gone").await;
    assert_eq!(database.slot("slot_name").await, None);
    assert_eq!(outboxd.stop().await, 0);

    // Also not at the next start, in any process: the publication's comment remembers it.
    let setup = Setup::of(&database);
    let (code, said) = setup.fails();
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("is gone"), "{said}");
    assert_eq!(database.slot("slot_name").await, None);
    // The way out that it names.
    database
        .execute(&format!("COMMENT ON PUBLICATION {} IS NULL", database.name))
        .await;
    setup.start().await;
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
