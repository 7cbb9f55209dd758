"""The class of an API call, by its name: what it does to the thread that calls it."""

from __future__ import annotations

from typing import Final

from fastprof._system.regex import regex

LAUNCH, SYNC, ALLOC, LOAD = "launch", "sync", "alloc", "load"
CREATE, COPY, OTHER = "create", "copy", "other"

# The first match decides. Names are without `cuda`, `cu` or `hip` and without a version.
_CLASSES: Final = (
    (SYNC, regex(r"\w*Synchronize")),
    (COPY, regex(r"Memcpy\w*Async|Memset|MemPrefetchAsync")),
    (SYNC, regex(r"Memcpy")),
    (
        LOAD,
        regex(
            r"(?:Module|Library)(?:Load|Unload)|GraphInstantiate|Link(?:Create|Add|Complete)"
            r"|(?:nv|hip)rtc\w*(?:Compile|Link)"
        ),
    ),
    (
        CREATE,
        regex(
            r"(?:Stream|Event|Ctx|GreenCtx|MemPool|Multicast)(?:Create|Destroy)"
            r"|DevicePrimaryCtx(?:Retain|Release|Reset)|DeviceReset|Init\Z|SetDevice\Z"
            r"|(?:Device|Ctx)(?:EnablePeerAccess|SetLimit)"
        ),
    ),
    (
        ALLOC,
        regex(
            r"(?:Ext|Host)?Malloc|Free|Host(?:Alloc|Free|Register|Unregister)"
            r"|Mem(?:Alloc|Free|Host(?:Alloc|Register|Unregister)|Create|Map|Unmap|Release)"
            r"|Mem(?:PoolTrimTo|Address(?:Reserve|Free))|Ipc(?:Open|Close)MemHandle"
        ),
    ),
    (LAUNCH, regex(r"\w*Launch")),
)
_AFFIXES: Final = regex(r"\A(?:cuda|cu|hip)(?=[A-Z])|(?:_v\d+|_ptsz|_ptds|_spt)+\Z")


def class_of(name: str) -> str:
    """launch, sync, alloc, load, create, copy or other.

    - sync: blocks the thread until the GPU is done (`*Synchronize`), and copies without `Async`.
      `*StreamWait*` only orders streams: other.
    - alloc: allocates, frees, maps or registers memory. load: loads, links or compiles code,
      instantiates graphs. create: creates or destroys streams, events or contexts.
    - copy: asynchronous copies and memsets. launch: kernels, graphs and host functions.
    """
    base = _AFFIXES.sub("", name)
    return next((kind for kind, pattern in _CLASSES if pattern.match(base)), OTHER)
