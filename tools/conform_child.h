// Work in a process of its own, so that what crashes or hangs is a line of a board.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"

namespace heddle::tools {

// Called in the child for each piece of work, with its record to fill: any members.
struct ChildLimits {
  double seconds = 60;  // of one piece
  int64_t bytes = int64_t{16} << 30;
};

struct PieceResult {
  size_t piece = 0;
  // What the child reported of it; "outcome" is "crash" or "timeout" where it did not come back.
  std::vector<nlohmann::ordered_json> records;
};

// Reports a record from inside the child.
using Report = std::function<void(const nlohmann::ordered_json&)>;

// Does pieces 0 ... count-1 in child processes, many in one: after a crash or a timeout the next
// child goes on behind the piece. `done` runs here, in order, once a piece. Error: no process.
Status for_each_in_child(size_t count, const ChildLimits& limits,
                         const std::function<void(size_t piece, const Report&)>& work,
                         const std::function<void(const PieceResult&)>& done);

}  // namespace heddle::tools
