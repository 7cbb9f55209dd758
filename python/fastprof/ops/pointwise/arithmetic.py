"""FLOPs of elementwise arithmetic, comparisons and bit operations."""

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
