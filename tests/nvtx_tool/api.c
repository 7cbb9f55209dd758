/* api.c: the functions of the NVTX headers to a library that exports them, to be called by name. */
#define NVTX_EXPORT_API
#include <nvtx3/nvToolsExt.h>
