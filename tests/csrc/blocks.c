/* blocks.c: fp_blocks against plain memory: contents stay, what is freed serves again, and no more
 * is held than was in use at once. */
#include "check.h"
#include "fp_blocks.h"

enum { SLOTS = 24, STEPS = 300 };

#define MB ((size_t)1 << 20)

typedef struct {
  unsigned char *memory;
  size_t size;
  unsigned char mark;
} slot;

/* Marks the ends of the memory and of each of its pages. */
static void fill(slot *s) {
  for (size_t at = 0; at < s->size; at += 4096) s->memory[at] = s->mark;
  if (s->size) s->memory[s->size - 1] = s->mark;
}

static void check_filled(const slot *s, size_t size) {
  for (size_t at = 0; at < size; at += 4096) CHECK(s->memory[at] == s->mark);
}

static size_t random_size(void) {
  switch (random_below(4)) {
    case 0:
      return (size_t)random_below(1000);
    case 1:
      return FP_BLOCKS_LARGE - 70 + (size_t)random_below(140);
    default:
      return (size_t)random_below(160) * MB + (size_t)random_below(100000);
  }
}

static void check_held(fp_blocks *blocks) {
  fp_blocks_sizes held = fp_blocks_held(blocks);
  CHECK(held.used + held.kept <= held.most_used);
}

static void renew(fp_blocks *blocks, slot *s) {
  fp_blocks_free(blocks, s->memory);
  s->size = random_size();
  s->mark = (unsigned char)random_bits();
  if (random_below(3) == 0) {
    s->memory = fp_blocks_allocate_zeros(blocks, s->size, 1);
    CHECK(s->memory);
    for (size_t at = 0; at < s->size; at += 4096) CHECK(s->memory[at] == 0);
    CHECK(!s->size || s->memory[s->size - 1] == 0);
  } else {
    s->memory = fp_blocks_allocate(blocks, s->size);
  }
  CHECK(s->memory && (uintptr_t)s->memory % 16 == 0);
  fill(s);
}

static void resize(fp_blocks *blocks, slot *s) {
  size_t size = random_size();
  s->memory = fp_blocks_resize(blocks, s->memory, size);
  CHECK(s->memory);
  check_filled(s, size < s->size ? size : s->size);
  s->size = size;
  fill(s);
}

static void test_contents_stay_while_blocks_come_and_go(void) {
  fp_blocks *blocks = fp_blocks_new();
  CHECK(blocks);
  slot slots[SLOTS] = {{0}};
  for (int step = 0; step < STEPS; step++) {
    slot *s = &slots[random_below(SLOTS)];
    if (s->memory && random_below(3) == 0)
      resize(blocks, s);
    else
      renew(blocks, s);
    for (int i = 0; i < SLOTS; i++)
      if (slots[i].memory) check_filled(&slots[i], slots[i].size);
    if (step == STEPS - STEPS / 10) fp_blocks_close(blocks);
  }
  CHECK(fp_blocks_held(blocks).kept == 0);
  for (int i = 0; i < SLOTS; i++) fp_blocks_free(blocks, slots[i].memory);
  CHECK(fp_blocks_held(blocks).used == 0);
  fp_blocks_delete(blocks);
}

static void test_what_is_freed_serves_again_also_in_other_sizes(void) {
  fp_blocks *blocks = fp_blocks_new();
  CHECK(blocks);
  void *three[] = {fp_blocks_allocate(blocks, 60 * MB), fp_blocks_allocate(blocks, 40 * MB),
                   fp_blocks_allocate(blocks, 90 * MB)};
  for (int i = 0; i < 3; i++) {
    CHECK(three[i]);
    memset(three[i], 1, 10 * MB);
  }
  for (int i = 0; i < 3; i++) fp_blocks_free(blocks, three[i]);
  size_t before = fp_blocks_held(blocks).most_used;
  CHECK(fp_blocks_held(blocks).used == 0);
  void *one = fp_blocks_allocate(blocks, 140 * MB);
  CHECK(one);
  memset(one, 2, 140 * MB);
  check_held(blocks);
  void *two = fp_blocks_allocate(blocks, 33 * MB);
  CHECK(two);
  check_held(blocks);
  CHECK(fp_blocks_held(blocks).most_used <= before + 64 * 1024);
  fp_blocks_free(blocks, one);
  fp_blocks_free(blocks, two);
  fp_blocks_delete(blocks);
}

static void test_impossible_sizes_are_refused(void) {
  fp_blocks *blocks = fp_blocks_new();
  CHECK(blocks);
  CHECK(!fp_blocks_allocate(blocks, SIZE_MAX));
  CHECK(!fp_blocks_allocate(blocks, SIZE_MAX / 2));
  CHECK(!fp_blocks_allocate_zeros(blocks, SIZE_MAX / 4, 8));
  slot s = {fp_blocks_allocate(blocks, 40 * MB), 40 * MB, 7};
  CHECK(s.memory);
  fill(&s);
  CHECK(!fp_blocks_resize(blocks, s.memory, SIZE_MAX / 4));
  check_filled(&s, s.size);
  fp_blocks_free(blocks, s.memory);
  fp_blocks_free(blocks, NULL);
  fp_blocks_delete(blocks);
  fp_blocks_delete(NULL);
}

int main(void) {
  test_contents_stay_while_blocks_come_and_go();
  test_what_is_freed_serves_again_also_in_other_sizes();
  test_impossible_sizes_are_refused();
  return 0;
}
