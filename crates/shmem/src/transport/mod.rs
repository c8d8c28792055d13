//! PEs of other hosts, whose memory is not mapped here.
//!
//! A PE sees another either *mapped* (one host: loads and stores) or *remote*. What it does to a remote PE's memory
//! is a [message](message) to the [agent](agent) of that PE's host, which has all heaps of the host mapped and
//! does it there. An [engine](engine) carries messages and replies; the [verbs](crate::verbs::raw::remote) stand on it
//! and see to what has to be complete or in order when.
//!
//! Collectives run on a copy: the control memory of a host has an entry for every PE of the world, and the agent
//! writes those of remote PEs as their arrivals come in. So a rendezvous looks the same whoever takes part.

pub(crate) mod agent;
pub(crate) mod beat;
pub(crate) mod courier;
pub(crate) mod engine;
pub(crate) mod fake;
pub(crate) mod hosts;
pub(crate) mod message;
pub(crate) mod network;
pub(crate) mod remote;
pub(crate) mod tcp;
pub(crate) mod ucx;
