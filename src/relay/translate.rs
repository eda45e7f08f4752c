use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::error::{EventError, EventProblem, RelayError, TableError, TableProblem};
use super::poison::DeadLetter;
use super::position::{Position, PositionHeaders};
use super::prepare::includes;
use crate::convert::{self, Encoder, Piece, Schema};
use crate::model::{
    Header, OutgoingRecord, Relation, RelationId, Row, TableName, TopicName, Value,
};
use crate::router::{self, Plan, Router};
use crate::sink::DeliveryFailure;
use crate::source::postgres::{TableFacts, TableFilter};

/// An arena grown for one large value is given back.
const KEEP_BYTES: usize = 1024 * 1024;

/// Turns outbox rows into records: the router says what goes where, the converters say in
/// which bytes.
pub(super) struct Translator {
    router: Router,
    converters: convert::Options,
    filter: TableFilter,
    /// Headers that every record begins with.
    context_headers: Vec<(String, Option<Vec<u8>>)>,
    tables: HashMap<RelationId, Table>,
    /// The outbox tables there are, by the names they have now.
    outboxes: HashMap<RelationId, TableName>,
    arena: Vec<u8>,
    /// Where each event stands, where that is wanted.
    position: Option<PositionHeaders>,
}

/// What is known of a table of the stream.
enum Table {
    Outbox(Box<OutboxTable>),
    /// Published too, but no outbox of ours.
    Foreign,
    /// An outbox that has, or had, a name which the filters do not know: with the name they do.
    Renamed {
        now: TableName,
        known: TableName,
    },
}

struct OutboxTable {
    name: TableName,
    plan: Plan,
    key: Encoder,
    value: Encoder,
    /// One a header, in the plan's order: the id, then the placed ones.
    headers: Vec<Encoder>,
}

/// A record whose parts are borrowed from the row and from the translator.
pub(super) struct Translated<'a> {
    topic: Arc<TopicName>,
    key: Option<&'a [u8]>,
    value: Option<&'a [u8]>,
    headers: SmallVec<[Header<'a>; 12]>,
}

impl Translated<'_> {
    pub(super) fn record(&self) -> OutgoingRecord<'_> {
        OutgoingRecord {
            topic: self.topic.as_str(),
            key: self.key,
            value: self.value,
            headers: &self.headers,
        }
    }
}

impl Translator {
    /// `context_headers` are written by the header converter like any other.
    pub(super) fn new(
        router: router::Options,
        converters: convert::Options,
        filter: TableFilter,
        context_headers: &[(&str, String)],
    ) -> Result<Self, convert::ConvertError> {
        let encoder = converters.header.encoder(&Schema::text())?;
        let mut encoded = Vec::with_capacity(context_headers.len());
        for (name, value) in context_headers {
            let mut arena = Vec::new();
            let piece = encoder.encode(Value::Text(value.as_bytes()), &mut arena)?;
            encoded.push(((*name).to_owned(), piece.bytes(&arena).map(<[u8]>::to_vec)));
        }
        Ok(Self {
            router: Router::new(router),
            converters,
            filter,
            context_headers: encoded,
            tables: HashMap::new(),
            outboxes: HashMap::new(),
            arena: Vec::new(),
            position: None,
        })
    }

    /// Adds the position headers to every record from now on.
    pub(super) fn tell_positions(&mut self) {
        self.position = Some(PositionHeaders::default());
    }

    /// Whether a row inserted into this table is an event that has to be counted.
    pub(super) fn counts(&self, id: RelationId) -> bool {
        self.position.is_some() && matches!(self.tables.get(&id), Some(Table::Outbox(_)))
    }

    /// Says which outbox tables there are before the stream tells it.
    pub(super) fn knows(&mut self, outboxes: impl Iterator<Item = (RelationId, TableName)>) {
        self.outboxes.extend(outboxes);
    }

    /// Whether this table's shape needs facts that only the catalog has (rule R6).
    pub(super) fn needs_facts(&self, relation: &Relation) -> Result<bool, RelayError> {
        let converters = [
            &self.converters.key,
            &self.converters.value,
            &self.converters.header,
        ];
        let any_needs = converters
            .iter()
            .any(|converter| converter.needs_nullability());
        Ok(any_needs && includes(&self.filter, &relation.table)?)
    }

    /// Takes a table's shape, from here on in the stream.
    pub(super) fn relation(
        &mut self,
        relation: &Relation,
        facts: &TableFacts,
    ) -> Result<(), RelayError> {
        let table = if includes(&self.filter, &relation.table)? {
            self.outboxes.insert(relation.id, relation.table.clone());
            Table::Outbox(Box::new(self.outbox(relation, facts)?))
        } else {
            match self.outboxes.get(&relation.id) {
                None => Table::Foreign,
                Some(known) => Table::Renamed {
                    now: relation.table.clone(),
                    known: known.clone(),
                },
            }
        };
        self.tables.insert(relation.id, table);
        Ok(())
    }

    /// The outbox table that `id` stands for; `None` for a table that is none of ours.
    ///
    /// # Errors
    /// When the stream has not described the table.
    pub(super) fn outbox_name(&self, id: RelationId) -> Result<Option<&TableName>, RelayError> {
        match self.tables.get(&id) {
            Some(Table::Outbox(table)) => Ok(Some(&table.name)),
            Some(Table::Foreign | Table::Renamed { .. }) => Ok(None),
            None => Err(undescribed(id)),
        }
    }

    /// The record for an inserted row; `None` for a table that is none of ours.
    ///
    /// # Errors
    /// When the event cannot be sent as it is, the table was renamed so that it would be passed
    /// over, or the stream has not described the table.
    pub(super) fn record<'a>(
        &'a mut self,
        id: RelationId,
        row: &'a Row<'_>,
        position: Position,
    ) -> Result<Option<Translated<'a>>, RelayError> {
        let table = match self.tables.get(&id) {
            Some(Table::Outbox(table)) => table,
            Some(Table::Foreign) => return Ok(None),
            Some(Table::Renamed { now, known }) => return Err(renamed(now, known).into()),
            None => return Err(undescribed(id)),
        };
        self.arena.clear();
        if self.arena.capacity() > KEEP_BYTES {
            self.arena = Vec::new();
        }
        let blame = |why: EventProblem| {
            Box::new(EventError {
                event: event_id(table, row),
                table: table.name.clone(),
                lsn: position.commit_lsn(),
                place: None,
                why,
            })
        };
        let routed = self
            .router
            .route(&table.plan, row)
            .map_err(|why| blame(why.into()))?;

        let arena = &mut self.arena;
        let mut encode = |encoder: &Encoder, value: Value<'a>| {
            encoder
                .encode(value, arena)
                .map_err(|why| blame(why.into()))
        };
        let key = encode(&table.key, routed.key)?;
        let value = encode(&table.value, routed.value)?;
        let mut headers: SmallVec<[(&'a str, Piece<'a>); 8]> = SmallVec::new();
        for ((name, value), encoder) in routed.headers().zip(&table.headers) {
            headers.push((name, encode(encoder, value)?));
        }

        if let Some(headers) = &mut self.position {
            headers.set(position);
        }
        // The arena is complete: pieces can be looked up in it.
        let arena = self.arena.as_slice();
        let context = self.context_headers.iter().map(|(name, value)| Header {
            name,
            value: value.as_deref(),
        });
        let own = headers.iter().map(|(name, piece)| Header {
            name,
            value: piece.bytes(arena),
        });
        let positions = self.position.iter().flat_map(PositionHeaders::headers);
        Ok(Some(Translated {
            topic: routed.topic,
            key: key.bytes(arena),
            value: value.bytes(arena),
            headers: context.chain(own).chain(positions).collect(),
        }))
    }

    /// What goes to the dead-letter topic instead of this row, which cannot be sent because of
    /// `reason`: its record, or, where none can be made, key and payload as the database has them.
    ///
    /// # Errors
    /// When the stream has not described the table.
    pub(super) fn dead_letter(
        &mut self,
        id: RelationId,
        row: &Row<'_>,
        position: Position,
        reason: &str,
    ) -> Result<DeadLetter, RelayError> {
        let Some(Table::Outbox(table)) = self.tables.get(&id) else {
            return Err(undescribed(id));
        };
        let raw = |column| match row.get(column) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        };
        let (event, name) = (event_id(table, row), table.name.clone());
        let (key, value) = (
            raw(table.plan.key_column()),
            raw(table.plan.payload_column()),
        );
        let mut letter = match self.record(id, row, position) {
            Ok(Some(translated)) => DeadLetter::of_record(&translated.record(), event, name),
            Ok(None) | Err(RelayError::Event(_)) => DeadLetter::of_row(key, value, event, name),
            Err(error) => return Err(error),
        };
        letter.explain(position.commit_lsn(), reason);
        Ok(letter)
    }

    /// The id, for a message, of the event that a row is, and its table; `None` where it is none.
    pub(super) fn event(&self, id: RelationId, row: &Row<'_>) -> Option<(String, &TableName)> {
        match self.tables.get(&id) {
            Some(Table::Outbox(table)) => Some((event_id(table, row), &table.name)),
            _ => None,
        }
    }

    /// The error about an event whose record was refused.
    pub(super) fn refused(
        &self,
        id: RelationId,
        row: &Row<'_>,
        position: Position,
        failure: DeliveryFailure,
    ) -> RelayError {
        let Some(Table::Outbox(table)) = self.tables.get(&id) else {
            return undescribed(id);
        };
        Box::new(EventError {
            event: event_id(table, row),
            table: table.name.clone(),
            lsn: position.commit_lsn(),
            place: None,
            why: EventProblem::Refused(failure),
        })
        .into()
    }

    /// Everything that keeps a table of this shape from being relayed.
    pub(super) fn problems(&self, relation: &Relation, facts: &TableFacts) -> Vec<RelayError> {
        let plan = match self.router.plan(relation) {
            Ok(plan) => plan,
            Err(why) => return vec![refuse(relation, why.into()).into()],
        };
        let converters = &self.converters;
        let headers = plan.headers().iter();
        [
            (&converters.key, plan.key_column()),
            (&converters.value, plan.payload_column()),
        ]
        .into_iter()
        .chain(headers.map(|header| (&converters.header, header.column)))
        .filter_map(|(converter, index)| encoder(converter, relation, index, facts).err())
        .collect()
    }

    fn outbox(&self, relation: &Relation, facts: &TableFacts) -> Result<OutboxTable, RelayError> {
        let plan = self
            .router
            .plan(relation)
            .map_err(|why| refuse(relation, why.into()))?;
        let converters = &self.converters;
        Ok(OutboxTable {
            name: relation.table.clone(),
            key: encoder(&converters.key, relation, plan.key_column(), facts)?,
            value: encoder(&converters.value, relation, plan.payload_column(), facts)?,
            headers: plan
                .headers()
                .iter()
                .map(|header| encoder(&converters.header, relation, header.column, facts))
                .collect::<Result<_, _>>()?,
            plan,
        })
    }
}

/// What writes the values of the column at `index`.
fn encoder(
    converter: &convert::Converter,
    relation: &Relation,
    index: usize,
    facts: &TableFacts,
) -> Result<Encoder, RelayError> {
    let Some(column) = relation.columns.get(index) else {
        return Err(undescribed(relation.id));
    };
    let name = || column.name.clone();
    let known = facts.column(&column.name);
    if converter.needs_nullability() && known.is_some_and(|known| known.constant_default) {
        let why = TableProblem::ConstantDefault { column: name() };
        return Err(refuse(relation, why).into());
    }
    let not_null = known.is_some_and(|known| known.not_null);
    Schema::of_column(column.type_oid, not_null)
        .map_err(|why| TableProblem::Type {
            column: name(),
            why,
        })
        .and_then(|schema| {
            let encoder = converter.encoder(&schema);
            encoder.map_err(|why| TableProblem::Converter {
                column: name(),
                why,
            })
        })
        .map_err(|why| refuse(relation, why).into())
}

fn refuse(relation: &Relation, why: TableProblem) -> Box<TableError> {
    Box::new(TableError {
        table: relation.table.clone(),
        why,
    })
}

fn renamed(now: &TableName, known: &TableName) -> Box<TableError> {
    Box::new(TableError {
        table: now.clone(),
        why: TableProblem::Renamed {
            known: known.clone(),
        },
    })
}

/// The event's id for a message, which is no payload and no secret.
fn event_id(table: &OutboxTable, row: &Row<'_>) -> String {
    match row.get(table.plan.id_column()) {
        Some(Value::Text(id)) => String::from_utf8_lossy(id).into_owned(),
        _ => "without id".to_owned(),
    }
}

fn undescribed(id: RelationId) -> RelayError {
    crate::source::postgres::SourceError::Protocol {
        doing: "reading the replication stream",
        what: format!(
            "a row of table {} came before the table's description",
            id.0
        ),
    }
    .into()
}
