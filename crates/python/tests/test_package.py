"""What holds for the package as a whole."""

import doctest
import inspect
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import crosswarp as cw
import numpy as np
import pytest
from crosswarp import _native


def documented():
    for name in cw.__all__:
        thing = getattr(cw, name)
        yield name, thing
        if inspect.isclass(thing):
            for inner, member in vars(thing).items():
                if not inner.startswith("_") and getattr(member, "__doc__", None):
                    yield f"{name}.{inner}", member


@pytest.mark.parametrize("name, thing", list(documented()), ids=[name for name, _ in documented()])
def test_docstrings_hold(name, thing):
    assert thing.__doc__, f"{name} says nothing"
    finder = doctest.DocTestParser().get_doctest(thing.__doc__, {"cw": cw, "np": np}, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(finder)
    assert runner.failures == 0


def test_functions_have_an_example():
    functions = [name for name in cw.__all__ if inspect.isfunction(getattr(cw, name))]
    assert [name for name in functions if ">>>" not in getattr(cw, name).__doc__] == []


def test_only_numpy_is_imported():
    program = "import sys, crosswarp; print(*{m.split('.')[0] for m in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not {"scipy", "matplotlib", "ml_dtypes", "torch", "pandas"} & set(loaded.stdout.split())


def test_other_threads_run_during_a_call():
    a = np.ones(1_000_000)
    start, seen = threading.Event(), []
    other = threading.Thread(target=lambda: (start.wait(), seen.append(True)))
    other.start()
    before = sys.getswitchinterval()
    # From here on a thread has the interpreter until it gives it away itself.
    sys.setswitchinterval(1e6)
    try:
        start.set()
        for _ in range(10_000):
            cw.sum(a, exact=True)
            if seen:
                break
    finally:
        sys.setswitchinterval(before)
    assert seen
    other.join()


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
import crosswarp as cw
{setup}
def press():
    time.sleep(0.3)
    global pressed
    pressed = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    while True:
        {call}
except KeyboardInterrupt:
    print("after", time.monotonic() - pressed)
assert cw.sum(np.ones(10)) == 10
"""


@pytest.mark.parametrize(
    "setup, call",
    [
        ("a = np.ones(20_000_000)", "cw.sum(a, exact=True)"),
        ("a = np.ones(100_000_000, np.float32)", "cw.sum(a)"),
        ("a = np.ones((10_000, 10_000), np.float32)", "cw.norm(a, axis=0)"),
    ],
)
def test_ctrl_c_ends_a_call(setup, call):
    program = INTERRUPTED.format(setup=setup, call=call)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("after")


# Each takes several threads.
WORK = {
    "sum": lambda a: cw.sum(a, threads=3),
    "max": lambda a: cw.max(a, threads=3),
    "exact sum": lambda a: cw.sum(a, exact=True, threads=3),
    "columns": lambda a: cw.sha256(cw.norm(a.reshape(2000, 2000), axis=0, threads=3)),
    "rows": lambda a: cw.sha256(cw.sum(a.reshape(2000, 2000), axis=1, threads=3)),
    "transpose": lambda a: cw.sha256(cw.transpose(a.reshape(2000, 2000), threads=3)),
    "histogram": lambda a: cw.sha256(cw.histogram(a, 100, threads=3)[0]),
    "bincount": lambda a: cw.sha256(cw.bincount(a.astype(np.int64) % 1000, threads=3)),
    "poisson": lambda a: cw.poisson(a[:10_000].reshape(100, 100), threads=3).sha256(),
}


def in_a_child(work):
    """Whether `work` is true there."""
    child = os.fork()
    if child == 0:
        answer = 1
        try:
            answer = 0 if work() else 1
        finally:
            os._exit(answer)
    return os.waitpid(child, 0)[1] == 0


def threads_of_ours():
    names = []
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                names.append(name.read().strip())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return names.count("crosswarp")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", WORK)
def test_after_a_fork_functions_work(name):
    """Before the fork, in the child, in the child's child, and in the parent afterwards."""
    work, a = WORK[name], np.arange(4_000_000.0)
    expected = work(a)
    assert in_a_child(lambda: work(a) == expected and in_a_child(lambda: work(a) == expected))
    # Python 3.12 and later warn of a fork beside other threads, so those of calls that have ended are ended before it.
    # (The system shows one a moment longer than it is waited for.)
    while threads_of_ours():
        time.sleep(0.001)
    assert work(a) == expected


def test_a_fork_beside_calls_of_other_threads():
    """What the pool of threads does meanwhile, or holds locked, is of no matter to the child."""
    a, ended = np.arange(4_000_000.0), threading.Event()
    expected = cw.sum(a)

    def often():
        while not ended.is_set():
            assert cw.sum(a, threads=3) == expected

    others = [threading.Thread(target=often) for _ in range(3)]
    for other in others:
        other.start()
    try:
        with warnings.catch_warnings():
            # There are other threads: the test's.
            warnings.simplefilter("ignore", DeprecationWarning)
            for _ in range(20):
                assert in_a_child(lambda: cw.sum(a, threads=3) == expected)
    finally:
        ended.set()
        for other in others:
            other.join()


AT_THE_END = """
import sys, threading
import numpy as np
import crosswarp as cw
a = np.ones(4_000_000)
assert cw.sum(a, threads=4) == 4_000_000
def forever():
    while True:
        cw.sum(a, threads=4)
if sys.argv[1] == "working":
    threading.Thread(target=forever, daemon=True).start()
print("done")
"""


@pytest.mark.parametrize("threads", ["waiting", "working"])
def test_the_interpreter_ends_beside_kept_threads(threads):
    for _ in range(5):
        command = [sys.executable, "-c", AT_THE_END, threads]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


def test_a_python_handler_of_a_signal_runs_during_a_call():
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(time.monotonic()))
    try:
        a = np.ones(60_000_000)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        while not handled:
            cw.sum(a, exact=True)
    finally:
        signal.signal(signal.SIGUSR1, before)


# The long one is counted on a thread of its own.
@pytest.mark.parametrize("samples", [10, 10_000_000])
def test_a_panic_is_an_error_of_ours(samples):
    # The package hands over an element a bin; with fewer the native part panics, and writes no further.
    edges, counts = np.array([0, 1, 2, 3]), np.zeros(2, np.int64)
    with pytest.raises(cw.InternalError, match="internal error: assertion failed"):
        _native.histogram(np.zeros(samples, np.uint8), edges, None, counts, 0)
    # What a program that catches errors sees: none of PyO3's, which is no Exception.
    assert issubclass(cw.InternalError, Exception)
    assert cw.sum(np.ones(10)) == 10


def test_no_hook_of_tests_is_in_the_package():
    assert "panic" not in dir(_native)


def sources():
    return sorted((pathlib.Path(__file__).resolve().parents[1] / "src").rglob("*.rs"))


@pytest.mark.parametrize("source", sources(), ids=lambda path: path.stem)
def test_every_entry_point_is_guarded(source):
    """What Python calls begins with `guarded`: a panic would become an exception that is no `Exception`."""
    lines, methods, asked = source.read_text().splitlines(), False, False
    for number, line in enumerate(lines):
        methods = line == "#[pymethods]" or methods and line != "}"
        asked = asked or line.strip() == "#[pyfunction]"
        starts = re.match(r"(    )?(pub(\(\w+\))? )?fn \w", line)
        if starts and (asked or methods and line.startswith("    fn")):
            asked = False
            body = next(k for k in range(number, len(lines)) if lines[k].endswith("{"))
            assert lines[body + 1].lstrip().startswith("guarded("), f"{source.name}:{number + 1}: {line.strip()}"


def pages():
    docs = pathlib.Path(__file__).resolve().parents[3] / "docs"
    return [docs / "python.md", *sorted((docs / "python").glob("*.md"))]


def test_the_pages_name_every_function_and_parameter():
    text = "".join(page.read_text("utf-8") for page in pages())
    for name in cw.__all__:
        thing = getattr(cw, name)
        if inspect.isfunction(thing) or thing in (cw.Hierarchy, cw.Kernel):
            parameters = inspect.signature(thing).parameters.values()
            for said in [name, *(given.name for given in parameters if given.kind != given.VAR_KEYWORD)]:
                assert re.search(rf"\b{said}\b", text), f"{name}: no page has {said}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_examples_of_the_pages_hold(page):
    # A fenced block ends an example, as an empty line does.
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.failed == 0


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_programs_of_the_pages_run(page):
    """What is no dialogue is a program; the dialogues above it make its names."""
    program, found = [], False
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        examples = doctest.DocTestParser().get_examples(block)
        program += [example.source for example in examples] or [block]
        found = found or not examples
    if not found:
        pytest.skip("dialogues only")
    if "tqdm" in "".join(program):
        pytest.importorskip("tqdm")
    subprocess.run([sys.executable, "-c", "".join(program)], check=True, timeout=300)
