// Private to stitch: the kernels of a loop's step become one kernel that runs all steps.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "stitch/stitch.h"

namespace heddle::stitch {

using Buffers = std::vector<kernel::BufferId>;

// Copies the statements of `from` into `to`, its tasks in sequence. `globals`: the buffers of `to`
// that replace the global buffers of `from`, all flat. The scratch of `from` keeps its offsets.
std::vector<kernel::Stmt> inline_kernel(const kernel::Kernel& from, const Buffers& globals,
                                        kernel::Kernel* to);

// The reads of the state in a loop's body, and which results may be stored in the state's memory.
class BodyReads {
 public:
  explicit BodyReads(const hlo::Instr* loop);
  // The leaf of the state that `value` is, looking through views, or -1.
  int64_t leaf_of(const hlo::Instr* value) const;
  // By result of `fusion`: the leaf of the state whose memory may hold it (it is that leaf's next
  // value), or -1.
  std::vector<int64_t> placed(const hlo::Instr* fusion, const Stitched& stitched) const;

 private:
  const hlo::Instr* loop_;
  std::unordered_map<const hlo::Instr*, size_t> index_;
  std::vector<size_t> last_read_;  // by leaf of the state: 1 + the position of its last reader
};

}  // namespace heddle::stitch
