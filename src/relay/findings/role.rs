use postgres_protocol::escape::escape_identifier;

use super::{Finding, advice, sql};
use crate::source::postgres::{
    Facts, OutboxFacts, PublicationAutocreate, RoleFacts, SnapshotMode, SourceOptions,
    publication_addition,
};

/// The rights the role lacks, each with the statement that gives it.
pub(super) fn findings(facts: &Facts, source: &SourceOptions) -> Vec<Finding> {
    let Some(role) = &facts.role else {
        return vec![Finding::error(
            format!("Role {} does not exist.", source.user),
            advice("make it: `outboxd setup` prints the SQL"),
        )];
    };
    let mut findings = Vec::new();
    findings.extend(replication(role, facts.server.on_rds));
    for outbox in &facts.stream.tables {
        findings.extend(reading(role, outbox, facts.stream.slot.is_none(), source));
    }
    findings.extend(publishing(role, facts, source));
    if findings.is_empty() {
        findings.push(Finding::ok(format!(
            "Role {} has the rights it needs.",
            role.name
        )));
    }
    findings
}

fn replication(role: &RoleFacts, on_rds: bool) -> Option<Finding> {
    if role.superuser || role.replication {
        return None;
    }
    let name = escape_identifier(&role.name);
    Some(Finding::error(
        format!(
            "Role {} may not read the log: it lacks REPLICATION.",
            role.name
        ),
        sql(if on_rds {
            format!("GRANT rds_replication TO {name};")
        } else {
            format!("ALTER ROLE {name} REPLICATION;")
        }),
    ))
}

/// The stream needs no right on the table; counting what was there before the slot does.
fn reading(
    role: &RoleFacts,
    outbox: &OutboxFacts,
    slot_is_missing: bool,
    source: &SourceOptions,
) -> Vec<Finding> {
    let refuses = slot_is_missing && source.snapshot != SnapshotMode::NoData;
    let lacks = |right: &str, grant: String| {
        let what = format!(
            "Role {} lacks {right}; {}.",
            role.name,
            if refuses {
                "the rows written before the slot cannot be read"
            } else {
                "it is needed at a first start, to tell which rows were there before the slot"
            }
        );
        match refuses {
            true => Finding::error(what, sql(grant)),
            false => Finding::warning(what, sql(grant)),
        }
    };
    let to = escape_identifier(&role.name);
    let mut findings = Vec::new();
    if !outbox.may_use_schema {
        let schema = &outbox.table.name.schema;
        findings.push(lacks(
            &format!("USAGE on schema {schema}"),
            format!(
                "GRANT USAGE ON SCHEMA {} TO {to};",
                escape_identifier(schema)
            ),
        ));
    }
    if !outbox.may_select {
        findings.push(lacks(
            &format!("SELECT on table {}", outbox.table.name),
            format!("GRANT SELECT ON {} TO {to};", outbox.table.quoted()),
        ));
    }
    findings
}

/// What making or altering the publication takes (PostgreSQL documentation, "CREATE
/// PUBLICATION", "ALTER PUBLICATION").
fn publishing(role: &RoleFacts, facts: &Facts, source: &SourceOptions) -> Vec<Finding> {
    let stream = &facts.stream;
    if role.superuser {
        return Vec::new();
    }
    let name = &source.publication;
    let mut findings = Vec::new();
    let doing = match &stream.publication {
        None => match source.autocreate {
            // That it is missing is the finding.
            PublicationAutocreate::Disabled => return Vec::new(),
            PublicationAutocreate::AllTables => {
                return vec![Finding::error(
                    format!(
                        "Publication {name} is missing, and only a superuser may make one FOR ALL TABLES (publication.autocreate.mode=all_tables)."
                    ),
                    advice(
                        "set publication.autocreate.mode=filtered, or have the publication made beforehand: `outboxd setup` prints it",
                    ),
                )];
            }
            PublicationAutocreate::Filtered
            | PublicationAutocreate::Unsaid
            | PublicationAutocreate::NoTables => {
                if !role.may_create {
                    findings.push(Finding::error(
                        format!(
                            "Role {} lacks CREATE on database {}, which making publication {name} needs. A publication made beforehand needs neither this nor the table's ownership: `outboxd setup` prints it.",
                            role.name, facts.server.database
                        ),
                        sql(format!(
                            "GRANT CREATE ON DATABASE {} TO {};",
                            escape_identifier(&facts.server.database),
                            escape_identifier(&role.name)
                        )),
                    ));
                }
                "making"
            }
        },
        Some(publication) => {
            let lacking = publication.lacks(&stream.tables);
            // Beside a slot it is not altered at all.
            if source.autocreate != PublicationAutocreate::Filtered
                || stream.slot.is_some()
                || publication.all_tables
                || lacking.is_empty()
            {
                return Vec::new();
            }
            if !publication.may_alter {
                return vec![Finding::error(
                    format!(
                        "Publication {name} lacks tables that table.include.list names, and role {} may not alter it.",
                        role.name
                    ),
                    sql(publication_addition(source, &lacking)),
                )];
            }
            "altering"
        }
    };
    if matches!(
        source.autocreate,
        PublicationAutocreate::Filtered | PublicationAutocreate::Unsaid
    ) {
        let foreign = stream.tables.iter().filter(|outbox| !outbox.owned);
        findings.extend(foreign.map(|outbox| {
            Finding::error(
                format!(
                    "Role {} does not own table {}, which {doing} publication {name} needs.",
                    role.name, outbox.table.name
                ),
                sql(format!(
                    "ALTER TABLE {} OWNER TO {};",
                    outbox.table.quoted(),
                    escape_identifier(&role.name)
                )),
            )
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::{Mend, Severity, planted};
    use super::*;

    fn statements(facts: &Facts, source: &SourceOptions) -> Vec<String> {
        findings(facts, source)
            .into_iter()
            .filter_map(|finding| match finding.mend {
                Some(Mend::Sql(sql)) => Some(sql),
                _ => None,
            })
            .collect()
    }

    fn helpless() -> Facts {
        let mut facts = planted::facts();
        let role = facts.role.as_mut().unwrap();
        role.replication = false;
        role.may_create = false;
        for outbox in &mut facts.stream.tables {
            outbox.may_use_schema = false;
            outbox.may_select = false;
            outbox.owned = false;
        }
        facts
    }

    #[test]
    fn every_missing_right_comes_with_its_grant() {
        let mut facts = helpless();
        facts.stream.publication = None;
        let config = planted::config();
        assert_eq!(
            statements(&facts, &config.source),
            [
                r#"ALTER ROLE "relay" REPLICATION;"#,
                r#"GRANT USAGE ON SCHEMA "public" TO "relay";"#,
                r#"GRANT SELECT ON "public"."outbox" TO "relay";"#,
                r#"GRANT CREATE ON DATABASE "claims" TO "relay";"#,
                r#"ALTER TABLE "public"."outbox" OWNER TO "relay";"#,
            ]
        );
        facts.server.on_rds = true;
        assert_eq!(
            statements(&facts, &config.source)
                .first()
                .map(String::as_str),
            Some(r#"GRANT rds_replication TO "relay";"#)
        );
    }

    #[test]
    fn a_publication_made_beforehand_needs_no_right_of_ours() {
        let facts = planted::facts();
        let found = findings(&facts, &planted::config().source);
        assert!(
            found.iter().all(|finding| finding.severity == Severity::Ok),
            "{found:#?}"
        );
    }

    #[test]
    fn a_table_that_lacks_in_a_publication_that_is_not_ours_is_an_error() {
        let mut facts = planted::facts();
        facts.stream.publication.as_mut().unwrap().tables.clear();
        facts.stream.slot = None;
        assert_eq!(
            statements(&facts, &planted::config().source),
            [r#"ALTER PUBLICATION "claims_pub" ADD TABLE "public"."outbox";"#]
        );
    }
}
