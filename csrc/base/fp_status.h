/* fp_status.h: the status codes of all C functions, and the types that they use. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
  FP_OK = 0,
  FP_MORE = 1, /* incomplete: more room, more input or another call is needed */
  FP_E_MEMORY = -1,
  FP_E_SQLITE = -2,   /* SQLite failed; errmsg has the reason */
  FP_E_RANGE = -3,    /* a number is out of range for its column */
  FP_E_TOO_MANY = -4, /* more than 2^31 - 1 entries */
  FP_E_ORDER = -5,    /* the input is not sorted as required */
  FP_E_INDEX = -6,    /* an index is out of bounds */
  FP_E_SYNTAX = -7,   /* malformed input text */
  FP_E_UNUSUAL = -8,  /* a database feature or damage that only SQLite handles */
} fp_status;
