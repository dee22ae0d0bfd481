/* The element types of heddle.h, which includes this header. Their numbers never change. */
#ifndef HEDDLE_API_HEDDLE_TYPES_H
#define HEDDLE_API_HEDDLE_TYPES_H

#include <stdint.h>

/* A heddle_type; the names are those of HLO text. Types of less than a byte take one byte. */
enum {
  HEDDLE_PRED = 0, /* one byte, 0 or 1 */
  HEDDLE_S1 = 1,
  HEDDLE_S2 = 2,
  HEDDLE_S4 = 3,
  HEDDLE_S8 = 4,
  HEDDLE_S16 = 5,
  HEDDLE_S32 = 6,
  HEDDLE_S64 = 7,
  HEDDLE_U1 = 8,
  HEDDLE_U2 = 9,
  HEDDLE_U4 = 10,
  HEDDLE_U8 = 11,
  HEDDLE_U16 = 12,
  HEDDLE_U32 = 13,
  HEDDLE_U64 = 14,
  HEDDLE_F16 = 15,
  HEDDLE_BF16 = 16,
  HEDDLE_F32 = 17,
  HEDDLE_F64 = 18,
  HEDDLE_F8E5M2 = 19,
  HEDDLE_F8E4M3 = 20,
  HEDDLE_F8E4M3FN = 21,
  HEDDLE_F8E4M3B11FNUZ = 22,
  HEDDLE_F8E3M4 = 23,
  HEDDLE_F8E5M2FNUZ = 24,
  HEDDLE_F8E4M3FNUZ = 25,
  HEDDLE_F8E8M0FNU = 26,
  HEDDLE_F6E3M2FN = 27,
  HEDDLE_F6E2M3FN = 28,
  HEDDLE_F4E2M1FN = 29,
  HEDDLE_C64 = 30,  /* two f32 */
  HEDDLE_C128 = 31, /* two f64 */
  HEDDLE_OPAQUE = 32,
  HEDDLE_TOKEN = 33, /* orders effects; no bytes */
};
typedef int32_t heddle_type;

#endif /* HEDDLE_API_HEDDLE_TYPES_H */
