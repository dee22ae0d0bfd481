// Private to api: parts of models (stages, late.h) that compute so little that code for them is not
// worth its compilation: a value or two from another one, as a loop asks for in each trip.
#pragma once

#include <cstdint>

namespace heddle::hlo {
class Module;
}

namespace heddle::api {

enum class SmallStage : uint8_t {
  no,       // compiled
  rounded,  // interpreted: compiled code could round in another way, so it stays that
  exact,    // interpreted as long as it has run less often than its compilation would be worth
};

// Small: few operators, without loops, on few elements. The reference interpreter takes some 2 us
// an operator, a compiled program 1 us a run and 100 to 200 ms to compile.
SmallStage small_stage(const hlo::Module& module);

// Runs of an exact one until it is compiled.
inline constexpr int64_t kMostInterpretedRuns = 1 << 12;

}  // namespace heddle::api
