mod findings;
mod layers;
mod secrets;

use std::collections::BTreeMap;
use std::path::PathBuf;

use secrecy::ExposeSecret;
use tempfile::TempDir;

use super::*;
use crate::convert::{Converter, Role};
use crate::model::TableName;
use crate::router::{MissingColumn, OnUpdate};
use crate::source::postgres::{
    Authorities, Password, PublicationAutocreate, SnapshotMode, SslMode,
};

/// The connector of the exercise as people have it.
const CLAIMS: &str = r#"{"name": "claims-outbox-connector", "config": {
  "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
  "database.hostname": "localhost", "database.port": "5432", "database.user": "debezium",
  "database.password": "${file:/secrets/db.properties:password}", "database.dbname": "claims", "database.sslmode": "require",
  "topic.prefix": "claims-db", "plugin.name": "pgoutput", "slot.name": "claims_outbox_slot",
  "publication.name": "claims_outbox_pub", "publication.autocreate.mode": "filtered",
  "table.include.list": "public.outbox", "tombstones.on.delete": "false",
  "transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
  "transforms.outbox.table.field.event.id": "id", "transforms.outbox.table.field.event.key": "aggregate_id",
  "transforms.outbox.table.field.event.type": "type", "transforms.outbox.table.field.event.payload": "payload",
  "transforms.outbox.route.by.field": "aggregate_type",
  "transforms.outbox.route.topic.replacement": "claims.${routedByValue}.events",
  "transforms.outbox.table.fields.additional.placement": "type:header:eventType"}}"#;

const CLAIMS_PROPERTIES: &str = r"name=claims-outbox-connector
connector.class = io.debezium.connector.postgresql.PostgresConnector
database.hostname = localhost
database.port = 5432
database.user = debezium
database.password = ${file:/secrets/db.properties:password}
database.dbname = claims
database.sslmode = require
topic.prefix = claims-db
plugin.name = pgoutput
slot.name = claims_outbox_slot
publication.name = claims_outbox_pub
publication.autocreate.mode = filtered
table.include.list = public.outbox
tombstones.on.delete = false
transforms = outbox
transforms.outbox.type = io.debezium.transforms.outbox.EventRouter
transforms.outbox.table.field.event.id = id
transforms.outbox.table.field.event.key = aggregate_id
transforms.outbox.table.field.event.type = type
transforms.outbox.table.field.event.payload = payload
transforms.outbox.route.by.field = aggregate_type
transforms.outbox.route.topic.replacement = claims.${routedByValue}.events
transforms.outbox.table.fields.additional.placement = type:header:eventType
";

/// The least a connector needs, one key a line from line 2 on, in alphabetical order.
const LEAST: [(&str, &str); 8] = [
    ("connector.class", "PostgresConnector"),
    ("database.dbname", "claims"),
    ("database.hostname", "db"),
    ("database.user", "relay"),
    ("table.include.list", "public.outbox"),
    ("topic.prefix", "claims-db"),
    ("transforms", "outbox"),
    (
        "transforms.outbox.type",
        "io.debezium.transforms.outbox.EventRouter",
    ),
];

/// A connector's and perhaps a worker's file in a folder of their own, and what is set besides.
struct Setup {
    folder: TempDir,
    connector: PathBuf,
    worker: Option<PathBuf>,
    overrides: Vec<String>,
}

impl Setup {
    fn new(file: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let connector = folder.path().join(file);
        std::fs::write(&connector, text).unwrap();
        Self {
            folder,
            connector,
            worker: None,
            overrides: Vec::new(),
        }
    }

    /// [`LEAST`] with changes; an empty value takes a key away.
    fn least(changes: &[(&str, &str)]) -> Self {
        let mut pairs = BTreeMap::from(LEAST);
        for &(key, value) in changes {
            if value.is_empty() {
                pairs.remove(key)
            } else {
                pairs.insert(key, value)
            };
        }
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("  {key:?}: {value:?}"))
            .collect();
        Self::new("c.json", &format!("{{\n{}\n}}", pairs.join(",\n")))
    }

    fn worker(mut self, text: &str) -> Self {
        let worker = self.folder.path().join("worker.properties");
        std::fs::write(&worker, text).unwrap();
        self.worker = Some(worker);
        self
    }

    fn set(mut self, argument: &str) -> Self {
        self.overrides.push(argument.to_owned());
        self
    }

    fn load(&self) -> Result<Loaded, ConfigErrors> {
        let environment = |name: &str| (name == "SECRET").then(|| "hunter2".to_owned());
        load(
            &self.connector,
            self.worker.as_deref(),
            &self.overrides,
            &environment,
        )
    }

    /// The configuration, which must come without a warning.
    fn config(&self) -> Config {
        let loaded = self.load().unwrap();
        assert_eq!(loaded.warnings, [], "warnings");
        loaded.config
    }

    fn shown(&self, findings: &[Finding]) -> Vec<String> {
        let folder = format!("{}/", self.folder.path().display());
        findings
            .iter()
            .map(|finding| finding.to_string().replace(&folder, ""))
            .collect()
    }

    fn problems(&self) -> Vec<String> {
        self.shown(self.load().unwrap_err().problems())
    }

    fn warnings(&self) -> Vec<String> {
        self.shown(&self.load().unwrap().warnings)
    }
}

fn kafka(config: &Config) -> (&str, BTreeMap<&str, &str>) {
    let SinkOptions::Kafka(kafka) = &config.sink else {
        panic!("not Kafka")
    };
    let properties = kafka
        .properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    (&kafka.bootstrap_servers, properties.collect())
}

fn password(password: &Option<Password>) -> String {
    let password = password.as_ref().expect("a password").read();
    password.expect("it can be read").expose_secret().to_owned()
}

#[test]
fn the_exercises_connector_is_read_as_it_is() {
    for (file, text) in [
        ("claims.json", CLAIMS),
        ("claims.properties", CLAIMS_PROPERTIES),
    ] {
        let mut setup = Setup::new(file, text);
        let secrets = setup.folder.path().join("db.properties");
        std::fs::write(&secrets, "password=hunter2").unwrap();
        let text = text.replace("/secrets/db.properties", &secrets.to_string_lossy());
        std::fs::write(&setup.connector, text).unwrap();
        let config = setup.config();
        assert_eq!(config.name, "claims-outbox-connector");
        assert_eq!(config.topic_prefix, "claims-db");
        assert_eq!(
            config.context_headers,
            Some(ContextHeaders {
                logical_name: "claims-db".to_owned()
            })
        );
        let source = &config.source;
        assert_eq!(source.servers.to_string(), "localhost:5432");
        assert_eq!(
            (source.user.as_str(), source.database.as_str()),
            ("debezium", "claims")
        );
        assert_eq!(password(&source.password), "hunter2");
        assert_eq!(source.tls.mode, SslMode::Require);
        assert_eq!(source.slot.as_str(), "claims_outbox_slot");
        assert_eq!(source.publication.as_str(), "claims_outbox_pub");
        assert_eq!(source.autocreate, PublicationAutocreate::Filtered);
        assert_eq!(source.snapshot, SnapshotMode::Initial);
        assert_eq!(source.status_interval, Duration::from_secs(10));
        let outbox = TableName {
            schema: "public".to_owned(),
            name: "outbox".to_owned(),
        };
        assert_eq!(source.tables.includes(&outbox), Ok(true));
        let router = &config.router;
        assert_eq!(
            (router.id_column.as_str(), router.key_column.as_str()),
            ("id", "aggregate_id")
        );
        assert_eq!(
            (router.payload_column.as_str(), router.route_column.as_str()),
            ("payload", "aggregate_type")
        );
        assert_eq!(
            router.route.route("claim").unwrap().as_str(),
            "claims.claim.events"
        );
        let placed: Vec<_> = router
            .headers
            .iter()
            .map(|header| (&*header.column, &*header.header))
            .collect();
        assert_eq!(placed, [("type", "eventType")]);
        assert_eq!(
            (router.missing_column, router.on_update),
            (MissingColumn::Error, OnUpdate::Warn)
        );
        for (converter, role) in [
            (config.convert.key, Role::Key),
            (config.convert.value, Role::Value),
            (config.convert.header, Role::Header),
        ] {
            assert_eq!(converter, Converter::plain(role));
        }
        assert_eq!(kafka(&config), ("localhost:9092", BTreeMap::new()));
        let delivery = config.delivery;
        assert_eq!(
            (delivery.max_queue_size, delivery.max_queue_bytes),
            (8192, 64 << 20)
        );
        assert_eq!(delivery.resume_transactions, 65_536);
        assert_eq!(delivery.shutdown_timeout, Duration::from_secs(10));

        // What --set says is in the file's place, so the file's provider is not asked.
        std::fs::remove_file(&secrets).unwrap();
        setup = setup
            .set("database.password= p=1 ")
            .set("database.port=1")
            .set("database.port=15432");
        let source = setup.config().source;
        assert_eq!(password(&source.password), " p=1 ");
        assert_eq!(source.servers.to_string(), "localhost:15432");
    }
}

#[test]
fn what_is_left_out_is_as_in_debezium() {
    let config = Setup::least(&[]).config();
    assert_eq!(config.name, "c");
    let source = &config.source;
    assert_eq!(
        (source.slot.as_str(), source.publication.as_str()),
        ("debezium", "dbz_publication")
    );
    assert_eq!(source.servers.to_string(), "db:5432");
    assert_eq!(source.tls.mode, SslMode::Prefer);
    assert_eq!(source.autocreate, PublicationAutocreate::Unsaid);
    assert!(source.password.is_none());
    assert_eq!(config.router.key_column, "aggregateid");
    assert_eq!(
        config.router.route.route("Order").unwrap().as_str(),
        "outbox.event.Order"
    );
}

#[test]
fn sslrootcert_decides_about_the_mode_as_in_libpq() {
    let tls = |changes: &[(&str, &str)]| Setup::least(changes).config().source.tls;
    let root = "database.sslrootcert";
    let system = tls(&[(root, "system")]);
    assert_eq!(
        (system.mode, system.authorities),
        (SslMode::VerifyFull, Authorities::System)
    );
    let file = tls(&[(root, "ca.pem"), ("database.sslmode", "verify-ca")]);
    assert_eq!(
        (file.mode, file.authorities),
        (SslMode::VerifyCa, Authorities::File("ca.pem".into()))
    );
    let weak = Setup::least(&[(root, "system"), ("database.sslmode", "require")]).problems();
    assert!(weak[0].contains("too weak"), "{weak:?}");
}

#[test]
fn both_names_of_the_missing_column_option_are_taken() {
    let (new, old) = (
        "transforms.outbox.table.field.additional.missing",
        "transforms.outbox.table.fields.additional.error.on.missing",
    );
    for (changes, expected) in [
        (&[(new, " IGNORE ")][..], MissingColumn::Ignore),
        (&[(old, "false")], MissingColumn::Ignore),
        (&[(new, "ignore"), (old, "false")], MissingColumn::Ignore),
        (&[(old, "true")], MissingColumn::Error),
    ] {
        assert_eq!(
            Setup::least(changes).config().router.missing_column,
            expected,
            "{changes:?}"
        );
    }
    assert!(Setup::least(&[(new, "error"), (old, "false")]).problems()[0].contains("contradicts"));
}

#[test]
fn skipped_updates_never_stop_the_router() {
    let behaviour = ("transforms.outbox.table.op.invalid.behavior", "fatal");
    assert_eq!(
        Setup::least(&[behaviour]).config().router.on_update,
        OnUpdate::Fatal
    );
    let skipped = Setup::least(&[behaviour, ("skipped.operations", "t,u")]);
    assert_eq!(skipped.config().router.on_update, OnUpdate::Warn);
}
