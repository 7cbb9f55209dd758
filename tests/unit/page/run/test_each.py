"""Pages of the ranks of a run."""

from pathlib import Path

from bench.ranks import programs, truth

from fastprof.page.run import page_of_run
from fastprof.page.run.each import write_pages
from support.pages import parsed
from support.simulated_ranks import read


def test_pages_of_ranks_link_to_the_run_and_back(tmp_path: Path):
    truth.write(tmp_path, programs.ddp(2), 2, 1, [])
    run, written = read(tmp_path), []
    each = write_pages(run, tmp_path / "all ranks.html", progress=written.append)
    assert each == {0: "all ranks_ranks/rank0.html", 1: "all ranks_ranks/rank1.html"}
    page = tmp_path / "all ranks.html"
    page_of_run(run, each=each).save(page)
    assert [Path(path) for path in written] == [tmp_path / path for path in each.values()]
    for path in written:
        trace = parsed(Path(path).read_text())
        assert "rank0.json.gz" in trace.text or "rank1.json.gz" in trace.text
        links = [link["href"] for link in trace.attributes("a")]
        assert "./../all%20ranks.html" in links and "all 2 ranks" in trace.text
    links = [link["href"] for link in parsed(page.read_text()).attributes("a")]
    assert {"./all%20ranks_ranks/rank0.html", "./all%20ranks_ranks/rank1.html"} <= set(links)
