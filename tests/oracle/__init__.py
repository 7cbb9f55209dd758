"""An independent analysis of traces, in plain Python over JSON and SQL.

Nothing here imports fastprof; `test_oracle*.py` compare both. The oracle processes one event at a
time with lists and dictionaries. It is slow, and shares no code with fastprof.

    kineto, nsys, nvprof : a file -> Capture: ranges with arguments, kernels with their launches
    nesting              : parents of ranges, the innermost range at an instant
    nodes                : names of autograd nodes -> names of forward operators
    links                : forward or backward, recomputed, and the forward call
    flops                : FLOPs of products, convolutions and attention, from their own sizes
    work                 : kernels of one product, convolution or attention call
"""
