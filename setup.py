"""Builds one extension module for each src/fastprof/_core/*.pyx with the C files it needs.

FASTPROF_DEBUG=1 builds with bounds checks and assertions, FASTPROF_SANITIZE=1 with ASan and UBSan.
"""

import os
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("FASTPROF_DEBUG") == "1"
SANITIZE = os.environ.get("FASTPROF_SANITIZE") == "1"

# Which C files each module is built from; every C file includes only headers in csrc/.
C_FILES = {
    "_status": [],
    "_ranges": [],
    "_layers": [],
    "_hooks": [],
    "_slots": [],
    "_stacks": [],
    "_frames": [],
    "_pools": ["fp_names", "fp_keys"],
    "_column": ["fp_column", "fp_names", "fp_keys"],
    "_scan": ["fp_scan", "fp_column", "fp_names", "fp_keys"],
    "_pages": [
        *("fp_walk", "fp_btree", "fp_record", "fp_pages"),
        *("fp_column", "fp_names", "fp_keys"),
    ],
    "_join": ["fp_join", "fp_keys"],
    "_tree": ["fp_tree"],
    "_nest": ["fp_nest", "fp_itree", "fp_order", "fp_tree"],
    "_path": ["fp_path", "fp_tree"],
    "_link": ["fp_link"],
    "_share": ["fp_share"],
    "_calls": ["fp_calls"],
    "_take": ["fp_take"],
    "_rows": ["fp_rows", "fp_seqmarkers"],
    "_dict": ["fp_dict", "fp_literal", "fp_names"],
    "_kineto": [
        *("fp_kineto", "fp_kineto_event", "fp_kineto_events", "fp_kineto_rows", "fp_kineto_texts"),
        *("fp_json", "fp_decimal", "fp_names", "fp_keys"),
    ],
}

compile_args = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-O2", "-g0"]
# What gcc 14 refuses, other compilers refuse too: it would fail only when it is imported.
compile_args += [
    f"-Werror={each}"
    for each in ("implicit-function-declaration", "incompatible-pointer-types", "int-conversion")
]
link_args = []
if DEBUG or SANITIZE:
    compile_args += ["-O1", "-g", "-UNDEBUG"]
if SANITIZE:
    compile_args += ["-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
    link_args += ["-fsanitize=address,undefined"]


def extension(name: str, c_files: list[str]) -> Extension:
    return Extension(
        f"fastprof._core.{name}",
        sources=[f"src/fastprof/_core/{name}.pyx"] + [f"csrc/{c}.c" for c in c_files],
        depends=[str(path) for path in Path("csrc").glob("*.h")],
        include_dirs=["csrc", numpy.get_include()],
        define_macros=[
            ("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"),
        ],
        extra_compile_args=compile_args,
        extra_link_args=link_args,
    )


setup(
    ext_modules=cythonize(
        [extension(name, c_files) for name, c_files in C_FILES.items()],
        include_path=["src"],
        # What Cython writes depends on the declarations that numpy brings along.
        build_dir=f"build/cython-numpy-{numpy.__version__}",
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "initializedcheck": DEBUG,
            "cdivision": True,
            "embedsignature": True,
        },
    )
)
