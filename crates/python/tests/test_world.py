"""Worlds of threads and of processes."""

import gc
import ipaddress
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import crosswarp as cw
import numpy as np
import pytest


def every_verb(pe):
    me, n = pe.my_pe, pe.n_pes
    right, left = (me + 1) % n, (me - 1) % n
    a = pe.zeros((2, 5))
    assert a.shape == (2, 5) and not a.any()
    pe.barrier()
    pe.put(a[1], np.full(5, me + 0.5), right)
    pe.barrier()
    assert (a[1] == left + 0.5).all() and not a[0].any()
    assert (pe.get(a, right)[1] == me + 0.5).all()
    pe.barrier()
    pe.put(a[1, 2:4], 7, right)
    pe.barrier()
    assert a[1].tolist() == [left + 0.5, left + 0.5, 7, 7, left + 0.5]

    data, flag = pe.zeros(1000, np.float32), pe.zeros(2, np.uint64)
    pe.put_signal(data, np.arange(1000), flag[:1], 3, right)
    assert pe.wait_until(flag[:1], ">=", 3) == 3
    assert np.array_equal(data, np.arange(1000))
    pe.barrier()
    pe.put_signal(data[:1], [1], flag[1:], 2, right, op="add")
    assert pe.wait_until(flag[1:], "!=", 0) == 2 and pe.test(flag[1:], "<", 3)

    counter = pe.full(1, 100, np.int64)
    for other in range(n):
        pe.atomic_add(counter, -1, other)
    pe.barrier()
    assert pe.atomic_fetch(counter, right) == 100 - n
    pe.barrier()
    if me == 0:
        assert pe.atomic_compare_swap(counter, 100 - n, 5, n - 1) == 100 - n
        assert pe.atomic_swap(counter, 6, n - 1) == 5
        assert (pe.atomic_or(counter, 9, n - 1), pe.atomic_and(counter, 12, n - 1)) == (6, 15)
        assert pe.atomic_xor(counter, 1, n - 1) == 12
        pe.atomic_set(counter, 13, n - 1)
        assert pe.atomic_fetch(counter, n - 1) == 13
    pe.quiet()
    pe.fence()

    source, dest = pe.full(4, me, np.int32), pe.zeros(4, np.int32)
    for op, expected in [("sum", n * (n - 1) // 2), ("max", n - 1), ("min", 0), ("prod", 0)]:
        pe.reduce(dest, source, op)
        assert (dest == expected).all(), op
    pe.broadcast(dest, source, n - 1)
    assert (dest == n - 1).all()
    everyone = pe.zeros(4 * n, np.int32)
    pe.fcollect(everyone, source)
    assert everyone.tolist() == [k for k in range(n) for _ in range(4)]
    blocks, there = pe.zeros(2 * n, np.int16), pe.zeros(2 * n, np.int16)
    blocks[:] = me * 100 + np.arange(2 * n)
    pe.sync()
    pe.alltoall(there, blocks)
    assert there.tolist() == [100 * k + 2 * me + j for k in range(n) for j in (0, 1)]

    # The same PEs, the last first.
    team = pe.split_strided(n - 1, -1, n)
    assert (team.my_pe, team.n_pes, team.world_pe(0)) == (n - 1 - me, n, n - 1)
    team.broadcast(dest, source, 0)
    assert (dest == n - 1).all()
    team.reduce(dest, source)
    assert (dest == n * (n - 1) // 2).all()
    team.fcollect(everyone, source)
    assert everyone.tolist() == [k for k in reversed(range(n)) for _ in range(4)]
    team.sync()
    team.alltoall(there, blocks)
    assert there.tolist() == [100 * k + 2 * (n - 1 - me) + j for k in reversed(range(n)) for j in (0, 1)]
    for wrong in [lambda: team.broadcast(dest, source, n), lambda: team.world_pe(n)]:
        with pytest.raises(cw.InputError):
            wrong()
    # Pairs of neighbours, and of a pair the first.
    row, column = pe.split_2d(2)
    assert (row.my_pe, row.n_pes) == (me % 2, min(2, n - me // 2 * 2))
    row.reduce(dest, source, "max")
    assert (dest == me // 2 * 2 + row.n_pes - 1).all()
    assert column.world_pe(0) == me % 2 and column.my_pe == me // 2
    first = row.split_strided(0, 1, 1)
    assert (first is None) == (me % 2 == 1)
    team.destroy()
    with pytest.raises(cw.InputError, match="destroyed"):
        team.sync()
    pe.barrier()
    pe.free(there)
    return me, n


@pytest.mark.parametrize("n", [1, 2, 4])
def test_every_verb_between_threads(n):
    assert cw.spmd(n, every_verb, heap_bytes=1 << 20) == [(k, n) for k in range(n)]


@pytest.mark.parametrize("n", [1, 3])
def test_every_verb_between_processes(n, tmp_path):
    script = tmp_path / "script.py"
    program = "import sys; sys.path.insert(0, sys.argv[1])\nimport crosswarp as cw\nfrom test_world import every_verb\n"
    # One write a line, which other PEs' do not come between.
    script.write_text(program + "sys.stdout.write('%d %d\\n' % every_verb(cw.init()))\n")
    here = os.path.dirname(__file__)
    run = ["crosswarp", "run", "-n", str(n), "--", sys.executable, script, here]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert sorted(ended.stdout.splitlines()) == [f"{k} {n}" for k in range(n)]


def test_arrays_that_outlive_their_world():
    arrays = cw.spmd(2, lambda pe: pe.full(100_000, pe.my_pe + 1.5))
    gc.collect()
    assert [cw.sum(a) for a in arrays] == [150_000, 250_000]
    arrays[0][:] = 0
    kept = arrays[1][5:7]
    del arrays
    gc.collect()
    assert kept.tolist() == [2.5, 2.5]


def test_who_fails_ends_the_waits_of_the_others():
    class Mine(Exception):
        pass

    def f(pe):
        if pe.my_pe == 1:
            raise Mine("here")
        pe.barrier()

    with pytest.raises(Mine, match="here"):
        cw.spmd(3, f)


def test_collectives_that_do_not_match():
    def f(pe):
        a = pe.zeros(4)
        if pe.my_pe == 0:
            pe.barrier()
        else:
            pe.reduce(a, a)

    with pytest.raises(cw.WorldError, match="called"):
        cw.spmd(2, f)


def test_what_makes_no_sense_is_refused():
    def f(pe):
        a = pe.zeros((4, 4))
        word = pe.zeros(1, np.uint32)
        wrong = [
            (ValueError, lambda: pe.put(np.zeros(3), [1, 2, 3], 0)),
            (ValueError, lambda: pe.put(a[:, 1], [1, 2, 3, 4], 0)),
            (ValueError, lambda: pe.put(a, [1, 2, 3], 0)),
            (ValueError, lambda: pe.put(a[0], 1, 2)),
            (ValueError, lambda: pe.get(a, 99)),
            (ValueError, lambda: pe.wait_until(word, "=", 1)),
            (ValueError, lambda: pe.wait_until(word, "==", -1)),
            (ValueError, lambda: pe.atomic_add(word, 1 << 32, 0)),
            (ValueError, lambda: pe.reduce(a, a, "mean")),
            (TypeError, lambda: pe.wait_until(a[0, :1], "==", 1)),
            (TypeError, lambda: pe.put_signal(a, 1, word, 1, 0)),
            (TypeError, lambda: pe.reduce(a, a, "xor")),
            (TypeError, lambda: pe.zeros(3, object)),
            (MemoryError, lambda: pe.zeros(1 << 40)),
        ]
        for error, call in wrong:
            with pytest.raises(error) as raised:
                call()
            assert isinstance(raised.value, cw.Error)

    cw.spmd(1, f, heap_bytes=1 << 20)
    with pytest.raises(ValueError):
        cw.spmd(0, f)


def test_a_fork_of_a_pe_is_none():
    def f(pe):
        child = os.fork()
        if child == 0:
            try:
                pe.barrier()
            except cw.WorldError:
                os._exit(7)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert cw.spmd(1, f) == [7]


def run_and_interrupt(program):
    program = textwrap.dedent(program)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)


def test_ctrl_c_ends_a_world_of_threads():
    ended = run_and_interrupt("""
        import os, signal, threading
        import numpy as np
        import crosswarp as cw
        def f(pe):
            word = pe.zeros(1, np.int64)
            pe.barrier()
            if pe.my_pe == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            pe.wait_until(word, "==", 1)
        try:
            cw.spmd(2, f)
        except KeyboardInterrupt:
            print("interrupted")
        print(cw.spmd(2, lambda pe: pe.n_pes))
    """)
    assert ended.stdout.splitlines() == ["interrupted", "[2, 2]"], ended.stderr


def test_a_wait_times_out():
    program = """
        import numpy as np
        import crosswarp as cw
        pe = cw.init()
        try:
            pe.wait_until(pe.zeros(1, np.int64), "==", 1)
        except TimeoutError as error:
            print(isinstance(error, cw.Error))
    """
    environment = {**os.environ, "CROSSWARP_WAIT_TIMEOUT": "0.2"}
    run = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300, env=environment)
    assert ended.stdout.split() == ["True"], ended.stderr


def test_a_signal_ends_processes_that_wait(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, crosswarp as cw\npe = cw.init()\nword = pe.zeros(1, np.int64)\n"
        "pe.barrier()\nimport os\nos.write(1, b'waiting\\n')\npe.wait_until(word, '==', 1)\n"
    )
    run = ["crosswarp", "run", "-n", "2", "--", sys.executable, script]
    launcher = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert [launcher.stdout.readline() for _ in range(2)] == ["waiting\n"] * 2
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(timeout=300) != 0


def test_ctrl_c_ends_a_wait_and_nothing_else():
    ended = run_and_interrupt("""
        import os, signal, threading
        import numpy as np
        import crosswarp as cw
        pe = cw.init()
        word = pe.zeros(1, np.int64)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            pe.wait_until(word, "==", 1)
        except KeyboardInterrupt:
            print("interrupted")
        pe.barrier()
        pe.atomic_add(word, 1, 0)
        print(pe.wait_until(word, "==", 1))
    """)
    assert ended.stdout.splitlines() == ["interrupted", "1"], ended.stderr


def processes(tmp_path, n, program):
    """What `n` PEs that are processes print, in lines."""
    script = tmp_path / "script.py"
    script.write_text("import crosswarp as cw, numpy as np, os, sys\npe = cw.init()\n" + textwrap.dedent(program))
    run = ["crosswarp", "run", "-n", str(n), "--", sys.executable, script]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    return sorted(ended.stdout.splitlines()), ended.stderr


def test_who_is_interrupted_in_a_collective_leaves(tmp_path):
    said, errors = processes(tmp_path, 2, """
        import signal, threading
        word = pe.zeros(1, np.int64)
        if pe.my_pe == 0:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                pe.barrier()
            except KeyboardInterrupt:
                sys.stdout.write("interrupted\\n")
        else:
            try:
                pe.wait_until(word, "==", 1)
            except cw.WorldError as error:
                sys.stdout.write(f"{error}\\n")
    """)
    assert said[0].startswith("PE 0 has left the world") and said[1] == "interrupted", errors


def test_mpi_in_the_same_processes(tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    said, errors = processes(tmp_path, 2, """
        from mpi4py import MPI
        # Nobody has started these processes as MPI's: each is a world of its own there.
        total = MPI.COMM_WORLD.allreduce(pe.my_pe + 1)
        mine, sums = pe.full(1, total, np.int64), pe.zeros(1, np.int64)
        pe.reduce(sums, mine)
        MPI.COMM_WORLD.Barrier()
        pe.barrier()
        sys.stdout.write(f"{MPI.COMM_WORLD.Get_size()} {sums[0]}\\n")
    """)
    assert said == ["1 3", "1 3"], errors


def test_processes_that_mpiexec_has_started(tmp_path):
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")
    mpiexec = shutil.which("mpiexec", path=os.path.dirname(sys.executable)) or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("mpiexec is not installed")
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent("""
        import sys
        import numpy as np
        from mpi4py import MPI
        import crosswarp as cw
        comm = MPI.COMM_WORLD
        pe = cw.init(comm)
        assert (pe.my_pe, pe.n_pes) == (comm.rank, comm.size) == (comm.rank, 3)
        word, sums = pe.full(1, comm.allreduce(pe.my_pe + 1), np.int64), pe.zeros(1, np.int64)
        pe.reduce(sums, word)
        pe.put(word, pe.my_pe, (pe.my_pe + 1) % 3)
        comm.Barrier()
        pe.barrier()
        sys.stdout.write(f"{sums[0]} {word[0]}\\n")
    """))
    run = [mpiexec, "-n", "3", sys.executable, script]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert sorted(ended.stdout.split("\n")[:-1]) == ["18 0", "18 1", "18 2"], ended.stderr


@pytest.mark.parametrize("hosts", [["a", "a"], ["a", "b"]])
def test_where_ranks_of_several_hosts_meet(monkeypatch, hosts):
    from crosswarp import _world

    class Comm:
        def Get_rank(self):
            return 0

        def Get_size(self):
            return 2

        def allgather(self, mine):
            return hosts

        def bcast(self, said, root):
            return said

    # As Debian's /etc/hosts says.
    monkeypatch.setattr(_world.socket, "gethostbyname", lambda name: "127.0.1.1")
    monkeypatch.delenv("CROSSWARP_INTERFACE", raising=False)
    try:
        with _world._meeting(Comm()):
            address, _, port = os.environ["CROSSWARP_BOOTSTRAP"].rpartition(":")
    except cw.WorldError as error:
        # No interface but the loopback's is up.
        assert hosts == ["a", "b"] and "CROSSWARP_INTERFACE" in str(error)
        return
    assert ipaddress.ip_address(address.strip("[]")).is_loopback == (hosts == ["a", "a"])
    assert int(port) > 0


def test_torch_distributed_in_the_same_processes(tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    said, errors = processes(tmp_path, 2, f"""
        import torch
        import torch.distributed as dist
        place = "file://{tmp_path}/rendezvous"
        dist.init_process_group("gloo", init_method=place, rank=pe.my_pe, world_size=pe.n_pes)
        x = torch.full((4,), float(pe.my_pe + 1))
        dist.all_reduce(x)
        mine, sums = pe.full(1, int(x[0]), np.int64), pe.zeros(1, np.int64)
        pe.reduce(sums, mine)
        # Symmetric memory is torch's, too, without a copy.
        torch.from_numpy(mine).add_(1)
        dist.barrier()
        pe.barrier()
        sys.stdout.write(f"{{sums[0]}} {{mine[0]}} {{cw.sum(x)}}\\n")
        dist.destroy_process_group()
    """)
    assert said == ["6 4 12.0", "6 4 12.0"], errors


def test_an_interpreter_ends_while_a_world_of_threads_does():
    program = "import crosswarp as cw; pe = cw.init(); print(cw.spmd(3, lambda pe: pe.my_pe))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "[0, 1, 2]\n"), done.stderr
