"""Classifies kernels by name: kind of work, operand layout, tensor cores, auxiliary or not.

Names are conventions of libraries and compilers, so this is a heuristic table
(`fastprof.ops.kernels`). A kernel without a matching row is "other"; a property that the
name does not encode is None.

The table of kernel names: words in a name -> kind of work.

Words are lower case. They are searched in the relevant part of the name (see
`fastprof.ops.kernels`) in lower case, with and without underscores: `softmax` matches `SoftMax` and
`soft_max`. A word with an underscore matches only itself, `^` is the beginning of the name, and
`a&b` requires both words. The first matching row wins, so put specific rows before general ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex


class Row(NamedTuple):
    """Words, and the kind of kernels with one of them in their names (see `KernelInfo`)."""

    kind: str
    words: str
    auxiliary: bool = False


ROWS: Final = (
    Row(
        "memcpy",
        "^memcpy ^cudamemcpy ^[cudamemcpy ^[cudaunifiedmemorymemcpy ^copyhostto ^copydeviceto "
        "^__amd_rocclr_copybuffer ^__amd_rocclr_copyimage",
    ),
    Row("memset", "^memset ^cudamemset ^[cudamemset ^__amd_rocclr_fillbuffer"),
    # Inductor's prefixes: pointwise, reduction, persistent reduction, foreach, split scan. Template
    # kernels (tem) are classified by their operator.
    Row(
        "triton-fused",
        "^triton_poi_ ^triton_red_ ^triton_per_ ^triton_for_ ^triton_spl_ ^triton_split_scan_ "
        "^triton_mix_ ^triton_unk_ ^triton_fused_ ^triton__0",
    ),
    Row("attention", "^triton_tem_&flex ^triton_tem_&attention"),
    Row("convolution", "^triton_tem_&convolution ^triton_convolution"),
    Row("gemm", "^triton_tem_ ^triton_mm ^triton_bmm ^triton_addmm"),
    Row(
        "communication",
        "^nccl ^rccl ^msccl nvshmem crossdevicereduce ^all_reduce _all_reduce :all_reduce "
        "^allreduce _allreduce :allreduce shotallreduce ^all_gather _all_gather :all_gather "
        "^allgather _allgather :allgather reducescatter alltoall deep_ep:: userbuffers",
    ),
    # Steps before and after the products of an attention: sums over dO * O, gradient conversions,
    # combined splits.
    Row(
        "attention",
        "dotdoo sumodo ograddoto bwdpreprocess bwdpostprocess flash&convert fusion::convertdq "
        "fmha&convert fmhareduce flash&combine fmha&combine flash&cleardkv attention&reduce "
        "flash&prepare mergestate attn&preprocess mlareduce fwdkernelstage2",
        auxiliary=True,
    ),
    Row(
        "attention",
        "flashfwd flashbwd flashattn flashmla flash:: fmha mmha sdpa attention mha_ fna:: "
        "attnfwd attnbwd bwd_kernel_dk_dv bwd_kernel_dq withkvcache withpagedkvcache "
        "mladecode flexdecoding ^mla_ aiter::mla_ aiter::pa_ fwdkernelstage1 fwdgroupedkernel",
    ),
    Row("softmax", "softmax"),
    # Transforms of a Winograd or FFT convolution (its products are gemms) or of an explicit GEMM
    # convolution, and offset tables of an implicit one.
    Row(
        "convolution",
        "winograd_nonfused winogradforward winogradwgrad generatewinogradtiles winograd&xform "
        "fft2d_r2c fft2d_c2r fft1d_r2c fft1d_c2r flipfilter im2col col2im im2d2col vol2col "
        "col2vol computeoffsetskernel computeboffsetskernel computewgrad&offsetskernel "
        "precompute_indices reducewgrad cudnn&reducesplitk",
        auxiliary=True,
    ),
    # Scaling and clearing of a convolution's tensors.
    Row("elementwise", "scalepackedtensor scaletensor subtensoropwithscalar", auxiliary=True),
    Row(
        "copy",
        "nchwtonhwc nhwctonchw nchwtofoldednhwc foldednhwctonchw nchwaddpadding "
        "tensortransformgeneric generictranspose_ converttensor_ transposereadwrite "
        "batched_transpose_ subtensorop nchw2cnhw cnhw2nchw",
        auxiliary=True,
    ),
    Row(
        "normalisation",
        "batchnorm layernorm groupnorm instancenorm rmsnorm weightnorm l2norm_fwd l2norm_bwd "
        "ln_fwd ln_bwd ln_parallel_residual bn_fw bn_bw bn_c_last bn_addrelu welford "
        "rowwisemoments gammabeta computeinternalgradients fusedparamscuda cucomputegradinput",
    ),
    Row(
        "convolution",
        "scudnn hcudnn icudnn 884cudnn 8816cudnn 1688cudnn 16816cudnn 16832cudnn implicitgemm "
        "cutlass::conv convolve convolution convolnd fprop ^dgrad _dgrad :dgrad 4dgrad 6dgrad "
        "8dgrad ^wgrad _wgrad :wgrad 4wgrad 6wgrad 8wgrad winograd igemm_fwd igemm_bwd igemm_wrw "
        "asmconv miopenconv miopencv naiveconv groupedconv convdepthwise depthwiseconv "
        "conv1d conv2d conv3d conv1x1 conv3x3 grouped_direct _conv_fwd _conv_bwd cudnn::cnn:: "
        "gemm_xdlops_bwd_weight",
    ),
    Row("elementwise", "rotary rope_ _rope"),
    # Before optimizer: an embedding's backward may include the optimizer step.
    Row("index", "embedding"),
    Row(
        "optimizer",
        "multitensor adam adagrad adadelta rmsprop ^sgd _sgd sgd_ fusedsgd ^lamb_ _lamb_ fusedlamb "
        "lambstage ^lion _lion fusedlion koptimizer ampupdatescale",
    ),
    # Operands of a product: packed, scaled, quantised.
    Row("elementwise", "silu&quantdeepgemm"),
    Row("copy", "repack scale1x128 quantdeepgemm"),
    Row(
        "gemm",
        "splitkreduce reducesplitk reduce_1block epilogue::impl postgsu compute_gemm_pointers "
        "gemm_&_reduce_kernel",
        auxiliary=True,
    ),
    # Includes cuBLAS's dot product (dot_kernel) and persistent recurrent layers. bmm_: TensorRT,
    # with activation (swiGlu) and bias; fmoe_, flatmm and wvsplitk are AMD's.
    Row(
        "gemm",
        "gemm gemv nvjet ^cijk_ ^dot_kernel rocblas_dot matmul tensorop_ wmma marlin fusedmoe "
        "^bmm_ fmoe_ flatmm wvsplitk "
        "^mm_kernel _mm_kernel bmm_kernel groupedmm scaledmm rnn_blockpersist rnn_persist "
        "persistrnn syrk trmm spmm csrmm csrmv bmmchunk chunkscan chunkstate",
    ),
    Row(
        "random",
        "dropout distribution_ philox random randperm _rand_ ^rand_ randn _normal_ ^normal_ "
        "bernoulli curand multinomial samplingfrom generate_seed",
    ),
    Row("index", "searchsorted bucketize moealign copyif"),
    Row("sort", "sort topk radix bitonic kthvalue gathermedian routingmainkernel"),
    Row(
        "index",
        "indexselect indexfunc indexadd indexcopy indexput indexfill indexing index_elementwise "
        "gather scatter maskedselect maskedfill nonzero deviceselect devicepartition unique "
        "writeindices find_long_segments krn_partial compute_grad_weight embs_ permute_1d "
        "permute_2d permute_indices boundscheckindices linearizeindex offsetsrange jagged "
        "denserepresentation reshapeandcache kvcache expandinputrows",
    ),
    Row("elementwise", "elementwise pointwise elemwise kernelwithindex tril_ triu_"),
    # Sums, pooling, scans, losses, histograms.
    Row(
        "reduction",
        "reduc pool devicescan scankernel _scan scan_ cumsum cumprod compactinit nllloss "
        "classnllcriterion ctcloss marginloss crossentropy histogram histc bincount "
        "segmentsum segmentcsr cdist pdist argmax argmin nrm2_kernel asum_kernel iamax_kernel "
        "moesum moe::dev::finalize finalizemoe",
    ),
    Row(
        "copy",
        "catarray concat copy transpose permute cast convert quantize dequant _quant quant_ "
        "vectorquant fp8rowwise "
        "roll_cuda flip reflectionpad replicationpad pad_kernel padkernel chunkcat shuffle",
    ),
    Row("normalisation", "_norm norm_ normkernel"),
    Row(
        "elementwise",
        "upsample gridsampler interpolate arange linspace fill activation actandmul relu gelu silu "
        "swiglu geglu gatedact elementmul sigmoid optensor op_generic_tensor op1dtensor op2dtensor "
        "op3dtensor op4dtensor op5dtensor addtensor addbias biasadd cellforward cellbackward "
        "axpy_kernel scal_kernel parallelfor foreach transformkernel vectorized maskedscale",
    ),
    Row("index", "index indices"),
    Row("gemm", "^cutlass"),
    # Triton up to 2.x appends the specialisation of the arguments.
    Row("triton-fused", "triton _0d1 _01d"),
)

# Gradients of a convolution, in the same notation. The meaning of cuDNN's strided kernels (gradient
# of the input; of the filter, if split) is undocumented and taken from traces.
GRADIENTS: Final = (
    (
        "wgrad",
        "wgrad wrw bwdweight bwdfilter backwardweight backwardfilter bwdwei gradweight "
        "accgradparam stridedbsplitk",
    ),
    (
        "dgrad",
        "dgrad bwddata bwdinput backwarddata backwardinput gradinput igemmbwd naiveconvbwd "
        "depthwise2dbackward stridedb",
    ),
)

# Whether a gemm, convolution or attention uses tensor (matrix) cores: patterns for re.search in the
# lower-case name. The first match wins.
TENSOR_CORES: Final = (
    (False, r"simt|ffma|xmma_\w*_f32f32_f32f32_f32|fmha_cutlass[fb]_(?:\w*_sm50|f32\w*_sm7)"),
    (
        True,
        # Instruction shape before the operation: s1688gemm, i8816cudnn, s16816fprop.
        r"[a-z]\d{3,6}(?:gemm|cudnn|[fdw](?:prop|grad))|tensorop|tensor\d+x\d+x\d+"
        r"|[dhiqw]mma|gmma|umma|xmma_(?:gemm|[fdw](?:prop|grad))_|nvjet_|deep_gemm"
        r"|fp8_gemm|marlin|^(?:bmm|gemm)_(?:mx)?(?:e\dm\d|bfloat16|fp16)_|mma_mxf\d|moe_mxgemm"
        r"|flash_(?:fwd|bwd)|flashattn(?:fwd|bwd)|flash::flash|sdpa_sm\d+_flash"
        r"|fmha_(?:v2|fprop|dgrad|fwd_loop)|fmha_cutlass[fb]_(?:b?f16\w*|f32\w*)_sm[789]"
        r"|_mi\d+x\d+|mfma|xdl|gtcx|fmha(?:fwd|bwddqdkdv)kernel"
        r"|fmhasm\d+|flatmm|fmoe_",
    ),
    (
        False,
        r"(?<![a-z])(?:[sdczhi]|gc)gemm|pluscgemm|convolve_[a-z]*gemm|gemv|gemmsn|gemmk1"
        r"|dot_kernel|rocblas_dot|[shi]cudnn|[dw]grad_(?:alg\d_)?engine|[dw]grad2d_alg|winograd3x3"
        r"|conv_depthwise|depthwiseconv|grouped_direct|naive_conv|sp3asmconv(?:_v|3x3)",
    ),
)


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


@lru_cache(1024)  # several columns need it
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
