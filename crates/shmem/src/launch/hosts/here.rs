//! One host's launcher, which the root has started.

use super::link::Link;
use super::words::{Order, Part, Report, hear};
use crate::launch::events::{Event, Events};
use crate::launch::job::Job;
use crate::launch::{Launch, LaunchError, Outcome};
use crate::transport::agent::Agent;
use crate::transport::beat::Signs;
use crate::transport::hosts::Hosts;
use crate::transport::tcp::server::{Server, Stop};
use crate::transport::ucx::library::Ucx;
use crate::world::config::{HOSTS, Network};
use crate::world::created::World;
use crate::world::mapped::Mapped;
use crate::world::processes::AGENTS;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the root may take to connect.
const START: Duration = Duration::from_secs(60);

/// Standard input, byte by byte: what follows is for PE 0.
struct Unbuffered;

impl io::Read for Unbuffered {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(rustix::stdio::stdin(), to)?)
    }
}

/// The agent's thread, which serves while this exists. Dropped, it is told to stop, and has ended then: libraries that it
/// uses (UCX) must not be in use when the process ends them.
struct Serving {
    stop: Option<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic has been reported by then.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Runs this host's part of a world for the launcher that started this process with its part on standard input.
/// Returns when all PEs of all hosts have ended. It sets variables of this process, so no other thread may use them meanwhile.
///
/// # Errors
/// [`LaunchError`], which the launcher has been told, too, if it could be.
pub fn run_for_launcher() -> Result<(), LaunchError> {
    let part: Part = hear(&mut Unbuffered).map_err(LaunchError::Order)?;
    let ours = env!("CARGO_PKG_VERSION");
    if part.version != ours {
        let theirs = &part.version;
        let text = format!("the launcher is of version {theirs}, and this host's of {ours}");
        return Err(LaunchError::Order(io::Error::other(text)));
    }
    std::env::set_current_dir(&part.folder).map_err(|error| {
        let text = format!("{}: {error}", part.folder.display());
        LaunchError::Order(io::Error::new(error.kind(), text))
    })?;
    let hosts = Hosts::parse(HOSTS, &part.sizes, part.n_pes)?;
    // What the user has set for this run counts here, too.
    for (name, value) in &part.environment {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("UCX_") || name_text == Ucx::VARIABLE {
            set_variable(name, value);
        }
    }
    // Standard output is the program's. UCX reads this when it is opened, here and in the PEs.
    if std::env::var_os(Ucx::LOG_FILE).is_none() {
        set_variable(Ucx::LOG_FILE.as_ref(), "stderr".as_ref());
    }
    // PEs of a single host need no network.
    let network = match hosts.n() {
        1 => Network::Tcp,
        _ => part.network,
    };
    let serves = network.serves()?;
    // PEs of a single host need no agent.
    let key = (hosts.n() > 1).then_some(part.key);
    let world = World::create(&hosts, part.host, part.heap_bytes, key)?;
    let memory = Arc::new(world.map(&hosts, part.host, part.heap_bytes)?);
    let agent = Agent::new(Arc::clone(&memory), part.host);
    let server = Server::listen(part.address, part.key).map_err(LaunchError::Order)?;
    let port = server.address().map_err(LaunchError::Order)?.port();
    let stop = server.stop();
    let signs = server.signs().map_err(LaunchError::Order)?;
    let (sender, launchers) = channel();
    let serve = move || {
        let served = serves.serve(server, agent, |launcher| drop(sender.send(launcher)));
        if let Err(error) = served {
            tracing::error!("the agent can't go on: {error}");
            std::process::exit(1);
        }
    };
    let thread = std::thread::Builder::new().name("agent".into());
    let serving = Serving {
        stop: Some(stop),
        thread: Some(thread.spawn(serve).map_err(LaunchError::Watch)?),
    };
    // The root reads this line, whatever a login script has begun.
    let mut out = io::stdout();
    let said = writeln!(out, "\ncrosswarp {port}").and_then(|()| out.flush());
    said.map_err(LaunchError::Order)?;
    let late = |_| LaunchError::Order(io::Error::other("the launcher has not connected"));
    let mut root = launchers.recv_timeout(START).map_err(late)?;
    let back = Link::new(root.try_clone().map_err(LaunchError::Order)?);
    let ended = run(part, memory, world, network, (&mut root, &back), signs);
    let report = match &ended {
        Ok(outcome) => Report::Done {
            interrupted: outcome.interrupted,
        },
        Err(error) => Report::Error {
            text: error.to_string(),
        },
    };
    back.tell(&report);
    // PEs of other hosts may still use the memory of this one: the root closes the connection when all have ended.
    while hear::<Order>(&mut root).is_ok() {}
    drop(serving);
    ended.map(drop)
}

/// Sets a variable of this process; called by [`run_for_launcher`] alone.
fn set_variable(name: &OsStr, value: &OsStr) {
    // SAFETY: no other thread uses variables meanwhile, as the caller of `run_for_launcher` says.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var(name, value);
    }
}

fn run(
    part: Part,
    memory: Arc<Mapped>,
    world: World,
    network: Network,
    (root, back): (&mut TcpStream, &Link),
    signs: UdpSocket,
) -> Result<Outcome, LaunchError> {
    root.set_read_timeout(Some(part.life.patience))
        .map_err(LaunchError::Order)?;
    let agents = loop {
        match hear(root).map_err(LaunchError::Order)? {
            Order::Start { agents } => break agents,
            Order::Kill | Order::End { .. } | Order::Signal { .. } => {
                let ended = "it was ended before it began";
                return Err(LaunchError::Order(io::Error::other(ended)));
            }
            Order::Left { .. } | Order::Beat => {}
        }
    };
    let pes = memory.hosts.pes(part.host);
    let events = Events::watch(&world.lifeline, Some(memory))?;
    listen(root.try_clone().map_err(LaunchError::Order)?, &events)?;
    back.beat(part.life.beat, Report::Beat)
        .map_err(LaunchError::Watch)?;
    let misses = back.clone();
    let signs = Signs {
        socket: signs,
        key: part.key,
        host: part.host,
        hosts: agents.clone(),
        life: part.life,
    };
    signs
        .begin(move |host| {
            misses.tell(&Report::Misses { host });
        })
        .map_err(LaunchError::Watch)?;
    let job = Job::of_host(world.control, part.grace, pes, Some(back.clone()));
    let agents: Vec<String> = agents.iter().map(ToString::to_string).collect();
    let mut launch = Launch::new(part.n_pes, part.program)
        .args(part.args)
        .grace(part.grace)
        .label(part.label);
    launch.environment = part.environment;
    launch.environment.push((HOSTS.into(), part.sizes.into()));
    launch
        .environment
        .push((AGENTS.into(), agents.join(",").into()));
    let network = network.variables();
    launch.environment.extend(
        network
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    launch.run_job(&world.fds, &events, job)
}

/// Hears the root's orders from now on. Its silence, or its end, is one to kill all PEs.
fn listen(mut root: TcpStream, events: &Events) -> Result<(), LaunchError> {
    let heard = events.sender();
    let listen = move || {
        loop {
            let order = hear(&mut root).unwrap_or_else(|_| {
                // Who waits for the connection's end once all PEs have ended need not wait as long again.
                let _ = root.shutdown(Shutdown::Read);
                Order::Kill
            });
            let last = order == Order::Kill;
            if heard.send(Event::Order(order)).is_err() || last {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("orders".into());
    thread.spawn(listen).map_err(LaunchError::Watch)?;
    Ok(())
}
