"""Names of nested layers in a report."""

import pytest

from fastprof import open as open_trace
from fastprof.cli import main
from fastprof.model.markers import each_part_once
from support.exports import Export


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        ((), ()),
        (("net",), ("net",)),
        (
            ("model", "model.layers.0", "model.layers.0.self_attn"),
            ("model", "layers.0", "self_attn"),
        ),
        (("layers.0", "layers.0.mlp.up"), ("layers.0", "mlp.up")),
        (("model", "stage", "model.layers.0"), ("model", "stage", "layers.0")),
        (("model", "model.a", "model.b"), ("model", "a", "b")),
        (("model", "models.a", "modelx"), ("model", "models.a", "modelx")),
        (("block", "block"), ("block", "block")),
        (("a", "a.a.b"), ("a", "a.b")),
        (("a", "a."), ("a", "a.")),
        ((".", "..", ".a"), (".", "..", ".a")),
        (("Net_0", "net", "Conv2d_0", "net.conv"), ("Net_0", "net", "Conv2d_0", "conv")),
    ],
)
def test_each_part_is_there_once(names, parts):
    assert each_part_once(names) == parts


def test_names_of_any_length_take_no_time():
    long = "a." * 500_000
    assert each_part_once((long, long + "b")) == (long, long + "b")
    assert len(each_part_once(["a" + ".x" * i for i in range(2000)])) == 2000


def llama(tmp_path):
    export = Export()
    for i, name in enumerate(["model", "model.layers.0", "model.layers.0.self_attn"]):
        export.push_pop(i, 100 - i, f"layer:{name}", tid=1)
    return export.launch(10, 20, corr=1, tid=1).kernel(30, 40, corr=1).write(tmp_path / "x.sqlite")


def test_reports_of_a_trace_and_of_its_dict_lines_show_them_alike(tmp_path, capfd):
    path = llama(tmp_path)
    assert open_trace(path).column("layer").at(0) == ("model", "layers.0", "self_attn")
    lines = tmp_path / "x.dict"
    assert main(["parse", str(path), "-o", str(lines)]) == 0
    assert "'layer': ['model', 'model.layers.0', 'model.layers.0.self_attn']" in lines.read_text()
    capfd.readouterr()
    for source in (path, lines):
        assert main(["prof", "-c", "layer", str(source)]) == 0
        assert capfd.readouterr().out.splitlines()[1] == "model:layers.0:self_attn"
