"""FLOPs of elementwise arithmetic, comparisons, bit operations, functions and activations."""

from __future__ import annotations

from typing import Final

from fastprof.ops.pointwise.table import COMPLEX_DIVISION, Operator, Output, rows, saved

DIVISION: Final = Operator(1, ("self", "other"), Output.FLOAT, saved(1), 2, COMPLEX_DIVISION)

# Operators that select by comparison (relu, clamp, maximum) mask the gradient by a saved tensor.
ARITHMETIC: Final = rows("""
    add sub subtract: a + b, a - b; 1; of self other; complex 2; passed 1; stems add sub
    rsub: b - a; 1; of self other; complex 2; passed 1; never in place
    mul multiply: a b; 1; of self other; complex 6; stems mul
    floor_divide: floor(a / b); 1; of self other; no gradient; python floordiv; stems floordiv
    remainder fmod: remainder of a / b; 1; of self other; passed 1; python mod; stems mod
    pow: a^b; POWER; of self exponent; complex COMPLEX_EXPONENTIAL + 6 + COMPLEX_LOGARITHM;
        gradient POWER + 2; stems pow
    float_power: a^b in float64; POWER; of self exponent; output DOUBLE;
        complex COMPLEX_EXPONENTIAL + 6 + COMPLEX_LOGARITHM; gradient POWER + 2
    atan2 arctan2: angle of (b, a); TRIGONOMETRIC; of self other; output FLOAT; gradient 5
    hypot: sqrt(a^2 + b^2); HYPOTENUSE; of self other; output FLOAT; gradient 2
    copysign: |a| with the sign of b; 1; of self other; output FLOAT
    nextafter: next number after a towards b; 1; of self other; no gradient
    heaviside: 0, b or 1 by the sign of a; 2; of self values; no gradient
    ldexp: a 2^b; POWER + 1; of self other; output FLOAT; gradient 1
    xlogy: a log(b); LOGARITHM + 1; of self other; output FLOAT; special xlogy
    -: a log(1 + b); LOGARITHM + 2; of self other; output FLOAT; special xlog1py
    logaddexp logaddexp2: log(e^a + e^b); EXPONENTIAL + LOGARITHM + 4; of self other;
        gradient EXPONENTIAL + 2; never in place
    maximum minimum fmax fmin: larger or smaller of a and b; 1; of self other; never in place
    addcmul: a + value b c; 3; of self tensor1 tensor2; complex 6 + 6 + 2
    addcdiv: a + value b / c; 3; of self tensor1 tensor2; complex COMPLEX_DIVISION + 6 + 2
    lerp: a + weight (b - a); 3; of self end weight; complex 2 + 6 + 2
    where: a or b by a condition: data movement; 0; of condition self other; complex 0;
        never in place
    clamp clip: a between two limits; 2; of self min max; needed 1
    clamp_min: larger of a and a limit; 1; of self min
    clamp_max: smaller of a and a limit; 1; of self max
    neg negative: -a; 1; complex 2; passed 1; python __neg__
    square: a^2; 1; complex 6; gradient 2
    reciprocal: 1 / a; 1; output FLOAT; complex 6; gradient 3
    frac: a - trunc(a); 1; passed 1
    ceil floor round trunc fix sign: rounded, or its sign; 1; gradient of zeros; special round
    sgn: a / |a|; 1; complex HYPOTENUSE + 2; gradient of zeros
    nan_to_num: a, or numbers in place of NaN and infinities; 3
    deg2rad rad2deg: angle in another unit; 1; output FLOAT; passed 1
""")

LOGIC: Final = rows("""
    bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift: bits of a and b; 1;
        of self other; no gradient; python and_ or_ xor lshift rshift;
        aten __and__ __or__ __xor__ __lshift__ __rshift__; stems and or xor lshift rshift
    bitwise_not: bits of a; 1; no gradient; python __invert__ inv invert
    eq ne not_equal: a = b; 1; of self other; output BOOL; complex 2; no gradient;
        python __eq__ __ne__
    lt le gt ge less less_equal greater greater_equal logical_and logical_or logical_xor:
        a < b and so on; 1; of self other; output BOOL; no gradient;
        python __lt__ __le__ __gt__ __ge__
    logical_not isnan isinf isfinite isposinf isneginf signbit isreal: a property of a; 1;
        output BOOL; complex 2; no gradient; in_place logical_not
    isclose: |a - b| <= atol + rtol |b|, or a = b; 7; of self other; output BOOL; no gradient;
        never in place
""")

FUNCTIONS: Final = rows("""
    abs absolute: |a|; 1; output MAGNITUDE; complex HYPOTENUSE; gradient 2; python __abs__
    sqrt: root of a; SQUARE_ROOT; output FLOAT; complex COMPLEX_ROOT; gradient 2
    rsqrt: 1 / root of a; SQUARE_ROOT; output FLOAT; complex COMPLEX_ROOT + 6; gradient 4
    exp: e^a; EXPONENTIAL; output FLOAT; complex COMPLEX_EXPONENTIAL; gradient 1
    exp2 expm1: 2^a, e^a - 1; EXPONENTIAL; output FLOAT; gradient 2; special exp2 expm1
    log: log(a); LOGARITHM; output FLOAT; complex COMPLEX_LOGARITHM; gradient 1
    log2 log10 log1p: log of another base, log(1 + a); LOGARITHM; output FLOAT; gradient 2;
        special log1p
    sin cos sinh cosh: sine and so on; TRIGONOMETRIC; output FLOAT; complex COMPLEX_SINE;
        gradient TRIGONOMETRIC + 1
    tan tanh: tangent; TRIGONOMETRIC; output FLOAT; complex 2 * COMPLEX_SINE + COMPLEX_DIVISION;
        gradient 3
    atan arctan atanh arctanh: inverse tangent; TRIGONOMETRIC; output FLOAT; gradient 3
    asin acos asinh acosh arcsin arccos arcsinh arccosh: inverse sine and so on; TRIGONOMETRIC;
        output FLOAT; gradient 3 + SQUARE_ROOT
    sinc: sin(pi a) / (pi a); TRIGONOMETRIC + 2; output FLOAT; gradient 2 * TRIGONOMETRIC + 6;
        special sinc
    erf erfc erfinv: error function; ERROR_FUNCTION; output FLOAT; gradient EXPONENTIAL + 3;
        special erf erfc erfinv erfcx
    -: normal distribution; ERROR_FUNCTION + 3; output FLOAT; gradient EXPONENTIAL + 3;
        special ndtr ndtri log_ndtr
    -: -a log(a); LOGARITHM + 2; output FLOAT; special entr
    digamma lgamma mvlgamma: gamma function's logarithm, its derivative; GAMMA; output FLOAT;
        gradient GAMMA + 1; special digamma psi gammaln multigammaln
    igamma igammac: incomplete gamma function; GAMMA; of self other; output FLOAT;
        special gammainc gammaincc zeta
    i0: Bessel function; GAMMA; output FLOAT; gradient GAMMA + 1; special i0 i0e i1 i1e bessel_j0
        bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
        modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
        airy_ai
    sigmoid: 1 / (1 + e^-a); SIGMOID; output FLOAT; complex COMPLEX_EXPONENTIAL + 1 + 6; gradient 3;
        special expit
    logit: log(a / (1 - a)); LOGARITHM + 2; output FLOAT; gradient 3; special logit
    angle: angle of a complex number, 0 or pi for a real one; 1; output MAGNITUDE;
        complex TRIGONOMETRIC; gradient 5; never in place
    conj_physical: complex conjugate; 0; complex 1; passed 0
    complex: a + i b: data movement; 0; of self imag; output COMPLEX; never in place
    polar: a (cos b + i sin b); 2 * TRIGONOMETRIC + 2; of self angle; output COMPLEX; gradient 6;
        never in place
""")

# Activations. Slopes and limits are not operands.
ACTIVATIONS: Final = rows("""
    relu threshold: a or 0, a or a value, by a limit; 1
    relu6 hardtanh: a between two limits; 2
    leaky_relu rrelu: a or slope a; 2
    hardshrink softshrink: a, or 0 between two limits; 2; never in place
    prelu: a or slope a, one slope per channel; 2; of self weight; output PER_CHANNEL;
        never in place
    _prelu_kernel: a or slope a; 2; of self weight; never in place
    hardsigmoid: clamp(a + 3, 0, 6) / 6; 4; gradient 3
    hardswish: a clamp(a + 3, 0, 6) / 6; 5; gradient 5
    silu: a / (1 + e^-a); SIGMOID + 1; gradient SIGMOID + 5
    mish: a tanh(log(1 + e^a)); EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + 1;
        gradient EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + SIGMOID + 6
    -: a / (1 + |a|); 3; python softsign
    elu: a or alpha (e^a - 1); EXPONENTIAL + 2; gradient EXPONENTIAL + 3
    celu selu: scaled elu; EXPONENTIAL + 3; gradient EXPONENTIAL + 3
    softplus: log(1 + e^a); EXPONENTIAL + LOGARITHM + 1; gradient EXPONENTIAL + 3; never in place
    log_sigmoid: -log(1 + e^-a); EXPONENTIAL + LOGARITHM + 1; gradient EXPONENTIAL + 7;
        python logsigmoid; aten log_sigmoid_forward; never in place
    -: a - tanh(a); TRIGONOMETRIC + 1; python tanhshrink
    rrelu_with_noise: a or noise a; 2; of self noise; gradient 1
""")

GRADIENTS: Final = rows("""
    -: dy where a is above a limit; 1; of grad_output self; no gradient; aten threshold_backward
    -: dy where a is between two limits; 2; of grad_output self; no gradient; aten hardtanh_backward
    -: dy or slope dy; 2; of grad_output self; no gradient; aten leaky_relu_backward
    -: dy or noise dy; 1; of grad_output _self noise; no gradient; aten rrelu_with_noise_backward
    -: dy, or 0 between two limits; 2; of grad_out self; no gradient; aten hardshrink_backward
    -: dy, or 0 between two limits; 2; of grad_output self; no gradient; aten softshrink_backward
    -: dy / 6 between two limits; 3; of grad_output self; no gradient; aten hardsigmoid_backward
    -: dy (a / 3 + 1/2) between two limits; 5; of grad_output self; no gradient;
        aten hardswish_backward
    -: dy s (1 + a (1 - s)), s the sigmoid of a; SIGMOID + 5; of grad_output self; no gradient;
        aten silu_backward
    -: dy times the derivative of mish; EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + SIGMOID + 6;
        of grad_output self; no gradient; aten mish_backward
    -: dy or dy alpha e^a; EXPONENTIAL + 3; of grad_output _ _ _ _ self_or_result; no gradient;
        aten elu_backward
    -: dy e^a / (1 + e^a); EXPONENTIAL + 3; of grad_output self; no gradient; aten softplus_backward
    -: dy (1 - sigmoid of a); EXPONENTIAL + 7; of grad_output self; no gradient;
        aten log_sigmoid_backward
    -: dy (1 - y) y; 3; of grad_output output; no gradient; aten sigmoid_backward
    -: dy (1 - y^2); 3; of grad_output output; no gradient; aten tanh_backward
    -: dy / (a (1 - a)); 3; of grad_output self; no gradient; aten logit_backward
""")
