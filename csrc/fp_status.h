/* fp_status.h: the one list of status codes that every C function returns. */
#ifndef FP_STATUS_H
#define FP_STATUS_H

typedef enum {
  FP_OK = 0,
  FP_MORE = 1, /* stopped at the row limit, call again */
  FP_E_MEMORY = -1,
  FP_E_SQLITE = -2,   /* SQLite refused: its own message says why */
  FP_E_RANGE = -3,    /* a number does not fit its column */
  FP_E_TOO_MANY = -4, /* more than 2^31 - 1 of something that is counted in 32 bits */
  FP_E_ORDER = -5,    /* the input is not sorted as the header says */
  FP_E_INDEX = -6,    /* an index points outside its array */
  FP_E_SYNTAX = -7,   /* a dict line that is no dict line */
  FP_E_UNUSUAL = -8,  /* what walking pages leaves to SQLite */
} fp_status;

#endif
