/* log.c: see log.h. */
#define _GNU_SOURCE
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_FILES = 10000 };

typedef struct {
  char *chunk, *next, *end; /* the current chunk, NULL before the first */
  int64_t last;             /* time of the last record */
  int32_t depth[LOG_DOMAINS];
} log_thread;

/* One per process; `lock` guards all of it. */
static struct {
  pthread_mutex_t lock;
  const char *prefix;
  int file; /* -1 before the first record */
  off_t end;
  log_head *head;
  char name[sizeof((log_head *)0)->parent]; /* PID.N of this process, or of an ancestor */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static _Thread_local log_thread *mine;
static pthread_key_t at_thread_end;

static void complain(const char *what) {
  fprintf(stderr, "NVTX recorder: %s: %s\n", what, strerror(errno));
}

/* Extends the file and maps the new bytes. The space is allocated first: a write through a mapping
 * crashes if the disk is full. */
static void *grow(size_t size) {
  int status = posix_fallocate(self.file, self.end, (off_t)size);
  if (status != 0) {
    errno = status;
    return NULL;
  }
  void *at =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, self.file, self.end);
  if (at == MAP_FAILED) return NULL;
  self.end += (off_t)size;
  return at;
}

static void close_file(void) {
  if (self.head != NULL) munmap(self.head, LOG_HEAD_SIZE);
  if (self.file >= 0) close(self.file);
  self.head = NULL;
  self.file = -1;
}

static int open_file(void) {
  char path[PATH_MAX], name[sizeof self.name] = "";
  for (int n = 0; n < MOST_FILES && self.file < 0; n++) {
    snprintf(name, sizeof name, "%ld.%d", (long)getpid(), n);
    snprintf(path, sizeof path, "%s.%s", self.prefix, name);
    self.file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (self.file < 0 && errno != EEXIST) return -1;
  }
  self.end = 0;
  self.head = self.file < 0 ? NULL : grow(LOG_HEAD_SIZE);
  if (self.head == NULL) {
    close_file();
    return -1;
  }
  memcpy(self.head->parent, self.name, sizeof self.name);
  memcpy(self.name, name, sizeof self.name);
  self.head->pid = (uint32_t)getpid();
  if (readlink("/proc/self/exe", self.head->program, sizeof self.head->program - 1) < 0)
    self.head->program[0] = '\0';
  memcpy(self.head->magic, "NVTXLOG1", sizeof self.head->magic);
  return 0;
}

static void lose(const char *why) {
  if (self.head == NULL || self.head->lost++ == 0) complain(why);
}

static void leave_chunk(log_thread *thread) {
  if (thread->chunk != NULL) munmap(thread->chunk, (size_t)(thread->end - thread->chunk));
  thread->chunk = thread->next = thread->end = NULL;
}

/* Provides a chunk with room for a record of this size; returns 0, or -1 on failure. */
static int take_chunk(log_thread *thread, size_t size) {
  leave_chunk(thread);
  size_t wanted = (size + sizeof(log_chunk) + PAGE - 1) / PAGE * PAGE;
  if (wanted < LOG_CHUNK_SIZE) wanted = LOG_CHUNK_SIZE;
  pthread_mutex_lock(&self.lock);
  log_chunk *chunk = NULL;
  if (self.file >= 0 || open_file() == 0) chunk = grow(wanted);
  if (chunk == NULL) {
    lose("no room for what is recorded");
  } else {
    chunk->tid = (uint32_t)syscall(SYS_gettid);
    chunk->size = wanted;
    thread->chunk = (char *)chunk;
    thread->next = thread->chunk + sizeof *chunk;
    thread->end = thread->chunk + wanted;
  }
  pthread_mutex_unlock(&self.lock);
  return chunk == NULL ? -1 : 0;
}

static void end_thread(void *thread) {
  leave_chunk(thread);
  free(thread);
  mine = NULL;
}

static log_thread *this_thread(void) {
  if (mine == NULL) {
    mine = calloc(1, sizeof *mine);
    if (mine != NULL) pthread_setspecific(at_thread_end, mine);
  }
  return mine;
}

static void before_fork(void) { pthread_mutex_lock(&self.lock); }

static void after_fork(void) { pthread_mutex_unlock(&self.lock); }

/* The child has no open ranges, and no file before its first record. */
static void in_child(void) {
  if (mine != NULL) {
    leave_chunk(mine);
    memset(mine->depth, 0, sizeof mine->depth);
  }
  close_file();
  pthread_mutex_unlock(&self.lock);
}

int log_open(const char *prefix) {
  self.prefix = strdup(prefix);
  if (self.prefix == NULL || pthread_key_create(&at_thread_end, end_thread) != 0 ||
      pthread_atfork(before_fork, after_fork, in_child) != 0 || open_file() != 0) {
    complain(prefix);
    return -1;
  }
  return 0;
}

static int64_t now(log_thread *thread) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  int64_t ns = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
  thread->last = ns > thread->last ? ns : thread->last + 1;
  return thread->last;
}

log_record *log_new(const char *text, size_t n) {
  log_thread *thread = this_thread();
  if (text == NULL || n > UINT32_MAX - sizeof(log_record) - 8) n = 0;
  size_t size = (sizeof(log_record) + n + 7) / 8 * 8;
  if (thread == NULL) return NULL;
  if ((size_t)(thread->end - thread->next) < size && take_chunk(thread, size) != 0) return NULL;
  log_record *record = (log_record *)thread->next;
  record->time = now(thread);
  if (text != NULL) {
    memcpy(record + 1, text, n);
    record->text_kind = LOG_PLAIN;
    record->text = (uint32_t)n;
  }
  return record;
}

void log_add(log_record *record) {
  size_t n = record->text_kind == LOG_PLAIN ? record->text : 0;
  uint32_t size = (uint32_t)((sizeof *record + n + 7) / 8 * 8);
  mine->next += size;
  __atomic_store_n(&record->size, size, __ATOMIC_RELEASE);
}

int32_t *log_depth(uint32_t domain) {
  log_thread *thread = domain < LOG_DOMAINS ? this_thread() : NULL;
  return thread == NULL ? NULL : &thread->depth[domain];
}
