//! Inputs near to kept ones, the same in every run.

use std::ops::Range;

/// Longer inputs are cut: they cost time and seldom reach anything new.
const MAX_BYTES: usize = 4096;
/// Bytes on which a decision often hangs: bounds of numbers, and signs of the texts.
const TELLING: &[u8] = b"\0\x01\x02\x7f\x80\xff\n\r\t \\\"#!=:,.$^*+?|()[]{}-&<>09azQEux";

/// Makes inputs.
pub struct Mutator {
    random: fastrand::Rng,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    /// Of these inputs.
    pub fn new(seeds: Vec<Vec<u8>>) -> Self {
        Self {
            random: fastrand::Rng::with_seed(0),
            seeds,
        }
    }

    /// One of the seeds with a few changes.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.seed();
        for _ in 0..self.random.u8(1..6) {
            self.change(&mut input);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn seed(&mut self) -> Vec<u8> {
        self.random.choice(&self.seeds).unwrap().clone()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.usize(..=input.len());
        match (self.random.u8(..6), input.get_mut(at)) {
            (0, Some(byte)) => *byte ^= 1 << self.random.u8(..8),
            (1, Some(byte)) => *byte = *self.random.choice(TELLING).unwrap(),
            (2, Some(byte)) => {
                let by = self.random.u8(1..4);
                *byte = if self.random.bool() {
                    byte.wrapping_add(by)
                } else {
                    byte.wrapping_sub(by)
                };
            }
            (3, _) => input.insert(at, *self.random.choice(TELLING).unwrap()),
            (4, _) => {
                let part = self.part(input.len());
                input.drain(part);
            }
            // A part of some input, also of this one, moved or repeated here.
            _ => {
                let other = self.seed();
                let part = self.part(other.len());
                let replaced = at..self.random.usize(at..=input.len());
                input.splice(replaced, other[part].iter().copied());
            }
        }
    }

    fn part(&mut self, length: usize) -> Range<usize> {
        let start = self.random.usize(..=length);
        start..self.random.usize(start..=length)
    }
}
