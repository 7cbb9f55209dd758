/* planted.c: a bug that requires four bytes, which must be found one after the other. */
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4 || data[0] != 's') return 0;
  if (data[1] != 'e') return 0;
  if (data[2] != 'c') return 0;
  if (data[3] != 'r') return 0;
  volatile uint8_t *small = malloc(1);
  small[size] = 1;
  free((void *)small);
  return 0;
}
