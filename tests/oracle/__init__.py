"""What a trace says of its kernels, by plain Python over JSON and SQL.

Nothing here imports fastprof: `test_oracle*.py` compare both. The oracle goes one event at a time,
with lists and dictionaries, and is slow; it shares no rule's code with what it checks.

    kineto, nsys, nvprof : a file -> Capture: ranges with arguments, kernels with their launches
    nesting              : which range lies in which, which is innermost at an instant
    nodes                : names of autograd nodes -> names of forward operators
    links                : forward or backward, recomputed, and the forward call
    flops                : what products, convolutions and attention compute, from their own sizes
    work                 : kernels of one product, convolution or attention call
"""
