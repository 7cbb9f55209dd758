"""Scripts of `fastprof repro` as modules."""

from importlib import util
from pathlib import Path
from types import ModuleType


def as_module(text: str, folder: Path) -> ModuleType:
    """A script as a module, of which nothing runs yet."""
    path = folder / "repro.py"
    path.write_text(text)
    spec = util.spec_from_file_location("repro_script", path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
