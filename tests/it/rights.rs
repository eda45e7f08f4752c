//! The least a role needs, and what `outboxd check` says of each right that is missing.

use crate::support::database::TestDatabase;
use crate::support::outboxd::Setup;
use crate::support::services::Services;
use crate::support::topic;

/// The SQL that `check` prints below its errors, as a person would copy it.
fn remedies(output: &str) -> Vec<&str> {
    let mut sql = Vec::new();
    let mut is_error = false;
    for line in output.lines() {
        match line.strip_prefix("    ") {
            Some(statement) if is_error => sql.push(statement),
            Some(_) => {}
            None => is_error = line.starts_with("error: "),
        }
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_is_needed_and_what_check_prints_gives_it_back() {
    let database = TestDatabase::with_outbox(Services::shared()).await;
    let name = &database.name;
    let role = format!("r_{}", uuid::Uuid::new_v4().simple());
    database
        .execute(&format!(
            "CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'pw';
             REVOKE ALL ON DATABASE {name} FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;
             GRANT CONNECT ON DATABASE {name} TO {role};
             GRANT USAGE ON SCHEMA public TO {role};
             GRANT SELECT ON outbox TO {role};
             CREATE PUBLICATION {name} FOR TABLE outbox WITH (publish = 'insert')"
        ))
        .await;
    let mut setup = Setup::of(&database);
    setup.set("database.user", &role);
    setup.set("database.password", "pw");
    // Whether the table is empty is looked at, for which it has to be read.
    setup.set("snapshot.mode", "initial");
    let check = || setup.tell("check", &[]);
    check().expect(0, &[&format!("ok: Role {role} has the rights it needs")]);

    for (taking, right, remedy) in [
        (
            format!("ALTER ROLE {role} NOLOGIN"),
            "not permitted to log in",
            format!(r#"ALTER ROLE "{role}" LOGIN;"#),
        ),
        (
            format!("ALTER ROLE {role} NOREPLICATION"),
            "lacks REPLICATION",
            format!(r#"ALTER ROLE "{role}" REPLICATION;"#),
        ),
        (
            format!("REVOKE CONNECT ON DATABASE {name} FROM {role}"),
            "CONNECT",
            format!(r#"GRANT CONNECT ON DATABASE "{name}" TO "{role}";"#),
        ),
        (
            format!("REVOKE USAGE ON SCHEMA public FROM {role}"),
            "lacks USAGE on schema public",
            format!(r#"GRANT USAGE ON SCHEMA "public" TO "{role}";"#),
        ),
        (
            format!("REVOKE SELECT ON outbox FROM {role}"),
            "lacks SELECT on table public.outbox",
            format!(r#"GRANT SELECT ON "public"."outbox" TO "{role}";"#),
        ),
    ] {
        database.execute(&taking).await;
        let said = check();
        said.expect(3, &[right]);
        let sql = remedies(&said.output);
        assert_eq!(sql, [remedy.as_str()], "{said}");
        // And `run` does not start without it, making nothing.
        let (code, refusal) = setup.fails();
        assert_eq!(code, 3, "after {taking}: {refusal}");
        assert_eq!(database.slot("slot_name").await, None, "{taking}");
        for statement in sql {
            database.execute(statement).await;
        }
        check().expect(0, &[&format!("ok: Role {role} has the rights it needs")]);
    }

    let mut outboxd = setup.start().await;
    database.event("CLM-1", "{}").await;
    database.all_confirmed().await;
    let topic = format!("{name}.claim.events");
    assert_eq!(topic::count(&database.services.kafka, &topic), 1);
    assert_eq!(outboxd.stop().await, 0);
    database
        .execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}
