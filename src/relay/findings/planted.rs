//! Facts in good order, for tests to spoil.

use std::path::Path;

use super::{Finding, Severity};
use crate::config::{self, Config};
use crate::model::{Column, Lsn, RelationId, TableName, TypeOid};
use crate::source::postgres::{
    CapturedTable, Facts, OutboxColumn, OutboxFacts, PublicationFacts, PublishedTable, RoleFacts,
    ServerFacts, SlotFacts, StreamFacts, TableFacts,
};

/// The exercise's connector, with its own role, slot and publication.
pub(super) fn config() -> Config {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("connectors/claims-outbox.json");
    let overrides = [
        "bootstrap.servers=localhost:9092",
        "database.user=relay",
        "database.password=secret",
        "slot.name=claims",
        "publication.name=claims_pub",
    ]
    .map(str::to_owned);
    config::load(&file, None, &overrides, &|_| None)
        .expect("a good configuration")
        .config
}

/// A least-privileged role, a publication made beforehand, an idle slot.
pub(super) fn facts() -> Facts {
    let settings = [
        ("wal_level", "logical"),
        ("max_replication_slots", "10"),
        ("max_wal_senders", "10"),
        ("wal_sender_timeout", "60000"),
        ("max_slot_wal_keep_size", "51200"),
        ("idle_replication_slot_timeout", "0"),
        ("synchronous_standby_names", ""),
    ];
    let own = |(name, value): (&str, &str)| (name.to_owned(), (value.to_owned(), value.to_owned()));
    Facts {
        server: ServerFacts {
            version: 180_006,
            database: "claims".to_owned(),
            in_recovery: false,
            on_rds: false,
            slots: 1,
            physical_slots: 0,
            walsenders: 0,
            settings: settings.into_iter().map(own).collect(),
        },
        role: Some(RoleFacts {
            name: "relay".to_owned(),
            superuser: false,
            login: true,
            replication: true,
            may_connect: true,
            may_create: false,
        }),
        stream: StreamFacts {
            slot: Some(SlotFacts {
                slot_type: "logical".to_owned(),
                plugin: Some("pgoutput".to_owned()),
                database: Some("claims".to_owned()),
                here: "claims".to_owned(),
                restart_lsn: Some(Lsn::new(0x800)),
                confirmed_flush_lsn: Some(Lsn::new(0x1000)),
                server_lsn: Some(Lsn::new(0x2000)),
                wal_status: Some("reserved".to_owned()),
                ..SlotFacts::default()
            }),
            publication: Some(PublicationFacts {
                inserts: true,
                updates: true,
                older_than_slot: Some(true),
                tables: vec![PublishedTable {
                    name: outbox().table.name,
                    columns: Some(
                        outbox()
                            .columns
                            .into_iter()
                            .map(|c| c.column.name)
                            .collect(),
                    ),
                    row_filter: None,
                }],
                ..PublicationFacts::default()
            }),
            tables: vec![outbox()],
        },
    }
}

fn outbox() -> OutboxFacts {
    let columns = [
        ("id", TypeOid::UUID),
        ("aggregate_type", TypeOid::TEXT),
        ("aggregate_id", TypeOid::TEXT),
        ("type", TypeOid::TEXT),
        ("payload", TypeOid::JSONB),
    ];
    let column = |(name, type_oid): (&str, TypeOid)| OutboxColumn {
        column: Column {
            name: name.to_owned(),
            type_oid,
            type_modifier: -1,
            is_key: false,
        },
        generated: false,
    };
    OutboxFacts {
        table: CapturedTable {
            id: RelationId(16_400),
            name: TableName {
                schema: "public".to_owned(),
                name: "outbox".to_owned(),
            },
            usable_identity: true,
        },
        primary_key: true,
        partitions: Vec::new(),
        partitioned: false,
        columns: columns.into_iter().map(column).collect(),
        facts: TableFacts::default(),
        may_use_schema: true,
        may_select: true,
        owned: false,
    }
}

/// Asserts that there is one finding, of this severity, with these words.
#[track_caller]
pub(super) fn only(findings: &[Finding], severity: Severity, words: &[&str]) {
    let [finding] = findings else {
        panic!("{findings:#?}");
    };
    assert_eq!(finding.severity, severity, "{finding}");
    for word in words {
        assert!(finding.to_string().contains(word), "{word}: {finding}");
    }
}
