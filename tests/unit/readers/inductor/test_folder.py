"""Folders with artefacts: structured logs, folders of the debug mode, and neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fastprof.errors import BadInputError
from fastprof.readers.inductor import folder
from support.compiled_programs import FOLDER


def test_logs_are_found_at_any_depth_and_by_name(tmp_path: Path) -> None:
    (log,) = FOLDER.iterdir()
    inner = tmp_path / "rank0"
    inner.mkdir()
    (inner / log.name).write_bytes(log.read_bytes())
    assert len(folder.read(tmp_path).graphs) == 4
    assert len(folder.read(log).graphs) == 4


def test_a_folder_of_the_debug_mode_is_a_graph(tmp_path: Path) -> None:
    debug = tmp_path / "torchinductor" / "model__0_inference_0.0"
    debug.mkdir(parents=True)
    (debug / "fx_graph_transformed.py").write_text(
        'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[8]"):\n'
        "        # File: /m.py:12 in forward, code: y\n"
        '        exp: "f32[8]" = torch.ops.aten.exp.default(x)\n        return (exp,)\n'
    )
    (debug / "output_code.py").write_text("    # [Provenance debug handles] triton_poi_a_0:1\n")
    (debug / "inductor_provenance_tracking_node_mappings.json").write_text(
        json.dumps({"cppCodeToPost": {"triton_poi_a_0:1": ["exp"]}})
    )
    (graph,) = folder.read(tmp_path).graphs
    assert graph.place == str(debug) and graph.kernels[0].nodes == ("exp",)


def test_a_folder_without_artefacts_says_how_to_write_them(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("hello")
    with pytest.raises(BadInputError, match="INDUCTOR_PROVENANCE=1 TORCH_TRACE=DIR"):
        folder.read(tmp_path)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="no such file or folder"):
        folder.read(tmp_path / "none")
