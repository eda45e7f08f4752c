use super::*;

#[test]
fn every_problem_is_reported_at_once_with_origin_and_remedy() {
    let text = "{\n\"connector.class\": \"io.debezium.connector.mysql.MySqlConnector\",\n\"database.port\": \"54x2\",\n\
                \"table.include.list\": [\"public.outbox\"],\n\"slot.nmae\": \"s\"}";
    let setup = Setup::new("c.json", text)
        .worker("producer.acks=1\nproducer.max.request.size=5\n")
        .set("=x");
    assert_eq!(
        setup.problems(),
        [
            "worker.properties:2: producer.max.request.size: it cannot be used here; write message.max.bytes",
            "c.json: database.dbname: it is required; write the database that holds the outbox",
            "c.json: database.hostname: it is required; write the database server's host name",
            "c.json: database.user: it is required; write a role with REPLICATION",
            "c.json: publication.autocreate.mode: without table.include.list it has no default, since Debezium's would publish every table; name the outbox in table.include.list, or write disabled and create the publication yourself",
            "c.json: topic.prefix: it is required; write the source's logical name, such as claims-db",
            "c.json: transforms: no outbox event router is configured; add transforms=outbox and transforms.outbox.type=io.debezium.transforms.outbox.EventRouter",
            "c.json:2: connector.class: the connector \"io.debezium.connector.mysql.MySqlConnector\" is not supported; write connector.class=io.debezium.connector.postgresql.PostgresConnector",
            "c.json:3: database.port: '54x2' is no port; write a whole number from 1 to 65535",
            "c.json:4: table.include.list: its value is an object or a list; write a string, a number, true or false",
            "c.json:5: slot.nmae: there is no such key; did you mean slot.name?",
            "--set: argument 1 has no key before a =; write --set key=value",
        ]
    );
    let listed = setup.load().unwrap_err().to_string();
    assert!(
        listed.starts_with("12 problems in the configuration:\n  "),
        "{listed}"
    );
}

#[test]
fn values_that_cannot_be_used_are_refused() {
    for (key, value, expected) in [
        (
            "transforms.outbox.type",
            "org.apache.kafka.connect.transforms.InsertHeader",
            "is not supported by this version",
        ),
        (
            "transforms.outbox.predicate",
            "isOutbox",
            "predicates are not supported",
        ),
        ("predicates", "isOutbox", "predicates are not supported"),
        (
            "transforms.outbox.table.expand.json.payload",
            "true",
            "only \"false\" is possible",
        ),
        (
            "transforms.outbox.table.field.event.timestamp",
            "created_at",
            "cannot be set",
        ),
        (
            "transforms.outbox.table.field.event.key",
            " ",
            "it is empty",
        ),
        (
            "transforms.outbox.table.fields.additional.placement",
            "type:body",
            "'body'",
        ),
        (
            "transforms.outbox.table.op.invalid.behavior",
            "panic",
            "write warn, error, fatal",
        ),
        (
            "transforms.outbox.table.field.additional.missing",
            "no",
            "write error, ignore",
        ),
        (
            "transforms.outbox.route.topic.regex",
            "(",
            "write a Java regular expression",
        ),
        (
            "transforms.outbox.route.topic.replacement",
            "${nothing}",
            "name groups of route.topic.regex",
        ),
        (
            "transforms.outbox.route.topic.replacment",
            "x",
            "did you mean transforms.outbox.route.topic.replacement?",
        ),
        (
            "transfroms.outbox.route.by.field",
            "x",
            "did you mean transforms.outbox.route.by.field?",
        ),
        ("table.include.list", "public.(", "correct the list"),
        ("table.exclude.list", "x", "keep one of them"),
        (
            "schema.include.list",
            "public",
            "name the tables by table.include.list",
        ),
        ("column.mask.with.3.chars", "x", "cannot be set"),
        ("plugin.name", "decoderbufs", "write pgoutput"),
        ("plugin.name", "pgouput", "write pgoutput"),
        ("slot.name", "My-Slot", "rename the slot"),
        ("slot.failover", "true", "only \"false\" is possible"),
        (
            "publication.name",
            "x".repeat(64).as_str(),
            "rename the publication",
        ),
        (
            "publication.autocreate.mode",
            "some",
            "write disabled, filtered, all_tables, no_tables",
        ),
        ("snapshot.mode", "always", "write no_data, or initial"),
        (
            "snapshot.mode",
            "nodata",
            "write no_data, initial, when_needed",
        ),
        (
            "database.sslmode",
            "verify-ca",
            "write database.sslmode=verify-full",
        ),
        ("database.sslcert", "c.pem", "name the file"),
        ("database.sslkey", "c.key", "name the file"),
        ("database.hostname", "a,,b", "write host names with commas"),
        ("database.hostname", "a:b", "behind the host's colon"),
        ("database.port", "1,2", "write one port for all hosts"),
        ("driver.connectTimeout", "0", "from 1 to"),
        (
            "database.sslmode",
            "on",
            "write disable, allow, prefer, require, verify-ca, verify-full",
        ),
        ("database.port", "65536", "from 1 to 65535"),
        ("status.update.interval.ms", "0", "from 1 to"),
        ("skipped.operations", "c", "leave c out"),
        ("skipped.operations", "x", "write u, d, t or none"),
        ("extended.headers.enabled", "yes", "write true, false"),
        ("max.queue.size", "-1", "from 1 to"),
        (
            "outboxd.resume.transactions",
            "1000001",
            "from 0 to 1000000",
        ),
        ("errors.tolerance", "all", "only \"none\" is possible"),
        (
            "key.converter",
            "io.confluent.connect.avro.AvroConverter",
            "io.confluent.connect.avro.AvroConverter",
        ),
        (
            "producer.override.key.serializer",
            "x",
            "key.converter makes the key's bytes",
        ),
        (
            "producer.override.sasl.jaas.config",
            "x",
            "write sasl.username and sasl.password",
        ),
        (
            "producer.override.ssl.truststore.location",
            "x.jks",
            "write ssl.ca.location",
        ),
        (
            "producer.override.liger.ms",
            "1",
            "did you mean producer.override.linger.ms?",
        ),
        ("bootstrap.servers", "a:9092,b", "write host:port"),
        ("outboxd.sink.type", "file", "write kafka, stdout, null"),
        (
            "outboxd.sink.typ",
            "null",
            "did you mean outboxd.sink.type?",
        ),
        ("debezium.source.slot.name", "s", "without debezium.source."),
        (
            "database.user",
            "${vault:db:user}",
            "no config provider \"vault\"",
        ),
    ] {
        let setup = Setup::least(&[(key, value)]);
        let problems = setup.problems();
        assert_eq!(problems.len(), 1, "{key}={value}: {problems:?}");
        assert!(
            problems[0].contains(expected),
            "{key}={value}: {problems:?}"
        );
        assert!(
            problems[0].starts_with("c.json:") && problems[0].contains(key),
            "{key}={value}: {problems:?}"
        );
    }
}

#[test]
fn the_transforms_must_be_one_event_router() {
    for (changes, expected) in [
        (
            &[("transforms", "")][..],
            "add transforms=outbox and transforms.outbox.type",
        ),
        (
            &[("transforms.outbox.type", "")],
            "write transforms.outbox.type=",
        ),
        (
            &[
                ("transforms", "hdr, outbox"),
                ("transforms.hdr.type", "x.HeaderFrom"),
                ("transforms.hdr.fields", "a"),
            ],
            "leave hdr out of transforms",
        ),
        (
            &[
                ("transforms", "outbox,other"),
                (
                    "transforms.other.type",
                    "io.debezium.transforms.outbox.EventRouter",
                ),
            ],
            "leave one of them",
        ),
    ] {
        let problems = Setup::least(changes).problems();
        assert_eq!(problems.len(), 1, "{changes:?}: {problems:?}");
        assert!(problems[0].contains(expected), "{changes:?}: {problems:?}");
    }
}

#[test]
fn what_has_no_effect_is_one_warning_or_none() {
    for (key, value, expected) in [
        ("snapshot.mode", "never", Some("write no_data")),
        ("no.such.option", "1", Some("this key is not known")),
        (
            "transforms.outbox.no.such.option",
            "1",
            Some("this key is not known"),
        ),
        (
            "producer.override.acks",
            "1",
            Some("because delivery without loss and in order fixes it"),
        ),
        ("producer.override.acks", "all", None),
        (
            "producer.override.no.such.option",
            "1",
            Some("this key is not known"),
        ),
        (
            "producer.linger.ms",
            "1",
            Some("write producer.override.linger.ms"),
        ),
        (
            "security.protocol",
            "ssl",
            Some("write producer.override.security.protocol"),
        ),
        (
            "heartbeat.interval.ms",
            "1000",
            Some("the slot moves on without heartbeats"),
        ),
        ("heartbeat.interval.ms", "0", None),
        (
            "key.converter.schemas.enable",
            "false",
            Some("write key.converter beside it"),
        ),
        ("tombstones.on.delete", "true", None),
        ("tasks.max", "1", None),
        ("poll.interval.ms", "10", None),
        ("slot.failover", "false", None),
        ("transforms.outbox.table.field.event.type", "kind", None),
        ("group.id", "connect", None),
    ] {
        let warnings = Setup::least(&[(key, value)]).warnings();
        assert_eq!(
            warnings.len(),
            usize::from(expected.is_some()),
            "{key}={value}: {warnings:?}"
        );
        for (warning, expected) in warnings.iter().zip(expected) {
            assert!(
                warning.contains(expected) && warning.contains(key),
                "{key}={value}: {warning}"
            );
        }
    }
    let worker = "slot.name=s\ngroup.id=g\noffset.flush.interval.ms=1\nconfig.storage.topic=t\nplugin.path=/p\n\
                  listeners=http://:8083\nrest.port=1\nheartbeat.interval.ms=3000\nclient.id=c\nadmin.acks=1\n";
    assert_eq!(
        Setup::least(&[]).worker(worker).warnings(),
        [
            "worker.properties:1: slot.name: it has no effect in a worker's file; move it to the connector's file"
        ]
    );
    assert_eq!(
        Setup::least(&[])
            .worker("slot.name=s")
            .load()
            .unwrap()
            .config
            .source
            .slot
            .as_str(),
        "debezium"
    );
}

#[test]
fn duplicates_and_strays_are_reported() {
    let base = "\"database.port\": 1";
    let twice = Setup::new("c.json", &format!("{{{base},\n{base}}}")).problems();
    assert!(twice.contains(&"c.json:2: database.port: it is written twice, first at c.json:1; leave one of them out".to_owned()));
    let setup = Setup::new(
        "c.properties",
        &format!("{CLAIMS_PROPERTIES}database.password=x\nslot.name=a"),
    );
    assert_eq!(
        setup.warnings(),
        [
            "c.properties:25: database.password: it is written twice, first at c.properties:6; the last one counts; leave one of them out",
            "c.properties:26: slot.name: it is written twice, first at c.properties:11; the last one counts; leave one of them out",
        ]
    );
    assert_eq!(setup.load().unwrap().config.source.slot.as_str(), "a");
}

#[test]
fn files_that_cannot_be_read_say_so_once() {
    let mut setup = Setup::least(&[]).worker("a=\\u12");
    assert_eq!(setup.problems().len(), 1, "{:?}", setup.problems());
    setup.connector = setup.folder.path().join("missing.json");
    setup.worker = None;
    assert_eq!(
        setup.problems(),
        [
            "missing.json: the file cannot be read (entity not found); check its name and its permissions"
        ]
    );
    for text in ["{", "[]", "{\"a\": 1,}"] {
        let problems = Setup::new("c.json", text).problems();
        assert!(
            problems.len() == 1 && problems[0].starts_with("c.json:1: "),
            "{problems:?}"
        );
    }
}
