#define _XOPEN_SOURCE 700 /* pread */
#define _FILE_OFFSET_BITS 64

#include "scan/fp_pages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
