"""Run functions on the workers of a Dask cluster.

Only paths and small values travel: rows and statistics stay in files of a folder that the client
and all workers reach. A job that is run again, because its worker died, writes the same files.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from condmeta import __version__
from condmeta.blas_threads import limit_threads
from condmeta.engine import active_engine
from condmeta.errors import DataError
from condmeta.meta.task_files import write
from condmeta.text import pluralize

LEAVES_A_JOB = 32  # 50 ms: to hand over a job takes 10 to 20
JOBS_A_THREAD = 2  # so that a thread that is done can help another one
ENVIRON = {
    # Dask makes workers return freed memory at once, and ask for it anew: we keep up to 256 MB of
    # it, and arrays of up to 32 MB, the most that glibc takes, are made of it.
    "MALLOC_TRIM_THRESHOLD_": 1 << 28, "MALLOC_MMAP_THRESHOLD_": 1 << 25,
    "OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1,
}  # fmt: skip
CONFIG = {
    "distributed.nanny.pre-spawn-environ": ENVIRON, "distributed.worker.profile.enabled": False,
}  # fmt: skip


class OnWorkers:
    """A runner (see `condmeta.meta.stored_tasks`) on the workers of a client."""

    def __init__(self, client: Any, folder: Path):
        self.client, self.folder = client, folder
        self.n_threads, self.least = check_workers(client, folder), LEAVES_A_JOB
        self.bits = (JOBS_A_THREAD * self.n_threads - 1).bit_length()

    def map(self, function: Callable[..., Any], jobs: Iterable[tuple]) -> list[Any]:
        """Return function(*job) of each job, in their order."""
        with naming_lost_workers():
            return self.client.gather(self._submit(function, jobs))

    def arrays(self, function: Callable[..., tuple], jobs: Iterable[tuple]) -> Iterator[tuple]:
        """Yield function(*job) of each job: workers write the arrays to files."""
        jobs = list(jobs)
        paths = [str(self.folder / f"arrays-{number:06d}") for number in range(len(jobs))]
        saved = [(path, function, job) for path, job in zip(paths, jobs, strict=True)]
        for path, future in zip(paths, self._submit(save_arrays, saved), strict=True):
            with naming_lost_workers():
                layout = future.result()
            yield tuple(_load(path, layout))
            os.unlink(path)

    def chain(self, function: Callable[..., Any], jobs: Iterable[tuple]) -> Any:
        """Return the last of function(result before or None, *job), one job after the other."""
        last = None
        for job in jobs:
            last = self.client.submit(function, last, *job, pure=False)
        with naming_lost_workers():
            return self.client.gather(last)

    def _submit(self, function: Any, jobs: Any) -> list[Any]:
        return [self.client.submit(function, *job, pure=False) for job in jobs]


def check_workers(client: Any, folder: Path | None = None) -> int:
    """Return the number of threads of a cluster.

    Raise if there are none, or if a worker has another version or engine or does not reach the
    folder.
    """
    n_threads = sum(client.nthreads().values())
    if not n_threads:
        raise DataError("The Dask cluster has no workers: start some first.")
    probe = Path(os.curdir) if folder is None else folder / "probe"
    if folder is not None:
        probe.touch()
    ours = (__version__, active_engine(), True)
    for worker, found in client.run(partial(_about, str(probe))).items():
        if not found[2]:
            raise DataError(
                f"The worker {worker} does not reach the folder '{folder}': give one on a disk "
                "that all workers share, by folder=."
            )
        if found != ours:
            theirs, mine = (f"condmeta {v} with the engine {e!r}" for v, e, _ in (found, ours))
            raise DataError(
                f"The worker {worker} has {theirs}, and this process {mine}: numbers would differ. "
                "Install the same on both."
            )
    if folder is not None:
        probe.unlink()
    return n_threads


def _about(probe: str) -> tuple[str, str, bool]:
    return __version__, active_engine(), os.path.exists(probe)


def save_arrays(path: str, function: Callable[..., tuple], job: tuple) -> list[tuple]:
    """Write the arrays of function(*job) to a file; return their types and shapes."""
    found = function(*job)
    write(path, *found)
    return [(array.dtype.str, array.shape) for array in found]


def _load(path: str, layout: list[tuple]) -> Iterator[np.ndarray]:
    begin = 0
    for kind, shape in layout:
        array = np.fromfile(path, kind, int(np.prod(shape)), offset=begin).reshape(shape)
        begin += array.nbytes
        yield array


def in_order(client: Any, function: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
    """Start function(job) of all jobs on workers, and return an iterator of their results."""
    futures = [client.submit(in_one_thread, function, job, pure=False) for job in jobs]

    def results() -> Iterator[Any]:
        try:
            for future in futures:
                with naming_lost_workers():
                    yield future.result()
        finally:
            client.cancel(futures)

    return results()


def in_one_thread(function: Callable[[Any], Any], job: Any) -> Any:
    """Return function(job), with one thread of BLAS."""
    with limit_threads(1):
        return function(job)


@contextmanager
def naming_lost_workers():
    """Say what to do if workers die again and again, as they do when their memory is too small."""
    from distributed import KilledWorker

    try:
        yield
    except KilledWorker as error:
        times = pluralize(error.allowed_failures + 1, "time")
        raise DataError(
            f"Workers died {times} at the same piece of work: give each worker more memory, or "
            f"make the partitions smaller. Dask says: {error}"
        ) from None


@contextmanager
def cluster_of(workers: int | None, scheduler: str | None, timeout: float = 20) -> Iterator[Any]:
    """Yield a client of a new cluster on this machine, or of the scheduler at an address."""
    distributed = import_distributed()
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=timeout)
        except (OSError, ValueError, TimeoutError) as error:
            raise DataError(f"There is no Dask scheduler at {scheduler!r}: {error}") from None
        with client:
            try:
                client.wait_for_workers(1, timeout)
            except TimeoutError:
                raise DataError(f"The Dask scheduler at {scheduler!r} has no workers.") from None
            yield client
        return
    import dask

    with (
        dask.config.set(CONFIG),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,  # errors are raised here
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def current_client() -> Any:
    """Return the Dask client of this process, or raise."""
    try:
        return import_distributed().default_client()
    except ValueError:
        raise DataError(
            "There is no Dask client: make one first, as distributed.Client() for a cluster on "
            "this machine."
        ) from None


def import_distributed() -> Any:
    """Return the module `distributed`."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError('A cluster needs Dask: pip install "condmeta[dask]".') from error
    return distributed


def describe(client: Any) -> str:
    """Describe a cluster."""
    return pluralize(len(client.nthreads()), "worker")
