//! The tip that the store judges by.

use serde_json::{Value, json};
use varve::records::BlockState;

use crate::command::records::arguments::{Arguments, HEIGHT, required};
use crate::command::records::failure::Failure;
use crate::command::records::session::Session;

/// The names of a median time.
const MEDIAN_TIME: &[&str] = &["median_time", "median_block_time", "time"];

pub(super) fn set_block_height(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let height = required("block_height", arguments.height(HEIGHT)?)?;
    session.set_tip(BlockState { height, ..session.store.block_state() })?;
    block_state(session, arguments)
}

pub(super) fn get_block_height(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    Ok(session.store.block_state().height.to_u32().into())
}

pub(super) fn set_median_block_time(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let median_time = required("median_time", arguments.u32(MEDIAN_TIME)?)?;
    session.set_tip(BlockState { median_time, ..session.store.block_state() })?;
    block_state(session, arguments)
}

pub(super) fn set_block_state(
    session: &Session,
    arguments: &Arguments<'_>,
) -> Result<Value, Failure> {
    let height = required("height", arguments.height(HEIGHT)?)?;
    let median_time = required("median_time", arguments.u32(MEDIAN_TIME)?)?;
    session.set_tip(BlockState { height, median_time })?;
    block_state(session, arguments)
}

pub(super) fn block_state(session: &Session, _: &Arguments<'_>) -> Result<Value, Failure> {
    let BlockState { height, median_time } = session.store.block_state();
    Ok(json!({ "height": height.to_u32(), "median_time": median_time }))
}
