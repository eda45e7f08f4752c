//! Real services of the bench's own, and the ways to break them.

use std::time::{Duration, Instant};

use super::keeper::Keeper;
use super::schedule::{Break, End, Fault};
use crate::support::cluster::OwnCluster;
use crate::support::database::{self, TestDatabase};
use crate::support::outboxd::Setup;
use crate::support::proxy::{Direction, Fault as LinkFault, Framing, Proxy};
use crate::support::services::{OwnKafka, OwnPostgres, Services};
use crate::support::topic;
use crate::support::workload::rough;

pub const PARTITIONS: i32 = 3;

/// A server that waits no longer than this for an answer is free again within a run.
const SERVER: [&str; 1] = ["wal_sender_timeout=5s"];
/// What every topic takes unless told otherwise.
const DEFAULT_LIMIT: &str = "1048588";
/// How long the trace of a fault is waited for.
const TRACE: Duration = Duration::from_secs(20);

pub struct World {
    pub keeper: Keeper,
    pub topic: String,
    slot: String,
    role: String,
    database_proxy: Proxy,
    brokers: Brokers,
    /// Lives until the databases on it are gone.
    postgres: OwnPostgres,
}

enum Brokers {
    One(OwnKafka, Proxy),
    Three(OwnCluster),
}

/// What a fault did, or why it did nothing.
pub type Effect = Result<String, String>;

impl World {
    /// Everything runs, and outboxd streams.
    pub async fn start(brokers: usize, breaking: Option<&str>) -> (Self, TestDatabase) {
        let postgres = OwnPostgres::start_with(&SERVER);
        let brokers = match brokers {
            1 => {
                let proxy = Proxy::new(Framing::Kafka).await;
                Brokers::One(OwnKafka::start_behind(&proxy), proxy)
            }
            _ => Brokers::Three(tokio::task::block_in_place(OwnCluster::start)),
        };
        let services = Services {
            pg_port: postgres.port(),
            pg_ca: postgres.certificates().join("ca.pem"),
            kafka: brokers.addresses(),
        };
        let database = TestDatabase::with_outbox(services).await;
        let topic = format!("{}.load.events", database.name);
        let replicas = brokers.count();
        topic::create_replicated(&database.services.kafka, &topic, PARTITIONS, replicas).await;
        let (name, role) = (database.name.clone(), format!("{}_relay", database.name));
        database
            .execute(&format!(
                "CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'pw'; GRANT SELECT ON outbox TO {role};
                 CREATE PUBLICATION {name} FOR TABLE outbox WITH (publish = 'insert')"
            ))
            .await;
        let target = format!("127.0.0.1:{}", postgres.port());
        let database_proxy = Proxy::to(&target, Framing::Postgres).await;
        let mut setup = Setup::of(&database);
        setup.set("database.user", &role);
        setup.set("database.password", "pw");
        setup.database_behind(&database_proxy);
        if let Brokers::One(_, proxy) = &brokers {
            setup.kafka_behind(proxy);
        }
        // What is committed before outboxd's slot exists is not its to deliver.
        assert_eq!(setup.start().await.stop().await, 0);
        let always = breaking.map(|failpoint| format!("{failpoint}=return"));
        let world = Self {
            keeper: Keeper::start(setup, always),
            topic,
            slot: name,
            role,
            database_proxy,
            brokers,
            postgres,
        };
        (world, database)
    }

    /// Breaks it and mends it again.
    pub async fn suffer(&self, fault: Fault) -> Effect {
        match fault {
            Fault::Kill => self.ends_after("KILL", "signal: 9").await,
            Fault::Stop => self.ends_after("TERM", "exit status: 0").await,
            Fault::Halt(time) => {
                self.keeper.signal("STOP");
                tokio::time::sleep(time).await;
                self.keeper.signal("CONT");
                Ok(format!("for {time:.1?}"))
            }
            Fault::Die(point, passes) => self.dies_at(point, passes).await,
            Fault::Connections(end, how) => match (end, &self.brokers) {
                (End::Kafka, Brokers::One(_, proxy)) => break_connections(proxy, how).await,
                (End::Kafka, Brokers::Three(_)) => Err("there is no proxy".to_owned()),
                (End::Database, _) => break_connections(&self.database_proxy, how).await,
            },
            Fault::TerminateWalsender => {
                let sql = "SELECT count(pg_terminate_backend(active_pid)) FROM pg_replication_slots WHERE slot_name = $1 AND active";
                self.count(sql, &self.slot, "walsender").await
            }
            Fault::ServerRestart(how) => {
                tokio::task::block_in_place(|| {
                    self.postgres.stop(how);
                    self.postgres.start_again(&SERVER);
                });
                Ok("it serves again".to_owned())
            }
            Fault::ServerHalt(time) => {
                tokio::task::block_in_place(|| self.postgres.halt());
                tokio::time::sleep(time).await;
                self.postgres.go_on();
                Ok(format!("for {time:.1?}"))
            }
            Fault::BrokerRestart { kill } => self.broker_restart(kill).await,
            Fault::BrokerHalt(time) => self.broker_halt(time).await,
            Fault::LimitLowered => self.limit_lowered().await,
            Fault::LoginRevoked(time) => self.login_revoked(time).await,
            Fault::PublicationAltered(time) => self.publication_altered(time).await,
        }
    }

    /// No connection is broken any more.
    pub fn mend(&self) {
        self.database_proxy.set(LinkFault::None);
        if let Brokers::One(_, proxy) = &self.brokers {
            proxy.set(LinkFault::None);
        }
    }

    async fn ends_after(&self, signal: &str, expected: &str) -> Effect {
        let before = self.keeper.ended();
        self.keeper.signal(signal);
        self.trace("outboxd did not end", || self.keeper.ended() > before)
            .await?;
        let status = self.keeper.last_ending().map(|status| status.to_string());
        match status {
            Some(status) if status.starts_with(expected) => Ok(status),
            status => Err(format!("it ended otherwise: {status:?}")),
        }
    }

    async fn dies_at(&self, point: &str, passes: u32) -> Effect {
        self.keeper
            .next_dies(&format!("{point}={passes}*off->return"));
        self.keeper.signal("TERM");
        self.trace("outboxd did not end", || self.keeper.has_next_started())
            .await?;
        let before = self.keeper.ended();
        let ended = self
            .trace("it did not come there", || self.keeper.ended() > before)
            .await;
        if let Err(why) = ended {
            // So that it does not die of it later.
            self.keeper.signal("TERM");
            return Err(why);
        }
        let status = self.keeper.last_ending().map(|status| status.to_string());
        match status {
            Some(status) if status.starts_with("signal: 6") => Ok(format!("after {passes} passes")),
            status => Err(format!("it ended otherwise: {status:?}")),
        }
    }

    async fn broker_restart(&self, kill: bool) -> Effect {
        let cluster = match &self.brokers {
            Brokers::One(kafka, _) => {
                tokio::task::block_in_place(|| {
                    kafka.stop(kill);
                    kafka.start_again();
                });
                return Ok("it serves again".to_owned());
            }
            Brokers::Three(cluster) => cluster,
        };
        let old = cluster.leader(&self.topic, 0).await;
        tokio::task::block_in_place(|| cluster.broker(old).stop(kill));
        let new = cluster.leader_is_not(old, &self.topic, 0).await;
        tokio::task::block_in_place(|| cluster.broker(old).start_again());
        Ok(format!("broker {new} leads instead of {old}"))
    }

    async fn broker_halt(&self, time: Duration) -> Effect {
        let cluster = match &self.brokers {
            Brokers::One(kafka, _) => {
                tokio::task::block_in_place(|| kafka.halt());
                tokio::time::sleep(time).await;
                kafka.go_on();
                return Ok(format!("for {time:.1?}"));
            }
            Brokers::Three(cluster) => cluster,
        };
        let old = cluster.leader(&self.topic, 0).await;
        tokio::task::block_in_place(|| cluster.broker(old).halt());
        let halted = Instant::now();
        let new = cluster.leader_is_not(old, &self.topic, 0).await;
        tokio::time::sleep(time.saturating_sub(halted.elapsed())).await;
        cluster.broker(old).go_on();
        Ok(format!("broker {new} leads instead of {old}"))
    }

    async fn limit_lowered(&self) -> Effect {
        let kafka = self.brokers.addresses();
        let before = self.keeper.log().len();
        topic::set_max_message_bytes(&kafka, &self.topic, "5000").await;
        let mut session = self.session().await;
        // Any numbers do: its id is a new one each time.
        let written = rough::large_event(&mut session, &mut fastrand::Rng::new()).await;
        let refused = self
            .trace("no record was refused", || {
                self.keeper.log()[before..].contains("records in flight was refused")
            })
            .await;
        topic::set_max_message_bytes(&kafka, &self.topic, DEFAULT_LIMIT).await;
        written.map_err(|error| format!("{error:?}"))?;
        refused.map(|()| "a large record was refused".to_owned())
    }

    async fn login_revoked(&self, time: Duration) -> Effect {
        let role = &self.role;
        self.execute(&format!("ALTER ROLE {role} NOLOGIN")).await?;
        let sql =
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1";
        let ended = self.count(sql, role, "sessions").await;
        tokio::time::sleep(time).await;
        self.execute(&format!("ALTER ROLE {role} LOGIN")).await?;
        ended
    }

    async fn publication_altered(&self, time: Duration) -> Effect {
        let name = &self.slot;
        // A row filter, a list or nothing of the outbox itself: its rows stay published.
        self.execute(&format!(
            "ALTER PUBLICATION {name} ADD TABLE counters; ALTER PUBLICATION {name} SET (publish = 'insert, update')"
        ))
        .await?;
        tokio::time::sleep(time).await;
        self.execute(&format!(
            "ALTER PUBLICATION {name} SET TABLE outbox; ALTER PUBLICATION {name} SET (publish = 'insert')"
        ))
        .await?;
        Ok("the counters' updates were published".to_owned())
    }

    async fn session(&self) -> tokio_postgres::Client {
        database::connect_again(self.postgres.port(), &self.slot).await
    }

    async fn execute(&self, sql: &str) -> Result<(), String> {
        let session = self.session().await;
        let done = session.batch_execute(sql).await;
        done.map_err(|error| format!("{error:?}"))
    }

    /// Runs a statement that counts what it did to whatever has this name.
    async fn count(&self, sql: &str, name: &String, what: &str) -> Effect {
        let session = self.session().await;
        match session.query_one(sql, &[name]).await {
            Ok(row) if row.get::<_, i64>(0) > 0 => Ok(format!("{what}: {}", row.get::<_, i64>(0))),
            Ok(_) => Err(format!("there was no {what}")),
            Err(error) => Err(format!("{error:?}")),
        }
    }

    /// Waits until it is so; `why_not` when that takes too long.
    async fn trace(&self, why_not: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
        let deadline = Instant::now() + TRACE;
        while !is_so() {
            if Instant::now() > deadline {
                return Err(why_not.to_owned());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

impl Brokers {
    fn addresses(&self) -> String {
        match self {
            Self::One(kafka, _) => kafka.address(),
            Self::Three(cluster) => cluster.addresses(),
        }
    }

    fn count(&self) -> i32 {
        match self {
            Self::One(..) => 1,
            Self::Three(_) => 3,
        }
    }
}

async fn break_connections(proxy: &Proxy, how: Break) -> Effect {
    let links = proxy.links();
    let set = |fault| links.iter().for_each(|link| link.set(fault));
    match how {
        Break::Cut => set(LinkFault::Cut),
        Break::HalfOpen => set(LinkFault::HalfOpen),
        Break::CutInside(bytes) => {
            set(LinkFault::CutInside(bytes));
            tokio::time::sleep(Duration::from_secs(2)).await;
            let cut = links.iter().filter(|link| !link.is_open()).count();
            set(LinkFault::None);
            return match cut {
                0 => Err("too few bytes passed".to_owned()),
                cut => Ok(format!("{cut} connections")),
            };
        }
        Break::Stall(time) => {
            proxy.set(LinkFault::Stalled(Direction::Both));
            tokio::time::sleep(time).await;
            proxy.set(LinkFault::None);
        }
        Break::Slow(rate, time) => {
            proxy.set(LinkFault::Throttled(rate));
            tokio::time::sleep(time).await;
            proxy.set(LinkFault::None);
        }
    }
    match links.len() {
        0 => Err("there was no connection".to_owned()),
        hit => Ok(format!("{hit} connections")),
    }
}
