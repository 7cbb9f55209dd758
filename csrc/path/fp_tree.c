/* fp_tree.c: see fp_tree.h. The children of a node form a ring in order of insertion; if there are
 * many, they are also in a hash table with open addressing. */
#include "path/fp_tree.h"

#include <stdlib.h>

#include "base/fp_mix.h"

enum { FEW = 8 };

typedef struct {
  int32_t above, label;
  int32_t next;    /* next in the ring of children of `above` */
  int32_t last;    /* the child found last; -1: no children */
  int32_t n_below; /* number of children */
} node;

struct fp_tree {
  node *nodes;
  int32_t count, capacity;
  node roots; /* virtual parent of the roots */
  int32_t *slots;
  uint64_t mask;
  uint64_t secret; /* see fp_mix_secret */
  uint64_t n_in_slots;
};

fp_tree *fp_tree_new(void) {
  fp_tree *tree = calloc(1, sizeof *tree);
  if (!tree) return NULL;
  tree->secret = fp_mix_secret(tree);
  tree->roots.last = -1;
  tree->capacity = 256;
  tree->nodes = malloc((size_t)tree->capacity * sizeof(node));
  if (!tree->nodes) {
    fp_tree_free(tree);
    return NULL;
  }
  return tree;
}

void fp_tree_free(fp_tree *tree) {
  if (!tree) return;
  free(tree->nodes);
  free(tree->slots);
  free(tree);
}

/* The slot of the node, or the empty slot to insert it in. */
static int32_t *slot_of(const fp_tree *tree, int32_t above, int32_t label) {
  uint64_t h =
      fp_mix((uint64_t)(uint32_t)above ^ FP_MIX_1, (uint64_t)(uint32_t)label ^ tree->secret);
  for (uint64_t at = h & tree->mask;; at = (at + 1) & tree->mask) {
    int32_t found = tree->slots[at];
    if (found < 0 || (tree->nodes[found].label == label && tree->nodes[found].above == above))
      return &tree->slots[at];
  }
}

static void put(fp_tree *tree, int32_t i) {
  *slot_of(tree, tree->nodes[i].above, tree->nodes[i].label) = i;
  tree->n_in_slots++;
}

/* Grows the hash table for FEW more nodes. */
static fp_status grow_slots(fp_tree *tree) {
  if (tree->slots && (tree->n_in_slots + FEW + 1) * 2 <= tree->mask + 1) return FP_OK;
  uint64_t n_slots = tree->slots ? (tree->mask + 1) * 2 : 256, n_before = tree->mask + 1;
  int32_t *slots = malloc(n_slots * sizeof(int32_t)), *before = tree->slots;
  if (!slots) return FP_E_MEMORY;
  for (uint64_t i = 0; i < n_slots; i++) slots[i] = -1;
  tree->slots = slots;
  tree->mask = n_slots - 1;
  tree->n_in_slots = 0;
  for (uint64_t i = 0; before && i < n_before; i++)
    if (before[i] >= 0) put(tree, before[i]);
  free(before);
  return FP_OK;
}

static fp_status grow_nodes(fp_tree *tree) {
  if (tree->count < tree->capacity) return FP_OK;
  if (tree->capacity > INT32_MAX / 2) return FP_E_TOO_MANY;
  node *nodes = realloc(tree->nodes, (size_t)tree->capacity * 2 * sizeof(node));
  if (!nodes) return FP_E_MEMORY;
  tree->nodes = nodes;
  tree->capacity *= 2;
  return FP_OK;
}

static node *at(fp_tree *tree, int32_t i) { return i < 0 ? &tree->roots : &tree->nodes[i]; }

static int32_t find(const fp_tree *tree, const node *top, int32_t above, int32_t label) {
  if (top->n_below > FEW) return *slot_of(tree, above, label);
  int32_t i = top->last;
  for (int32_t n = 0; n < top->n_below; n++, i = tree->nodes[i].next)
    if (tree->nodes[i].label == label) return i;
  return -1;
}

static fp_status add(fp_tree *tree, int32_t above, int32_t label, int32_t *out) {
  fp_status status = grow_nodes(tree);
  if (status == FP_OK && at(tree, above)->n_below >= FEW) status = grow_slots(tree);
  if (status != FP_OK) return status;
  node *top = at(tree, above);
  int32_t i = tree->count++, next = i;
  if (top->last >= 0) {
    next = tree->nodes[top->last].next;
    tree->nodes[top->last].next = i;
  }
  tree->nodes[i] = (node){above, label, next, -1, 0};
  top->last = i;
  top->n_below++;
  /* On exceeding FEW, all children are inserted into the hash table, starting here. */
  int32_t n_to_put = top->n_below > FEW + 1 ? 1 : top->n_below == FEW + 1 ? FEW + 1 : 0;
  for (int32_t n = 0, each = i; n < n_to_put; n++, each = tree->nodes[each].next) put(tree, each);
  *out = i;
  return FP_OK;
}

fp_status fp_tree_below(fp_tree *tree, int32_t above, int32_t label, int32_t *out) {
  node *top = at(tree, above);
  int32_t last = top->last;
  if (last >= 0) {
    if (tree->nodes[last].label != label) last = tree->nodes[last].next;
    if (tree->nodes[last].label != label) last = find(tree, top, above, label);
  }
  if (last < 0) return add(tree, above, label, out);
  *out = top->last = last;
  return FP_OK;
}

int32_t fp_tree_count(const fp_tree *tree) { return tree->count; }

void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label) {
  for (int32_t i = 0; i < tree->count; i++) {
    above[i] = tree->nodes[i].above;
    label[i] = tree->nodes[i].label;
  }
}
