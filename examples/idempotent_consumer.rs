//! A consumer on which a duplicate has no effect: a model to copy.
//!
//! The relay delivers every event at least once. After a crash, its own or the broker's or this
//! consumer's, the last few events can come again, each with the `id` it had before. Three rules
//! make that harmless:
//!
//! 1. The effect of an event and the mark "this id is done" are written in ONE database transaction.
//!    Either both are there or neither.
//! 2. An event whose mark is already there is skipped.
//! 3. The Kafka offset is committed only AFTER the database transaction. A crash between the two brings
//!    the event again (and rule 2 skips it); the other order would lose it.
//!
//! The tables are in `sql/processed-events.sql`. `make demo` runs this program, stops it between the
//! two commits, and starts it again.

#![allow(
    clippy::print_stdout,
    reason = "a program for people to watch; printing is its purpose"
)]

use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Adds up the claims of a topic, each exactly once.
#[derive(Parser)]
struct Args {
    /// Kafka brokers, as host:port, comma-separated.
    #[arg(long, default_value = "localhost:9092")]
    brokers: String,
    /// Consumer group; also the name under which events are marked as processed.
    #[arg(long, default_value = "claim-totals")]
    group: String,
    /// Topic to consume.
    #[arg(long, default_value = "claims.claim.events")]
    topic: String,
    /// Database of the effect and the marks, as postgresql://user:password@host:port/database.
    #[arg(long)]
    postgres: String,
    /// Ends after so many events.
    #[arg(long, value_name = "N")]
    stop_after: Option<u64>,
    /// Ends at the N-th event at the worst moment: effect and mark are in the database, and Kafka has
    /// not been told.
    #[arg(long, value_name = "N")]
    crash_before_offset_commit: Option<u64>,
}

/// What became of an event.
enum Outcome {
    Processed,
    Duplicate,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut database = connect(&args.postgres).await?;
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", &args.brokers)
        .set("group.id", &args.group)
        // Rule 3: nobody but us says what is done.
        .set("enable.auto.commit", "false")
        // A new group begins with the oldest event, so that it misses none.
        .set("auto.offset.reset", "earliest")
        .create()
        .context("the Kafka consumer could not be made")?;
    consumer
        .subscribe(&[&args.topic])
        .with_context(|| format!("could not subscribe to {}", args.topic))?;

    let mut handled = 0;
    // Ctrl-C needs no care: whatever the moment, the rules hold.
    while args.stop_after.is_none_or(|limit| handled < limit) {
        // Blocking is fine here: the database connection runs on another thread of the runtime.
        let Some(message) = consumer.poll(Duration::from_millis(500)) else {
            continue;
        };
        let message = message.context("could not read from Kafka")?;
        let id = event_id(&message)?;
        let key = text(message.key()).unwrap_or("(no key)");
        match process(&mut database, &args.group, id, text(message.payload())).await? {
            Outcome::Processed => println!("processed  {key}  event {id}"),
            Outcome::Duplicate => {
                println!("skipped    {key}  event {id}: done before, a duplicate")
            }
        }
        handled += 1;
        if args.crash_before_offset_commit == Some(handled) {
            bail!("crashed on purpose: {key} is in the database, its offset is not in Kafka");
        }
        // One commit for each event is the simplest; one for each hundred is faster, and just as safe.
        consumer
            .commit_message(&message, CommitMode::Sync)
            .context("could not commit the offset; the event will come again")?;
    }
    Ok(())
}

/// Rules 1 and 2: the mark and the effect of one event, in one transaction.
async fn process(
    database: &mut Client,
    consumer: &str,
    id: Uuid,
    payload: Option<&str>,
) -> anyhow::Result<Outcome> {
    let transaction = database.transaction().await?;
    // The primary key is the judge. A second consumer that is handed the same event at the same time
    // waits here until the first one's transaction ends, and then sees its mark.
    let marked = transaction
        .execute(
            "INSERT INTO processed_events (consumer, event_id) VALUES ($1, $2::text::uuid)
             ON CONFLICT DO NOTHING",
            &[&consumer, &id.to_string()],
        )
        .await?;
    if marked == 0 {
        return Ok(Outcome::Duplicate);
    }
    // The effect. Yours goes here, on the same transaction. An event without a payload has none here;
    // one that is not a claim fails, and is neither marked nor passed over.
    transaction
        .execute(
            "INSERT INTO claim_totals (currency, claims, amount)
             SELECT claim ->> 'currency', 1, (claim ->> 'amount')::numeric
             FROM (SELECT $1::text::jsonb AS claim) AS event
             WHERE claim IS NOT NULL
             ON CONFLICT (currency) DO UPDATE
             SET claims = claim_totals.claims + 1,
                 amount = claim_totals.amount + excluded.amount",
            &[&payload],
        )
        .await?;
    transaction.commit().await?;
    Ok(Outcome::Processed)
}

/// The event's identity: the header `id`, which the relay fills with the outbox row's primary key.
fn event_id(message: &BorrowedMessage<'_>) -> anyhow::Result<Uuid> {
    message
        .headers()
        .and_then(|headers| headers.iter().find(|header| header.key == "id"))
        .and_then(|header| text(header.value))
        .and_then(|id| id.parse().ok())
        .with_context(|| {
            format!(
                "the record at partition {} offset {} has no header \"id\" with a UUID: not an event of \
                 an outbox",
                message.partition(),
                message.offset()
            )
        })
}

/// Bytes as text, where they are text.
fn text(bytes: Option<&[u8]>) -> Option<&str> {
    std::str::from_utf8(bytes?).ok()
}

/// Connects to the database. Give it a TLS connector (tokio-postgres-rustls, say) where the way there
/// is not this machine's own.
async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls)
        .await
        .context("could not connect to PostgreSQL")?;
    // Ends with an error when the connection breaks; the next query then says so.
    tokio::spawn(connection);
    Ok(client)
}
