/* fp_pages.h: an open SQLite file -> its pages, once its header says that they can be read as such.
 *
 * The format: https://www.sqlite.org/fileformat2.html, "The Database Header". Pages count from 1.
 * They are read, not mapped: a file that shrinks meanwhile is then an error and not a signal. */
#ifndef FP_PAGES_H
#define FP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fp_status.h"

enum {
  FP_PAGES_HEADER = 100, /* bytes of the header */
  FP_PAGES_BEYOND = 8,   /* bytes behind pages in memory that may be read, as part of a number */
};

typedef struct {
  int file; /* open for reading; the caller's */
  uint32_t page_size;
  uint32_t usable; /* bytes of each page that are not reserved for extensions */
  uint32_t n_pages;
  bool has_pointer_map; /* as in files with auto_vacuum: SQLite may follow it instead of a chain */
} fp_pages;

/* FP_E_UNUSUAL, and *why in words, where SQLite may know what to do and we do not. */
fp_status fp_pages_init(const uint8_t header[FP_PAGES_HEADER], int64_t file_size, int file,
                        fp_pages *pages, const char **why);

/* Whether there is such a page, for a table to use. */
int fp_pages_has(const fp_pages *pages, uint32_t page);

/* Pages first .. first + n - 1 into `bytes`; all of them must be there. */
fp_status fp_pages_read(const fp_pages *pages, uint32_t first, uint32_t n, uint8_t *bytes,
                        const char **why);

/* A run of pages in memory. */
typedef struct {
  uint8_t *bytes;
  uint32_t first, n, capacity; /* pages */
} fp_window;

/* FP_E_MEMORY, or FP_OK and an empty window with room for so many pages; fp_window_free. */
fp_status fp_window_init(const fp_pages *pages, uint32_t capacity, fp_window *window);
void fp_window_free(fp_window *window);

/* Pages first .. first + n - 1, n at most its capacity, take the place of those in it. */
fp_status fp_window_load(const fp_pages *pages, fp_window *window, uint32_t first, uint32_t n,
                         const char **why);

/* A page in the window, or NULL. */
static inline const uint8_t *fp_window_page(const fp_pages *pages, const fp_window *window,
                                            uint32_t page) {
  if (page - window->first >= window->n) return NULL; /* unsigned: smaller ones are large */
  return window->bytes + (size_t)(page - window->first) * pages->page_size;
}

static inline uint32_t fp_load_16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }

static inline uint32_t fp_load_32(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t fp_load_64(const uint8_t *p) {
  return (uint64_t)fp_load_32(p) << 32 | fp_load_32(p + 4);
}

/* A number of 1 to 9 bytes at p, before `end` ("A variable-length integer or varint"): where it
 * ends, or NULL when it does not end in time. */
static inline const uint8_t *fp_varint(const uint8_t *p, const uint8_t *end, uint64_t *value) {
  if (p < end && *p < 0x80) {
    *value = *p;
    return p + 1;
  }
  uint64_t sum = 0;
  for (int i = 0; i < 8 && p < end; i++, p++) {
    sum = sum << 7 | (*p & 0x7f);
    if (*p < 0x80) {
      *value = sum;
      return p + 1;
    }
  }
  if (p >= end) return NULL;
  *value = sum << 8 | *p; /* all bits of the ninth byte count */
  return p + 1;
}

#endif
