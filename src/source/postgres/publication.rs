use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::inspect::{OutboxFacts, PublicationFacts, slot_mark};
use super::{Database, PublicationAutocreate, SourceError, SourceOptions};

/// The statement that makes the publication, with Debezium's meaning of
/// `publication.autocreate.mode` (`PostgresReplicationConnection.initPublication`).
///
/// It publishes inserts, and updates where every table has a usable replica identity, so that
/// they can be warned of; never more, since publishing updates or deletes of a table without
/// one makes the application's own statements fail.
pub fn publication_creation(options: &SourceOptions, tables: &[OutboxFacts]) -> String {
    let name = escape_identifier(options.publication.as_str());
    // Rows of partitions come under the table's name.
    let via_root = match tables.iter().any(|outbox| outbox.partitioned) {
        true => ", publish_via_partition_root = true",
        false => "",
    };
    match options.autocreate {
        // Tables without a replica identity may be among all of them, or come later.
        PublicationAutocreate::AllTables => {
            format!("CREATE PUBLICATION {name} FOR ALL TABLES WITH (publish = 'insert'{via_root});")
        }
        PublicationAutocreate::Filtered
        | PublicationAutocreate::Unsaid
        | PublicationAutocreate::Disabled
        | PublicationAutocreate::NoTables => format!(
            "CREATE PUBLICATION {name} FOR TABLE {} WITH (publish = '{}'{via_root});",
            table_list(tables),
            match tables.iter().all(|outbox| outbox.table.usable_identity) {
                true => "insert, update",
                false => "insert",
            },
        ),
    }
}

/// The statement that adds tables to the publication.
pub fn publication_addition(options: &SourceOptions, tables: &[&OutboxFacts]) -> String {
    format!(
        "ALTER PUBLICATION {} ADD TABLE {};",
        escape_identifier(options.publication.as_str()),
        table_list(tables.iter().copied())
    )
}

fn table_list<'o>(tables: impl IntoIterator<Item = &'o OutboxFacts>) -> String {
    let names = tables.into_iter().map(|outbox| outbox.table.quoted());
    names.collect::<Vec<_>>().join(", ")
}

/// Makes the publication.
///
/// # Errors
/// The server's refusal.
pub async fn create_publication(
    database: &Database,
    options: &SourceOptions,
    tables: &[OutboxFacts],
) -> Result<(), SourceError> {
    let sql = publication_creation(options, tables);
    database.execute("creating the publication", &sql).await
}

/// Adds tables to the publication.
///
/// # Errors
/// The server's refusal.
pub async fn add_to_publication(
    database: &Database,
    options: &SourceOptions,
    tables: &[&OutboxFacts],
) -> Result<(), SourceError> {
    let sql = publication_addition(options, tables);
    database.execute("altering the publication", &sql).await
}

/// Leaves the slot's name in the publication's comment, where our role owns the publication:
/// the one place a server keeps for us that outlives a slot (rule R8). `before` is what was
/// there; what others wrote in the comment stays.
///
/// # Errors
/// When the server refuses for any other reason than a missing right.
pub async fn remember_slot(
    database: &Database,
    options: &SourceOptions,
    before: Option<&PublicationFacts>,
) -> Result<(), SourceError> {
    let sql = format!(
        "COMMENT ON PUBLICATION {} IS {}",
        escape_identifier(options.publication.as_str()),
        escape_literal(&publication_comment(options, before))
    );
    match database
        .execute("noting the slot in the publication's comment", &sql)
        .await
    {
        Err(error) if error.sqlstate() == Some("42501") => Ok(()),
        outcome => outcome,
    }
}

/// The publication's comment once the slot is in use.
pub fn publication_comment(options: &SourceOptions, before: Option<&PublicationFacts>) -> String {
    let mark = slot_mark(&options.slot);
    let existing = before.and_then(|facts| Some((facts, facts.comment.as_deref()?)));
    match existing {
        Some((facts, comment)) if facts.marks(&options.slot) => comment.to_owned(),
        Some((_, comment)) if !comment.is_empty() => format!("{comment}; {mark}"),
        _ => mark,
    }
}
