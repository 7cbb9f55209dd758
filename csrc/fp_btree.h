/* fp_btree.h: the root page of a table -> its leaf pages, in order of row ids.
 *
 * A table is a B-tree whose interior pages say where rows are and whose leaf pages hold them
 * (https://www.sqlite.org/fileformat2.html, "B-tree Pages"). Interior pages are few: all are read
 * first, level by level, so that leaves can be read in large runs and shared among threads. */
#ifndef FP_BTREE_H
#define FP_BTREE_H

#include <stdint.h>

#include "fp_pages.h"
#include "fp_status.h"

enum { FP_BTREE_LEAF = 0x0d, FP_BTREE_INTERIOR = 0x05, FP_BTREE_LEAF_HEADER = 8 };

/* Row ids in a leaf are above the `last` of the leaf before, and at most its own. */
typedef struct {
  int64_t last;
  uint32_t page;
} fp_leaf;

typedef struct {
  fp_leaf *leaves; /* NULL-started; fp_btree_free */
  int64_t n;
} fp_btree;

/* Checks every interior page on the way, and that no page is met twice: FP_E_UNUSUAL, and *why.
 * That leaves are leaves is seen when they are read. */
fp_status fp_btree_init(const fp_pages *pages, uint32_t root, fp_btree *tree, const char **why);
void fp_btree_free(fp_btree *tree);

/* Where the cells of a page start: `cells`[i] for i < *n, 2 bytes each; NULL if it has more cells
 * than fit in a page. `header` is 8, or 12 on an interior page. */
const uint8_t *fp_btree_cells(const fp_pages *pages, const uint8_t *page, int header, uint32_t *n);

#endif
