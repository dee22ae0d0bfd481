// Peak memory of a sequence of kernels: live bytes, without the arena's gaps.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::cost {

// A kernel of a sequence: the values it makes (by number) and those it reads.
struct SequenceStep {
  std::vector<int> makes, reads;
};

// The most live bytes at one step. Values that no step makes are live from the start to their last
// reader; `kept`: values that are live to the end. `bytes` is by value.
int64_t peak_bytes(const std::vector<SequenceStep>& steps, const std::vector<int64_t>& bytes,
                   const std::vector<int>& kept);

}  // namespace heddle::cost
