//! What is measured is true, and rules and documentation name only what there is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::database::TestDatabase;
use crate::support::eventually;
use crate::support::outboxd::{Outboxd, Setup};
use crate::support::services::Services;

fn project(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(project(file)).expect(file)
}

/// Every word of the text that is a metric of ours.
fn metric_names(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("outboxd_"))
        .map(str::to_owned)
        .collect()
}

async fn metric_becomes(outboxd: &Outboxd, series: &str, expected: impl Fn(f64) -> bool) -> f64 {
    eventually(&format!("{series} is as expected"), async || {
        outboxd
            .metric(series)
            .await
            .filter(|value| expected(*value))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_documentation_name_exactly_what_is_measured() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let outboxd = Setup::of(&database).start().await;
    database.event("CLM-1", "{}").await;
    metric_becomes(&outboxd, "outboxd_last_progress_timestamp_seconds", |at| {
        at > 0.0
    })
    .await;
    database.all_confirmed().await;
    let (code, text) = outboxd.get("/metrics").await;
    assert_eq!(code, 200);
    // A family's own name, without what a histogram adds to it.
    let live: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .map(str::to_owned)
        .collect();
    let documented: BTreeSet<String> = read("docs/metrics.md")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split('`').nth(1))
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, live);
    // In rules only what stands in expressions counts, but texts must not mislead either.
    let rules = metric_names(&read("docker/prometheus/alerts.yml"));
    let tests = metric_names(&read("docker/prometheus/alerts_test.yml"));
    assert!(rules.is_subset(&live), "{:?}", rules.difference(&live));
    assert!(tests.is_subset(&rules), "{:?}", tests.difference(&rules));
    // Each is said to be what it is.
    for name in &live {
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
    }
}

#[test]
fn every_alert_fires_when_it_should_and_says_what_to_do() {
    let rules = read("docker/prometheus/alerts.yml");
    let tests = read("docker/prometheus/alerts_test.yml");
    let alerts: Vec<&str> = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "))
        .collect();
    for part in ["summary:", "meaning:", "action:"] {
        assert_eq!(rules.matches(part).count(), alerts.len(), "{part}");
    }
    for alert in alerts {
        for outcome in ["fires", "does not fire"] {
            assert!(
                tests.contains(&format!("\"{alert} {outcome}")),
                "{alert} {outcome}"
            );
        }
    }
    let promtool = Command::new("promtool")
        .args(["test", "rules", "alerts_test.yml"])
        .current_dir(project("docker/prometheus"))
        .output()
        .expect("promtool runs; dev/install brings it");
    assert!(
        promtool.status.success(),
        "{}{}",
        String::from_utf8_lossy(&promtool.stdout),
        String::from_utf8_lossy(&promtool.stderr)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_counted_by_topic_and_timed_from_their_commit() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let outboxd = Setup::of(&database).start().await;
    database
        .execute(
            "INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
             SELECT gen_random_uuid(), CASE WHEN n % 3 = 0 THEN 'order' ELSE 'claim' END, n::text, 'T', '{}'
             FROM generate_series(1, 300) AS n",
        )
        .await;
    database.event("CLM-1", "{}").await;
    for (topic, expected) in [("claim", 201.0), ("order", 100.0)] {
        let series = format!(
            r#"outboxd_events_delivered_total,topic="{}.{topic}.events""#,
            database.name
        );
        metric_becomes(&outboxd, &series, |events| events == expected).await;
    }
    let observed = outboxd
        .metric("outboxd_commit_to_acknowledged_seconds_count")
        .await;
    assert!(
        observed.is_some_and(|observed| observed >= 2.0),
        "{observed:?}"
    );
    for (series, expected) in [
        ("outboxd_in_flight_events", 0.0),
        ("outboxd_in_flight_bytes", 0.0),
        ("outboxd_oldest_unacknowledged_age_seconds", 0.0),
        ("outboxd_reconnects_total", 0.0),
    ] {
        metric_becomes(&outboxd, series, |value| value == expected).await;
    }
    // A lost connection is one error and one new stream.
    database
        .execute(&format!(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = '{}'",
            database.name
        ))
        .await;
    metric_becomes(&outboxd, "outboxd_reconnects_total", |count| count == 1.0).await;
    metric_becomes(&outboxd, r#"outboxd_errors_total,class="retry""#, |count| {
        count >= 1.0
    })
    .await;
}

/// BR-026: a lag of nothing while the disk fills.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_transaction_shows_as_retained_log_and_not_as_lag() {
    const MUCH: f64 = 30e6;
    let database = TestDatabase::with_outbox(Services::shared()).await;
    database.execute("CREATE TABLE other (filling text)").await;
    let outboxd = Setup::of(&database).start().await;
    metric_becomes(&outboxd, "outboxd_slot_active", |active| active == 1.0).await;
    metric_becomes(
        &outboxd,
        r#"outboxd_slot_wal_status,status="reserved""#,
        |is| is == 1.0,
    )
    .await;
    let idle = database.session().await;
    idle.batch_execute("BEGIN; INSERT INTO other VALUES ('open')")
        .await
        .unwrap();
    for _ in 0..4 {
        database
            .execute("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
            .await;
    }
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let retained = metric_becomes(&outboxd, "outboxd_slot_retained_wal_bytes", |bytes| {
        bytes > MUCH
    })
    .await;
    let lag = metric_becomes(&outboxd, "outboxd_slot_confirmed_lag_bytes", |bytes| {
        bytes < MUCH
    })
    .await;
    println!("a long transaction: {retained} bytes retained, confirmed lag {lag}");
    idle.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slot_is_watched_by_one_session_while_the_relay_waits() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let setup = Setup::of(&database);
    let _first = setup.start().await;
    let mut second = setup.spawn();
    second.says("waiting until it is free").await;
    // Read by the first.
    metric_becomes(&second, "outboxd_slot_active", |active| active == 1.0).await;
    metric_becomes(&second, "outboxd_slot_missing", |missing| missing == 0.0).await;
    let seen = second
        .metric("outboxd_slot_observed_timestamp_seconds")
        .await
        .unwrap();
    metric_becomes(&second, "outboxd_slot_observed_timestamp_seconds", |at| {
        at > seen
    })
    .await;
    assert_eq!(second.metric("outboxd_ready").await, Some(0.0));
    assert_eq!(second.metric("outboxd_streaming").await, Some(0.0));
}
