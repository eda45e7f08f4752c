use postgres_protocol::escape::escape_identifier;

use super::{Finding, advice, sql};
use crate::config::Config;
use crate::model::Relation;
use crate::relay::prepare::includes;
use crate::relay::translate::Translator;
use crate::router::{self, MissingColumn};
use crate::source::postgres::{OutboxFacts, PublicationFacts, StreamFacts};

/// The outbox tables: whether they are there, and fit the router's and converters' options.
pub(super) fn findings(stream: &StreamFacts, config: &Config) -> Vec<Finding> {
    if stream.tables.is_empty() {
        return vec![no_table(stream, config)];
    }
    let publication = stream.publication.as_ref();
    let mut findings = Vec::new();
    for outbox in &stream.tables {
        let before = findings.len();
        findings.extend(partitions(outbox, publication, config));
        findings.extend(columns(outbox, publication, config));
        findings.extend(primary_key(outbox, config));
        if findings.len() == before {
            findings.push(Finding::ok(format!(
                "Table {} has every column that the router and the converters need.",
                outbox.table.name
            )));
        }
    }
    findings
}

fn no_table(stream: &StreamFacts, config: &Config) -> Finding {
    let source = &config.source;
    let published = stream.publication.iter().flat_map(|p| &p.tables);
    let names: Vec<String> = published.map(|table| table.name.to_string()).collect();
    let renamed = match (names.len(), names.join(", ")) {
        (1..=5, names) => format!(
            " Publication {} publishes {names}: was the outbox renamed?",
            source.publication
        ),
        _ => String::new(),
    };
    Finding::error(
        format!(
            "No table of database {} is matched by table.include.list (as schema.table, whatever the case), so there is no outbox to read.{renamed} A table that is UNLOGGED does not count: the log has nothing of it.",
            source.database
        ),
        advice("create the table (`outboxd setup` prints it), or mend table.include.list"),
    )
}

/// Rows of partitions come under the partitions' names, unless published via the root, as a
/// publication made by us is.
fn partitions(
    outbox: &OutboxFacts,
    publication: Option<&PublicationFacts>,
    config: &Config,
) -> Option<Finding> {
    if !outbox.partitioned || publication?.via_root {
        return None;
    }
    let foreign = outbox
        .partitions
        .iter()
        .find(|partition| matches!(includes(&config.source.tables, partition), Ok(false)))?;
    let name = &config.source.publication;
    Some(Finding::error(
        format!(
            "Table {} is partitioned, and publication {name} publishes its rows under the partitions' names, such as {foreign}, which table.include.list does not match: its events would not be sent.",
            outbox.table.name
        ),
        sql(format!(
            "ALTER PUBLICATION {} SET (publish_via_partition_root = true);",
            escape_identifier(name.as_str())
        )),
    ))
}

/// First whether each column that the options name is there and published; where all are,
/// whether they can be routed and converted.
fn columns(
    outbox: &OutboxFacts,
    publication: Option<&PublicationFacts>,
    config: &Config,
) -> Vec<Finding> {
    let relation = published(outbox, publication);
    let missing: Vec<Finding> = needed(&config.router)
        .into_iter()
        .filter(|(name, _)| !relation.columns.iter().any(|column| column.name == *name))
        .map(|(name, option)| missing_column(outbox, name, option, config))
        .collect();
    if !missing.is_empty() {
        return missing;
    }
    let translator = Translator::new(
        config.router.clone(),
        config.convert,
        config.source.tables.clone(),
        &[],
    );
    let problems = match translator {
        Ok(translator) => translator.problems(&relation, &outbox.facts),
        // Then it is no table's fault, and `run` says so by itself.
        Err(_) => Vec::new(),
    };
    problems
        .into_iter()
        .map(|problem| {
            Finding::error(
                format!("{problem}."),
                advice("change the column's type, or let the router's options name another column"),
            )
            .told_at_its_place()
        })
        .collect()
}

/// The columns without which the router refuses a table, and the options that name them.
fn needed(router: &router::Options) -> Vec<(&str, &'static str)> {
    let mut needed = vec![
        (router.id_column.as_str(), "table.field.event.id"),
        (&router.key_column, "table.field.event.key"),
        (&router.payload_column, "table.field.event.payload"),
        (&router.route_column, "route.by.field"),
    ];
    if router.missing_column == MissingColumn::Error {
        let placed = router.headers.iter();
        needed.extend(placed.map(|p| (p.column.as_str(), "table.fields.additional.placement")));
    }
    needed
}

fn missing_column(outbox: &OutboxFacts, name: &str, option: &str, config: &Config) -> Finding {
    let table = &outbox.table.name;
    let publication = &config.source.publication;
    let quoted = escape_identifier(publication.as_str());
    match outbox
        .columns
        .iter()
        .find(|column| column.column.name == name)
    {
        None => {
            let names: Vec<&str> = outbox
                .columns
                .iter()
                .map(|column| column.column.name.as_str())
                .collect();
            Finding::error(
                format!(
                    "Table {table} has no column '{name}', which {option} names; it has: {}.",
                    names.join(", ")
                ),
                advice(format!("let {option} name one of these, or add the column")),
            )
            .told_at_its_place()
        }
        Some(column) if column.generated => Finding::error(
            format!(
                "Column '{name}' of table {table}, which {option} names, is a generated column, and publication {publication} does not publish those."
            ),
            sql(format!(
                "ALTER PUBLICATION {quoted} SET (publish_generated_columns = stored);  -- PostgreSQL 18; before, make it an ordinary column"
            )),
        ),
        Some(_) => Finding::error(
            format!(
                "Column '{name}' of table {table}, which {option} names, is not in the column list of publication {publication}."
            ),
            sql(format!(
                "ALTER PUBLICATION {quoted} SET TABLE {};",
                outbox.table.quoted()
            )),
        ),
    }
}

/// The table as the stream describes it: without the columns that are not published.
fn published(outbox: &OutboxFacts, publication: Option<&PublicationFacts>) -> Relation {
    let tables = publication
        .and_then(|publication| publication.published_as(outbox))
        .unwrap_or_default();
    let is_published = |name: &String| {
        tables.iter().all(|table| {
            let listed = table.columns.as_ref();
            listed.is_none_or(|columns| columns.contains(name))
        })
    };
    // Only a list that names a generated column says that it is published.
    let lists = tables.iter().any(|table| table.columns.is_some());
    Relation {
        id: outbox.table.id,
        table: outbox.table.name.clone(),
        columns: outbox
            .columns
            .iter()
            .filter(|column| is_published(&column.column.name) && (lists || !column.generated))
            .map(|column| column.column.clone())
            .collect(),
    }
}

fn primary_key(outbox: &OutboxFacts, config: &Config) -> Option<Finding> {
    (!outbox.primary_key).then(|| {
        Finding::warning(
            format!(
                "Table {} has no primary key: two events could have the same id, by which consumers tell duplicates.",
                outbox.table.name
            ),
            sql(format!(
                "ALTER TABLE {} ADD PRIMARY KEY ({});",
                outbox.table.quoted(),
                escape_identifier(&config.router.id_column)
            )),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Severity, planted};
    use super::*;
    use crate::model::{TableName, TypeOid};

    fn after(change: impl FnOnce(&mut StreamFacts)) -> Vec<Finding> {
        let mut facts = planted::facts();
        change(&mut facts.stream);
        findings(&facts.stream, &planted::config())
    }

    #[track_caller]
    fn says(findings: &[Finding], severity: Severity, words: &[&str]) {
        assert_eq!(findings.len(), words.len(), "{findings:#?}");
        for (finding, words) in findings.iter().zip(words) {
            assert_eq!(finding.severity, severity, "{finding}");
            assert!(finding.to_string().contains(words), "{words}: {finding}");
        }
    }

    #[test]
    fn all_missing_columns_are_named_at_once() {
        says(&after(|_| ()), Severity::Ok, &["every column"]);
        says(
            &after(|stream| {
                stream.tables[0]
                    .columns
                    .retain(|column| !["id", "type"].contains(&column.column.name.as_str()));
            }),
            Severity::Error,
            &[
                "no column 'id', which table.field.event.id names; it has: aggregate_type,",
                "no column 'type', which table.fields.additional.placement names",
            ],
        );
        says(
            &after(|stream| stream.tables.clear()),
            Severity::Error,
            &["outboxd setup"],
        );
    }

    #[test]
    fn a_column_that_is_not_published_is_not_there() {
        says(
            &after(|stream| {
                let publication = stream.publication.as_mut().unwrap();
                let columns = publication.tables[0].columns.as_mut().unwrap();
                columns.retain(|column| column != "payload");
            }),
            Severity::Error,
            &[
                r#"'payload' of table public.outbox, which table.field.event.payload names, is not in the column list"#,
            ],
        );
        let generated = |columns: bool| {
            after(|stream| {
                stream.tables[0].columns[4].generated = true;
                let table = &mut stream.publication.as_mut().unwrap().tables[0];
                if !columns {
                    table.columns = None;
                }
            })
        };
        says(
            &generated(false),
            Severity::Error,
            &["is a generated column"],
        );
        says(&generated(true), Severity::Ok, &["every column"]);
    }

    #[test]
    fn all_types_that_cannot_be_converted_are_named_at_once() {
        says(
            &after(|stream| {
                // money: nothing knows it.
                stream.tables[0].columns[0].column.type_oid = TypeOid(790);
                stream.tables[0].columns[4].column.type_oid = TypeOid(790);
            }),
            Severity::Error,
            &["its column payload", "its column id"],
        );
    }

    #[test]
    fn partitions_have_to_be_matched_or_published_as_their_root() {
        let partitioned = |via_root: Option<bool>| {
            after(|stream| {
                let outbox = &mut stream.tables[0];
                outbox.partitioned = true;
                outbox.partitions = vec![TableName {
                    schema: "public".to_owned(),
                    name: "outbox_2026".to_owned(),
                }];
                match via_root {
                    Some(is_so) => stream.publication.as_mut().unwrap().via_root = is_so,
                    None => stream.publication = None,
                }
            })
        };
        says(
            &partitioned(Some(false)),
            Severity::Error,
            &["public.outbox_2026"],
        );
        for fine in [Some(true), None] {
            says(&partitioned(fine), Severity::Ok, &["every column"]);
        }
    }

    #[test]
    fn a_table_without_primary_key_is_warned_of() {
        says(
            &after(|stream| stream.tables[0].primary_key = false),
            Severity::Warning,
            &[r#"ALTER TABLE "public"."outbox" ADD PRIMARY KEY ("id")"#],
        );
    }
}
