// Private to pass: builder of random modules, and the patterns that it combines.
#pragma once

#include <cstdint>
#include <vector>

#include "hlo/builder.h"
#include "pass/random_module.h"

namespace heddle::pass {

using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using hlo::Shape;
using hlo::Type;

// For larger arguments sine and cosine lose accuracy.
inline constexpr double kMaxAngle = 10;

// splitmix64: the same on all platforms, unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(bits() % static_cast<uint64_t>(n)); }
  bool one_in(int64_t n) { return below(n) == 0; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  uint64_t state_;
};

// A value created so far: |x| <= bound (integers and floats); `exact`: unaffected by changes of
// rounding or of the order of a sum.
struct Value {
  Instr* instr = nullptr;
  double bound = 1;
  bool exact = true;
  const Shape& shape() const { return instr->shape(); }
  Type type() const { return instr->shape().type(); }
};

class RandomBuilder {
 public:
  RandomBuilder(hlo::Module& module, uint64_t seed, const RandomModuleOptions& options);
  void step();    // adds one pattern
  void finish();  // the root

 private:
  using Pattern = void (RandomBuilder::*)();

  // Values. Floats are mostly f32.
  Type float_type();
  Ints shape();                                 // random extents, 0 to 4 dimensions
  Value value(Type type);                       // any of the type: existing, or a new parameter
  Value value(Type type, const Ints& extents);  // of a shape: existing, broadcast, or new
  Value value_of_rank(Type type, int64_t least, int64_t most);
  Value parameter(Type type, const Ints& extents);
  Value constant(Type type, const Ints& extents);
  Value full(Type type, const Ints& extents, double number);
  Value mask(const Ints& extents);  // pred, exact
  Value indices(const Ints& extents, int64_t limit);
  Value keep(Value value);  // adds it to the pool: tamed if its bound has grown, not at all
                            // if it is too large
  Value tamed(Value value, double limit);

  Value unary(Opcode opcode, Value x, double bound);
  Value binary(Opcode opcode, Value a, Value b);
  Value reduce(Opcode opcode, Value x, const Ints& dimensions);
  // x [.., d removed, ..] as [.., extent, ..].
  Value widen(Value x, int64_t dimension, int64_t extent);
  Ints some_dimensions(int64_t rank);  // ascending, at least one
  Ints permutation(int64_t rank);

  // Patterns.
  void elementwise_unary();
  void elementwise_binary();
  void elementwise_ternary();
  void integers();
  void conversion();
  void broadcast();
  void reshape();
  void transpose();
  void slice();
  void pad();
  void concatenate();
  void reverse();
  void reduction();
  void dot();
  void matmul_with_epilogue();
  void attention();
  void softmax();
  void layer_norm();
  void gather();
  void dynamic_slice();
  void dynamic_update_slice();
  void neutral();  // x * 1, x - 0, select(true, …), …
  void move_there_and_back();
  void call();
  void loop();
  void branch();

  RandomModuleOptions options_;
  Random random_;
  hlo::Builder b_;
  std::vector<Pattern> patterns_;
  std::vector<Value> pool_;
  int64_t parameters_ = 0;
  Ints extents_;  // candidates for extents: few, so that shapes often match
};

}  // namespace heddle::pass
