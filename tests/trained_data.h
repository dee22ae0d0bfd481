// Procedural data of the small networks that are trained in tree (tests/testdata/trained): ten
// classes, the same classes for every seed, a stream without end of fresh samples for each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/literal.h"

namespace heddle {

// The same numbers everywhere: words of a hashed counter.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x1234567) {}
  uint64_t word();
  int64_t below(int64_t limit) { return static_cast<int64_t>((word() >> 32) * limit >> 32); }
  double uniform() { return static_cast<double>(word() >> 11) * 0x1p-53; }
  double normal();  // nearly: the sum of four 16-bit numbers, never beyond 3.5

 private:
  uint64_t state_;
};

struct Samples {
  tensor::Literal x;       // images: f32[count,16,16,3]; tokens: s32[count,32]
  tensor::Literal labels;  // s32[count]
};

// "images": a class is a pattern of a few low frequencies, moved by up to two pixels, of any
// strength from 0.7 to 1.3, under noise; rounded to 1/32 within [-4, 4), so that a byte holds it.
// "tokens": a class is a set of four of twenty tokens, and a sequence has eight tokens of its set
// among random ones of 64.
class DataStream {
 public:
  // `flipped`: the part of the labels that is drawn anew, so that no loss goes to 0.
  DataStream(std::string kind, double flipped, uint64_t seed);
  Samples next(int64_t count);

 private:
  void image(int64_t label, float* pixels);
  void sequence(int64_t label, int32_t* tokens);

  std::string kind_;
  double flipped_;
  Random random_;
  std::vector<float> patterns_;  // of the classes [10,16,16,3]
  std::vector<int32_t> motifs_;  // [10,6]
};

}  // namespace heddle
