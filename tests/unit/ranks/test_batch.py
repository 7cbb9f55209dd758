"""fastprof.batch: tables over many files, for any contents and any way of reading."""

import numpy as np
import pytest

import fastprof
from fastprof.api.batch import Batch, BatchError
from fastprof.cli import main
from fastprof.model.heading import Heading
from fastprof.model.table import Floats, Table, text_column
from fastprof.ranks.all_ranks import assign_ranks as rank_numbers
from fastprof.ranks.files import find
from fastprof.ranks.work import Options, work
from support import rank_files
from support.exports import Export
from support.kineto_files import KinetoFile
from support.rank_files import CALLS, FLOPS, SLOW, TIME, TRANSFER

pytestmark = pytest.mark.usefixtures("forked_workers")

BOTH = 2 * TIME * CALLS  # ns of the products of a rank with both layers
LATE, EARLY = 2 * SLOW, 2 * TIME


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six ranks: 3 is slow, 1 and 4 lack a layer."""
    folder = tmp_path_factory.mktemp("run")
    rank_files.run(folder, 6, slow=3, without=(1,))
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return fastprof.batch(folder, jobs=2)


def read(*paths, **options):
    """`fastprof.batch` in this process, because starting others takes half a second."""
    return Batch([work(path, Options(**options)) for path in find(paths)])


def rows(table, **wanted):
    """The rows with these values."""
    return [
        row for row in table.rows() if all(row[name] == value for name, value in wanted.items())
    ]


def one(table, **wanted):
    (row,) = rows(table, **wanted)
    return row


# Tables.


def test_each_file_is_a_rank(found, folder):
    assert found.ranks["rank"].tolist() == list(range(6))
    assert found.ranks["file"].tolist() == [str(folder / f"rank{i}.sqlite") for i in range(6)]
    assert found.ranks["kernels"].tolist() == [12, 8, 12, 12, 12, 12]
    assert (
        one(found.ranks, rank=0)["gpu_time"]
        == fastprof.open(folder / "rank0.sqlite").kernels["sil"].sum()
    )
    assert one(found.ranks, rank=0)["op"] == pytest.approx(
        BOTH / one(found.ranks, rank=0)["gpu_time"]
    )
    assert set(found.ranks["error"]) == {None}


def test_time_of_an_op_has_mean_least_most_and_the_slowest_rank(found):
    linear = one(found.table("op"), op="linear")
    times = [BOTH, BOTH // 2, BOTH, 2 * SLOW * CALLS, BOTH, BOTH]
    assert linear["ranks"] == 6
    assert linear["kernels"] == 5 * 2 * CALLS + CALLS
    assert linear["time"] == sum(times)
    assert (linear["min"], linear["max"], linear["slowest"]) == (min(times), max(times), 3)
    assert linear["mean"] == round(sum(times) / 6)
    assert linear["skew"] == pytest.approx(max(times) / (sum(times) / 6))
    assert linear["flops"] == FLOPS * linear["kernels"] == FLOPS * linear["flops_kernels"]


def test_mean_and_least_are_over_the_ranks_that_have_any(found):
    head = one(found.table("layer"), layer="head")
    assert (head["ranks"], head["min"]) == (5, TIME * CALLS)
    assert head["mean"] == round((4 * TIME + SLOW) * CALLS / 5)


def test_a_table_by_everything_adds_up_to_the_gpu_time(found):
    for by in ("op", "dir", ("op", "layer", "class", "dir"), ("mod", "class")):
        table = found.table(by)
        assert table["time"].sum() == found.ranks["gpu_time"].sum()
        assert table["share"].sum() == pytest.approx(1)
        assert table["kernels"].sum() == found.ranks["kernels"].sum()
        assert (np.diff(table["time"]) <= 0).all()


def test_what_is_not_known_is_not_zero(found):
    assert one(found.table("op"), op=None)["flops"] is None
    assert one(found.table("op"), op=None)["flops_kernels"] == 0
    assert "na" in found.table("op").text()


def test_kernels_have_their_class(found):
    table = found.table("class")
    assert set(table["class"]) == {"gemm", "communication"}


def test_the_table_equals_the_sum_of_the_reports_of_single_files(found, folder):
    pd = pytest.importorskip("pandas")
    frames = [fastprof.open(path).to_pandas() for path in sorted(folder.iterdir())]
    expected = pd.concat(frames).groupby("op", observed=True)["sil"].sum().to_dict()
    table = {row["op"]: row["time"] for row in found.table("op").rows() if row["op"]}
    assert table == expected


def test_an_unknown_key_is_refused_with_the_valid_ones(found):
    for by in ("nonsense", (), ("op", "op"), "collective"):
        with pytest.raises(fastprof.UnknownColumnError, match="mod, op, layer, dir, class"):
            found.table(by)


# Collectives.


def test_ranks_wait_for_the_slow_one_in_collectives(found):
    row = one(found.collectives())
    assert row["collective"].startswith("ncclDevKernel_AllReduce")
    assert (row["ranks"], row["calls"], row["calls_min"]) == (6, CALLS, CALLS)
    assert (row["last"], row["last_share"]) == (3, 1)
    assert row["waits"] == 1  # it lacks a layer and so arrives first
    assert row["longest"] == LATE - TIME
    waits = [LATE - EARLY, LATE - TIME, LATE - EARLY, 0, LATE - EARLY, LATE - EARLY]
    assert row["wait"] == round(CALLS * sum(waits) / 6)
    assert row["ends"] == 0
    assert row["time"] == CALLS * (6 * TRANSFER + sum(waits))
    assert row["slowest"] == 1


def test_calls_that_were_not_the_same_have_no_wait(tmp_path):
    for rank, period in enumerate((1000, 7000, 3000)):
        export = Export()
        for i in range(5):
            export.kernel(period * i, period * i + 100, corr=i, name="ncclKernel_AllReduce")
        export.write(tmp_path / f"rank{rank}.sqlite")
    row = one(read(tmp_path).collectives())
    assert row["ends"] > 100
    assert (row["wait"], row["last"], row["longest"]) == (None, None, None)
    assert row["time"] == 1500


def test_too_few_calls_to_compare_clocks_by_have_no_wait(tmp_path):
    for rank in range(2):
        export = Export().kernel(10, 100 + rank, corr=1, name="ncclKernel_AllReduce")
        export.write(tmp_path / f"rank{rank}.sqlite")
    row = one(read(tmp_path).collectives())
    assert (row["calls"], row["wait"], row["ends"]) == (1, None, None)


def test_processes_of_one_file_have_one_clock(tmp_path):
    export = Export()
    for rank in range(2):
        export.kernel(10 + 40 * rank, 100, corr=1, name="ncclKernel_AllReduce", pid=7 + rank,
                      device=rank)  # fmt: skip
    batch = read(export.write(tmp_path / "both.sqlite"))
    row = one(batch.collectives())
    assert (row["wait"], row["longest"], row["last"], row["ends"]) == (20, 40, 1, 0)


def test_channels_are_matched_whatever_ranks_call_their_streams(tmp_path):
    for rank, streams in enumerate(((7, 20), (9, 31))):
        export = Export()
        for i in range(4):
            for channel in (0, 1):
                # The order of channels differs: on rank 1, the second channel's call comes first.
                start = 1000 * i + (200 * channel if rank == 0 else 200 * (1 - channel))
                export.kernel(start, 1000 * i + 500 + channel, corr=10 * i + channel,
                              name="ncclKernel_AllReduce", stream=streams[channel])  # fmt: skip
        export.write(tmp_path / f"rank{rank}.sqlite")
    row = one(read(tmp_path).collectives())
    assert (row["calls"], row["ends"], row["longest"]) == (8, 0, 200)


# Work that ranks lack.


def test_a_rank_without_a_layer_lacks_it(found):
    assert one(found.lacking(), lacks="layer")["rank"] == 1
    assert one(found.lacking(), lacks="layer")["detail"].startswith("head")
    assert one(found.lacking(), lacks="kernels")["detail"] == "8, the median of all ranks is 12"


def test_what_few_ranks_have_the_others_do_not_lack(tmp_path):
    for rank in range(4):
        export = rank_files.export(rank, without=None if rank == 0 else "head")
        export.write(tmp_path / f"rank{rank}.sqlite")
    assert rows(read(tmp_path).lacking(), lacks="layer") == []


def test_bad_and_empty_files_are_a_line_each_and_stop_nothing(tmp_path):
    paths = rank_files.run(tmp_path, 4)
    paths[1].write_bytes(b"")
    paths[2].write_bytes(paths[2].read_bytes()[:5000])
    Export().push_pop(0, 10, "nothing", tid=1).write(tmp_path / "rank4.sqlite")
    batch = fastprof.batch([*paths, tmp_path / "rank4.sqlite", tmp_path / "rank9.sqlite"], jobs=2)
    assert batch.ranks["rank"].tolist() == [0, 3, 4, None, None, None]
    assert [failure.path for failure in batch.failures] == [
        str(tmp_path / f"rank{i}.sqlite") for i in (1, 2, 9)
    ]
    for failure, word in zip(batch.failures, ("empty", "malformed", "no such file"), strict=True):
        assert word in failure.error
        assert failure.error.startswith(failure.path)
        assert "\n" not in failure.error
    assert len(rows(batch.lacking(), lacks="file")) == 3
    assert one(batch.lacking(), lacks="kernels") == {
        "rank": 4, "file": str(tmp_path / "rank4.sqlite"), "lacks": "kernels", "detail": "none",
    }  # fmt: skip
    assert one(batch.table("layer"), layer="head")["ranks"] == 2


def test_ranks_of_which_there_is_no_file_are_told(tmp_path):
    for rank in (0, 2):
        trace = KinetoFile(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 5})
        trace.launch(10, 20, corr=1).kernel(30, 40, corr=1).write(tmp_path / f"t{rank}.json")
    result = read(tmp_path)
    assert result.missing == [1, 3, 4]
    assert one(result.lacking(), lacks="file")["detail"] == "no file of rank 1, 3, 4"


def test_nothing_but_bad_files_gives_empty_tables(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    result = read(tmp_path)
    assert len(result.failures) == 1
    for table in (result.table(), result.table("op"), result.collectives()):
        assert table.n_rows == 0
        assert table.text()
    assert result.ranks.n_rows == result.lacking().n_rows == 1
    assert "1 of them" in result.overview()


def test_dict_lines_are_ranks_too(tmp_path, folder):
    for rank in range(2):
        out = tmp_path / f"rank{rank}.dict"
        assert main(["parse", str(folder / f"rank{rank}.sqlite"), "-o", str(out)]) == 0
    result = read(tmp_path / "rank0.dict", tmp_path / "rank1.dict")
    assert one(result.table("op"), op="linear")["time"] == BOTH + BOTH // 2
    assert one(result.collectives())["wait"] is None
    assert result.ranks["span"].tolist() == [None, None]


def test_copies_count_unless_they_are_left_out(tmp_path):
    export = Export().kernel(10, 30, corr=1, name="sgemm").copy(40, 45, 2, 1, 1000)
    path = export.write(tmp_path / "a.sqlite")
    assert set(read(path, copies=False).table("class")["class"]) == {"gemm"}
    both = read(path)
    copy = one(both.table("class"), **{"class": "memcpy"})
    assert (copy["time"], copy["bytes"]) == (5, 1000)
    assert both.ranks["busy"].tolist() == pytest.approx([25 / 35])


def test_processes_of_one_file_are_ranks_in_order_of_device(tmp_path):
    export = Export()
    for pid, device in ((50, 1), (60, 0)):
        export.kernel(10, 30 + device, corr=1, pid=pid, device=device)
    result = read(export.write(tmp_path / "node.sqlite"))
    assert result.ranks["pid"].tolist() == [60, 50]
    assert result.ranks["devices"].tolist() == ["0", "1"]
    assert result.ranks["gpu_time"].tolist() == [20, 21]
    assert result.all_ranks.rule == "order"


# Ranks and files.


@pytest.mark.parametrize(
    ("paths", "told", "numbers", "rule"),
    [
        (["a", "b"], [1, 0], [1, 0], "recorded"),
        (["rank1", "rank0"], [3, 3], [1, 0], "name"),
        (["a", "b"], [0, None], [0, 1], "order"),
        (["run7/rank_10.json", "run7/rank_2.json"], [None, None], [10, 2], "name"),
        (["rank3/t.json", "Rank-0/t.json"], [None, None], [3, 0], "name"),
        (["run7_w3_x.json", "run7_w5_x.json"], [None, None], [3, 5], "digits"),
        (["h1_20.json", "h2_31.json"], [None, None], [0, 1], "order"),
        (["crank3", "crank5a"], [None, None], [0, 1], "order"),
        (["only9.json"], [None], [0], "order"),
        ([], [], [], "recorded"),
    ],
)
def test_a_rank_is_what_the_file_says_or_its_name_or_its_place(paths, told, numbers, rule):
    assert rank_numbers(paths, told) == (numbers, rule)


def test_files_are_found_below_directories_and_each_counts_once(tmp_path):
    paths = rank_files.run(tmp_path / "a", 2) + rank_files.run(tmp_path / "b" / "c", 1)
    (tmp_path / "link.sqlite").symlink_to(paths[0])
    (tmp_path / "a" / "rank0.nsys-rep").write_bytes(b"the same capture")
    (tmp_path / "notes.txt").write_text("no trace")
    result = read(tmp_path, paths[1], tmp_path / "a")
    assert result.failures == []
    assert result.ranks.n_rows == 3
    assert fastprof.batch(tmp_path, pattern="rank1.*").ranks.n_rows == 1


def test_numbers_in_names_count_as_numbers(tmp_path):
    export = Export().kernel(1, 2, corr=1)
    for i in (10, 2, 1):
        export.write(tmp_path / f"t{i}.sqlite")
    result = read(tmp_path)
    assert [path.rsplit("/", 1)[1] for path in result.ranks["file"]] == [
        "t1.sqlite", "t2.sqlite", "t10.sqlite"
    ]  # fmt: skip


def test_a_directory_without_traces_says_what_was_expected(tmp_path):
    with pytest.raises(fastprof.BadInputError, match=r"no traces .* \*\.sqlite"):
        fastprof.batch(tmp_path)
    with pytest.raises(fastprof.BadInputError, match="give files"):
        fastprof.batch([])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"jobs": 0}, "1 or more"),
        ({"memory": 1000}, "256 MiB"),
        ({"client": object(), "jobs": 2}, "cluster"),
        ({"client": object(), "memory": 1 << 40}, "cluster"),
    ],
)
def test_settings_that_do_not_fit_are_refused(words, message, folder):
    with pytest.raises(BatchError, match=message):
        fastprof.batch(folder, **words)


# Settings without effect on results.


def contents(found):
    tables = (found.table(), found.collectives(), found.lacking())
    ranks = [{**row, "seconds": None} for row in found.ranks.rows()]
    return [list(map(str, table.rows())) for table in tables] + [list(map(str, ranks))]


@pytest.mark.parametrize("jobs", [1, 50])
def test_the_number_of_processes_changes_nothing(jobs, found, folder):
    assert contents(fastprof.batch(folder, jobs=jobs)) == contents(found)


def test_the_order_of_the_paths_changes_nothing(found, folder):
    paths = sorted(folder.iterdir(), reverse=True)
    assert contents(fastprof.batch([str(path) for path in paths])) == contents(found)


# Outputs.


def test_progress_is_told_for_each_file(folder, capsys):
    seen = []
    fastprof.batch(folder, progress=seen.append)
    assert [(done.n, done.total) for done in seen] == [(i, 6) for i in range(1, 7)]
    assert len({done.result.path for done in seen}) == 6
    assert capsys.readouterr().err == ""
    fastprof.batch(folder / "rank0.sqlite", progress=True)
    assert "1/1" in capsys.readouterr().err


def test_the_long_table_has_a_row_a_rank_and_group(found, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = found.to_pandas()
    assert frame.groupby("rank")["time"].sum().tolist() == found.ranks["gpu_time"].tolist()
    found.write_csv(tmp_path / "all.csv")
    read = pd.read_csv(tmp_path / "all.csv", keep_default_na=False, na_values=["na"])
    assert read["time"].tolist() == frame["time"].tolist()
    assert read["op"].isna().tolist() == frame["op"].isna().tolist()
    pytest.importorskip("pyarrow")
    found.write_parquet(tmp_path / "all.parquet")
    parquet = pd.read_parquet(tmp_path / "all.parquet")
    assert parquet["flops"].isna().tolist() == frame["flops"].isna().tolist()
    assert parquet["layer"].tolist() == frame["layer"].tolist()


def test_a_table_keeps_what_is_not_known_apart_in_every_form():
    table = Table(
        {
            "a": text_column(["x", None]),
            "b": Floats(np.array([np.nan, 0.5])),
            "c": Floats(np.zeros(2)),
        },
        (Heading("b", "b", "share"),),
    )
    assert list(table.rows()) == [{"a": "x", "b": None, "c": 0}, {"a": None, "b": 0.5, "c": 0}]
    assert table.text() == "a   b(%)  c\nx     na  0\nna  50.0  0\n"
    assert table.text(1) == "a  b(%)  c\nx    na  0\n... 1 more rows\n"
    assert table["a"].tolist() == ["x", None]
    pytest.importorskip("pandas")
    assert table.to_pandas().isna().to_numpy().tolist() == [
        [False, True, False], [True, False, False]
    ]  # fmt: skip


def test_costs_of_the_users_own_reach_the_processes(tmp_path):
    rank_files.run(tmp_path, 1, stops=0)
    mine = rank_files.costs(tmp_path / "mine.py", "pass", tmp_path / "flag")
    row = one(fastprof.batch(tmp_path, ops=[mine]).table("op"), op="stop")
    assert row["flops"] == 1000 * 2 * CALLS
    assert one(fastprof.batch(tmp_path).table("op"), op="stop")["flops"] is None


def test_costs_that_cannot_be_loaded_are_said(tmp_path, folder):
    with pytest.raises(fastprof.BadInputError, match="costs"):
        fastprof.batch(folder, ops=[tmp_path / "missing.py"])
    (tmp_path / "bad.py").write_text("print('hello'); 1 / 0")
    result = read(folder, ops=(str(tmp_path / "bad.py"),))
    assert len(result.failures) == 6
    assert "ZeroDivisionError" in result.failures[0].error
