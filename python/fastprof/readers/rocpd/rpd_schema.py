"""The schema of files of rocmProfileData (.rpd), versions 1 to 3, as data. Imports no numpy.

Ids of GPU work and of API calls are unique in a file, also where several processes wrote it:
rocpd_api_ops joins them. In version 1, sizes of grids and copies belong to GPU work; since version
2, to API calls. Since version 3, texts that seldom repeat are in a table of their own, and API
calls have a domain. Source: rocpd_python/rocpd/schema_data/tableSchema.cmd of ROCm/rocmProfileData,
and rpd_tracer there for the meaning of names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

OPS: Final = "rocpd_op"
CALLS: Final = "rocpd_api"
LINKS: Final = "rocpd_api_ops"
STRINGS: Final = "rocpd_string"
RARE_STRINGS: Final = "rocpd_ustring"
METADATA: Final = "rocpd_metadata"
# Sizes of kernels and copies: the table, and its column of the API call, or of the GPU work.
OF_KERNELS: Final = (("rocpd_kernelapi", "api_ptr_id"), ("rocpd_kernelop", "op_ptr_id"))
OF_COPIES: Final = (("rocpd_copyapi", "api_ptr_id"), ("rocpd_copyop", "op_ptr_id"))


def recognises(tables: Mapping[str, Collection[str]]) -> bool:
    """Whether a file with these tables is one of rocmProfileData."""
    return {OPS, CALLS, STRINGS} <= tables.keys()
