/* fp_itree.c: see fp_itree.h. The recursion depth is that of the tree, at most 32. */
#include "path/fp_itree.h"

typedef struct {
  fp_itree tree;
  int64_t t;
  int32_t *found;
  int32_t n_found;
} query;

static int32_t middle_of(int32_t first, int32_t last) { return first + (last - first) / 2; }

static int64_t build(const int64_t *end, int32_t first, int32_t last, int64_t *max_end) {
  if (first >= last) return INT64_MIN;
  int32_t middle = middle_of(first, last);
  int64_t left = build(end, first, middle, max_end);
  int64_t right = build(end, middle + 1, last, max_end);
  int64_t most = left > right ? left : right;
  max_end[middle] = most > end[middle] ? most : end[middle];
  return max_end[middle];
}

void fp_itree_build(const int64_t *end, int32_t n, int64_t *max_end) { build(end, 0, n, max_end); }

static void search(query *q, int32_t first, int32_t last) {
  while (first < last) {
    int32_t middle = middle_of(first, last);
    if (q->tree.max_end[middle] <= q->t) return;
    search(q, first, middle);
    if (q->tree.start[middle] > q->t) return;
    if (q->tree.end[middle] > q->t) q->found[q->n_found++] = middle;
    first = middle + 1;
  }
}

int32_t fp_itree_open_at(fp_itree tree, int64_t t, int32_t *found) {
  query q = {tree, t, found, 0};
  search(&q, 0, tree.n);
  return q.n_found;
}

/* The first instant after t at which other ranges are open than those found at t. */
static int64_t next_change(fp_itree tree, int64_t t, const int32_t *found, int32_t n_found) {
  int64_t change = INT64_MAX;
  int32_t first = 0, last = tree.n; /* first: the first range that starts after t */
  while (first < last) {
    int32_t middle = middle_of(first, last);
    if (tree.start[middle] > t)
      last = middle;
    else
      first = middle + 1;
  }
  if (first < tree.n) change = tree.start[first];
  for (int32_t k = 0; k < n_found; k++)
    if (tree.end[found[k]] < change) change = tree.end[found[k]];
  return change;
}

fp_status fp_itree_nodes(fp_itree tree, const int32_t *label, const int64_t *t, int32_t n,
                         fp_tree *nodes, int32_t *found, int32_t *node) {
  int64_t from = 0, until = 0; /* the node before holds for instants in [from, until) */
  for (int32_t i = 0; i < n; i++) {
    if (t[i] >= from && t[i] < until) {
      node[i] = node[i - 1];
      continue;
    }
    int32_t n_found = fp_itree_open_at(tree, t[i], found);
    from = t[i];
    until = next_change(tree, t[i], found, n_found);
    node[i] = -1;
    for (int32_t k = 0; k < n_found; k++) {
      fp_status status = fp_tree_below(nodes, node[i], label[found[k]], &node[i]);
      if (status != FP_OK) return status;
    }
  }
  return FP_OK;
}
