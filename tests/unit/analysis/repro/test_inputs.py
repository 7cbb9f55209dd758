"""Which calls a script can make, and the reasons why it cannot make the others."""

from dataclasses import replace

import pytest

from fastprof.analysis.repro.assumed import with_types
from fastprof.analysis.repro.inputs import NotRepeatableError, element_type, source_of
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor

X = Tensor((8, 4), "float")
NOTHING = Tensor((), "")  # as a trace records None, a text, or a list that it lacks
NUMBER = Tensor(())  # a number of old traces


def call(name: str, *values: object) -> Call:
    space, _, op = name.rpartition("::")
    return Call(space or "aten", op, tuple(Arg("", value) for value in values))


def args(of: Call, kernel: str = "") -> list[str]:
    return source_of(of, kernel).args


@pytest.mark.parametrize(
    ("given", "kernel", "reason"),
    [
        (call("item", X), "", "it has no GPU work of its own to repeat"),
        (call("triton_poi_fused_add_0", X), "", "torch.compile made it"),
        (call("copy_", X, X), "Memcpy HtoD (Pageable -> Device)", "a copy between host and GPU"),
        (call("to", X, 6), "CopyDeviceToHost", "a copy between host and GPU"),
        (call("to", X, 6), "[CUDA memcpy Host-to-Device]", "a copy between host and GPU"),
        (call("c10d::allreduce_", X), "", "communication needs the other ranks"),
        (call("nccl:all_reduce", X), "", "communication needs the other ranks"),
        (call("index", X, NOTHING), "", "the list of its indices is not recorded"),
        (call("CompiledFunction", X), "", "torch has no operator of this name"),
        (call("reshape", X, NOTHING), "", "its argument 2 is not recorded"),
        (call("einsum", NOTHING, (X, X), NOTHING), "", "its argument 1 is not recorded"),
        (call("sum", X, UNKNOWN, NUMBER, NOTHING), "", "a list, or another object"),
        (call("cumsum", X, NUMBER, NOTHING), "", "the value of a number"),
        (call("relu", Tensor((8, 4))), "", "the type of a tensor is not recorded"),
        (call("relu", Tensor((8,), "quint8")), "", "tensors of type quint8 cannot be made"),
        (call("torch::load", "/tmp/file"), "", "no operator of torch that is known"),
        (call("torch::hub.load", "user/code"), "", "no operator of torch that is known"),
        (call("save", X, "/tmp/file"), "", "torch has no operator of this name"),
        (call("from_file", "/tmp/file", True, 8), "", "it has no GPU work"),
        (call("apex.normalization::layer", X), "", r"fastprof\.op\(call=\.\.\.\) tells"),
    ],
)
def test_a_call_that_cannot_be_repeated_has_a_reason(given, kernel, reason):
    with pytest.raises(NotRepeatableError, match=reason):
        source_of(given, kernel)


def test_copies_on_one_gpu_are_repeated():
    assert args(call("copy_", X, X), "Memcpy DtoD (Device -> Device)")[0] == "T((8, 4), 'float32')"


@pytest.mark.parametrize(
    ("kernel", "wanted"),
    [
        ("CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<2u>, 3>", "bfloat16"),
        ("CatArrayBatchedCopy_aligned16_contig<OpaqueType<4u>, unsigned int, 3, 64>", "float32"),
        ("void CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "float32"),
        ("CatArrayBatchedCopy<c10::Half, unsigned int, 2, 128, 1>", "float16"),
        ("multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>",
         "float32"),
        ("multi_tensor_apply_kernel<M<1>, BinaryOpScalarFunctor<c10::BFloat16, 1, 1, 0>>",
         "bfloat16"),
        ("ampere_sgemm_128x64", None),
        ("SomethingFunctor<Mystery, 4>", None),
    ],
)  # fmt: skip
def test_kernels_of_lists_name_the_type_of_their_elements(kernel, wanted):
    assert element_type(kernel) == wanted


def test_only_tensors_in_lists_have_the_type_of_the_kernel():
    kernel = "CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>"
    pair = (Tensor((2, 3)), Tensor((4, 3)))
    assert args(call("cat", pair, 0), kernel)[0] == "[T((2, 3), 'float32'), T((4, 3), 'float32')]"
    with pytest.raises(NotRepeatableError):
        source_of(call("relu", Tensor((2, 3))), kernel)


@pytest.mark.parametrize(
    ("given", "at", "told"),
    [
        (call("embedding", Tensor((100, 4), "float"), Tensor((7,), "long")), 1, "most=100"),
        (call("gather", X, -1, Tensor((8, 2), "long"), False), 2, "most=4"),
        (call("take_along_dim", X, Tensor((8, 4), "long"), 0), 1, "most=8"),
        (call("take", X, Tensor((3,), "long")), 1, "most=32"),
        (call("index_select", Tensor((), "float"), 0, Tensor((1,), "long")), 2, "most=1"),
        (call("bernoulli", X, None), 0, "values='probabilities'"),
        (call("linalg_cholesky", Tensor((4, 4), "float"), False), 0, "values='definite'"),
        (call("embedding_bag", X, Tensor((9,), "long"), Tensor((3,), "long"), False, 0, False,
              None, False), 2, "values='offsets', most=9"),
        (call("batch_norm", X, X, X, X, X, True, 0.1, 1e-5, True), 4, "values='positive'"),
        (call("remainder", X, Tensor((4,), "int")), 1, "values='nonzero'"),
        (call("torch.nn.functional::embedding", Tensor((7,), "long"), Tensor((100, 4), "float")),
         0, "most=100"),
    ],
)  # fmt: skip
def test_values_are_those_that_the_operator_needs(given, at, told):
    text = args(given)[at]
    assert text.startswith("T(") and told in text, text


def test_a_text_that_is_required_is_one_that_the_operator_knows():
    index = Tensor((8, 4), "long")
    given = call("scatter_reduce", X, 0, index, X, NOTHING, True)
    assert args(given)[4] == "A('sum')"


@pytest.mark.parametrize(
    ("x", "filters", "result", "wanted"),
    [
        ((32, 3, 224, 224), (64, 3, 7, 7), (32, 64, 112, 112), ["[2, 2]", "[3, 3]", "1"]),
        ((32, 64, 56, 56), (64, 64, 3, 3), (32, 64, 56, 56), ["[1, 1]", "[1, 1]", "1"]),
        ((32, 256, 56, 56), (512, 256, 1, 1), (32, 512, 28, 28), ["[2, 2]", "[0, 0]", "1"]),
        ((2, 32, 9, 9), (32, 1, 3, 3), (2, 32, 7, 7), ["[1, 1]", "[0, 0]", "32"]),
        ((1, 3, 1008, 1008), (64, 3, 14, 14), (1, 64, 72, 72), ["[14, 14]", "[0, 0]", "1"]),
        ((1, 3, 1008, 1008), (64, 3, 14, 14), (1, 64, 72, 71), None),
    ],
)
def test_steps_of_a_convolution_follow_from_its_sizes(x, filters, result, wanted):
    tensors = [Tensor(shape, "float") for shape in (x, filters)]
    given = call("conv2d", *tensors, NOTHING, UNKNOWN, UNKNOWN, UNKNOWN, NUMBER)
    given = Call("aten", "conv2d", given.args, Tensor(result, "float"))
    if wanted is None:
        with pytest.raises(NotRepeatableError):
            source_of(given)
        return
    texts = args(given)
    assert [texts[3], texts[4], texts[6]] == [f"A({text})" for text in wanted]
    assert texts[5] == "A([1, 1])"


def test_tensors_without_types_have_that_of_the_arithmetic():
    untyped = Tensor((8, 4))
    given = call("add_", untyped, untyped, NUMBER)
    changed = with_types(given, "tf32")
    assert args(changed) == ["T((8, 4), 'float32')"] * 2 + ["A(1)"]
    assert args(with_types(given, "bf16"))[0] == "T((8, 4), 'bfloat16')"
    for other, compute in [
        (given, None), (given, "int8"), (call("add_", X, untyped), "fp32"),
        (call("embedding", untyped, untyped), "fp32"), (call("mine::add", untyped), "fp32"),
    ]:  # fmt: skip
        assert with_types(other, compute) is other
    filters = Tensor((16, 4, 3, 3))
    conv = call("conv2d", Tensor((2, 4, 9, 9)), filters, *[NUMBER] * 5)
    typed = with_types(replace(conv, result=Tensor((2, 16, 9, 9))), "fp16")
    assert args(typed)[2:] == ["A(None)", "A([1, 1])", "A([1, 1])", "A([1, 1])", "A(1)"]


def test_numbers_that_old_traces_lack_are_marked():
    assert args(call("add", X, X, NUMBER))[2] == "A(1)"
    weights = Tensor((4,), "float")
    norm = call("layer_norm", X, NOTHING, weights, weights, NUMBER, NUMBER)
    assert args(norm)[1] == "A([4])"
    assert args(norm)[4:] == ["A(1e-05)", "A(True)"]
    assert args(call("add", X, X, 2))[2] == "2"
