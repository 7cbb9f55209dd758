/* fp_room.h: room in arrays that grow. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/fp_status.h"

/* Makes room for n items of `size` bytes in an array, and for half as many more if it grows.
 *   items     the address of the pointer to the array, which its owner frees; NULL at first
 *   capacity  in, out: in items */
static inline fp_status fp_reserve(void *items, size_t *capacity, size_t n, size_t size) {
  if (n <= *capacity) return FP_OK;
  if (n > SIZE_MAX / 4 / size) return FP_E_MEMORY;
  const size_t more = n + n / 2 + 16;
  void *array;
  memcpy(&array, items, sizeof array); /* pointers of any type */
  array = realloc(array, more * size);
  if (!array) return FP_E_MEMORY;
  memcpy(items, &array, sizeof array);
  *capacity = more;
  return FP_OK;
}
