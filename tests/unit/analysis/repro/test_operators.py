"""The claim of `fastprof repro`: it repeats operators of torch, with results of the same sizes."""

import re
import warnings
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import fastprof
from fastprof.analysis.repro import script
from support.written_scripts import as_module

torch = pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

PARTS = 12  # scripts, as one has up to 200 calls
# Common functions of torch.nn.functional, by family.
FUNCTIONAL = re.findall(
    r"\w+",
    """
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d unfold linear bilinear
avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_unpool2d
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d
scaled_dot_product_attention multi_head_attention_forward
relu relu6 threshold hardtanh hardswish elu selu celu leaky_relu prelu rrelu glu gelu logsigmoid
hardshrink tanhshrink softsign softplus softmin softshrink hardsigmoid silu mish
batch_norm group_norm instance_norm layer_norm local_response_norm rms_norm normalize
dropout alpha_dropout feature_alpha_dropout dropout2d dropout3d
embedding embedding_bag one_hot pairwise_distance cosine_similarity pdist
binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss cosine_embedding_loss
cross_entropy ctc_loss gaussian_nll_loss hinge_embedding_loss kl_div l1_loss mse_loss
margin_ranking_loss multilabel_margin_loss multilabel_soft_margin_loss multi_margin_loss nll_loss
huber_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
pixel_shuffle pixel_unshuffle pad interpolate upsample_bilinear upsample_nearest grid_sample
""",
)
# Why calls of the other operators cannot run.
REFUSED = (
    "it has no GPU work of its own to repeat",
    "the type of a tensor is not recorded",  # in a list; kernels of a GPU name it
    "the list of its indices is not recorded",
    "an argument is not recorded",
    r"its argument \d+ is not recorded",
    "torch has no operator of this name",
)
FAILED = {
    # Sparse tensors are recorded as dense ones.
    "aten::_sparse_mm": "no overload",
    "aten::sparse_sampled_addmm": "Could not run .* with arguments from the 'CPU' backend",
    "aten::segment_reduce": "segment_length|lengths",
    "torch_nn::_linear_cross_entropy_batch_chunked": "no overload",  # an optional list
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": "no overload",
}
# Results of a size that depends on values, or (lstsq) on a text.
VALUES = {
    "linalg_lstsq",
    "masked_select",
    "nonzero",
    "argwhere",
    "unique_consecutive",
    "_unique2",
    "one_hot",
    "tensor_split",
}


class Outcome(NamedTuple):
    """What became of a recorded operator.

    Parameters
    ----------
    function, name : the function of the database that runs it, its name
    got : the sizes of its results; None if it fails
    wanted : those of the function, if it does nothing else
    error : why it fails
    """

    function: str
    name: str
    got: list[tuple[int, ...]] | None
    wanted: list[tuple[int, ...]] | None
    error: str


class Outcomes(NamedTuple):
    """What became of all operators.

    Parameters
    ----------
    ran : those that a script ran
    all : those whose kernel tells which case they are of; equal calls of several cases do not
    refused : those that no script repeats, with the reason
    operators : the operators of a function of the database
    """

    ran: set[str]
    all: list[Outcome]
    refused: list[str]
    operators: dict[str, set[str]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """All recorded operators, on the CPU."""
    from unit.analysis.repro.recorded_operators import record, with_kernels

    folder = tmp_path_factory.mktemp("operators")
    cases, result = record(folder / "trace.json"), Outcomes(set(), [], [], {})
    for path, told in with_kernels(folder / "trace.json", PARTS):
        names = {ns: operator.name for ns, operator in told.items()}
        written = script.script(fastprof.open(path), top=1000)
        result.refused.extend(written.refused)
        module = as_module(written.text, folder)
        for call in module.CALLS:
            got, error = repeated(module, call)
            if got is not None:
                result.ran.add(call["name"])
            ns = round(call["forward"]["gpu_ns"])
            if call["calls"] == 1 and ns in told:
                case, only = cases[told[ns].case], told[ns].only
                is_whole = case.is_plain and only and names[ns] == call["name"]
                names[ns] = call["name"]  # of one inside of it, if only that has a cost
                wanted = case.shapes if is_whole else None
                result.all.append(Outcome(case.name, call["name"], got, wanted, error))
        for ns, name in names.items():
            result.operators.setdefault(cases[told[ns].case].name, set()).add(name)
    return result


def repeated(module: ModuleType, call: Any) -> tuple[list[tuple[int, ...]] | None, str]:
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = module.tensors(module.Repeated(call, "cpu").forward())
    except Exception as error:
        return None, str(error)
    return [tuple(t.shape) for t in results], ""


def test_over_450_operators_of_torch_are_repeated(outcomes):
    assert len(outcomes.ran) > 450


def test_results_have_the_sizes_of_those_that_were_recorded(outcomes):
    told = [outcome for outcome in outcomes.all if outcome.wanted and outcome.got]
    told = [outcome for outcome in told if outcome.name.removeprefix("aten::") not in VALUES]
    assert len(told) > 300
    other = [
        (o.function, o.name, o.got, o.wanted) for o in told if o.got[: len(o.wanted)] != o.wanted
    ]
    assert other == []


def test_all_others_fail_for_a_known_reason(outcomes):
    unknown = [
        (outcome.name, outcome.error)
        for outcome in outcomes.all
        if outcome.got is None and not re.search(FAILED.get(outcome.name, "$^"), outcome.error)
    ]
    assert unknown == []
    known = re.compile("|".join(REFUSED))
    assert [line for line in outcomes.refused if not known.search(line)] == []


def test_common_functions_of_nn_are_repeated(outcomes):
    failed = {outcome.name for outcome in outcomes.all if outcome.got is None}
    refused = {line.partition(": ")[0] for line in outcomes.refused}
    for name in FUNCTIONAL:
        operators = outcomes.operators[f"nn.functional.{name}"]
        assert not operators & failed, name
        assert operators & outcomes.ran, name
        assert operators - outcomes.ran <= refused, name
