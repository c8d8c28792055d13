"""Builds the wheel: maturin's backend, which is given the command `crosswarp` to put among the wheel's scripts.

The native module and the command are one crate each, and maturin builds one crate. So the command is built first, for
the same target, and lies where maturin takes additional files from (`data` in pyproject.toml), with the C library that
`crosswarp install` installs, and that for programs written for NVSHMEM, which `crosswarp install --nvshmem` does.

Set CROSSWARP_GLIBC, to 2.28 for example, to build for systems from that version of the C library on: with zig's
linker, from the packages `ziglang` and `cargo-zigbuild`. Otherwise the wheel is for systems like this one.

Set CROSSWARP_KERNELS to a file that `crosswarp kernels --embed` made of the same sources, for a wheel whose command needs
no NVRTC.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (pip asks for these by name)
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
)

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SCRIPTS = DATA / "scripts"
# What lies below the prefix of an environment, beside its `bin`.
PREFIX = DATA / "data"
GLIBC = os.environ.get("CROSSWARP_GLIBC")


def get_requires_for_build_wheel(config_settings=None):
    needed = maturin.get_requires_for_build_wheel(config_settings)
    return [*needed, "ziglang", "cargo-zigbuild"] if GLIBC else needed


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # The metadata need no command, but its folder has to be there.
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    put_command()
    # The default is for speed: 2 % more.
    arguments = ["--compression-level", "9"]
    if GLIBC:
        arguments += ["--zig", "--compatibility", f"manylinux_{GLIBC.replace('.', '_')}"]
        arguments += ["--", "-C", shlex.quote(f"link-arg={unwinder()}")]
    settings = {**(config_settings or {}), "build-args": " ".join(arguments)}
    return maturin.build_wheel(wheel_directory, settings, metadata_directory)


def unwinder():
    """The system's library that unwinds stacks, for the module to use. Zig's linker would put one of its own into the module,
    and Python before 3.14 ends threads by unwinding them with the system's, which crashes in code that has another."""
    asked = subprocess.run(["cc", "-print-file-name=libgcc_s.so.1"], check=True, stdout=subprocess.PIPE, text=True)
    found = Path(asked.stdout.strip())
    if not found.is_absolute():
        raise RuntimeError("cc has no libgcc_s.so.1: install the runtime library of GCC")
    return found.resolve()


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    put_command()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def put_command():
    build = ["cargo", "build"]
    if GLIBC:
        machine = os.uname().machine
        build = ["cargo-zigbuild", "zigbuild", "--target", f"{machine}-unknown-linux-gnu.{GLIBC}"]
    build += ["--locked", "--release", "--package", "crosswarp-cli", "--message-format=json"]
    # No lines in backtraces: two thirds of the file.
    environment = {**os.environ, "CARGO_PROFILE_RELEASE_STRIP": "symbols"}
    messages = subprocess.run(build, cwd=HERE, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found = [line for line in messages.stdout.splitlines() if '"executable":"' in line]
    executable = found[-1].split('"executable":"')[1].split('"')[0]
    executable = Path(executable)
    shutil.rmtree(DATA, ignore_errors=True)
    put(executable, SCRIPTS / "crosswarp")
    put(executable.parent / "deps" / "libcrosswarp_shmem_c.so", PREFIX / "lib" / "libcrosswarp_shmem.so")
    nvshmem = PREFIX / "lib" / "crosswarp-nvshmem" / "lib" / "libnvshmem_host.so.3"
    put(executable.parent / "deps" / "libcrosswarp_nvshmem.so", nvshmem)
    if kernels := os.environ.get("CROSSWARP_KERNELS"):
        put(kernels, PREFIX / "share" / "crosswarp" / "kernels.bundle")


def put(source, place):
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, place)
