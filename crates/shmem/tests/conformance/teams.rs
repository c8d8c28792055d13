//! Teams and their collectives (OpenSHMEM 1.5, sections 9.4 and 9.9), and active sets.
#![allow(unsafe_code)] // active sets belong to the raw layer; addresses are those of live objects

use crate::cases::Case;
use crosswarp_shmem::op::{Max, Sum};
use crosswarp_shmem::{CollectiveError, Pe, Team, TeamError};

pub const CASES: &[Case] = &[
    ("split strided", split_strided),
    ("split refused", split_refused),
    ("split in two dimensions", split_2d),
    ("teams of teams", teams_of_teams),
    ("teams come and go", teams_come_and_go),
    ("two teams by turns", two_teams_by_turns),
    (
        "threads in teams of their own",
        threads_in_teams_of_their_own,
    ),
    ("team mismatch", team_mismatch),
    ("collectives of teams", collectives_of_teams),
    ("collect of unequal sizes", collect_of_unequal_sizes),
    ("alltoalls", alltoalls),
    ("scans", scans),
    ("active sets", active_sets),
];

/// Every strided part of a world of `n`.
fn parts(n: usize) -> Vec<(usize, isize, usize)> {
    let mut parts = Vec::new();
    for start in 0..n {
        for stride in -3isize..=3 {
            for size in 1..=n {
                let last = start as isize + (size as isize - 1) * stride;
                let inside = (0..n as isize).contains(&last);
                if inside && (size == 1) == (stride == 0) {
                    parts.push((start, stride, size));
                }
            }
        }
    }
    parts
}

fn members((start, stride, size): (usize, isize, usize)) -> Vec<usize> {
    let pe = |i| (start as isize + i as isize * stride) as usize;
    (0..size).map(pe).collect()
}

fn split_strided(pe: &Pe) {
    let world = pe.world();
    assert_eq!((world.my_pe(), world.n_pes()), (pe.my_pe(), pe.n_pes()));
    let shared = pe.shared_team();
    // Those whose memory has an address here.
    let word = pe.alloc_zeroed::<u64>(1).unwrap();
    let mapped: Vec<_> = (0..pe.n_pes())
        .filter(|&other| !pe.ptr(&word, other).is_null())
        .collect();
    let members_of_shared: Vec<_> = (0..shared.n_pes()).map(|i| shared.world_pe(i)).collect();
    assert_eq!(members_of_shared, mapped);
    pe.free(word).unwrap();
    shared.sync().unwrap();
    for part in parts(pe.n_pes()) {
        let (start, stride, size) = part;
        let members = members(part);
        let mine = members.iter().position(|&member| member == pe.my_pe());
        let team = world.split_strided(start, stride, size).unwrap();
        assert_eq!(team.as_ref().map(Team::my_pe), mine);
        let Some(team) = team else { continue };
        assert_eq!(team.n_pes(), size);
        for (i, &member) in members.iter().enumerate() {
            assert_eq!(team.world_pe(i), member);
            assert_eq!(team.translate(i, &world), Some(member));
            assert_eq!(world.translate(member, &team), Some(i));
        }
        assert_eq!(team.translate(size, &world), None);
        for outside in (0..pe.n_pes()).filter(|pe| !members.contains(pe)) {
            assert_eq!(world.translate(outside, &team), None);
        }
        team.sync().unwrap();
        team.destroy().unwrap();
    }
}

fn split_refused(pe: &Pe) {
    let n = pe.n_pes();
    for (start, stride, size) in [(0, 1, 0), (n, 1, 1), (0, 1, n + 1), (0, -1, 2), (0, 0, 2)] {
        let refused = pe.world().split_strided(start, stride, size).unwrap_err();
        let shape = TeamError::Shape {
            start,
            stride,
            size,
            parent: n,
        };
        assert_eq!(refused, shape);
    }
    assert!(pe.world().split_2d(0).is_err());
    assert_eq!(pe.world().destroy(), Err(TeamError::Predefined));
    assert_eq!(pe.shared_team().destroy(), Err(TeamError::Predefined));
}

fn split_2d(pe: &Pe) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    for row in 1..=n + 2 {
        let (x, y) = pe.world().split_2d(row).unwrap();
        let row = row.min(n);
        let same_row: Vec<_> = (0..n).filter(|pe| pe / row == me / row).collect();
        let same_column: Vec<_> = (0..n).filter(|pe| pe % row == me % row).collect();
        for (team, pes) in [(&x, same_row), (&y, same_column)] {
            let members: Vec<_> = (0..team.n_pes()).map(|i| team.world_pe(i)).collect();
            assert_eq!(members, pes);
            assert_eq!(team.world_pe(team.my_pe()), me);
        }
        // Both are usable, in either order on different PEs of different rows.
        x.sync().unwrap();
        y.sync().unwrap();
        y.destroy().unwrap();
        x.destroy().unwrap();
    }
}

/// Strides are relative to the parent; a part of a part is where the parent's numbers say.
fn teams_of_teams(pe: &Pe) {
    let n = pe.n_pes();
    let Some(odd) = pe.world().split_strided(0, 2, n.div_ceil(2)).unwrap() else {
        return;
    };
    let m = odd.n_pes();
    let back = odd.split_strided(m - 1, -1, m).unwrap().unwrap();
    assert_eq!(back.my_pe(), m - 1 - odd.my_pe());
    assert_eq!(back.translate(0, &pe.world()), Some(2 * (m - 1)));
    let last = back.split_strided(0, 1, 1).unwrap();
    assert_eq!(last.is_some(), pe.my_pe() == 2 * (m - 1));
    if let Some(last) = last {
        last.barrier().unwrap();
        last.destroy().unwrap();
    }
    back.sync().unwrap();
    // A parent may go before its children.
    odd.destroy().unwrap();
    back.sync().unwrap();
    back.destroy().unwrap();
}

/// More teams, one after the other, than there can be at a time; epochs differ from PE to PE.
fn teams_come_and_go(pe: &Pe) {
    let n = pe.n_pes();
    let (value, sum) = (pe.alloc::<u64>(1).unwrap(), pe.alloc::<u64>(1).unwrap());
    pe.write(&value, &[1 << pe.my_pe()]);
    for round in 0..300 {
        let start = round % n;
        let size = 1 + round % (n - start);
        let Some(team) = pe.world().split_strided(start, 1, size).unwrap() else {
            continue;
        };
        for _ in 0..round % 3 {
            team.sync().unwrap();
        }
        team.reduce(&sum, &value, Sum).unwrap();
        assert_eq!(pe.g(&sum, pe.my_pe()), (1 << (start + size)) - (1 << start));
        team.destroy().unwrap();
    }
    // And many at a time: all get theirs until there are no more.
    let mut teams = Vec::new();
    let error = loop {
        match pe.world().split_strided(0, 1, n) {
            Ok(team) => teams.extend(team),
            Err(error) => break error,
        }
    };
    assert_eq!(error, TeamError::TooMany { most: 1024 });
    assert!(teams.len() > 500);
    for team in teams {
        team.sync().unwrap();
        team.destroy().unwrap();
    }
    pe.free(sum).unwrap();
    pe.free(value).unwrap();
}

/// Rendezvous of different teams do not disturb each other, however they interleave.
fn two_teams_by_turns(pe: &Pe) {
    let n = pe.n_pes();
    let front = pe.world().split_strided(0, 1, n.div_ceil(2)).unwrap();
    let last = pe.world().split_strided(n - 1, -1, n / 2 + 1).unwrap();
    let (value, max) = (pe.alloc::<i32>(9).unwrap(), pe.alloc::<i32>(9).unwrap());
    for round in 0..100 {
        pe.write(&value, &[round * 10 + pe.my_pe() as i32; 9]);
        for (team, top) in [(&front, n.div_ceil(2) - 1), (&last, n - 1)] {
            let Some(team) = team else { continue };
            team.reduce(&max, &value, Max).unwrap();
            assert_eq!(pe.g(max.at(8), pe.my_pe()), round * 10 + top as i32);
        }
    }
    for team in [front, last].into_iter().flatten() {
        team.destroy().unwrap();
    }
    pe.free(max).unwrap();
    pe.free(value).unwrap();
}

/// Two threads of each PE in collectives of different teams at the same time, splits included: those have to
/// agree on indices that the other thread may take meanwhile.
fn threads_in_teams_of_their_own(pe: &Pe) {
    let n = pe.n_pes();
    let values = pe.alloc::<u64>(2 * 2).unwrap();
    let teams = [1, -1].map(|stride| {
        let start = if stride > 0 { 0 } else { n - 1 };
        let team = pe.world().split_strided(start, stride, n).unwrap();
        team.unwrap()
    });
    std::thread::scope(|scope| {
        for (thread, team) in teams.iter().enumerate() {
            let (value, sum) = (values.at(2 * thread), values.at(2 * thread + 1));
            scope.spawn(move || {
                for round in 0..60u64 {
                    pe.p(value, round + team.my_pe() as u64, pe.my_pe());
                    team.reduce(sum, value, Sum).unwrap();
                    let all = n as u64 * round + (0..n as u64).sum::<u64>();
                    assert_eq!(pe.g(sum, pe.my_pe()), all);
                    let part = team.split_strided(0, 1, n.div_ceil(2)).unwrap();
                    if let Some(part) = part {
                        part.reduce(sum, value, Max).unwrap();
                        let last = part.n_pes() as u64 - 1;
                        assert_eq!(pe.g(sum, pe.my_pe()), round + last);
                        part.destroy().unwrap();
                    }
                }
            });
        }
    });
    for team in teams {
        team.destroy().unwrap();
    }
    pe.free(values).unwrap();
}

fn team_mismatch(pe: &Pe) {
    if pe.n_pes() < 3 {
        return;
    }
    // Two of three; the third has no part in their quarrel.
    if let Some(team) = pe.world().split_strided(2, -1, 2).unwrap() {
        let met = if team.my_pe() == 0 {
            team.sync()
        } else {
            team.barrier()
        };
        let CollectiveError::Mismatch { me, pe: other, .. } = met.unwrap_err() else {
            panic!("not a mismatch");
        };
        assert_eq!((me, other), (pe.my_pe(), 3 - pe.my_pe()));
        team.sync().unwrap();
        team.destroy().unwrap();
    }
    // Splits that differ.
    let size = if pe.my_pe() == 0 { 1 } else { 2 };
    let error = pe.world().split_strided(0, 1, size).unwrap_err();
    assert!(
        matches!(
            error,
            TeamError::Collective(CollectiveError::Mismatch { .. })
        ),
        "{error}"
    );
}

/// Every collective on a team of every other PE, last first, at sizes for each way data can go.
fn collectives_of_teams(pe: &Pe) {
    let n = pe.n_pes();
    let size = n.div_ceil(2);
    let Some(team) = pe.world().split_strided(2 * (size - 1), -2, size).unwrap() else {
        // The others have to come to the allocations.
        for _ in 0..2 * 4 {
            let object = pe.alloc::<u32>(0).unwrap();
            pe.free(object).unwrap();
        }
        return;
    };
    let value = |i: usize, from: usize, to: usize| (i + 10_000 * from + 1_000_000 * to) as u32;
    let run = |len: usize| {
        // Symmetric memory for more than the team would need a rendezvous of the world.
        let object = pe.alloc::<u32>(0).unwrap();
        pe.free(object).unwrap();
        let object = pe.alloc::<u32>(0).unwrap();
        pe.free(object).unwrap();
        let (all, me) = (team.n_pes(), team.my_pe());
        let heap = |offset: usize| pe.raw().heap().wrapping_add(offset).cast::<u32>();
        let (dest, source) = (heap(1 << 20), heap(3 << 20));
        let bytes = 4 * len;
        let mine = |i: usize| value(i % len.max(1), me, i / len.max(1));
        // SAFETY: the upper parts of the heap, in which nothing is allocated while this runs.
        unsafe {
            let fill = || (0..len * all).for_each(|i| source.add(i).write(mine(i)));
            let seen = |i: usize| dest.add(i).read();
            fill();
            team.alltoall_raw(dest.cast(), source.cast(), bytes)
                .unwrap();
            for i in 0..len * all {
                assert_eq!(seen(i), value(i % len, i / len, me));
            }
            team.fcollect_raw(dest.cast(), source.cast(), bytes)
                .unwrap();
            for i in 0..len * all {
                assert_eq!(seen(i), value(i % len, i / len, 0));
            }
            for root in 0..all {
                for at_root in [false, true] {
                    (0..len).for_each(|i| dest.add(i).write(7));
                    team.broadcast_raw(dest.cast(), source.cast(), bytes, root, at_root)
                        .unwrap();
                    let untouched = root == me && !at_root;
                    for i in 0..len {
                        let expected = if untouched { 7 } else { value(i, root, 0) };
                        assert_eq!(seen(i), expected);
                    }
                    team.sync().unwrap();
                }
            }
            let sum = |i: usize| (0..all).map(|from| value(i, from, 0)).sum::<u32>();
            team.reduce_op_raw(dest, source, len, Sum).unwrap();
            assert!((0..len).all(|i| seen(i) == sum(i)));
            team.reduce_op_raw(source, source, len, Sum).unwrap();
            assert!((0..len).all(|i| source.add(i).read() == sum(i)));
            team.sync().unwrap();
        }
    };
    [0, 1, 700, 30_000].into_iter().for_each(run);
    team.destroy().unwrap();
}

fn collect_of_unequal_sizes(pe: &Pe) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let source = pe.alloc::<u16>(9000).unwrap();
    let dest = pe.alloc::<u16>(9000 * n).unwrap();
    // None at all, some without, beyond the slots on some PEs only.
    let lens: [fn(usize) -> usize; 6] = [
        |_| 0,
        |pe| pe % 2,
        |pe| 3 * pe + 1,
        |pe| if pe == 0 { 0 } else { 100 * pe },
        |pe| if pe % 2 == 0 { 9000 } else { 5 },
        |_| 9000,
    ];
    for len in lens {
        let value = |i: usize, pe: usize| (i + 11 * pe) as u16;
        let mine: Vec<_> = (0..len(me)).map(|i| value(i, me)).collect();
        pe.write(source.range(..len(me)), &mine);
        let expected: Vec<_> = (0..n)
            .flat_map(|pe| (0..len(pe)).map(move |i| value(i, pe)))
            .collect();
        let total = pe.world().collect(&dest, source.range(..len(me))).unwrap();
        assert_eq!(total, expected.len());
        let mut seen = vec![0; total];
        pe.read(&mut seen, dest.range(..total));
        assert_eq!(seen, expected);
        if total > 0 {
            // Too little room on this PE alone.
            let room = total - usize::from(me == 0);
            let got = pe
                .world()
                .collect(dest.range(..room), source.range(..len(me)));
            assert_eq!(got.is_err(), me == 0);
        }
    }
    // Sources at different places of the heap.
    let at = 100 * me;
    pe.write(source.range(at..at + 2), &[me as u16, 77]);
    pe.world().collect(&dest, source.range(at..at + 2)).unwrap();
    let mut seen = vec![0; 2 * n];
    pe.read(&mut seen, dest.range(..2 * n));
    assert!(
        seen.chunks(2)
            .enumerate()
            .all(|(pe, seen)| seen == [pe as u16, 77])
    );
    pe.free(dest).unwrap();
    pe.free(source).unwrap();
}

fn alltoalls(pe: &Pe) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (dest, source) = (
        pe.alloc::<i64>(4000).unwrap(),
        pe.alloc::<i64>(4000).unwrap(),
    );
    for (dst, sst, len) in [(1, 1, 3), (2, 3, 5), (3, 1, 1), (1, 2, 100), (2, 2, 0)] {
        let value = |i: usize, from: usize, to: usize| (i + 1000 * from + 100_000 * to) as i64;
        pe.write(&source, &vec![-1; 4000]);
        pe.write(&dest, &vec![-2; 4000]);
        for to in 0..n {
            for i in 0..len {
                let at = (to * len + i) * sst;
                pe.p(source.at(at), value(i, me, to), me);
            }
        }
        pe.world().alltoalls(&dest, dst, &source, sst, len).unwrap();
        let mut seen = vec![0; 4000];
        pe.read(&mut seen, &dest);
        for (at, &seen) in seen.iter().enumerate() {
            let (element, between) = (at / dst, at % dst != 0);
            let expected = if between || element >= n * len {
                -2
            } else {
                value(element % len, element / len, me)
            };
            assert_eq!(seen, expected, "element {at}, strides {dst} and {sst}");
        }
        pe.sync().unwrap();
    }
    let short = pe.world().alltoalls(dest.range(..n), 2, &source, 1, 1);
    let needed = 2 * (n - 1) + 1;
    assert_eq!(short.is_err(), n < needed);
    pe.free(source).unwrap();
    pe.free(dest).unwrap();
}

/// Inclusive and exclusive, in place and not, within a slot and beyond.
fn scans(pe: &Pe) {
    let me = pe.my_pe();
    for len in [0, 1, 3000] {
        let (dest, source) = (pe.alloc::<i64>(len).unwrap(), pe.alloc::<i64>(len).unwrap());
        let value = |i: usize, pe: usize| (i * 7 + pe * pe) as i64;
        let sum = |i: usize, pes: usize| (0..pes).map(|pe| value(i, pe)).sum::<i64>();
        let mine: Vec<_> = (0..len).map(|i| value(i, me)).collect();
        let check = |object: &crosswarp_shmem::Sym<i64>, expected: &dyn Fn(usize) -> i64| {
            let mut seen = vec![0; len];
            pe.read(&mut seen, object);
            assert!(
                seen.iter()
                    .enumerate()
                    .all(|(i, &seen)| seen == expected(i))
            );
        };
        pe.write(&source, &mine);
        pe.write(&dest, &vec![-1; len]);
        pe.world().inscan(&dest, &source, Sum).unwrap();
        check(&dest, &|i| sum(i, me + 1));
        pe.write(&dest, &vec![-1; len]);
        pe.world().exscan(&dest, &source, Sum).unwrap();
        check(&dest, &|i| if me == 0 { -1 } else { sum(i, me) });
        pe.world().inscan(&source, &source, Sum).unwrap();
        check(&source, &|i| sum(i, me + 1));
        pe.free(source).unwrap();
        pe.free(dest).unwrap();
    }
}

/// Overlapping active sets, in the order every PE meets them, again and again.
fn active_sets(pe: &Pe) {
    let (raw, n) = (pe.raw(), pe.n_pes());
    let word = raw.calloc(2, 8).unwrap().cast::<i64>();
    let sum = word.wrapping_add(1);
    for round in 0..3 {
        for part in parts(n).into_iter().filter(|part| part.1 > 0) {
            let members = members(part);
            if !members.contains(&pe.my_pe()) {
                continue;
            }
            let set = raw.active_set(part.0, part.1, part.2).unwrap();
            let value = |pe: usize| (pe * pe + round) as i64;
            // SAFETY: two words on every PE.
            unsafe {
                word.write(value(pe.my_pe()));
                set.reduce_op_raw(sum, word, 1, Sum).unwrap();
                assert_eq!(sum.read(), members.iter().map(|&pe| value(pe)).sum());
            }
            set.barrier().unwrap();
        }
        pe.barrier().unwrap();
    }
    assert!(raw.active_set(0, 1, n + 1).is_err());
    if n > 1 {
        // Not one of the set.
        let other = (pe.my_pe() + 1) % n;
        assert!(raw.active_set(other, 1, 1).is_err());
    }
    pe.barrier().unwrap();
    raw.free(word.cast()).unwrap();
}
