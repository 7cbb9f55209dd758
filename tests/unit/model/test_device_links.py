"""Links of GPUs: every GPU of the table has one, at the rates of the data sheets."""

import pytest

from fastprof.model.device_links import to_gpus, to_host
from fastprof.model.device_table import ROWS
from fastprof.model.devices import find


@pytest.mark.parametrize(
    "gpu, host, others",
    [
        ("Tesla V100-SXM2-16GB", 16, 300),
        ("Tesla T4", 16, 32),
        ("NVIDIA A100-SXM4-80GB", 32, 600),
        ("NVIDIA H100 80GB HBM3", 64, 900),
        ("NVIDIA GH200 480GB", 450, 900),
        ("NVIDIA B200", 64, 1800),
        ("NVIDIA GeForce RTX 4090", 32, 64),
        ("AMD Instinct MI300X", 64, 896),
    ],
)
def test_rates_of_data_sheets(gpu, host, others):
    row = find(gpu)
    assert (to_host(row), to_gpus(row)) == (host, others)


def test_every_gpu_of_the_table_has_links():
    for row in ROWS:
        host, others = to_host(row), to_gpus(row)
        assert host is not None and others is not None
        assert 0 < host <= others


def test_an_unknown_gpu_has_no_known_links():
    assert (to_host(None), to_gpus(None)) == (None, None)
