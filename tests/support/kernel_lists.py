"""Hand-reviewed lists of kernel names and their classification."""

from pathlib import Path

from fastprof.ops import KernelInfo

TENSOR_CORES = {"-": None, "yes": True, "no": False}
ROLES = {"main": False, "helper": True}


def read_list(path: Path) -> dict[str, KernelInfo]:
    """Name to info, of lines of kind, layout, tensor cores, role and name with tabs between."""
    infos: dict[str, KernelInfo] = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, layout, tensor_cores, role, name = line.split("\t")
            assert name not in infos, name
            infos[name] = KernelInfo(
                kind, None if layout == "-" else layout, TENSOR_CORES[tensor_cores], ROLES[role]
            )
    return infos
