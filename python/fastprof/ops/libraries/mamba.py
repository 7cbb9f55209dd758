"""Selective state-space models (Mamba) and short causal convolutions.

Sources: mamba_ssm/ops/selective_scan_interface.py, mamba_ssm/ops/triton/ssd_combined.py in
state-spaces/mamba; causal_conv1d/causal_conv1d_interface.py and cpp_functions.py in
Dao-AILab/causal-conv1d. The chunked algorithm is that of Dao and Gu, Transformers are SSMs, 2024,
section 6.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor
from fastprof.ops.axes import EXPONENTIAL, SIGMOID
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.parameters import Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, fresh, moved, texts

# For each element of the state at each step: delta A 1 and its exponential, B 1, state times that
# plus input 2, C 2. Backward the first four again, gradients of the state 2, B 2, C 2, delta 4,
# A 2, u 2.
_STEP: Final = EXPONENTIAL + 6
_STEP_BACK: Final = EXPONENTIAL + 4 + 14
_CHUNK: Final = 256  # the default of the model's configuration


class Scan(NamedTuple):
    """The tensors of a selective scan, which reads all of them."""

    u: Tensor
    delta: Tensor
    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor | None = None
    z: Tensor | None = None
    bias: Tensor | None = None


@operators("""
    h = exp(delta A) h + delta B u, y = C h (+ D u) (* silu(z)) of u[batch, dim, length].
    FLOPs: 26 batch dim length n for n states (exponential 20, arithmetic 6), and for each element
        of u 1, 2 more with D, 24 with z; backward 38 batch dim length n, twice the others.
    Bytes: u, delta, A, B, C, D and z read, y written; backward these and dy read, their gradients
        written.
    (u, delta, a, b, c, d, z, bias, ...): aten::SelectiveScanFn
""")
def selective_scan_fn(scan: Scan, *, direction: str) -> Answer:
    u, a, d, z = scan.u, scan.a, scan.d, scan.z
    if len(u.shape) != 3 or len(a.shape) != 2 or u.shape[1] != a.shape[0]:
        raise CannotModel(f"cannot scan {u.shape} with states {a.shape}")
    count, states = elements(u.shape), a.shape[1]
    extra = 1 + 2 * (d is not None) + (SIGMOID + 2) * (z is not None)
    read = moved(*scan)
    if direction == "bprop":
        flops = count * (_STEP_BACK * states + 2 * extra)
        return Cost(flops, add_known(read, moved(fresh(u)), read)), texts(u, a)
    return Cost(count * (_STEP * states + extra), add_known(read, moved(fresh(u)))), texts(u, a)


@operators("""
    A Mamba block of xz[batch, 2 dim, length]: convolution, projections, scan, gate, projection.
    FLOPs: products 2 rows (x_proj + delta_proj + out_proj weights), rows being batch length; scan
        26 batch dim length n, convolution 2 taps, gate and D 27 for each element; backward twice
        the products, 38 and twice the rest.
    Bytes: for the products operands read, results written; for the rest xz, weights and delta read,
        the scan's output written; backward twice.
    (xz, taps, _b, projection, delta, output, _c, a, others**): aten::MambaInnerFn
""")
def mamba_inner_fn(
    xz: Tensor,
    taps: Tensor,
    projection: Tensor,
    delta: Tensor,
    output: Tensor,
    a: Tensor,
    others: Tensors = (),
    *,
    direction: str,
) -> Work:
    if len(xz.shape) != 3 or xz.shape[1] % 2 or len(a.shape) != 2:
        raise CannotModel(f"cannot compute a block of {xz.shape} with states {a.shape}")
    batch, dim, length = xz.shape[0], xz.shape[1] // 2, xz.shape[2]
    rows, back = batch * length, direction == "bprop"
    weights = (projection, delta, output)
    times = 2 if back else 1
    if any(len(tensor.shape) != 2 for tensor in weights):
        raise CannotModel("a projection is not a matrix")
    flops = 2 * rows * sum(elements(tensor.shape) for tensor in weights)
    ends = sum(sum(tensor.shape) for tensor in weights)
    of_products = add_known(moved(*weights), byte_count(rows * ends, xz.dtype))
    count = batch * dim * length
    width = taps.shape[-1] if taps.shape else 0
    rest = times * (2 * width + SIGMOID + 5)
    scan = count * ((_STEP_BACK if back else _STEP) * a.shape[1] + rest)
    inner = byte_count(count, xz.dtype)
    once = add_known(moved(xz, taps, a, *others), inner, inner)
    products = Cost(flops * times, _times(of_products, times))
    gemm = Part("main", products, texts(xz, *weights), kernels=frozenset({"gemm"}))
    return Work((gemm, Part("main", Cost(scan, _times(once, times)), texts(xz, a))))


def _times(value: int | None, times: int) -> int | None:
    return None if value is None else value * times


@operators("""
    A scan of x[batch, length, heads, p] with B and C [batch, length, groups, n], by chunks of q.
    FLOPs: 2 batch length (q groups n + q heads p + 2 heads p n): scores within a chunk, their
        weighted sum, each chunk's state and its contribution; backward three times that less q
        heads p: two gradients for each product, and recomputed scores and states.
    Bytes: x, dt, A, B, C (D, z) read, y written; backward these and dy read, their gradients
        written.

    If the capture does not record the chunk's size, 256 is assumed, and the cost is an estimate.
    (x, dt, a, b, c, chunk, others**): aten::MambaChunkScanCombinedFn
    (x, dt, a, b, c, others**): aten::MambaChunkScanCombinedFn
""")
def mamba_chunk_scan_combined_fn(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    chunk: Size = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Answer:
    if len(x.shape) != 4 or len(b.shape) != 4:
        raise CannotModel(f"cannot scan {x.shape} with {b.shape}")
    batch, length, heads, size = x.shape
    q, known = _chunk(chunk, length)
    flops = _chunked(batch * length, q, heads, size, b.shape[2], b.shape[3], direction)
    read = moved(x, dt, b, c, *others)
    if direction == "bprop":
        return Cost(flops, add_known(read, moved(fresh(x)), read), known), texts(x, b)
    return Cost(flops, add_known(read, moved(fresh(x))), known), texts(x, b)


def _chunk(chunk: Size, length: int) -> tuple[int, bool]:
    # Steps of a chunk, and whether they are recorded.
    recorded = chunk if isinstance(chunk, int) and chunk > 0 else None
    return min(recorded or _CHUNK, max(length, 1)), recorded is not None


def _chunked(
    rows: int, q: int, heads: int, size: int, groups: int, states: int, direction: str
) -> int:
    scores, weighed = q * groups * states, q * heads * size
    of_states = 2 * heads * size * states
    once = scores + weighed + of_states
    if direction == "fprop":
        return 2 * rows * once
    return 2 * rows * (3 * once - weighed)


@operators("""
    A Mamba-2 block of xs[batch, length, gate + x + B + C + dt]: convolution, scan, product.
    FLOPs: the scan's (see MambaChunkScanCombinedFn, one group of all B), 2 taps for each convolved
        element, 2 rows out dim for the output projection, if any; backward twice the convolution
        and the projection.
    Bytes: xs and weights read, the output written; backward these and dy read, gradients written.

    An estimate if the capture does not record the chunk's size (256 is assumed).
    (xs, taps, _b, _d, a, d, chunk, others**): aten::MambaSplitConv1dScanCombinedFn
    (xs, taps, _b, _d, a, d, others**): aten::MambaSplitConv1dScanCombinedFn
""")
def mamba_split_conv1d_scan_combined_fn(
    xs: Tensor,
    taps: Tensor,
    a: Tensor,
    d: Tensor,
    chunk: Size = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Work:
    if len(xs.shape) != 3 or len(taps.shape) != 2 or len(a.shape) != 1:
        raise CannotModel(f"cannot compute a block of {xs.shape} with taps {taps.shape}")
    (batch, length, width), heads, convolved = xs.shape, a.shape[0], taps.shape[0]
    dim = elements(d.shape) if len(d.shape) == 2 else width - heads - convolved
    states = (convolved - dim) // 2
    if not heads or dim <= 0 or dim % heads or states < 0:
        raise CannotModel(f"sizes of {xs.shape} and {taps.shape} do not fit {heads} heads")
    rows, back = batch * length, direction == "bprop"
    q, known = _chunk(chunk, length)
    flops = _chunked(rows, q, heads, dim // heads, 1, states, direction)
    times = 2 if back else 1
    flops += 2 * taps.shape[1] * rows * convolved * times
    output = next((w for w in others if len(w.shape) == 2 and w.shape[1] == dim), None)
    result = byte_count(rows * (dim if output is None else output.shape[0]), xs.dtype)
    read = moved(xs, taps, *others)
    moves = add_known(read, result) if not back else add_known(read, result, read)
    main = Part("main", Cost(flops, moves, known), texts(xs, taps))
    if output is None:
        return Work((main,))
    once = add_known(byte_count(rows * dim, xs.dtype), moved(output), result)
    product = Cost(2 * rows * elements(output.shape) * times, _times(once, times))
    gemm = Part("main", product, texts(xs, output), kernels=frozenset({"gemm"}))
    return Work((gemm, main))


@operators("""
    Each channel of x[batch, dim, length] with its own taps [dim, w], (+ bias) (silu).
    FLOPs: 2 w for each element; backward 4 w. A fused activation is not counted.
    Bytes: x, taps and bias read, the output written; backward these and the output's gradient read,
        the gradients of all written.
    (x, taps, bias, ...): aten::CausalConv1dFn
    (x, taps, bias, other, other, other, other, _): DaoAILab::_causal_conv1d_fwd_cpp
""")
def causal_convolution(
    x: Tensor, taps: Tensor, bias: Tensor | None = None, *, direction: str
) -> Answer:
    width = _width(x, taps)
    count = elements(x.shape)
    if direction == "bprop":
        moves = add_known(moved(x, taps, bias, x), moved(x, taps, bias))
        return Cost(4 * width * count, moves), texts(x, taps)
    return Cost(2 * width * count, moved(x, taps, bias, fresh(x))), texts(x, taps)


def _width(x: Tensor, taps: Tensor) -> int:
    if len(taps.shape) != 2 or taps.shape[0] not in x.shape:
        raise CannotModel(f"taps {taps.shape} do not fit {x.shape}")
    return taps.shape[1]


@operators("""
    Gradients of a causal convolution of x[batch, dim, length] with taps [dim, w].
    FLOPs: 4 w for each element.
    Bytes: x, taps, bias and the output's gradient read, the gradients of all written.
    (x, taps, bias, gradient, other, other, other, other, other, other, other, _):
        DaoAILab::_causal_conv1d_bwd_cpp
""")
def causal_conv1d_bwd_cpp(
    x: Tensor, taps: Tensor, gradient: Tensor, bias: Tensor | None = None
) -> Answer:
    moves = add_known(moved(x, taps, bias, gradient), moved(x, taps, bias))
    return Cost(4 * _width(x, taps) * elements(x.shape), moves), texts(x, taps)


@operators("""
    The next output of a causal convolution: x[batch, dim] and a state [batch, dim, w - 1].
    FLOPs: 2 w for each element of x.
    Bytes: x, taps, bias and each sample's state read, the output and the state written.
    (x, state, taps, bias, other, _, other, other): DaoAILab::_causal_conv1d_update_cpp
""")
def causal_conv1d_update_cpp(
    x: Tensor, state: Tensor, taps: Tensor, bias: Tensor | None = None
) -> Answer:
    width = _width(x, taps)
    kept = byte_count(x.shape[0] * elements(state.shape[1:]), state.dtype)
    moves = add_known(moved(x, taps, bias, fresh(x)), kept, kept)
    return Cost(2 * width * elements(x.shape), moves), texts(x, taps)
