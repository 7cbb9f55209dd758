"""The help texts of reports, each with an example from a real capture. Imports no numpy."""

from __future__ import annotations

from typing import Final

SUMMARY: Final = """\
Where the GPU time goes. The lines above the table describe a step, if steps are
known: its length, how long the GPU works, MFU, phases and kinds of work. Rows are
groups of kernels that agree in all keys of --by; --where selects work.

`gpu` is the time of the whole capture, of all GPUs. `step` is the mean per step
and GPU over the counted steps, so that it compares with the length of a step;
time(%) then is its share, else that of `gpu`. Work that the counted steps leave
out, and time that counts twice as kernels overlap on streams, are notes.

$ fastprof summary resnet50.json.gz --limit 4 -w 80
Tesla V100-DGXS-32GB, 6 steps (ProfilerStep#5 to #10)
step 174.8 ms ± 5.7 (median 176.3 ms), 1516 kernels; GPU busy 100.6 ms, 57.5%,
  idle 74.24 ms
MFU 28.1% of fp32 peak, 50.2% of the time with kernels (777.6 GFLOP per step of
  176.3 ms)

phase      step(ms)  time(%)  kernels    kind           step(ms)  time(%)
backward      64.35     64.0     3228    convolution       58.38     58.0
forward       32.76     32.6     1680    normalisation     16.03     15.9
copy           2.00      2.0      324    elementwise       15.73     15.6
optimizer      1.31      1.3     2898    gemm               7.41      7.4
zero_grad      0.17      0.2      966    memcpy             1.92      1.9
                                         reduction          0.92      0.9
                                         copy               0.10      0.1
                                         memset             0.09      0.1
                                         ... 1 more rows

dir    op          calls  kernels  gpu(ms)  step(ms)  time(%)  roof(%)  lost(ms)
bprop  conv2d        318     1806    273.4      45.6     45.3     72.1      76.3
fprop  conv2d        318      606    126.6      21.1     21.0     79.0      26.6
bprop  batch_norm    318      318     61.9      10.3     10.3     76.6      14.5
fprop  batch_norm    318      318     34.2       5.7      5.7     83.1       5.8
... 19 more rows
total               7272     9096    603.6     100.6                       138.6
"""

LAYERS: Final = """\
The module tree with GPU time. A layer contains the layers inside it; `own` is
the rest. A backward kernel counts to the layer of its forward call, recomputed
work to the layer that it recomputes. Layers are in order of execution; a module
that runs several times is one row.

$ fastprof layers resnet18.json.gz --depth 2
layer                  forward(ms)  backward(ms)  gpu(ms)  time(%)  roof(%)
ResNet_0                    115.99        242.63   358.63     99.9     17.1
  Conv2d_0                    9.90          8.78    18.68      5.2      9.8
  BatchNorm2d_0              11.33         36.10    47.42     13.2     13.0
  ReLU_0                      2.07          2.66     4.73      1.3     81.5
  MaxPool2d_0                 5.47         14.92    20.39      5.7     17.0
  Sequential_0               34.71         83.25   117.96     32.9     15.1
  Sequential_1               24.52         51.33    75.85     21.1     16.8
  Sequential_3               14.99         26.27    41.26     11.5     21.0
  Sequential_5               12.70         19.08    31.78      8.9     21.1
  AdaptiveAvgPool2d_0         0.26          0.08     0.34      0.1     14.6
  Linear_0                    0.04          0.17     0.21      0.1      3.8
(no layer)                    0.10          0.05     0.31      0.1       na
total                       116.09        242.68   358.94              17.1
"""

LINES: Final = """\
Your source lines, with the GPU time of all that they call; `own` is without the
inner lines of the table. A backward kernel counts to the lines of its forward
call. Functions and files are in order of time. The text of the lines is shown
if the source files exist at their recorded paths or below --source DIR.
SOURCE lists files of your choice: of libraries too, and all lines of their
functions. --by function lists functions with own and cumulative time.

$ fastprof lines resnet50.json.gz
line       forward(ms)  backward(ms)  gpu(ms)  own(ms)  time(%)  roof(%)
resnet50_profiler_api.py   584.8 ms, 96.9 %
    44            0.00          0.00    11.49    11.49      1.9       na
    46          196.47        367.76   564.23   564.23     93.5     76.4
    47            0.06          0.07     0.13     0.13      0.0      4.3
    49            0.00          0.00     1.03     1.03      0.2     68.8
    50            0.01          0.00     0.01     0.01      0.0       na
    51            0.00          0.00     7.88     7.88      1.3     69.2

(no line)         0.00         18.79    18.79    18.79      3.1     87.7
total           196.53        386.62   603.56   603.56              76.6
"""

RANGES: Final = """\
Your own ranges: of record_function, NVTX and annotations, also without GPU work.
Ranges whose names differ in numbers are one row. `gpu` is the time of work launched
inside, on the thread of the range or on autograd's, for which it waits: `backward()`
has its pass. `with backward` adds the backward work of the calls inside: `forward` has
it too, so rows beside each other can add up to more than the range around them.

$ fastprof ranges train.json.gz -c range,count,wall_ns,gpu_ns,with_backward_ns,idle_ns
range                            count  wall(ms)  gpu(ms)  with backward(ms)  idle(ms)
ProfilerStep#*                       5    394.14   472.45             472.45      7.57
  ## forward ##                      5    145.94   150.44             461.53      3.91
    DistributedDataParallel.f…       5    145.37   150.44             461.53      3.91
  ## backward ##                     5    240.67   316.48             316.48      3.62
  ## optimizer ##                    5      4.83     5.53               5.53      0.03
    Optimizer.step#SGD.step          5      4.67     5.53               5.53      0.03
"""
