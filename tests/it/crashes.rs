//! Nothing is lost and nothing comes out of order, whenever outboxd is killed (rules R1 to R4).

use std::time::{Duration, Instant};

use tokio_postgres::types::PgLsn;

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::second_slot::{Log, SecondSlot};
use crate::support::services::Services;
use crate::support::topic::Record;
use crate::support::workload::{self, Verdict, Workload};

const KILLS: usize = 30;
/// Longest time between a start and its kill.
const LONGEST_LIFE: Duration = Duration::from_millis(1500);

/// What came twice is allowed here; all else is not.
#[track_caller]
fn nothing_but_duplicates(verdict: &Verdict) {
    let Verdict {
        missing,
        invented,
        out_of_order,
        duplicates: _,
    } = verdict;
    assert_eq!(
        (*missing, *invented, *out_of_order),
        (0, 0, 0),
        "{verdict:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_kills_at_random_moments_under_load_lose_nothing_and_keep_the_order() {
    let seed = match std::env::var("OUTBOXD_TEST_SEED") {
        Ok(seed) => seed.parse().expect("OUTBOXD_TEST_SEED is a number"),
        Err(_) => fastrand::u64(..),
    };
    println!("OUTBOXD_TEST_SEED={seed} chooses the same moments and transactions");
    let mut random = fastrand::Rng::with_seed(seed);
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    // What is committed before outboxd's slot exists is not its to deliver.
    assert_eq!(setup.start().await.stop().await, 0);
    let second = SecondSlot::create(&database).await;
    let load = Workload::start_seeded(&database, 8, random.u64(..)).await;

    let begun = Instant::now();
    let mut while_starting = 0;
    for _ in 0..KILLS {
        let mut outboxd = setup.spawn();
        // The moment is what this test is about: it comes when it comes, also during the start.
        // Squared, so that short lives are as much tried as long ones.
        tokio::time::sleep(LONGEST_LIFE.mul_f64(random.f64().powi(2))).await;
        outboxd.kill();
        while_starting += usize::from(!outboxd.log().contains("Streaming "));
    }
    let rate = load.transactions() as f64 / begun.elapsed().as_secs_f64();
    let _outboxd = setup.start().await;
    let (written, records) = load.delivered(&database).await;
    let log = second.read(&database).await;

    let by_numbers = workload::judge(&written, &records);
    let by_the_log = log.judge(&records);
    let (median, largest) = log.median_and_largest();
    println!(
        "{KILLS} x kill -9 at random moments, {while_starting} of them before it streamed, \
         under {rate:.0} transactions/s of {median} events in the median and {largest} at most: \
         {} events, {by_numbers:?}; by the second slot: {} events, {by_the_log:?}",
        written.len(),
        log.events().count(),
    );
    nothing_but_duplicates(&by_numbers);
    nothing_but_duplicates(&by_the_log);
    assert_eq!(written.len(), log.events().count(), "the oracles agree");
}

#[test]
fn the_oracles_notice_what_is_missing_invented_repeated_or_out_of_order() {
    let record = |id: &str, number: u64| Record {
        topic: String::new(),
        partition: 0,
        offset: 0,
        key: Some(b"k".to_vec()),
        value: Some(format!(r#"{{"n": {number}}}"#).into_bytes()),
        headers: vec![("id".to_owned(), Some(id.as_bytes().to_vec()))],
        timestamp: None,
    };
    let text = "BEGIN 7
table public.outbox: INSERT: id[uuid]:'a' aggregate_type[text]:'load'
table public.counters: UPDATE: key[text]:'k' n[bigint]:2
table public.outbox: INSERT: id[uuid]:'b' aggregate_type[text]:'load'
COMMIT 7
BEGIN 8
COMMIT 8
BEGIN 9
table public.outbox: INSERT: id[uuid]:'c' aggregate_type[text]:'load'
COMMIT 9
BEGIN 10
table public.outbox: INSERT: id[uuid]:'d' aggregate_type[text]:'load'
COMMIT 10";
    let log = Log::of(
        text.lines()
            .zip(1..)
            .map(|(line, at)| (PgLsn::from(at), line)),
    );
    let events: Vec<&str> = log.events().collect();
    assert_eq!(events, ["a", "b", "c", "d"]);
    let ends: Vec<u64> = log.transactions.iter().map(|one| one.end).collect();
    assert_eq!(ends, [5, 10, 13]);
    let written = events.iter().map(|id| (*id).to_owned()).collect();
    let (a, b, c, d) = (
        record("a", 1),
        record("b", 2),
        record("c", 3),
        record("d", 4),
    );
    for (topic, expected) in [
        (vec![&a, &b, &c, &d], [0, 0, 0, 0]),
        (vec![&a, &c, &d], [1, 0, 0, 0]),
        (vec![&a, &b, &record("x", 3), &c, &d], [0, 1, 0, 0]),
        (vec![&a, &b, &c, &b, &c, &d], [0, 0, 2, 0]),
        (vec![&a, &c, &b, &c, &d], [0, 0, 1, 1]),
    ] {
        let topic: Vec<Record> = topic.into_iter().cloned().collect();
        let [missing, invented, duplicates, out_of_order] = expected;
        let expected = Verdict {
            missing,
            invented,
            duplicates,
            out_of_order,
        };
        assert_eq!(log.judge(&topic), expected);
        assert_eq!(workload::judge(&written, &topic), expected);
    }
}
