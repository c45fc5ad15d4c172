//! What can go wrong between here and a machine.

use std::time::Duration;

use crate::place::PlaceError;

/// Why a machine could not be reached, or a call to it brought nothing. Cloneable, because every call that a
/// broken connection ends gets the same reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// The place is not one that can be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),

    /// Nothing was started on the way: no such namespace, no ssh on this machine, no root.
    #[error("{machine}: {reason}")]
    NotStarted {
        /// Where.
        machine: String,
        /// What was in the way, and what to do.
        reason: NotStartedReason,
    },

    /// The machine was reached, but there is no wirespeed on it.
    #[error("{machine}: could not run {program} there ({detail}); {advice}")]
    ProgramMissing {
        /// Where.
        machine: String,
        /// The program that was tried.
        program: String,
        /// What the system said.
        detail: String,
        /// What to do.
        advice: String,
    },

    /// The ssh server's host key is unknown or has changed.
    #[error(
        "{machine}: ssh does not trust the host key ({detail}); compare the key, then run ssh to that host once by hand to accept it (under sudo: sudo ssh)"
    )]
    HostKey {
        /// Where.
        machine: String,
        /// What ssh said.
        detail: String,
    },

    /// The ssh server did not let us in.
    #[error(
        "{machine}: ssh was not let in ({detail}); wirespeed never asks for a password: set up a key or an agent so that ssh to that host works by itself (under sudo it is root's ssh, with root's keys)"
    )]
    Login {
        /// Where.
        machine: String,
        /// What ssh said.
        detail: String,
    },

    /// ssh found no server, or lost it before wirespeed started.
    #[error(
        "{machine}: ssh did not get there ({detail}); check address, port and firewall with ssh by hand"
    )]
    Unreachable {
        /// Where.
        machine: String,
        /// What ssh said.
        detail: String,
    },

    /// The other program is not of our version.
    #[error(
        "{machine}: runs wirespeed {theirs} (protocol {their_protocol}), this is wirespeed {ours} (protocol {our_protocol}); install the same version on both machines"
    )]
    Version {
        /// Where.
        machine: String,
        /// Version of the program there.
        theirs: String,
        /// Its protocol.
        their_protocol: u32,
        /// Version of this program.
        ours: String,
        /// Our protocol.
        our_protocol: u32,
    },

    /// No answer within the limit. The call was cancelled; the connection stays, unless it was never made.
    #[error("{machine}: {operation} gave no answer within {:.1} s{detail}", after.as_secs_f64())]
    TimedOut {
        /// Where.
        machine: String,
        /// What was called; "the greeting" while opening.
        operation: String,
        /// The limit.
        after: Duration,
        /// What was heard meanwhile and what to do; empty or beginning with a separator.
        detail: String,
    },

    /// The agent, or the ssh that leads to it, ended while it was needed.
    #[error(
        "{machine}: the wirespeed agent there ended ({exit}){}; run this again, and if it repeats look into the system log there",
        crate::text::last_words(stderr)
    )]
    Died {
        /// Where.
        machine: String,
        /// How it ended, in words.
        exit: String,
        /// The end of what it wrote to its standard error, escaped; may be empty.
        stderr: String,
    },

    /// The client of an agent gave no sign of life: its machine or the way to it is down.
    #[error(
        "{machine} gave no sign of life for {:.0} s; the agent ends, start it again from there", after.as_secs_f64()
    )]
    Silent {
        /// Who.
        machine: String,
        /// For how long.
        after: Duration,
    },

    /// What came over the line is not ours.
    #[error("{machine}: {detail}")]
    Rubbish {
        /// Where.
        machine: String,
        /// What came instead of what, and what to do.
        detail: String,
    },

    /// The call could not be sent.
    #[error("{machine}: {operation} was not called: {detail}")]
    NotCalled {
        /// Where.
        machine: String,
        /// What was to be called.
        operation: String,
        /// Why not.
        detail: String,
    },

    /// The operation's answer does not have the shape the caller expects.
    #[error("{machine}: {operation} answered in a form this wirespeed does not know: {detail}")]
    Answer {
        /// Where.
        machine: String,
        /// What was called.
        operation: String,
        /// What does not fit.
        detail: String,
    },

    /// The operation itself failed over there, and said why.
    #[error("{machine}: {message}")]
    Operation {
        /// Where.
        machine: String,
        /// What was called.
        operation: String,
        /// What the operation said.
        message: String,
    },
}

/// Why nothing was started on the way to a place, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStartedReason {
    /// `ip` knows no such namespace.
    #[error(
        "there is no network namespace {name} on this machine ({detail}); `ip netns list` shows those there are"
    )]
    NoNamespace {
        /// The namespace.
        name: String,
        /// What `ip` said.
        detail: String,
    },
    /// `ip` may not enter it.
    #[error("entering the network namespace {name} needs root ({detail}); run wirespeed as root")]
    NeedsRoot {
        /// The namespace.
        name: String,
        /// What `ip` said.
        detail: String,
    },
    /// A program that this machine lacks.
    #[error("{program} was not found on this machine; install {package}")]
    NoProgram {
        /// The program.
        program: String,
        /// The package that brings it.
        package: &'static str,
    },
    /// It is there, and the system would not run it.
    #[error("{program} could not be run: {detail}")]
    ProgramNotRun {
        /// The program.
        program: String,
        /// What the system said.
        detail: String,
    },
    /// The system gave no thread.
    #[error("this machine gave no thread to talk to it with: {detail}; end other programs first")]
    NoThread {
        /// What the system said.
        detail: String,
    },
    /// An empty command for ssh.
    #[error("no ssh command was given to reach it with")]
    NoSshCommand,
    /// An iperf3 server answers no questions.
    #[error(
        "an iperf3 server can carry loads, but no wirespeed can be asked there; for what the far end knows, give --far ssh://[user@]host"
    )]
    Iperf3,
}
