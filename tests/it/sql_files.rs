//! The files in `sql/` do what their comments say, run by psql as a person would.

use std::path::Path;
use std::process::Command;

use crate::support::database::{TestDatabase, connect};
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic;

fn psql(database: &TestDatabase, file: &str, variables: &[&str]) -> String {
    let output = Command::new("psql")
        .args([
            "-X",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "localhost",
            "-U",
            "postgres",
            "-d",
            &database.name,
        ])
        .args(["-p", &database.services.pg_port.to_string()])
        .args(variables.iter().flat_map(|variable| ["-v", variable]))
        .arg("-f")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(file))
        .env("PGPASSWORD", "postgres")
        .output()
        .expect("psql runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{file}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

/// The whole way with the role that `role.sql` makes, which may write nothing.
#[tokio::test(flavor = "multi_thread")]
async fn table_role_publication_slot_lag_and_cleanup_work_together() {
    let database = TestDatabase::empty(Services::shared()).await;
    psql(&database, "outbox.sql", &[]);
    psql(&database, "role.sql", &["password=it's"]);
    psql(&database, "publication.sql", &[]);
    // Twice, since it makes the slot only where it is missing.
    psql(&database, "slot.sql", &[]);
    psql(&database, "slot.sql", &[]);
    let mut setup = Setup::of(&database);
    setup.set("database.user", "debezium");
    setup.set("database.password", "it's");
    setup.set("publication.name", "claims_outbox_pub");
    let _outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;

    let lag = psql(&database, "slot-lag.sql", &[]);
    assert!(
        lag.contains(&database.name) && lag.contains("reserved"),
        "{lag}"
    );

    database
        .execute("UPDATE outbox SET created_at = now() - interval '8 days'")
        .await;
    database.event("CLM-2", "{}").await;
    psql(&database, "cleanup.sql", &["days=7"]);
    assert_eq!(
        database
            .ask("SELECT string_agg(aggregate_id, ',') FROM outbox")
            .await
            .as_deref(),
        Some("CLM-2")
    );
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(
        records.len(),
        2,
        "neither the update nor the deletion is an event"
    );

    psql(&database, "processed-events.sql", &[]);
    database
        .execute(
            "INSERT INTO processed_events (consumer, event_id) VALUES ('c', gen_random_uuid())",
        )
        .await;

    // The role is the server's, not the database's.
    let server = connect(database.services.pg_port, &database.name).await;
    server
        .batch_execute("DROP OWNED BY debezium")
        .await
        .expect("the role loses its rights");
}
