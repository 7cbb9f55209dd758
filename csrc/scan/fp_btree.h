/* fp_btree.h: find the leaf pages of a table, in order of row id, from its root page.
 *
 * A table is a B-tree: interior pages hold keys and child pages, leaf pages hold rows
 * (https://www.sqlite.org/fileformat2.html, "B-tree Pages"). The few interior pages are all read
 * first, level by level. Leaves can then be read in large runs and divided among threads. */
#pragma once

#include "base/fp_status.h"
#include "scan/fp_pages.h"

enum { FP_BTREE_LEAF = 0x0d, FP_BTREE_INTERIOR = 0x05, FP_BTREE_LEAF_HEADER = 8 };

/* Row ids in a leaf are greater than `last` of the previous leaf and at most its own `last`. */
typedef struct {
  int64_t last;
  uint32_t page;
} fp_leaf;

typedef struct {
  fp_leaf *leaves; /* owned; released by fp_btree_free */
  int64_t n;
} fp_btree;

/* Reads and checks all interior pages. Returns FP_E_UNUSUAL and sets *why if one is invalid or a
 * page occurs twice. Leaf pages are checked when they are read. */
fp_status fp_btree_init(const fp_pages *pages, uint32_t root, fp_btree *tree, const char **why);
void fp_btree_free(fp_btree *tree);

/* The cell pointer array of a page, *n entries of 2 bytes; NULL if *n cells do not fit in a page.
 * `header` is the size of the page header: 8, or 12 on an interior page. */
const uint8_t *fp_btree_cells(const fp_pages *pages, const uint8_t *page, int header, uint32_t *n);
