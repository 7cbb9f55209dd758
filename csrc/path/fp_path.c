#include "path/fp_path.h"

fp_status fp_path(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *wanted,
                  int32_t n_labels, fp_tree *nodes, int32_t *node) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i || (uint32_t)label[i] >= (uint32_t)n_labels) return FP_E_INDEX;
    int32_t above = parent[i] < 0 ? -1 : node[parent[i]];
    if (wanted && !wanted[label[i]]) {
      node[i] = above;
      continue;
    }
    fp_status status = fp_tree_below(nodes, above, label[i], &node[i]);
    if (status != FP_OK) return status;
  }
  return FP_OK;
}

fp_status fp_path_innermost(const int32_t *parent, const int32_t *own, int32_t n, int32_t *out) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i) return FP_E_INDEX;
    out[i] = own[i] >= 0 || parent[i] < 0 ? own[i] : out[parent[i]];
  }
  return FP_OK;
}

fp_status fp_path_nearest(const int32_t *parent, const int32_t *label, int32_t n,
                          const uint8_t *wanted, int32_t n_labels, int32_t *out) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i || (uint32_t)label[i] >= (uint32_t)n_labels) return FP_E_INDEX;
    out[i] = wanted[label[i]] ? i : parent[i] < 0 ? -1 : out[parent[i]];
  }
  return FP_OK;
}

fp_status fp_path_best(const int32_t *parent, const int32_t *label, int32_t n, const uint8_t *rank,
                       int32_t n_labels, int32_t *out) {
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i || (uint32_t)label[i] >= (uint32_t)n_labels) return FP_E_INDEX;
    int32_t around = parent[i] < 0 ? -1 : out[parent[i]];
    uint8_t best = around < 0 ? FP_NO_RANK : rank[label[around]];
    out[i] = rank[label[i]] < best ? i : around;
  }
  return FP_OK;
}

void fp_path_number(const int32_t *label, int32_t n, const uint8_t *rank, uint8_t only,
                    int32_t *best, int32_t *entry, int32_t *n_entries) {
  *n_entries = 0;
  for (int32_t i = 0; i < n; i++) {
    const int32_t found = best[i]; /* at most i, and its own best: numbered by now, or i itself */
    if (found == i && rank[label[i]] == only) {
      entry[*n_entries] = i;
      best[i] = (*n_entries)++;
    } else {
      best[i] = found < 0 || found == i ? -1 : best[found];
    }
  }
}

fp_status fp_path_directions(const int32_t *parent, const int32_t *label, int32_t n,
                             const uint8_t *says, int32_t n_labels, uint8_t *direction) {
  /* First pass: direction holds two bits, backward and inside a range of torch. */
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] >= i || (uint32_t)label[i] >= (uint32_t)n_labels) return FP_E_INDEX;
    uint8_t own = says[label[i]], state = parent[i] < 0 ? 0 : direction[parent[i]];
    if (own & (FP_SAYS_BACKWARD | FP_SAYS_FORWARD))
      state = (uint8_t)((state & ~FP_SAYS_BACKWARD) | (own & FP_SAYS_BACKWARD));
    direction[i] = state | (own & FP_SAYS_TORCH);
  }
  for (int32_t i = 0; i < n; i++)
    direction[i] = direction[i] & FP_SAYS_BACKWARD ? FP_BACKWARD
                   : direction[i]                  ? FP_FORWARD
                                                   : FP_NOWHERE;
  return FP_OK;
}

fp_status fp_path_sums(const int32_t *parent, int32_t n, int64_t *value) {
  for (int32_t i = n - 1; i >= 0; i--) {
    if (parent[i] >= i) return FP_E_INDEX;
    if (parent[i] < 0) continue;
    value[parent[i]] = (int64_t)((uint64_t)value[parent[i]] + (uint64_t)value[i]);
  }
  return FP_OK;
}

int32_t fp_path_depth(const int32_t *parent, int32_t n, int32_t *depth) {
  int32_t most = 0;
  for (int32_t i = 0; i < n; i++) {
    depth[i] = parent[i] < 0 || parent[i] >= i ? 1 : depth[parent[i]] + 1;
    if (depth[i] > most) most = depth[i];
  }
  return most;
}

int32_t fp_path_misplaced(const int32_t *parent, const int32_t *node, int32_t n,
                          const int32_t *above, int32_t n_nodes) {
  int32_t found = 0;
  for (int32_t i = 0; i < n_nodes; i++)
    if (above[i] < -1 || above[i] >= i) return -1;
  for (int32_t i = 0; i < n; i++) {
    if (parent[i] < -1 || parent[i] >= i || node[i] < -1 || node[i] >= n_nodes) return -1;
    int32_t around = parent[i] < 0 ? -1 : node[parent[i]];
    found += (node[i] < 0 ? -1 : above[node[i]]) != around;
  }
  return found;
}
