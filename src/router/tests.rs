use super::*;
use crate::model::{Column, RelationId, TypeOid};

/// The outbox table of Debezium's recordings.
fn outbox() -> Relation {
    relation(&[
        ("id", TypeOid::UUID),
        ("aggregate_type", TypeOid::TEXT),
        ("aggregate_id", TypeOid::TEXT),
        ("type", TypeOid::TEXT),
        ("payload", TypeOid::JSONB),
    ])
}

fn relation(columns: &[(&str, TypeOid)]) -> Relation {
    let column = |&(name, type_oid): &(&str, TypeOid)| Column {
        name: name.to_owned(),
        type_oid,
        type_modifier: -1,
        is_key: false,
    };
    Relation {
        id: RelationId(16_385),
        table: TableName {
            schema: "public".to_owned(),
            name: "outbox".to_owned(),
        },
        columns: columns.iter().map(column).collect(),
    }
}

fn options(placements: &str) -> Options {
    Options {
        key_column: "aggregate_id".to_owned(),
        route_column: "aggregate_type".to_owned(),
        route: TopicRoute::new("(?<routedByValue>.*)", "claims.${routedByValue}.events").unwrap(),
        headers: parse_placements(placements).unwrap(),
        ..Options::default()
    }
}

const ROW: [Value<'static>; 5] = [
    Value::Text(b"11111111-1111-4111-8111-111111111111"),
    Value::Text(b"claim"),
    Value::Text(b"CLM-1001"),
    Value::Text(b"ClaimSubmitted"),
    Value::Text(br#"{"amount": 1250.50}"#),
];

/// `ROW` with the routed value replaced.
fn routed_by(value: Value<'_>) -> Row<'_> {
    let mut values = ROW.to_vec();
    values[1] = value;
    Row::new(values)
}

#[test]
fn a_row_becomes_topic_key_value_and_headers() {
    let mut router = Router::new(options("type:header:eventType"));
    let plan = router.plan(&outbox()).unwrap();
    let row = Row::new(ROW);
    let routed = router.route(&plan, &row).unwrap();
    assert_eq!(routed.topic.as_str(), "claims.claim.events");
    assert!(routed.key == ROW[2] && routed.value == ROW[4] && routed.id == ROW[0]);
    let headers: Vec<_> = routed.headers().collect();
    assert!(
        headers == [("id", ROW[0]), ("eventType", ROW[3])],
        "{headers:?}"
    );
}

/// Recording `header-same-twice`.
#[test]
fn headers_keep_the_configured_order_and_may_repeat() {
    let mut router = Router::new(options("type:header,type:header:t2,aggregate_id:header:id"));
    let plan = router.plan(&outbox()).unwrap();
    let row = Row::new(ROW);
    let headers: Vec<_> = router.route(&plan, &row).unwrap().headers().collect();
    assert!(
        headers
            == [
                ("id", ROW[0]),
                ("type", ROW[3]),
                ("t2", ROW[3]),
                ("id", ROW[2])
            ],
        "{headers:?}"
    );
}

#[test]
fn nulls_are_passed_on_except_for_the_routed_value() {
    let mut router = Router::new(options("type:header"));
    let plan = router.plan(&outbox()).unwrap();
    let row = Row::new([Value::Null, ROW[1], Value::Null, Value::Null, Value::Null]);
    let routed = router.route(&plan, &row).unwrap();
    assert!(
        [routed.key, routed.value, routed.id]
            .iter()
            .all(|v| *v == Value::Null)
    );
    assert!(routed.headers().all(|(_, value)| value == Value::Null));

    let error = router.route(&plan, &routed_by(Value::Null)).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Poison);
    assert!(
        error
            .to_string()
            .contains("'aggregate_type' of public.outbox is NULL"),
        "{error}"
    );
}

#[test]
fn topics_are_cached_by_routed_value_and_the_cache_is_bounded() {
    let mut router = Router::new(options("type:header"));
    let plan = router.plan(&outbox()).unwrap();
    let mut topic_of = |value: &str| {
        let row = routed_by(Value::Text(value.as_bytes()));
        let topic = router.route(&plan, &row).unwrap().topic;
        (topic, router.topics.len())
    };
    let (first, _) = topic_of("claim");
    let (again, cached) = topic_of("claim");
    assert!(Arc::ptr_eq(&first, &again) && cached == 1);
    for number in 0..MAX_CACHED_TOPICS {
        let (topic, cached) = topic_of(&format!("agg-{number}"));
        assert_eq!(topic.as_str(), format!("claims.agg-{number}.events"));
        assert!(cached <= MAX_CACHED_TOPICS);
    }
    assert_eq!(topic_of("claim").1, 2, "the full cache was cleared");
}

#[test]
fn an_event_without_a_usable_topic_is_poison_and_leaves_no_trace() {
    let mut router = Router::new(options("type:header"));
    let plan = router.plan(&outbox()).unwrap();
    let error = router
        .route(&plan, &routed_by(Value::Text(b"has space")))
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Poison);
    assert!(
        error.to_string().contains("\"claims.has space.events\""),
        "{error}"
    );
    let error = router
        .route(&plan, &routed_by(Value::Text(b"\xff")))
        .unwrap_err();
    assert!(matches!(error, RouteError::NotUtf8 { .. }), "{error}");
    assert!(router.topics.is_empty());
}

#[test]
fn a_row_of_another_shape_is_fatal() {
    let mut router = Router::new(options("type:header"));
    let plan = router.plan(&outbox()).unwrap();
    let error = router.route(&plan, &Row::new([Value::Null])).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Fatal);
}

#[test]
fn a_missing_column_is_named_with_its_option_and_the_columns_there_are() {
    type Change = fn(&mut Options);
    let cases: [(&str, Change); 5] = [
        ("table.field.event.id", |o| o.id_column = "nope".to_owned()),
        ("table.field.event.key", |o| {
            o.key_column = "nope".to_owned()
        }),
        ("table.field.event.payload", |o| {
            o.payload_column = "nope".to_owned()
        }),
        ("route.by.field", |o| o.route_column = "nope".to_owned()),
        ("table.fields.additional.placement", |o| {
            o.headers = parse_placements("nope:header").unwrap();
        }),
    ];
    for (option, change) in cases {
        let mut options = options("type:header");
        change(&mut options);
        let error = Router::new(options).plan(&outbox()).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Fatal);
        assert_eq!(
            error.to_string(),
            format!(
                "public.outbox has no column 'nope', which {option} names; it has: id, aggregate_type, aggregate_id, type, payload"
            )
        );
    }
}

#[test]
fn a_missing_placed_column_can_be_ignored_and_no_other() {
    let mut options = options("nope:header,type:header");
    options.missing_column = MissingColumn::Ignore;
    let plan = Plan::new(&options, &outbox()).unwrap();
    let names: Vec<&str> = plan
        .headers()
        .iter()
        .map(|header| header.name.as_str())
        .collect();
    assert_eq!(names, ["id", "type"]);
    options.key_column = "nope".to_owned();
    assert!(Plan::new(&options, &outbox()).is_err());
}

#[test]
fn column_names_are_compared_as_they_are_written() {
    let mut options = options("type:header");
    options.key_column = "AGGREGATE_ID".to_owned();
    assert!(Plan::new(&options, &outbox()).is_err());
}

#[test]
fn only_text_can_choose_the_topic() {
    let plan_with = |type_oid| {
        let table = relation(&[
            ("id", TypeOid::UUID),
            ("aggregate_type", type_oid),
            ("k", TypeOid::TEXT),
            ("payload", TypeOid::JSON),
        ]);
        let mut options = options("k:header");
        options.key_column = "k".to_owned();
        Plan::new(&options, &table)
    };
    let citext = TypeOid(16_500);
    for type_oid in [
        TypeOid::TEXT,
        TypeOid::VARCHAR,
        TypeOid::BPCHAR,
        TypeOid::UUID,
        TypeOid::JSONB,
        citext,
    ] {
        assert!(plan_with(type_oid).is_ok(), "{type_oid:?}");
    }
    let (numeric, timestamptz) = (TypeOid(1700), TypeOid(1184));
    for type_oid in [
        TypeOid::INT4,
        TypeOid::INT8,
        TypeOid::BOOL,
        TypeOid::BYTEA,
        numeric,
        timestamptz,
    ] {
        let error = plan_with(type_oid).unwrap_err().to_string();
        assert!(
            error.starts_with("Field 'aggregate_type' is not of type STRING"),
            "{error}"
        );
    }
}
