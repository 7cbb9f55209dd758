"""Broadcasting, and the params of calls without a model."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import tensors_text
from fastprof.ops.cost import CannotModel
from fastprof.ops.tensor import broadcast, tensor_text


@given(st.lists(st.lists(st.integers(0, 3), max_size=4).map(tuple), min_size=1, max_size=3))
def test_broadcast_is_numpys(shapes):
    try:
        expected = numpy.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(CannotModel):
            broadcast(*shapes)
    else:
        assert broadcast(*shapes) == expected


def test_tensor_prints_without_blanks():
    assert tensor_text(Tensor((35, 20, 200), "float32")) == "[35,20,200]fp32"
    assert tensor_text(Tensor((), "float32")) == "[]fp32"


def test_params_of_a_call_without_a_model_are_its_tensors():
    norm = [(35, 20, 200), (200,), (200,)]
    arguments = tuple(Arg("", Tensor(shape, "float32")) for shape in norm)
    expected = "T=[(35,20,200),(200,),(200,)],['float32','float32','float32']"
    assert tensors_text(Call("torch.nn.functional", "layer_norm", arguments)) == expected
    loss = (Arg("", Tensor((700, 33278), "float32")), Arg("", Tensor((700,), "int64")))
    assert tensors_text(Call("", "", (*loss, Arg("", None)))) == (
        "T=[(700,33278),(700,)],['float32','int64']"
    )
    assert tensors_text(Call("Tensor", "backward")) == "T=[],[]"


def test_params_flatten_lists_of_tensors():
    arguments = (Arg("", (Tensor((2,), None), 3, (Tensor((), "c10::Half"),))), Arg("dim", 0))
    assert tensors_text(Call("torch", "cat", arguments)) == "T=[(2,),()],['na','float16']"
