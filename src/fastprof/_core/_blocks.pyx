"""Arrays made and freed within a `with` take turns in the same memory (fp_blocks.h)."""
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport uint8_t
from libc.string cimport memset, strcmp, strcpy

cnp.import_array()


cdef extern from "numpy/ndarraytypes.h":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t n, size_t size) noexcept nogil
        void *(*realloc)(void *ctx, void *memory, size_t size) noexcept nogil
        void (*free)(void *ctx, void *memory, size_t size) noexcept nogil
    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator


cdef extern from "fp_blocks.h":
    size_t FP_BLOCKS_LARGE
    ctypedef struct fp_blocks:
        pass
    ctypedef struct fp_blocks_sizes:
        size_t used
        size_t kept
        size_t most_used
    fp_blocks *fp_blocks_new() nogil
    void fp_blocks_delete(fp_blocks *blocks) noexcept nogil
    void fp_blocks_close(fp_blocks *blocks) noexcept nogil
    void *fp_blocks_allocate(fp_blocks *blocks, size_t size) noexcept nogil
    void *fp_blocks_allocate_zeros(fp_blocks *blocks, size_t n, size_t size) noexcept nogil
    void *fp_blocks_resize(fp_blocks *blocks, void *memory, size_t size) noexcept nogil
    void fp_blocks_free(fp_blocks *blocks, void *memory) noexcept nogil
    fp_blocks_sizes fp_blocks_held(fp_blocks *blocks) noexcept nogil


LARGE = FP_BLOCKS_LARGE

# What numpy calls the capsules that it takes.
cdef const char *_CAPSULE = "mem_handler"
cdef const char *_NAME = "fastprof"


cdef void *_allocate(void *blocks, size_t size) noexcept nogil:
    return fp_blocks_allocate(<fp_blocks *>blocks, size)


cdef void *_allocate_zeros(void *blocks, size_t n, size_t size) noexcept nogil:
    return fp_blocks_allocate_zeros(<fp_blocks *>blocks, n, size)


cdef void *_resize(void *blocks, void *memory, size_t size) noexcept nogil:
    return fp_blocks_resize(<fp_blocks *>blocks, memory, size)


cdef void _free(void *blocks, void *memory, size_t size) noexcept nogil:
    fp_blocks_free(<fp_blocks *>blocks, memory)


cdef PyDataMem_Handler *_handler_of(capsule) except NULL:
    return <PyDataMem_Handler *>PyCapsule_GetPointer(capsule, _CAPSULE)


cdef void _delete(capsule) noexcept:
    """The last array is gone, and so is the capsule that each of them holds."""
    cdef PyDataMem_Handler *handler = _handler_of(capsule)
    fp_blocks_delete(<fp_blocks *>handler.allocator.ctx)
    PyMem_Free(handler)


cdef object _new_handler():
    """A capsule as numpy takes it, with blocks of its own."""
    cdef PyDataMem_Handler *handler = <PyDataMem_Handler *>PyMem_Malloc(sizeof(PyDataMem_Handler))
    if handler is NULL:
        raise MemoryError
    memset(handler, 0, sizeof(PyDataMem_Handler))
    strcpy(handler.name, _NAME)
    handler.version = 1
    handler.allocator.malloc = _allocate
    handler.allocator.calloc = _allocate_zeros
    handler.allocator.realloc = _resize
    handler.allocator.free = _free
    handler.allocator.ctx = fp_blocks_new()
    if handler.allocator.ctx is NULL:
        PyMem_Free(handler)
        raise MemoryError
    return PyCapsule_New(handler, _CAPSULE, _delete)


cdef class Reused:
    """Within it, large arrays of this context get memory that earlier ones in it have freed.

    Arrays may outlive it. A thread that is started within has part in it when it runs in a copy of
    the context. Within another one it does nothing.
    """
    cdef object capsule, before

    def __enter__(self):
        current = cnp.PyDataMem_GetHandler()
        if strcmp(_handler_of(current).name, _NAME) != 0:
            self.capsule = _new_handler()
            self.before = cnp.PyDataMem_SetHandler(self.capsule)
        return self

    def __exit__(self, *exception):
        if self.capsule is not None:
            cnp.PyDataMem_SetHandler(self.before)
            fp_blocks_close(<fp_blocks *>_handler_of(self.capsule).allocator.ctx)
            self.capsule = self.before = None

    def held(self):
        """Bytes of large arrays: in use, kept for later, and the most that were in use at once.

        Zeros where it does nothing.
        """
        if self.capsule is None:
            return 0, 0, 0
        sizes = fp_blocks_held(<fp_blocks *>_handler_of(self.capsule).allocator.ctx)
        return sizes.used, sizes.kept, sizes.most_used
