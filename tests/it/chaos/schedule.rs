//! Which faults come when: two lanes of them at once, the same for the same seed.

use std::time::Duration;

/// Something that goes wrong, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// outboxd is killed (SIGKILL).
    Kill,
    /// outboxd is asked to stop (SIGTERM), and is started again.
    Stop,
    /// outboxd stands still (SIGSTOP).
    Halt(Duration),
    /// outboxd dies by itself at this failpoint, after so many passes.
    Die(&'static str, u32),
    /// Connections to this end are broken in this way.
    Connections(End, Break),
    /// The server's walsender for our slot is ended.
    TerminateWalsender,
    /// The server ends so (`fast`, `immediate`, `kill`) and starts again.
    ServerRestart(&'static str),
    /// The server and all its sessions stand still.
    ServerHalt(Duration),
    /// A broker ends, as by a crash or cleanly, and starts again.
    BrokerRestart { kill: bool },
    /// A broker stands still.
    BrokerHalt(Duration),
    /// The topic takes only small records for a while, and a large one comes.
    LimitLowered,
    /// outboxd's role may not log in for a while, and its sessions are ended.
    LoginRevoked(Duration),
    /// The publication has another table for a while.
    PublicationAltered(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Database,
    Kafka,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Reset at once.
    Cut,
    /// Reset after so many further bytes, in the middle of a message.
    CutInside(usize),
    /// Gone without a word; new ones work.
    HalfOpen,
    /// Nothing passes for a while.
    Stall(Duration),
    /// So few bytes a second pass for a while.
    Slow(u32, Duration),
}

impl Fault {
    /// Under this name it is counted.
    pub fn kind(&self) -> String {
        match self {
            Self::Kill => "outboxd killed".to_owned(),
            Self::Stop => "outboxd stopped and started".to_owned(),
            Self::Halt(_) => "outboxd halted".to_owned(),
            Self::Die(point, _) => format!("outboxd dies {}", point.replace('-', " ")),
            Self::Connections(end, how) => {
                let end = match end {
                    End::Database => "database",
                    End::Kafka => "Kafka",
                };
                let how = match how {
                    Break::Cut => "cut",
                    Break::CutInside(_) => "cut in a message",
                    Break::HalfOpen => "half-open",
                    Break::Stall(_) => "stalled",
                    Break::Slow(..) => "slow",
                };
                format!("{end} connections {how}")
            }
            Self::TerminateWalsender => "walsender terminated".to_owned(),
            Self::ServerRestart(how) => format!("server restarted ({how})"),
            Self::ServerHalt(_) => "server halted".to_owned(),
            Self::BrokerRestart { kill: true } => "broker killed and started".to_owned(),
            Self::BrokerRestart { kill: false } => "broker restarted".to_owned(),
            Self::BrokerHalt(_) => "broker halted".to_owned(),
            Self::LimitLowered => "topic limit lowered and raised".to_owned(),
            Self::LoginRevoked(_) => "login revoked and granted".to_owned(),
            Self::PublicationAltered(_) => "publication altered".to_owned(),
        }
    }
}

/// Faults of one kind of thing, one after the other, each after a rest.
pub struct Lane {
    random: fastrand::Rng,
    /// The kinds not tried in this round: all of a lane's come before one comes again.
    left: Vec<usize>,
    make: fn(&mut fastrand::Rng, usize) -> Fault,
    kinds: usize,
    longest_rest: Duration,
}

impl Lane {
    /// What happens to outboxd and its connections: short things, many of them. With several
    /// brokers the connections to them are left alone.
    pub fn of_the_relay(random: fastrand::Rng, brokers: usize) -> Self {
        let kinds = if brokers > 1 { 9 } else { 14 };
        Self::new(random, relay_fault, kinds, Duration::from_millis(1500))
    }

    /// What happens to the services.
    pub fn of_the_services(random: fastrand::Rng, brokers: usize) -> Self {
        let (make, kinds): (fn(&mut fastrand::Rng, usize) -> Fault, usize) = match brokers {
            1 => (service_fault, 9),
            _ => (broker_fault, 3),
        };
        Self::new(random, make, kinds, Duration::from_millis(3000))
    }

    fn new(
        random: fastrand::Rng,
        make: fn(&mut fastrand::Rng, usize) -> Fault,
        kinds: usize,
        longest_rest: Duration,
    ) -> Self {
        Self {
            random,
            left: Vec::new(),
            make,
            kinds,
            longest_rest,
        }
    }
}

impl Iterator for Lane {
    /// After this rest this happens.
    type Item = (Duration, Fault);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            self.left = (0..self.kinds).collect();
            self.random.shuffle(&mut self.left);
        }
        let kind = self.left.pop()?;
        let rest = self.longest_rest.mul_f64(self.random.f64());
        Some((rest, (self.make)(&mut self.random, kind)))
    }
}

fn relay_fault(random: &mut fastrand::Rng, kind: usize) -> Fault {
    let passes = random.u32(1..1500);
    match kind {
        0 => Fault::Kill,
        1 => Fault::Stop,
        2 => Fault::Halt(milliseconds(random, 200..3000)),
        3 => Fault::Die("after-decode", passes),
        4 => Fault::Die("after-enqueue", passes),
        5 => Fault::Die("after-acknowledgement", passes),
        6 => Fault::Die("before-confirmation", passes / 20),
        7 => Fault::TerminateWalsender,
        8 => Fault::Connections(End::Database, any_break(random)),
        9 => Fault::Connections(End::Database, Break::Cut),
        10 => Fault::Connections(End::Kafka, Break::Cut),
        11 => Fault::Connections(End::Kafka, Break::CutInside(random.usize(..20_000))),
        12 => Fault::Connections(End::Kafka, Break::HalfOpen),
        _ => Fault::Connections(End::Kafka, any_break(random)),
    }
}

fn any_break(random: &mut fastrand::Rng) -> Break {
    match random.u8(..5) {
        0 => Break::Cut,
        1 => Break::CutInside(random.usize(..20_000)),
        2 => Break::HalfOpen,
        3 => Break::Stall(milliseconds(random, 200..4000)),
        _ => Break::Slow(random.u32(2_000..100_000), milliseconds(random, 500..3000)),
    }
}

fn service_fault(random: &mut fastrand::Rng, kind: usize) -> Fault {
    match kind {
        0 => Fault::ServerRestart("fast"),
        1 => Fault::ServerRestart("immediate"),
        2 => Fault::ServerRestart("kill"),
        3 => Fault::ServerHalt(milliseconds(random, 500..4000)),
        4 => Fault::BrokerRestart {
            kill: random.bool(),
        },
        5 => Fault::BrokerHalt(milliseconds(random, 500..5000)),
        6 => Fault::LimitLowered,
        7 => Fault::LoginRevoked(milliseconds(random, 500..3000)),
        _ => Fault::PublicationAltered(milliseconds(random, 500..3000)),
    }
}

/// Each takes the leadership of some partition from the broker.
fn broker_fault(random: &mut fastrand::Rng, kind: usize) -> Fault {
    match kind {
        0 => Fault::BrokerRestart { kill: true },
        1 => Fault::BrokerRestart { kill: false },
        // Longer than its session lasts: it wakes up as one that was replaced.
        _ => Fault::BrokerHalt(milliseconds(random, 4000..9000)),
    }
}

fn milliseconds(random: &mut fastrand::Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(random.u64(range))
}
