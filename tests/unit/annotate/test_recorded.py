"""Texts for torch.profiler: its JSON stays valid, and fastprof reads the markers back."""

import json

import pytest

import fastprof
from fastprof.model.markers import Kind, read

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("nvtx", reason="nvtx is not installed")

from fastprof.annotate.text import recordable


@pytest.mark.parametrize(
    ("text", "recorded"),
    [
        ("{'mod': 'torch', 'op': 'mm'}", "{'mod': 'torch', 'op': 'mm'}"),
        (str({"strRepr": "2, mode='same'"}), "{'strRepr': '2, mode=`same`'}"),
        ('layer:the "best"', "layer:the 'best'"),
        (str({"a": "it's", "b": "it's"}), "{'a': 'it`s', 'b': 'it`s'}"),
        (str(["a\nb", "\"x'"]), "['a/nb', '`x/'']"),
    ],
)
def test_texts_hold_no_double_quote_and_no_backslash(text, recorded):
    assert recordable(text) == recorded


class Odd(torch.nn.Module):
    """Its extra_repr contains quotes."""

    def extra_repr(self):
        return "padding_mode='zeros'"

    def forward(self, x):
        return torch.einsum("i,i->", x, x)


def test_a_trace_with_quotes_in_its_markers_is_json_and_is_read(tmp_path):
    with fastprof.init(), torch.profiler.profile() as profile:
        fastprof.wrap(Odd, "forward")
        with fastprof.layer('the "best" one\'s'):
            Odd()(torch.ones(3))
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    names = [event.get("name", "") for event in json.loads(path.read_text())["traceEvents"]]
    meanings = [read(name, False) for name in names if name.startswith(("{", "layer:"))]
    kinds = {meaning.kind: meaning for meaning in meanings}
    assert kinds[Kind.MODULE].module_repr == "padding_mode=`zeros`"
    assert kinds[Kind.LAYER].name == "the 'best' one's"
    assert {"forward", "einsum"} <= {m.call.op for m in meanings if m.kind == Kind.ARGUMENT}
