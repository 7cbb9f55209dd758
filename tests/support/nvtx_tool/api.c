/* api.c: a library that exports the functions of the NVTX headers, to be called by name. */
#define NVTX_EXPORT_API
#include <nvtx3/nvToolsExt.h>
