/* roctx.c: a stand-in for librocprofiler-sdk-roctx.so: writes ranges and windows to a file.
 *
 * A line per event: pid, thread, ns, and "push TEXT", "pop", "resume" or "pause". The file is that
 * of $STAND_IN_LOG; lines of up to 4096 bytes are written at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void tell(const char *what, const char *text) {
  const char *path = getenv("STAND_IN_LOG");
  struct timespec now;
  char line[4096];
  int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (file < 0) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int n = snprintf(line, sizeof line, "%d %ld %lld %s %s\n", (int)getpid(), syscall(SYS_gettid),
                   (long long)now.tv_sec * 1000000000 + now.tv_nsec, what, text);
  if (write(file, line, (size_t)n < sizeof line ? (size_t)n : sizeof line) < 0) abort();
  close(file);
}

int roctxRangePushA(const char *text) { return tell("push", text), 0; }
int roctxRangePop(void) { return tell("pop", ""), 0; }
int roctxProfilerResume(uint64_t thread) { return tell("resume", thread ? "one" : "all"), 0; }
int roctxProfilerPause(uint64_t thread) { return tell("pause", thread ? "one" : "all"), 0; }
