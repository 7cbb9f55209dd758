/* path.c: fp_tree, fp_path, fp_link, fp_share and fp_take against walks along chains and over all
 * rows. */
#include "base/fp_take.h"
#include "check.h"
#include "cost/fp_share.h"
#include "path/fp_link.h"
#include "path/fp_path.h"

enum { N_LABELS = 4 };

static int32_t *random_tree(int32_t n) {
  int32_t *parent = ARRAY(int32_t, n);
  for (int32_t i = 0; i < n; i++) parent[i] = random_below(i + 1) - 1;
  return parent;
}

static int32_t *random_numbers(int32_t n, int32_t first, int32_t count) {
  int32_t *numbers = ARRAY(int32_t, n);
  for (int32_t i = 0; i < n; i++) numbers[i] = first + random_below(count);
  return numbers;
}

static int64_t *random_wide(int32_t n, int64_t first, int32_t count) {
  int64_t *numbers = ARRAY(int64_t, n);
  for (int32_t i = 0; i < n; i++) numbers[i] = first + random_below(count);
  return numbers;
}

static uint8_t *random_flags(int32_t n, int32_t count) {
  uint8_t *flags = ARRAY(uint8_t, n);
  for (int32_t i = 0; i < n; i++) flags[i] = (uint8_t)random_below(count);
  return flags;
}

/* The chains of a frame and its node must have the same wanted labels. */
typedef struct {
  int32_t n, *above, *label;
} chains;

static chains read_tree(const fp_tree *nodes) {
  int32_t n = fp_tree_count(nodes);
  chains out = {n, ARRAY(int32_t, n), ARRAY(int32_t, n)};
  fp_tree_read(nodes, out.above, out.label);
  for (int32_t i = 0; i < n; i++) CHECK(out.above[i] >= -1 && out.above[i] < i);
  return out;
}

static void free_chains(chains some) {
  free(some.above);
  free(some.label);
}

static void check_path(const chains *nodes, int32_t node, const int32_t *parent,
                       const int32_t *label, const uint8_t *wanted, int32_t frame) {
  for (; frame >= 0; frame = parent[frame]) {
    if (wanted && !wanted[label[frame]]) continue;
    CHECK(node >= 0 && node < nodes->n && nodes->label[node] == label[frame]);
    node = nodes->above[node];
  }
  CHECK(node == -1);
}

/* Few and many labels, for nodes with few and many children. */
static void equal_chains_are_one_node(int32_t n, int32_t n_labels) {
  fp_tree *tree = fp_tree_new();
  int32_t *found = ARRAY(int32_t, n), *above = ARRAY(int32_t, n), *label = ARRAY(int32_t, n);
  CHECK(tree);
  for (int32_t i = 0; i < n; i++) {
    above[i] = random_below(3) ? random_below(fp_tree_count(tree) / 20 + 1) - 1 : -1;
    label[i] = random_below(n_labels) - (random_below(9) == 0);
    CHECK(fp_tree_below(tree, above[i], label[i], &found[i]) == FP_OK);
  }
  chains nodes = read_tree(tree);
  for (int32_t i = 0; i < n; i++) {
    int32_t again;
    CHECK(nodes.above[found[i]] == above[i] && nodes.label[found[i]] == label[i]);
    CHECK(fp_tree_below(tree, above[i], label[i], &again) == FP_OK && again == found[i]);
  }
  for (int32_t i = 0; i < nodes.n; i++)
    for (int32_t k = 0; k < i; k++)
      CHECK(nodes.above[i] != nodes.above[k] || nodes.label[i] != nodes.label[k]);
  free_chains(nodes);
  free(found);
  free(above);
  free(label);
  fp_tree_free(tree);
}

static void nodes_are_paths(int32_t n) {
  int32_t *parent = random_tree(n), *label = random_numbers(n, 0, N_LABELS);
  int32_t *node = ARRAY(int32_t, n), *depth = ARRAY(int32_t, n), deepest = 0;
  uint8_t *wanted = random_below(2) ? random_flags(N_LABELS, 2) : NULL;
  fp_tree *tree = fp_tree_new();
  CHECK(fp_path(parent, label, n, wanted, N_LABELS, tree, node) == FP_OK);
  chains nodes = read_tree(tree);
  for (int32_t i = 0; i < n; i++) {
    int32_t length = 0;
    check_path(&nodes, node[i], parent, label, wanted, i);
    for (int32_t at = i; at >= 0; at = parent[at]) length++;
    if (length > deepest) deepest = length;
  }
  CHECK(fp_path_depth(parent, n, depth) == deepest);
  if (n) {
    label[n - 1] = N_LABELS;
    CHECK(fp_path(parent, label, n, wanted, N_LABELS, tree, node) == FP_E_INDEX);
    parent[n - 1] = n - 1;
    CHECK(fp_path_innermost(parent, label, n, node) == FP_E_INDEX);
  }
  free_chains(nodes);
  fp_tree_free(tree);
  free(parent);
  free(label);
  free(node);
  free(depth);
  free(wanted);
}

static void values_come_from_around(int32_t n) {
  int32_t *parent = random_tree(n), *own = random_numbers(n, -1, 3);
  int32_t *innermost = ARRAY(int32_t, n);
  CHECK(fp_path_innermost(parent, own, n, innermost) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t at = i;
    while (at >= 0 && own[at] < 0) at = parent[at];
    CHECK(innermost[i] == (at < 0 ? -1 : own[at]));
  }
  free(parent);
  free(own);
  free(innermost);
}

static void the_best_is_the_outermost_of_the_least_rank(int32_t n) {
  int32_t *parent = random_tree(n), *label = random_numbers(n, 0, N_LABELS);
  int32_t *best = ARRAY(int32_t, n);
  uint8_t *rank = random_flags(N_LABELS, 3);
  rank[0] = FP_NO_RANK;
  CHECK(fp_path_best(parent, label, n, rank, N_LABELS, best) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t expected = -1;
    for (int32_t at = i; at >= 0; at = parent[at]) {
      if (rank[label[at]] == FP_NO_RANK) continue;
      if (expected < 0 || rank[label[at]] <= rank[label[expected]]) expected = at;
    }
    CHECK(best[i] == expected);
  }
  int32_t *number = ARRAY(int32_t, n), *entry = ARRAY(int32_t, n), n_entries;
  for (int32_t i = 0; i < n; i++) number[i] = best[i];
  fp_path_number(label, n, rank, 1, number, entry, &n_entries);
  for (int32_t i = 0; i < n; i++) {
    const int is_one = best[i] >= 0 && rank[label[best[i]]] == 1;
    CHECK(is_one ? number[i] < n_entries && entry[number[i]] == best[i] : number[i] == -1);
  }
  for (int32_t i = 1; i < n_entries; i++) CHECK(entry[i - 1] < entry[i]);
  free(number);
  free(entry);
  if (n) {
    label[n - 1] = N_LABELS;
    CHECK(fp_path_best(parent, label, n, rank, N_LABELS, best) == FP_E_INDEX);
  }
  free(parent);
  free(label);
  free(best);
  free(rank);
}

static void the_innermost_turns_the_direction(int32_t n) {
  int32_t *parent = random_tree(n), *label = random_numbers(n, 0, N_LABELS);
  uint8_t *says = random_flags(N_LABELS, 8), *direction = ARRAY(uint8_t, n);
  CHECK(fp_path_directions(parent, label, n, says, N_LABELS, direction) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    uint8_t turn = 0, torch = 0;
    for (int32_t at = i; at >= 0; at = parent[at]) {
      if (!turn) turn = says[label[at]] & (FP_SAYS_BACKWARD | FP_SAYS_FORWARD);
      torch |= says[label[at]] & FP_SAYS_TORCH;
    }
    uint8_t forward = torch ? FP_FORWARD : FP_NOWHERE;
    CHECK(direction[i] == (turn & FP_SAYS_BACKWARD ? FP_BACKWARD : forward));
  }
  if (n) {
    label[n - 1] = N_LABELS;
    CHECK(fp_path_directions(parent, label, n, says, N_LABELS, direction) == FP_E_INDEX);
  }
  free(parent);
  free(label);
  free(says);
  free(direction);
}

static void backward_finds_the_latest_carrier(int32_t n) {
  uint8_t *role = random_flags(n, 3);
  int64_t *seq = random_wide(n, INT64_MAX - 3, 4);
  int32_t *scope = random_numbers(n, INT32_MAX - 1, 2), *forward = ARRAY(int32_t, n);
  CHECK(fp_link(role, seq, scope, n, forward) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t expected = role[i] == FP_LINK_BACKWARD ? i - 1 : -1;
    while (expected >= 0 && (role[expected] != FP_LINK_FORWARD || seq[expected] != seq[i] ||
                             scope[expected] != scope[i]))
      expected--;
    CHECK(forward[i] == expected);
  }
  free(role);
  free(seq);
  free(scope);
  free(forward);
}

static void calls_are_the_outermost_of_one_number(int32_t n) {
  int32_t *parent = random_tree(n), *call = ARRAY(int32_t, n), *range = ARRAY(int32_t, n);
  int64_t *number = random_wide(n, -1, 3);
  uint8_t *role = ARRAY(uint8_t, n), *links = ARRAY(uint8_t, n);
  for (int32_t i = 0; i < n; i++) {
    range[i] = i;
    role[i] = number[i] >= 0 ? FP_LINK_BACKWARD : FP_LINK_NONE;
  }
  CHECK(fp_link_calls(parent, range, n, role, number, call, links) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t expected = -1;
    for (int32_t at = i; at >= 0; at = parent[at]) {
      if (number[at] < 0) continue;
      if (expected >= 0 && number[at] != number[expected]) break;
      expected = at;
    }
    CHECK(call[i] == expected);
  }
  if (n) parent[0] = 0;
  CHECK(n == 0 || fp_link_calls(parent, range, n, role, number, call, links) == FP_E_INDEX);
  free(parent);
  free(call);
  free(range);
  free(role);
  free(links);
  free(number);
}

static int chain_has(const int32_t *parent, const int64_t *seq, int32_t frame, int64_t number) {
  for (; frame >= 0; frame = parent[frame])
    if (seq[frame] == number) return 1;
  return 0;
}

static void other_numbers_are_those_of_the_chain(int32_t n) {
  int32_t *parent = random_tree(n), *scratch_depth = ARRAY(int32_t, n);
  int64_t *seq = random_wide(n, -1, 6);
  uint8_t *backward = random_flags(n, 2), *inside = random_flags(n, 2);
  int32_t *frame = random_numbers(n, -1, n + 1);
  int32_t depth = fp_path_depth(parent, n, scratch_depth);
  int64_t *scratch = ARRAY(int64_t, depth), *seq_of = ARRAY(int64_t, n);
  int64_t *offset = ARRAY(int64_t, n + 1);
  int32_t *own = random_numbers(n, 0, 1), *label = random_numbers(n, 0, 1);
  const uint8_t is_torch[] = {1};
  for (int32_t i = 0; i < n; i++) own[i] = i;
  const fp_link_frames frames = {parent, own, backward, seq, label, is_torch, n, 1};
  int64_t *other = NULL;
  fp_link_others others = {offset + 1, NULL, 0, 0};
  fp_status status = FP_MORE;
  for (offset[0] = 0; status == FP_MORE; others.capacity++) {
    other = realloc(other, (size_t)(others.capacity + 1) * sizeof *other);
    others.number = other;
    status = fp_link_numbers(&frames, frame, inside, n, scratch, depth, seq_of, &others);
  }
  CHECK(status == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(seq_of[i] == -1 || chain_has(parent, seq, frame[i], seq_of[i]));
    for (int64_t k = offset[i]; k < offset[i + 1]; k++) {
      CHECK(other[k] != seq_of[i] && chain_has(parent, seq, frame[i], other[k]));
      CHECK(k == offset[i] || other[k - 1] < other[k]);
    }
  }
  free(parent);
  free(own);
  free(label);
  free(scratch_depth);
  free(seq);
  free(backward);
  free(inside);
  free(frame);
  free(scratch);
  free(seq_of);
  free(offset);
  free(other);
}

static void sub_counts_rows_in_a_row(int32_t n) {
  enum { N_PROCESSES = 2 };
  int32_t *process = random_numbers(n, 0, N_PROCESSES), *operator_id = random_numbers(n, -1, 2);
  int64_t *seq = random_wide(n, -1, 3), last_seq[N_PROCESSES];
  int32_t *sub = ARRAY(int32_t, n), last_operator[N_PROCESSES], last_sub[N_PROCESSES];
  CHECK(fp_link_sub(process, seq, operator_id, n, last_seq, last_operator, last_sub, N_PROCESSES,
                    sub) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t expected = 0;
    for (int32_t k = i - 1; seq[i] >= 0 && k >= 0; k--) {
      if (process[k] != process[i] || seq[k] < 0) continue;
      if (seq[k] != seq[i] || operator_id[k] != operator_id[i]) break;
      expected++;
    }
    CHECK(sub[i] == expected);
  }
  free(process);
  free(operator_id);
  free(seq);
  free(sub);
}

static void shares_add_up(int32_t n) {
  enum { N_GROUPS = 3, N_PARTS = 2 };
  const int64_t totals[N_GROUPS] = {INT64_MAX, random_below(50), -1};
  int32_t *instance = random_numbers(n, -1, N_GROUPS + 1), *cell = random_numbers(n, 0, N_GROUPS);
  int64_t *weight = random_wide(n, random_below(2) ? INT64_MAX / 64 : -1, 5);
  int64_t *share = ARRAY(int64_t, n), sum[N_GROUPS], passed[N_GROUPS], left[N_GROUPS];
  int32_t members[N_GROUPS] = {0}, n_before[N_GROUPS] = {0}, seen[N_GROUPS], n_groups;
  int32_t *ordinal = ARRAY(int32_t, n), *group = ARRAY(int32_t, n);
  int32_t *scratch = ARRAY(int32_t, N_GROUPS * N_PARTS);
  int8_t *part = (int8_t *)random_flags(n, N_PARTS + 1);
  int32_t *place = ARRAY(int32_t, n);
  uint64_t expected, found;
  for (int32_t i = 0; i < n; i++) part[i] = part[i] ? N_PARTS : 0; /* only part 0 is shared */
  for (int32_t i = 0; i < n; i++) place[i] = i;
  CHECK(fp_share_pairs(instance, place, n, N_GROUPS, part, n, N_PARTS, scratch, group, &n_groups) ==
        FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK((group[i] >= 0) == (instance[i] >= 0 && part[i] == 0) && group[i] < n_groups);
    for (int32_t k = 0; k < i; k++)
      CHECK(group[i] < 0 || group[k] < 0 || (group[i] == group[k]) == (instance[i] == instance[k]));
    if (group[i] >= 0) cell[i] = group[i];
    share[i] = -7;
  }
  memcpy(left, totals, sizeof left);
  const fp_share_rows rows = {group, cell, weight, totals, n, N_GROUPS, N_GROUPS};
  CHECK(fp_share_sum(&rows, sum) == FP_OK);
  CHECK(fp_share(&rows, sum, passed, share) == FP_OK);
  CHECK(fp_share_ordinal(group, n, N_GROUPS, seen, ordinal) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(ordinal[i] == (group[i] < 0 ? -1 : n_before[group[i]]++));
    if (group[i] < 0) {
      CHECK(share[i] == -7);
      continue;
    }
    members[group[i]]++;
    if (group[i] == 2)
      CHECK(share[i] == -1);
    else
      CHECK(share[i] >= 0 && (left[group[i]] -= share[i]) >= 0);
  }
  CHECK((!members[0] || left[0] == 0) && (!members[1] || left[1] == 0));
  CHECK(fp_share_add_up(&rows, share, sum, &expected, &found) == FP_OK);
  CHECK(expected == found && expected >= (members[0] ? (uint64_t)totals[0] : 0));
  if (n) {
    int counts = group[n - 1] >= 0;
    share[n - 1] = share[n - 1] <= 0 ? 5 : share[n - 1] - 1;
    CHECK(fp_share_add_up(&rows, share, sum, &expected, &found) == FP_OK);
    CHECK((expected == found) == !counts);
    for (int outside = 0; outside < 2; outside++) {
      group[n - 1] = outside ? 0 : N_GROUPS;
      cell[n - 1] = outside ? -1 : 0;
      CHECK(fp_share_sum(&rows, sum) == FP_E_INDEX);
      CHECK(fp_share(&rows, sum, passed, share) == FP_E_INDEX);
      CHECK(fp_share_add_up(&rows, share, sum, &expected, &found) == FP_E_INDEX);
    }
    group[n - 1] = N_GROUPS;
    CHECK(fp_share_ordinal(group, n, N_GROUPS, seen, ordinal) == FP_E_INDEX);
    instance[n - 1] = N_GROUPS;
    CHECK(fp_share_pairs(instance, place, n, N_GROUPS, part, n, N_PARTS, scratch, group,
                         &n_groups) == FP_E_INDEX);
    instance[n - 1] = 0;
    place[n - 1] = n;
    CHECK(fp_share_pairs(instance, place, n, N_GROUPS, part, n, N_PARTS, scratch, group,
                         &n_groups) == FP_E_INDEX);
  }
  free(instance);
  free(scratch);
  free(group);
  free(cell);
  free(ordinal);
  free(weight);
  free(share);
  free(part);
  free(place);
}

/* Whether a forward range of the thread has a number above 0, by the roles found. */
static int counts(const fp_link_ranges *ranges, const uint8_t *role, int32_t thread) {
  for (int32_t i = 0; i < ranges->n; i++)
    if (ranges->thread[i] == thread && role[i] == FP_LINK_FORWARD && ranges->seq[i] > 0) return 1;
  return 0;
}

static void roles_are_those_of_label_and_place(int32_t n) {
  enum { N_THREADS = 2 };
  int32_t *parent = random_tree(n), *frame = random_tree(n);
  int32_t *label = random_numbers(n, 0, N_LABELS), *thread = random_numbers(n, 0, N_THREADS);
  uint8_t *bits = random_flags(N_LABELS, 16), *in_backward = random_flags(n, 2);
  uint8_t *role = ARRAY(uint8_t, n), counting[N_THREADS];
  int64_t *seq = random_wide(n, -1, 3);
  for (int32_t i = 0; i < n; i++) frame[i] = i;
  fp_link_ranges ranges = {label, thread, frame, seq, n, bits, parent, in_backward};
  fp_link_roles(&ranges, counting, N_THREADS, role);
  for (int32_t i = 0; i < n; i++) {
    int32_t is = bits[label[i]], numbered = (is & FP_LABEL_TORCH) && seq[i] >= 0;
    int32_t inside = parent[i] >= 0 && in_backward[parent[i]], expected = FP_LINK_NONE;
    if (numbered && (is & FP_LABEL_BACKWARD) && (!inside || (is & FP_LABEL_NODE)))
      expected = FP_LINK_BACKWARD;
    if (numbered && !(is & (FP_LABEL_BACKWARD | FP_LABEL_RECOMPUTE)) && !in_backward[i] &&
        (seq[i] > 0 || counts(&ranges, role, thread[i])))
      expected = FP_LINK_FORWARD;
    CHECK(role[i] == expected);
  }
  free(parent);
  free(frame);
  free(label);
  free(thread);
  free(bits);
  free(in_backward);
  free(role);
  free(seq);
}

static void calls_are_too_fast_beyond_the_bandwidth(int32_t n) {
  enum { N_GROUPS = 3 };
  const double bandwidth[] = {1e9, 1e18};
  int32_t *group = random_numbers(n, -1, N_GROUPS + 1), *memory = random_numbers(n, 0, 2);
  int64_t *bytes = random_wide(n, -1, 100), *duration = random_wide(n, -1, 10);
  double *scratch = ARRAY(double, 2 * N_GROUPS);
  uint8_t *too_fast = ARRAY(uint8_t, n);
  const fp_share_moves moves = {group, bytes, duration, memory, bandwidth, n, N_GROUPS, 2};
  CHECK(fp_share_too_fast(&moves, 2, scratch, too_fast) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(too_fast[i] <= (memory[i] == 0 && bytes[i] >= 0));
    if (group[i] >= 0) continue;
    CHECK(too_fast[i] == (memory[i] == 0 && duration[i] > 0 && bytes[i] > 2 * duration[i]));
  }
  if (n) {
    memory[n - 1] = 2;
    CHECK(fp_share_too_fast(&moves, 2, scratch, too_fast) == FP_E_INDEX);
    memory[n - 1] = 0;
    group[n - 1] = N_GROUPS;
    CHECK(fp_share_too_fast(&moves, 2, scratch, too_fast) == FP_E_INDEX);
  }
  free(group);
  free(memory);
  free(bytes);
  free(duration);
  free(scratch);
  free(too_fast);
}

static void the_nearest_is_the_innermost_wanted(int32_t n) {
  int32_t *parent = random_tree(n), *label = random_numbers(n, 0, N_LABELS);
  int32_t *out = ARRAY(int32_t, n);
  uint8_t *wanted = random_flags(N_LABELS, 2);
  CHECK(fp_path_nearest(parent, label, n, wanted, N_LABELS, out) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    int32_t at = i;
    while (at >= 0 && !wanted[label[at]]) at = parent[at];
    CHECK(out[i] == at);
  }
  if (n) {
    label[n - 1] = N_LABELS;
    CHECK(fp_path_nearest(parent, label, n, wanted, N_LABELS, out) == FP_E_INDEX);
  }
  free(parent);
  free(label);
  free(out);
  free(wanted);
}

static void ranks_and_flagged_rows_agree(int32_t *index, int32_t n, const uint8_t *flags,
                                         int32_t n_values) {
  enum { WORDS = 2 };
  uint64_t used[WORDS];
  int32_t before[WORDS], *rank = ARRAY(int32_t, n);
  int64_t *rows = ARRAY(int64_t, n + 1), n_rows, n_expected = 0;
  CHECK(fp_take_ranks(index, n, n_values, used, before, rank) == FP_OK);
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < n; k++)
      CHECK((rank[i] < rank[k]) == (index[i] < index[k]) && rank[i] < n_values);
  CHECK(fp_take_where(flags, n_values, index, n, rows, &n_rows) == FP_OK);
  for (int32_t i = 0; i < n; i++)
    if (index[i] >= 0 && flags[index[i]]) CHECK(rows[n_expected++] == i);
  CHECK(n_expected == n_rows);
  if (n) {
    const int32_t kept = index[n - 1];
    index[n - 1] = n_values;
    CHECK(fp_take_ranks(index, n, n_values, used, before, rank) == FP_E_INDEX);
    CHECK(fp_take_where(flags, n_values, index, n, rows, &n_rows) == FP_E_INDEX);
    index[n - 1] = kept;
  }
  free(rank);
  free(rows);
}

static void indices_are_looked_up(int32_t n) {
  int32_t n_values = random_below(5), n_used;
  int32_t *values = random_numbers(n_values, -3, 6), *index = random_numbers(n, -1, n_values + 1);
  int64_t *wide = random_wide(n_values, INT64_MIN, 6), *wide_out = ARRAY(int64_t, n);
  int32_t *out = ARRAY(int32_t, n), *place = ARRAY(int32_t, n);
  int32_t *number = ARRAY(int32_t, n_values + 1), *used = ARRAY(int32_t, n_values + 1);
  uint8_t *flags = random_flags(n_values, 5), *flags_out = ARRAY(uint8_t, n), no_flag = 7;
  const int32_t none = -9;
  const int64_t wide_none = INT64_MAX;
  CHECK(fp_take(flags, 1, n_values, index, n, &no_flag, flags_out) == FP_OK);
  CHECK(fp_take(values, 4, n_values, index, n, &none, out) == FP_OK);
  CHECK(fp_take(wide, 8, n_values, index, n, &wide_none, wide_out) == FP_OK);
  const fp_take_index indices = {index, NULL, NULL, n, 0, 0};
  CHECK(fp_take_distinct(&indices, n_values, number, used, &n_used, place) == FP_OK);
  for (int32_t i = 0; i < n; i++) {
    CHECK(out[i] == (index[i] < 0 ? -9 : values[index[i]]));
    CHECK(flags_out[i] == (index[i] < 0 ? no_flag : flags[index[i]]));
    CHECK(wide_out[i] == (index[i] < 0 ? INT64_MAX : wide[index[i]]));
    CHECK(place[i] >= 0 && place[i] < n_used && used[place[i]] == index[i]);
  }
  for (int32_t i = 1; i < n_used; i++) CHECK(used[i - 1] < used[i]);
  ranks_and_flagged_rows_agree(index, n, flags, n_values);
  for (int32_t wrong = -2; n && wrong <= n_values; wrong += n_values + 2) {
    index[n - 1] = wrong;
    CHECK(fp_take(flags, 1, n_values, index, n, &no_flag, flags_out) == FP_E_INDEX);
    CHECK(fp_take(values, 4, n_values, index, n, &none, out) == FP_E_INDEX);
    CHECK(fp_take(wide, 8, n_values, index, n, &wide_none, wide_out) == FP_E_INDEX);
    CHECK(fp_take_distinct(&indices, n_values, number, used, &n_used, place) == FP_E_INDEX);
  }
  free(flags);
  free(flags_out);
  free(values);
  free(index);
  free(wide);
  free(wide_out);
  free(out);
  free(place);
  free(number);
  free(used);
}

int main(void) {
  for (int i = 0; i < 500; i++) {
    int32_t n = random_below(30);
    nodes_are_paths(n);
    values_come_from_around(n);
    the_innermost_turns_the_direction(n);
    the_best_is_the_outermost_of_the_least_rank(n);
    backward_finds_the_latest_carrier(n);
    calls_are_the_outermost_of_one_number(n);
    other_numbers_are_those_of_the_chain(n);
    sub_counts_rows_in_a_row(n);
    shares_add_up(n);
    calls_are_too_fast_beyond_the_bandwidth(n);
    the_nearest_is_the_innermost_wanted(n);
    roles_are_those_of_label_and_place(n);
    indices_are_looked_up(n);
  }
  for (int i = 0; i < 20; i++) equal_chains_are_one_node(random_below(1000), 1 + random_below(300));
  const int32_t zero[] = {0, 0};
  const int64_t weight[] = {INT64_MAX, 1};
  const fp_share_rows too_long = {zero, zero, weight, weight, 2, 1, 1};
  int64_t sum;
  CHECK(fp_share_sum(&too_long, &sum) == FP_E_RANGE);
  return 0;
}
