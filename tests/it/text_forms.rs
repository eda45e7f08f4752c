//! A role's own settings cannot change delivered bytes.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic;

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_role_and_database_do_not_reach_the_records() {
    let database = TestDatabase::empty(Services::shared()).await;
    database
        .execute(&format!(
            "CREATE TABLE outbox (id uuid PRIMARY KEY, aggregate_type text, aggregate_id text, type text, payload bytea);
             ALTER DATABASE {0} SET bytea_output = 'escape';
             ALTER DATABASE {0} SET DateStyle = 'SQL, DMY';
             ALTER DATABASE {0} SET TimeZone = 'Asia/Kolkata';
             ALTER DATABASE {0} SET IntervalStyle = 'iso_8601';
             ALTER DATABASE {0} SET extra_float_digits = 0;
             ALTER DATABASE {0} SET client_encoding = 'LATIN1'",
            database.name
        ))
        .await;
    let _outboxd = Setup::of(&database).start().await;
    database
        .execute(
            r"INSERT INTO outbox VALUES (gen_random_uuid(), 'claim', 'Zoë', 't', '\x0001ff5c41')",
        )
        .await;
    database.all_confirmed().await;
    let records = topic::read_all(
        &database.services.kafka,
        &format!("{}.claim.events", database.name),
    );
    assert_eq!(
        records[0].value.as_deref(),
        Some(&[0x00, 0x01, 0xff, 0x5c, 0x41][..])
    );
    assert_eq!(records[0].key_text(), "Zoë");
}
