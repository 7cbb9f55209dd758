"""Signatures: the mapping from arguments of a call to parameters of a formula."""

import pytest

from fastprof.errors import OpError
from fastprof.model.call import UNKNOWN, Arg, Call, Tensor, Unknown
from fastprof.ops import CannotModel, Cost, registry
from fastprof.ops.parameters import Ints, Number, Tensors, convert, members
from fastprof.ops.registry import op, why_unknown, work
from fastprof.ops.signature import Signature, Slot

A, B, C = (Tensor((n, 2), "float32") for n in (1, 2, 3))
NOTHING = Tensor((), None)  # a non-tensor argument in a torch range


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    registry.formulas()  # no later import registers in the copy
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))


def args(*values, **named):
    return [*(Arg("", value) for value in values), *(Arg(k, v) for k, v in named.items())]


def ways(text, *values, **named):
    return list(Signature.read(text, ()).bind(args(*values, **named)))


def test_arguments_go_by_position_or_keyword():
    assert ways("f(x, y=right)", A, B) == [{"x": A, "right": B}]
    assert ways("f(x, y=right)", A, y=B) == [{"x": A, "right": B}]
    assert ways("f(x, y=right)", A) == [{"x": A}]


@pytest.mark.parametrize("keyword", ["input", "self", "x"])
def test_the_first_argument_answers_to_torchs_names_as_well(keyword):
    assert ways("f(x, y)", y=B, **{keyword: A}) == [{"x": A, "y": B}]


def test_an_argument_that_is_given_twice_fits_nothing():
    assert ways("f(x, y)", A, x=B) == []


def test_keywords_that_are_not_in_the_signature_cost_nothing():
    assert ways("f(x)", A, out=B) == [{"x": A}]


def test_too_many_arguments_fit_nothing_unless_they_say_nothing():
    assert ways("f(x)", A, B) == []
    assert ways("f(x)", A, NOTHING, None, 3) == [{"x": A}]
    assert ways("f(x, ...)", A, B) == [{"x": A}]
    assert ways("f(x, _)", A, B) == []
    assert ways("f(x, _)", A, 1.5) == [{"x": A}]


def test_two_stars_gather_all_tensors_that_follow():
    assert ways("f(x, others**)", A, 1, B, NOTHING, (C, None), "text", None) == [
        {"x": A, "others": (B, C)}
    ]
    assert ways("f(x, others**)", A) == [{"x": A, "others": ()}]
    assert ways("f(others**)", 0.5, A) == [{"others": (A,)}]


def test_names_that_a_generator_makes_have_the_formula_of_one(monkeypatch):
    monkeypatch.setattr(registry, "GENERATED", {})

    @op(None, aten=("lib::sum_codegen",))
    def total(x: Tensor) -> Cost:
        return Cost(x.shape[0], 0)

    registry.generated(r"lib::sum_\w+_codegen", "lib::sum_codegen")
    call = Call("lib", "sum_wide_codegen", tuple(args(A)))
    assert work(call, "fprop").cost == Cost(1, 0)
    assert why_unknown(Call("lib", "mean_wide_codegen", ()), "fprop") == "no formula"


def test_a_list_of_tensors_is_put_together_again():
    assert ways("f(x*, dim)", A, B, 1)[0] == {"x": (A, B), "dim": 1}
    assert ways("f(x*, dim)", (A, B), 1)[0] == {"x": (A, B), "dim": 1}
    assert ways("f(x*, dim)", A, B, dim=1)[-1] == {"x": (A, B), "dim": 1}
    assert {"x": (A, B)} in ways("f(x*, dim)", A, B)
    assert ways("f(tensors*)", *[], tensors=A) == [{"tensors": (A,)}]


def test_a_tensor_may_follow_a_list():
    assert ways("f(x, indices*, values, _)", A, B, C, A, NOTHING)[0] == {
        "x": A,
        "indices": (B, C),
        "values": A,
    }


def test_lists_of_one_call_are_of_one_length():
    result = ways("f(x*, y*, _)", A, B, A, B, NOTHING)
    assert result[0] == {"x": (A, B), "y": (A, B)}
    assert ways("f(x*, y*, _)", A, B, C, NOTHING) == []


def test_lists_whose_shapes_differ_are_no_lists_of_one_call():
    assert ways("f(x*, y*)", A, B, C, A) == []


def test_a_list_may_be_empty_where_the_signature_says_so():
    text = "f(x*, grad*, largest*?, step*, _)"
    step = Tensor((), "float32")
    five = ways(text, A, B, A, B, step, step, NOTHING)
    assert five[0] == {"x": (A, B), "grad": (A, B), "largest": (), "step": (step, step)}
    six = ways(text, A, B, A, B, A, B, step, step, NOTHING)
    assert six[0]["largest"] == (A, B)


def test_an_empty_list_leaves_one_value_in_a_range_and_none_or_one_in_a_marker():
    text = "f(x*, grad*, largest*?, step*, _)"
    result = {"x": (A, B), "grad": (A, B), "largest": (), "step": (NOTHING, NOTHING)}
    assert ways(text, A, B, A, B, NOTHING, NOTHING, NOTHING, NOTHING)[0] == result
    step = Tensor((), "float32")
    result = {"x": (A,), "grad": (A,), "largest": (), "step": (step,)}
    assert ways(text, A, A, (), step, 1.0)[0] == result
    assert ways(text, A, A, step, 1.0)[0] == result


def test_tensors_of_one_shape_are_cut_by_how_many_values_follow_them():
    text = "f(x*, grad*, momentum*?, _, _)"
    assert ways(text, *[A] * 6, NOTHING, NOTHING)[0]["momentum"] == (A, A)
    assert ways(text, *[A] * 6, NOTHING, NOTHING, NOTHING)[0]["x"] == (A, A, A)


def test_only_lists_after_the_second_may_hold_tensors_without_dimensions_instead():
    assert ways("f(x*, y*, step*)", A, B, A, B, NOTHING, NOTHING) != []
    assert ways("f(x*, y*)", A, B, NOTHING, NOTHING) == []


@pytest.mark.parametrize("text", ["", "f(", "f(x y)", "f(x=)", "f(x**, y)", "f(x, )", "9 8"])
def test_a_signature_that_does_not_parse_is_refused(text):
    with pytest.raises(ValueError, match="signature"):
        Signature.read(text, ())


def test_a_name_alone_has_the_parameters_of_its_formula():
    slots = (Slot("x", "x"), Slot("y", "y"))
    assert Signature.read("mylib::f", slots) == Signature("mylib::f", slots)


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (A, Tensor, A),
        (NOTHING, Tensor, NOTHING),
        (NOTHING, Tensor | None, None),
        (None, Tensor | None, None),
        (3, Ints, 3),
        ((1, 2), Ints, (1, 2)),
        (3, float, 3),
        (True, bool, True),
        (2.5, Number, 2.5),
        ("same", str | Ints, "same"),
        ((A, B), Tensors, (A, B)),
        (NOTHING, int | Unknown, UNKNOWN),
        (UNKNOWN, Tensor | Unknown, UNKNOWN),
        (Tensor((), "float32"), float | Unknown, UNKNOWN),
    ],
)
def test_values_of_the_types_that_a_formula_takes_pass(value, annotation, expected):
    assert convert(value, members(annotation)) == expected


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (None, Tensor),
        (3, Tensor),
        (A, int),
        (NOTHING, int),
        (UNKNOWN, Ints),
        (True, int),
        ("3", int),
        (2.5, int),
        ((1, 2.5), Ints),
        ((A, 3), Tensors),
        (Tensor((-1,), "float32"), Tensor),
        (Tensor((2,), 7), Tensor),
        (Tensor([2], "float32"), Tensor),
    ],
)
def test_other_values_do_not(value, annotation):
    with pytest.raises(CannotModel):
        convert(value, members(annotation))


def test_the_first_signature_that_fits_serves():
    @op("test_overloads", "f(x, other)", "f(x, scale)")
    def formula(x: Tensor, other: Tensor | None = None, scale: Number = 1):
        return Cost(0 if other is None else 1, 0)

    def flops(*values):
        return work(Call("test_overloads", "f", tuple(args(*values))), "fprop").cost.flops

    assert (flops(A, B), flops(A, 3), flops(A)) == (1, 0, 0)


def test_a_formula_that_fails_is_told_and_breaks_nothing():
    @op("test_failing", "f", aten=("test_failing::f",))
    def formula(x: Tensor):
        return Cost(x.shape[7], 0)

    call = Call("test_failing", "f", tuple(args(A)))
    assert work(call, "fprop") is None
    assert why_unknown(call, "fprop") == "its formula failed: IndexError: tuple index out of range"
    assert why_unknown(call, "bprop") == "no formula for the backward pass"


@pytest.mark.parametrize("answer", [None, 3, (Cost(1, 1), 2), (1, 1, 1)])
def test_an_answer_that_is_no_cost_is_told(answer):
    @op(f"test_answer_{answer}", "f")
    def formula(x: Tensor):
        return answer

    call = Call(f"test_answer_{answer}", "f", tuple(args(A)))
    assert "expected a Cost" in why_unknown(call, "fprop")


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (lambda: op("mine", "f", aten="mylib::f")(len), "expected a list of names"),
        (lambda: op("", "f")(lambda x: None), "expected the module"),
        (lambda: op(None, "f")(lambda x: None), "expected the module"),
        (lambda: op("mine", "f")(3), "expected a function, found 3"),
        (lambda: op("mine", "f(y)")(lambda x: None), "the function has no parameter y"),
        (lambda: op("mine", "f(_)")(lambda x: None), "omits x, which has no default"),
        (lambda: op("mine", "f(")(lambda x: None), "expected a name, or name"),
        (lambda: op("mine", "f")(lambda *x: None), "must be positional-or-keyword or keyword-only"),
        (
            lambda: op("aten2", aten=("aten::mm",))(lambda x: None),
            r"aten\.mm already has a formula",
        ),
    ],
)
def test_a_wrong_registration_is_a_clear_error(register, message):
    with pytest.raises(OpError, match=message):
        register()


def test_an_argument_with_an_at_has_a_keyword_and_no_place():
    signature = Signature.read("f(x, ..., @batch)", ())
    assert signature.parameters == {"x", "batch"}
    told = (Arg("", A), Arg("batch", "decode"))
    assert list(signature.bind(told)) == [{"x": A, "batch": "decode"}]
    assert list(signature.bind((Arg("", A), Arg("", "decode")))) == [{"x": A}]
