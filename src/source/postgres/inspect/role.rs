use super::super::{Database, SourceError};

/// What a role may do on the server and in the database; rights on tables and on the
/// publication stand with those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleFacts {
    /// Its name.
    pub name: String,
    /// May do everything.
    pub superuser: bool,
    /// Has LOGIN.
    pub login: bool,
    /// Has REPLICATION, or is a member of `rds_replication`, Amazon's word for it.
    pub replication: bool,
    /// May CONNECT to the database.
    pub may_connect: bool,
    /// May CREATE in the database, which making a publication needs.
    pub may_create: bool,
}

impl Database {
    /// The role of this name, or the one we are logged in as; `None` when it does not exist.
    pub(super) async fn role_facts(
        &self,
        name: Option<&str>,
    ) -> Result<Option<RoleFacts>, SourceError> {
        let rows = self
            .query(
                "reading the role's rights",
                "SELECT r.rolname::text, r.rolsuper, r.rolcanlogin,
                        r.rolreplication OR coalesce(pg_catalog.pg_has_role(r.oid, rds.oid, 'MEMBER'), false),
                        pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'),
                        pg_catalog.has_database_privilege(r.oid, d.oid, 'CREATE')
                 FROM pg_catalog.pg_roles r
                 JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
                 LEFT JOIN pg_catalog.pg_roles rds ON rds.rolname = 'rds_replication'
                 WHERE r.rolname = coalesce($1::text, current_user::text)",
                &[&name],
            )
            .await?;
        Ok(rows.first().map(|row| RoleFacts {
            name: row.get(0),
            superuser: row.get(1),
            login: row.get(2),
            replication: row.get(3),
            may_connect: row.get(4),
            may_create: row.get(5),
        }))
    }
}
