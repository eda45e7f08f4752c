use std::collections::BTreeSet;

use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::{CapturedTable, Database, PublicationAutocreate, SourceError, SourceOptions};
use crate::model::{PublicationName, TableName};

/// What was done to the publication, for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublicationChange {
    /// It was there and is used as it is.
    None,
    /// It was missing and was created.
    Created,
    /// Its tables were replaced by those the filters name.
    Altered,
}

/// Makes sure that the publication exists, with Debezium's meaning of
/// `publication.autocreate.mode` (`PostgresReplicationConnection.initPublication`).
///
/// One that we create publishes inserts, and updates where every table has a usable replica
/// identity, so that they can be warned of; never more, since publishing updates or deletes
/// of a table without one makes the application's own statements fail.
///
/// # Errors
/// When it is missing and may not be created, cannot be altered, or the role lacks rights.
pub async fn ensure_publication(
    database: &Database,
    publication: &PublicationName,
    mode: PublicationAutocreate,
    captured: &[CapturedTable],
) -> Result<PublicationChange, SourceError> {
    let Some(existing) = find(database, publication).await? else {
        let sql = creation(publication, mode, captured)?;
        database.execute("creating the publication", &sql).await?;
        return Ok(PublicationChange::Created);
    };
    if mode != PublicationAutocreate::Filtered {
        return Ok(PublicationChange::None);
    }
    if existing.all_tables {
        return Err(SourceError::Unusable(format!(
            "publication {publication} is FOR ALL TABLES and cannot be narrowed to the tables of table.include.list; set publication.autocreate.mode=disabled to use it as it is, or name another publication.name"
        )));
    }
    let wanted: BTreeSet<&TableName> = captured.iter().map(|table| &table.name).collect();
    if wanted == existing.tables.iter().collect() {
        return Ok(PublicationChange::None);
    }
    let sql = format!(
        "ALTER PUBLICATION {} SET TABLE {}",
        escape_identifier(publication.as_str()),
        table_list(captured)?
    );
    database.execute("altering the publication", &sql).await?;
    Ok(PublicationChange::Altered)
}

/// What the publication's comment says of a slot that was made for it.
fn memory_of(options: &SourceOptions) -> String {
    format!("outboxd slot={}", options.slot)
}

/// Whether the publication's comment says that the slot was made before: the one place a server
/// keeps for us that outlives a slot (rule R8).
///
/// # Errors
/// When the catalog cannot be read.
pub async fn remembers_slot(
    database: &Database,
    options: &SourceOptions,
) -> Result<bool, SourceError> {
    let rows = database
        .query(
            "reading the publication's comment",
            "SELECT pg_catalog.obj_description(oid, 'pg_publication') FROM pg_catalog.pg_publication WHERE pubname = $1",
            &[&options.publication.as_str()],
        )
        .await?;
    let comment: Option<String> = rows.first().and_then(|row| row.get(0));
    Ok(comment.is_some_and(|comment| comment.contains(&memory_of(options))))
}

/// Leaves the slot's name in the publication's comment, where our role owns the publication.
///
/// # Errors
/// When the server refuses for any other reason than a missing right.
pub async fn remember_slot(
    database: &Database,
    options: &SourceOptions,
) -> Result<(), SourceError> {
    let sql = format!(
        "COMMENT ON PUBLICATION {} IS {}",
        escape_identifier(options.publication.as_str()),
        escape_literal(&memory_of(options))
    );
    match database
        .execute("noting the slot in the publication's comment", &sql)
        .await
    {
        Err(error) if error.sqlstate() == Some("42501") => Ok(()),
        outcome => outcome,
    }
}

struct Existing {
    all_tables: bool,
    tables: BTreeSet<TableName>,
}

async fn find(
    database: &Database,
    publication: &PublicationName,
) -> Result<Option<Existing>, SourceError> {
    const DOING: &str = "looking up the publication";
    let rows = database
        .query(
            DOING,
            "SELECT puballtables FROM pg_catalog.pg_publication WHERE pubname = $1",
            &[&publication.as_str()],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let tables = database
        .query(
            DOING,
            "SELECT schemaname::text, tablename::text FROM pg_catalog.pg_publication_tables WHERE pubname = $1",
            &[&publication.as_str()],
        )
        .await?;
    Ok(Some(Existing {
        all_tables: row.get(0),
        tables: tables
            .iter()
            .map(|row| TableName {
                schema: row.get(0),
                name: row.get(1),
            })
            .collect(),
    }))
}

/// The statement that creates the publication.
fn creation(
    publication: &PublicationName,
    mode: PublicationAutocreate,
    captured: &[CapturedTable],
) -> Result<String, SourceError> {
    let name = escape_identifier(publication.as_str());
    match mode {
        PublicationAutocreate::Disabled => Err(SourceError::Unusable(format!(
            "publication {publication} does not exist and publication.autocreate.mode=disabled; as the table's owner: CREATE PUBLICATION {name} FOR TABLE <schema.outbox> WITH (publish = 'insert, update')"
        ))),
        // Tables without a replica identity may be among all of them, or come later.
        PublicationAutocreate::AllTables => Ok(format!(
            "CREATE PUBLICATION {name} FOR ALL TABLES WITH (publish = 'insert')"
        )),
        PublicationAutocreate::NoTables => Ok(format!(
            "CREATE PUBLICATION {name} WITH (publish = 'insert')"
        )),
        PublicationAutocreate::Filtered => {
            let publish = if captured.iter().all(|table| table.usable_identity) {
                "insert, update"
            } else {
                "insert"
            };
            Ok(format!(
                "CREATE PUBLICATION {name} FOR TABLE {} WITH (publish = '{publish}')",
                table_list(captured)?
            ))
        }
    }
}

fn table_list(captured: &[CapturedTable]) -> Result<String, SourceError> {
    if captured.is_empty() {
        return Err(SourceError::Unusable(
            "table.include.list matches no table of this database, so there is nothing to publish; check the schema and the table's name (they are matched as schema.table), and that the table exists".to_owned(),
        ));
    }
    Ok(captured
        .iter()
        .map(CapturedTable::quoted)
        .collect::<Vec<_>>()
        .join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RelationId;

    fn table(name: &str, usable_identity: bool) -> CapturedTable {
        CapturedTable {
            id: RelationId(1),
            name: TableName {
                schema: "public".to_owned(),
                name: name.to_owned(),
            },
            usable_identity,
        }
    }

    fn created(mode: PublicationAutocreate, captured: &[CapturedTable]) -> String {
        creation(&PublicationName::new("p").unwrap(), mode, captured).unwrap()
    }

    #[test]
    fn updates_are_published_only_where_they_cannot_hurt() {
        use PublicationAutocreate::{AllTables, Filtered};
        assert_eq!(
            created(Filtered, &[table("outbox", true)]),
            r#"CREATE PUBLICATION "p" FOR TABLE "public"."outbox" WITH (publish = 'insert, update')"#
        );
        assert_eq!(
            created(Filtered, &[table("outbox", true), table("no key", false)]),
            r#"CREATE PUBLICATION "p" FOR TABLE "public"."outbox", "public"."no key" WITH (publish = 'insert')"#
        );
        assert!(created(AllTables, &[]).ends_with("(publish = 'insert')"));
    }

    #[test]
    fn nothing_to_publish_is_an_error() {
        let name = PublicationName::new("p").unwrap();
        assert!(creation(&name, PublicationAutocreate::Filtered, &[]).is_err());
        assert!(
            creation(
                &name,
                PublicationAutocreate::Disabled,
                &[table("outbox", true)]
            )
            .is_err()
        );
    }
}
