#include "kineto/fp_kineto_rows.h"

#include "base/fp_room.h"

/* How a column's value is computed. */
typedef enum {
  TIME,     /* microseconds in the text, ns in the column */
  NUMBER,   /* -1 if missing */
  SIGNED,   /* FP_KINETO_NONE if missing */
  SMALL,    /* a 32-bit NUMBER */
  TRIPLE,   /* three SMALL numbers */
  PLACE,    /* pid or tid */
  NAME,     /* text */
  STACK,    /* text */
  META,     /* text of a metadata value */
  LABEL,    /* see fp_kineto_label */
  NOTE,     /* see fp_kineto_annotation */
  CATEGORY, /* of the event */
  KIND,     /* of GPU work */
  PHASE,    /* the letter of ph */
} column_kind;

typedef struct {
  const char *name;
  uint8_t kind, field;
} column;

/* Columns that several tables share. */
#define SPAN \
  {"start", TIME, FP_FIELD_TS}, { "duration", TIME, FP_FIELD_DUR }
#define THREAD \
  {"pid", PLACE, FP_FIELD_PID}, { "tid", PLACE, FP_FIELD_TID }

static const column COLUMNS[FP_KINETO_TABLES][FP_KINETO_COLUMNS + 1] = {
    [FP_KINETO_GPU] = {{"kind", KIND, 0},
                       SPAN,
                       {"name", NAME, FP_FIELD_NAME},
                       THREAD,
                       {"correlation", NUMBER, FP_FIELD_CORRELATION},
                       {"external_id", NUMBER, FP_FIELD_EXTERNAL_ID},
                       {"device", SMALL, FP_FIELD_DEVICE},
                       {"context", NUMBER, FP_FIELD_CONTEXT},
                       {"stream", NUMBER, FP_FIELD_STREAM},
                       {"grid", TRIPLE, FP_FIELD_GRID},
                       {"block", TRIPLE, FP_FIELD_BLOCK},
                       {"registers", SMALL, FP_FIELD_REGISTERS},
                       {"shared_memory", SMALL, FP_FIELD_SHARED_MEMORY},
                       {"graph_id", NUMBER, FP_FIELD_GRAPH_ID},
                       {"graph_node", NUMBER, FP_FIELD_GRAPH_NODE},
                       {"bytes", NUMBER, FP_FIELD_BYTES},
                       {"occupancy", SMALL, FP_FIELD_OCCUPANCY},
                       {"annotation", NOTE, FP_FIELD_GRAPH_NODE}},
    [FP_KINETO_LAUNCHES] = {{"category", CATEGORY, 0},
                            SPAN,
                            {"name", NAME, FP_FIELD_NAME},
                            THREAD,
                            {"correlation", NUMBER, FP_FIELD_CORRELATION},
                            {"external_id", NUMBER, FP_FIELD_EXTERNAL_ID},
                            {"kernel", NAME, FP_FIELD_KERNEL},
                            {"grid", TRIPLE, FP_FIELD_GRID},
                            {"block", TRIPLE, FP_FIELD_BLOCK}},
    [FP_KINETO_RANGES] = {{"category", CATEGORY, 0},
                          SPAN,
                          {"label", LABEL, FP_FIELD_NAME},
                          THREAD,
                          {"seq", NUMBER, FP_FIELD_SEQ},
                          {"message", SMALL, FP_FIELD_COLLECTIVE_SEQ},
                          {"external_id", NUMBER, FP_FIELD_EXTERNAL_ID},
                          {"forward_thread", NUMBER, FP_FIELD_FORWARD_THREAD},
                          {"record_function", NUMBER, FP_FIELD_RECORD_FUNCTION},
                          {"python_id", SMALL, FP_FIELD_PYTHON_ID},
                          {"python_parent", SMALL, FP_FIELD_PYTHON_PARENT},
                          {"python_module", SMALL, FP_FIELD_PYTHON_MODULE},
                          {"stack", STACK, FP_FIELD_STACK},
                          {"hierarchy", STACK, FP_FIELD_HIERARCHY}},
    [FP_KINETO_GPU_ANNOTATIONS] = {SPAN,
                                   {"name", NAME, FP_FIELD_NAME},
                                   THREAD,
                                   {"external_id", NUMBER, FP_FIELD_EXTERNAL_ID},
                                   {"device", SMALL, FP_FIELD_DEVICE},
                                   {"stream", NUMBER, FP_FIELD_STREAM}},
    [FP_KINETO_FLOWS] = {{"phase", PHASE, FP_FIELD_PH},
                         {"time", TIME, FP_FIELD_TS},
                         THREAD,
                         {"id", SIGNED, FP_FIELD_ID}},
    [FP_KINETO_MEMORY] = {{"time", TIME, FP_FIELD_TS},
                          THREAD,
                          {"address", NUMBER, FP_FIELD_ADDRESS},
                          {"bytes", SIGNED, FP_FIELD_BYTES},
                          {"device_type", SMALL, FP_FIELD_DEVICE_TYPE},
                          {"device", SMALL, FP_FIELD_DEVICE_ID},
                          {"total_allocated", NUMBER, FP_FIELD_ALLOCATED},
                          {"total_reserved", NUMBER, FP_FIELD_RESERVED}},
    [FP_KINETO_METADATA] = {{"name", NAME, FP_FIELD_NAME},
                            THREAD,
                            {"value", META, FP_FIELD_META_NAME}},
    [FP_KINETO_SYNCS] = {SPAN,
                         {"name", NAME, FP_FIELD_NAME},
                         {"device", SMALL, FP_FIELD_DEVICE},
                         {"stream", SMALL, FP_FIELD_STREAM},
                         {"correlation", NUMBER, FP_FIELD_CORRELATION}},
};

typedef struct {
  const char *categories; /* in lower case, separated by spaces */
  fp_kineto_class means;
} category_class;

/* Categories of all versions since 2021, including those of other accelerators than Nvidia's. */
static const category_class CLASSES[] = {
    {"kernel", {FP_KINETO_GPU, 0}},
    {"gpu_memcpy memcpy", {FP_KINETO_GPU, 1}},
    {"gpu_memset memset", {FP_KINETO_GPU, 2}},
    {"cuda_runtime cuda_driver runtime driver hip_runtime hip_driver xpu_runtime xpu_driver "
     "mtia_runtime privateuse1_runtime privateuse1_driver",
     {FP_KINETO_LAUNCHES, -1}},
    {"cpu_op operator user_annotation python_function", {FP_KINETO_RANGES, -1}},
    {"gpu_user_annotation", {FP_KINETO_GPU_ANNOTATIONS, -1}},
    {"fwdbwd", {FP_KINETO_FLOWS, -1}},
    {"cuda_sync", {FP_KINETO_SYNCS, -1}},
};

static int is_among(const char *words, const char *text, size_t length) {
  for (const char *word = words; *word; word += *word == ' ') {
    size_t i = 0;
    for (; i < length && word[i] && word[i] != ' '; i++) {
      char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + ('a' - 'A')) : text[i];
      if (word[i] != c) break;
    }
    word += i;
    if (length && i == length && (*word == ' ' || *word == 0)) return 1;
    word += strcspn(word, " ");
  }
  return 0;
}

fp_kineto_class fp_kineto_classify(const char *category, size_t length) {
  for (size_t i = 0; i < sizeof CLASSES / sizeof CLASSES[0]; i++)
    if (is_among(CLASSES[i].categories, category, length)) return CLASSES[i].means;
  return (fp_kineto_class){-1, -1};
}

const char *fp_kineto_column(int table, int i, fp_kineto_type *type) {
  if (table < 0 || table >= FP_KINETO_TABLES || i < 0 || i > FP_KINETO_COLUMNS) return NULL;
  const column *at = &COLUMNS[table][i];
  if (!at->name) return NULL;
  int is_wide = at->kind <= SIGNED || at->kind == PLACE;
  *type = is_wide ? FP_KINETO_INT64 : at->kind == TRIPLE ? FP_KINETO_TRIPLE : FP_KINETO_INT32;
  return at->name;
}

static inline int is_plain(const fp_json_value *value) {
  return value && (value->kind == FP_JSON_STRING || value->kind == FP_JSON_SCALAR);
}

static int64_t number_of(const fp_json_value *value, int shift, int64_t none) {
  int64_t number;
  if (!is_plain(value)) return none;
  return fp_decimal_read(value->bytes, value->length, shift, &number) == FP_OK ? number : none;
}

static int32_t small_of(const fp_json_value *value) {
  int64_t number = number_of(value, 0, -1);
  return number < INT32_MIN || number > INT32_MAX ? -1 : (int32_t)number;
}

/* Parses [a, b, c], also inside a string; -1, -1, -1 for any other value. */
static void triple_of(const fp_json_value *value, int32_t triple[3]) {
  int32_t found[3];
  triple[0] = triple[1] = triple[2] = -1;
  if (!value || value->length < 2 || value->bytes[0] != '[') return;
  const char *at = value->bytes + 1, *end = value->bytes + value->length;
  for (int i = 0; i < 3; i++) {
    const char *stop = memchr(at, i < 2 ? ',' : ']', (size_t)(end - at));
    int64_t number;
    if (!stop || fp_decimal_read(at, stop - at, 0, &number) != FP_OK) return;
    if (number < INT32_MIN || number > INT32_MAX) return;
    found[i] = (int32_t)number;
    at = stop + 1;
  }
  if (at == end) memcpy(triple, found, sizeof found);
}

static fp_status place_of(fp_kineto_texts *texts, const fp_json_value *value, int64_t *place) {
  int32_t id = 0;
  *place = FP_KINETO_NONE;
  if (!is_plain(value)) return FP_OK;
  int is_whole = 1;
  for (int64_t i = 0; i < value->length && is_whole; i++) {
    char c = value->bytes[i];
    is_whole = (c >= '0' && c <= '9') || c == '-' || c == ' ';
  }
  if (is_whole) *place = number_of(value, 0, FP_KINETO_NONE);
  if (is_whole && *place > FP_KINETO_TEXT_PLACE) return FP_OK;
  fp_status status = fp_kineto_intern(texts, FP_KINETO_PLACES, value, &id);
  *place = FP_KINETO_TEXT_PLACE - id;
  return status;
}

static fp_status text_of(fp_kineto_texts *texts, int pool, const fp_json_value *value,
                         int32_t *id) {
  *id = -1;
  return value ? fp_kineto_intern(texts, pool, value, id) : FP_OK;
}

static fp_status meta_of(fp_kineto_texts *texts, const fp_kineto_event *event, int32_t *id) {
  int field = FP_FIELD_META_NAME;
  while (field < FP_FIELD_META_SORT_INDEX && !fp_kineto_value(event, field)) field++;
  return text_of(texts, FP_KINETO_NAMES, fp_kineto_value(event, field), id);
}

/* Appends the event to a table, which must have room; `category` is the category's id. */
static fp_status append(fp_kineto_texts *texts, const fp_kineto_event *event, int table, int kind,
                        int32_t category, fp_kineto_rows *rows) {
  int64_t row = rows->rows;
  fp_status status = FP_OK;
  for (int i = 0; i < FP_KINETO_COLUMNS && COLUMNS[table][i].name; i++) {
    const column *at = &COLUMNS[table][i];
    const fp_json_value *value = fp_kineto_value(event, at->field);
    int64_t *wide = (int64_t *)rows->columns[i] + row;
    int32_t *narrow = (int32_t *)rows->columns[i] + row;
    switch ((column_kind)at->kind) {
      case TIME:
        *wide = number_of(value, 3, FP_KINETO_NONE);
        break;
      case NUMBER:
        *wide = number_of(value, 0, -1);
        break;
      case SIGNED:
        *wide = number_of(value, 0, FP_KINETO_NONE);
        break;
      case SMALL:
        *narrow = small_of(value);
        break;
      case TRIPLE:
        triple_of(value, (int32_t *)rows->columns[i] + 3 * row);
        break;
      case PLACE:
        status = place_of(texts, value, wide);
        break;
      case NAME:
        status = text_of(texts, FP_KINETO_NAMES, value, narrow);
        break;
      case STACK:
        status = text_of(texts, FP_KINETO_STACKS, value, narrow);
        break;
      case META:
        status = meta_of(texts, event, narrow);
        break;
      case LABEL:
        status = fp_kineto_label(texts, event, narrow);
        break;
      case NOTE:
        status = fp_kineto_annotation(texts, event, narrow);
        break;
      case CATEGORY:
        *narrow = category;
        break;
      case KIND:
        *narrow = kind;
        break;
      case PHASE:
        *narrow = value->bytes[0];
        break;
    }
    if (status != FP_OK) return status;
  }
  rows->rows++;
  return FP_OK;
}

fp_status fp_kineto_events_make(fp_kineto_events *events) {
  memset(events, 0, sizeof *events);
  events->count_keys = fp_keys_new();
  fp_status status = fp_kineto_texts_make(&events->texts);
  return events->count_keys ? status : FP_E_MEMORY;
}

void fp_kineto_events_free(fp_kineto_events *events) {
  fp_kineto_texts_free(&events->texts);
  fp_keys_free(events->count_keys);
  free(events->counts);
  free(events->classes);
}

static fp_status count_event(fp_kineto_events *events, int32_t phase, int32_t category) {
  int32_t id;
  int64_t key = (int64_t)phase << 32 | (category + 1);
  fp_status status = fp_keys_intern(events->count_keys, key, &id);
  if (status == FP_OK)
    status = fp_reserve(&events->counts, &events->counts_capacity, (size_t)id + 1, sizeof(int64_t));
  if (status != FP_OK) return status;
  for (; events->n_counts <= id; events->n_counts++) events->counts[events->n_counts] = 0;
  events->counts[id]++;
  return FP_OK;
}

/* The id and class of the event's category; -1 and no class if missing. */
static fp_status read_category(fp_kineto_events *events, const fp_kineto_event *event,
                               int32_t *category, fp_kineto_class *means) {
  const fp_json_value *value = fp_kineto_value(event, FP_FIELD_CATEGORY);
  *category = -1;
  *means = (fp_kineto_class){-1, -1};
  if (!value || value->kind != FP_JSON_STRING) return FP_OK;
  fp_status status = fp_kineto_intern(&events->texts, FP_KINETO_CATEGORIES, value, category);
  if (status == FP_OK)
    status = fp_reserve(&events->classes, &events->classes_capacity, (size_t)*category + 1,
                        sizeof(fp_kineto_class));
  if (status != FP_OK) return status;
  for (; events->n_classes <= *category; events->n_classes++) {
    const int64_t *offsets;
    const char *bytes = fp_names_bytes(events->texts.pools[FP_KINETO_CATEGORIES], &offsets);
    offsets += events->n_classes;
    events->classes[events->n_classes] =
        fp_kineto_classify(bytes + offsets[0], (size_t)(offsets[1] - offsets[0]));
  }
  *means = events->classes[*category];
  return FP_OK;
}

static int is_memory(const fp_kineto_event *event) {
  const fp_json_value *value = fp_kineto_value(event, FP_FIELD_NAME);
  return value && fp_json_is(value, "[memory]");
}

/* The table of an event, or -1. */
static int table_of(const fp_kineto_event *event, int32_t phase, fp_kineto_class means) {
  const bool is_flow = means.table == FP_KINETO_FLOWS;
  if (phase == 'X') return is_flow ? -1 : means.table;
  if (phase == 's' || phase == 't' || phase == 'f') return is_flow ? FP_KINETO_FLOWS : -1;
  if (phase == 'i' || phase == 'I') return is_memory(event) ? FP_KINETO_MEMORY : -1;
  return phase == 'M' ? FP_KINETO_METADATA : -1;
}

fp_status fp_kineto_events_add(fp_kineto_events *events, const fp_kineto_event *event,
                               fp_kineto_rows *tables) {
  const fp_json_value *ph = fp_kineto_value(event, FP_FIELD_PH);
  int is_letter = ph && ph->kind == FP_JSON_STRING && ph->length == 1;
  int32_t phase = is_letter ? (unsigned char)ph->bytes[0] : 0, category;
  fp_kineto_class means;
  fp_status status = read_category(events, event, &category, &means);
  if (status != FP_OK) return status;
  int table = table_of(event, phase, means);
  if (table >= 0)
    status = append(&events->texts, event, table, means.kind, category, &tables[table]);
  if (status != FP_OK) return status;
  status = count_event(events, phase, category);
  if (status != FP_OK && table >= 0) tables[table].rows--;
  return status;
}
