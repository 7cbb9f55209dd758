"""Classifies kernels by name: kind of work, operand layout, tensor cores, auxiliary or not.

Names are conventions of libraries and compilers, so this is a heuristic table
(`fastprof.ops.kernel_patterns`). A kernel without a matching row is "other"; a property that the
name does not encode is None.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.ops.kernel_patterns import GRADIENTS, ROWS, TENSOR_CORES, Row


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """The properties of a kernel encoded in its name.

    Parameters
    ----------
    kind : str
        One of `KINDS`:

        - gemm: products of matrices and vectors, including persistent recurrent layers
        - convolution: convolutions, their gradients and transforms
        - attention: fused attention
        - normalisation: batch, layer, group, RMS norm and their gradients
        - softmax: softmax, its logarithm and their gradients
        - reduction: sums, means, norms; also pooling, scans, histograms and losses
        - elementwise: arithmetic, fills, comparisons; also interpolation
        - copy: copies, type conversions, concatenations, permutations
        - index: embeddings, gathers and scatters, masks, searches, sparse formats
        - random: random numbers, dropout
        - optimizer: optimizer steps and all multi-tensor (foreach) kernels
        - communication: between devices
        - sort: sorts, top-k, medians
        - memset: fills by the driver
        - memcpy: copies by the driver
        - triton-fused: several operators fused by Inductor, or another Triton kernel of unknown
          work
        - other: FFTs, solvers, and all kernels without a matching row
    layout : str or None
        For a gemm, cuBLAS's layout of the left and right operand: "nn", "nt", "tn" or "tt" (n
        column-major, t transposed). For a convolution, "dgrad" or "wgrad" if it computes the
        gradient of the input or of the filter. None if the name does not encode it, as in Winograd
        kernels, and for forward kernels, which can also compute the input's gradient.
    tensor_core : bool or None
        Whether it uses tensor cores (matrix cores on AMD). None if the name does not encode it, for
        kinds other than gemm, convolution and attention, and for auxiliary kernels.
    auxiliary : bool
        Whether it only supports a product, convolution or attention: reduction of split products,
        layout changes, Winograd and FFT transforms, offset tables, gradient conversions.
    """

    kind: str
    layout: str | None = None
    tensor_core: bool | None = None
    auxiliary: bool = False


KINDS: Final = frozenset(row.kind for row in ROWS) | {"other"}
_PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})

# Characters used of a name, which can be 100 kB long; the rest is irrelevant.
_LONGEST: Final = 600
# Characters used of the template arguments of a launcher, which contain the kernel's name.
_LONGEST_ARGUMENTS: Final = 300

# The words of all rows in order: a word, further words that must match, the row.
_WORDS: Final = tuple(
    (first, others, row)
    for row in ROWS
    for first, *others in (word.split("&") for word in row.words.split())
)
_UNKNOWN: Final = Row("other", "")
_GRADIENT_WORDS: Final = tuple(
    (word, gradient) for gradient, words in GRADIENTS for word in words.split()
)
_USES: Final = tuple((uses, regex(pattern)) for uses, pattern in TENSOR_CORES)

# Irrelevant namespaces: spellings of the anonymous namespace, and fbgemm_gpu, which matches `gemm`.
_NAMESPACES: Final = (
    "(anonymous namespace)::",
    "<unnamed>::",
    "(anonymous_namespace)::",
    "{anonymous}::",
    "`anonymous namespace'::",
    "fbgemm_gpu::",
)
_NAMELESS: Final = regex(r"\b_GLOBAL__N_\w*::")
_RETURN_TYPE: Final = regex(
    r"\s*(?:void[ _]|[\w:]*enable_if(?:_t)?<.*?>(?:::type[ _]| ))\s*(?=[^\s(])"
)
_LAUNCHER: Final = regex(
    r"(?:^|::)(?:Kernel2?|device_kernel\w*|kentry\w*|_?kernel_agent|trampoline_kernel|gemm::kernel)$"
)
_LENGTH: Final = regex(r"S[0-9A-Z]*_|L?(\d+)")

# An ATen elementwise kernel that only copies or converts: demangled, mangled, and in THC.
_COPY_FUNCTION: Final = regex(
    r"elementwise_kernel\w*<[ _]*(?:(?:\(\w+\))?\d+,[ _]*)*"
    r"(?:(?:void[ _])?at::native::gpu_kernel_impl(?:_nocast)?<[ _]*)?"
    r"at::native::(?:[a-z0-9]+_)?copy_(?:kernel_cuda|device_to_device)\b"
    r"|elementwise_kernel\w*?I(?:Li\d+E)*(?:ZNS0_\d+gpu_kernel_impl(?:_nocast)?I)?Z*NS0_"
    r"(?:\d+_GLOBAL__N_(?:1|\w*?_(?:cu|ii)_[0-9a-f_]*?))?"
    r"\d+(?:[a-z0-9]+_)?copy_(?:kernel_cuda|device_to_device)"
    r"|kernelPointwiseApply2<[ _]*CopyOp<"
)
# _tn, _tn_align8, _tnn (nvjet, CUTLASS 3; the third letter is the output's layout).
_LAYOUT: Final = regex(r"_([nt][nt])[nt]?(?=_|$|>)")
# Tensile lists indices, the fastest first: Ailk is n, Alik t; Bljk n, Bjlk t.
_TENSILE: Final = regex(r"^cijk_(ailk|alik)c?_(bljk|bjlk)c?(?=_|$)")
_TENSILE_LETTER: Final = {"ailk": "n", "alik": "t", "bljk": "n", "bjlk": "t"}


def classify(name: str) -> KernelInfo:
    """Classify a kernel by its name.

    Parameters
    ----------
    name : str
        Long or short, demangled or mangled, from Nsight Systems, NVProf or the PyTorch profiler.
        Spaces may be replaced by underscores, and the name may be truncated.

    Returns
    -------
    KernelInfo
        A heuristic. It fails silently if a library renames its kernels (kind "other", or None), if
        a user's kernel has a misleading word in its name, and for kernels with two purposes: a
        convolution by sgemm is a gemm.

    Notes
    -----
    Takes about 10 us per name, regardless of its length.
    """
    name = _without_namespaces(name[:_LONGEST])
    info = _of_function(_subject(name))
    if info.kind == "elementwise" and _COPY_FUNCTION.search(name):
        return KernelInfo("copy")
    return info


# Most names in a trace are instances of a few templates.
@lru_cache(4096)
def _of_function(subject: str) -> KernelInfo:
    subject = subject.lower()
    words = f"^{subject} ^{subject.replace('_', '').replace(' ', '')}"
    row = _row(words)
    layout = None
    if row.kind == "gemm":
        layout = _operands(subject)
    elif row.kind == "convolution":
        layout = next((gradient for word, gradient in _GRADIENT_WORDS if word in words), None)
    product = row.kind in _PRODUCTS and not row.auxiliary
    return KernelInfo(row.kind, layout, _tensor_core(subject) if product else None, row.auxiliary)


def _row(words: str) -> Row:
    for first, others, row in _WORDS:
        if first in words and all(other in words for other in others):
            return row
    return _UNKNOWN


def _tensor_core(subject: str) -> bool | None:
    return next((uses for uses, pattern in _USES if pattern.search(subject)), None)


def _operands(subject: str) -> str | None:
    tensile = _TENSILE.search(subject)
    if tensile:
        return "".join(_TENSILE_LETTER[order] for order in tensile.groups())
    layout = _LAYOUT.search(subject)
    return layout[1] if layout else None


def _without_namespaces(name: str) -> str:
    for namespace in _NAMESPACES:
        name = name.replace(namespace, "")
    return _NAMELESS.sub("", name) if "_GLOBAL__N_" in name else name


def _subject(name: str) -> str:
    # The function's qualified name without return type, template arguments and parameters. Template
    # arguments are kept only for launchers, where they contain the kernel's name.
    if name.startswith("_Z"):
        base, arguments = _mangled(name)
    else:
        result = _RETURN_TYPE.match(name)
        name = name[result.end() :] if result else name
        # __global__ functions are not members, so template arguments are at the end.
        base, _, arguments = name.partition("<")
        base = base.partition("(")[0].strip()
    if arguments and _LAUNCHER.search(base):
        return f"{base}<{arguments[:_LONGEST_ARGUMENTS]}"
    return base


def _mangled(name: str) -> tuple[str, str]:
    # The qualified name up to the first template argument, and the rest (Itanium C++ ABI).
    nested = name.startswith("_ZN")
    end = 3 if nested else 2
    parts = []
    while match := _LENGTH.match(name, end):
        end = match.end()
        if match[1]:
            start, end = end, end + int(match[1])
            parts.append(name[start:end])
        if not nested:
            break
    parts = [part for part in parts if not part.startswith("_GLOBAL__N_")]
    return "::".join(parts), name[end + 1 :]
