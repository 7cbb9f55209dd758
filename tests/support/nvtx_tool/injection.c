/* injection.c: every call of NVTX's core API to a record of log.h; what a program that runs with
 * NVTX_INJECTION64_PATH=this library calls instead of nothing.
 *
 * Domains, registered strings and ranges are numbers from 1, given as handles; 0 is the default
 * domain. nvtxDomainIsEnabled is left to NVTX, which says 1 where a tool is attached. */
#define _GNU_SOURCE
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "log.h"

typedef const nvtxEventAttributes_t *attributes;

static uint32_t number_of(const void *handle) { return (uint32_t)(uintptr_t)handle; }

static void *handle_of(uint32_t number) { return (void *)(uintptr_t)number; }

static uint32_t n_domains, n_strings;
static uint64_t n_ranges;

#define NEXT(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)

/* UTF-8 of a wide text, to be freed; NULL for NULL. */
static char *narrow(const wchar_t *wide) {
  if (wide == NULL) return NULL;
  char *text = malloc(4 * wcslen(wide) + 1), *to = text;
  if (text == NULL) return NULL;
  for (; *wide; wide++) {
    uint32_t c = (uint32_t)*wide;
    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
    int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(more == 0 ? c : (0xFF00u >> (more + 1) & 0xFF) | c >> 6 * more);
    while (more-- > 0) *to++ = (char)(0x80 | (c >> 6 * more & 0x3F));
  }
  *to = '\0';
  return text;
}

static void record_text(int kind, uint32_t domain, const char *text, uint64_t range,
                        uint32_t category) {
  log_record *record = log_new(text, text == NULL ? 0 : strlen(text));
  if (record == NULL) return;
  record->kind = (uint8_t)kind;
  record->domain = domain;
  record->range = range;
  record->category = category;
  log_add(record);
}

static void record_wide(int kind, uint32_t domain, const wchar_t *wide, uint64_t range,
                        uint32_t category) {
  char *text = narrow(wide);
  record_text(kind, domain, text, range, category);
  free(text);
}

static void record_event(int kind, uint32_t domain, attributes event, uint64_t range) {
  if (event == NULL) {
    record_text(kind, domain, NULL, range, 0);
    return;
  }
  char *narrowed = NULL;
  const char *text = NULL;
  if (event->messageType == NVTX_MESSAGE_TYPE_ASCII) text = event->message.ascii;
  if (event->messageType == NVTX_MESSAGE_TYPE_UNICODE)
    text = narrowed = narrow(event->message.unicode);
  log_record *record = log_new(text, text == NULL ? 0 : strlen(text));
  free(narrowed);
  if (record == NULL) return;
  record->kind = (uint8_t)kind;
  record->domain = domain;
  record->range = range;
  record->category = event->category;
  if (event->colorType == NVTX_COLOR_ARGB) {
    record->has_color = 1;
    record->color = event->color;
  }
  if (event->payloadType > 0 && event->payloadType <= NVTX_PAYLOAD_TYPE_FLOAT) {
    record->payload_kind = (uint8_t)event->payloadType;
    memcpy(&record->payload, &event->payload, sizeof record->payload);
  }
  if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED && event->message.registered != NULL) {
    record->text_kind = LOG_REGISTERED;
    record->text = number_of(event->message.registered);
  }
  log_add(record);
}

/* The level of a beginning range: the number of open ranges around it. */
static int level_of_push(uint32_t domain) {
  int32_t *depth = log_depth(domain);
  return depth == NULL ? NVTX_NO_PUSH_POP_TRACKING : (*depth)++;
}

/* The level of an ending range. */
static int level_of_pop(uint32_t domain) {
  int32_t *depth = log_depth(domain);
  return depth == NULL || *depth == 0 ? NVTX_NO_PUSH_POP_TRACKING : --*depth;
}

static int NVTX_API domain_push(nvtxDomainHandle_t domain, attributes event) {
  record_event(LOG_PUSH, number_of(domain), event, 0);
  return level_of_push(number_of(domain));
}

static int NVTX_API push(attributes event) { return domain_push(NULL, event); }

static int NVTX_API push_text(const char *text) {
  record_text(LOG_PUSH, 0, text, 0, 0);
  return level_of_push(0);
}

static int NVTX_API push_wide(const wchar_t *text) {
  record_wide(LOG_PUSH, 0, text, 0, 0);
  return level_of_push(0);
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain) {
  record_text(LOG_POP, number_of(domain), NULL, 0, 0);
  return level_of_pop(number_of(domain));
}

static int NVTX_API pop(void) { return domain_pop(NULL); }

static nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain, attributes event) {
  nvtxRangeId_t range = NEXT(n_ranges);
  record_event(LOG_START, number_of(domain), event, range);
  return range;
}

static nvtxRangeId_t NVTX_API start(attributes event) { return domain_start(NULL, event); }

static nvtxRangeId_t NVTX_API start_text(const char *text) {
  nvtxRangeId_t range = NEXT(n_ranges);
  record_text(LOG_START, 0, text, range, 0);
  return range;
}

static nvtxRangeId_t NVTX_API start_wide(const wchar_t *text) {
  nvtxRangeId_t range = NEXT(n_ranges);
  record_wide(LOG_START, 0, text, range, 0);
  return range;
}

static void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t range) {
  record_text(LOG_END, number_of(domain), NULL, range, 0);
}

static void NVTX_API end(nvtxRangeId_t range) { domain_end(NULL, range); }

static void NVTX_API domain_mark(nvtxDomainHandle_t domain, attributes event) {
  record_event(LOG_MARK, number_of(domain), event, 0);
}

static void NVTX_API mark(attributes event) { domain_mark(NULL, event); }

static void NVTX_API mark_text(const char *text) { record_text(LOG_MARK, 0, text, 0, 0); }

static void NVTX_API mark_wide(const wchar_t *text) { record_wide(LOG_MARK, 0, text, 0, 0); }

static void NVTX_API domain_category(nvtxDomainHandle_t domain, uint32_t category,
                                     const char *name) {
  record_text(LOG_CATEGORY, number_of(domain), name, 0, category);
}

static void NVTX_API domain_category_wide(nvtxDomainHandle_t domain, uint32_t category,
                                          const wchar_t *name) {
  record_wide(LOG_CATEGORY, number_of(domain), name, 0, category);
}

static void NVTX_API category(uint32_t category, const char *name) {
  domain_category(NULL, category, name);
}

static void NVTX_API category_wide(uint32_t category, const wchar_t *name) {
  domain_category_wide(NULL, category, name);
}

static void NVTX_API thread_name(uint32_t tid, const char *name) {
  record_text(LOG_THREAD, 0, name, tid, 0);
}

static void NVTX_API thread_name_wide(uint32_t tid, const wchar_t *name) {
  record_wide(LOG_THREAD, 0, name, tid, 0);
}

/* Records a registered string; `range` is its number. */
static nvtxStringHandle_t NVTX_API string(nvtxDomainHandle_t domain, const char *text) {
  uint32_t number = NEXT(n_strings);
  record_text(LOG_STRING, number_of(domain), text, number, 0);
  return handle_of(number);
}

static nvtxStringHandle_t NVTX_API string_wide(nvtxDomainHandle_t domain, const wchar_t *text) {
  uint32_t number = NEXT(n_strings);
  record_wide(LOG_STRING, number_of(domain), text, number, 0);
  return handle_of(number);
}

static nvtxDomainHandle_t NVTX_API domain(const char *name) {
  uint32_t number = NEXT(n_domains);
  record_text(LOG_DOMAIN, number, name, 0, 0);
  return handle_of(number);
}

static nvtxDomainHandle_t NVTX_API domain_wide(const wchar_t *name) {
  uint32_t number = NEXT(n_domains);
  record_wide(LOG_DOMAIN, number, name, 0, 0);
  return handle_of(number);
}

static void NVTX_API domain_destroy(nvtxDomainHandle_t domain) {
  if (domain != NULL) record_text(LOG_DOMAIN_END, number_of(domain), NULL, 0, 0);
}

#define CALL(id, function) [id] = (NvtxFunctionPointer)(function)

static const NvtxFunctionPointer core[NVTX_CBID_CORE_SIZE] = {
    CALL(NVTX_CBID_CORE_MarkEx, mark),
    CALL(NVTX_CBID_CORE_MarkA, mark_text),
    CALL(NVTX_CBID_CORE_MarkW, mark_wide),
    CALL(NVTX_CBID_CORE_RangeStartEx, start),
    CALL(NVTX_CBID_CORE_RangeStartA, start_text),
    CALL(NVTX_CBID_CORE_RangeStartW, start_wide),
    CALL(NVTX_CBID_CORE_RangeEnd, end),
    CALL(NVTX_CBID_CORE_RangePushEx, push),
    CALL(NVTX_CBID_CORE_RangePushA, push_text),
    CALL(NVTX_CBID_CORE_RangePushW, push_wide),
    CALL(NVTX_CBID_CORE_RangePop, pop),
    CALL(NVTX_CBID_CORE_NameCategoryA, category),
    CALL(NVTX_CBID_CORE_NameCategoryW, category_wide),
    CALL(NVTX_CBID_CORE_NameOsThreadA, thread_name),
    CALL(NVTX_CBID_CORE_NameOsThreadW, thread_name_wide),
};

static const NvtxFunctionPointer core2[NVTX_CBID_CORE2_SIZE] = {
    CALL(NVTX_CBID_CORE2_DomainMarkEx, domain_mark),
    CALL(NVTX_CBID_CORE2_DomainRangeStartEx, domain_start),
    CALL(NVTX_CBID_CORE2_DomainRangeEnd, domain_end),
    CALL(NVTX_CBID_CORE2_DomainRangePushEx, domain_push),
    CALL(NVTX_CBID_CORE2_DomainRangePop, domain_pop),
    CALL(NVTX_CBID_CORE2_DomainNameCategoryA, domain_category),
    CALL(NVTX_CBID_CORE2_DomainNameCategoryW, domain_category_wide),
    CALL(NVTX_CBID_CORE2_DomainRegisterStringA, string),
    CALL(NVTX_CBID_CORE2_DomainRegisterStringW, string_wide),
    CALL(NVTX_CBID_CORE2_DomainCreateA, domain),
    CALL(NVTX_CBID_CORE2_DomainCreateW, domain_wide),
    CALL(NVTX_CBID_CORE2_DomainDestroy, domain_destroy),
};

static int is_open;

static void open_log(void) {
  const char *prefix = getenv("FASTPROF_NVTX_LOG");
  is_open = prefix != NULL && log_open(prefix) == 0;
}

/* NVTX is compiled into each library that uses it; each calls this with its own tables. */
NVTX_DYNAMIC_EXPORT int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static const struct {
    NvtxCallbackModule module;
    const NvtxFunctionPointer *calls;
    unsigned n;
  } modules[] = {{NVTX_CB_MODULE_CORE, core, NVTX_CBID_CORE_SIZE},
                 {NVTX_CB_MODULE_CORE2, core2, NVTX_CBID_CORE2_SIZE}};
  pthread_once(&once, open_log);
  const NvtxExportTableCallbacks *callbacks = tables(NVTX_ETID_CALLBACKS);
  if (!is_open || callbacks == NULL) return 0;
  for (size_t m = 0; m < sizeof modules / sizeof *modules; m++) {
    NvtxFunctionTable table = NULL;
    unsigned size = 0;
    if (!callbacks->GetModuleFunctionTable(modules[m].module, &table, &size)) return 0;
    for (unsigned i = 0; i < size && i < modules[m].n; i++)
      if (modules[m].calls[i] != NULL && table[i] != NULL) *table[i] = modules[m].calls[i];
  }
  return 1;
}
