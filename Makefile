# make setup   install what is missing (Debian 12, as root; nothing is fetched when all is there)
# make build   the programs: target/release/wirespeed and target/release/wirespeed-device
# make deb     a package for Debian of both programs, into target/deb
# make static  both programs without any library beside them, for systems with an older one, into target/static
# make demo    a slow tunnel found out, fixed with proof, and put back (as root)
# make test    every test, and what could not be tested here (as root)
# make test-full    that, with every scenario of the lab three times in a row, every peer, what takes minutes, the outside suites and the emulated kernel
# make test-kernel  the tests that need a kernel with WireGuard, in an emulated machine (tests/kernel)
# make peers   the other userspace WireGuards the device is tested against, into target/peers
# make bench   the benchmarks of bench/README.md (as root)
# make bench-device   wirespeed-device beside other WireGuards, some 25 minutes (as root; OPTIONS=--quick for less)
# make bench-steps  each step of the data plane by itself, and what sealing and opening cost above the cipher
# make book    the user guide as HTML, English and French, into target/book
# make lint    rustfmt and clippy
# make schemas  the JSON Schemas in docs/schemas anew, after a change of what is printed; refuses what ends a version
# make deny    licences, sources and known weaknesses of all that wirespeed is built from (fetches its tool the first time)
# make fuzz    each fuzz target for a minute (FUZZ_SECONDS=…; TARGETS=… for some)

export PATH := $(PATH):$(if $(CARGO_HOME),$(CARGO_HOME),$(HOME)/.cargo)/bin

.PHONY: setup build deb static demo test test-full test-kernel peers bench bench-device bench-steps book schemas lint deny fuzz

setup:
	@scripts/setup

build: setup
	cargo build --release --package wirespeed-cli --package wirespeed-device

deb: build
	@scripts/setup deb
	@scripts/deb

static: setup
	@scripts/static

demo: build
	@target/release/wirespeed demo

test: setup
	@scripts/peers wireguard-go
	@scripts/test

test-full: build deb static peers test
	@scripts/setup deb-test
	@scripts/deb-test
	for round in 1 2 3; do cargo test --package wirespeed-cli --test scenarios -- --include-ignored || exit; done
	cargo test --package wirespeed-cli --test doctor_faults -- --ignored
	cargo test --package wirespeed-device --test interop -- --ignored
	@scripts/outside-suites
	@scripts/kernel-vm test

test-kernel: build
	@scripts/kernel-vm test

peers:
	@scripts/peers

bench: build
	@bench/run target/release/wirespeed
	@bench/answers target/release/wirespeed
	@bench/limits target/release/wirespeed

bench-device: setup
	@bench/device/run $(OPTIONS)

bench-steps: setup
	@bench/steps

book: setup
	cargo run --quiet --package wirespeed-book

schemas:
	WIRESPEED_WRITE_SCHEMAS=1 cargo test --quiet --package wirespeed-schemas --test published

lint:
	@scripts/setup lint
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets -- -D warnings

deny: setup
	@scripts/deny

fuzz: setup
	@fuzz/run $(TARGETS)
