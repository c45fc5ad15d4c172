# make setup   install what is missing (Debian 12, as root; nothing is fetched when all is there)
# make build   the program: target/release/wirespeed
# make demo    a slow tunnel found out, fixed with proof, and put back (as root)
# make test    every test, and what could not be tested here (as root)
# make peers   the other userspace WireGuards the device is tested against, into target/peers
# make bench   the benchmarks of bench/README.md (as root)
# make lint    rustfmt and clippy
# make fuzz    each fuzz target for a minute (FUZZ_SECONDS=…; TARGETS=… for some)

export PATH := $(PATH):$(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin

.PHONY: setup build demo test peers bench lint fuzz

setup:
	@scripts/setup

build: setup
	cargo build --release --package wirespeed-cli

demo: build
	@target/release/wirespeed demo

test: setup
	@scripts/test

peers:
	@scripts/peers

bench: build
	@bench/run target/release/wirespeed

lint:
	@scripts/setup lint
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings

fuzz: setup
	@fuzz/run $(TARGETS)
