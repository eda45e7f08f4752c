.DEFAULT_GOAL := help
.PHONY: help build demo test chaos fuzz lint latency image image-test

help: ## lists these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build: ## the program, as target/release/outboxd
	dev/install
	cargo build --release

demo: ## the outbox pattern step by step, on a real PostgreSQL and Kafka (about a minute)
	@dev/demo

test: ## all tests, on a real PostgreSQL and Kafka; PG=all, PG=16 or PG="14 18" chooses the PostgreSQL
	@dev/test $(PG)

chaos: ## everything breaks under load, and nothing may be lost: SEED=n (or 1..20) MINUTES=m BROKERS=1|3
	dev/install
	@SEED="$(SEED)" MINUTES="$(MINUTES)" BROKERS="$(BROKERS)" BREAK="$(BREAK)" dev/chaos

lint: ## format and clippy, without a warning
	dev/install
	cargo fmt --check
	cargo clippy --release -- -D warnings
	cargo clippy --release --all-targets --features failpoints -- -D warnings

fuzz: ## looks for inputs that break a parser; TARGET=name for one of them, MINUTES=10 for each
	dev/install
	@dev/fuzz --minutes $(or $(MINUTES),10) $(TARGET)

latency: ## time from commit to consumer at 100 transactions a second, median and p99
	dev/install
	dev/with-services cargo bench --bench latency

image: ## the container image outboxd, with docker, podman or buildah
	@dev/image build

image-test: ## builds the image and delivers with it; prints its size and start-up time
	@dev/image-test
