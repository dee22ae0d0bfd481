// Private to stitch: the kernels of a loop's step become one kernel that runs all steps.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "stitch/stitch.h"

namespace heddle::stitch {

using Buffers = std::vector<kernel::BufferId>;

// Copies the statements of `from` into `to`, one task behind the other. `globals`: the buffers of
// `to` that stand for the global buffers of `from`, all flat. Its scratch lies at the same offsets.
std::vector<kernel::Stmt> inline_kernel(const kernel::Kernel& from, const Buffers& globals,
                                        kernel::Kernel* to);

// Who reads the state in a loop's body, and which results can be made where it lies.
class BodyReads {
 public:
  explicit BodyReads(const hlo::Instr* loop);
  // The leaf of the state that `value` is, through views; -1: it is none.
  int64_t leaf_of(const hlo::Instr* value) const;
  // By result of `fusion`: the leaf of the next state that may be made there, or -1.
  std::vector<int64_t> placed(const hlo::Instr* fusion, const Stitched& stitched) const;

 private:
  const hlo::Instr* loop_;
  std::unordered_map<const hlo::Instr*, size_t> index_;
  std::vector<size_t> last_read_;  // by leaf of the state: where it is read last
};

}  // namespace heddle::stitch
