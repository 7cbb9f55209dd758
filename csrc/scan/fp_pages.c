#define _XOPEN_SOURCE 700 /* pread */
#define _FILE_OFFSET_BITS 64

#include "scan/fp_pages.h"

#include <unistd.h>

#include "base/fp_room.h"

/* Offsets of header fields ("The Database Header"). */
enum {
  AT_PAGE_SIZE = 16,
  AT_WRITE_VERSION = 18,
  AT_READ_VERSION = 19,
  AT_RESERVED = 20,
  AT_FRACTIONS = 21, /* three bytes, always 64, 32, 32 */
  AT_CHANGE_COUNTER = 24,
  AT_N_PAGES = 28,
  AT_SCHEMA_FORMAT = 44,
  AT_LARGEST_ROOT = 52, /* 0 without a pointer map */
  AT_ENCODING = 56,
  AT_VALID_FOR = 92, /* the change counter when AT_N_PAGES was written */
};
enum { ROLLBACK_JOURNAL = 1, UTF_8 = 1, LEAST_USABLE = 480, LEAST_FORMAT = 1, MOST_FORMAT = 4 };

/* The page with this offset holds only locks, no data ("The Lock-Byte Page"). */
static const uint32_t LOCK_BYTE = 0x40000000;

static const char *refusal(const uint8_t *header, int64_t file_size, const fp_pages *pages) {
  static const uint8_t fractions[] = {64, 32, 32};
  uint32_t size = pages->page_size, format = fp_load_32(header + AT_SCHEMA_FORMAT);
  if (memcmp(header, "SQLite format 3", 16) != 0) return "the file is not an SQLite database";
  if (size < 512 || size > 65536 || (size & (size - 1))) return "the page size is invalid";
  if (header[AT_WRITE_VERSION] != ROLLBACK_JOURNAL || header[AT_READ_VERSION] != ROLLBACK_JOURNAL)
    return "the file has a write-ahead log or an unknown format version";
  if (header[AT_RESERVED] > size - LEAST_USABLE)
    return "the reserved space leaves no usable page space";
  if (memcmp(header + AT_FRACTIONS, fractions, sizeof fractions) != 0)
    return "the payload fractions are not 64, 32, 32";
  if (format < LEAST_FORMAT || format > MOST_FORMAT) return "the schema format is unknown";
  if (fp_load_32(header + AT_ENCODING) != UTF_8) return "the text encoding is not UTF-8";
  if (memcmp(header + AT_CHANGE_COUNTER, header + AT_VALID_FOR, 4) != 0)
    return "the header has no valid page count";
  if ((int64_t)pages->n_pages * size != file_size)
    return "the file size does not match the page count";
  return NULL;
}

fp_status fp_pages_init(const uint8_t header[FP_PAGES_HEADER], int64_t file_size, int file,
                        fp_pages *pages, const char **why) {
  uint32_t size = fp_load_16(header + AT_PAGE_SIZE);
  pages->file = file;
  pages->page_size = size == 1 ? 65536 : size;
  pages->usable = pages->page_size - header[AT_RESERVED];
  pages->n_pages = fp_load_32(header + AT_N_PAGES);
  pages->has_pointer_map = fp_load_32(header + AT_LARGEST_ROOT) != 0;
  *why = refusal(header, file_size, pages);
  return *why ? FP_E_UNUSUAL : FP_OK;
}

int fp_pages_has(const fp_pages *pages, uint32_t page) {
  return page > 1 && page <= pages->n_pages && page != LOCK_BYTE / pages->page_size + 1;
}

fp_status fp_pages_read(const fp_pages *pages, uint32_t first, uint32_t n, uint8_t *bytes,
                        const char **why) {
  if (first < 1 || n > pages->n_pages || first - 1 > pages->n_pages - n) {
    *why = "a page lies outside the file";
    return FP_E_UNUSUAL;
  }
  size_t left = (size_t)n * pages->page_size;
  off_t at = (off_t)(first - 1) * pages->page_size;
  while (left) {
    ssize_t got = pread(pages->file, bytes, left, at);
    if (got <= 0) {
      *why = got ? "the file cannot be read" : "the file ends early";
      return FP_E_UNUSUAL;
    }
    bytes += got;
    at += got;
    left -= (size_t)got;
  }
  return FP_OK;
}

fp_status fp_window_init(const fp_pages *pages, uint32_t capacity, fp_window *window) {
  size_t size = (size_t)capacity * pages->page_size;
  *window = (fp_window){malloc(size + FP_PAGES_BEYOND), 1, 0, capacity};
  if (!window->bytes) return FP_E_MEMORY;
  memset(window->bytes + size, 0, FP_PAGES_BEYOND);
  return FP_OK;
}

fp_status fp_window_load(const fp_pages *pages, fp_window *window, uint32_t first, uint32_t n,
                         const char **why) {
  window->n = 0; /* stays empty if reading fails */
  if (n > window->capacity) return FP_E_INDEX;
  fp_status status = fp_pages_read(pages, first, n, window->bytes, why);
  if (status != FP_OK) return status;
  window->first = first;
  window->n = n;
  return FP_OK;
}

/* Trees of pages. */
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
