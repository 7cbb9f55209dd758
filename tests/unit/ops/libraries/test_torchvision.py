"""torchvision's operators for detection: FLOPs and bytes by hand."""

from typing import Any

from fastprof.model.call import UNKNOWN
from unit.ops.ops_calls import aten, fp16, fp32
from unit.ops.ops_examples import Example, cost, listed

X, ROIS = fp32(2, 8, 40, 50), fp32(6, 5)
# 6 regions of 3 x 4, 2 x 2 samples each: 4 pixels per sample, 8 FLOPs.
ALIGNED = 6 * 8 * 3 * 4
SAMPLES = 4 * ALIGNED
# x [2, 4, 9, 9] * w [6, 2, 3, 3] in 2 groups -> [2, 6, 7, 7], 18 offsets per position.
D, W, OFFSET, MASK, BIAS = (
    *(fp32(2, 4, 9, 9), fp32(6, 2, 3, 3), fp32(2, 18, 7, 7), fp32(2, 9, 7, 7)),
    fp32(6),
)
STEPS = (1, 1, 0, 0, 1, 1, 2, 1)
PRODUCTS = 2 * 2 * 6 * 7 * 7 * 2 * 9
IN, OUT, BESIDE, WEIGHTS = 648, 588, 2 * 27 * 49, 108
PARAMS = "N=2,C=4,H=9,W=9,K=6,P=7,Q=7,R=3,S=3,g=2,fp32,"
GRADIENTS = (
    2 * PRODUCTS,
    4 * ((OUT + WEIGHTS + 2 * BESIDE + IN) + (OUT + IN + BESIDE + WEIGHTS)),
    PARAMS,
)


def vision(table: str, *costs: Any, direction: str = "fprop") -> list[Example]:
    """Calls of torchvision's operators."""
    return listed(f"torchvision::{table}", globals(), *costs, direction=direction)


EXAMPLES = [
    *vision("nms fp32[10,4] fp32[10] 0.5", 13 * 45 + 30, 4 * 50 + 8 * 10),
    *vision(
        "roi_align X ROIS 0.25 3 4 2 true",
        *(8 * SAMPLES, 4 * (4 * SAMPLES + 30 + ALIGNED), "[2,8,40,50]fp32;[6,5]fp32"),
    ),
    *vision(
        "roi_align X ROIS 0.25 3 4 2 true",
        *(8 * SAMPLES, 4 * (ALIGNED + 30 + 32000)),
        direction="bprop",
    ),
    *vision("roi_align X ROIS 0.25 3 4 0 true", None, 4 * (32000 + 30 + ALIGNED)),
    *vision(
        "ps_roi_align fp32[2,24,40,50] ROIS 0.25 3 4 1",
        *(8 * 6 * 2 * 12, 4 * (4 * 144 + 30 + 2 * 144)),
    ),
    *vision(
        "_roi_align_backward fp32[6,8,3,4] ROIS 0.2 3 4 2 8 40 50 2 true",
        *(8 * SAMPLES, 4 * (ALIGNED + 30 + 32000)),
    ),
    *vision("roi_pool X ROIS 0.25 3 4", None, 4 * (32000 + 30 + 2 * ALIGNED)),
    *vision("roi_pool X ROIS 0.25 3 4", ALIGNED, 4 * (2 * ALIGNED + 30 + 32000), direction="bprop"),
    *vision("ps_roi_pool fp32[2,24,4,5] ROIS 1.0 3 4", None, 4 * (960 + 30 + 2 * 144)),
    *vision(
        "deform_conv2d D W OFFSET MASK BIAS *STEPS true",
        *(PRODUCTS, 4 * (IN + WEIGHTS + BESIDE + 6 + OUT), PARAMS),
    ),
    *vision(
        "deform_conv2d D W OFFSET fp32[2,1,1,1] BIAS *STEPS false",
        *(PRODUCTS, 4 * (IN + WEIGHTS + 2 * 18 * 49 + 6 + OUT)),
    ),
    *vision("deform_conv2d D W OFFSET MASK BIAS *STEPS true", *GRADIENTS, direction="bprop"),
    *vision("_deform_conv2d_backward fp32[2,6,7,7] D W OFFSET MASK BIAS *STEPS true", *GRADIENTS),
]


MALFORMED = [
    aten("torchvision::nms", fp32(10, 5), fp32(10), 0.5),
    aten("torchvision::nms", fp32(10, 4), fp32(9), 0.5),
    aten("torchvision::roi_align", X, fp32(6, 4), 0.25, 3, 4, 2, True),
    aten("torchvision::roi_align", X, ROIS, 0.25, UNKNOWN, 4, 2, True),
    aten("torchvision::deform_conv2d", D, W, fp32(2, 17, 7, 7), MASK, BIAS, *STEPS, True),
    aten("torchvision::deform_conv2d", D, fp16(6, 3, 3, 3), OFFSET, MASK, BIAS, *STEPS, True),
    aten("torchvision::_deform_conv2d_backward", D, D, W, OFFSET, MASK, BIAS, *STEPS, True),
]


def test_estimates_say_so() -> None:
    for example in EXAMPLES:
        assert cost(example.call, example.direction).exact == ("deform" in example.call.op)
