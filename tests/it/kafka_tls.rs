//! Encrypted to Kafka, and the broker's identity checked.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::{OwnKafka, Services, scratch};
use crate::support::topic;

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("openssl runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {said}");
}

/// A broker whose second listener is encrypted. Its certificate is signed by an authority that is
/// signed by the one in `root.pem`; `other.pem` is nobody's.
fn encrypted() -> (OwnKafka, PathBuf) {
    let folder = scratch("kafka-certs");
    std::fs::write(
        folder.join("openssl.cnf"),
        "[req]\ndistinguished_name = name\n[name]\n\
         [authority]\nbasicConstraints = critical, CA:TRUE\n\
         [server]\nsubjectAltName = IP:127.0.0.1\nbasicConstraints = CA:FALSE\n",
    )
    .expect("write openssl.cnf");
    let make = |name: &str, section: &str, more: &str| {
        openssl(
            &folder,
            &format!(
                "req -x509 -config openssl.cnf -extensions {section} -subj /CN={name} -days 3650 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {name}.key -out {name}.pem{more}"
            ),
        );
    };
    make("root", "authority", "");
    make("other", "authority", "");
    make("between", "authority", " -CA root.pem -CAkey root.key");
    make("server", "server", " -CA between.pem -CAkey between.key");
    let part = |name: &str| std::fs::read_to_string(folder.join(name)).expect("openssl wrote it");
    let store = ["server.key", "server.pem", "between.pem"]
        .map(part)
        .concat();
    std::fs::write(folder.join("store.pem"), store).expect("write store.pem");
    let store = format!(
        "ssl.keystore.location={}",
        folder.join("store.pem").display()
    );
    let kafka = OwnKafka::start_with(&[
        "--prop",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:SSL,CONTROLLER:PLAINTEXT",
        "--prop",
        "ssl.keystore.type=PEM",
        "--prop",
        &store,
    ]);
    (kafka, folder)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_behind_the_brokers_own_is_trusted_and_a_wrong_one_is_named() {
    let (kafka, folder) = encrypted();
    let database = TestDatabase::with_outbox(Services::shared().with_kafka(&kafka)).await;
    let mut setup = Setup::of(&database);
    setup.kafka_at(&kafka.second_address());
    setup.set("producer.override.security.protocol", "SSL");
    let authority = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    setup.set("producer.override.ssl.ca.location", &authority("other.pem"));
    let trusted = format!("those in {}", authority("other.pem"));
    let said = setup.tell("check", &[]);
    said.expect(1, &["TLS with Kafka failed", &trusted]);
    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    outboxd.says("certificate verify failed").await;
    outboxd.ready_becomes(503).await;
    assert_eq!(outboxd.stop().await, 0);

    setup.set("producer.override.ssl.ca.location", &authority("root.pem"));
    setup.tell("check", &[]).expect(0, &[]);
    let mut outboxd = setup.start().await;
    database.all_confirmed().await;
    let topic = format!("{}.claim.events", database.name);
    assert_eq!(topic::count(&kafka.address(), &topic), 1);
    assert_eq!(outboxd.stop().await, 0, "{}", outboxd.log());
}
