//! The outbox event router: from a row to a topic, a key, a value and headers, as Debezium's
//! `io.debezium.transforms.outbox.EventRouter` does. Pure: no I/O, no bytes of its own.
//!
//! A [`Plan`] is made once for each shape of a table, and a row then costs a few look-ups: its
//! topic comes from a cache, its values stay where they were received.

mod options;
mod placement;
mod plan;
mod topic;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::model::{ErrorClass, MatchError, Relation, Row, TableName, TopicName, Value};

pub use options::{MissingColumn, OnUpdate, Options};
pub use placement::{HeaderPlacement, PlacementError, parse_placements};
pub use plan::{Plan, PlanError, PlannedHeader};
pub use topic::{TopicRoute, TopicRouteError};

/// Topics remembered by routed value. Far more than a router has in practice; it bounds memory
/// when the routed value is one that never comes again.
const MAX_CACHED_TOPICS: usize = 10_000;

/// Routes the rows of outbox tables.
pub struct Router {
    options: Options,
    topics: HashMap<Box<[u8]>, Arc<TopicName>>,
}

/// A routed event. `'p` is the life of the plan and the row, `'r` that of the receive buffer.
#[derive(Debug)]
pub struct Routed<'p, 'r> {
    /// Where it goes.
    pub topic: Arc<TopicName>,
    /// The key column's value.
    pub key: Value<'r>,
    /// The payload column's value.
    pub value: Value<'r>,
    /// The id column's value, also the first header.
    pub id: Value<'r>,
    plan: &'p Plan,
    row: &'p Row<'r>,
}

/// An event that cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The routed value is NULL, where Debezium ends with a NullPointerException.
    #[error(
        "the column '{column}' of {table} is NULL, so the event has no topic; declare it NOT NULL"
    )]
    NullRoute {
        /// The outbox table.
        table: TableName,
        /// The column of `route.by.field`.
        column: String,
    },
    /// The routed value is not text in UTF-8.
    #[error(
        "the column '{column}' of {table} holds text that is not UTF-8, so the event has no topic"
    )]
    NotUtf8 {
        /// The outbox table.
        table: TableName,
        /// The column of `route.by.field`.
        column: String,
    },
    /// Kafka would refuse the topic.
    #[error(
        "the event would go to the topic \"{shown}\", which Kafka refuses: {rule}; see route.by.field, route.topic.regex and route.topic.replacement"
    )]
    InvalidTopic {
        /// The name, escaped and cut short: it comes from data.
        shown: String,
        /// Kafka's rule.
        rule: String,
    },
    /// The pattern of `route.topic.regex` gave up.
    #[error("route.topic.regex: {0}")]
    Regex(MatchError),
    /// The row has other columns than the relation its plan was made for.
    #[error("a row of {table} has {found} values where its relation has {expected} columns")]
    RowShape {
        /// The outbox table.
        table: TableName,
        /// Columns of the relation.
        expected: usize,
        /// Values of the row.
        found: usize,
    },
}

impl Router {
    /// A router with these options.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            topics: HashMap::new(),
        }
    }

    /// What to do with the rows of `relation`, to be made anew for each Relation message.
    ///
    /// # Errors
    /// When the table lacks a column the options name, or cannot be routed by its column.
    pub fn plan(&self, relation: &Relation) -> Result<Plan, PlanError> {
        Plan::new(&self.options, relation)
    }

    /// Routes a row of the relation that `plan` was made for.
    ///
    /// # Errors
    /// When the event has no topic, or one that Kafka refuses.
    pub fn route<'p, 'r>(
        &mut self,
        plan: &'p Plan,
        row: &'p Row<'r>,
    ) -> Result<Routed<'p, 'r>, RouteError> {
        if row.len() != plan.columns() {
            return Err(RouteError::RowShape {
                table: plan.table().clone(),
                expected: plan.columns(),
                found: row.len(),
            });
        }
        Ok(Routed {
            topic: self.topic(plan, value_at(row, plan.route_column()))?,
            key: value_at(row, plan.key_column()),
            value: value_at(row, plan.payload_column()),
            id: value_at(row, plan.id_column()),
            plan,
            row,
        })
    }

    fn topic(&mut self, plan: &Plan, raw: Value<'_>) -> Result<Arc<TopicName>, RouteError> {
        let Value::Text(raw) = raw else {
            return Err(RouteError::NullRoute {
                table: plan.table().clone(),
                column: self.options.route_column.clone(),
            });
        };
        if let Some(topic) = self.topics.get(raw) {
            return Ok(Arc::clone(topic));
        }
        let text = std::str::from_utf8(raw).map_err(|_| RouteError::NotUtf8 {
            table: plan.table().clone(),
            column: self.options.route_column.clone(),
        })?;
        let topic = Arc::new(self.options.route.route(text)?);
        if self.topics.len() >= MAX_CACHED_TOPICS {
            self.topics.clear();
        }
        self.topics.insert(raw.into(), Arc::clone(&topic));
        Ok(topic)
    }
}

impl<'p, 'r> Routed<'p, 'r> {
    /// Header names and values in the order Debezium sends them: `id`, then the placed columns
    /// as configured; the same order as [`Plan::headers`].
    pub fn headers(&self) -> impl Iterator<Item = (&'p str, Value<'r>)> + use<'p, 'r> {
        let row = self.row;
        let headers = self.plan.headers().iter();
        headers.map(move |header| (header.name.as_str(), value_at(row, header.column)))
    }
}

/// The value at `column`. There is one, as the row's length was compared with the plan's; if
/// not, it counts as not sent, which no converter takes for a value.
fn value_at<'r>(row: &Row<'r>, column: usize) -> Value<'r> {
    row.get(column).unwrap_or(Value::Unchanged)
}

/// Shows how many topics are cached, not the routed values: those are data.
impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router")
            .field("options", &self.options)
            .field("topics", &self.topics.len())
            .finish()
    }
}

impl RouteError {
    /// What the relay does about it (rule R9).
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NullRoute { .. }
            | Self::NotUtf8 { .. }
            | Self::InvalidTopic { .. }
            | Self::Regex(_) => ErrorClass::Poison,
            Self::RowShape { .. } => ErrorClass::Fatal,
        }
    }
}

#[cfg(test)]
mod tests;
