/* fp_pages.h: read pages of an SQLite file whose header permits direct reading, and find those of a
 * table.
 *
 * The format: https://www.sqlite.org/fileformat2.html, "The Database Header". Page numbers start at
 * 1. Pages are read, not mapped: a file that shrinks then causes an error, not a signal. */
#pragma once

#include "base/fp_status.h"

enum {
  FP_PAGES_HEADER = 100, /* bytes of the header */
  FP_PAGES_BEYOND = 8,   /* readable bytes after pages in memory, for loading numbers */
};

typedef struct {
  int file; /* descriptor open for reading; borrowed */
  uint32_t page_size;
  uint32_t usable; /* page size without the bytes reserved for extensions */
  uint32_t n_pages;
  bool has_pointer_map; /* auto_vacuum: SQLite may follow the map instead of an overflow chain */
} fp_pages;

/* Checks the header. FP_E_UNUSUAL: the file needs SQLite; *why has the reason. */
fp_status fp_pages_init(const uint8_t header[FP_PAGES_HEADER], int64_t file_size, int file,
                        fp_pages *pages, const char **why);

/* Whether the page exists and can belong to a table. */
int fp_pages_has(const fp_pages *pages, uint32_t page);

/* Reads pages first .. first + n - 1 into `bytes`; all must exist. */
fp_status fp_pages_read(const fp_pages *pages, uint32_t first, uint32_t n, uint8_t *bytes,
                        const char **why);

/* A run of pages in memory. */
typedef struct {
  uint8_t *bytes;
  uint32_t first, n, capacity; /* pages */
} fp_window;

/* Creates an empty window with the given capacity in pages; the owner frees its bytes. */
fp_status fp_window_init(const fp_pages *pages, uint32_t capacity, fp_window *window);

/* Replaces the contents by pages first .. first + n - 1; n is at most the capacity. */
fp_status fp_window_load(const fp_pages *pages, fp_window *window, uint32_t first, uint32_t n,
                         const char **why);

/* A page in the window, or NULL. */
static inline const uint8_t *fp_window_page(const fp_pages *pages, const fp_window *window,
                                            uint32_t page) {
  if (page - window->first >= window->n) return NULL; /* unsigned: wraps for smaller pages */
  return window->bytes + (size_t)(page - window->first) * pages->page_size;
}

static inline uint32_t fp_load_16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

static inline uint32_t fp_load_32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t fp_load_64(const uint8_t *p) {
  return (uint64_t)fp_load_32(p) << 32 | fp_load_32(p + 4);
}

/* Reads a varint of 1 to 9 bytes at p ("A variable-length integer or varint"); returns its end, or
 * NULL if it does not end before `end`. */
static inline const uint8_t *fp_varint(const uint8_t *p, const uint8_t *end, uint64_t *value) {
  uint64_t sum = 0;
  for (int i = 0; i < 8 && p < end; i++, p++) {
    sum = sum << 7 | (*p & 0x7f);
    if (*p < 0x80) {
      *value = sum;
      return p + 1;
    }
  }
  if (p >= end) return NULL;
  *value = sum << 8 | *p; /* the ninth byte has 8 value bits */
  return p + 1;
}

/* A table is a B-tree: interior pages hold keys and child pages, leaf pages hold rows, in order of
 * row id ("B-tree Pages"). The few interior pages are all read first, level by level. Leaves can
 * then be read in large runs and divided among threads. */
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
