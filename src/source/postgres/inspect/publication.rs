use serde::Deserialize;

use super::super::{Database, SourceError, SourceOptions};
use super::OutboxFacts;
use crate::model::{SlotName, TableName};

/// A publication: what it publishes of which tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PublicationFacts {
    /// It is FOR ALL TABLES.
    pub all_tables: bool,
    /// It publishes INSERT.
    pub inserts: bool,
    /// It publishes UPDATE.
    pub updates: bool,
    /// It publishes DELETE.
    pub deletes: bool,
    /// A partition's rows are published as its root's (`publish_via_partition_root`).
    pub via_root: bool,
    /// Whether the role may alter it.
    pub may_alter: bool,
    /// Its comment, where [`slot_mark`] may stand.
    pub comment: Option<String>,
    /// Whether it was there, as it is now, before every position the slot can still read from.
    /// `false` means only that it may be younger: the catalog does not say when it was made.
    /// `None` without a slot.
    pub older_than_slot: Option<bool>,
    /// The tables, each under the name its rows are published as.
    pub tables: Vec<PublishedTable>,
}

/// What a publication has of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedTable {
    /// The table.
    pub name: TableName,
    /// The columns it publishes; `None` where the version cannot choose (14).
    pub columns: Option<Vec<String>>,
    /// The condition that rows have to meet (`WHERE`), if any.
    pub row_filter: Option<String>,
}

/// What stands in the publication's comment once the slot is in use (rule R8). A slot that is
/// marked so and missing was lost; it was not forgotten to be made.
pub fn slot_mark(slot: &SlotName) -> String {
    format!("outboxd slot={slot}")
}

impl PublicationFacts {
    /// Whether the comment says that this slot is in use.
    pub fn marks(&self, slot: &SlotName) -> bool {
        let mark = slot_mark(slot);
        self.comment.iter().any(|comment| {
            comment
                .split([';', '\n'])
                .any(|part| part.trim() == mark.as_str())
        })
    }

    /// The published tables under whose names an outbox's rows come; `None` when not all of
    /// its rows do.
    pub fn published_as(&self, outbox: &OutboxFacts) -> Option<Vec<&PublishedTable>> {
        match self.table(&outbox.table.name) {
            Some(table) => Some(vec![table]),
            None if outbox.partitioned && !self.via_root => outbox
                .partitions
                .iter()
                .map(|partition| self.table(partition))
                .collect(),
            None => None,
        }
    }

    /// Those whose rows it does not publish, or not all of them.
    pub fn lacks<'o>(&self, outboxes: &'o [OutboxFacts]) -> Vec<&'o OutboxFacts> {
        let lacking = |outbox: &&OutboxFacts| self.published_as(outbox).is_none();
        outboxes.iter().filter(lacking).collect()
    }

    fn table(&self, name: &TableName) -> Option<&PublishedTable> {
        self.tables.iter().find(|table| table.name == *name)
    }
}

/// A row of `pg_publication_tables`; columns and row filters since 15.
#[derive(Deserialize)]
struct Listed {
    schemaname: String,
    tablename: String,
    attnames: Option<Vec<String>>,
    rowfilter: Option<String>,
}

impl Database {
    pub(super) async fn publication_facts(
        &self,
        options: &SourceOptions,
        role: Option<&str>,
    ) -> Result<Option<PublicationFacts>, SourceError> {
        const DOING: &str = "looking up the publication";
        let publication = &options.publication;
        let rows = self
            .query(
                DOING,
                // A transaction before the slot's catalog_xmin has committed for every snapshot
                // the slot can still need.
                "SELECT p.puballtables, p.pubinsert, p.pubupdate, p.pubdelete, p.pubviaroot,
                        coalesce(pg_catalog.pg_has_role(r.oid, p.pubowner, 'USAGE'), false),
                        pg_catalog.obj_description(p.oid, 'pg_publication'),
                        (SELECT pg_catalog.age(p.xmin) > pg_catalog.age(s.catalog_xmin)
                         FROM pg_catalog.pg_replication_slots s WHERE s.slot_name = $2)
                 FROM pg_catalog.pg_publication p
                 LEFT JOIN pg_catalog.pg_roles r ON r.rolname = coalesce($3::text, current_user::text)
                 WHERE p.pubname = $1",
                &[&publication.as_str(), &options.slot.as_str(), &role],
            )
            .await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let listed = self
            .query(
                DOING,
                "SELECT to_jsonb(t)::text FROM pg_catalog.pg_publication_tables t WHERE pubname = $1",
                &[&publication.as_str()],
            )
            .await?;
        let tables = listed
            .iter()
            .map(|row| {
                let listed: Listed =
                    serde_json::from_str(row.get(0)).map_err(|error| SourceError::Protocol {
                        doing: DOING,
                        what: error.to_string(),
                    })?;
                Ok(PublishedTable {
                    name: TableName {
                        schema: listed.schemaname,
                        name: listed.tablename,
                    },
                    columns: listed.attnames,
                    row_filter: listed.rowfilter,
                })
            })
            .collect::<Result<_, SourceError>>()?;
        Ok(Some(PublicationFacts {
            all_tables: row.get(0),
            inserts: row.get(1),
            updates: row.get(2),
            deletes: row.get(3),
            via_root: row.get(4),
            may_alter: row.get(5),
            comment: row.get(6),
            older_than_slot: row.get(7),
            tables,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_stands_beside_words_of_others_and_names_one_slot() {
        let slot = SlotName::new("claims").unwrap();
        let marks = |comment: &str| {
            PublicationFacts {
                comment: Some(comment.to_owned()),
                ..PublicationFacts::default()
            }
            .marks(&slot)
        };
        assert!(marks(&slot_mark(&slot)));
        assert!(marks("for the claims team; outboxd slot=claims"));
        assert!(!marks("outboxd slot=claims_2"));
        assert!(!marks(""));
    }
}
