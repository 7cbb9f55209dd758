"""The cells of a profile: their kernels agree, and their sums are those of the kernels."""

import threading
from pathlib import Path

import numpy as np
import pytest
from bench.generate import generate

import fastprof
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.key_names import KEY_NAMES
from fastprof.analysis.keys import key_of
from fastprof.analysis.roofline.ideal import ideals_of
from fastprof.cli import main
from fastprof.profile.cells import OF_CELLS, SUMS
from support.waiting import in_threads


@pytest.fixture(scope="module", params=[1, 2])
def profile(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("cells") / "net.sqlite"
    generate(path, 3000, request.param)
    return fastprof.open(path, copies=True)


@pytest.fixture(scope="module")
def of_dict(profile: fastprof.Profile, tmp_path_factory: pytest.TempPathFactory):
    file: Path = tmp_path_factory.mktemp("cells") / "net.dict"
    assert main(["parse", profile.name, "-o", str(file)]) == 0
    return fastprof.open(file)


def agree(profile: fastprof.Profile, cells: ReportCells) -> None:
    """Check the cells against the columns of the kernels."""
    of_kernel = cells.of_kernel
    assert of_kernel[cells.first].tolist() == list(range(len(cells)))
    assert (np.diff(cells.first) > 0).all()
    assert cells.kernels.tolist() == np.bincount(of_kernel).tolist()
    for name in sorted(OF_CELLS.intersection(profile.names)):
        result, expected = cells.column(name).array(), profile.column(name).array()
        assert result[of_kernel].tolist() == expected.tolist(), name
    for name in SUMS:
        sums = [0] * len(cells)
        values = profile.column(name).array().tolist()
        for cell, value in zip(of_kernel.tolist(), values, strict=True):
            sums[cell] = None if value is None or sums[cell] is None else sums[cell] + value
        assert cells.column(name).array().tolist() == sums, name


def test_kernels_of_a_cell_agree_in_all_but_numbers(profile: fastprof.Profile) -> None:
    agree(profile, cells_of(profile))


def test_cells_of_dict_lines_agree_too(of_dict: fastprof.Profile) -> None:
    agree(of_dict, cells_of(of_dict))


@pytest.mark.parametrize("name", sorted(KEY_NAMES))
def test_kernels_of_a_cell_agree_in_each_key(name: str, profile: fastprof.Profile) -> None:
    cells = cells_of(profile, [name])
    result = key_of(cells, name).array()[cells.of_kernel]
    assert result.tolist() == key_of(profile, name).array().tolist()
    agree(profile, cells)


def test_a_key_within_cells_needs_finer_cells(profile: fastprof.Profile) -> None:
    """The first kernel of a cell does not speak for the others."""
    coarse, checked = cells_of(profile), 0
    for name in KEY_NAMES:
        ids = key_of(profile, name).ids
        if (ids != ids[coarse.first][coarse.of_kernel]).any():
            checked += 1
            with pytest.raises(LookupError, match=name):
                key_of(coarse, name)
            key_of(cells_of(profile, [name]), name)
    assert checked > 2
    for name in profile.names:
        if name not in OF_CELLS and name not in SUMS:
            with pytest.raises(LookupError, match=name):
                coarse.column(name)


def test_finer_cells_keep_their_keys(profile: fastprof.Profile) -> None:
    cells = cells_of(profile, ["range"])
    finer = cells.refined([key_of(profile, "step").ids])
    assert len(finer) > len(cells)
    result = key_of(finer, "range").array()[finer.of_kernel]
    assert result.tolist() == key_of(profile, "range").array().tolist()


def test_conditions_refine_cells_too(profile: fastprof.Profile) -> None:
    assert len(cells_of(profile, where=["thread!=1"])) == len(cells_of(profile, ["thread"]))
    assert len(cells_of(profile, where={"step": "1*"})) == len(cells_of(profile, ["step"]))


def test_ideal_times_of_cells_are_sums_over_kernels(profile: fastprof.Profile) -> None:
    cells = cells_of(profile)
    for roof in ("peak", "practical"):
        of_cells, of_kernels = (ideals_of(each, profile.devices, roof) for each in (cells, profile))
        assert of_cells.ideal == pytest.approx(np.bincount(cells.of_kernel, of_kernels.ideal))
        assert of_cells.bound[cells.of_kernel].tolist() == of_kernels.bound.tolist()
        assert of_cells.is_counted[cells.of_kernel].tolist() == of_kernels.is_counted.tolist()
        assert (of_cells.ideal > 0).any()


class Counted:
    """A property that two threads request at the same time."""

    def __init__(self) -> None:
        self.began, self.computed = threading.Barrier(2), 0

    @computed_once
    def number(self) -> int:
        self.computed += 1
        with pytest.raises(threading.BrokenBarrierError):  # the other thread does not arrive
            self.began.wait(0.05)
        return self.computed


def test_a_property_of_two_threads_is_computed_once() -> None:
    counted, result = Counted(), []
    in_threads(*[lambda: result.append(counted.number)] * 2)
    assert result == [1, 1] and counted.computed == 1
