//! A field distributed over PEs: who owns which rows, where they lie, how they are collected and saved.

pub(crate) mod band;
pub(crate) mod checkpoint;
pub(crate) mod gather;
pub(crate) mod partition;
pub(crate) mod rows;
pub(crate) mod storage;
pub(crate) mod view;
pub(crate) mod zeros;
