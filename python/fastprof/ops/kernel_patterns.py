"""The table of kernel names: words in a name -> kind of work.

Words are lower case. They are searched in the relevant part of the name (see
`fastprof.ops.kernels`) in lower case, with and without underscores: `softmax` matches `SoftMax` and
`soft_max`. A word with an underscore matches only itself, `^` is the beginning of the name, and
`a&b` requires both words. The first matching row wins, so put specific rows before general ones.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple


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
