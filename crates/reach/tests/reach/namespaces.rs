//! An agent in a network namespace of this machine.

use wirespeed_reach::{Machine, NotStartedReason, OpenOptions, Place, ReachError};

use crate::support::{Namespace, PATIENCE, options, skip};

#[test]
fn an_agent_runs_in_the_namespace() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(reason) => return skip("an_agent_runs_in_the_namespace", &reason),
    };
    let place = Place::Netns(namespace.name.clone());
    let machine = Machine::open(&place, &options()).unwrap();
    assert_eq!(machine.name(), format!("netns:{}", namespace.name));
    assert_eq!(machine.netns(), Some(namespace.name.as_str()));
    let pid: i32 = machine.call("pid", &(), PATIENCE).unwrap();
    assert_eq!(namespace.pids(), [pid]);
    drop(machine);
    assert!(namespace.pids().is_empty());
}

#[test]
fn a_missing_program_in_a_namespace() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(reason) => return skip("a_missing_program_in_a_namespace", &reason),
    };
    let options = OpenOptions {
        program: "/nonesuch/wirespeed".into(),
        ..options()
    };
    let error = Machine::open(&Place::Netns(namespace.name.clone()), &options).unwrap_err();
    assert!(
        matches!(error, ReachError::ProgramMissing { .. }),
        "{error}"
    );
}

#[test]
fn a_namespace_that_does_not_exist() {
    let error = Machine::open(&Place::Netns("ws-nonesuch".to_owned()), &options()).unwrap_err();
    assert!(
        matches!(&error, ReachError::NotStarted { reason, .. } if matches!(reason, NotStartedReason::NoNamespace { name, .. } if name == "ws-nonesuch")),
        "{error}"
    );
}

#[test]
fn a_name_that_is_a_path_is_refused() {
    let error = Machine::open(&Place::Netns("../ns/x".to_owned()), &options()).unwrap_err();
    assert!(matches!(error, ReachError::Place(_)), "{error}");
}
