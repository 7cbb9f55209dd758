"""The table of GPUs: peak FLOP/s and memory bandwidth from vendors' documents.

Figures are dense (no sparsity), at boost clock, with fp32 accumulation in tensor cores. GPUs are
identified by words in their names; see `fastprof.model.devices`.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple


class DeviceRow(NamedTuple):
    """A GPU.

    Parameters
    ----------
    words : the words of its name that identify it, in lower case
    sms : multiprocessors (AMD: compute units)
    clock : boost clock in MHz; 0 if the figures do not follow from it
    capability : compute capability; AMD: the architecture
    memory : GB; 0 if it does not identify the card
    bandwidth : GB/s
    source : the document with the figures
    fp64, fp64_tc, fp32, tf32, half, fp8, int8, fp4 : dense TFLOP/s (int8: TOP/s), 0 if not
        supported or not in the table; fp64_tc, tf32, half, fp8, int8, fp4 are those of tensor
        (matrix) cores; half is fp16 and bf16
    """

    words: str
    sms: int
    clock: int
    capability: str
    memory: int
    bandwidth: float
    source: str
    fp64: float
    fp64_tc: float
    fp32: float
    tf32: float
    half: float
    fp8: float
    int8: float
    fp4: float = 0.0


_WHITE_PAPERS: Final = {
    "Turing": "NVIDIA Turing GPU architecture white paper",
    "GA102": "NVIDIA Ampere GA102 GPU architecture white paper",
    "Ada": "NVIDIA Ada GPU architecture white paper",
    "Blackwell": "NVIDIA RTX Blackwell GPU architecture white paper",
}


_OF_AMD: Final = (("MI", "AMD Instinct"), ("RX ", "AMD Radeon"), ("PRO ", "AMD Radeon"))


def _row(line: str) -> DeviceRow:
    words, sizes, teraflops, source = (part.strip() for part in line.split("|"))
    sms, clock, capability, memory, bandwidth = sizes.split()
    vendor = next((name for begin, name in _OF_AMD if source.startswith(begin)), "NVIDIA")
    document = _WHITE_PAPERS.get(source, f"{vendor} {source} data sheet")
    fixed = int(sms), int(clock), capability, int(memory), float(bandwidth), document
    return DeviceRow(words, *fixed, *map(float, teraflops.split()))


# Words; SMs, MHz, capability, GB, GB/s; TFLOP/s: fp64, fp64_tc, fp32, tf32, half, fp8, int8, fp4;
# source. MI250 and MI250X: each of the two dies is a GPU. fp4 of NVIDIA is not in the table.
_TABLE: Final = """
p100           | 56 1480 6.0 16 732       | 5.3 0 10.6 0 21 0 0                 | P100
gp100          | 56 1480 6.0 16 732       | 5.3 0 10.6 0 21 0 0                 | Quadro GP100
v100 sxm       | 80 1530 7.0 0 900        | 7.8 0 15.7 0 125 0 0                | V100
v100 dgxs      | 80 1530 7.0 0 900        | 7.8 0 15.7 0 125 0 0                | V100
v100 pcie      | 80 1380 7.0 0 900        | 7 0 14 0 112 0 0                    | V100
v100s pcie     | 80 1597 7.0 32 1134      | 8.2 0 16.4 0 130 0 0                | V100S
t4             | 40 1590 7.5 16 320       | 0.25 0 8.1 0 65 0 130               | T4
rtx 8000       | 72 1770 7.5 48 672       | 0.51 0 16.3 0 130.5 0 261           | Turing
rtx 6000       | 72 1770 7.5 24 672       | 0.51 0 16.3 0 130.5 0 261           | Turing
titan rtx      | 72 1770 7.5 24 672       | 0.51 0 16.3 0 130.5 0 261           | Turing
rtx 2080 ti    | 68 1545 7.5 11 616       | 0.42 0 13.4 0 53.8 0 215            | Turing
rtx 2070 super | 40 1770 7.5 8 448        | 0.28 0 9.1 0 36.2 0 145             | Turing
a100           | 108 1410 8.0 40 1555     | 9.7 19.5 19.5 156 312 0 624         | A100
a100 sxm 80gb  | 108 1410 8.0 80 2039     | 9.7 19.5 19.5 156 312 0 624         | A100
a100 pcie 80gb | 108 1410 8.0 80 1935     | 9.7 19.5 19.5 156 312 0 624         | A100
a800 sxm       | 108 1410 8.0 80 2039     | 9.7 19.5 19.5 156 312 0 624         | A100
a800 pcie      | 108 1410 8.0 80 1935     | 9.7 19.5 19.5 156 312 0 624         | A100
a30            | 56 1440 8.0 24 933       | 5.2 10.3 10.3 82 165 0 330          | A30
a40            | 84 1740 8.6 48 696       | 0.58 0 37.4 74.8 149.7 0 299.3      | A40
a10            | 72 1695 8.6 24 600       | 0.49 0 31.2 62.5 125 0 250          | A10
a10g           | 80 1710 8.6 24 600       | 0.55 0 35 35 70 0 280               | A10G
a2             | 10 1770 8.6 16 200       | 0.07 0 4.5 9 18 0 36                | A2
rtx a6000      | 84 1800 8.6 48 768       | 0.6 0 38.7 77.4 154.8 0 309.7       | RTX A6000
rtx a5000      | 64 1695 8.6 24 768       | 0.43 0 27.8 55.6 111 0 222          | RTX A5000
rtx a4000      | 48 1560 8.6 16 448       | 0.3 0 19.2 38.3 76.7 0 153          | RTX A4000
rtx 3090 ti    | 84 1860 8.6 24 1008      | 0.63 0 40 40 80 0 320               | GA102
rtx 3090       | 82 1695 8.6 24 936       | 0.56 0 35.6 35.6 71.2 0 285         | GA102
rtx 3080 ti    | 80 1665 8.6 12 912       | 0.53 0 34.1 34.1 68.2 0 273         | GA102
rtx 3080       | 68 1710 8.6 10 760       | 0.47 0 29.8 29.8 59.5 0 238         | GA102
rtx 3070 ti    | 48 1770 8.6 8 608        | 0.34 0 21.7 21.7 43.5 0 174         | GA102
rtx 3060       | 28 1777 8.6 12 360       | 0.2 0 12.7 12.7 25.5 0 102          | GA102
l4             | 58 2040 8.9 24 300       | 0.47 0 30.3 60.6 121 242.5 242.5    | L4
l40            | 142 2490 8.9 48 864      | 1.41 0 90.5 90.5 181 362 724        | L40
l40s           | 142 2520 8.9 48 864      | 1.43 0 91.6 183 362 733 733         | L40S
rtx 6000 ada   | 142 2505 8.9 48 960      | 1.42 0 91.1 182 364 729 729         | RTX 6000 Ada
rtx 5000 ada   | 100 2550 8.9 32 576      | 1.02 0 65.3 131 261 522 522         | RTX 5000 Ada
rtx 4090       | 128 2520 8.9 24 1008     | 1.29 0 82.6 82.6 165.2 330 661      | Ada
rtx 4080       | 76 2505 8.9 16 717       | 0.76 0 48.7 48.7 97.5 195 390       | Ada
rtx 4070 ti    | 60 2610 8.9 12 504       | 0.63 0 40.1 40.1 80.2 160 321       | Ada
h100           | 132 1830 9.0 80 3352     | 33.5 66.9 66.9 494.7 989.4 1979 1979 | H100
h100 pcie      | 114 1620 9.0 80 2039     | 25.6 51.2 51.2 378 756 1513 1513    | H100
h100 nvl       | 132 1545 9.0 94 3938     | 30 60 60 417.5 835.5 1671 1671      | H100
h800           | 132 1830 9.0 80 3352     | 1 1 66.9 494.7 989.4 1979 1979      | H100
h200           | 132 1830 9.0 141 4800    | 33.5 66.9 66.9 494.7 989.4 1979 1979 | H200
h200 nvl       | 132 1545 9.0 141 4800    | 30 60 60 417.5 835.5 1671 1671      | H200
gh200          | 132 1830 9.0 96 4000     | 33.5 66.9 66.9 494.7 989.4 1979 1979 | GH200
gh200 144g     | 132 1830 9.0 144 4900    | 33.5 66.9 66.9 494.7 989.4 1979 1979 | GH200
h20            | 78 0 9.0 96 4000         | 1 0 44 74 148 296 296               | H20
b200           | 148 1850 10.0 180 8000   | 37 37 75 1125 2250 4500 4500        | HGX B200
gb200          | 148 2060 10.0 186 8000   | 40 40 80 1250 2500 5000 5000        | GB200 NVL72
rtx pro 6000 blackwell| 188 2617 12.0 96 1792    | 1.97 0 126 252 503.8 1008 1008      | Blackwell
rtx 5090       | 170 2407 12.0 32 1792    | 1.64 0 104.8 104.8 209.5 419 838    | Blackwell
rtx 5080       | 84 2617 12.0 16 960      | 0.88 0 56.3 56.3 112.6 225 450      | Blackwell
rtx 5070 ti    | 70 2452 12.0 16 896      | 0.69 0 43.9 43.9 87.9 176 352       | Blackwell
mi210          | 104 1700 gfx90a 64 1638  | 22.6 45.3 22.6 0 181 0 181          | MI210
mi250          | 104 1700 gfx90a 64 1638  | 22.6 45.3 22.6 0 181 0 181          | MI250
mi250x         | 110 1700 gfx90a 64 1638  | 23.9 47.9 23.9 0 191.5 0 191.5      | MI250X
mi300x         | 304 2100 gfx942 192 5325 | 81.7 163.4 163.4 653.7 1307.4 2614.9 2614.9 | MI300X
mi325x         | 304 2100 gfx942 256 6000 | 81.7 163.4 163.4 653.7 1307.4 2614.9 2614.9 | MI325X
mi300a         | 228 2100 gfx942 128 5300 | 61.3 122.6 122.6 490.3 980.6 1961.2 1961.2 | MI300A
mi350x         | 256 2200 gfx950 288 8000 | 72.1 72.1 144.2 0 2310 4620 4620 9200 | MI350X
mi355x         | 256 2400 gfx950 288 8000 | 78.6 78.6 157.3 0 2516 5033 5033 10100 | MI355X
rx 7900 xtx    | 96 2500 gfx1100 24 960   | 1.92 0 61.4 0 122.8 0 122.8         | RX 7900 XTX
rx 7900 xt     | 84 2400 gfx1100 20 800   | 1.61 0 51.6 0 103 0 103             | RX 7900 XT
rx 7900 gre    | 80 2245 gfx1100 16 576   | 1.44 0 46 0 92 0 92                 | RX 7900 GRE
rx 7800 xt     | 60 2430 gfx1101 16 624   | 1.17 0 37.3 0 74.6 0 74.6           | RX 7800 XT
rx 7700 xt     | 54 2544 gfx1101 12 432   | 1.1 0 35.2 0 70.3 0 70.3            | RX 7700 XT
rx 7600 xt     | 32 2755 gfx1102 16 288   | 0.71 0 22.6 0 45.1 0 45.1           | RX 7600 XT
rx 7600        | 32 2655 gfx1102 8 288    | 0.68 0 21.8 0 43.5 0 43.5           | RX 7600
pro w7900      | 96 2495 gfx1100 48 864   | 1.92 0 61.3 0 122.6 0 122.6         | PRO W7900
pro w7800      | 70 2499 gfx1100 32 576   | 1.41 0 45.2 0 90.5 0 90.5           | PRO W7800
pro w7700      | 48 2300 gfx1101 16 576   | 0.88 0 28.3 0 56.5 0 56.5           | PRO W7700
rx 9070 xt     | 64 2970 gfx1201 16 640   | 0 0 48.7 0 195 389 389              | RX 9070 XT
rx 9070        | 56 2520 gfx1201 16 640   | 0 0 36.1 0 145 289 289              | RX 9070
rx 9060 xt     | 32 3130 gfx1200 0 320    | 0 0 25.6 0 103 205 205              | RX 9060 XT
pro r9700      | 64 2920 gfx1201 32 640   | 0 0 47.8 0 191 383 383              | PRO R9700
"""

ROWS: Final = tuple(_row(line) for line in _TABLE.strip().splitlines())

# Multiply-adds per multiprocessor and clock cycle by compute capability, for GPUs without a row:
# fp64, fp64_tc, fp32, tf32, half, fp8, int8, fp4. Sources: CUDA C++ programming guide, "Throughput
# of native arithmetic instructions" (fp32, fp64, and all up to 7.0); white papers (tensor cores);
# AMD: white papers of CDNA 2, 3 and 4, and the data sheets above.
FMA: Final = {
    "3.5": (64, 0, 192, 0, 0, 0, 0),
    "3.7": (64, 0, 192, 0, 0, 0, 0),
    "5.0": (4, 0, 128, 0, 0, 0, 0),
    "5.2": (4, 0, 128, 0, 0, 0, 0),
    "6.0": (32, 0, 64, 0, 128, 0, 0),
    "6.1": (4, 0, 128, 0, 0, 0, 0),
    "7.0": (32, 0, 64, 0, 512, 0, 0),
    "7.5": (2, 0, 64, 0, 512, 0, 1024),
    "8.0": (32, 64, 64, 512, 1024, 0, 2048),
    "8.6": (2, 0, 128, 256, 512, 0, 1024),
    "8.9": (2, 0, 128, 256, 512, 1024, 1024),
    "9.0": (64, 128, 128, 1024, 2048, 4096, 4096),
    "10.0": (64, 64, 128, 2048, 4096, 8192, 8192),
    "12.0": (2, 0, 128, 256, 512, 1024, 1024),
    "gfx90a": (64, 128, 64, 0, 512, 0, 512),
    "gfx942": (64, 128, 128, 512, 1024, 2048, 2048),
    "gfx950": (64, 64, 128, 0, 2048, 4096, 4096, 8192),
    "gfx1100": (4, 0, 128, 0, 256, 0, 256),
    "gfx1101": (4, 0, 128, 0, 256, 0, 256),
    "gfx1102": (4, 0, 128, 0, 256, 0, 256),
    "gfx1200": (0, 0, 128, 0, 512, 1024, 1024),
    "gfx1201": (0, 0, 128, 0, 512, 1024, 1024),
}
# GeForce cards accumulate in fp32 at half the rate: capability -> the figures to halve.
HALVED: Final = {
    "7.5": ("half",),
    "8.6": ("tf32", "half"),
    "8.9": ("tf32", "half", "fp8"),
    "12.0": ("tf32", "half", "fp8"),
}
