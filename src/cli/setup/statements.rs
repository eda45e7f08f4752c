use std::collections::BTreeSet;

use postgres_protocol::escape::{escape_identifier, escape_literal};

use crate::config::Config;
use crate::model::TableName;
use crate::relay::findings::{Severity, SlotUse, of_slot};
use crate::router;
use crate::source::postgres::{Facts, OutboxFacts, publication_comment};

const OUTBOX: &str = include_str!("../../../sql/outbox.sql");
const ROLE: &str = include_str!("../../../sql/role.sql");
const PUBLICATION: &str = include_str!("../../../sql/publication.sql");
const SLOT: &str = include_str!("../../../sql/slot.sql");

/// Where the role's password goes: psql puts it there, as a literal.
pub(super) const PASSWORD: &str = ":'password'";

/// One thing that a connector needs in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// What it is.
    pub(super) what: String,
    /// The statement that makes it; absent where it is there already.
    pub(super) sql: Option<String>,
}

/// Everything in the order in which it has to be made: a slot sees no publication younger than
/// itself, and a slot is marked as in use once there is one. Without facts nothing is there.
///
/// # Errors
/// When something is there that must not be touched, or a name is not known.
pub(super) fn steps(facts: Option<&Facts>, config: &Config) -> Result<Vec<Step>, String> {
    if let Some(facts) = facts {
        let bad = of_slot(&facts.stream, &config.source, SlotUse::Unknown)
            .into_iter()
            .find(|finding| finding.severity == Severity::Error);
        if let Some(bad) = bad {
            return Err(bad.to_string());
        }
    }
    let tables = tables(facts, config)?;
    let mut steps: Vec<Step> = tables
        .iter()
        .map(|(name, there)| {
            let sql = there.is_none().then(|| table(name, &config.router));
            step(format!("table {name}"), sql)
        })
        .collect();
    steps.extend(role(facts, config));
    steps.extend(grants(facts, &tables, config));
    steps.push(publication(facts, &tables, config));
    steps.extend(slot(facts, config));
    Ok(steps)
}

fn step(what: String, sql: Option<String>) -> Step {
    Step { what, sql }
}

type Tables<'f> = Vec<(TableName, Option<&'f OutboxFacts>)>;

/// The outbox tables there are, else those that the list names.
fn tables<'f>(facts: Option<&'f Facts>, config: &Config) -> Result<Tables<'f>, String> {
    let there = facts.map_or(&[][..], |facts| facts.stream.tables.as_slice());
    if !there.is_empty() {
        let named = |outbox: &'f OutboxFacts| (outbox.table.name.clone(), Some(outbox));
        return Ok(there.iter().map(named).collect());
    }
    let names = config.source.tables.plain_names();
    if names.is_empty() {
        return Err("table.include.list matches no table and names none either, so it is not known how the outbox table is to be called; write the list as schema.table".to_owned());
    }
    Ok(names.into_iter().map(|name| (name, None)).collect())
}

/// The table of sql/outbox.sql with the columns that the router's options name.
fn table(name: &TableName, router: &router::Options) -> String {
    let sql = statement(OUTBOX, "CREATE TABLE IF NOT EXISTS public.outbox");
    let (_, body) = sql.split_once('(').unwrap_or_default();
    let body = body.trim_end_matches(';').trim_end().trim_end_matches(')');
    let mut columns = Vec::new();
    let mut named = BTreeSet::new();
    let mut add = |column: &str, definition: &str| {
        if named.insert(column.to_owned()) {
            columns.push(format!("    {} {definition}", escape_identifier(column)));
        }
    };
    for line in body.lines() {
        let line = line.trim().trim_end_matches(',');
        let Some((column, definition)) = line.split_once(' ') else {
            continue;
        };
        let column = match column {
            "id" => &router.id_column,
            "aggregate_type" => &router.route_column,
            "aggregate_id" => &router.key_column,
            "payload" => &router.payload_column,
            other => other,
        };
        add(column, definition.trim());
    }
    for header in &router.headers {
        add(&header.column, "text");
    }
    format!(
        "CREATE TABLE IF NOT EXISTS {} (\n{}\n);",
        quoted(name),
        columns.join(",\n")
    )
}

fn role(facts: Option<&Facts>, config: &Config) -> Vec<Step> {
    let source = &config.source;
    let name = escape_identifier(&source.user);
    let what = format!("role {}", source.user);
    let on_rds = facts.is_some_and(|facts| facts.server.on_rds);
    let sql = statement(ROLE, "ALTER ROLE debezium").replace("debezium", &name);
    let sql = match on_rds {
        true => sql.replace(" REPLICATION", ""),
        false => sql,
    };
    let without_password = sql.replace(&format!(" PASSWORD {PASSWORD}"), "");
    let there = facts.and_then(|facts| facts.role.as_ref());
    let of_role = match there {
        None => {
            let sql = match source.password {
                Some(_) => sql,
                None => without_password,
            };
            Some(sql.replacen("ALTER", "CREATE", 1))
        }
        Some(role) if role.superuser || (role.login && (role.replication || on_rds)) => None,
        Some(_) => Some(without_password),
    };
    let mut steps = vec![step(what, of_role)];
    if on_rds && !there.is_some_and(|role| role.replication) {
        steps.push(step(
            format!("role {} may read the log", source.user),
            Some(format!("GRANT rds_replication TO {name};")),
        ));
    }
    steps
}

fn grants(facts: Option<&Facts>, tables: &Tables<'_>, config: &Config) -> Vec<Step> {
    let source = &config.source;
    let to = |sql: String| sql.replace("debezium", &escape_identifier(&source.user));
    let role = facts.and_then(|facts| facts.role.as_ref());
    let connect = statement(ROLE, "GRANT CONNECT")
        .replace(":\"database\"", &escape_identifier(&source.database));
    let mut steps = vec![step(
        format!("CONNECT on database {}", source.database),
        (!role.is_some_and(|role| role.may_connect)).then(|| to(connect)),
    )];
    let mut schemas = BTreeSet::new();
    for (table, there) in tables {
        if schemas.insert(&table.schema) {
            let usage =
                statement(ROLE, "GRANT USAGE").replace("public", &escape_identifier(&table.schema));
            steps.push(step(
                format!("USAGE on schema {}", table.schema),
                (!there.is_some_and(|outbox| outbox.may_use_schema)).then(|| to(usage)),
            ));
        }
        let select = statement(ROLE, "GRANT SELECT").replace("public.outbox", &quoted(table));
        steps.push(step(
            format!("SELECT on table {table}"),
            (!there.is_some_and(|outbox| outbox.may_select)).then(|| to(select)),
        ));
    }
    steps
}

fn publication(facts: Option<&Facts>, tables: &Tables<'_>, config: &Config) -> Step {
    let name = &config.source.publication;
    let quoted_name = escape_identifier(name.as_str());
    let what = format!("publication {name}");
    let there = facts.and_then(|facts| facts.stream.publication.as_ref());
    if let Some(publication) = there {
        let lacking: Vec<String> = tables
            .iter()
            .filter(|(_, outbox)| {
                !outbox.is_some_and(|outbox| publication.published_as(outbox).is_some())
            })
            .map(|(table, _)| quoted(table))
            .collect();
        let sql = (!publication.all_tables && !lacking.is_empty()).then(|| {
            format!(
                "ALTER PUBLICATION {quoted_name} ADD TABLE {};",
                lacking.join(", ")
            )
        });
        return step(what, sql);
    }
    let names: Vec<String> = tables.iter().map(|(table, _)| quoted(table)).collect();
    let mut sql = statement(PUBLICATION, "CREATE PUBLICATION claims_outbox_pub")
        .replace("claims_outbox_pub", &quoted_name)
        .replace("public.outbox", &names.join(", "));
    let mut outboxes = tables.iter().filter_map(|(_, outbox)| *outbox);
    if outboxes.clone().any(|outbox| !outbox.table.usable_identity) {
        sql = sql.replace("'insert, update'", "'insert'");
    }
    if outboxes.any(|outbox| outbox.partitioned) {
        sql = sql.replace(");", ", publish_via_partition_root = true);");
    }
    step(what, Some(sql))
}

fn slot(facts: Option<&Facts>, config: &Config) -> [Step; 2] {
    let (name, publication) = (&config.source.slot, &config.source.publication);
    let there = facts.is_some_and(|facts| facts.stream.slot.is_some());
    let publication_facts = facts.and_then(|facts| facts.stream.publication.as_ref());
    let marked = publication_facts.is_some_and(|facts| facts.marks(name));
    let creation = statement(SLOT, "SELECT pg_create_logical_replication_slot")
        .replace("'claims_outbox_slot'", &escape_literal(name.as_str()));
    let mark = statement(SLOT, "COMMENT ON PUBLICATION")
        .replace(
            "'outboxd slot=claims_outbox_slot'",
            &escape_literal(&publication_comment(&config.source, publication_facts)),
        )
        .replace(
            "claims_outbox_pub",
            &escape_identifier(publication.as_str()),
        );
    [
        step(
            format!("replication slot {name}"),
            (!there).then_some(creation),
        ),
        step(
            format!("the slot's mark on publication {publication}"),
            (!marked).then_some(mark),
        ),
    ]
}

/// The statement of a file that begins like this, without comments.
fn statement(file: &str, beginning: &str) -> String {
    let code: Vec<&str> = file
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default().trim_end())
        .collect();
    let code = code.join("\n");
    code.find(beginning)
        .and_then(|start| code.get(start..))
        .and_then(|rest| rest.split_inclusive(';').next())
        .unwrap_or_default()
        .to_owned()
}

fn quoted(table: &TableName) -> String {
    format!(
        "{}.{}",
        escape_identifier(&table.schema),
        escape_identifier(&table.name)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    fn steps_with(overrides: &[&str]) -> Vec<Step> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("connectors/claims-outbox.json");
        let given = ["bootstrap.servers=localhost:9092", "database.password=x'y"];
        let overrides: Vec<String> = given
            .iter()
            .chain(overrides)
            .map(|o| (*o).to_owned())
            .collect();
        let config = config::load(&file, None, &overrides, &|_| None)
            .unwrap()
            .config;
        steps(None, &config).unwrap()
    }

    fn sql(steps: &[Step]) -> Vec<String> {
        let one_line = |sql: &String| sql.split_whitespace().collect::<Vec<_>>().join(" ");
        steps
            .iter()
            .flat_map(|step| step.sql.as_ref())
            .map(one_line)
            .collect()
    }

    #[test]
    fn an_empty_database_is_given_everything_in_the_right_order() {
        assert_eq!(
            sql(&steps_with(&[])),
            [
                r#"CREATE TABLE IF NOT EXISTS "public"."outbox" ( "id" uuid PRIMARY KEY, "aggregate_type" text NOT NULL, "aggregate_id" text NOT NULL, "type" text NOT NULL, "payload" jsonb, "created_at" timestamptz NOT NULL DEFAULT now() );"#,
                r#"CREATE ROLE "debezium" LOGIN REPLICATION PASSWORD :'password';"#,
                r#"GRANT CONNECT ON DATABASE "claims" TO "debezium";"#,
                r#"GRANT USAGE ON SCHEMA "public" TO "debezium";"#,
                r#"GRANT SELECT ON "public"."outbox" TO "debezium";"#,
                r#"CREATE PUBLICATION "claims_outbox_pub" FOR TABLE "public"."outbox" WITH (publish = 'insert, update');"#,
                r#"SELECT pg_create_logical_replication_slot('claims_outbox_slot', 'pgoutput') WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'claims_outbox_slot');"#,
                r#"COMMENT ON PUBLICATION "claims_outbox_pub" IS 'outboxd slot=claims_outbox_slot';"#,
            ]
        );
    }

    #[test]
    fn names_come_from_the_configuration() {
        let all = sql(&steps_with(&[
            "table.include.list=app.events",
            "database.user=we \"ird",
            "slot.name=s1",
            "publication.name=p1",
            "transforms.outbox.table.field.event.key=key",
            "transforms.outbox.table.fields.additional.placement=tenant:header",
        ]))
        .join("\n");
        for expected in [
            r#"CREATE TABLE IF NOT EXISTS "app"."events" ("#,
            r#""key" text NOT NULL"#,
            r#""tenant" text )"#,
            r#"CREATE ROLE "we ""ird" LOGIN"#,
            r#"ON SCHEMA "app" TO"#,
            r#"CREATE PUBLICATION "p1" FOR TABLE "app"."events""#,
            "slot('s1', 'pgoutput')",
            r#"COMMENT ON PUBLICATION "p1" IS 'outboxd slot=s1'"#,
        ] {
            assert!(all.contains(expected), "{expected} is not in\n{all}");
        }
        assert!(
            !all.contains("debezium") && !all.contains("claims_outbox"),
            "{all}"
        );
        assert!(!all.contains("x'y"), "{all}");
    }
}
