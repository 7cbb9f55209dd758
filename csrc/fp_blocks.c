/* fp_blocks.c: see fp_blocks.h. */
#ifdef __linux__
#define _GNU_SOURCE /* mremap */
#endif
#include "fp_blocks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

enum { MOST_KEPT = 64 }; /* blocks; a further one is given back */

/* What a huge page holds on all systems that have them; blocks begin and are cut at multiples. */
#define HUGE ((size_t)2 << 20)
#define PAGE ((size_t)64 << 10) /* or less, or a divisor: no system has larger ones */

/* In front of the memory. */
typedef struct {
  size_t capacity;  /* bytes of a mapping, this header included; 0: it is malloc's */
  size_t size;      /* what was asked for */
  char padding[48]; /* so that the memory begins at a cache line, and vectors are aligned */
} header;

_Static_assert(sizeof(header) == 64, "the header keeps the alignment of the memory behind it");

typedef struct {
  char *start;
  size_t capacity;
} piece;

struct fp_blocks {
  pthread_mutex_t lock;
  bool is_open;
  fp_blocks_sizes sizes;
  int n_kept;
  piece kept[MOST_KEPT];
};

fp_blocks *fp_blocks_new(void) {
  fp_blocks *blocks = calloc(1, sizeof *blocks);
  if (!blocks) return NULL;
  if (pthread_mutex_init(&blocks->lock, NULL) != 0) {
    free(blocks);
    return NULL;
  }
  blocks->is_open = true;
  return blocks;
}

static header *header_of(void *memory) { return (header *)((char *)memory - sizeof(header)); }

#ifdef __linux__

/* Asks for huge pages where they fit; the system decides. */
static void advise(char *start, size_t size) {
  size_t before = (PAGE - (uintptr_t)start % PAGE) % PAGE;
  if (size >= HUGE) madvise(start + before, (size - before) / PAGE * PAGE, MADV_HUGEPAGE);
}

static void give_back(piece block) { munmap(block.start, block.capacity); }

/* Fresh memory that begins at a multiple of HUGE; start NULL: there is none. */
static piece mapped(size_t capacity) {
  char *start =
      mmap(NULL, capacity + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return (piece){NULL, 0};
  size_t before = (HUGE - (uintptr_t)start % HUGE) % HUGE;
  if (before) munmap(start, before);
  if (before < HUGE) munmap(start + before + capacity, HUGE - before);
  advise(start + before, capacity);
  return (piece){start + before, capacity};
}

/* Moves the pages behind `from` to `to`, which has other pages that go. Not more at once: what is
 * behind one huge page may come from another mapping, and a call moves only pages of one. */
static bool move(char *to, char *from, size_t size) {
  for (size_t at = 0; at < size; at += HUGE) {
    size_t part = size - at < HUGE ? size - at : HUGE;
    if (mremap(from + at, part, part, MREMAP_MAYMOVE | MREMAP_FIXED, to + at) == MAP_FAILED)
      return false;
  }
  return true;
}

/* The block made longer, its pages moved where they cannot stay; start NULL: it is as it was. */
static piece lengthened(piece block, size_t capacity) {
  char *start = mremap(block.start, block.capacity, capacity, MREMAP_MAYMOVE);
  return start == MAP_FAILED ? (piece){NULL, 0} : (piece){start, capacity};
}

#else /* then no block is ever large */

static void advise(char *start, size_t size) {
  (void)start;
  (void)size;
}

static void give_back(piece block) { (void)block; }

static piece mapped(size_t capacity) {
  (void)capacity;
  return (piece){NULL, 0};
}

static bool move(char *to, char *from, size_t size) { return size == 0 && to == from; }

static piece lengthened(piece block, size_t capacity) {
  (void)block;
  return mapped(capacity);
}

#endif

/* A block of malloc's. */
static void *small(size_t size, bool zeros) {
  header *block = zeros ? calloc(1, size + sizeof *block) : malloc(size + sizeof *block);
  if (!block) return NULL;
  advise((char *)block, size);
  *block = (header){.size = size};
  return block + 1;
}

/* From here to count_used: the lock is held. */

static piece take_kept(fp_blocks *blocks, int i) {
  piece taken = blocks->kept[i];
  blocks->kept[i] = blocks->kept[--blocks->n_kept];
  blocks->sizes.kept -= taken.capacity;
  return taken;
}

static void keep(fp_blocks *blocks, piece block) {
  bool is_aligned = (uintptr_t)block.start % HUGE == 0; /* not where it was made longer */
  if (!blocks->is_open || blocks->n_kept == MOST_KEPT || !is_aligned) {
    give_back(block);
    return;
  }
  blocks->kept[blocks->n_kept++] = block;
  blocks->sizes.kept += block.capacity;
}

/* The smallest kept block that is large enough, else the largest; -1: none is kept. */
static int best_kept(const fp_blocks *blocks, size_t capacity) {
  int best = -1;
  for (int i = 0; i < blocks->n_kept; i++) {
    size_t have = blocks->kept[i].capacity, chosen = best < 0 ? 0 : blocks->kept[best].capacity;
    bool fits = have >= capacity, chosen_fits = chosen >= capacity;
    if (best < 0 || (fits != chosen_fits ? fits : fits ? have < chosen : have > chosen)) best = i;
  }
  return best;
}

/* Cuts a block where it has a huge page or more to spare; what is cut off is kept. */
static piece cut(fp_blocks *blocks, piece block, size_t capacity) {
  size_t end = (capacity + HUGE - 1) / HUGE * HUGE;
  if (block.capacity < end + HUGE) return block;
  keep(blocks, (piece){block.start + end, block.capacity - end});
  block.capacity = end;
  return block;
}

/* Puts the huge pages of kept blocks, the largest first, behind each other into a fresh block.
 * Where that fails the block is left to itself, which happens when the system has no memory for its
 * own lists: whether its pages are still there is not known. */
static piece put_together(fp_blocks *blocks, size_t capacity) {
  piece whole = mapped(capacity);
  for (size_t at = 0; whole.start && at < capacity && blocks->n_kept;) {
    piece part = take_kept(blocks, best_kept(blocks, capacity - at));
    part = cut(blocks, part, capacity - at);
    size_t size = part.capacity / HUGE * HUGE;
    if (size > capacity - at) size = capacity - at;
    if (!move(whole.start + at, part.start, size)) return mapped(capacity);
    if (part.capacity > size) give_back((piece){part.start + size, part.capacity - size});
    at += size;
  }
  return whole;
}

static piece taken(fp_blocks *blocks, size_t capacity) {
  int i = best_kept(blocks, capacity);
  if (i < 0) return mapped(capacity);
  if (blocks->kept[i].capacity < capacity) return put_together(blocks, capacity);
  return cut(blocks, take_kept(blocks, i), capacity);
}

static void count_used(fp_blocks *blocks, size_t more, size_t less) {
  fp_blocks_sizes *sizes = &blocks->sizes;
  sizes->used += more - less;
  if (sizes->used > sizes->most_used) sizes->most_used = sizes->used;
}

/* The whole pages that a block of this size needs; 0: it is not to be mapped. */
static size_t capacity_for(size_t size) {
  if (size < FP_BLOCKS_LARGE || size > SIZE_MAX / 2) return 0;
  size_t capacity = (size + sizeof(header) + PAGE - 1) / PAGE * PAGE;
  size_t huge = (capacity + HUGE - 1) / HUGE * HUGE;
  return huge - capacity <= HUGE / 8 ? huge : capacity; /* which costs less than small pages do */
}

static void *large(fp_blocks *blocks, size_t size) {
  size_t capacity = capacity_for(size);
  if (!capacity) return NULL;
  pthread_mutex_lock(&blocks->lock);
  piece block = taken(blocks, capacity);
  if (block.start) count_used(blocks, block.capacity, 0);
  pthread_mutex_unlock(&blocks->lock);
  if (!block.start) return NULL;
  *(header *)block.start = (header){.capacity = block.capacity, .size = size};
  return block.start + sizeof(header);
}

void *fp_blocks_allocate(fp_blocks *blocks, size_t size) {
  if (size > SIZE_MAX - sizeof(header)) return NULL;
  void *memory = large(blocks, size);
  return memory ? memory : small(size, false);
}

void *fp_blocks_allocate_zeros(fp_blocks *blocks, size_t n, size_t size) {
  if (size && n > (SIZE_MAX - sizeof(header)) / size) return NULL;
  void *memory = large(blocks, n * size);
  if (!memory) return small(n * size, true);
  return memset(memory, 0, n * size);
}

void fp_blocks_free(fp_blocks *blocks, void *memory) {
  if (!memory) return;
  header *block = header_of(memory);
  if (!block->capacity) {
    free(block);
    return;
  }
  piece freed = {(char *)block, block->capacity};
  pthread_mutex_lock(&blocks->lock);
  count_used(blocks, 0, freed.capacity);
  keep(blocks, freed);
  pthread_mutex_unlock(&blocks->lock);
}

/* A mapped block that stays one, in place or moved; NULL: it could not be made longer. */
static void *large_resized(fp_blocks *blocks, header *block, size_t size) {
  size_t capacity = capacity_for(size);
  piece before = {(char *)block, block->capacity}, after;
  pthread_mutex_lock(&blocks->lock);
  bool fits = capacity <= before.capacity;
  after = fits ? cut(blocks, before, capacity) : lengthened(before, capacity);
  if (after.start) count_used(blocks, after.capacity, before.capacity);
  pthread_mutex_unlock(&blocks->lock);
  if (!after.start) return NULL;
  *(header *)after.start = (header){.capacity = after.capacity, .size = size};
  return after.start + sizeof(header);
}

void *fp_blocks_resize(fp_blocks *blocks, void *memory, size_t size) {
  if (!memory) return fp_blocks_allocate(blocks, size);
  if (size > SIZE_MAX - sizeof(header)) return NULL;
  header *block = header_of(memory);
  if (block->capacity && capacity_for(size)) {
    void *resized = large_resized(blocks, block, size);
    if (resized) return resized;
  }
  if (!block->capacity && !capacity_for(size)) {
    header *moved = realloc(block, size + sizeof(header));
    if (!moved) return NULL;
    moved->size = size;
    return moved + 1;
  }
  void *moved = fp_blocks_allocate(blocks, size);
  if (!moved) return NULL;
  memcpy(moved, memory, block->size < size ? block->size : size);
  fp_blocks_free(blocks, memory);
  return moved;
}

void fp_blocks_close(fp_blocks *blocks) {
  pthread_mutex_lock(&blocks->lock);
  blocks->is_open = false;
  while (blocks->n_kept) give_back(take_kept(blocks, 0));
  pthread_mutex_unlock(&blocks->lock);
}

void fp_blocks_delete(fp_blocks *blocks) {
  if (!blocks) return;
  fp_blocks_close(blocks);
  pthread_mutex_destroy(&blocks->lock);
  free(blocks);
}

fp_blocks_sizes fp_blocks_held(fp_blocks *blocks) {
  pthread_mutex_lock(&blocks->lock);
  fp_blocks_sizes sizes = blocks->sizes;
  pthread_mutex_unlock(&blocks->lock);
  return sizes;
}
