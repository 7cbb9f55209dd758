"""The operators of the generated model: each function returns a Call for given shapes."""

from __future__ import annotations

from bench.calls import Call, Node, Op, Shape, tensor, value

FUNCTIONAL = "torch.nn.functional"
HALF, SINGLE = "bfloat16", "float32"
FORWARD_WINOGRAD = ("winograd_data", "winograd_filter", "winograd_gemm", "winograd_output")
BACKWARD_WINOGRAD = (
    *FORWARD_WINOGRAD,
    "winograd_wgrad_data",
    "winograd_wgrad_delta",
    "winograd_wgrad_gemm",
    "winograd_wgrad_output",
)


def linear(n_rows: int, n_in: int, n_out: int, gemm: str) -> Call:
    """x [rows, in] @ w.T [in, out] + b; backward is two products and a sum over the rows."""
    x, w, b, y = (n_rows, n_in), (n_out, n_in), (n_out,), (n_rows, n_out)
    grad = "gemm_head_grad" if gemm == "gemm_head" else "gemm_grad"  # the head is much larger
    backward = (
        Op("aten::mm", (y, w), (f"{grad}_input",)),
        Op("aten::mm", ((n_out, n_rows), x), (f"{grad}_weight", "split_k_reduce")),
        Op("aten::sum", (y,), ("sum_rows",)),
    )
    transposed = Op("aten::t", (w,), node=Node("TBackward0", (n_in, n_out), n_parameters=1))
    product_node = Node("AddmmBackward0", y, backward, n_parameters=1)
    product = Op("aten::addmm", (b, x, (n_in, n_out), (), ()), (gemm,), product_node)
    whole = Op("aten::linear", (x, w, b), inside=(transposed, product))
    arguments = (tensor(x, HALF), tensor(w, HALF), tensor(b, HALF))
    return Call(FUNCTIONAL, "linear", arguments, (whole,))


def matmul(a: Shape, b: Shape, gemm: str) -> Call:
    """Batched product a [batch, m, k] @ b [batch, k, n]."""
    y = (*a[:-1], b[-1])
    backward = (
        Op("aten::bmm", (a, y), ("gemm_context_grad",)),
        Op("aten::bmm", (y, b), ("gemm_scores",)),
    )
    product = Op("aten::bmm", (a, b), (gemm,), Node("BmmBackward0", y, backward))
    whole = Op("aten::matmul", (a, b), inside=(product,))
    return Call("Tensor", "matmul", (tensor(a, HALF), tensor(b, HALF)), (whole,))


def attention(shape: Shape) -> Call:
    """Causal scaled dot product attention of q, k, v [batch, heads, length, depth], fused."""
    qkv = (shape, shape, shape)
    kernels = ("flash_backward_dot", "flash_backward", "flash_backward_convert")
    backward = Op(
        "aten::_scaled_dot_product_flash_attention_backward",
        (shape, *qkv),
        inside=(Op("aten::_flash_attention_backward", (shape, *qkv), kernels),),
    )
    fused = Op(
        "aten::_scaled_dot_product_flash_attention",
        qkv,
        node=Node("ScaledDotProductFlashAttentionBackward0", shape, (backward,)),
        inside=(Op("aten::_flash_attention_forward", qkv, ("flash_forward",)),),
    )
    whole = Op("aten::scaled_dot_product_attention", qkv, inside=(fused,))
    arguments = (*(tensor(shape, HALF) for _ in qkv), value(True, "is_causal"))
    return Call(FUNCTIONAL, "scaled_dot_product_attention", arguments, (whole,))


def conv2d(x: Shape, w: Shape) -> Call:
    """3x3 convolution by Winograd transforms: x [n, c, h, w], w [k, c, 3, 3]."""
    y = (x[0], w[0], *x[2:])
    return convolution(x, w, y, ((1, 1), (1, 1)), FORWARD_WINOGRAD, BACKWARD_WINOGRAD)


def stem_conv2d(x: Shape, w: Shape) -> Call:
    """7x7 convolution with stride 2 on tensor cores; the images need no gradient."""
    y = (x[0], w[0], x[2] // 2, x[3] // 2)
    forward = ("nchw_to_nhwc", "conv_stem", "nhwc_to_nchw")
    backward = ("nchw_to_nhwc", "nchw_to_nhwc", "conv_stem_wgrad")
    return convolution(x, w, y, ((2, 2), (3, 3)), forward, backward)


def convolution(
    x: Shape,
    w: Shape,
    y: Shape,
    stride_and_padding: tuple[tuple[int, ...], ...],
    forward_kernels: tuple[str, ...],
    backward_kernels: tuple[str, ...],
) -> Call:
    backward = Op("aten::convolution_backward", (y, x, w), backward_kernels)
    inner = Op("aten::_convolution", (x, w), forward_kernels)
    node = Node("ConvolutionBackward0", y, (backward,), n_parameters=1)
    whole = Op("aten::convolution", (x, w), node=node, inside=(inner,))
    arguments = (tensor(x, SINGLE), tensor(w, SINGLE), value(None))
    arguments += tuple(value(pair) for pair in stride_and_padding)
    return Call(FUNCTIONAL, "conv2d", arguments, (Op("aten::conv2d", (x, w), inside=(whole,)),))


def batch_norm(x: Shape) -> Call:
    """Batch normalisation over the channels of x [n, c, h, w], counting its batches."""
    c = (x[1],)
    backward = Op("aten::cudnn_batch_norm_backward", (x, x, c), ("batch_norm_grad",))
    node = Node("CudnnBatchNormBackward0", x, (backward,), n_parameters=2)
    inner = Op("aten::cudnn_batch_norm", (x, c, c), ("batch_norm",), node)
    whole = Op("aten::batch_norm", (x, c, c, c, c), inside=(inner,))
    arguments = (tensor(x, SINGLE), *(tensor(c, SINGLE) for _ in range(4)), value(True))
    return Call(FUNCTIONAL, "batch_norm", arguments, (Op("aten::add_", ((),), ("add_one",)), whole))


def layer_norm(x: Shape) -> Call:
    """Layer normalisation over the last dimension of x [rows, features]."""
    features = x[-1:]
    kernels = ("layer_norm_grad", "layer_norm_grad_weight")
    backward = Op("aten::native_layer_norm_backward", (x, x, features), kernels)
    node = Node("NativeLayerNormBackward0", x, (backward,), n_parameters=2)
    inner = Op("aten::native_layer_norm", (x, features, features), ("layer_norm",), node)
    whole = Op("aten::layer_norm", (x, features, features), inside=(inner,))
    weights = (tensor(features, HALF), tensor(features, HALF))
    arguments = (tensor(x, HALF), value(features), *weights, value(1e-05))
    return Call(FUNCTIONAL, "layer_norm", arguments, (whole,))


def pointwise(
    mod: str, op: str, aten: str, x: Shape, dtype: str, kernel: str, node: Node, *rest: float
) -> Call:
    """An op that reads one tensor and plain numbers, and writes a tensor of the same shape."""
    arguments = (tensor(x, dtype), *(value(number) for number in rest))
    return Call(mod, op, arguments, (Op(aten, (x,), (kernel,), node),))


def gelu(x: Shape) -> Call:
    node = Node("GeluBackward0", x, (Op("aten::gelu_backward", (x, x), ("gelu_grad",)),))
    return pointwise(FUNCTIONAL, "gelu", "aten::gelu", x, HALF, "gelu", node)


def relu(x: Shape) -> Call:
    node = Node("ReluBackward0", x, (Op("aten::threshold_backward", (x, x), ("relu_grad",)),))
    return pointwise(FUNCTIONAL, "relu", "aten::relu", x, SINGLE, "relu", node)


def scale(x: Shape, factor: float) -> Call:
    node = Node("MulBackward0", x, (Op("aten::mul", (x, ()), ("scale",)),))
    return pointwise("Tensor", "__mul__", "aten::mul", x, HALF, "scale", node, factor)


def masked_fill(x: Shape) -> Call:
    node = Node("MaskedFillBackward0", x, (Op("aten::masked_fill", (x, x), ("masked_fill",)),))
    aten = "aten::masked_fill"
    return pointwise("Tensor", "masked_fill", aten, x, HALF, "masked_fill", node, -10000.0)


def softmax(x: Shape) -> Call:
    """Softmax over the last dimension."""
    backward = Op("aten::_softmax_backward_data", (x, x), ("softmax_grad",))
    inner = Op("aten::_softmax", (x,), ("softmax",), Node("SoftmaxBackward0", x, (backward,)))
    whole = Op("aten::softmax", (x,), inside=(inner,))
    return Call(FUNCTIONAL, "softmax", (tensor(x, HALF), value(-1, "dim")), (whole,))


def dropout(x: Shape) -> Call:
    backward = Op("aten::native_dropout_backward", (x, x), ("dropout_grad",))
    node = Node("NativeDropoutBackward0", x, (backward,))
    whole = Op(
        "aten::dropout", (x,), inside=(Op("aten::native_dropout", (x,), ("dropout",), node),)
    )
    arguments = (tensor(x, HALF), value(0.1), value(True), value(False))
    return Call(FUNCTIONAL, "dropout", arguments, (whole,))


def add(x: Shape, dtype: str) -> Call:
    """x + y: its backward passes the gradient on and launches nothing."""
    kernel = "add" if dtype == HALF else "add_fp32"
    whole = Op("aten::add", (x, x), (kernel,), Node("AddBackward0", x))
    return Call("Tensor", "__add__", (tensor(x, dtype), tensor(x, dtype)), (whole,))


def split_heads(n_rows: int, n_features: int) -> Call:
    """The three parts of x [rows, 3 features]; backward concatenates their gradients."""
    x, part = (n_rows, 3 * n_features), (n_rows, n_features)
    backward = Op("aten::cat", (part, part, part), ("concatenate",))
    whole = Op("aten::split", (x,), node=Node("SplitBackward0", x, (backward,)))
    return Call("Tensor", "split", (tensor(x, HALF), value(n_features), value(1, "dim")), (whole,))


def contiguous(x: Shape) -> Call:
    """Copy a transposed tensor into contiguous memory; backward launches nothing."""
    copy = Op("aten::copy_", (x, x), ("copy",))
    clone = Op("aten::clone", (x,), node=Node("CloneBackward0", x), inside=(copy,))
    whole = Op("aten::contiguous", (x,), inside=(clone,))
    return Call("Tensor", "contiguous", (tensor(x, HALF),), (whole,))


def embedding(n_rows: int, n_words: int, n_features: int) -> Call:
    """Rows of a table [words, features]; backward sorts the words, then adds row by row."""
    indices, table, y = (n_rows,), (n_words, n_features), (n_rows, n_features)
    kernels = ("sort_histogram", "sort_offsets", *("sort_pass",) * 4, "embedding_grad_count")
    kernels += ("embedding_grad", "embedding_grad_scatter")
    dense = Op("aten::embedding_dense_backward", (y, indices), kernels)
    backward = Op("aten::embedding_backward", (y, indices), inside=(dense,))
    gather = Op("aten::index_select", (table, indices), ("gather_rows",))
    node = Node("EmbeddingBackward0", y, (backward,), n_parameters=1)
    whole = Op("aten::embedding", (table, indices), node=node, inside=(gather,))
    arguments = (tensor(indices, "int64"), tensor(table, HALF), value(None), value(None))
    return Call(FUNCTIONAL, "embedding", arguments, (whole,))


def max_pool2d(x: Shape) -> Call:
    """3x3 maximum with stride 2 of x [n, c, h, w]."""
    y = (*x[:2], x[2] // 2, x[3] // 2)
    backward = Op("aten::max_pool2d_with_indices_backward", (y, x), ("max_pool_grad",))
    node = Node("MaxPool2DWithIndicesBackward0", y, (backward,))
    inner = Op("aten::max_pool2d_with_indices", (x,), ("max_pool",), node)
    whole = Op("aten::max_pool2d", (x,), inside=(inner,))
    arguments = (tensor(x, SINGLE), value(3), value(2), value(1))
    return Call(FUNCTIONAL, "max_pool2d", arguments, (whole,))


def mean_pool(x: Shape) -> Call:
    """Mean over height and width of x [n, c, h, w]."""
    backward = (Op("aten::expand", (x[:2],)), Op("aten::div", (x, ()), ("scale_strided",)))
    whole = Op("aten::mean", (x,), ("mean",), Node("MeanBackward1", x[:2], backward))
    return Call("Tensor", "mean", (tensor(x, SINGLE), value((2, 3))), (whole,))


def cast(x: Shape) -> Call:
    """fp32 to bfloat16, and the gradient back."""
    back = Op("aten::to", ((x),), inside=(Op("aten::_to_copy", (x,), ("cast",)),))
    node = Node("ToCopyBackward0", x, (back,))
    whole = Op("aten::to", (x,), inside=(Op("aten::_to_copy", (x,), ("cast",), node),))
    return Call("Tensor", "to", (tensor(x, SINGLE),), (whole,))


def cross_entropy(n_rows: int, n_classes: int) -> Call:
    """Mean negative log likelihood of n rows of class scores."""
    x, target = (n_rows, n_classes), (n_rows,)
    softmax_backward = Op("aten::_log_softmax_backward_data", (x, x), ("log_softmax_grad",))
    softmax_node = Node("LogSoftmaxBackward0", x, (softmax_backward,))
    log_softmax = Op("aten::_log_softmax", (x,), ("log_softmax",), softmax_node)
    loss_backward = Op("aten::nll_loss_backward", ((), x, target), ("fill", "nll_loss_grad"))
    loss_node = Node("NllLossBackward0", (), (loss_backward,))
    nll_loss = Op("aten::nll_loss_forward", (x, target), ("nll_loss",), loss_node)
    parts = (
        Op("aten::log_softmax", (x,), inside=(log_softmax,)),
        Op("aten::nll_loss_nd", (x, target), inside=(nll_loss,)),
    )
    whole = Op("aten::cross_entropy_loss", (x, target), inside=parts)
    arguments = (tensor(x, HALF), tensor(target, "int64"))
    return Call(FUNCTIONAL, "cross_entropy", arguments, (whole,))
