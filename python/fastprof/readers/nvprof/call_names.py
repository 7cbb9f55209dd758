"""Names of API calls by callback id, for NVProf files, and demangling of C++ names.

The ids are CUpti_runtime_api_trace_cbid and CUpti_driver_api_trace_cbid of the CUPTI reference,
https://docs.nvidia.com/cupti/. Calls without a name here are shown as `cbid N`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final


def _named(prefix: str, table: str) -> dict[int, str]:
    words = table.split()
    return {
        int(number): prefix + name for number, name in zip(words[::2], words[1::2], strict=True)
    }


_RUNTIME: Final = """
    1 DriverGetVersion  2 RuntimeGetVersion  3 GetDeviceCount  4 GetDeviceProperties
    8 ConfigureCall  9 SetupArgument  10 GetLastError  11 PeekAtLastError  13 Launch
    14 FuncSetCacheConfig  15 FuncGetAttributes  16 SetDevice  17 GetDevice  20 Malloc
    21 MallocPitch  22 Free  25 MallocHost  26 FreeHost  27 HostAlloc  30 MemGetInfo  31 Memcpy
    32 Memcpy2D  41 MemcpyAsync  44 Memcpy2DAsync  49 Memset  50 Memset2D  51 MemsetAsync
    52 Memset2DAsync  126 ThreadSynchronize  129 StreamCreate  130 StreamDestroy
    131 StreamSynchronize  132 StreamQuery  133 EventCreate  134 EventCreateWithFlags
    135 EventRecord  136 EventDestroy  137 EventSynchronize  138 EventQuery  139 EventElapsedTime
    140 Malloc3D  142 Memset3D  143 Memset3DAsync  144 Memcpy3D  145 Memcpy3DAsync
    146 ThreadSetCacheConfig  147 StreamWaitEvent  151 PointerGetAttributes  152 HostRegister
    153 HostUnregister  154 DeviceCanAccessPeer  155 DeviceEnablePeerAccess  160 MemcpyPeer
    161 MemcpyPeerAsync  162 Memcpy3DPeer  163 Memcpy3DPeerAsync  164 DeviceReset
    165 DeviceSynchronize  166 DeviceGetLimit  167 DeviceSetLimit  169 DeviceSetCacheConfig
    171 ProfilerStart  172 ProfilerStop  173 DeviceGetByPCIBusId  174 DeviceGetPCIBusId
    176 IpcGetEventHandle  177 IpcOpenEventHandle  178 IpcGetMemHandle  179 IpcOpenMemHandle
    180 IpcCloseMemHandle  198 StreamCreateWithFlags  200 DeviceGetAttribute  201 StreamDestroy
    202 StreamCreateWithPriority  203 StreamGetPriority  205 DeviceGetStreamPriorityRange
    206 MallocManaged  207 OccupancyMaxActiveBlocksPerMultiprocessor
    210 OccupancyMaxActiveBlocksPerMultiprocessor  211 LaunchKernel
    251 OccupancyMaxActiveBlocksPerMultiprocessorWithFlags  269 LaunchCooperativeKernel
    272 LaunchCooperativeKernelMultiDevice  273 FuncSetAttribute  284 LaunchHostFunc
    310 GraphInstantiate  311 GraphLaunch  315 StreamBeginCapture  317 StreamIsCapturing
    319 StreamEndCapture  324 StreamGetCaptureInfo  370 EventRecordWithFlags  373 MallocAsync
    375 FreeAsync  391 MallocFromPoolAsync  409 StreamGetCaptureInfo_v2
    418 GraphInstantiateWithFlags  430 LaunchKernelExC  432 OccupancyMaxPotentialClusterSize
    433 OccupancyMaxActiveClusters  436 GraphInstantiateWithParams  440 GetDeviceProperties
"""
_DRIVER: Final = """
    1 Init  2 DriverGetVersion  3 DeviceGet  4 DeviceGetCount  5 DeviceGetName  7 DeviceTotalMem
    9 DeviceGetAttribute  14 CtxPushCurrent  15 CtxPopCurrent  17 CtxSynchronize  18 ModuleLoad
    19 ModuleLoadData  20 ModuleLoadDataEx  21 ModuleLoadFatBinary  22 ModuleUnload
    23 ModuleGetFunction  27 MemGetInfo  29 MemAlloc  31 MemAllocPitch  33 MemFree
    35 MemGetAddressRange  37 MemAllocHost  38 MemFreeHost  39 MemHostAlloc
    40 MemHostGetDevicePointer  42 MemHostGetFlags  43 MemcpyHtoD  45 MemcpyDtoH  47 MemcpyDtoD
    49 MemcpyDtoA  51 MemcpyAtoD  53 MemcpyHtoA  54 MemcpyAtoH  55 MemcpyAtoA  56 Memcpy2D
    57 Memcpy2DUnaligned  58 Memcpy3D  60 MemcpyHtoDAsync  62 MemcpyDtoHAsync  64 MemcpyDtoDAsync
    66 MemcpyHtoAAsync  67 MemcpyAtoHAsync  68 Memcpy2DAsync  69 Memcpy3DAsync  71 MemsetD8
    73 MemsetD16  75 MemsetD32  77 MemsetD2D8  79 MemsetD2D16  81 MemsetD2D32
    86 FuncSetCacheConfig  115 Launch  118 EventCreate  119 EventRecord  120 EventQuery
    121 EventSynchronize  122 EventDestroy  123 EventElapsedTime  124 StreamCreate
    125 StreamQuery  126 StreamSynchronize  127 StreamDestroy  135 GetExportTable
    216 MemsetD8Async  218 MemsetD16Async  220 MemsetD32Async  222 MemsetD2D8Async
    224 MemsetD2D16Async  226 MemsetD2D32Async  242 MemGetInfo  243 MemAlloc  244 MemAllocPitch
    245 MemFree  246 MemGetAddressRange  247 MemHostGetDevicePointer  248 Memcpy  249 MemsetD8
    250 MemsetD16  251 MemsetD32  252 MemsetD2D8  253 MemsetD2D16  254 MemsetD2D32
    259 DeviceTotalMem  271 MemHostAlloc  276 MemcpyHtoD  277 MemcpyHtoDAsync  278 MemcpyDtoH
    279 MemcpyDtoHAsync  280 MemcpyDtoD  281 MemcpyDtoDAsync  282 MemcpyAtoH  283 MemcpyAtoHAsync
    284 MemcpyAtoD  285 MemcpyDtoA  286 MemcpyAtoA  287 Memcpy2D  288 Memcpy2DUnaligned
    289 Memcpy2DAsync  290 Memcpy3D  291 Memcpy3DAsync  292 MemcpyHtoA  293 MemcpyHtoAAsync
    294 MemAllocHost  295 StreamWaitEvent  300 CtxSetCacheConfig  301 MemHostRegister
    302 MemHostUnregister  303 CtxSetCurrent  304 CtxGetCurrent  305 Memcpy  306 MemcpyAsync
    307 LaunchKernel  308 ProfilerStart  309 ProfilerStop  310 PointerGetAttribute
    312 DeviceCanAccessPeer  313 CtxEnablePeerAccess  318 MemcpyPeer  319 MemcpyPeerAsync
    320 Memcpy3DPeer  321 Memcpy3DPeerAsync  323 CtxPushCurrent  324 CtxPopCurrent
    325 EventDestroy  326 StreamDestroy  328 IpcGetMemHandle  329 IpcOpenMemHandle
    330 IpcCloseMemHandle  331 DeviceGetByPCIBusId  332 DeviceGetPCIBusId  334 IpcGetEventHandle
    335 IpcOpenEventHandle  362 LinkCreate  363 LinkAddData  364 LinkAddFile  365 LinkComplete
    367 StreamCreateWithPriority  368 StreamGetPriority  370 CtxGetStreamPriorityRange
    371 MemAllocManaged  374 OccupancyMaxActiveBlocksPerMultiprocessor  376 BinaryFree
    379 MemHostRegister  381 LinkCreate  382 LinkAddData  383 LinkAddFile
    384 OccupancyMaxPotentialBlockSize  386 DevicePrimaryCtxRetain  387 DevicePrimaryCtxRelease
    388 DevicePrimaryCtxSetFlags  389 DevicePrimaryCtxReset  392 DevicePrimaryCtxGetState
    450 PointerGetAttributes  451 OccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    452 OccupancyMaxPotentialBlockSizeWithFlags  458 StreamWaitValue32  469 EventCreateFromNVNSync
    473 StreamWaitValue64  477 LaunchCooperativeKernel  480 LaunchCooperativeKernelMultiDevice
    481 FuncSetAttribute  482 DeviceGetUuid  495 StreamBeginCapture  497 StreamEndCapture
    499 StreamIsCapturing  513 GraphInstantiate  514 GraphLaunch  527 LaunchHostFunc
    536 StreamGetCaptureInfo  539 StreamBeginCapture  544 DevicePrimaryCtxRelease
    545 DevicePrimaryCtxReset  546 DevicePrimaryCtxSetFlags  548 MemAddressFree  549 MemCreate
    550 MemRelease  551 MemMap  552 MemUnmap  567 IpcOpenMemHandle  578 GraphInstantiate
    587 EventRecordWithFlags  598 MemAllocAsync  600 MemFreeAsync  611 MemAllocFromPoolAsync
    626 GetProcAddress  629 StreamGetCaptureInfo  643 GraphInstantiateWithFlags  647 DeviceGetUuid
    652 LaunchKernelEx  656 GraphInstantiateWithParams  659 StreamWaitValue32
    661 StreamWaitValue64  675 OccupancyMaxPotentialClusterSize  676 OccupancyMaxActiveClusters
    677 GetProcAddress  678 LibraryLoadData  679 LibraryLoadFromFile
"""

# Of runtime and of driver calls.
CALL_NAMES: Final = (_named("cuda", _RUNTIME), _named("cu", _DRIVER))


# The demangler is recursive. Longer names stay mangled to protect the stack.
LONGEST = 1 << 16

# Candidates for the C++ library; None: already loaded in the process, as on macOS.
LIBRARIES = (None, "libstdc++.so.6", "libc++abi.so.1", "libc++.so.1")


def demangled(names: Sequence[str | None]) -> tuple[list[str | None], str | None]:
    """Demangle names. Names that do not follow the Itanium C++ ABI stay unchanged.

    Returns
    -------
    names : list of str or None
    problem : str or None
        The reason if all names stay mangled: no C++ library was found.
    """
    if not any(name is not None and name.startswith("_Z") for name in names):
        return list(names), None
    demangle = _demangler()
    if demangle is None:
        return list(names), "kernel names stay mangled: no libstdc++ or libc++ on this system"

    def one(name: str) -> str:
        if not name.startswith("_Z") or len(name) > LONGEST or "\0" in name:
            return name
        try:
            result = demangle(name.encode())
            return name if result is None else result.decode()
        except UnicodeError:
            return name

    return [name if name is None else one(name) for name in names], None


@cache
def _demangler() -> Callable[[bytes], bytes | None] | None:
    """A function that returns None for invalid names; None if no library was found."""
    for library in LIBRARIES:
        try:
            return _from_library(ctypes.CDLL(library), ctypes.CDLL(None))
        except (OSError, AttributeError, TypeError):
            continue
    return None


def _from_library(library: ctypes.CDLL, process: ctypes.CDLL) -> Callable[[bytes], bytes | None]:
    """Wrap `__cxa_demangle` (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#demangler).

    `free` is looked up in the process, not in libc: with a preloaded allocator, libc's would abort.
    """
    function, free = library["__cxa_demangle"], process["free"]
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 3]
    free.restype, free.argtypes = None, [ctypes.c_void_p]

    def demangle(name: bytes) -> bytes | None:
        text = function(name, None, None, None)
        if not text:
            return None
        result = ctypes.string_at(text)
        free(text)
        return result

    return demangle
