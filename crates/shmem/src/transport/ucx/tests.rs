//! Two workers, of one process and of two, over TCP on this machine.
//!
//! Skipped, by name, where there is no UCX; CROSSWARP_REQUIRE_TOOLS=1 makes that a failure. CROSSWARP_UCX chooses one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::active_message::{Data, Message, Protocol, Receive};
use super::context::{Context, Region};
use super::endpoint::{Endpoint, RemoteKey};
use super::library::Ucx;
use super::request::Request;
use super::seal::{Introduction, MESSAGE, REPLY, seal};
use super::server::Server;
use super::status::Status;
use super::worker::Worker;
use crate::transport::agent::Agent as Doer;
use crate::transport::hosts::Hosts;
use crate::transport::message::{Head, Kind};
use crate::transport::tcp::key::{BYTES, Key};
use crate::transport::tcp::server::Hears as _;
use crate::world::created::World;

/// Nothing here takes that long unless it hangs.
const HANG: Duration = Duration::from_secs(60);
/// As the agents will sleep.
const NAP: Duration = Duration::from_millis(50);
const MIB: usize = 1 << 20;

/// UCX, unless `test` is skipped.
fn ucx(test: &str) -> Option<&'static Ucx> {
    Ucx::get()
        .inspect_err(|error| {
            let required = std::env::var("CROSSWARP_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
            assert!(
                !required,
                "{test} is skipped, but CROSSWARP_REQUIRE_TOOLS is 1: {error}"
            );
            println!("skipped: {test}: {error}");
        })
        .ok()
}

fn context(ucx: &'static Ucx) -> Arc<Context> {
    Context::new(ucx, &[("TLS", "tcp"), ("NET_DEVICES", "lo")]).unwrap()
}

/// Progresses `worker` until `done`.
#[track_caller]
fn progress_until(worker: &Worker, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < HANG, "hangs");
        if !worker.progress() {
            std::thread::yield_now();
        }
    }
}

#[track_caller]
fn wait(worker: &Worker, request: Result<Request, Status>) -> Result<(), Status> {
    let mut request = request?;
    let mut result = Ok(false);
    progress_until(worker, || {
        result = request.poll();
        result != Ok(false)
    });
    result.map(|_| ())
}

/// A thread that progresses a worker, asleep while nothing comes, as an agent does.
struct Agent {
    worker: Arc<Worker>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agent {
    fn start(worker: &Arc<Worker>, spin: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, stopped) = (Arc::clone(worker), Arc::clone(&stop));
        let serve = move || {
            while !stopped.load(Ordering::Relaxed) {
                if !of_thread.progress() && !spin {
                    of_thread.sleep(NAP).unwrap();
                }
            }
        };
        Self {
            worker: Arc::clone(worker),
            stop,
            thread: Some(std::thread::spawn(serve)),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.worker.wake().unwrap();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

/// Memory that others reach.
struct Heap {
    region: Region,
    bytes: *mut u8,
    length: usize,
}

// SAFETY: a pointer to memory that is the heap's own; used as the tests argue.
unsafe impl Send for Heap {}

impl Heap {
    fn new(context: &Arc<Context>, length: usize) -> Self {
        let bytes: &'static mut [u8] = Box::leak(vec![0; length].into());
        let bytes = bytes.as_mut_ptr();
        // SAFETY: the memory is leaked, and read only where no transfer is under way.
        let region = unsafe { Region::map(context, bytes, length) }.unwrap();
        Self {
            region,
            bytes,
            length,
        }
    }

    fn read(&self) -> &[u8] {
        // SAFETY: the tests read when what was put is flushed.
        unsafe { std::slice::from_raw_parts(self.bytes, self.length) }
    }

    fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.length);
        // SAFETY: the tests write when nothing is under way.
        unsafe { self.bytes.copy_from(bytes.as_ptr(), bytes.len()) };
    }
}

fn connect(worker: &Arc<Worker>, address: &[u8]) -> Arc<Endpoint> {
    // SAFETY: the tests pass what a worker said.
    unsafe { Endpoint::connect(worker, address) }.unwrap()
}

fn key(endpoint: &Arc<Endpoint>, packed: &[u8]) -> RemoteKey {
    // SAFETY: the tests pass what a region of the other side said.
    unsafe { endpoint.unpack(packed) }.unwrap()
}

/// A put and its flush.
fn put(key: &RemoteKey, bytes: &[u8], to: u64) -> Result<(), Status> {
    let worker = key.endpoint().worker();
    // SAFETY: waited for before the borrow ends (a hang ends the test); the tests stay in the region.
    wait(worker, unsafe { key.put(bytes.as_ptr(), bytes.len(), to) })?;
    wait(worker, key.endpoint().flush())
}

fn get(key: &RemoteKey, bytes: &mut [u8], from: u64) -> Result<(), Status> {
    let request = {
        // SAFETY: waited for before the borrow ends (a hang ends the test); the tests stay in the region.
        unsafe { key.get(bytes.as_mut_ptr(), bytes.len(), from) }
    };
    wait(key.endpoint().worker(), request)
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    let byte = |at: usize| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed as u8;
    (0..length).map(byte).collect()
}

#[test]
fn puts_and_gets_of_all_sizes() {
    let Some(ucx) = ucx("puts_and_gets_of_all_sizes") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let heap = Heap::new(&context, 4 * MIB);
    let endpoint = connect(&near, far.address());
    let key = key(&endpoint, &heap.region.packed_key().unwrap());
    let _agent = Agent::start(&far, false);
    for (seed, length) in [1, 8, 4095, 65_537, MIB, 4 * MIB].into_iter().enumerate() {
        let bytes = pattern(length, seed);
        put(&key, &bytes, heap.region.address()).unwrap();
        assert!(heap.read()[..length] == bytes, "{length}");
        let mut back = vec![0; length - length / 3];
        get(&key, &mut back, heap.region.address() + (length / 3) as u64).unwrap();
        assert!(back == bytes[length / 3..], "{length}");
    }
    assert_eq!(endpoint.check(), Ok(()));
}

#[test]
fn a_flush_completes_many_puts_and_the_worker_forgotten_ones() {
    let Some(ucx) = ucx("a_flush_completes_many_puts_and_the_worker_forgotten_ones") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let heap = Heap::new(&context, 64 * 64 * 1024);
    let endpoint = connect(&near, far.address());
    let key = key(&endpoint, &heap.region.packed_key().unwrap());
    let _agent = Agent::start(&far, false);
    let bytes = pattern(heap.length, 3);
    for (at, part) in bytes.chunks(64 * 1024).enumerate() {
        let to = heap.region.address() + (at * part.len()) as u64;
        // SAFETY: `bytes` live until after the flush of the worker (a hang ends the test).
        drop(unsafe { key.put(part.as_ptr(), part.len(), to) }.unwrap());
    }
    drop(key);
    wait(&near, near.flush()).unwrap();
    assert!(heap.read() == bytes);
}

#[test]
fn an_operation_goes_on_when_its_request_is_dropped() {
    let Some(ucx) = ucx("an_operation_goes_on_when_its_request_is_dropped") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let (there, fetching) = channel::<Receive>();
    let handle = move |message: Message<'_>| match message.data {
        Data::There(data) => there.send(data.receive().unwrap()).unwrap(),
        Data::Here(_) => panic!("sent by rendezvous"),
    };
    far.on_message(3, handle).unwrap();
    let endpoint = connect(&near, far.address());
    let data = pattern(MIB, 4);
    let mut sent = endpoint
        .send(3, b"", data.clone(), Protocol::Rendezvous)
        .unwrap();
    assert_eq!(sent.poll(), Ok(false), "the other side was not progressed");
    drop(sent);
    let _agent = Agent::start(&far, false);
    let mut receive = next(&fetching, &near);
    let mut came = None;
    progress_until(&near, || {
        came = came.take().or_else(|| receive.poll().unwrap());
        came.is_some()
    });
    assert!(came == Some(data));
}

#[test]
fn a_worker_ends_with_operations_under_way() {
    let Some(ucx) = ucx("a_worker_ends_with_operations_under_way") else {
        return;
    };
    let context = context(ucx);
    let far = Worker::new(&context).unwrap();
    let heap = Heap::new(&context, MIB);
    let near = Worker::new(&context).unwrap();
    let endpoint = connect(&near, far.address());
    let key = key(&endpoint, &heap.region.packed_key().unwrap());
    let mut sent = endpoint
        .send(3, b"", vec![1; MIB], Protocol::Rendezvous)
        .unwrap();
    let bytes: &'static [u8] = Box::leak(vec![2; MIB].into());
    // SAFETY: the bytes are leaked; in the region.
    let put = unsafe { key.put(bytes.as_ptr(), MIB, heap.region.address()) }.unwrap();
    drop((key, put));
    let ended = Arc::downgrade(&near);
    assert_eq!(sent.poll(), Ok(false), "the other side was not progressed");
    drop((near, endpoint));
    assert!(ended.upgrade().is_some(), "a request holds its worker");
    let start = Instant::now();
    drop(sent);
    println!("ended after {:?}", start.elapsed());
    assert!(ended.upgrade().is_none(), "nothing else does");
    // What came of it is of no consequence to the other side.
    while far.progress() {}
}

#[test]
fn messages_come_whole_eager_and_by_rendezvous() {
    let Some(ucx) = ucx("messages_come_whole_eager_and_by_rendezvous") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let (here, coming) = channel();
    let (there, fetching) = channel::<Receive>();
    let handle = move |message: Message<'_>| match message.data {
        Data::Here(data) => here.send((message.header.to_vec(), data.to_vec())).unwrap(),
        Data::There(data) => {
            assert_eq!(data.length(), MIB);
            there.send(data.receive().unwrap()).unwrap();
        }
    };
    far.on_message(7, handle).unwrap();
    let endpoint = connect(&near, far.address());
    let agent = Agent::start(&far, false);
    for (header, length) in [
        ("", 0),
        ("only a header", 0),
        ("", 1),
        ("short", 100),
        ("long", MIB),
    ] {
        let data = pattern(length, header.len());
        let sent = endpoint.send(7, header.as_bytes(), data.clone(), Protocol::Eager);
        wait(&near, sent).unwrap();
        let came = next(&coming, &near);
        assert!(came == (header.into(), data), "{header} {length}");
    }
    let data = pattern(MIB, 9);
    // Progressed by this thread alone.
    drop(agent);
    let mut sent = endpoint
        .send(7, b"fetch", data.clone(), Protocol::Rendezvous)
        .unwrap();
    let mut receive = None;
    progress_until(&far, || {
        near.progress();
        receive = receive.take().or_else(|| fetching.try_recv().ok());
        receive.is_some()
    });
    let mut receive = receive.unwrap();
    let mut came = None;
    progress_until(&far, || {
        near.progress();
        came = came.take().or_else(|| receive.poll().unwrap());
        came.is_some() && sent.poll().unwrap()
    });
    assert!(came == Some(data));
    assert_eq!(receive.poll(), Ok(None), "data are handed over once");
    let longer = vec![0; near.most_header() + 1];
    let refused = endpoint.send(7, &longer, [], Protocol::Any);
    assert_eq!(refused.err(), Some(Status::INVALID_PARAMETER));
}

/// What comes next on `coming`, while `worker` is progressed.
#[track_caller]
fn next<T>(coming: &Receiver<T>, worker: &Worker) -> T {
    let mut came = None;
    progress_until(worker, || {
        came = coming.try_recv().ok();
        came.is_some()
    });
    came.unwrap()
}

#[test]
fn data_go_where_the_handler_says_or_are_refused() {
    let Some(ucx) = ucx("data_go_where_the_handler_says_or_are_refused") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let heap = Arc::new(Mutex::new(Heap::new(&context, 2 * MIB)));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (of_handler, noted, kept) = (
        Arc::clone(&heap),
        Arc::clone(&errors),
        Arc::clone(&requests),
    );
    let handle = move |message: Message<'_>| {
        let Data::There(data) = message.data else {
            panic!("sent by rendezvous")
        };
        let (start, room) = {
            let heap = of_handler.lock().unwrap();
            (heap.bytes, heap.length)
        };
        match message.header {
            b"in place" => {
                // SAFETY: the heap outlives the worker and is not read until the message is complete.
                let request = unsafe { data.receive_into(start, room) }.unwrap();
                kept.lock().unwrap().push(request);
            }
            b"too long" => {
                // SAFETY: as above.
                let refused = unsafe { data.receive_into(start, 10) };
                noted.lock().unwrap().extend(refused.err());
            }
            _ => {}
        }
    };
    far.on_message(1, handle).unwrap();
    let endpoint = connect(&near, far.address());
    let agent = Agent::start(&far, false);
    let data = pattern(2 * MIB, 5);
    for header in [&b"in place"[..], b"too long", b"not taken"] {
        let sent = endpoint.send(1, header, data.clone(), Protocol::Rendezvous);
        wait(&near, sent).unwrap();
    }
    let mut request = requests.lock().unwrap().pop().unwrap();
    progress_until(&near, || request.poll().unwrap());
    assert!(heap.lock().unwrap().read() == data);
    assert_eq!(*errors.lock().unwrap(), [Status::MESSAGE_TRUNCATED]);
    drop(agent);
}

#[test]
fn handlers_may_send() {
    let Some(ucx) = ucx("handlers_may_send") else {
        return;
    };
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let to_far = connect(&near, far.address());
    let to_near = connect(&far, near.address());
    let back = Arc::downgrade(&to_near);
    let inside = Arc::downgrade(&far);
    far.on_message(1, move |message| {
        // Progress inside progress does nothing.
        assert!(!inside.upgrade().unwrap().progress());
        let Data::Here(data) = message.data else {
            panic!("sent eagerly")
        };
        let back = back.upgrade().unwrap();
        // Not waited for: the worker goes on with it.
        drop(back.send(2, message.header, data, Protocol::Any).unwrap());
    })
    .unwrap();
    let replies = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&replies);
    near.on_message(2, move |message| {
        assert_eq!(message.header, b"echo");
        counted.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    let agent = Agent::start(&far, false);
    let before = Arc::strong_count(&far);
    for sent in 1..=100 {
        drop(to_far.send(1, b"echo", [1, 2, 3], Protocol::Eager).unwrap());
        progress_until(&near, || replies.load(Ordering::Relaxed) == sent);
    }
    assert_eq!(Arc::strong_count(&far), before, "replies hold no worker");
    drop(agent);
    drop(to_near);
    assert_eq!(Arc::strong_count(&far), 1);
}

#[test]
fn several_threads_share_a_worker() {
    let Some(ucx) = ucx("several_threads_share_a_worker") else {
        return;
    };
    const THREADS: usize = 4;
    const LENGTH: usize = 64 * 1024;
    let context = context(ucx);
    let (near, far) = (
        Worker::new(&context).unwrap(),
        Worker::new(&context).unwrap(),
    );
    let heap = Heap::new(&context, THREADS * LENGTH);
    let endpoint = connect(&near, far.address());
    let key = key(&endpoint, &heap.region.packed_key().unwrap());
    let _agent = Agent::start(&far, false);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (key, start) = (&key, heap.region.address() + (thread * LENGTH) as u64);
            scope.spawn(move || {
                for round in 0..20 {
                    let bytes = pattern(LENGTH, thread + round);
                    put(key, &bytes, start).unwrap();
                    let mut back = vec![0; LENGTH];
                    get(key, &mut back, start).unwrap();
                    assert!(back == bytes, "{thread} {round}");
                }
            });
        }
    });
}

#[test]
fn settings_that_make_no_sense_are_errors() {
    let Some(ucx) = ucx("settings_that_make_no_sense_are_errors") else {
        return;
    };
    let error = Context::new(ucx, &[("RNDV_THRESH", "many")]).err().unwrap();
    let text = error.to_string();
    assert!(text.starts_with("UCX: UCX_RNDV_THRESH=many: "), "{text}");
}

/// Another process with a worker, an agent and a heap.
struct Peer {
    process: Child,
    /// The process ends when it closes.
    _channel: TcpStream,
    address: Vec<u8>,
    key: Vec<u8>,
    heap: u64,
}

const PEER: &str = "CROSSWARP_TEST_UCX_PEER";

fn send(channel: &mut TcpStream, bytes: &[u8]) {
    channel
        .write_all(&(bytes.len() as u64).to_le_bytes())
        .unwrap();
    channel.write_all(bytes).unwrap();
}

fn receive(channel: &mut TcpStream) -> Vec<u8> {
    let mut length = [0; 8];
    channel.read_exact(&mut length).unwrap();
    let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
    channel.read_exact(&mut bytes).unwrap();
    bytes
}

impl Peer {
    fn start(near: &Worker, spin: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "transport::ucx::tests::the_other_process",
                "--ignored",
            ])
            .env(PEER, listener.local_addr().unwrap().to_string())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (mut channel, _) = listener.accept().unwrap();
        send(&mut channel, near.address());
        send(&mut channel, &[spin.into()]);
        let (address, key) = (receive(&mut channel), receive(&mut channel));
        let heap = u64::from_le_bytes(receive(&mut channel).try_into().unwrap());
        Self {
            process,
            _channel: channel,
            address,
            key,
            heap,
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Echoes messages to 1 as messages to 2, without waiting for what it sends.
fn echo(worker: &Arc<Worker>, address: Vec<u8>) {
    let of_handler = Arc::downgrade(worker);
    let back = OnceLock::new();
    let handle = move |message: Message<'_>| {
        let worker = of_handler.upgrade().unwrap();
        // Made when first used, as an agent makes it; it ends with the process.
        let back = back.get_or_init(|| connect(&worker, &address));
        match message.data {
            Data::Here(data) => drop(back.send(2, message.header, data, Protocol::Eager).unwrap()),
            Data::There(_) => panic!("sent eagerly"),
        }
    };
    worker.on_message(1, handle).unwrap();
}

#[test]
#[ignore = "the other process of the tests here, which start it"]
fn the_other_process() {
    let mut channel = TcpStream::connect(std::env::var(PEER).expect("started by a test")).unwrap();
    let context = context(Ucx::get().unwrap());
    let worker = Worker::new(&context).unwrap();
    let heap = Heap::new(&context, 4 * MIB);
    heap.write(&pattern(MIB, 1));
    echo(&worker, receive(&mut channel));
    let spin = receive(&mut channel) == [1];
    send(&mut channel, worker.address());
    send(&mut channel, &heap.region.packed_key().unwrap());
    send(&mut channel, &heap.region.address().to_le_bytes());
    let _agent = Agent::start(&worker, spin);
    // Ends when it is killed, or its starter has ended.
    let _ = channel.read(&mut [0]);
    std::process::exit(0);
}

/// Counts the replies of a peer.
fn count_replies(near: &Arc<Worker>) -> Arc<AtomicUsize> {
    let replies = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&replies);
    near.on_message(2, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    replies
}

#[test]
fn two_processes_and_then_one() {
    let Some(ucx) = ucx("two_processes_and_then_one") else {
        return;
    };
    let context = context(ucx);
    let near = Worker::new(&context).unwrap();
    let replies = count_replies(&near);
    let mut peer = Peer::start(&near, false);
    let endpoint = connect(&near, &peer.address);
    let key = key(&endpoint, &peer.key);

    let mut bytes = vec![0; MIB];
    get(&key, &mut bytes, peer.heap).unwrap();
    assert!(bytes == pattern(MIB, 1));
    let bytes = pattern(2 * MIB, 2);
    put(&key, &bytes, peer.heap + MIB as u64).unwrap();
    let mut back = vec![0; 2 * MIB];
    get(&key, &mut back, peer.heap + MIB as u64).unwrap();
    assert!(back == bytes);
    for length in [0, 8, MIB] {
        let before = replies.load(Ordering::Relaxed);
        wait(
            &near,
            endpoint.send(1, b"echo", vec![1; length], Protocol::Eager),
        )
        .unwrap();
        progress_until(&near, || replies.load(Ordering::Relaxed) > before);
    }

    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    let mut errors = Vec::new();
    progress_until(&near, || {
        // A put may complete into a buffer of the kernel; its flush does not.
        errors.extend(put(&key, &bytes, peer.heap).err());
        !errors.is_empty()
    });
    // Told of by the endpoint too, and from then on at once.
    progress_until(&near, || endpoint.check().is_err());
    let status = endpoint.check().unwrap_err();
    assert_eq!(put(&key, &bytes, peer.heap), Err(status));
    assert_eq!(get(&key, &mut back, peer.heap), Err(status));
    assert_eq!(endpoint.flush().err(), Some(status));
    let refused = endpoint.send(1, b"", [], Protocol::Any);
    assert_eq!(refused.err(), Some(status));
    println!("a killed peer: first {:?}, then {status:?}", errors[0]);
}

#[test]
fn an_idle_wait_for_a_killed_peer_ends() {
    let Some(ucx) = ucx("an_idle_wait_for_a_killed_peer_ends") else {
        return;
    };
    let context = context(ucx);
    let near = Worker::new(&context).unwrap();
    let replies = count_replies(&near);
    let mut peer = Peer::start(&near, false);
    let endpoint = connect(&near, &peer.address);
    wait(&near, endpoint.send(1, b"", [1], Protocol::Eager)).unwrap();
    progress_until(&near, || replies.load(Ordering::Relaxed) == 1);
    peer.process.kill().unwrap();
    peer.process.wait().unwrap();
    // Nothing is sent; the closed connection is an event.
    let start = Instant::now();
    while endpoint.check().is_ok() {
        assert!(start.elapsed() < HANG, "hangs");
        if !near.progress() {
            near.sleep(NAP).unwrap();
        }
    }
}

/// The median of `rounds` times `what` takes, in microseconds.
fn median(rounds: usize, mut what: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            what();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[rounds / 2].as_secs_f64() * 1e6
}

/// What a blocking exchange of 8 bytes over TCP takes.
fn raw_round_trip() -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut far, _) = listener.accept().unwrap();
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 8];
        while far.read_exact(&mut bytes).is_ok() {
            far.write_all(&bytes).unwrap();
        }
    });
    let mut bytes = [1; 8];
    let figure = median(5000, || {
        near.write_all(&bytes).unwrap();
        near.read_exact(&mut bytes).unwrap();
    });
    drop(near);
    echo.join().unwrap();
    figure
}

/// Progresses until the request is complete, asleep while nothing happens.
fn wait_asleep(worker: &Worker, mut done: impl FnMut() -> bool) {
    while !done() {
        if !worker.progress() {
            worker.sleep(NAP).unwrap();
        }
    }
}

/// A put of one byte at the start of PE 0's heap, or a flush, as PE 1's message of this number.
fn message(kind: Kind, number: u64) -> Head {
    Head {
        from: 1,
        number,
        after: number - 1,
        token: u64::from(kind == Kind::Flush) * number,
        ..Head::new(kind)
    }
}

#[test]
fn an_agent_does_what_its_guests_say_once_and_nothing_else() {
    let Some(ucx) = ucx("an agent and its guests") else {
        return;
    };
    let context = context(ucx);
    let worker = Worker::new(&context).unwrap();
    let address = worker.address().to_vec();
    // PE 0 is on the agent's host, PE 1 on another.
    let (hosts, heap) = (Hosts::with(&[1, 1]), 1 << 16);
    let world = World::create(&hosts, 0, heap, None).unwrap();
    let world = Arc::new(world.map(&hosts, 0, heap).unwrap());
    let byte = || {
        let place = world.place(0, 0, 1).unwrap();
        // SAFETY: mapped; the agent writes it before it replies.
        unsafe { place.read_volatile() }
    };
    let agent = Doer::new(Arc::clone(&world), 0);
    let (at, mut door) = Server::on(worker).with(agent).unwrap();

    let near = Worker::new(&context).unwrap();
    let replies = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&replies);
    let reply = move |_: Message<'_>| {
        count.fetch_add(1, Ordering::Relaxed);
    };
    near.on_message(REPLY, reply).unwrap();
    let session = Key([1; BYTES]);
    let mut card = Introduction::of(&near);
    card.version.release += 1;
    let mut answers: Vec<Vec<u8>> = Vec::new();
    let mut introduce = |card: &Introduction| {
        door.hear((1, session), &card.bytes(), &mut |parts: &[&[u8]]| {
            answers.push(parts.concat());
        })
    };
    introduce(&card).unwrap();
    card.version.release -= 1;
    introduce(&card).unwrap();
    assert!(introduce(&card).is_err(), "twice");
    assert!(door.hear((1, session), b"?", &mut |_| {}).is_err());
    let told = answers
        .iter()
        .map(|answer| Introduction::parse(answer).unwrap().address);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [vec![], address.clone()],
        "to its own version"
    );

    std::thread::scope(|scope| {
        scope.spawn(|| at.serve().unwrap());
        let endpoint = connect(&near, &address);
        let sealed = |key: Key, head: &Head, length| seal(key, MESSAGE, &[head.bytes()], length);
        let send = |worker, endpoint: &Endpoint, header: &[u8], body: &[u8]| {
            wait(worker, endpoint.send(MESSAGE, header, body, Protocol::Any)).unwrap();
        };
        let flush = |number, done| {
            let header = sealed(session, &message(Kind::Flush, number), 0);
            send(&near, &endpoint, &header, &[]);
            progress_until(&near, || replies.load(Ordering::Relaxed) == done);
        };
        let first = sealed(session, &message(Kind::Put, 1), 1);
        send(&near, &endpoint, &first, &[7]);
        flush(2, 1);
        assert_eq!(byte(), 7);

        let far = Worker::new(&context).unwrap();
        let stranger = connect(&far, &address);
        let third = message(Kind::Put, 3);
        let of_none = Head { from: 0, ..third };
        for header in [
            first.clone(),
            sealed(Key([2; BYTES]), &third, 1),
            sealed(session, &third, 2),
            sealed(session, &of_none, 1),
            first[..BYTES].to_vec(),
            Vec::new(),
        ] {
            send(&far, &stranger, &header, &[8]);
        }
        // They have come when this has: one endpoint, one order.
        wait(&far, stranger.flush()).unwrap();
        flush(3, 2);
        assert_eq!(byte(), 7, "it has heard a stranger");
        let fourth = sealed(session, &message(Kind::Put, 4), 1);
        send(&near, &endpoint, &fourth, &[9]);
        flush(5, 3);
        assert_eq!(byte(), 9, "it does not hear its guest any more");
        at.stop();
    });
}

#[test]
#[ignore = "prints figures: what operations of 8 bytes, endpoints and an idle target take"]
fn figures() {
    let ucx = Ucx::get().unwrap();
    println!("UCX {} ({})", ucx.version(), ucx.path().display());
    println!(
        "raw blocking round trip over TCP: {:.1} us",
        raw_round_trip()
    );
    for spin in [false, true] {
        let context = context(ucx);
        let near = Worker::new(&context).unwrap();
        let replies = count_replies(&near);
        let peer = Peer::start(&near, spin);
        let (start, files_before) = (Instant::now(), files());
        let endpoint = connect(&near, &peer.address);
        let made = start.elapsed();
        wait(&near, endpoint.send(1, b"", [], Protocol::Eager)).unwrap();
        progress_until(&near, || replies.load(Ordering::Relaxed) == 1);
        let who = if spin { "spins" } else { "sleeps" };
        println!(
            "target {who}: endpoint {made:.1?}, first reply after {:.1?}, {} files here for both ways",
            start.elapsed(),
            files() - files_before,
        );
        let key = key(&endpoint, &peer.key);
        let word = [7; 8];
        let mut back = [0; 8];
        let figure = median(5000, || put(&key, &word, peer.heap).unwrap());
        println!("  put 8 B + flush, initiator spins: {figure:.1} us");
        let figure = median(5000, || {
            // SAFETY: waited for; in the region.
            let mut put = unsafe { key.put(word.as_ptr(), 8, peer.heap) }.unwrap();
            let mut flush = endpoint.flush().unwrap();
            wait_asleep(&near, || put.poll().unwrap() && flush.poll().unwrap());
        });
        println!("  put 8 B + flush, initiator sleeps: {figure:.1} us");
        let figure = median(5000, || get(&key, &mut back, peer.heap).unwrap());
        println!("  get 8 B, initiator spins: {figure:.1} us");
        let figure = median(5000, || {
            // SAFETY: waited for; in the region.
            let mut get = unsafe { key.get(back.as_mut_ptr(), 8, peer.heap) }.unwrap();
            wait_asleep(&near, || get.poll().unwrap());
        });
        println!("  get 8 B, initiator sleeps: {figure:.1} us");
        let figure = median(5000, || {
            let before = replies.load(Ordering::Relaxed);
            drop(endpoint.send(1, &word, [], Protocol::Eager).unwrap());
            progress_until(&near, || replies.load(Ordering::Relaxed) > before);
        });
        println!("  message there and back, initiator spins: {figure:.1} us");
        let figure = median(5000, || {
            let before = replies.load(Ordering::Relaxed);
            drop(endpoint.send(1, &word, [], Protocol::Eager).unwrap());
            wait_asleep(&near, || replies.load(Ordering::Relaxed) > before);
        });
        println!("  message there and back, initiator sleeps: {figure:.1} us");
        let figure = median(20, || {
            for _ in 0..1000 {
                // SAFETY: flushed below; in the region.
                drop(unsafe { key.put(word.as_ptr(), 8, peer.heap) }.unwrap());
            }
            wait(&near, endpoint.flush()).unwrap();
        });
        println!(
            "  put 8 B, one of 1000 before a flush: {:.2} us",
            figure / 1000.0
        );
        let large = vec![1; 4 * MIB];
        let figure = median(50, || put(&key, &large, peer.heap).unwrap());
        println!(
            "  put 4 MiB + flush: {:.2} GB/s",
            large.len() as f64 / figure / 1e3
        );
        let mut large = large;
        let figure = median(50, || get(&key, &mut large, peer.heap).unwrap());
        println!("  get 4 MiB: {:.2} GB/s", large.len() as f64 / figure / 1e3);
        if !spin {
            endpoints_cost(&near, &peer, &replies);
            idle_cost(&peer);
        }
    }
    idle_target(&context(ucx));
}

/// Open files of this process.
fn files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What further endpoints to one worker take.
fn endpoints_cost(near: &Arc<Worker>, peer: &Peer, replies: &AtomicUsize) {
    const MORE: usize = 64;
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = pages.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4
    };
    let (files_before, resident_before, start) = (files(), resident(), Instant::now());
    let more: Vec<_> = (0..MORE)
        .map(|_| {
            let endpoint = connect(near, &peer.address);
            let before = replies.load(Ordering::Relaxed);
            drop(endpoint.send(1, b"", [], Protocol::Eager).unwrap());
            progress_until(near, || replies.load(Ordering::Relaxed) > before);
            endpoint
        })
        .collect();
    println!(
        "  {MORE} more endpoints: {:.1?} each, {} files, {} KiB",
        start.elapsed() / MORE as u32,
        files() - files_before,
        resident() - resident_before,
    );
    drop(more);
}

/// What a peer that is asleep takes of a core.
fn idle_cost(peer: &Peer) {
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.process.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
        fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()
    };
    let before = ticks();
    std::thread::sleep(Duration::from_secs(5));
    println!("  asleep: {} ticks of 10 ms in 5 s", ticks() - before);
}

/// What becomes of operations whose target makes no progress.
fn idle_target(context: &Arc<Context>) {
    let (near, far) = (Worker::new(context).unwrap(), Worker::new(context).unwrap());
    let heap = Heap::new(context, 64);
    let endpoint = connect(&near, far.address());
    let key = key(&endpoint, &heap.region.packed_key().unwrap());
    let agent = Agent::start(&far, false);
    put(&key, &[1; 8], heap.region.address()).unwrap();
    drop(agent);
    let word = [2; 8];
    // SAFETY: flushed below; in the region.
    let mut put = unsafe { key.put(word.as_ptr(), 8, heap.region.address()) }.unwrap();
    let mut flush = endpoint.flush().unwrap();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        near.progress();
    }
    println!(
        "target without progress, after 500 ms: put complete: {:?}, flush complete: {:?}, first byte there: {}",
        put.poll(),
        flush.poll(),
        heap.read()[0],
    );
    let agent = Agent::start(&far, false);
    progress_until(&near, || flush.poll().unwrap());
    println!("  after progress: first byte there: {}", heap.read()[0]);
    drop(agent);
}
