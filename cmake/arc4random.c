/* LLVM calls arc4random() for names of temporary files. The C library has it from glibc 2.36 on: with
   this one the binaries run with 2.35, too (cmake/static.cmake). */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  (void)!getrandom(&value, sizeof value, 0);
  return value;
}
