"""Convolutions: FLOPs, bytes, params, and the parts of forward and backward."""

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.model.call import UNKNOWN, Call, Tensor
from fastprof.ops import Cost, why_unknown, work
from fastprof.ops.convolution.sizes import touched
from fastprof.ops.cost import Part
from fastprof.ops.registry import formulas
from support.hypothesis_profiles import examples
from unit.ops.ops_calls import aten, bf16, fp16, fp32, python, sizes, tensor
from unit.ops.ops_examples import Example, Rows, listed

NN: Final = "torch.nn.functional"

# The same convolution through every API. x [2, 4, 8, 8] * w [6, 2, 3, 3] in 2 groups, stride 2,
# padding 1: (8 + 2 * 1 - 2 - 1) // 2 + 1 = 4, output [2, 6, 4, 4].
X, W, B, Y = fp32(2, 4, 8, 8), fp32(6, 2, 3, 3), fp32(6), fp32(2, 6, 4, 4)
ONE, TWO = (1, 1), (2, 2)
IN, WEIGHTS, OUT = 2 * 4 * 8 * 8, 6 * 2 * 3 * 3, 2 * 6 * 4 * 4
FLOPS = 2 * OUT * (2 * 3 * 3)
MOVED = 4 * (IN + WEIGHTS + OUT)
FIELDS = "N=2,C=4,H=8,W=8,K=6,P=4,Q=4,R=3,S=3,ph=1,pw=1,U=2,V=2,dh=1,dw=1,g=2"
PARAMS = f"{FIELDS},fp32,"
# The bias is read with the other operands; a separate kernel also reads and writes the output.
BIASED_FLOPS, BIASED_MOVED = FLOPS + OUT, MOVED + 4 * 6 + 4 * (2 * OUT)
# dx and dw: the other two tensors read, the gradient written; db reads the output's gradient.
BOTH_FLOPS, BOTH_MOVED = 2 * FLOPS, 2 * MOVED
ALL_FLOPS, ALL_MOVED = BOTH_FLOPS + OUT, BOTH_MOVED + 4 * (OUT + 6)

# Its transposed counterpart: x [2, 6, 4, 4] * w [6, 2, 3, 3] in 2 groups, stride 2, padding 1, and
# 1 more: (4 - 1) * 2 - 2 * 1 + 2 + 1 + 1 = 8, output [2, 4, 8, 8]. The same multiply-adds, 2 * 96 *
# 18.
TX, TY, TB = Y, X, fp32(4)
T_FIELDS = "N=2,C=6,H=4,W=4,K=4,P=8,Q=8,R=3,S=3,ph=1,pw=1,U=2,V=2,dh=1,dw=1,g=2"
T_PARAMS = f"{T_FIELDS},fp32,"
T_BIASED_FLOPS, T_BIASED_MOVED = FLOPS + IN, MOVED + 4 * 4 + 4 * (2 * IN)
T_ALL_FLOPS, T_ALL_MOVED = BOTH_FLOPS + IN, BOTH_MOVED + 4 * (IN + 4)

BIASED = """
conv2d X W B TWO ONE ONE 2
cudnn_convolution|miopen_convolution X W B ONE TWO ONE 2 false false
mkldnn_convolution X W B ONE TWO ONE 2
convolution|convolution_overrideable X W B TWO ONE ONE false (0,0) 2
_convolution X W B TWO ONE ONE false (0,0) 2 false false true
_convolution X W B TWO ONE ONE false (0,0) 2 false false true true
"""
UNBIASED = """
conv2d X W - TWO ONE ONE 2
conv2d X W - 2 1 1 2
cudnn_convolution X W ONE TWO ONE 2 false false
cudnn_convolution X W ONE TWO ONE 2 false false true
cudnn_convolution X W - ONE TWO ONE 2 false false
_convolution X W - TWO ONE ONE false (0,0) 2 false false true true
"""
TRANSPOSED_BIASED = """
conv_transpose2d TX W TB TWO ONE ONE 2 ONE
cudnn_convolution_transpose TX W TB ONE ONE TWO ONE 2 false false
miopen_convolution_transpose TX W TB ONE ONE TWO ONE 2 false false
convolution TX W TB TWO ONE ONE true ONE 2
_convolution TX W TB TWO ONE ONE true ONE 2 false false true true
"""
TRANSPOSED_UNBIASED = """
conv_transpose2d TX W - TWO ONE ONE 2 ONE
cudnn_convolution_transpose TX W ONE ONE TWO ONE 2 false false
cudnn_convolution_transpose TX W ONE ONE TWO ONE 2 false false true
convolution_overrideable TX W - TWO ONE ONE true ONE 2
"""

# Without groups: x [2, 4, 8, 8] * w [6, 4, 3, 3], the same strides and output.
W1 = fp32(6, 4, 3, 3)
W1_ELEMENTS = 6 * 4 * 3 * 3
FLOPS1, MOVED1 = 2 * OUT * (4 * 3 * 3), 4 * (IN + W1_ELEMENTS + OUT)
PARAMS1 = PARAMS.replace("g=2", "g=1")
SLOW = """
thnn_conv2d|thnn_conv2d_forward|_slow_conv2d_forward X W1 (3,3) - TWO ONE
slow_conv_dilated2d X W1 (3,3) - TWO ONE ONE
_convolution_nogroup X W1 - TWO ONE ONE false (0,0)
"""
# Each of 4 channels to 2: w [8, 1, 3, 3], output [2, 8, 4, 4].
WD, YD = fp32(8, 1, 3, 3), fp32(2, 8, 4, 4)
FLOPSD, MOVEDD = 2 * (2 * 8 * 4 * 4) * (3 * 3), 4 * (IN + 8 * 3 * 3 + 2 * 8 * 4 * 4)
PARAMSD = PARAMS.replace("K=6", "K=8").replace("g=2", "g=4")
DEPTHWISE = """
_conv_depthwise2d|thnn_conv_depthwise2d X WD (3,3) - TWO ONE ONE
thnn_conv_depthwise2d_forward X WD (3,3) - TWO ONE ONE
miopen_depthwise_convolution X WD - ONE TWO ONE 4 false false
conv2d X WD - 2 1 1 4
"""

# x [2, 4, 9] * w [6, 4, 3], stride 2, dilation 2: (9 - 2 * 2 - 1) // 2 + 1 = 3, output [2, 6, 3].
X1D, W1D = fp32(2, 4, 9), fp32(6, 4, 3)
# With both 2, every other position of x is read.
FLOPS1D, MOVED1D = 2 * (2 * 6 * 3) * (4 * 3), 4 * (2 * 4 * 5 + 6 * 4 * 3 + 2 * 6 * 3)
T_MOVED1D = 4 * (2 * 4 * 9 + 6 * 4 * 3 + 2 * 6 * 3)
PARAMS1D = "N=2,C=4,W=9,K=6,Q=3,S=3,pw=0,V=2,dw=2,g=1,fp32,"
# Transposed: x [2, 6, 3] to (3 - 1) * 2 + 2 * 2 + 1 = 9, output [2, 4, 9].
T_PARAMS1D = "N=2,C=6,W=3,K=4,Q=9,S=3,pw=0,V=2,dw=2,g=1,fp32,"
# x [2, 4, 5, 6, 7] * w [6, 4, 1, 2, 3], padding (0, 1, 1): (5, 6 + 2 - 1, 7 + 2 - 2).
X3D, W3D = fp32(2, 4, 5, 6, 7), fp32(6, 4, 1, 2, 3)
FLOPS3D = 2 * (2 * 6 * 5 * 7 * 7) * (4 * 1 * 2 * 3)
MOVED3D = 4 * (2 * 4 * 5 * 6 * 7 + 6 * 4 * 1 * 2 * 3 + 2 * 6 * 5 * 7 * 7)
PARAMS3D = (
    "N=2,C=4,D=5,H=6,W=7,K=6,Z=5,P=7,Q=7,T=1,R=2,S=3,pd=0,ph=1,pw=1,sd=1,U=1,V=1,"
    "dd=1,dh=1,dw=1,g=1,fp32,"
)
T_PARAMS3D = (
    "N=2,C=6,D=5,H=7,W=7,K=4,Z=5,P=6,Q=7,T=1,R=2,S=3,pd=0,ph=1,pw=1,sd=1,U=1,V=1,"
    "dd=1,dh=1,dw=1,g=1,fp32,"
)
K3, S3, P3, D3 = (1, 2, 3), (1, 1, 1), (0, 1, 1), (1, 1, 1)
THREE = """
conv3d X3D W3D - 1 P3
slow_conv3d|slow_conv3d_forward X3D W3D K3 - S3 P3
slow_conv_dilated3d X3D W3D K3 - S3 P3 D3
"""
TX3D = fp32(2, 6, 5, 7, 7)
T_THREE = """
conv_transpose3d TX3D W3D - 1 P3
slow_conv_transpose3d TX3D W3D K3 - S3 P3 (0,0,0) D3
"""
# Depthwise: w [4, 1, 1, 2, 3], output [2, 4, 5, 7, 7].
DEPTHWISE_COST = (
    2 * (2 * 4 * 5 * 7 * 7) * (1 * 2 * 3),
    4 * (2 * 4 * 5 * 6 * 7 + 4 * 1 * 2 * 3 + 2 * 4 * 5 * 7 * 7),
)
DEPTHWISE_PARAMS = PARAMS3D.replace("K=6", "K=4").replace("g=1", "g=4")

# [t, n, c] = [9, 2, 4] * [s, c, k] = [3, 4, 6], padding 1: output [9, 2, 6].
TBC = "conv_tbc fp32[9,2,4] fp32[3,4,6] B 1"
TBC_OUT = 9 * 2 * 6
TBC_FLOPS, TBC_MOVED = 2 * TBC_OUT * (3 * 4), 4 * (9 * 2 * 4 + 3 * 4 * 6 + TBC_OUT)
TBC_PARAMS = "N=2,C=4,W=9,K=6,Q=9,S=3,pw=1,V=1,dw=1,g=1,fp32,"

both = Rows(globals(), "torch", "aten")
FORWARD: Final = [
    *both(BIASED, BIASED_FLOPS, BIASED_MOVED, PARAMS),
    # A valid convolution of an image one larger: (9 - 2 - 1) // 2 + 1 = 4.
    *both(
        "_convolution_mode fp32[2,4,9,9] W B TWO 'valid' ONE 2",
        *(BIASED_FLOPS, BIASED_MOVED + 4 * 2 * 4 * (9 * 9 - 8 * 8)),
        PARAMS.replace("8,W=8", "9,W=9").replace("ph=1,pw=1", "ph=0,pw=0"),
    ),
    *both(UNBIASED, FLOPS, MOVED, PARAMS),
    *both(TRANSPOSED_BIASED, T_BIASED_FLOPS, T_BIASED_MOVED, T_PARAMS),
    *both(TRANSPOSED_UNBIASED, FLOPS, MOVED, T_PARAMS),
    *both(SLOW, FLOPS1, MOVED1, PARAMS1),
    # x [2, 6, 4, 4] * w [6, 4, 3, 3] -> [2, 4, 8, 8], transposed.
    *both(
        """slow_conv_transpose2d TX W1 (3,3) - TWO ONE ONE ONE
        _convolution_nogroup TX W1 - TWO ONE ONE true ONE""",
        *(FLOPS1, MOVED1, T_PARAMS.replace("g=2", "g=1")),
    ),
    *both(DEPTHWISE, FLOPSD, MOVEDD, PARAMSD),
    *both("conv1d X1D W1D - 2 0 2", FLOPS1D, MOVED1D, PARAMS1D),
    *both("conv_transpose1d fp32[2,6,3] W1D - 2 0 0 1 2", FLOPS1D, T_MOVED1D, T_PARAMS1D),
    *both(THREE, FLOPS3D, MOVED3D, PARAMS3D),
    *both(T_THREE, FLOPS3D, MOVED3D, T_PARAMS3D),
    *both("conv_depthwise3d X3D fp32[4,1,1,2,3] K3 - S3 P3 D3", *DEPTHWISE_COST, DEPTHWISE_PARAMS),
    *both(TBC, TBC_FLOPS + TBC_OUT, TBC_MOVED + 4 * 6 + 4 * (2 * TBC_OUT), TBC_PARAMS),
    # Fused operations count no FLOPs; the addend z, of the output's shape, is read.
    *both(
        "cudnn_convolution_relu|miopen_convolution_relu X W B TWO ONE ONE 2",
        *(FLOPS, MOVED + 4 * 6, PARAMS),
    ),
    *both(
        """cudnn_convolution_add_relu X W Y 1.0 B TWO ONE ONE 2
        miopen_convolution_add_relu X W Y - B TWO ONE ONE 2""",
        *(FLOPS, MOVED + 4 * 6 + 4 * OUT, PARAMS),
    ),
]

OF_FORWARD_CALLS: Final = [
    *both(BIASED, ALL_FLOPS, ALL_MOVED, PARAMS, "bprop"),
    *both(UNBIASED, BOTH_FLOPS, BOTH_MOVED, PARAMS, "bprop"),
    *both(TRANSPOSED_BIASED, T_ALL_FLOPS, T_ALL_MOVED, T_PARAMS, "bprop"),
    *both(TRANSPOSED_UNBIASED, BOTH_FLOPS, BOTH_MOVED, T_PARAMS, "bprop"),
    *both(SLOW, 2 * FLOPS1, 2 * MOVED1, PARAMS1, "bprop"),
    *both(DEPTHWISE, 2 * FLOPSD, 2 * MOVEDD, PARAMSD, "bprop"),
    *both(THREE, 2 * FLOPS3D, 2 * MOVED3D, PARAMS3D, "bprop"),
    *both(*(TBC, 2 * TBC_FLOPS + TBC_OUT, 2 * TBC_MOVED + 4 * (TBC_OUT + 6), TBC_PARAMS, "bprop")),
]

VALUES: Final = {
    "x": X, "w": W, "b": B, "y": Y, "tx": TX, "ty": TY, "w1": W1, "wd": WD, "yd": YD,
    "x3": X3D, "w3": W3D, "tx3": TX3D, "w3d": fp32(4, 1, 1, 2, 3), "no": False, "one": ONE,
    "two": TWO, "k3": K3, "s3": S3, "p3": P3, "d3": D3, "yes2": (True,) * 2, "yes3": (True,) * 3,
    "no3": (True, True, False),
}  # fmt: skip


def rows(flops: int, moved: int | None, params: str | None, table: str) -> list[Example]:
    """Calls of torch's operators, which have equal costs."""
    return listed(table, VALUES, flops, moved, params)


# Stride first, or padding first.
YES3, NO3 = (True, True, True), (True, True, False)
STEPS, SWAPPED = (TWO, ONE, ONE), (ONE, TWO, ONE)
BACKWARD: Final = [
    *rows(
        ALL_FLOPS, ALL_MOVED, PARAMS,
        """convolution_backward y x w (6) two one one no (0,0) 2 yes3
        convolution_backward_overrideable y x w two one one no (0,0) 2 yes3
        cudnn_convolution_backward x y w one two one 2 no no yes3
        miopen_convolution_backward x y w one two one 2 no no yes3
        mkldnn_convolution_backward x y w one two one 2 yes3""",
    ),
    *rows(
        BOTH_FLOPS, BOTH_MOVED, PARAMS,
        """convolution_backward y x w - two one one no (0,0) 2 no3
        convolution_backward y x w (0) two one one no (0,0) 2 no3
        cudnn_convolution_backward x y w one two one 2 no no yes2
        cudnn_convolution_backward x y w one two one 2 no no true yes2""",
    ),
    *rows(
        2 * FLOPS1, 2 * MOVED1, PARAMS1,
        """_slow_conv2d_backward y x w1 (3,3) two one no3
        slow_conv_dilated2d_backward y x w1 (3,3) two one one no3""",
    ),
    # With buffers among the arguments, the mask is not read, and db may also be computed.
    *rows(
        2 * FLOPS1 + OUT, 2 * MOVED1 + 4 * (OUT + 6), PARAMS1,
        """_slow_conv2d_backward y x w1 (3,3) two one fp32[36,16] no3
        thnn_conv2d_backward y x w1 (3,3) two one fp32[36,16] fp32[0] no3""",
    ),
    *rows(
        2 * FLOPSD, 2 * MOVEDD, PARAMSD,
        """_conv_depthwise2d_backward yd x wd (3,3) two one one yes2
        thnn_conv_depthwise2d_backward yd x wd (3,3) two one one yes2
        miopen_depthwise_convolution_backward x yd wd one two one 4 no no no3""",
    ),
    *rows(
        T_ALL_FLOPS, T_ALL_MOVED, T_PARAMS,
        """convolution_backward ty tx w (4) two one one true one 2 yes3
        cudnn_convolution_transpose_backward tx ty w one one two one 2 no no yes3
        miopen_convolution_transpose_backward tx ty w one one two one 2 no no yes3""",
    ),
    *rows(
        BOTH_FLOPS, BOTH_MOVED, T_PARAMS,
        "cudnn_convolution_transpose_backward tx ty w one one two one 2 no no true yes2",
    ),
    *rows(
        2 * FLOPS1 + IN, 2 * MOVED1 + 4 * (IN + 4), T_PARAMS.replace("g=2", "g=1"),
        "slow_conv_transpose2d_backward ty tx w1 (3,3) two one one one fp32[36,16] fp32[8,8] no3",
    ),
    *rows(
        2 * FLOPS3D, 2 * MOVED3D, PARAMS3D,
        "slow_conv_dilated3d_backward tx3 x3 w3 k3 s3 p3 d3 no3",
    ),
    *rows(
        2 * FLOPS3D + 2 * 6 * 5 * 7 * 7, 2 * MOVED3D + 4 * (2 * 6 * 5 * 7 * 7 + 6), PARAMS3D,
        "slow_conv3d_backward tx3 x3 w3 k3 s3 p3 fp32[24,245] fp32[0] no3",
    ),
    *rows(
        2 * FLOPS3D + 2 * 4 * 5 * 6 * 7, 2 * MOVED3D + 4 * (2 * 4 * 5 * 6 * 7 + 4), None,
        "slow_conv_transpose3d_backward x3 tx3 w3 k3 s3 p3 (0,0,0) d3 fp32[24,245] fp32[0] no3",
    ),
    *rows(
        2 * DEPTHWISE_COST[0], 2 * DEPTHWISE_COST[1],
        DEPTHWISE_PARAMS,
        "conv_depthwise3d_backward fp32[2,4,5,7,7] x3 w3d k3 s3 p3 d3 no3",
    ),
    *rows(
        2 * TBC_FLOPS + TBC_OUT, 2 * TBC_MOVED + 4 * (TBC_OUT + 6), TBC_PARAMS,
        "conv_tbc_backward fp32[9,2,6] fp32[9,2,4] fp32[3,4,6] b 1",
    ),
]  # fmt: skip

SHAPE, W_SHAPE = "(2,4,8,8)", "(6,2,3,3)"
ONE_GRADIENT: Final = [
    *rows(
        FLOPS, MOVED, PARAMS,
        f"""cudnn_convolution_backward_input {SHAPE} y w one two one 2 no no true
        miopen_convolution_backward_input {SHAPE} y w one two one 2 no no
        mkldnn_convolution_backward_input {SHAPE} y w one two one 2 true
        cudnn_convolution_backward_weight {W_SHAPE} y x one two one 2 no no true
        miopen_convolution_backward_weight {W_SHAPE} y x one two one 2 no no
        mkldnn_convolution_backward_weights {W_SHAPE} y x one two one 2 true""",
    ),
    *rows(
        FLOPSD, MOVEDD, PARAMSD,
        f"""miopen_depthwise_convolution_backward_input {SHAPE} yd wd one two one 4 no no
        miopen_depthwise_convolution_backward_weight (8,1,3,3) yd x one two one 4 no no""",
    ),
    *rows(
        FLOPS, MOVED, T_PARAMS,
        f"""cudnn_convolution_transpose_backward_input ty w one two one 2 no no
        cudnn_convolution_transpose_backward_weight {W_SHAPE} ty tx one two one 2 no no
        miopen_convolution_transpose_backward_input ty w one two one 2 no no
        miopen_convolution_transpose_backward_weight {W_SHAPE} ty tx one two one 2 no no""",
    ),
    *rows(
        OUT, 4 * (OUT + 6), "[2,6,4,4]fp32",
        """cudnn_convolution_backward_bias y
        cudnn_convolution_transpose_backward_bias y
        miopen_convolution_backward_bias y""",
    ),
]  # fmt: skip

# Only shapes of tensors, [] for other arguments: FLOPs as above, bytes unknown.
NA = "ph=na,pw=na,U=na,V=na,dh=na,dw=na"
SIZES_FIELDS = FIELDS.replace("ph=1,pw=1,U=2,V=2,dh=1,dw=1", NA)
X_, W_, Y_ = "[2,4,8,8]", "[6,2,3,3]", "[2,6,4,4]"
SIZES_ONLY: Final = [
    *rows(
        FLOPS, None, f"N=2,C=6,H=4,W=4,K=na,P=na,Q=na,R=3,S=3,{NA},g=na,na,",
        f"conv_transpose2d {Y_} {W_} []*6",
    ),
    *rows(FLOPS, None, None, f"cudnn_convolution_transpose {Y_} {W_} []*8"),
    # 6 channels fit a weight [6, 4, ..] only if it is transposed.
    *rows(FLOPS1, None, None, f"convolution {Y_} [6,4,3,3] []*7"),
    *rows(ALL_FLOPS, None, f"{SIZES_FIELDS},na,", f"convolution_backward {Y_} {X_} {W_} []*8"),
    *rows(ALL_FLOPS, None, None, f"cudnn_convolution_backward {X_} {Y_} {W_} []*8"),
    *rows(T_ALL_FLOPS, None, None, f"convolution_backward {X_} {Y_} {W_} []*8"),
    *rows(
        FLOPS, None, f"N=2,C=na,H=na,W=na,K=6,P=4,Q=4,R=3,S=3,{NA},g=na,na,",
        f"cudnn_convolution_backward_input [] {Y_} {W_} []*7",
    ),
    *rows(FLOPS, None, None, f"cudnn_convolution_add_relu {X_} {W_} {Y_} []*6"),
    *rows(OUT, None, "[2,6,4,4]na", f"cudnn_convolution_backward_bias {Y_}"),
]  # fmt: skip

# (size + 2 p - d (r - 1) - 1) // stride + 1 in each dimension, computed by hand.
FORMS: Final = [
    # Defaults: stride 1, no padding. 8 - 2 = 6.
    (("conv2d", X, W1), {}, 2 * (2 * 6 * 6 * 6) * 36),
    # 'same' keeps 8, and pads an even kernel asymmetrically: all keywords.
    (("conv2d", X), {"weight": fp32(6, 4, 2, 4), "padding": "same"}, 2 * (2 * 6 * 64) * 32),
    (("conv2d",), {"input": X, "weight": W1, "bias": None, "padding": "valid"}, 2 * 432 * 36),
    # Numbers by dimension: (8 + 2 - 2 - 1) // 1 + 1 = 8 by (8 - 4 - 1) // 2 + 1 = 2.
    (("conv2d", X, W1, None, (1, 2), (1, 0)), {"dilation": (1, 2)}, 2 * (2 * 6 * 8 * 2) * 36),
    # A list of one number is for all dimensions.
    (("conv2d", X, W1, None, (2,)), {"padding": (1,)}, FLOPS1),
    # No batch.
    (("conv2d", fp32(4, 8, 8), W1), {"stride": 2, "padding": 1}, FLOPS1 // 2),
    (("conv1d", fp32(4, 9), W1D), {"stride": 2, "dilation": 2}, FLOPS1D // 2),
    # Transposed, by keywords; the order differs from ATen's convolution.
    (
        ("conv_transpose2d", TX, W),
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
        FLOPS,
    ),
    (("conv_transpose2d", fp32(6, 4, 4), W1), {}, FLOPS1 // 2),
    # An empty batch, and no channels.
    (("conv2d", fp32(0, 4, 8, 8), W1), {}, 0),
    (("conv2d", fp32(2, 0, 8, 8), fp32(6, 0, 3, 3)), {}, 0),
]

EXAMPLES: list[Example] = [*FORWARD, *OF_FORWARD_CALLS, *BACKWARD, *ONE_GRADIENT, *SIZES_ONLY]


@pytest.mark.parametrize(("values", "named", "flops"), FORMS)
def test_arguments_may_be_left_out_named_or_given_by_dimension(values, named, flops):
    name, *rest = values
    assert only(python(NN, name, *rest, **named)).cost.flops == flops


def parts(call: Call, direction: str = "fprop") -> tuple[Part, ...]:
    done = work(call, direction)
    assert done is not None, why_unknown(call, direction)
    return done.parts


def only(call: Call, direction: str = "fprop") -> Part:
    (part,) = parts(call, direction)
    return part


def test_forward_is_one_part_and_the_bias_another():
    main, bias = parts(python(NN, "conv2d", X, W, B, 2, 1, 1, 2))
    assert (main.role, main.optional, main.kernels) == ("main", False, {"convolution", "gemm"})
    assert main.cost == Cost(FLOPS, MOVED + 4 * 6)
    assert (bias.role, bias.op, bias.optional, bias.kernels) == (
        *("bias", "bias", True),
        {"elementwise"},
    )
    assert bias.cost == Cost(OUT, 4 * 2 * OUT)
    assert bias.params == "N=2,K=6,P=4,Q=4,fp32,"


def test_gradients_are_told_apart_by_the_names_of_their_kernels():
    dgrad, wgrad, bias = parts(python(NN, "conv2d", X, W, B, 2, 1, 1, 2), "bprop")
    assert [part.role for part in (dgrad, wgrad, bias)] == ["dgrad", "wgrad", "bias"]
    assert [part.layout for part in (dgrad, wgrad, bias)] == ["dgrad", "wgrad", None]
    assert dgrad.optional and wgrad.optional and bias.optional
    assert dgrad.cost == wgrad.cost == Cost(FLOPS, MOVED)
    assert dgrad.params == wgrad.params == PARAMS
    assert (bias.op, bias.kernels, bias.cost) == ("bias", {"reduction"}, Cost(OUT, 4 * (OUT + 6)))


@pytest.mark.parametrize(
    ("mask", "roles"),
    [
        ((True, True, True), ["dgrad", "wgrad", "bias"]),
        ((False, True, True), ["wgrad", "bias"]),
        ((True, False, False), ["dgrad"]),
        ((False, False, True), ["bias"]),
        ((False, True), ["wgrad"]),
    ],
)
def test_the_mask_says_which_gradients_are_computed(mask, roles):
    call = aten("convolution_backward", Y, X, W, (6,), *STEPS, False, (0, 0), 2, mask)
    result = parts(call)
    assert [part.role for part in result] == roles
    assert not any(part.optional for part in result)


def test_no_gradient_at_all_costs_nothing():
    call = aten("convolution_backward", Y, X, W, (6,), *STEPS, False, (0, 0), 2, (False,) * 3)
    assert only(call).cost == Cost(0, 0)


def test_without_a_mask_a_gradient_exists_where_a_kernel_computes_it():
    call = sizes("convolution_backward", Y.shape, X.shape, W.shape, *[()] * 8)
    assert [part.optional for part in parts(call)] == [True, True, True]


def test_an_expanded_gradient_is_read_once_and_what_is_computed_is_written_whole():
    y = Tensor(Y.shape, "float32", (0, 0, 0, 0))
    x = Tensor(X.shape, "float32", (0, 64, 8, 1))
    call = aten("convolution_backward", y, x, W, None, *STEPS, False, (0, 0), 2, NO3)
    dgrad, wgrad = parts(call)
    assert dgrad.cost.bytes == 4 * (1 + WEIGHTS + IN)
    assert wgrad.cost.bytes == 4 * (1 + IN // 2 + WEIGHTS)


def test_each_tensor_counts_by_its_own_type():
    call = aten("convolution_backward", fp16(*Y.shape), X, bf16(*W.shape), None, *STEPS, False)
    mixed = Call(call.mod, call.op, (*call.args, *aten("", (0, 0), 2, NO3).args))
    dgrad, wgrad = parts(mixed)
    assert dgrad.cost.bytes == wgrad.cost.bytes == 2 * OUT + 2 * WEIGHTS + 4 * IN
    assert only(python(NN, "conv2d", fp16(*X.shape), fp16(*W1.shape))).params.endswith(",fp16,")


def test_a_complex_multiply_add_is_eight_flops_and_a_bias_two():
    x, weight, bias = (tensor("complex64", *each.shape) for each in (X, W, B))
    call = python(NN, "conv2d", x, weight, bias, 2, 1, 1, 2)
    main, added = parts(call)
    assert main.cost == Cost(4 * FLOPS, 2 * (MOVED + 4 * 6))
    assert added.cost == Cost(2 * OUT, 2 * 4 * 2 * OUT)
    assert [part.cost.flops for part in parts(call, "bprop")] == [4 * FLOPS, 4 * FLOPS, 2 * OUT]


@pytest.mark.parametrize(
    "call",
    [
        sizes("conv2d", X.shape, W.shape, B.shape, (), (), (), ()),
        sizes("cudnn_convolution", X.shape, W.shape, *[()] * 7),
        sizes("cudnn_convolution_relu", X.shape, W.shape, *[()] * 5),
        sizes("cudnn_convolution_transpose_backward_input", TY.shape, W.shape, *[()] * 7),
        sizes("cudnn_convolution_backward_weight", (), Y.shape, X.shape, *[()] * 7),
        # A kernel of one element with a stride.
        sizes("conv2d", X.shape, (6, 4, 1, 1), (), (), (), (), ()),
    ],
)
def test_sizes_alone_do_not_tell_what_depends_on_the_stride(call):
    assert work(call, "fprop") is None
    assert why_unknown(call, "fprop") in (
        "the size of the output is unknown without stride and padding",
        "size: its value is not in the capture",
    )


def with_result(call: Call, *shape: int) -> Call:
    return replace(call, result=fp32(*shape))


def test_the_result_tells_the_output_where_stride_and_padding_are_unknown():
    silent = sizes("conv2d", X.shape, (6, 4, 3, 3), (), (), (), (), ())
    result = only(with_result(silent, 2, 6, 4, 4))
    assert result.cost.flops == FLOPS1
    assert result.params.startswith("N=2,C=4,H=8,W=8,K=6,P=4,Q=4,R=3,S=3,ph=na,pw=na,U=na")
    typed = aten("conv2d", X, W1, None, *[UNKNOWN] * 4)
    # 4 positions of 3 elements cover all 8 of the image, 2 of 3 at most 6.
    assert only(with_result(typed, 2, 6, 4, 4)).cost.bytes == MOVED1
    assert only(with_result(typed, 2, 6, 2, 2)).cost.bytes == 4 * (
        2 * 4 * 6 * 6 + W1_ELEMENTS + 2 * 6 * 2 * 2
    )
    general = aten("convolution", X, W1, None, UNKNOWN, UNKNOWN, UNKNOWN, False, UNKNOWN, UNKNOWN)
    assert only(with_result(general, 2, 6, 4, 4)).cost == Cost(FLOPS1, MOVED1)


def test_a_result_that_does_not_fit_is_left_aside():
    typed = aten("conv2d", X, W1, None, *[UNKNOWN] * 4)
    for shape in ((2, 5, 4, 4), (3, 6, 4, 4), (2, 6, 16)):
        assert work(with_result(typed, *shape), "fprop") is None
    told = aten("conv2d", X, W, None, *STEPS, 2)
    assert only(with_result(told, 2, 6, 2, 2)).cost == Cost(FLOPS, MOVED)


def test_a_kernel_smaller_than_its_stride_reads_what_it_meets():
    # [2, 4, 8, 8] * [6, 4, 1, 1] with stride 2: every fourth pixel.
    call = aten("conv2d", X, fp32(6, 4, 1, 1), None, TWO, (0, 0), ONE, 1)
    moved = 4 * (IN // 4 + 6 * 4 + OUT)
    assert only(call).cost == Cost(2 * OUT * 4, moved)
    dgrad, wgrad = parts(call, "bprop")
    assert wgrad.cost.bytes == moved
    assert dgrad.cost.bytes == 4 * (IN + 6 * 4 + OUT)  # zeros between are written


@examples(300)
@given(*[st.integers(1, 12)] * 4, st.integers(0, 5), st.integers(1, 4))
def test_touched_positions_are_those_of_a_plain_count(
    size, kernel, output, stride, before, dilation
):
    met = {o * stride + k * dilation - before for o in range(output) for k in range(kernel)}
    expected = len(met & set(range(size)))
    assert touched(size, kernel, output, stride, before, dilation) == expected


@pytest.mark.parametrize(
    ("x", "weight", "bias", "flops"),
    [
        # 6 channels fit [6, 4, ..] only as a transposed weight, of 4 filters per group.
        ((2, 6, 4, 4), (6, 4, 3, 3), (), 2 * (2 * 4 * 4) * (6 * 4 * 9)),
        # A bias of 12 filters: 3 groups of 4.
        ((2, 6, 4, 4), (6, 4, 3, 3), (12,), 2 * (2 * 4 * 4) * (6 * 4 * 9)),
        # 4 channels fit [6, 4, ..] only as a plain convolution, whose output is unknown.
        ((2, 4, 4, 4), (6, 4, 3, 3), (), None),
        # Square weights fit both kinds.
        ((2, 4, 4, 4), (4, 4, 3, 3), (4,), None),
        # 5 channels fit neither kind.
        ((2, 5, 4, 4), (6, 4, 3, 3), (), None),
    ],
)
def test_channels_tell_a_transposed_convolution_where_the_flag_is_unknown(x, weight, bias, flops):
    for name, count in (("convolution", 6), ("_convolution", 10)):
        done = work(sizes(name, x, weight, bias, *[()] * count), "fprop")
        assert (done.parts[0].cost.flops if done else None) == flops


@pytest.mark.parametrize(
    ("gradient", "x", "weight", "flops", "exact"),
    [
        # Channels fit only one kind.
        ((2, 6, 4, 4), (2, 4, 8, 8), (6, 4, 3, 3), 2 * (2 * 16) * 216, True),
        ((2, 4, 8, 8), (2, 6, 4, 4), (6, 4, 3, 3), 2 * (2 * 16) * 216, True),
        # Both kinds fit, and images of equal size cost the same.
        ((2, 4, 8, 8), (2, 4, 8, 8), (4, 4, 3, 3), 2 * (2 * 64) * 144, True),
        # Both fit, and the output is smaller: very likely a plain convolution.
        ((2, 4, 4, 4), (2, 4, 8, 8), (4, 4, 3, 3), 2 * (2 * 16) * 144, False),
        # Both fit, and the output is larger: transposed, or padded by more than half of the kernel.
        ((2, 4, 8, 8), (2, 4, 4, 4), (4, 4, 3, 3), None, None),
    ],
)
def test_backward_tells_a_transposed_convolution_by_all_its_sizes(
    gradient, x, weight, flops, exact
):
    done = work(sizes("convolution_backward", gradient, x, weight, *[()] * 8), "fprop")
    result = [(part.cost.flops, part.cost.exact) for part in done.parts[:2]] if done else []
    assert result == ([] if flops is None else [(flops, exact)] * 2)


def test_reason_for_no_tensor_cores_names_the_channels_of_a_group():
    def reason(x: Tensor, weight: Tensor, groups: int = 1) -> str:
        return only(python(NN, "conv2d", x, weight, None, 1, 1, 1, groups)).no_tensor_cores

    assert reason(fp16(2, 3, 8, 8), fp16(64, 3, 3, 3)).startswith("C=3 is not a multiple of 8")
    assert reason(fp16(2, 64, 8, 8), fp16(10, 64, 3, 3)).startswith("K=10 is not a multiple")
    assert reason(fp16(2, 64, 8, 8), fp16(64, 4, 3, 3), 16).startswith("C=4 is not a multiple")
    assert reason(fp16(2, 64, 8, 8), fp16(64, 64, 3, 3)).startswith("type and sizes allow them")
    assert reason(X, W1).startswith("fp32 without TF32")
    known = sizes("conv_transpose2d", TX.shape, W.shape, *[()] * 6)
    assert only(known).no_tensor_cores == "the type is not known"


def test_padding_same_prints_the_padding_before_the_image():
    part = only(python(NN, "conv2d", X, fp32(6, 4, 2, 4), None, 1, "same", (1, 2)))
    assert part.params == (
        "N=2,C=4,H=8,W=8,K=6,P=8,Q=8,R=2,S=4,ph=0,pw=3,U=1,V=1,dh=1,dw=2,g=1,fp32,"
    )


def test_inference_only_operators_have_no_backward():
    call = aten("cudnn_convolution_relu", X, W, B, TWO, ONE, ONE, 2)
    assert work(call, "bprop") is None
    backward = aten("convolution_backward", Y, X, W, (6,), *STEPS, False, (0, 0), 2, YES3)
    assert work(backward, "bprop") is None


MALFORMED = [
    python(NN, "conv2d"),
    python(NN, "conv2d", X),
    python(NN, "conv2d", X, None),
    python(NN, "conv2d", X, fp32(6, 3, 3, 3)),
    python(NN, "conv2d", X, fp32(5, 2, 3, 3), None, 1, 0, 1, 2),
    python(NN, "conv2d", X, W, None, 1, 0, 1, 0),
    python(NN, "conv2d", X, W1, fp32(5)),
    python(NN, "conv2d", X, W1, fp32(1, 6)),
    python(NN, "conv2d", X, W1, None, 0),
    python(NN, "conv2d", X, W1, None, (1, 1, 1)),
    python(NN, "conv2d", X, W1, None, ()),
    python(NN, "conv2d", X, W1, None, 1, -1),
    python(NN, "conv2d", X, W1, None, 1, "full"),
    python(NN, "conv2d", X, W1, None, 2, "same"),
    python(NN, "conv2d", X, W1, None, 1, 0, 0),
    python(NN, "conv2d", X, W1, None, 1.5),
    python(NN, "conv2d", X, fp32(6, 4, 9, 9)),
    python(NN, "conv2d", X, fp32(6, 4, 0, 3)),
    python(NN, "conv2d", X, fp32(6, 4)),
    python(NN, "conv2d", fp32(8, 8), W1),
    python(NN, "conv2d", fp32(2, 4, 4, 8, 8), W1),
    python(NN, "conv3d", fp32(1, 1, 2, 2, 2, 2), fp32(1, 1, 1, 1, 1, 1)),
    python(NN, "conv_transpose2d", X, W1),
    python(NN, "conv_transpose2d", TX, W, None, 1, 9, 0, 2),
    python(NN, "conv_transpose2d", TX, W, None, 1, 0, 0, 4),
    aten("convolution_backward", X, X, W, None, *STEPS, False, (0, 0), 2, NO3),
    aten("convolution_backward", Y, X, W, None, ONE, ONE, ONE, False, (0, 0), 2, NO3),
    aten("convolution_backward", Y, X, W, None, *STEPS, False, (0, 0), 2, (True,)),
    aten("convolution_backward", Y, X, B, None, *STEPS, False, (0, 0), 2, NO3),
    aten("cudnn_convolution_backward_input", (2, 4), Y, W, *SWAPPED, 2, False, False),
    aten("cudnn_convolution_backward_weight", (2, 4), Y, X, *SWAPPED, 2, False, False),
    aten("cudnn_convolution_backward_bias", B),
    aten("cudnn_convolution_add_relu", X, W, X, 1.0, B, TWO, ONE, ONE, 2),
    aten("conv_tbc", fp32(9, 2), fp32(3, 4, 6), B, 1),
    aten("conv_tbc_backward", fp32(9, 2, 6), fp32(9, 2, 4), fp32(3, 4, 6), TB, 1),
]


NAMES = sorted(
    {
        key
        for formula, served in formulas()
        if formula.function.__module__.startswith("fastprof.ops.convolution.")
        for key in served
    }
)
SHAPES = st.sampled_from([(2, 4, 8, 8), (6, 2, 3, 3), (2, 6, 4, 4), (6,), (), (0, 4, 3), (2, 3)])
TENSORS = st.builds(Tensor, SHAPES, st.sampled_from([None, "float32", "complex64"]))
STEP_VALUES = st.sampled_from([None, 0, 1, 2, -1, (1, 1), (2, 2), (), (0, 0), (3,), (1, -1)])
OTHERS = st.sampled_from([True, False, "same", "valid", "", (True, True), (True,) * 3, (0,), 2.5])
VALUES = st.one_of(TENSORS, STEP_VALUES, STEP_VALUES, OTHERS)


@examples(600)
@given(
    st.sampled_from(NAMES),
    st.lists(TENSORS, max_size=3),
    st.lists(VALUES, max_size=10),
    st.sampled_from(["fprop", "bprop"]),
)
def test_whatever_the_arguments_no_formula_fails_and_no_cost_is_negative(
    name, tensors, values, direction
):
    module, op = name
    call = aten(op, *tensors, *values) if module == "aten" else python(NN, op, *tensors, *values)
    done = work(call, direction)
    for part in done.parts if done else ():
        assert (part.cost.flops or 0) >= 0 and (part.cost.bytes or 0) >= 0
        assert " " not in part.params
    assert not (why_unknown(call, direction) or "").startswith("its formula failed")
