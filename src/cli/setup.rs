mod statements;

use std::path::PathBuf;

use clap::Args;
use secrecy::SecretString;

use self::statements::{PASSWORD, steps};
use super::sources::Sources;
use super::{Exit, block_on, complain, say};
use crate::config::Config;
use crate::relay::findings;
use crate::source::postgres::{Database, Facts, Password, SourceError, password_verifier};

/// `outboxd setup`
#[derive(Debug, Args)]
pub(super) struct Setup {
    /// The connector's configuration: Kafka Connect JSON, or the same as .properties.
    #[arg(value_name = "FILE")]
    connector: Option<PathBuf>,
    #[command(flatten)]
    sources: Sources,
    /// Enter the database as somebody who may: postgres://user:password@host:port, by default
    /// as the connector itself. A password that should not stand here is taken from PGPASSWORD.
    #[arg(long = "as", value_name = "URL")]
    url: Option<String>,
    /// Run the SQL instead of printing it.
    #[arg(long)]
    apply: bool,
}

impl Setup {
    pub(super) fn execute(self) -> Exit {
        let config = match self.sources.load(self.connector.clone()) {
            Ok(loaded) => loaded.config,
            Err(errors) => return complain(&errors, Exit::Usage),
        };
        let done = block_on(async {
            match self.apply {
                true => self.apply(&config).await,
                false => self.print(&config).await,
            }
        });
        done.unwrap_or_else(|error| complain(&error, Exit::Failed))
    }

    /// Prints a script for psql. Where nobody answers, it is the one for an empty database.
    async fn print(&self, config: &Config) -> Exit {
        let facts = match self.look(config).await {
            Ok((_, facts)) => Some(facts),
            Err(error) => {
                complain(&error, Exit::Clean);
                None
            }
        };
        let steps = match steps(facts.as_ref(), config) {
            Ok(steps) => steps,
            Err(why) => return complain(&why, Exit::Preflight),
        };
        let database = &config.source.database;
        say(&match facts {
            Some(_) => format!("-- What database {database} still needs."),
            None => format!("-- What database {database} needs; what it has could not be seen."),
        });
        say(&"-- By somebody who may: outboxd setup FILE | psql -d DATABASE -v password=...");
        for step in steps {
            match step.sql {
                None => say(&format_args!("\n-- There already: {}.", step.what)),
                Some(sql) => say(&format_args!("\n-- {}\n{sql}", step.what)),
            }
        }
        Exit::Clean
    }

    async fn apply(&self, config: &Config) -> Exit {
        let (database, facts) = match self.look(config).await {
            Ok(looked) => looked,
            Err(error) => return complain(&error, Exit::Failed),
        };
        let steps = match steps(Some(&facts), config) {
            Ok(steps) => steps,
            Err(why) => return complain(&why, Exit::Preflight),
        };
        // The server is given what it keeps of a password, and never the password.
        let password = config
            .source
            .password
            .as_ref()
            .map(Password::read)
            .transpose();
        let verifier = match password {
            Ok(password) => password.as_ref().map(password_verifier),
            Err(error) => return complain(&error, Exit::Failed),
        };
        for step in steps {
            let Some(sql) = step.sql else {
                say(&format_args!("there already: {}", step.what));
                continue;
            };
            let sql = match &verifier {
                Some(verifier) => sql.replace(PASSWORD, verifier),
                None => sql,
            };
            if let Err(error) = database.change(&sql).await {
                let what = format!(
                    "{} could not be set up: {error}; use --as with a role that may, or let somebody run what `outboxd setup` prints",
                    step.what
                );
                return complain(&what, Exit::Failed);
            }
            say(&format_args!("done: {}", step.what));
        }
        Exit::Clean
    }

    async fn look(&self, config: &Config) -> Result<(Database, Facts), String> {
        let source = &config.source;
        let entered = match &self.url {
            Some(url) => {
                let password = std::env::var("PGPASSWORD").ok().map(SecretString::from);
                source
                    .entered_as(url, password)
                    .map_err(|error| error.to_string())?
            }
            None => source.clone(),
        };
        let looking = async {
            let database = Database::connect(&entered).await?;
            let facts = database.facts_for_role(source).await?;
            Ok::<_, SourceError>((database, facts))
        };
        looking
            .await
            .map_err(|error| findings::of_login(&error, &entered).to_string())
    }
}
