"""The store of a batch: unchanged files are not read again, and results are the same."""

import os
import signal
import subprocess
import sys

import pytest

import fastprof
from fastprof.api import batch as batch_module
from fastprof.errors import MissingDependencyError
from fastprof.ranks import kept as store_module
from fastprof.ranks.files import source_of
from fastprof.ranks.kept import StoreError
from fastprof.ranks.store import Store
from fastprof.ranks.work import Options, work
from support import commands, processes, rank_files
from support.waiting import PATIENCE, is_alive, wait_for

pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
pytestmark = pytest.mark.usefixtures("forked_workers")


@pytest.fixture
def here(monkeypatch):
    """Read files in this process, because starting others takes half a second."""

    def run_here(paths, options, jobs, memory):
        yield from (work(path, options) for path in paths)

    monkeypatch.setattr(batch_module, "run_local", run_here)


@pytest.fixture
def run(tmp_path, here):
    """The files of a run, and a function that runs a batch and returns the names of files read."""
    paths = rank_files.run(tmp_path / "run", 4, slow=2, without=(1,))

    def read(**options):
        anew = []

        def see(done):
            if not done.stored:
                anew.append(os.path.basename(done.result.path))

        found = fastprof.batch(
            tmp_path / "run", store=tmp_path / "store", progress=see, jobs=1, **options
        )
        return sorted(anew), found

    return paths, read


NAMES = [f"rank{i}.sqlite" for i in range(4)]


def test_what_is_done_and_unchanged_is_not_done_again(run):
    paths, read = run
    assert read()[0] == NAMES
    assert read()[0] == []
    os.utime(paths[2])
    assert read()[0] == ["rank2.sqlite"]
    assert read()[0] == []


def test_what_comes_from_the_store_is_what_was_read(run):
    _, read = run
    (_, first), (_, second) = read(), read()
    assert [summary.path for summary in first.summaries] == [
        summary.path for summary in second.summaries
    ]
    for table in ("table", "collectives", "lacking"):
        assert getattr(first, table)().text() == getattr(second, table)().text()
    assert list(first.ranks.rows()) == list(second.ranks.rows())


def test_a_summary_survives_the_file_unchanged(run, tmp_path):
    summary = work(str(run[0][0]), Options())
    store = Store(tmp_path / "s", Options().text())
    store.add(summary)
    result = store.find(str(run[0][0]))
    assert {k: v for k, v in vars(result).items() if k != "groups"} == {
        k: v for k, v in vars(summary).items() if k != "groups"
    }
    for name, array in vars(summary.groups).items():
        other = getattr(result.groups, name)
        if name == "keys":
            for key, column in array.items():
                values = [column.at(row) for row in range(len(column))]
                assert values == [other[key].at(row) for row in range(len(column))], key
        elif name == "sums":
            assert {k: v.tolist() for k, v in array.items()} == {
                k: v.tolist() for k, v in other.items()
            }
        else:
            assert (array.tolist(), array.dtype) == (other.tolist(), other.dtype), name


def test_a_file_with_the_same_times_and_another_content_is_done_again(run):
    paths, read = run
    read()
    before = os.stat(paths[0])
    data = bytearray(paths[0].read_bytes())
    data[-1] ^= 1
    paths[0].write_bytes(data)
    os.utime(paths[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read()[0] == ["rank0.sqlite"]


def test_other_options_and_another_version_do_all_again(run, monkeypatch):
    _, read = run
    read()
    assert read(copies=False)[0] == NAMES
    assert read()[0] == NAMES
    monkeypatch.setattr(store_module, "__version__", "0.0.1")
    assert read()[0] == NAMES


def test_other_costs_do_all_again(tmp_path):
    rank_files.run(tmp_path / "run", 1, stops=0)
    costs = rank_files.costs(tmp_path / "mine.py", "pass", tmp_path / "flag")

    def flops():
        seen = []
        found = fastprof.batch(
            tmp_path / "run", store=tmp_path / "store", ops=[costs], progress=seen.append
        )
        (row,) = (row for row in found.table("op").rows() if row["op"] == "stop")
        return seen[0].stored, row["flops"]

    assert flops() == (False, 8000)
    assert flops() == (True, 8000)
    costs.write_text(costs.read_text().replace("1000", "2000"))
    assert flops() == (False, 16000)


def test_a_bad_file_is_not_kept_and_tried_again(run):
    paths, read = run
    whole = paths[3].read_bytes()
    paths[3].write_bytes(whole[:3000])
    assert len(read()[1].failures) == 1
    assert read()[0] == ["rank3.sqlite"]
    paths[3].write_bytes(whole)
    again, result = read()
    assert (again, result.failures) == (["rank3.sqlite"], [])


@pytest.mark.parametrize("damage", [b"", b"PAR1 no parquet", None])
def test_a_damaged_summary_is_done_again(damage, run, tmp_path):
    _, read = run
    read()
    kept = sorted((tmp_path / "store").iterdir())
    assert len(kept) == 4
    if damage is None:  # another program's file
        import pyarrow as pa

        pq.write_table(pa.table({"a": [1]}), kept[0])
    else:
        kept[0].write_bytes(damage)
    assert read()[0] == ["rank0.sqlite"]
    assert read()[0] == []


def test_each_trace_has_a_parquet_file_that_others_can_read(run, tmp_path):
    paths, read = run
    _, result = read()
    kept = sorted((tmp_path / "store").iterdir())
    assert [path.name.split("-")[0] for path in kept] == NAMES
    table = pq.read_table(kept[1]).to_pydict()
    assert set(table["file"]) == {str(paths[1])}
    assert set(table["layer"]) == {"encoder", "-"}
    times = result.ranks["gpu_time"].tolist()
    assert sum(table["time"]) == times[1]
    whole = pq.read_table(tmp_path / "store").to_pydict()
    assert sum(whole["time"]) == sum(times)
    calls = [row for row in table["duration"] if row]
    assert [len(call) for call in calls] == [rank_files.CALLS]


def test_the_way_in_which_a_path_is_written_does_not_matter(run, tmp_path, monkeypatch):
    _, read = run
    read()
    monkeypatch.chdir(tmp_path)
    seen = []
    batch = fastprof.batch("run", store="store", progress=seen.append)
    assert all(done.stored for done in seen)
    assert batch.ranks["file"].tolist() == [f"run/{name}" for name in NAMES]


def test_two_files_of_one_name_have_summaries_of_their_own(tmp_path):
    for folder in ("a", "b"):
        rank_files.run(tmp_path / folder, 1)
    fastprof.batch([tmp_path / "a", tmp_path / "b"], store=tmp_path / "store")
    assert len(list((tmp_path / "store").iterdir())) == 2


def test_a_directory_that_cannot_be_made_is_said(run, tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "store"):
        with pytest.raises(StoreError, match="directory of results"):
            fastprof.batch(tmp_path / "run", store=path)


def test_without_pyarrow_the_extra_is_named(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"fastprof\[arrow\]"):
        fastprof.batch(tmp_path / "run", store=tmp_path / "store")


def test_the_fingerprint_sees_every_part_of_the_file_and_its_end(tmp_path):
    path = tmp_path / "big"
    for size in (0, 1, 1 << 16, (1 << 16) + 1, 3_000_000):
        path.write_bytes(bytes(size))
        first = source_of(str(path))
        assert first.size == size
        for place in {0, size - 1} if size else ():
            data = bytearray(size)
            data[place] = 1
            path.write_bytes(data)
            assert source_of(str(path)).fingerprint != first.fingerprint


def test_what_a_killed_batch_leaves_half_written_is_not_read(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    program = (
        "import os, sys, fastprof\n"
        "os.replace = lambda whole, path: (os.truncate(whole, 100), os._exit(9))\n"
        "if __name__ == '__main__':\n"
        "    fastprof.batch(sys.argv[1], store=sys.argv[2], jobs=1)\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "run", tmp_path / "store"]
    assert processes.ran(command, text=False).returncode == 9
    (left,) = (tmp_path / "store").iterdir()
    assert left.stat().st_size == 100
    _, read = run
    assert read()[0] == NAMES
    assert pandas.read_parquet(tmp_path / "store")["file"].nunique() == 4


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_batch_that_is_ended_in_the_middle_goes_on_where_it_was(end, tmp_path):
    rank_files.run(tmp_path / "run", 4, stops=3)
    flag = tmp_path / "flag"
    costs = rank_files.costs(tmp_path / "mine.py", "if first: time.sleep(3600)", flag)
    words = ["batch", tmp_path / "run", "--store", tmp_path / "store", "--ops", costs, "-j", "1"]
    command = [sys.executable, "-m", "fastprof", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # The last file is being read, and all before it are kept.
    wait_for(lambda: flag.exists() and len([*(tmp_path / "store").glob("*.parquet")]) == 3)
    worker = int(flag.read_text())
    process.send_signal(end)
    if end == signal.SIGKILL:
        os.kill(worker, signal.SIGKILL)  # it would end by itself when its sleep is over
    _, said = process.communicate(timeout=PATIENCE)
    if end != signal.SIGKILL:
        assert process.returncode == 130
        assert said.decode().splitlines()[-1] == "fastprof: interrupted"
        wait_for(lambda: not is_alive(worker))
    kept = list((tmp_path / "store").iterdir())
    assert len(kept) == 3
    assert {path.suffix for path in kept} == {".parquet"}
    done = commands.run(*words)
    assert done.returncode == 0
    lines = done.stderr.decode().splitlines()
    assert [("unchanged in the store" in line, "rank3" in line) for line in lines] == [
        *[(True, False)] * 3,
        (False, True),
    ]
