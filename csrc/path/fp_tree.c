/* fp_tree.c: see fp_tree.h. The children of a node form a ring in order of insertion. */
#include "path/fp_tree.h"

#include "base/fp_hash.h"
#include "base/fp_room.h"

typedef struct {
  int32_t above, label;
  int32_t next; /* next in the ring of children of `above` */
  int32_t last; /* the child found last; -1: no children */
  int32_t n_below;
} node;

struct fp_tree {
  fp_hash table; /* of nodes with more than FEW siblings, by `above` and `label` */
  size_t n_hashed;
  node *nodes;
  size_t capacity;
  int32_t count;
  node root; /* whose children are the roots */
};

/* Rings of up to this many children are searched one by one. A hash table of all nodes takes longer
 * if most nodes are new: a range whose name differs in each step makes new nodes of all below. */
enum { FEW = 8 };

fp_tree *fp_tree_new(void) {
  fp_tree *tree = calloc(1, sizeof *tree);
  if (!tree) return NULL;
  tree->table.secret = fp_hash_secret(tree);
  tree->root.last = -1;
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

static node *node_above(fp_tree *tree, int32_t above) {
  return above < 0 ? &tree->root : &tree->nodes[above];
}

static uint32_t hash_of(const fp_tree *tree, const node *one) {
  return fp_hash_of(&tree->table, (uint32_t)one->above, (uint32_t)one->label);
}

/* The child of `around` with a label, or -1. */
static int32_t find(const fp_tree *tree, const node *around, const node *wanted) {
  size_t at;
  if (around->n_below > FEW)
    return fp_hash_find(&tree->table, hash_of(tree, wanted), is_node, tree->nodes, wanted, &at);
  int32_t i = around->last;
  for (int32_t n = around->n_below; n > 0; n--, i = tree->nodes[i].next)
    if (tree->nodes[i].label == wanted->label) return i;
  return -1;
}

static fp_status hash_one(fp_tree *tree, int32_t i) {
  const uint32_t hash = hash_of(tree, &tree->nodes[i]);
  fp_status status = fp_hash_reserve(&tree->table, ++tree->n_hashed);
  if (status != FP_OK) return status;
  size_t at;
  fp_hash_find(&tree->table, hash, is_node, tree->nodes, &tree->nodes[i], &at);
  fp_hash_put(&tree->table, at, hash, i);
  return FP_OK;
}

/* Adds a node after the child of `above` that was found last. */
static fp_status add(fp_tree *tree, int32_t above, int32_t label) {
  const size_t count = (size_t)tree->count + 1;
  if (count > INT32_MAX) return FP_E_TOO_MANY;
  fp_status status = fp_reserve(&tree->nodes, &tree->capacity, count, sizeof *tree->nodes);
  if (status != FP_OK) return status;
  node *around = node_above(tree, above);
  const int32_t last = around->last, own = tree->count++;
  tree->nodes[own] = (node){above, label, last < 0 ? own : tree->nodes[last].next, -1, 0};
  if (last >= 0) tree->nodes[last].next = own;
  if (++around->n_below <= FEW) return FP_OK;
  if (around->n_below > FEW + 1) return hash_one(tree, own);
  int32_t i = own;
  do {
    status = hash_one(tree, i);
    i = tree->nodes[i].next;
  } while (status == FP_OK && i != own);
  return status;
}

/* Finds or adds a node that is neither the child found last nor the one after it. Not inlined: the
 * fast path then saves no registers. */
__attribute__((noinline)) static fp_status find_or_add(fp_tree *tree, int32_t above, int32_t label,
                                                       int32_t *out) {
  const node wanted = {above, label, -1, -1, 0};
  *out = find(tree, node_above(tree, above), &wanted);
  if (*out >= 0) return FP_OK;
  *out = tree->count;
  return add(tree, above, label);
}

fp_status fp_tree_below(fp_tree *tree, int32_t above, int32_t label, int32_t *out) {
  int32_t i = node_above(tree, above)->last;
  if (i >= 0 && tree->nodes[i].label != label) i = tree->nodes[i].next;
  if (i < 0 || tree->nodes[i].label != label) {
    fp_status status = find_or_add(tree, above, label, &i);
    if (status != FP_OK) return status;
  }
  *out = node_above(tree, above)->last = i;
  return FP_OK;
}

int32_t fp_tree_count(const fp_tree *tree) { return tree->count; }

void fp_tree_read(const fp_tree *tree, int32_t *above, int32_t *label) {
  for (int32_t i = 0; i < tree->count; i++) {
    above[i] = tree->nodes[i].above;
    label[i] = tree->nodes[i].label;
  }
}
