// Planning options of a caller.
#pragma once

#include <cstdint>

namespace heddle::plan {

// as_is: the module's order (O0, O1); cheapest: the order that needs the least memory.
enum class Order { as_is, bfs, dfs, list, beam, cheapest };

struct Options {
  Order order = Order::cheapest;
  bool keep_order = false;  // even if only another order meets the limit
  // Number of streams that memory is planned for. 1: commands run one after another; more: bytes
  // are reused only where streams and events guarantee the order, on as many streams as pay off; 0:
  // any number of streams (needs the most memory).
  int64_t most_streams = 1;
  bool static_memory = true;        // false: separate bytes for every temporary, no sharing
  int64_t memory_limit_bytes = -1;  // a plan above it is an error
  bool own_memory = false;          // the device has its own memory (partition.h)
};

}  // namespace heddle::plan
