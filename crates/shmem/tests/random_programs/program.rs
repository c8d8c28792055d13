//! Making a random program and running it on the world and on the model at once.

use crate::model::{Access, Memory, RMWS, Random, Rmw, apply};
use crosswarp_shmem::op::{And, Max, Min, Or, Prod, ReduceOp, Sum, Xor};
use crosswarp_shmem::{Cmp, ContextOptions, DeliveryError, Lock, Pe, SignalOp, Sym, SymRef, Team};

/// Words of each PE.
const WORDS: usize = 12_000;
/// Destinations of collectives are below, sources from here on.
const SOURCES: usize = 8000;
/// Most words all PEs of a collective bring together: more than a slot of the library for each of a few.
const ROOM: usize = 3600;

/// A team in the model and, where this PE is in it, in the world.
struct AnyTeam<'a> {
    members: Vec<usize>,
    team: Option<Team<'a>>,
}

struct Run<'a> {
    pe: &'a Pe,
    random: Random,
    model: Memory,
    signals: Vec<u64>,
    memory: Sym<u64>,
    signal: Sym<u64>,
    lock: Lock,
    locked: Sym<u64>,
    teams: Vec<AnyTeam<'a>>,
    /// Seed and step, for messages.
    place: (u64, usize),
}

/// Runs the program of `seed`.
pub fn run(pe: &Pe, seed: u64, steps: usize) {
    let n = pe.n_pes();
    let mut random = Random(seed);
    let model: Memory = (0..n)
        .map(|_| (0..WORDS).map(|_| random.next()).collect())
        .collect();
    let mut run = Run {
        pe,
        random,
        model,
        signals: vec![0; n],
        memory: pe.alloc(WORDS).unwrap(),
        signal: pe.alloc_zeroed(1).unwrap(),
        lock: pe.alloc_lock().unwrap(),
        locked: pe.alloc_zeroed(1).unwrap(),
        teams: vec![AnyTeam {
            members: (0..n).collect(),
            team: Some(pe.world()),
        }],
        place: (seed, 0),
    };
    pe.write(&run.memory, &run.model[pe.my_pe()]);
    pe.barrier().unwrap();
    for step in 0..steps {
        run.place.1 = step;
        match run.random.below(8) {
            0..=2 => run.accesses(),
            3..=5 => {
                // Several in a row, of different teams, without a rendezvous of all in between.
                for _ in 0..1 + run.random.below(4) {
                    run.collective();
                }
                run.meet_and_compare();
            }
            6 => run.teams_change(),
            _ => run.under_the_lock(),
        }
    }
    let Run {
        memory,
        signal,
        lock,
        locked,
        ..
    } = run;
    pe.free(locked).unwrap();
    pe.free_lock(lock).unwrap();
    pe.free(signal).unwrap();
    pe.free(memory).unwrap();
    for team in run.teams.drain(1..).filter_map(|any| any.team) {
        team.destroy().unwrap();
    }
}

impl Run<'_> {
    fn meet_and_compare(&self) {
        self.pe.barrier().unwrap();
        let mut seen = vec![0; WORDS];
        self.pe.read(&mut seen, &self.memory);
        let expected = &self.model[self.pe.my_pe()];
        let differs = (0..WORDS).find(|&i| seen[i] != expected[i]);
        if let Some(i) = differs {
            panic!(
                "{}: word {i} is {:#x}, not {:#x}",
                self.here(),
                seen[i],
                expected[i]
            );
        }
        // Nobody writes before everybody has looked.
        self.pe.sync().unwrap();
    }

    fn here(&self) -> String {
        let (seed, step) = self.place;
        format!(
            "PE {} of {}, seed {seed}, step {step}",
            self.pe.my_pe(),
            self.pe.n_pes()
        )
    }

    /// A phase of one-sided access. Each word of each PE is written by one PE only, or changed by all with
    /// one commutative operation, or not at all.
    fn accesses(&mut self) {
        let n = self.pe.n_pes();
        let salt = self.random.next();
        // Runs of 64 words have one owner; `n` stands for all, with one operation, `n + 1` for nobody.
        let owner = |pe: usize, word: usize| {
            let mut random = Random(salt ^ (pe * WORDS + word / 64) as u64);
            random.below(n + 2)
        };
        let shared_op = RMWS[self.random.below(5)];
        for me in 0..n {
            for _ in 0..self.random.below(30) {
                let to = self.random.below(n);
                let at = self.random.below(WORDS);
                let whose = owner(to, at);
                // To the end of the run at most.
                let room = (64 - at % 64).min(WORDS - at);
                let access = self.access(me, whose, at, room, shared_op);
                let Some(access) = access else { continue };
                let before = self.model[to][at];
                let expected = apply(&mut self.model[to], &mut self.signals[to], &access);
                // What several PEs change has any of several values while they do.
                let comparable = whose != n;
                let through = self.random.below(self.teams.len());
                if me == self.pe.my_pe() {
                    let got = self.issue(&access, to, before, through);
                    if comparable {
                        assert_eq!(got, expected, "{}: {access:?} on PE {to}", self.here());
                    }
                }
            }
        }
        let signal = self.signals[self.pe.my_pe()];
        let signalled = self.pe.signal_wait_until(&self.signal, Cmp::Eq, signal);
        assert_eq!(signalled, Ok(signal), "{}", self.here());
        self.meet_and_compare();
    }

    /// Something `me` may do to words from `at` on, which `whose` owns.
    fn access(
        &mut self,
        me: usize,
        whose: usize,
        at: usize,
        room: usize,
        shared_op: Rmw,
    ) -> Option<Access> {
        let n = self.pe.n_pes();
        let random = &mut self.random;
        let value = random.next();
        let values = |random: &mut Random, most: usize| -> Vec<u64> {
            let len = random.size(most);
            (0..len).map(|_| random.next()).collect()
        };
        let stride = 1 + random.below(3);
        let fetching = random.below(2) == 0;
        if whose == n {
            return Some(Access::Rmw {
                at,
                op: shared_op,
                value,
                fetching,
            });
        }
        let kind = random.below(10);
        let read_only = kind < 2;
        if whose != me && !(whose == n + 1 && read_only) {
            return None;
        }
        Some(match kind {
            0 => Access::Get {
                at,
                len: random.size(room),
            },
            1 => Access::Iget {
                at,
                stride,
                len: random.size(room / stride),
            },
            2 => Access::Put {
                at,
                values: values(random, room),
                nbi: fetching,
            },
            3 => Access::Iput {
                at,
                stride,
                values: values(random, room / stride),
            },
            4 => Access::P { at, value },
            5 => Access::Half {
                at,
                upper: fetching,
                value: value as u32,
            },
            6 => Access::Rmw {
                at,
                op: RMWS[random.below(5)],
                value,
                fetching,
            },
            7 => Access::Swap { at, value },
            8 => Access::CompareSwap {
                at,
                value,
                hit: fetching,
            },
            _ => Access::PutSignal {
                at,
                values: values(random, room),
                add: 1 + value % 9,
            },
        })
    }

    /// Does `access` in the world, through the context of a team if that has both PEs.
    fn issue(&self, access: &Access, to: usize, before: u64, through: usize) -> Vec<u64> {
        let pe = self.pe;
        let any = &self.teams[through];
        let inside = any.members.iter().position(|&member| member == to);
        let world = pe.world();
        let (team, to_in_team) = match (&any.team, inside) {
            (Some(team), Some(inside)) => (team, inside),
            _ => (&world, to),
        };
        let context = team.context(ContextOptions::default());
        let words = |at: usize, len: usize| self.memory.range(at..at + len);
        let to = to_in_team;
        match *access {
            Access::Put {
                at,
                ref values,
                nbi: false,
            } => {
                context.put(words(at, values.len()), values, to);
            }
            Access::Put {
                at,
                ref values,
                nbi: true,
            } => {
                let delivered = context.scope(|ops| {
                    ops.put(words(at, values.len()), values, to);
                    Ok::<_, DeliveryError>(())
                });
                delivered.unwrap();
            }
            Access::Iput {
                at,
                stride,
                ref values,
            } => {
                let dest = self.memory.range(at..);
                context.iput(dest, stride, values, 1, values.len(), to);
            }
            Access::P { at, value } => context.p(self.memory.at(at), value, to),
            Access::Half { at, upper, value } => self.half(at, upper, value, team.world_pe(to)),
            Access::Get { at, len } => {
                // What I put myself has to be there first.
                context.quiet().unwrap();
                let mut got = vec![0; len];
                context.get(&mut got, words(at, len), to);
                return got;
            }
            Access::Iget { at, stride, len } => {
                context.quiet().unwrap();
                let mut got = vec![0; len];
                context.iget(&mut got, 1, self.memory.range(at..), stride, len, to);
                return got;
            }
            Access::Rmw {
                at,
                op,
                value,
                fetching,
            } => {
                // Between a put and an atomic to the same PE.
                context.fence().unwrap();
                let at = self.memory.at(at);
                if !fetching {
                    match op {
                        Rmw::Add => context.atomic_add(at, value, to),
                        Rmw::And => context.atomic_and(at, value, to),
                        Rmw::Or => context.atomic_or(at, value, to),
                        Rmw::Xor => context.atomic_xor(at, value, to),
                        Rmw::Inc => context.atomic_inc(at, to),
                    }
                    return vec![before];
                }
                let mut old = 0;
                macro_rules! nbi {
                    ($name:ident) => {{
                        let delivered = context.scope(|ops| {
                            ops.$name(&mut old, at, value, to);
                            Ok::<_, DeliveryError>(())
                        });
                        delivered.unwrap();
                    }};
                }
                match op {
                    Rmw::Add => nbi!(atomic_fetch_add),
                    Rmw::And => old = context.atomic_fetch_and(at, value, to),
                    Rmw::Or => nbi!(atomic_fetch_or),
                    Rmw::Xor => old = context.atomic_fetch_xor(at, value, to),
                    Rmw::Inc => old = context.atomic_fetch_inc(at, to),
                }
                context.quiet().unwrap();
                return vec![old];
            }
            Access::Swap { at, value } => {
                context.fence().unwrap();
                return vec![context.atomic_swap(self.memory.at(at), value, to)];
            }
            Access::CompareSwap { at, value, hit } => {
                context.fence().unwrap();
                let expected = if hit { before } else { !before };
                return vec![context.atomic_compare_swap(self.memory.at(at), expected, value, to)];
            }
            Access::PutSignal {
                at,
                ref values,
                add,
            } => {
                let dest = words(at, values.len());
                context.put_signal(dest, values, &self.signal, add, SignalOp::Add, to);
            }
        }
        vec![]
    }

    /// Half a word, by address.
    #[allow(unsafe_code)]
    fn half(&self, at: usize, upper: bool, value: u32, to: usize) {
        let offset = self.memory.at(at).offset() + if upper { 4 } else { 0 };
        let half = self.pe.raw().heap().wrapping_add(offset).cast::<u32>();
        // SAFETY: four bytes of a live object.
        unsafe { self.pe.raw().p(half, value, to) };
    }

    /// A random collective of a random team. Only its members take part and only their memory changes.
    fn collective(&mut self) {
        let which = self.random.below(self.teams.len());
        let members = self.teams[which].members.clone();
        let size = members.len();
        let most = ROOM / size;
        let len = self.random.size(most);
        let dest = self.random.below(SOURCES - ROOM);
        let source = SOURCES + self.random.below(WORDS - SOURCES - ROOM + 1);
        let root = self.random.below(size);
        let kind = self.random.below(9);
        let lens: Vec<usize> = members.iter().map(|_| self.random.size(most)).collect();
        let in_place = self.random.below(4) == 0;
        let blocks = len / 2;
        // The model, from what all sources hold before.
        let old = self.model.clone();
        let values = |member: usize, len: usize| &old[member][source..source + len];
        let target = if in_place && matches!(kind, 0 | 5..=8) {
            source
        } else {
            dest
        };
        let op = self.random.below(7);
        for (i, &member) in members.iter().enumerate() {
            let result: Vec<u64> = match kind {
                0 => values(members[root], len).to_vec(),
                1 => members
                    .iter()
                    .flat_map(|&m| values(m, len))
                    .copied()
                    .collect(),
                2 => {
                    let parts = members.iter().zip(&lens);
                    parts
                        .flat_map(|(&m, &len)| values(m, len))
                        .copied()
                        .collect()
                }
                3 => {
                    let block = |&m: &usize| &values(m, size * len)[i * len..(i + 1) * len];
                    members.iter().flat_map(block).copied().collect()
                }
                4 => {
                    // Every other word on both sides; those between stay.
                    let mut result = old[member][dest..dest + 2 * size * blocks].to_vec();
                    for (from, &m) in members.iter().enumerate() {
                        for j in 0..blocks {
                            let source = values(m, 2 * size * blocks);
                            result[2 * (from * blocks + j)] = source[2 * (i * blocks + j)];
                        }
                    }
                    result
                }
                5 | 6 => fold(op, &old, &members, source, len),
                7 => fold(0, &old, &members[..=i], source, len),
                _ if i == 0 => old[member][target..target + len].to_vec(),
                _ => fold(0, &old, &members[..i], source, len),
            };
            self.model[member][target..target + result.len()].copy_from_slice(&result);
        }
        let Some(team) = &self.teams[which].team else {
            return;
        };
        let me = team.my_pe();
        let words = |at: usize, len: usize| self.memory.range(at..at + len);
        let (to, from) = (words(target, len), words(source, len));
        match kind {
            0 => team.broadcast(to, from, root).unwrap(),
            1 => team.fcollect(words(dest, size * len), from).unwrap(),
            2 => {
                let total = lens.iter().sum();
                let got = team
                    .collect(words(dest, ROOM), words(source, lens[me]))
                    .unwrap();
                assert_eq!(got, total, "{}", self.here());
            }
            3 => {
                let all = size * len;
                team.alltoall(words(dest, all), words(source, all)).unwrap();
            }
            4 => {
                let all = 2 * size * blocks;
                team.alltoalls(words(dest, all), 2, words(source, all), 2, blocks)
                    .unwrap();
            }
            5 | 6 => reduce(team, op, to, from),
            7 => team.inscan(to, from, Sum).unwrap(),
            _ => team.exscan(to, from, Sum).unwrap(),
        }
    }

    /// A new team of an old one, or the end of one.
    fn teams_change(&mut self) {
        if self.teams.len() > 6 {
            let gone = 1 + self.random.below(self.teams.len() - 1);
            if let Some(team) = self.teams.swap_remove(gone).team {
                team.destroy().unwrap();
            }
            return;
        }
        let parent = self.random.below(self.teams.len());
        let in_parent = self.teams[parent].members.clone();
        let m = in_parent.len();
        let start = self.random.below(m);
        let stride = self.random.below(5) as isize - 2;
        let most = (1..=m).take_while(|&size| {
            let last = start as isize + (size as isize - 1) * stride;
            size == 1 || (stride != 0 && (0..m as isize).contains(&last))
        });
        let size = 1 + self.random.below(most.count());
        let member = |i: usize| in_parent[(start as isize + i as isize * stride) as usize];
        let members: Vec<usize> = (0..size).map(member).collect();
        let made = self.teams[parent].team.as_ref();
        let made = made.and_then(|team| team.split_strided(start, stride, size).unwrap());
        let mine = members.iter().position(|&member| member == self.pe.my_pe());
        assert_eq!(made.as_ref().map(Team::my_pe), mine, "{}", self.here());
        self.teams.push(AnyTeam {
            members,
            team: made,
        });
    }

    /// A counter that plain gets and puts can only keep right under the lock.
    fn under_the_lock(&mut self) {
        let rounds = self.random.below(20);
        let home = self.random.below(self.pe.n_pes());
        self.pe.p(&self.locked, 0, self.pe.my_pe());
        self.pe.barrier().unwrap();
        for _ in 0..rounds {
            let _held = self.pe.lock(&self.lock).unwrap();
            let seen = self.pe.g(&self.locked, home);
            self.pe.p(&self.locked, seen + 1, home);
        }
        self.pe.barrier().unwrap();
        let all = (rounds * self.pe.n_pes()) as u64;
        assert_eq!(self.pe.g(&self.locked, home), all, "{}", self.here());
        self.pe.sync().unwrap();
    }
}

/// Operation number `op` over the sources of `members`, in their order.
fn fold(op: usize, memory: &Memory, members: &[usize], source: usize, len: usize) -> Vec<u64> {
    let apply: fn(u64, u64) -> u64 = [
        <Sum as ReduceOp<u64>>::apply,
        <Prod as ReduceOp<u64>>::apply,
        <Min as ReduceOp<u64>>::apply,
        <Max as ReduceOp<u64>>::apply,
        <And as ReduceOp<u64>>::apply,
        <Or as ReduceOp<u64>>::apply,
        <Xor as ReduceOp<u64>>::apply,
    ][op];
    let value = |i: usize| {
        let values = members.iter().map(|&member| memory[member][source + i]);
        values.reduce(apply).unwrap()
    };
    (0..len).map(value).collect()
}

fn reduce(team: &Team<'_>, op: usize, dest: SymRef<'_, u64>, source: SymRef<'_, u64>) {
    match op {
        0 => team.reduce(dest, source, Sum),
        1 => team.reduce(dest, source, Prod),
        2 => team.reduce(dest, source, Min),
        3 => team.reduce(dest, source, Max),
        4 => team.reduce(dest, source, And),
        5 => team.reduce(dest, source, Or),
        _ => team.reduce(dest, source, Xor),
    }
    .unwrap();
}
