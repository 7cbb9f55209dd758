#include "scan/fp_btree.h"

#include "base/fp_room.h"

enum { INTERIOR_HEADER = 12, MOST_DEPTH = 20 /* SQLite's own limit */ };

/* The pages of one level of the tree. */
typedef struct {
  fp_leaf *items;
  size_t capacity;
  int64_t n;
} level;

typedef struct {
  const fp_pages *pages;
  uint8_t *seen; /* one bit per page */
  uint8_t *page;
  const char *why;
} walk;

static fp_status unusual(walk *w, const char *why) {
  w->why = why;
  return FP_E_UNUSUAL;
}

static fp_status add(walk *w, level *to, uint32_t page, int64_t last) {
  if (!fp_pages_has(w->pages, page))
    return unusual(w, "an interior page refers to a page outside the file");
  uint8_t bit = (uint8_t)(1u << (page & 7));
  if (w->seen[page >> 3] & bit) return unusual(w, "two interior pages refer to the same page");
  w->seen[page >> 3] |= bit;
  fp_status status = fp_reserve(&to->items, &to->capacity, (size_t)to->n + 1, sizeof *to->items);
  if (status != FP_OK) return status;
  to->items[to->n++] = (fp_leaf){last, page};
  return FP_OK;
}

const uint8_t *fp_btree_cells(const fp_pages *pages, const uint8_t *page, int header, uint32_t *n) {
  *n = fp_load_16(page + 3);
  /* A cell takes at least its 2-byte pointer and 4 bytes. */
  return *n > (pages->usable - (uint32_t)header) / 6 ? NULL : page + header;
}

/* Adds the children of w->page, whose row ids must be greater than `first` and at most `last`. */
static fp_status add_children(walk *w, level *to, int64_t first, bool has_first, int64_t last) {
  uint32_t n, usable = w->pages->usable;
  const uint8_t *cells = fp_btree_cells(w->pages, w->page, INTERIOR_HEADER, &n);
  if (!cells || !n) return unusual(w, "an interior page has an invalid number of cells");
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = fp_load_16(cells + 2 * i);
    uint64_t key;
    if (at < INTERIOR_HEADER + 2 * n || at + 4 >= usable ||
        !fp_varint(w->page + at + 4, w->page + usable, &key))
      return unusual(w, "a cell of an interior page lies outside the page");
    if ((has_first && (int64_t)key <= first) || (int64_t)key >= last)
      return unusual(w, "the row ids of an interior page are out of order");
    fp_status status = add(w, to, fp_load_32(w->page + at), (int64_t)key);
    if (status != FP_OK) return status;
    first = (int64_t)key;
    has_first = true;
  }
  return add(w, to, fp_load_32(w->page + 8), last);
}

/* Reads the next level. On leaf level, sets *is_leaf and nothing else. */
static fp_status descend(walk *w, const level *from, level *to, bool *is_leaf) {
  to->n = 0;
  for (int64_t i = 0; i < from->n; i++) {
    fp_status status = fp_pages_read(w->pages, from->items[i].page, 1, w->page, &w->why);
    if (status != FP_OK) return status;
    *is_leaf = i == 0 && w->page[0] == FP_BTREE_LEAF;
    if (*is_leaf) return FP_OK;
    if (w->page[0] != FP_BTREE_INTERIOR) return unusual(w, "a page is not a table page");
    int64_t first = i ? from->items[i - 1].last : 0;
    status = add_children(w, to, first, i > 0, from->items[i].last);
    if (status != FP_OK) return status;
  }
  return FP_OK;
}

static fp_status find_leaves(walk *w, uint32_t root, level levels[2], fp_btree *tree) {
  fp_status status = add(w, &levels[0], root, INT64_MAX);
  for (int depth = 0; status == FP_OK && depth < MOST_DEPTH; depth++) {
    level *from = &levels[depth & 1], *to = &levels[~depth & 1];
    bool is_leaf = false;
    status = descend(w, from, to, &is_leaf);
    if (status != FP_OK || !is_leaf) continue;
    *tree = (fp_btree){from->items, from->n};
    from->items = NULL;
    return FP_OK;
  }
  return status == FP_OK ? unusual(w, "the B-tree of a table is too deep") : status;
}

fp_status fp_btree_init(const fp_pages *pages, uint32_t root, fp_btree *tree, const char **why) {
  walk w = {pages, calloc(pages->n_pages / 8 + 1, 1), malloc(pages->page_size), "no memory"};
  level levels[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
  *tree = (fp_btree){NULL, 0};
  fp_status status = w.seen && w.page ? find_leaves(&w, root, levels, tree) : FP_E_MEMORY;
  for (int i = 0; i < 2; i++) free(levels[i].items);
  free(w.page);
  free(w.seen);
  *why = w.why;
  return status;
}

void fp_btree_free(fp_btree *tree) {
  free(tree->leaves);
  *tree = (fp_btree){NULL, 0};
}
