//! The same bytes as Debezium: recordings of the real one, case by case.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic::{self, Record};

/// What the recorder's Connect worker had, where a case names no converters of its own.
const WORKER: &str = "key.converter=org.apache.kafka.connect.json.JsonConverter\n\
                      value.converter=org.apache.kafka.connect.json.JsonConverter\n";

async fn equals_its_recording(case: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/recordings")
        .join(format!("{case}.json"));
    let recording: Value =
        serde_json::from_slice(&std::fs::read(&file).expect("the recording")).expect("JSON");
    let texts = |key: &str| -> Vec<String> {
        let list = recording[key].as_array().expect("a list");
        list.iter()
            .map(|text| text.as_str().expect("a statement").to_owned())
            .collect()
    };

    let database = TestDatabase::empty(Services::shared()).await;
    for statement in texts("setup") {
        database.execute(&statement).await;
    }
    let mut setup = Setup::bare(&database);
    setup.worker = Some(WORKER.to_owned());
    for (key, value) in recording["connector"].as_object().expect("settings") {
        if !matches!(key.as_str(), "slot.name" | "publication.name") {
            setup.set(key, value.as_str().expect("a setting"));
        }
    }
    // Cases share one broker, so each has topics of its own.
    let replacement = recording["connector"]["transforms.outbox.route.topic.replacement"]
        .as_str()
        .expect("a replacement");
    setup.set(
        "transforms.outbox.route.topic.replacement",
        &format!("{}.{replacement}", database.name),
    );
    let _outboxd = setup.start().await;
    for statement in texts("statements") {
        database.execute(&statement).await;
    }
    database.all_confirmed().await;

    let expected = recording["records"].as_array().expect("records");
    let mut topics: Vec<&str> = expected
        .iter()
        .map(|record| record["topic"].as_str().expect("a topic"))
        .collect();
    topics.dedup();
    let mut found = Vec::new();
    for topic in topics {
        found.extend(topic::read_all(
            &database.services.kafka,
            &format!("{}.{topic}", database.name),
        ));
    }
    let shown: Vec<String> = found
        .iter()
        .zip(expected)
        .map(|(record, expected)| show(record, expected))
        .collect();
    let wanted: Vec<String> = expected.iter().map(show_recorded).collect();
    assert_eq!(shown, wanted, "{case}");
    assert_eq!(found.len(), expected.len(), "{case}: number of records");
}

/// A record as text that differs where bytes differ; headers that vary from run to run are
/// shown by their presence.
fn show(record: &Record, expected: &Value) -> String {
    let varies = |index: usize| expected["headers"][index]["varies"] == Value::Bool(true);
    let headers: Vec<String> = record
        .headers
        .iter()
        .enumerate()
        .map(|(index, (name, value))| {
            let value = if varies(index) {
                "varies".to_owned()
            } else {
                bytes(value.as_deref())
            };
            format!("{name}={value}")
        })
        .collect();
    format!(
        "partition {} key {} value {} headers {}",
        record.partition,
        bytes(record.key.as_deref()),
        bytes(record.value.as_deref()),
        headers.join(" ")
    )
}

fn show_recorded(record: &Value) -> String {
    let decoded = |value: &Value| {
        value
            .as_str()
            .map(|text| STANDARD.decode(text).expect("base64"))
    };
    let headers: Vec<String> = record["headers"]
        .as_array()
        .expect("headers")
        .iter()
        .map(|header| {
            let varies = header["varies"] == Value::Bool(true);
            let value = if varies {
                "varies".to_owned()
            } else {
                bytes(decoded(&header["value"]).as_deref())
            };
            format!("{}={value}", header["key"].as_str().expect("a name"))
        })
        .collect();
    format!(
        "partition {} key {} value {} headers {}",
        record["partition"],
        bytes(decoded(&record["key"]).as_deref()),
        bytes(decoded(&record["value"]).as_deref()),
        headers.join(" ")
    )
}

fn bytes(value: Option<&[u8]>) -> String {
    value.map_or_else(
        || "(null)".to_owned(),
        |bytes| format!("<{}>", bytes.escape_ascii()),
    )
}

macro_rules! recordings {
    ($($test:ident = $case:literal),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                equals_its_recording($case).await;
            }
        )*
    };
}

recordings! {
    seed_string_converters = "seed-string-converters",
    seed_string_extended_headers = "seed-string-extended-headers",
    seed_json_no_schemas = "seed-json-no-schemas",
    seed_json_schemas = "seed-json-schemas",
    seed_default_converters = "seed-default-converters",
    seed_string_key_json_value = "seed-string-key-json-value",
}
