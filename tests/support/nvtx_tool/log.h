/* log.h: records calls of all threads in a file of the process, which survives a crash.
 *
 * The file is mapped into memory, so what was recorded is in it however the process ends: by
 * os._exit, by a signal, by a crash. A page with a log_head comes first, then chunks. A chunk
 * belongs to one thread: a log_chunk, then its records up to one of size 0. Nothing is locked but
 * to take a chunk. A forked child writes a file of its own, whose head names that of its parent. */
#ifndef FASTPROF_TESTS_NVTX_LOG_H
#define FASTPROF_TESTS_NVTX_LOG_H

#include <stddef.h>
#include <stdint.h>

enum { LOG_HEAD_SIZE = 4096, LOG_CHUNK_SIZE = 1 << 18, LOG_DOMAINS = 256 };

typedef struct {
  char magic[8]; /* "NVTXLOG1" */
  uint32_t pid;
  uint32_t lost;   /* number of records dropped for lack of room */
  char parent[48]; /* PID.N of the file of the parent that forked this process; "" for none */
  char program[1024];
} log_head;

typedef struct {
  uint64_t size; /* bytes, with this head */
  uint32_t tid;
  uint32_t unused;
} log_chunk;

/* The kind of a record. */
enum {
  LOG_PUSH = 1,
  LOG_POP,
  LOG_START,
  LOG_END,
  LOG_MARK,
  LOG_STRING,
  LOG_DOMAIN,
  LOG_DOMAIN_END,
  LOG_CATEGORY,
  LOG_THREAD
};
/* The location of the text. */
enum { LOG_NO_TEXT = 0, LOG_PLAIN, LOG_REGISTERED };

typedef struct {
  uint32_t size; /* bytes including the text, a multiple of 8; written last */
  uint8_t kind, text_kind, payload_kind, has_color;
  int64_t time;   /* ns, CLOCK_MONOTONIC; no two records of a thread share one */
  uint64_t range; /* number of a start/end range; for LOG_THREAD, the named thread */
  uint64_t payload;
  uint32_t domain, category, color;
  uint32_t text; /* bytes of the plain text, or the number of the registered one */
} log_record;

/* Starts logging to files PREFIX.PID.N; returns 0, or -1 if the first cannot be created. */
int log_open(const char *prefix);

/* A zeroed record of this thread with its time and text, not yet in the log; NULL if there is no
 * room. `text` may be NULL. */
log_record *log_new(const char *text, size_t n);

/* Adds the last record of this thread to the log. */
void log_add(log_record *record);

/* How many ranges this thread has open in a domain, to be changed; NULL from LOG_DOMAINS on. */
int32_t *log_depth(uint32_t domain);

#endif
