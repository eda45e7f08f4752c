use super::*;

#[test]
fn a_connectors_converter_takes_nothing_from_the_workers() {
    const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";
    let worker = format!(
        "key.converter={JSON}\nkey.converter.schemas.enable=false\nvalue.converter={JSON}\nvalue.converter.schemas.enable=false\n"
    );
    let convert = Setup::least(&[]).worker(&worker).config().convert;
    let (plain, with_schema) = (
        Converter::Json { schemas: false },
        Converter::Json { schemas: true },
    );
    assert_eq!(
        (convert.key, convert.value, convert.header),
        (plain, plain, Converter::SimpleHeader)
    );
    let convert = Setup::least(&[("key.converter", JSON)])
        .worker(&worker)
        .config()
        .convert;
    assert_eq!((convert.key, convert.value), (with_schema, plain));
    let setup = Setup::least(&[("header.converter", JSON)]).worker(&worker);
    assert_eq!(setup.config().convert.header, with_schema);
    assert!(setup.config().converters().contains(JSON));
    let set = Setup::least(&[])
        .worker(&worker)
        .set("value.converter.schemas.enable=true");
    assert_eq!(set.config().convert.value, with_schema);
    let connector = Setup::least(&[("value.converter.schemas.enable", "true")]).worker(&worker);
    assert_eq!(connector.load().unwrap().config.convert.value, plain);
    assert_eq!(connector.warnings().len(), 1);
}

#[test]
fn client_settings_come_from_worker_connector_and_command_line() {
    let worker = "bootstrap.servers=w:1\nsecurity.protocol=ssl\nssl.ca.location=/ca.pem\nproducer.linger.ms=5\n\
                  producer.security.protocol=sasl_ssl\nsasl.password= p \nproducer.compression.type=zstd \n";
    let connector = [
        ("producer.override.linger.ms", "7"),
        ("producer.override.acks", "all"),
    ];
    let config = Setup::least(&connector).worker(worker).config();
    let expected = [
        ("compression.type", "zstd"),
        ("linger.ms", "7"),
        ("sasl.password", "p "),
        ("security.protocol", "sasl_ssl"),
        ("ssl.ca.location", "/ca.pem"),
    ];
    assert_eq!(kafka(&config), ("w:1", BTreeMap::from(expected)));
    let setup = Setup::least(&connector)
        .worker(worker)
        .set("bootstrap.servers=s:1,t:2")
        .set("security.protocol=plaintext");
    let config = setup.config();
    let (servers, properties) = kafka(&config);
    assert_eq!(
        (servers, properties["security.protocol"]),
        ("s:1,t:2", "plaintext")
    );
    for (kind, shown) in [("stdout", "Stdout"), ("null", "Null")] {
        let config = Setup::least(&[("outboxd.sink.type", kind)]).config();
        assert_eq!(format!("{:?}", config.sink), shown);
    }
}
