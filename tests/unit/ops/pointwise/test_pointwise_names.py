"""The pointwise operators by name: FLOPs and bytes of each."""

from collections.abc import Iterator

from fastprof.model.call import Arg, Call
from unit.ops.ops_calls import fp32
from unit.ops.ops_examples import Example

# Operands of ten float32 numbers, FLOPs for each, bytes of each element written, names of Python
# and of ATen, of Python alone, of ATen alone.
BOTH = """
1  1 1  logical_not isnan isinf isfinite isposinf isneginf signbit isreal
2  1 1  eq ne not_equal lt le gt ge less less_equal greater greater_equal logical_and logical_or
        logical_xor
2  7 1  isclose
2 20 8  float_power
1  0 4  conj_physical conj_physical_
1  1 4  neg negative neg_ negative_ square square_ reciprocal reciprocal_ frac frac_ ceil floor
        round trunc fix sign ceil_ floor_ round_ trunc_ fix_ sign_ sgn sgn_ deg2rad rad2deg deg2rad_
        rad2deg_ bitwise_not bitwise_not_ logical_not_ abs absolute abs_ absolute_ angle relu
        threshold relu_ threshold_
1  2 4  relu6 hardtanh relu6_ hardtanh_ leaky_relu rrelu leaky_relu_ rrelu_ hardshrink softshrink
1  3 4  nan_to_num nan_to_num_
1  4 4  hardsigmoid hardsigmoid_
1  5 4  hardswish hardswish_
1 20 4  sqrt sqrt_ rsqrt rsqrt_ exp exp_ exp2 expm1 exp2_ expm1_ log log_ log2 log10 log1p log2_
        log10_ log1p_ sin cos sinh cosh sin_ cos_ sinh_ cosh_ tan tanh tan_ tanh_ atan arctan atanh
        arctanh atan_ arctan_ atanh_ arctanh_ asin acos asinh acosh arcsin arccos arcsinh arccosh
        asin_ acos_ asinh_ acosh_ arcsin_ arccos_ arcsinh_ arccosh_ erf erfc erfinv erf_ erfc_
        erfinv_ digamma lgamma mvlgamma digamma_ lgamma_ mvlgamma_ i0 i0_
1 22 4  sinc sinc_ sigmoid sigmoid_ logit logit_ elu elu_
1 23 4  silu silu_ celu selu celu_ selu_
1 41 4  softplus log_sigmoid
1 62 4  mish mish_
2  1 4  add sub subtract add_ sub_ subtract_ rsub mul multiply mul_ multiply_ floor_divide
        floor_divide_ remainder fmod remainder_ fmod_ copysign copysign_ nextafter nextafter_
        maximum minimum fmax fmin clamp_min clamp_min_ clamp_max clamp_max_ bitwise_and bitwise_or
        bitwise_xor bitwise_left_shift bitwise_right_shift __and__ __or__ __xor__ __lshift__
        __rshift__ bitwise_and_ bitwise_or_ bitwise_xor_ bitwise_left_shift_ bitwise_right_shift_
        __iand__ __ior__ __ixor__ __ilshift__ __irshift__ eq_ ne_ not_equal_ lt_ le_ gt_ ge_ less_
        less_equal_ greater_ greater_equal_ logical_and_ logical_or_ logical_xor_
2  2 4  heaviside heaviside_ _prelu_kernel rrelu_with_noise rrelu_with_noise_
2 20 4  pow pow_ float_power_ atan2 arctan2 atan2_ arctan2_ igamma igammac igamma_ igammac_
2 21 4  ldexp ldexp_ xlogy xlogy_
2 23 4  hypot hypot_
2 44 4  logaddexp logaddexp2
3  3 4  addcmul addcmul_ addcdiv addcdiv_ lerp lerp_
"""
PYTHON = """
2  1 1  __eq__ __ne__ __lt__ __le__ __gt__ __ge__
1  1 4  __neg__ __invert__ inv invert __abs__
1  3 4  softsign
1 20 4  erfcx psi gammaln multigammaln i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1
        modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai
1 21 4  tanhshrink
1 22 4  entr expit
1 23 4  ndtr ndtri log_ndtr
1 41 4  logsigmoid
2  1 4  __add__ __radd__ __sub__ __rsub__ __iadd__ iadd __isub__ isub __mul__ __rmul__ __imul__ imul
        floordiv __floordiv__ __rfloordiv__ __ifloordiv__ ifloordiv mod __mod__ __rmod__ __imod__
        imod and_ or_ xor lshift rshift __rand__ __ror__ __rxor__ __rlshift__ __rrshift__ iand ior
        ixor ilshift irshift
2 20 4  __pow__ __rpow__ __ipow__ ipow gammainc gammaincc zeta
2 22 4  xlog1py
"""
ATEN = """
1  1 4  special_round
1 20 4  special_exp2 special_expm1 special_log1p special_erf special_erfc special_erfinv
        special_erfcx special_digamma special_psi special_gammaln special_multigammaln special_i0
        special_i0e special_i1 special_i1e special_bessel_j0 special_bessel_j1 special_bessel_y0
        special_bessel_y1 special_modified_bessel_i0 special_modified_bessel_i1
        special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0
        special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_airy_ai
1 22 4  special_sinc special_entr special_expit special_logit
1 23 4  special_ndtr special_ndtri special_log_ndtr
1 41 4  log_sigmoid_forward
2  1 4  threshold_backward
2  2 4  hardtanh_backward leaky_relu_backward hardshrink_backward softshrink_backward
2  3 4  hardsigmoid_backward sigmoid_backward tanh_backward logit_backward
2  5 4  hardswish_backward
2 20 4  special_gammainc special_gammaincc special_zeta
2 21 4  special_xlogy
2 22 4  special_xlog1py
2 23 4  softplus_backward
2 27 4  silu_backward log_sigmoid_backward
2 89 4  mish_backward
"""


def _rows(table: str) -> Iterator[tuple[int, int, int, str]]:
    """Each name of a table with the numbers of its row, which may go on in further lines."""
    operands = flops = written = 0
    for line in table.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            operands, flops, written = map(int, words[:3])
            words = words[3:]
        yield from ((operands, flops, written, name) for name in words)


def _examples() -> Iterator[Example]:
    for door, table in (("torch", BOTH + PYTHON), ("aten", BOTH + ATEN)):
        for operands, flops, written, name in _rows(table.replace("\n\n", "\n")):
            the_call = Call(door, name, tuple(Arg("", fp32(2, 5)) for _ in range(operands)))
            yield Example(the_call, 10 * flops, operands * 40 + 10 * written)


EXAMPLES = list(_examples())
