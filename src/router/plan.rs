use super::{MissingColumn, Options};
use crate::model::{ErrorClass, Relation, TableName, TypeOid};

/// Name of the header that carries the event's id.
const ID_HEADER: &str = "id";

/// Where the values of an event stand in the rows of one relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    table: TableName,
    columns: usize,
    route: usize,
    key: usize,
    payload: usize,
    id: usize,
    headers: Vec<PlannedHeader>,
}

/// A header and the column its value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedHeader {
    /// The header's name.
    pub name: String,
    /// Index of the column in the relation.
    pub column: usize,
}

/// The table cannot serve as an outbox with these options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A column that an option names is not there. Names are compared as they are written.
    #[error("{table} has no column '{column}', which {option} names; it has: {columns}")]
    MissingColumn {
        /// The table.
        table: TableName,
        /// The column looked for.
        column: String,
        /// The option's key, without the transform's prefix.
        option: &'static str,
        /// The columns there are, separated by commas.
        columns: String,
    },
    /// The topic cannot be taken from a column of this type.
    #[error(
        "Field '{column}' is not of type STRING: route.by.field needs a text column, and '{column}' of {table} is not one (type oid {type_oid})"
    )]
    RouteNotString {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// Its type's object identifier.
        type_oid: u32,
    },
}

impl Plan {
    /// Finds the columns that the options name.
    ///
    /// # Errors
    /// When one is missing, or the table cannot be routed by its column.
    pub fn new(options: &Options, relation: &Relation) -> Result<Self, PlanError> {
        let index = |name: &str| {
            relation
                .columns
                .iter()
                .position(|column| column.name == name)
        };
        let find = |name: &str, option| index(name).ok_or_else(|| missing(relation, name, option));

        let id = find(&options.id_column, "table.field.event.id")?;
        let mut headers = vec![PlannedHeader {
            name: ID_HEADER.to_owned(),
            column: id,
        }];
        for placement in &options.headers {
            match index(&placement.column) {
                Some(column) => headers.push(PlannedHeader {
                    name: placement.header.clone(),
                    column,
                }),
                None if options.missing_column == MissingColumn::Ignore => {}
                None => {
                    return Err(missing(
                        relation,
                        &placement.column,
                        "table.fields.additional.placement",
                    ));
                }
            }
        }
        Ok(Self {
            table: relation.table.clone(),
            columns: relation.columns.len(),
            route: route_column(options, relation)?,
            key: find(&options.key_column, "table.field.event.key")?,
            payload: find(&options.payload_column, "table.field.event.payload")?,
            id,
            headers,
        })
    }

    /// The table the plan is for.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// How many columns its rows have.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Index of the column that chooses the topic.
    pub(super) fn route_column(&self) -> usize {
        self.route
    }

    /// Index of the column that becomes the key.
    pub fn key_column(&self) -> usize {
        self.key
    }

    /// Index of the column that becomes the value.
    pub fn payload_column(&self) -> usize {
        self.payload
    }

    /// Index of the column that holds the event's id.
    pub fn id_column(&self) -> usize {
        self.id
    }

    /// The headers in order: `id`, then the placed columns.
    pub fn headers(&self) -> &[PlannedHeader] {
        &self.headers
    }
}

fn route_column(options: &Options, relation: &Relation) -> Result<usize, PlanError> {
    let name = &options.route_column;
    let mut columns = relation.columns.iter().enumerate();
    let (index, column) = columns
        .find(|(_, column)| column.name == *name)
        .ok_or_else(|| missing(relation, name, "route.by.field"))?;
    if is_string(column.type_oid) {
        Ok(index)
    } else {
        Err(PlanError::RouteNotString {
            table: relation.table.clone(),
            column: name.clone(),
            type_oid: column.type_oid.0,
        })
    }
}

/// Whether Debezium gives the type the schema STRING and the text form it has in PostgreSQL.
/// Types made in the database (enums, citext, domains) are taken to be; the stream does not say.
fn is_string(type_oid: TypeOid) -> bool {
    type_oid.is_user_defined()
        || matches!(
            type_oid,
            TypeOid::TEXT
                | TypeOid::VARCHAR
                | TypeOid::BPCHAR
                | TypeOid::UUID
                | TypeOid::JSON
                | TypeOid::JSONB
        )
}

fn missing(relation: &Relation, column: &str, option: &'static str) -> PlanError {
    let names: Vec<&str> = relation
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    PlanError::MissingColumn {
        table: relation.table.clone(),
        column: column.to_owned(),
        option,
        columns: names.join(", "),
    }
}

impl PlanError {
    /// What the relay does about it (rule R9): only a person can mend the table or the options.
    pub fn class(&self) -> ErrorClass {
        ErrorClass::Fatal
    }
}
