"""Build the compiled core with sanitizers, and run the tests that call it.

    make sanitize                               # address and undefined behaviour, then threads
    python tools/sanitize.py address --short    # one of them, with few tests: `.ci/run` runs both

"address" finds accesses outside of arrays, use after free and undefined behaviour (ASan, UBSan);
"thread" finds data races (TSan). The core is built by pip from this source tree into a folder of
its own, `build/sanitize`; the installed one stays as it is. It needs GCC or Clang with the run-time
libraries of the sanitizers; where they are absent, the command says so and ends with code 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "sanitize"
ENGINES = ["tests/unit/test_engines_agree.py", "tests/unit/test_grid_engines_agree.py"]
NUMERICS = ["tests/unit/inner", "tests/unit/meta", "tests/theory/test_online_inner.py"]
NUMERICS += ["tests/theory/test_batch_inner.py", "tests/unit/test_kernels.py"]
LEARNERS = ["tests/contracts/test_sklearn.py", "tests/properties/test_limits.py"]
ENDURANCE = "tests/unit/learners/test_endurance.py::test_"
THREADS = ["tests/unit/learners/test_threads.py", "tests/unit/test_blas_threads.py"]
THREADS += [f"{ENDURANCE}sixteen_threads_answer_as_one"]
THREADS += [f"{ENDURANCE}fits_in_threads_have_the_same_bits"]
THREADS += [f"{ENDURANCE}the_number_of_threads_does_not_change_a_bit"]
FUZZ_SECONDS = {"short": "20", "long": "120"}


class Sanitizer(NamedTuple):
    """Flags of the compiler, the run-time library, options of the run, few tests and the others."""

    flags: str
    library: str
    options: dict[str, str]
    short: list[str]
    others: list[str]


SANITIZERS = {
    "address": Sanitizer(
        "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1",
        "libasan.so",
        # The interpreter itself never frees everything: leaks are measured elsewhere.
        {"ASAN_OPTIONS": "detect_leaks=0:halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
        ENGINES,
        NUMERICS + LEARNERS + THREADS,
    ),
    "thread": Sanitizer(
        "-fsanitize=thread -fno-omit-frame-pointer -g1",
        "libtsan.so",
        {"TSAN_OPTIONS": "halt_on_error=1:exitcode=66"},
        THREADS,
        ENGINES,
    ),
}


def library_path(name: str) -> str | None:
    """Return the path of a library of the compiler, or None if it is not installed."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return None
    command = [compiler, f"-print-file-name={name}"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return found if os.path.isabs(found) else None


def build(name: str, flags: str) -> Path:
    """Build a wheel with these flags; return the path of its compiled core."""
    folder = BUILD / name
    shutil.rmtree(folder / "wheel", ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", str(ROOT)]
    command += ["--wheel-dir", str(folder / "wheel"), f"-Cbuild-dir={folder / 'objects'}"]
    command += [f"-Ccmake.define.CMAKE_CXX_FLAGS={flags}", "-Cinstall.strip=false"]
    command += ["-Ccmake.define.CONDMETA_OPTIMIZE=-O1", "-Ccmake.define.CONDMETA_LEVELS=v3"]
    if all(map(importlib.util.find_spec, ("scikit_build_core", "nanobind"))):
        command.append("--no-build-isolation")
    subprocess.run(command, check=True, cwd=ROOT)
    (wheel,) = (folder / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        members = [member for member in archive.namelist() if "native/_core" in member]
        if len(members) != 1:
            sys.exit("The wheel has no compiled core: the compiler failed with these flags.")
        return Path(archive.extract(members[0], folder))


def run(name: str, short: bool) -> bool:
    """Build with one sanitizer and run the tests; return whether it found nothing."""
    flags, library, options, tests, others = SANITIZERS[name]
    path = library_path(library)
    if path is None:
        print(f"{name}: skipped, as {library} of the compiler is not installed.")
        return True
    # Exceptions cross the border of the library: the C++ library must be loaded before it.
    preload = " ".join(filter(None, (path, library_path("libstdc++.so"))))
    env = os.environ | options | {
        "LD_PRELOAD": preload, "CONDMETA_CORE": str(build(name, flags)), "PYTHONMALLOC": "malloc",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "tools"),
        "FUZZ_SECONDS": FUZZ_SECONDS["short" if short else "long"],
    }  # fmt: skip
    python = [sys.executable]
    if name == "thread" and shutil.which("setarch"):
        python = ["setarch", "-R", sys.executable]  # TSan needs memory at fixed addresses
    checks = [[*python, "-m", "tools.fuzz", "native"]]
    checks += [[*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "sanitized_core",
                *tests, *([] if short else others)]]  # fmt: skip
    codes = [subprocess.run(check, env=env, cwd=ROOT).returncode for check in checks]
    return not any(codes)


def main() -> int:
    """Run the sanitizers that are asked for; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=list(SANITIZERS), metavar="address|thread")
    parser.add_argument("--short", action="store_true", help="few tests")
    asked = parser.parse_args()
    found = {name: run(name, asked.short) for name in asked.names}
    for name, clean in found.items():
        print(f"{name}: {'nothing found' if clean else 'FAILED, see above'}")
    return int(not all(found.values()))


if __name__ == "__main__":
    sys.exit(main())
