#include "text/fp_literal.h"

/* Moves from after the opening quote to after the closing one. Searches each next quote only once
 * for all backslashes before it, to stay linear for strings of many escapes. */
static fp_status to_closing_quote(fp_literal *line, char quote) {
  const char *p = line->at, *end = line->end, *next_quote = NULL;
  while (p < end) {
    if (!next_quote || next_quote < p) next_quote = memchr(p, quote, (size_t)(end - p));
    if (!next_quote) return FP_E_SYNTAX;
    const char *backslash = memchr(p, '\\', (size_t)(next_quote - p));
    if (!backslash) {
      line->at = next_quote + 1;
      return FP_OK;
    }
    p = backslash + 2;
  }
  return FP_E_SYNTAX;
}

static inline int is_prefix(char c) { return c == 'u' || c == 'b' || c == 'U' || c == 'B'; }

fp_status fp_literal_string(fp_literal *line, fp_text *inside) {
  const char *p = line->at;
  if (p < line->end && is_prefix(*p)) p++;
  if (p == line->end || (*p != '\'' && *p != '"')) return FP_E_SYNTAX;
  line->at = p + 1;
  fp_status status = to_closing_quote(line, *p);
  if (status == FP_OK) *inside = (fp_text){p + 1, line->at - p - 2};
  return status;
}

fp_status fp_literal_int(fp_literal *line, int64_t *value) {
  const char *p = line->at;
  int is_negative = p < line->end && *p == '-';
  if (p < line->end && (*p == '-' || *p == '+')) p++;
  const uint64_t limit = (uint64_t)INT64_MAX + (uint64_t)is_negative;
  const char *digits = p;
  uint64_t size = 0;
  for (; p < line->end && *p >= '0' && *p <= '9'; p++) {
    uint64_t digit = (uint64_t)(*p - '0');
    if (size > (limit - digit) / 10) return FP_E_RANGE;
    size = size * 10 + digit;
  }
  if (p == digits) return FP_E_SYNTAX;
  *value = is_negative ? (int64_t)(0 - size) : (int64_t)size;
  line->at = p;
  return FP_OK;
}

/* The closing bracket for an opening one. */
static inline char closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }

static inline int ends_value(char c) {
  return c == ',' || c == ':' || c == '}' || c == ']' || c == ')';
}

fp_status fp_literal_value(fp_literal *line, fp_text *text) {
  char expected[FP_LITERAL_DEPTH];
  int depth = 0;
  const char *start = line->at;
  while (line->at < line->end && (depth > 0 || !ends_value(*line->at))) {
    char c = *line->at++;
    switch (c) {
      case '\'':
      case '"':
        if (to_closing_quote(line, c) != FP_OK) return FP_E_SYNTAX;
        break;
      case '(':
      case '[':
      case '{':
        if (depth == FP_LITERAL_DEPTH) return FP_E_SYNTAX;
        expected[depth++] = closing(c);
        break;
      case ')':
      case ']':
      case '}':
        if (expected[--depth] != c) return FP_E_SYNTAX;
        break;
      default:
        break;
    }
  }
  const char *end = line->at;
  while (end > start && fp_literal_is_blank(end[-1])) end--;
  *text = (fp_text){start, end - start};
  return depth > 0 || end == start ? FP_E_SYNTAX : FP_OK;
}
