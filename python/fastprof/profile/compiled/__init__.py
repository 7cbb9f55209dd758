"""The source lines, layers and operators of kernels that torch.compile generated.

`parts` shares the work of a kernel among the nodes that it computes; `sites` finds, for each kernel
of a trace, the call in a compiled graph.
"""
