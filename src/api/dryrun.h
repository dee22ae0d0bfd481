// A dry run: what a model would need on a device that is not present. It is compiled for the
// device's target as usual; nothing is loaded or run. Times are the cost model's (cost/README.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/session.h"
#include "program/program.h"
#include "program/spaces.h"

namespace heddle::api {

struct DryCommand {
  std::string name, operators, kind, kernel;
  int64_t stream = 0;
  std::vector<int64_t> waits;  // commands of other streams that it waits for
  double start_ns = 0, ns = 0;
  int64_t flops = 0, bytes = 0;
  int64_t live_bytes = 0;  // of temporaries, including those of its regions
};

struct DryValue {
  std::string name;
  int64_t bytes = 0;
};

struct DryRun {
  std::string device, target, options;
  int64_t cores = 0;  // for a GPU: multiprocessors
  std::vector<DryCommand> commands;
  std::vector<std::string> notes;
  program::MemoryNumbers memory;
  int64_t pool_peak_bytes = 0;  // for temporaries: the plan's bytes, or the pool's peak
  bool own_memory = false;      // inputs, outputs and host_memory are the host's, and values cross
  program::MemoryNumbers host_memory;
  program::Crossings crossings;
  int64_t constant_bytes = 0, once_bytes = 0, input_bytes = 0, output_bytes = 0;
  int64_t total_bytes = 0, capacity_bytes = 0;  // must fit at the same time; available
  std::vector<DryValue> peak;                   // live at the peak, largest first
  size_t peak_command = 0;
  int64_t streams = 1, events = 0, dependences = 0, crossing = 0;
  double ns = 0, one_stream_ns = 0;
  bool fits() const { return total_bytes <= capacity_bytes; }
};

// options.device: "virtual:NAME" with its keys capacity and streams (runtime/virtual_device.h).
// Errors: as of a compilation; a device that is not virtual (user).
Result<DryRun> dry_run(const Model& model, const CompileOptions& options);

}  // namespace heddle::api
