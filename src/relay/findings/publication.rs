use postgres_protocol::escape::{escape_identifier, escape_literal};

use super::{Finding, advice, sql};
use crate::source::postgres::{
    OutboxFacts, PublicationAutocreate, PublicationFacts, PublishedTable, SourceOptions,
    StreamFacts, publication_addition, publication_creation,
};

/// The publication: whether every outbox is in it with its inserts (rule R8).
pub(super) fn findings(stream: &StreamFacts, source: &SourceOptions) -> Vec<Finding> {
    let Some(publication) = &stream.publication else {
        // Without any table, that is the finding.
        return match stream.tables.is_empty() {
            true => Vec::new(),
            false => vec![missing(stream, source)],
        };
    };
    let name = &source.publication;
    let quoted = escape_identifier(name.as_str());
    let mut findings = Vec::new();
    if !publication.inserts {
        findings.push(Finding::error(
            format!("Publication {name} does not publish inserts, which are the events."),
            sql(format!(
                "ALTER PUBLICATION {quoted} SET (publish = 'insert, update');"
            )),
        ));
    }
    for outbox in &stream.tables {
        match publication.published_as(outbox) {
            None => findings.push(without_table(outbox, stream, source)),
            Some(tables) => findings.extend(row_filter(&tables, source)),
        }
        findings.extend(replica_identity(publication, outbox, source));
    }
    // One with the slot's mark was there when the slot was made.
    if publication.older_than_slot == Some(false) && !publication.marks(&source.slot) {
        findings.push(younger(source));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(format!(
            "Publication {name} publishes the inserts of every outbox table."
        )));
    }
    findings
}

fn missing(stream: &StreamFacts, source: &SourceOptions) -> Finding {
    let name = &source.publication;
    if stream.slot.is_some() {
        let slot = &source.slot;
        return Finding::error(
            format!(
                "Publication {name} does not exist, although replication slot {slot} does. The slot reads the publication as it was at each moment of the log: one made now is younger than the slot's position, and what was written in between is not sent."
            ),
            sql(format!(
                "{}\n-- then pass over what was written before it, and write those events again:\nSELECT pg_replication_slot_advance({}, pg_current_wal_lsn());",
                publication_creation(source, &stream.tables),
                escape_literal(slot.as_str())
            )),
        );
    }
    match source.autocreate {
        PublicationAutocreate::Disabled => Finding::error(
            format!("Publication {name} does not exist, and publication.autocreate.mode=disabled."),
            sql(publication_creation(source, &stream.tables)),
        ),
        PublicationAutocreate::NoTables => Finding::error(
            format!(
                "Publication {name} does not exist, and publication.autocreate.mode=no_tables would make it without the outbox: nothing would ever be sent."
            ),
            sql(publication_creation(source, &stream.tables)),
        ),
        PublicationAutocreate::Filtered
        | PublicationAutocreate::Unsaid
        | PublicationAutocreate::AllTables => Finding::ok(format!(
            "Publication {name} does not exist; `run` makes it at its first start."
        )),
    }
}

fn without_table(outbox: &OutboxFacts, stream: &StreamFacts, source: &SourceOptions) -> Finding {
    let (name, table) = (&source.publication, &outbox.table.name);
    // Before there is a slot nothing is lost by adding the table.
    if source.autocreate == PublicationAutocreate::Filtered && stream.slot.is_none() {
        return Finding::warning(
            format!(
                "Publication {name} is without table {table}; `run` adds it at its first start."
            ),
            advice(
                "set publication.autocreate.mode=disabled, should the publication stay as it is",
            ),
        );
    }
    Finding::error(
        format!(
            "Publication {name} is without table {table}: its events are not sent, also not later, when the table is added."
        ),
        sql(format!(
            "{}  -- then write the events of the meantime again",
            publication_addition(source, &[outbox])
        )),
    )
}

fn row_filter(tables: &[&PublishedTable], source: &SourceOptions) -> Option<Finding> {
    let (table, filter) = tables
        .iter()
        .find_map(|table| Some((&table.name, table.row_filter.as_ref()?)))?;
    Some(Finding::warning(
        format!(
            "Publication {} publishes of table {table} only rows WHERE {filter}; other events are not sent.",
            source.publication
        ),
        sql(format!(
            "ALTER PUBLICATION {} SET TABLE {}.{};",
            escape_identifier(source.publication.as_str()),
            escape_identifier(&table.schema),
            escape_identifier(&table.name)
        )),
    ))
}

/// PostgreSQL refuses the application's own statements then (PostgreSQL documentation,
/// "CREATE PUBLICATION").
fn replica_identity(
    publication: &PublicationFacts,
    outbox: &OutboxFacts,
    source: &SourceOptions,
) -> Option<Finding> {
    if outbox.table.usable_identity {
        return None;
    }
    let statements = match (publication.updates, publication.deletes) {
        (false, false) => return None,
        (true, false) => "UPDATE",
        (false, true) => "DELETE",
        (true, true) => "UPDATE and DELETE",
    };
    Some(Finding::warning(
        format!(
            "Table {} has no replica identity, and publication {} publishes {statements}: the application's own {statements} on it fails.",
            outbox.table.name, source.publication
        ),
        sql(format!(
            "ALTER PUBLICATION {} SET (publish = 'insert');",
            escape_identifier(source.publication.as_str())
        )),
    ))
}

fn younger(source: &SourceOptions) -> Finding {
    let (name, slot) = (&source.publication, &source.slot);
    Finding::warning(
        format!(
            "Publication {name} was perhaps made or changed after the position of replication slot {slot}; the catalog does not say when. It shows when such a row is read: up to PostgreSQL 17 the stream ends with 'publication \"{name}\" does not exist', from 18 on the row is left out."
        ),
        sql(format!(
            "-- when it shows: pass over what was written before it, and write those events again\nSELECT pg_replication_slot_advance({}, pg_current_wal_lsn());",
            escape_literal(slot.as_str())
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::planted::{self, only};
    use super::*;

    fn after(change: impl FnOnce(&mut StreamFacts, &mut SourceOptions)) -> Vec<Finding> {
        let mut facts = planted::facts();
        let mut source = planted::config().source;
        change(&mut facts.stream, &mut source);
        findings(&facts.stream, &source)
    }

    #[test]
    fn a_missing_one_is_made_only_where_it_may_and_where_that_loses_nothing() {
        only(
            &after(|stream, _| {
                stream.publication = None;
                stream.slot = None;
            }),
            Severity::Ok,
            &["first start"],
        );
        only(
            &after(|stream, _| stream.publication = None),
            Severity::Error,
            &[
                "younger than the slot",
                "pg_replication_slot_advance('claims'",
            ],
        );
        only(
            &after(|stream, source| {
                stream.publication = None;
                stream.slot = None;
                source.autocreate = PublicationAutocreate::Disabled;
            }),
            Severity::Error,
            &[
                r#"CREATE PUBLICATION "claims_pub" FOR TABLE "public"."outbox" WITH (publish = 'insert, update');"#,
            ],
        );
    }

    #[test]
    fn what_is_not_published_is_named() {
        let change = |change: fn(&mut PublicationFacts)| {
            after(|stream, _| change(stream.publication.as_mut().unwrap()))
        };
        only(&change(|_| ()), Severity::Ok, &["inserts of every"]);
        only(
            &change(|publication| publication.inserts = false),
            Severity::Error,
            &[
                "does not publish inserts",
                "SET (publish = 'insert, update')",
            ],
        );
        only(
            &change(|publication| publication.tables.clear()),
            Severity::Error,
            &[r#"ADD TABLE "public"."outbox""#],
        );
        only(
            &change(|publication| publication.tables[0].row_filter = Some("(n > 1)".to_owned())),
            Severity::Warning,
            &["WHERE (n > 1)"],
        );
        only(
            &change(|publication| publication.older_than_slot = Some(false)),
            Severity::Warning,
            &["from 18 on the row is left out"],
        );
    }

    #[test]
    fn updates_without_a_replica_identity_hurt_the_application() {
        only(
            &after(|stream, _| {
                stream.tables[0].table.usable_identity = false;
                stream.publication.as_mut().unwrap().deletes = true;
            }),
            Severity::Warning,
            &["UPDATE and DELETE on it fails", "SET (publish = 'insert')"],
        );
    }
}
