/* fp_blocks.h: memory in large blocks, kept when it is freed and given out again.
 *
 * A page that is touched for the first time is cleared, and on a virtual machine that gives free
 * memory back it is fetched from the host first: that took longer than filling it. So large blocks
 * that are freed stay mapped and serve later requests, several small ones put together for one that
 * is larger, by moving their pages. Fresh pages are used when none are kept, or to make a block
 * longer; so what is held is about the most that was in use at once. Blocks are aligned for huge
 * pages.
 *
 * Blocks below FP_BLOCKS_LARGE, and all where there is no mremap, come from malloc. */
#ifndef FP_BLOCKS_H
#define FP_BLOCKS_H

#include <stddef.h>

/* From here on a page more does not count, and all columns of a million rows are large: as long as
 * some were malloc's, what one kind freed was nothing to the other. */
#define FP_BLOCKS_LARGE ((size_t)1 << 20)

/* Any number of threads may use one fp_blocks. */
typedef struct fp_blocks fp_blocks;

/* NULL when out of memory. */
fp_blocks *fp_blocks_new(void);

/* All blocks must have been freed. */
void fp_blocks_delete(fp_blocks *blocks);

/* From now on nothing is kept, and what is kept is given back to the system. Blocks in use stay. */
void fp_blocks_close(fp_blocks *blocks);

/* As malloc, calloc, realloc and free. */
void *fp_blocks_allocate(fp_blocks *blocks, size_t size);
void *fp_blocks_allocate_zeros(fp_blocks *blocks, size_t n, size_t size);
void *fp_blocks_resize(fp_blocks *blocks, void *memory, size_t size);
void fp_blocks_free(fp_blocks *blocks, void *memory);

/* Bytes of large blocks in use, kept for later, and the most that were in use at once. */
typedef struct {
  size_t used, kept, most_used;
} fp_blocks_sizes;

fp_blocks_sizes fp_blocks_held(fp_blocks *blocks);

#endif
