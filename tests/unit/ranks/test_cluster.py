"""A batch on a Dask cluster: a real scheduler and two workers on loopback, one of them killed."""

import io
import os
import signal
import sys
import threading

import pytest

import fastprof
from fastprof.ranks.local import ClusterError
from support import processes, rank_files
from support.rank_files import CALLS
from support.waiting import wait_for

distributed = pytest.importorskip("distributed", reason="needs distributed")
pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture(scope="module")
def forkserver():
    """Fork Dask's workers from a process that has imported fastprof."""
    import dask

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        preload = ["distributed", "fastprof.ranks.work"]
        distributed.utils.get_mp_context().set_forkserver_preload(preload)
        yield


@pytest.fixture(scope="module")
def cluster(forkserver):
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def folder(tmp_path):
    """Eight ranks; 3 is slow, and 5 calls `mine.stop`."""
    folder = tmp_path / "run"
    rank_files.run(folder, 8, slow=3, stops=5)
    return folder


def texts(found):
    ranks = [{**row, "seconds": None} for row in found.ranks.rows()]
    return found.table().text(), found.collectives().text(), found.lacking().text(), ranks


def test_a_cluster_finds_what_processes_find(client, folder):
    (folder / "rank8.sqlite").write_bytes(b"no trace")
    (folder / "rank9.sqlite").write_bytes(b"")
    batch = fastprof.batch(folder, client=client)
    assert len(batch.failures) == 2
    assert texts(batch) == texts(fastprof.batch(folder))


def test_a_worker_killed_at_work_loses_nothing_and_nothing_counts_twice(client, folder):
    flag = folder.parent / "flag"
    slow = rank_files.costs(folder.parent / "mine.py", "if first: time.sleep(3600)", flag)
    before = set(client.run(os.getpid).values())
    killed = []

    def kill():
        wait_for(flag.exists)
        wait_for(lambda: seen)  # the other one works on meanwhile
        killed.append(int(flag.read_text()))
        os.kill(killed[0], signal.SIGKILL)

    seen = []
    thread = threading.Thread(target=kill)
    thread.start()
    batch = fastprof.batch(folder, client=client, ops=[slow], progress=seen.append)
    thread.join()
    assert set(killed) <= before
    assert len(killed) == 1
    assert batch.failures == []
    assert [done.n for done in seen] == list(range(1, 9))
    assert len({done.result.path for done in seen}) == 8
    assert batch.ranks["kernels"].tolist() == [3 * CALLS] * 8
    assert batch.table("op")["kernels"].sum() == 24 * CALLS
    assert texts(batch) == texts(fastprof.batch(folder, ops=[slow]))
    # Registered costs stay in a process; other batches must not get them.
    others = fastprof.batch(folder, client=client)
    assert others.failures
    assert all("client.restart()" in failure.error for failure in others.failures)
    client.restart()
    assert fastprof.batch(folder, client=client).failures == []


def test_a_store_is_written_here_and_spares_the_cluster(client, folder):
    pytest.importorskip("pyarrow")
    store = folder.parent / "store"
    first = fastprof.batch(folder, client=client, store=store)
    seen = []
    second = fastprof.batch(folder, client=client, store=store, progress=seen.append)
    assert all(done.stored for done in seen)
    assert texts(first) == texts(second)
    assert len(list(store.iterdir())) == 8


def test_an_error_in_the_callers_function_cancels_what_is_left(client, folder):
    def stop(done):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        fastprof.batch(folder, client=client, progress=stop)
    wait_for(lambda: not any(client.processing().values()))
    assert len(fastprof.batch(folder, client=client).summaries) == 8


def test_workers_of_another_version_are_refused(client, folder, monkeypatch):
    from fastprof.ranks import local as cluster

    monkeypatch.setattr(cluster, "__version__", "99.0")
    batch = fastprof.batch(folder, client=client)
    assert len(batch.failures) == 8
    assert "99.0" in batch.failures[0].error


def test_the_command_takes_the_address_of_a_scheduler(cluster, folder):
    words = [sys.executable, "-m", "fastprof", "batch", folder, "--csv"]
    there = processes.ran([*words, "--scheduler", cluster.scheduler_address], text=False)
    assert (there.returncode, there.stderr.count(b"\n")) == (0, 8)
    expected = io.StringIO()
    fastprof.batch(folder).table().write_csv(expected)
    assert there.stdout.decode() == expected.getvalue()


def test_an_address_where_no_scheduler_is_is_one_line(folder, monkeypatch):
    from fastprof.ranks import local as cluster

    monkeypatch.setattr(cluster, "_WAIT", "1s")
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with pytest.raises(ClusterError, match="no Dask scheduler answers"):
            cluster.connect(address)


def test_without_distributed_the_extra_is_named(monkeypatch):
    from fastprof.ranks import local as cluster

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(fastprof.MissingDependencyError, match=r"fastprof\[dask\]"):
        cluster.connect("tcp://127.0.0.1:9")
