#include "scan/fp_walk.h"

#include "base/fp_room.h"
#include "scan/fp_record.h"

/* Size of a run: large enough for few calls, small enough for a core's cache. A run may include up
 * to MOST_BETWEEN pages of other tables between two leaves. */
enum { RUN_BYTES = 1 << 18, MOST_BETWEEN = 4, OVERFLOW_PAGES = 16, MOST_PAYLOAD = 1000000000 };

struct fp_walk {
  const fp_pages *pages;
  const fp_btree *tree;
  const fp_place *places;
  int n_places;
  int64_t first, last;
  int64_t leaf; /* the next leaf to read */
  fp_window run;
  const uint8_t *page; /* the current leaf, in `run`, and its cells */
  const uint8_t *cells;
  uint32_t cell, n_cells;
  int64_t row_id, most_row_id; /* of the previous row; upper bound in the leaf */
  uint32_t most_local, least_local;
  fp_record record;
  const fp_layout *layout; /* of the current row */
  uint8_t *whole;          /* a record of several pages, assembled as far as needed */
  size_t whole_capacity;
  uint32_t whole_length, next_page;
  fp_window beyond;   /* overflow pages */
  uint8_t *seen;      /* one bit per page: overflow pages used; NULL before the first */
  fp_scratch scratch; /* for labels */
  const char *why;
};

static fp_status unusual(fp_walk *w, const char *why) {
  w->why = why;
  return FP_E_UNUSUAL;
}

/* The first leaf that may contain row ids >= `first`. */
static int64_t leaf_of(const fp_btree *tree, int64_t first) {
  int64_t low = 0, high = tree->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (tree->leaves[middle].last < first)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

fp_walk *fp_walk_new(const fp_pages *pages, const fp_btree *tree, const fp_place *places,
                     int n_places, int64_t first, int64_t last) {
  int n_known = 0;
  for (int i = 0; i < n_places; i++) {
    if (places[i].place < FP_PLACE_OF_ROW_ID || places[i].place >= FP_RECORD_COLUMNS) return NULL;
    if (places[i].place >= n_known) n_known = places[i].place + 1;
  }
  fp_walk *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  uint32_t usable = pages->usable, capacity = RUN_BYTES / pages->page_size;
  w->pages = pages;
  w->tree = tree;
  w->places = places;
  w->first = first;
  w->last = last;
  w->leaf = leaf_of(tree, first);
  w->why = "";
  w->n_places = n_places;
  /* The part of a record in its leaf: "B-tree Cell Format", X and M. */
  w->most_local = usable - 35;
  w->least_local = (usable - 12) * 32 / 255 - 23;
  if (fp_record_init(&w->record, n_known) != FP_OK ||
      fp_window_init(pages, capacity, &w->run) != FP_OK) {
    fp_walk_free(w);
    return NULL;
  }
  return w;
}

void fp_walk_free(fp_walk *w) {
  if (!w) return;
  free(w->run.bytes);
  free(w->beyond.bytes);
  fp_record_free(&w->record);
  free(w->whole);
  free(w->seen);
  free(w->scratch.bytes);
  free(w);
}

const char *fp_walk_why(const fp_walk *w) { return w->why; }

/* Reads the run of pages that starts with the next leaf. */
static fp_status load_run(fp_walk *w) {
  const fp_leaf *leaves = w->tree->leaves;
  uint32_t first = leaves[w->leaf].page, end = first + 1;
  for (int64_t i = w->leaf + 1; i < w->tree->n && leaves[i - 1].last < w->last; i++) {
    uint32_t page = leaves[i].page;
    if (page < end || page - end > MOST_BETWEEN || page - first >= w->run.capacity) break;
    end = page + 1;
  }
  return fp_window_load(w->pages, &w->run, first, end - first, &w->why);
}

static fp_status next_leaf(fp_walk *w) {
  const fp_leaf *leaf = w->tree->leaves + w->leaf;
  w->page = fp_window_page(w->pages, &w->run, leaf->page);
  if (!w->page) {
    fp_status status = load_run(w);
    if (status != FP_OK) return status;
    w->page = fp_window_page(w->pages, &w->run, leaf->page);
  }
  if (w->page[0] != FP_BTREE_LEAF) return unusual(w, "a page is not a table leaf page");
  w->cells = fp_btree_cells(w->pages, w->page, FP_BTREE_LEAF_HEADER, &w->n_cells);
  if (!w->cells || (!w->n_cells && w->tree->n > 1))
    return unusual(w, "a leaf page has an invalid number of rows");
  w->cell = 0;
  w->row_id = w->leaf ? leaf[-1].last : INT64_MIN;
  w->most_row_id = leaf->last;
  w->leaf++;
  return FP_OK;
}

/* Reads an overflow page; a page that occurs twice is an error. */
static fp_status overflow_page(fp_walk *w, uint32_t page, const uint8_t **bytes) {
  const fp_pages *pages = w->pages;
  if (!fp_pages_has(pages, page)) return unusual(w, "an overflow chain ends early");
  if (!w->seen) {
    w->seen = calloc(pages->n_pages / 8 + 1, 1);
    if (!w->seen) return FP_E_MEMORY;
    if (fp_window_init(pages, OVERFLOW_PAGES, &w->beyond) != FP_OK) return FP_E_MEMORY;
  }
  uint8_t bit = (uint8_t)(1u << (page & 7));
  if (w->seen[page >> 3] & bit) return unusual(w, "two overflow chains share a page");
  w->seen[page >> 3] |= bit;
  *bytes = fp_window_page(pages, &w->run, page);
  if (!*bytes) *bytes = fp_window_page(pages, &w->beyond, page);
  if (*bytes) return FP_OK;
  uint32_t left = pages->n_pages - page + 1, n = left < OVERFLOW_PAGES ? left : OVERFLOW_PAGES;
  fp_status status = fp_window_load(pages, &w->beyond, page, n, &w->why);
  *bytes = w->beyond.bytes;
  return status;
}

/* Appends n bytes to the record. */
static fp_status append(fp_walk *w, const uint8_t *bytes, uint32_t n) {
  const size_t needed = (size_t)w->whole_length + n + FP_PAGES_BEYOND;
  fp_status status = fp_reserve(&w->whole, &w->whole_capacity, needed, 1);
  if (status != FP_OK) return status;
  memcpy(w->whole + w->whole_length, bytes, n);
  w->whole_length += n;
  memset(w->whole + w->whole_length, 0, FP_PAGES_BEYOND);
  return FP_OK;
}

/* Assembles the first `needed` bytes of the record from its chain of overflow pages. */
static fp_status gather(fp_walk *w, uint32_t needed, uint32_t length) {
  uint32_t most = w->pages->usable - 4;
  while (w->whole_length < needed) {
    const uint8_t *page;
    fp_status status = overflow_page(w, w->next_page, &page);
    if (status != FP_OK) return status;
    uint32_t left = length - w->whole_length, n = left < most ? left : most;
    status = append(w, page + 4, n);
    if (status != FP_OK) return status;
    w->next_page = fp_load_32(page);
  }
  return FP_OK;
}

/* The end of the wanted columns in the current record. */
static uint32_t end_of_wanted(const fp_walk *w, int n_columns) {
  uint32_t end = 0;
  for (int i = 0; i < n_columns; i++) {
    int place = w->places[i].place + 1;
    uint32_t type = w->layout->part[place].type;
    uint32_t at = type == FP_TYPE_ABSENT ? 0 : w->layout->part[place].at + fp_type_length(type);
    if (at > end) end = at;
  }
  return end;
}

/* Reads a record that continues in overflow pages, as far as the columns need it, into *bytes. */
static fp_status read_long(fp_walk *w, const uint8_t *local, uint32_t n_local, uint32_t length,
                           int n_columns, const uint8_t **bytes) {
  if (w->pages->has_pointer_map)
    return unusual(w, "a record overflows in a file with a pointer map");
  w->whole_length = 0;
  w->next_page = fp_load_32(local + n_local);
  fp_status status = append(w, local, n_local);
  if (status != FP_OK) return status;
  uint32_t header_length = fp_record_header_length(w->whole, length);
  if (!header_length) return unusual(w, "invalid record header");
  status = gather(w, header_length, length);
  if (status != FP_OK) return status;
  w->layout = fp_record_read(&w->record, w->whole, header_length, length);
  if (!w->layout) return unusual(w, "the column sizes of a record do not match its length");
  status = gather(w, end_of_wanted(w, n_columns), length);
  *bytes = w->whole;
  return status;
}

/* Reads the next row of the leaf: its id and record ("B-tree Cell Format", table leaf cell). */
static fp_status read_row(fp_walk *w, int n_columns, const uint8_t **bytes) {
  uint32_t usable = w->pages->usable, at = fp_load_16(w->cells + 2 * w->cell);
  const uint8_t *end = w->page + usable, *p;
  uint64_t length, id;
  if (at < FP_BTREE_LEAF_HEADER + 2 * w->n_cells || at + 4 > usable)
    return unusual(w, "a row lies outside its page");
  p = fp_varint(w->page + at, end, &length);
  if (p) p = fp_varint(p, end, &id);
  if (!p || length > MOST_PAYLOAD) return unusual(w, "invalid record length");
  bool first = w->leaf == 1 && w->cell == 0; /* its id may be INT64_MIN */
  if ((int64_t)id > w->most_row_id || ((int64_t)id <= w->row_id && !first))
    return unusual(w, "the row ids of a leaf page are out of order");
  w->row_id = (int64_t)id;
  w->cell++;
  uint32_t n = (uint32_t)length, room = (uint32_t)(end - p);
  if (n > w->most_local) {
    uint32_t surplus = w->least_local + (n - w->least_local) % (usable - 4);
    uint32_t n_local = surplus <= w->most_local ? surplus : w->least_local;
    if (n_local + 4 > room) return unusual(w, "a record extends past its page");
    return read_long(w, p, n_local, n, n_columns, bytes);
  }
  if (n > room) return unusual(w, "a record extends past its page");
  uint32_t header_length = fp_record_header_length(p, n);
  if (!header_length) return unusual(w, "invalid record header");
  w->layout = fp_record_read(&w->record, p, header_length, n);
  if (!w->layout) return unusual(w, "the column sizes of a record do not match its length");
  *bytes = p;
  return FP_OK;
}

/* The number of a column whose type is not an integer, 0 or 1. */
static fp_status other_number(fp_walk *w, const uint8_t *bytes, const fp_place *place,
                              const fp_column *column, int64_t *value) {
  uint32_t type = w->layout->part[place->place + 1].type;
  int64_t null = column->may_be_null ? column->none : 0;
  *value = null;
  switch (type) {
    case FP_TYPE_NULL:
      return FP_OK;
    case FP_TYPE_REAL:
      if (!fp_record_real(bytes + w->layout->part[place->place + 1].at, value)) *value = null;
      return FP_OK;
    case FP_TYPE_ROW_ID:
      *value = w->row_id;
      return FP_OK;
    case FP_TYPE_ABSENT:
      if (place->added == FP_ADDED_OTHER)
        return unusual(w, "a column was added with an unsupported default value");
      if (place->added == FP_ADDED_NUMBER) *value = place->added_number;
      return FP_OK;
    default:
      return unusual(w, "a numeric column contains text");
  }
}

static inline fp_status number_of(fp_walk *w, const uint8_t *bytes, const fp_place *place,
                                  const fp_column *column, int64_t *value) {
  uint32_t type = w->layout->part[place->place + 1].type;
  if (fp_type_is_integer(type)) {
    *value = fp_record_integer(type, bytes + w->layout->part[place->place + 1].at);
  } else if (type == FP_TYPE_0 || type == FP_TYPE_1) {
    *value = type - FP_TYPE_0;
  } else {
    return other_number(w, bytes, place, column, value);
  }
  return FP_OK;
}

static fp_status put_text(fp_walk *w, const uint8_t *bytes, const fp_place *place,
                          const fp_column *column, int64_t row) {
  uint32_t type = w->layout->part[place->place + 1].type;
  bool none = type == FP_TYPE_NULL || (type == FP_TYPE_ABSENT && place->added == FP_ADDED_NULL);
  if (none) return fp_column_put_text(column, &w->scratch, row, NULL, 0);
  if (type < FP_TYPE_BYTES)
    return unusual(w, "a text column contains a number or was added with a default value");
  const char *text = (const char *)bytes + w->layout->part[place->place + 1].at;
  return fp_column_put_text(column, &w->scratch, row, text, fp_type_length(type));
}

static fp_status put_row(fp_walk *w, const uint8_t *bytes, const fp_columns *columns, int64_t row) {
  for (int i = 0; i < columns->n; i++) {
    const fp_column *column = &columns->each[i];
    int64_t value;
    fp_status status;
    if (column->kind >= FP_COLUMN_TEXT) {
      status = put_text(w, bytes, &w->places[i], column, row);
    } else {
      status = number_of(w, bytes, &w->places[i], column, &value);
      if (status == FP_OK) status = fp_column_put_number(column, row, value);
    }
    if (status != FP_OK) return status;
  }
  return fp_column_end_row(&columns->together, row);
}

static fp_status is_wanted(fp_walk *w, const uint8_t *bytes, const fp_column *columns,
                           const fp_row_filter *filter, bool *wanted) {
  int64_t values[FP_MAX_COLUMNS];
  for (int i = 0; i < filter->n_columns; i++) {
    fp_status status = number_of(w, bytes, &w->places[i], &columns[i], &values[i]);
    if (status != FP_OK) return status;
  }
  *wanted = filter->keep(filter->state, values);
  return FP_OK;
}

/* Reads the next row with a wanted id into *bytes; NULL after the last. */
static inline fp_status next_row(fp_walk *w, int n_columns, const uint8_t **bytes) {
  *bytes = NULL;
  if (w->cell == w->n_cells) {
    bool at_last = w->page && w->most_row_id >= w->last;
    if (w->leaf == w->tree->n || at_last) return FP_OK;
    fp_status status = next_leaf(w);
    if (status != FP_OK || !w->n_cells) return status;
  }
  fp_status status = read_row(w, n_columns, bytes);
  if (status != FP_OK || w->row_id <= w->last) return status;
  w->cell = w->n_cells;
  *bytes = NULL;
  return FP_OK;
}

fp_status fp_walk_step(fp_walk *w, const fp_columns *columns, fp_row_filter filter, int64_t limit,
                       int64_t capacity, int64_t *kept, int64_t *stepped) {
  if (columns->n > FP_MAX_COLUMNS || filter.n_columns > columns->n) return FP_E_TOO_MANY;
  if (columns->n != w->n_places) return FP_E_INDEX;
  for (int64_t n = 0; n < limit; n++) {
    if (*kept >= capacity) return FP_MORE;
    const uint8_t *bytes;
    bool wanted = true;
    fp_status status = next_row(w, columns->n, &bytes);
    if (status != FP_OK || !bytes) return status;
    if (w->row_id < w->first) continue;
    ++*stepped;
    if (filter.keep) status = is_wanted(w, bytes, columns->each, &filter, &wanted);
    if (status == FP_OK && wanted) status = put_row(w, bytes, columns, *kept);
    if (status != FP_OK) return status;
    *kept += wanted;
  }
  return FP_MORE;
}
