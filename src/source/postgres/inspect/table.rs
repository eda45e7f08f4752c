use std::collections::HashSet;

use postgres_protocol::escape::escape_identifier;

use super::super::{CapturedTable, Database, SourceError, TableFacts, TableFilter};
use crate::model::{Column, RelationId, TableName, TypeOid};

/// A table that the filters name, and what the role may do with it.
#[derive(Debug, Clone)]
pub struct OutboxFacts {
    /// The table.
    pub table: CapturedTable,
    /// Whether it has a primary key.
    pub primary_key: bool,
    /// The partitions that hold its rows; empty for a table that has none.
    pub partitions: Vec<TableName>,
    /// Whether it is a partitioned table.
    pub partitioned: bool,
    /// Its columns in order.
    pub columns: Vec<OutboxColumn>,
    /// What the stream does not say of its columns.
    pub facts: TableFacts,
    /// The role may use its schema.
    pub may_use_schema: bool,
    /// The role may read it.
    pub may_select: bool,
    /// The role owns it.
    pub owned: bool,
}

/// A column as the stream would describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxColumn {
    /// Name and type.
    pub column: Column,
    /// Whether it is a generated column, which servers before 18 never publish.
    pub generated: bool,
}

impl Database {
    /// The tables that the filters name. A partition of one of them is no table of its own.
    pub(super) async fn outbox_facts(
        &self,
        filter: &TableFilter,
        role: Option<&str>,
    ) -> Result<Vec<OutboxFacts>, SourceError> {
        let mut found = Vec::new();
        for table in self.tables().await? {
            let captured = filter
                .includes(&table.name)
                .map_err(|error| SourceError::unmatchable(&table.name, &error))?;
            if captured {
                found.push(self.outbox(table, role).await?);
            }
        }
        let partitions: HashSet<TableName> = found
            .iter()
            .flat_map(|outbox| outbox.partitions.iter().cloned())
            .collect();
        found.retain(|outbox| !partitions.contains(&outbox.table.name));
        Ok(found)
    }

    async fn outbox(
        &self,
        table: CapturedTable,
        role: Option<&str>,
    ) -> Result<OutboxFacts, SourceError> {
        const DOING: &str = "looking at the outbox table";
        let row = self
            .query_one(
                DOING,
                "SELECT c.relkind = 'p',
                        EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary),
                        coalesce(pg_catalog.has_schema_privilege(r.oid, c.relnamespace, 'USAGE'), false),
                        coalesce(pg_catalog.has_table_privilege(r.oid, c.oid, 'SELECT'), false),
                        coalesce(pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE'), false)
                 FROM pg_catalog.pg_class c
                 LEFT JOIN pg_catalog.pg_roles r ON r.rolname = coalesce($2::text, current_user::text)
                 WHERE c.oid = $1",
                &[&table.id.0, &role],
            )
            .await?;
        let partitioned: bool = row.get(0);
        Ok(OutboxFacts {
            primary_key: row.get(1),
            partitions: match partitioned {
                true => self.partitions(table.id).await?,
                false => Vec::new(),
            },
            partitioned,
            columns: self.columns(table.id).await?,
            facts: self.table_facts(table.id).await?,
            may_use_schema: row.get(2),
            may_select: row.get(3),
            owned: row.get(4),
            table,
        })
    }

    async fn partitions(&self, root: RelationId) -> Result<Vec<TableName>, SourceError> {
        let rows = self
            .query(
                "listing the outbox table's partitions",
                "SELECT n.nspname::text, c.relname::text
                 FROM pg_catalog.pg_partition_tree($1::oid::regclass) t
                 JOIN pg_catalog.pg_class c ON c.oid = t.relid
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE t.isleaf ORDER BY 1, 2",
                &[&root.0],
            )
            .await?;
        let name = |row: &tokio_postgres::Row| TableName {
            schema: row.get(0),
            name: row.get(1),
        };
        Ok(rows.iter().map(name).collect())
    }

    async fn columns(&self, id: RelationId) -> Result<Vec<OutboxColumn>, SourceError> {
        let rows = self
            .query(
                "reading the outbox table's columns",
                "SELECT attname::text, atttypid, atttypmod, attgenerated <> ''
                 FROM pg_catalog.pg_attribute
                 WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                &[&id.0],
            )
            .await?;
        let column = |row: &tokio_postgres::Row| OutboxColumn {
            column: Column {
                name: row.get(0),
                type_oid: TypeOid(row.get(1)),
                type_modifier: row.get(2),
                is_key: false,
            },
            generated: row.get(3),
        };
        Ok(rows.iter().map(column).collect())
    }

    /// Values of a column that rows of a table have now: of some rows, where there are many.
    ///
    /// # Errors
    /// When the role may not read it, or the column is not there.
    pub async fn some_values(
        &self,
        table: &CapturedTable,
        column: &str,
    ) -> Result<Vec<String>, SourceError> {
        let sql = format!(
            "SELECT DISTINCT value FROM (SELECT {}::text AS value FROM {} LIMIT 10000) AS some_rows
             WHERE value IS NOT NULL ORDER BY value LIMIT 100",
            escape_identifier(column),
            table.quoted()
        );
        let rows = self.query("reading the outbox", &sql, &[]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// Whether a table has rows.
    ///
    /// # Errors
    /// When the role may not read it.
    pub async fn has_rows(&self, table: &CapturedTable) -> Result<bool, SourceError> {
        Ok(self.count_rows(table, 1).await? > 0)
    }
}
