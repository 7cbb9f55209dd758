"""Build csrc/ as one static library, and an extension module from each .pyx in src/.

FASTPROF_DEBUG=1 adds bounds checks and assertions. FASTPROF_SANITIZE=1 adds ASan and UBSan; other
values are those of gcc's -fsanitize. Each variant keeps its objects in its own folder under build/,
and a build compiles only what changed.
"""

import functools
import os
import shutil
import subprocess
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_clib import build_clib
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

DEBUG = os.environ.get("FASTPROF_DEBUG") == "1"
SANITIZE = os.environ.get("FASTPROF_SANITIZE", "0")
SANITIZE = {"0": "", "1": "address,undefined"}.get(SANITIZE, SANITIZE)
VARIANT = "-".join(filter(None, [SANITIZE.replace(",", "-"), "debug" * DEBUG])) or "release"
FOLDER = Path("build", f"{VARIANT}-{sysconfig.get_config_var('SOABI')}")

try:
    N_JOBS = len(os.sched_getaffinity(0))
except AttributeError:  # macOS
    N_JOBS = os.cpu_count() or 1

CSRC = "csrc"
CORE = "fastprof._core"
# Utility code that Cython would otherwise repeat in every module.
SHARED = f"{CORE}._cyutility"
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "embedsignature": True,
}

COMPILE = ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-O3", "-g0"]
# Errors in gcc 14 and clang. With older compilers, they would only fail at import.
COMPILE += [
    f"-Werror={each}"
    for each in ("implicit-function-declaration", "incompatible-pointer-types", "int-conversion")
]
COMPILE += ["-fvisibility=hidden", "-MMD"]  # -MMD: list included files in a .d file
LINK = []
if DEBUG or SANITIZE:
    COMPILE += ["-O1", "-g", "-UNDEBUG"]
if SANITIZE:
    LINK = [f"-fsanitize={SANITIZE}"]
    COMPILE += [*LINK, "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
    COMPILE += ["-funsigned-char"]  # as on ARM
# Modules do not gain from -O3; sanitized, gcc needs eight times as long for them with -O1 -g.
LEVEL = ["-O0", "-g1"] if SANITIZE else ["-O1"] if DEBUG else ["-O2"]
COMPILE_MODULES = [*COMPILE, *LEVEL]


def kept_folder(name: str, compiler, *settings: object) -> Path:
    """A folder for objects, emptied when the compiler or a setting has changed."""
    version = subprocess.run([compiler.compiler_so[0], "--version"], capture_output=True, text=True)
    text = repr([version.stdout, compiler.compiler_so, compiler.linker_so, *settings])
    folder = FOLDER / name
    record = folder / "settings.txt"
    if not record.exists() or record.read_text() != text:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        record.write_text(text)
    return folder


def is_older(target: str, sources: list[str]) -> bool:
    """Whether a target is missing, or older than one of its sources."""
    if not os.path.exists(target):
        return True
    made = os.stat(target).st_mtime_ns
    return any(not os.path.exists(path) or os.stat(path).st_mtime_ns > made for path in sources)


def compile_object(compiler, source: str, flags: list[str], folder: str = "", **options) -> str:
    """Compile a C file if it or a file it includes has changed; returns the object file."""
    (target,) = compiler.object_filenames([source], output_dir=folder)
    includes = Path(target).with_suffix(".d")
    if includes.exists():
        # "target.o: source.c header.h \\\n header.h"
        sources = includes.read_text().replace("\\\n", " ").split(": ", 1)[1].split()
        if not is_older(target, sources):
            return target
    compiler.compile([source], output_dir=folder, extra_postargs=flags, **options)
    return target


class BuildCore(build_clib):
    """Build the static library, several C files at a time."""

    def build_libraries(self, libraries) -> None:
        ((name, info),) = libraries
        sources = info["sources"]
        self.build_clib = str(kept_folder("core", self.compiler, COMPILE, sources))
        compile_one = functools.partial(
            compile_object, self.compiler, flags=COMPILE, folder=self.build_clib,
            include_dirs=[CSRC],
        )  # fmt: skip
        with ThreadPoolExecutor(N_JOBS) as pool:
            objects = list(pool.map(compile_one, sources))
        self.archive = self.compiler.library_filename(name, output_dir=self.build_clib)
        if is_older(self.archive, objects):
            Path(self.archive).unlink(missing_ok=True)
            self.compiler.create_static_lib(objects, name, output_dir=self.build_clib)


class BuildPython(build_py):
    """Copy the Python files, and the pages of docs/ for the tool `guide` of `fastprof mcp`."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return  # the package is that of the checkout, which has the pages
        folder = Path(self.build_lib, "fastprof", "mcp", "pages")
        folder.mkdir(parents=True, exist_ok=True)
        for path in Path("docs").glob("*.md"):
            shutil.copy(path, folder)


class BuildModules(build_ext):
    """Generate C from the .pyx files, compile it and link each module with the static library."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or N_JOBS
        if self.inplace:
            self.build_lib = str(FOLDER / "lib")

    def run(self) -> None:
        self.run_command("build_clib")
        super().run()

    def build_extensions(self) -> None:
        import Cython
        from Cython.Build import cythonize

        settings = (COMPILE_MODULES, LINK, DIRECTIVES, Cython.__version__)
        folder = kept_folder("modules", self.compiler, *settings)
        generated = cythonize(
            self.extensions,
            nthreads=self.parallel,
            include_path=["src"],
            build_dir=str(folder),
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            quiet=not self.verbose,
        )
        sources = {extension.name: extension.sources for extension in generated}
        for extension in self.extensions:
            extension.sources = sources[extension.name]
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        (source,) = ext.sources
        made = compile_object(self.compiler, source, COMPILE_MODULES, include_dirs=ext.include_dirs)
        module = self.get_ext_fullpath(ext.name)
        if is_older(module, [made, self.get_finalized_command("build_clib").archive]):
            # The compiler compares the module with its object only. build_ext.run has given it the
            # static library.
            Path(module).unlink(missing_ok=True)
            self.compiler.link_shared_object([made], module, extra_postargs=LINK)


def extension(name: str, source: str) -> Extension:
    return Extension(name, sources=[source], include_dirs=[CSRC])


if __name__ == "__main__":
    modules = sorted(Path("src/fastprof/_core").glob("*.pyx"))
    setup(
        cmdclass={"build_clib": BuildCore, "build_ext": BuildModules, "build_py": BuildPython},
        libraries=[("fastprof", {"sources": sorted(map(str, Path(CSRC).rglob("*.c")))})],
        ext_modules=[
            # Cython writes this C file itself.
            extension(SHARED, "src/fastprof/_core/_cyutility.c"),
            *(extension(f"{CORE}.{path.stem}", str(path)) for path in modules),
        ],
    )
