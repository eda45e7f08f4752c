//! Nothing is lost and nothing comes out of order, whatever breaks (rules R1 to R4): a seeded
//! schedule of faults under a seeded workload, judged by three oracles.
//!
//! `make chaos SEED=n MINUTES=m` runs it for longer; `BROKERS=3` changes leaders instead, and
//! `BREAK=confirm-on-enqueue` makes outboxd break the rule that the bench is there for.

mod keeper;
mod sampler;
mod schedule;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::sampler::Sampler;
use self::schedule::Lane;
use self::world::{Effect, World};
use crate::support::second_slot::SecondSlot;
use crate::support::workload::{self, Verdict, Workload};

/// Fewer faults than this that really took effect say nothing.
const ENOUGH_FAULTS: usize = 10;
const WRITERS: u64 = 4;

/// What is asked for.
#[derive(Debug, Clone)]
struct Bench {
    seed: u64,
    minutes: f64,
    brokers: usize,
    /// A failpoint that makes outboxd break a rule.
    breaking: Option<String>,
}

impl Bench {
    /// As the environment says (`dev/chaos`), with these where it says nothing.
    fn from_environment(seed: u64, minutes: f64) -> Self {
        let variable = |name: &str| {
            let value = std::env::var(format!("OUTBOXD_CHAOS_{name}")).ok();
            value.filter(|value| !value.is_empty())
        };
        let number = |name: &str| {
            variable(name).map(|text| {
                text.parse::<f64>()
                    .unwrap_or_else(|_| panic!("{name} is a number"))
            })
        };
        Self {
            seed: variable("SEED").map_or(seed, |text| text.parse().expect("SEED is a number")),
            minutes: number("MINUTES").unwrap_or(minutes),
            brokers: match number("BROKERS") {
                Some(3.0) => 3,
                None | Some(1.0) => 1,
                Some(other) => panic!("BROKERS is 1 or 3, not {other}"),
            },
            breaking: variable("BREAK"),
        }
    }

    async fn run(&self) -> Outcome {
        println!("again: {self}");
        let mut random = fastrand::Rng::with_seed(self.seed);
        let (world, mut database) = World::start(self.brokers, self.breaking.as_deref()).await;
        let world = Arc::new(world);
        let second = SecondSlot::create(&database).await;
        let load = Workload::start_rough(&database, WRITERS, random.u64(..)).await;
        let sampler = Sampler::start(&database, &world.topic, world::PARTITIONS);

        let begun = Instant::now();
        let until = begun + Duration::from_secs_f64(60.0 * self.minutes);
        let lanes = [
            Lane::of_the_relay(random.fork(), self.brokers),
            Lane::of_the_services(random.fork(), self.brokers),
        ];
        let lanes = lanes.map(|lane| tokio::spawn(suffer(Arc::clone(&world), lane, until)));
        let mut faults = Vec::new();
        for lane in lanes {
            faults.extend(lane.await.expect("the lane works"));
        }
        world.mend();
        let lasted = begun.elapsed();

        database.reconnect().await;
        let transactions = load.transactions();
        let (written, records) = load.delivered(&database).await;
        let caught_up = begun.elapsed() - lasted;
        let samples = sampler.end().await;
        let log = second.read(&database).await;
        let world = Arc::into_inner(world).expect("the lanes have ended");
        let whole_log = world.keeper.log();
        let (exit_code, endings) = world.keeper.end().await;
        Outcome {
            bench: self.clone(),
            faults,
            by_numbers: workload::judge(&written, &records),
            by_the_log: log.judge(&records),
            too_early: sampler::confirmed_too_early(&samples, &log, &records),
            samples: samples.len(),
            events: written.len(),
            events_by_the_log: log.events().count(),
            transactions,
            lasted,
            caught_up,
            endings,
            exit_code,
            log: whole_log,
        }
    }
}

/// The command that does the same again.
impl std::fmt::Display for Bench {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "make chaos SEED={} MINUTES={}", self.seed, self.minutes)?;
        if self.brokers > 1 {
            write!(f, " BROKERS={}", self.brokers)?;
        }
        match &self.breaking {
            Some(failpoint) => write!(f, " BREAK={failpoint}"),
            None => Ok(()),
        }
    }
}

/// One fault after the other until the time is over.
async fn suffer(world: Arc<World>, lane: Lane, until: Instant) -> Vec<(String, Effect)> {
    let mut suffered = Vec::new();
    for (rest, fault) in lane {
        tokio::time::sleep(rest).await;
        if Instant::now() >= until {
            break;
        }
        let effect = world.suffer(fault).await;
        println!("{fault:?}: {effect:?}");
        suffered.push((fault.kind(), effect));
    }
    suffered
}

struct Outcome {
    bench: Bench,
    faults: Vec<(String, Effect)>,
    by_numbers: Verdict,
    by_the_log: Verdict,
    /// Samples in which a position was confirmed too early.
    too_early: usize,
    samples: usize,
    events: usize,
    events_by_the_log: usize,
    transactions: usize,
    lasted: Duration,
    /// How long it took after the last fault until everything was confirmed.
    caught_up: Duration,
    endings: BTreeMap<String, usize>,
    exit_code: i32,
    /// What outboxd said.
    log: String,
}

impl Outcome {
    fn effective(&self) -> usize {
        self.faults
            .iter()
            .filter(|(_, effect)| effect.is_ok())
            .count()
    }

    /// What is wrong; duplicates are not.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (oracle, verdict) in [("numbers", &self.by_numbers), ("log", &self.by_the_log)] {
            for (what, count) in [
                ("missing", verdict.missing),
                ("invented", verdict.invented),
                ("out of order", verdict.out_of_order),
            ] {
                if count > 0 {
                    wrong.push(format!("{count} events {what} (by the {oracle})"));
                }
            }
        }
        if self.too_early > 0 {
            wrong.push(format!("{} positions confirmed too early", self.too_early));
        }
        if self.events != self.events_by_the_log {
            wrong.push(format!(
                "{} events in the table, {} in the log",
                self.events, self.events_by_the_log
            ));
        }
        wrong
    }

    fn print(&self) {
        let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (kind, effect) in &self.faults {
            let counts = kinds.entry(kind).or_default();
            counts.0 += 1;
            counts.1 += usize::from(effect.is_ok());
        }
        println!("{:<40} {:>5} {:>7}", "fault", "tried", "effect");
        for (kind, (tried, effective)) in kinds {
            println!("{kind:<40} {tried:>5} {effective:>7}");
        }
        println!(
            "outboxd ended {:?}, and at last with {}",
            self.endings, self.exit_code
        );
        println!(
            "seed {}: {} faults in {:.0?}, {} events of {} transactions, missing {}, invented {}, out of order {}, confirmed too early {} of {} samples, duplicates {}, restarts {}, caught up in {:.1?}; again: {}",
            self.bench.seed,
            self.effective(),
            self.lasted,
            self.events,
            self.transactions,
            self.by_numbers.missing.max(self.by_the_log.missing),
            self.by_numbers.invented.max(self.by_the_log.invented),
            self.by_numbers
                .out_of_order
                .max(self.by_the_log.out_of_order),
            self.too_early,
            self.samples,
            self.by_numbers.duplicates,
            self.endings.values().sum::<usize>(),
            self.caught_up,
            self.bench
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seeded_schedule_of_faults_loses_nothing_and_keeps_the_order() {
    let outcome = Bench::from_environment(1, 0.5).run().await;
    outcome.print();
    let wrong = outcome.wrong();
    if !wrong.is_empty() {
        println!("--- what outboxd said\n{}", outcome.log);
    }
    assert_eq!(wrong, [""; 0], "again: {}", outcome.bench);
    assert_eq!(outcome.exit_code, 0, "{}", outcome.log);
    assert!(
        outcome.effective() >= ENOUGH_FAULTS,
        "only {} faults took effect",
        outcome.effective()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outboxd_that_confirms_what_it_has_only_enqueued_is_found_out() {
    let bench = Bench {
        seed: 1,
        minutes: 0.2,
        brokers: 1,
        breaking: Some("confirm-on-enqueue".to_owned()),
    };
    let outcome = bench.run().await;
    outcome.print();
    println!("found: {:?}", outcome.wrong());
    assert!(outcome.too_early > 0, "the sampler does not notice");
}
