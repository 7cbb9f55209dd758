/* fp_tree.c: see fp_tree.h. The children of a node form a ring in order of insertion. */
#include "path/fp_tree.h"

#include "base/fp_hash.h"
#include "base/fp_room.h"

typedef struct {
  int32_t above, label;
  int32_t next; /* next in the ring of children of `above` */
  int32_t last; /* the child found last; -1: no children */
} node;

struct fp_tree {
  fp_hash table; /* of nodes by `above` and `label` */
  node *nodes;
  size_t capacity;
  int32_t count;
  int32_t last; /* the root found last; -1: no roots */
};

fp_tree *fp_tree_new(void) {
  fp_tree *tree = calloc(1, sizeof *tree);
  if (!tree) return NULL;
  tree->table.secret = fp_hash_secret(tree);
  tree->last = -1;
  if (fp_hash_reserve(&tree->table, 1) == FP_OK) return tree;
  fp_tree_free(tree);
  return NULL;
}

void fp_tree_free(fp_tree *tree) {
  if (!tree) return;
  free(tree->table.slots);
  free(tree->nodes);
  free(tree);
}

static bool is_node(const void *nodes, int32_t i, const void *key) {
  const node *own = &((const node *)nodes)[i], *wanted = key;
  return own->above == wanted->above && own->label == wanted->label;
}

static int32_t *last_below(fp_tree *tree, int32_t above) {
  return above < 0 ? &tree->last : &tree->nodes[above].last;
}

/* Finds or adds a node that is neither the child found last nor the one after it. Not inlined: the
 * fast path then saves no registers. */
__attribute__((noinline)) static fp_status find_or_add(fp_tree *tree, int32_t above, int32_t label,
                                                       int32_t *out) {
  const uint32_t hash = fp_hash_of(&tree->table, (uint32_t)above, (uint32_t)label);
  node wanted = {above, label, tree->count, -1};
  size_t at;
  *out = fp_hash_find(&tree->table, hash, is_node, tree->nodes, &wanted, &at);
  if (*out >= 0) return FP_OK;
  const size_t count = (size_t)tree->count + 1;
  if (count > INT32_MAX) return FP_E_TOO_MANY;
  fp_status status = fp_reserve(&tree->nodes, &tree->capacity, count, sizeof *tree->nodes);
  if (status != FP_OK) return status;
  const int32_t last = *last_below(tree, above);
  if (last >= 0) {
    wanted.next = tree->nodes[last].next;
    tree->nodes[last].next = tree->count;
  }
  *out = tree->count++;
  tree->nodes[*out] = wanted;
  return fp_hash_add(&tree->table, at, hash, *out);
}

fp_status fp_tree_below(fp_tree *tree, int32_t above, int32_t label, int32_t *out) {
  int32_t i = *last_below(tree, above);
  if (i >= 0 && tree->nodes[i].label != label) i = tree->nodes[i].next;
  if (i < 0 || tree->nodes[i].label != label) {
    fp_status status = find_or_add(tree, above, label, &i);
    if (status != FP_OK) return status;
  }
  *out = *last_below(tree, above) = i;
  return FP_OK;
}

int32_t fp_tree_count(const fp_tree *tree) { return tree->count; }

void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label) {
  for (int32_t i = 0; i < tree->count; i++) {
    above[i] = tree->nodes[i].above;
    label[i] = tree->nodes[i].label;
  }
}
