#include "cost/peak_memory.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::cost {

int64_t peak_bytes(const std::vector<SequenceStep>& steps, const std::vector<int64_t>& bytes,
                   const std::vector<int>& kept) {
  const size_t count = bytes.size(), end = steps.size();
  constexpr size_t kNever = static_cast<size_t>(-1);
  std::vector<size_t> born(count, 0), dies(count, kNever);
  for (size_t s = 0; s < end; ++s) {
    for (int value : steps[s].makes) {
      born[static_cast<size_t>(value)] = s;
      dies[static_cast<size_t>(value)] = s;
    }
    for (int value : steps[s].reads) dies[static_cast<size_t>(value)] = s;
  }
  for (int value : kept) dies[static_cast<size_t>(value)] = end == 0 ? 0 : end - 1;
  std::vector<int64_t> change(end + 1, 0);
  for (size_t v = 0; v < count; ++v) {
    if (dies[v] == kNever) continue;
    HEDDLE_CHECK(born[v] <= dies[v], "value {} is read before it is made", v);
    change[born[v]] += bytes[v];
    change[std::min(end, dies[v] + 1)] -= bytes[v];
  }
  int64_t alive = 0, most = 0;
  for (int64_t step : change) most = std::max(most, alive += step);
  return most;
}

}  // namespace heddle::cost
