// CommandList: one section of a program, bound: a flat array of records that a run walks without a
// look-up, an allocation or a lock. Addresses are patched into it when buffers are bound.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "program/program.h"
#include "runtime/device.h"
#include "runtime/host.h"

namespace heddle::runtime {

struct CommandTime {
  int64_t count = 0, total_ns = 0, min_ns = 0;
};

// What all contexts of a program share of one section.
struct LinkedSection {
  const std::vector<program::Command>* commands = nullptr;
  const std::vector<program::CommandInfo>* info = nullptr;
  std::vector<HostCallable> host;  // by command; empty where it is no host call
};
// Functions of the phases, by kernel.
using Functions = std::vector<std::vector<const void*>>;

class CommandList {
 public:
  // All of them must outlive the list.
  CommandList(const Device& device, const program::Program& program, const Functions& functions,
              const LinkedSection& section);

  void set_base(program::BufferId buffer, char* base);
  // Worker w has scratch + w * stride_bytes.
  void set_scratch(char* scratch, int64_t stride_bytes);

  // Every buffer must have a base. Error: of a host function or of the device, with the command.
  Status run();
  Status run_command(size_t command);
  // As run(), adding up wall times by command (and trace events, while tracing is on).
  Status run_timed(std::span<CommandTime> times);

  bool has_parallel() const { return has_parallel_; }  // whether waking the workers pays

 private:
  enum class Kind : uint8_t { launch, copy, host };
  struct Record {
    heddle_hal_launch launch{};  // copy: buffers[0] -> buffers[1], tasks bytes
    Kind kind = Kind::launch;
    uint32_t command = 0, host = 0;
  };
  struct HostRecord {
    const HostCallable* function;
    std::vector<HostArgument> arguments;
    std::vector<HostResult> results;
  };
  struct Patch {
    uint32_t slot;
    int64_t offset_bytes;
  };

  void add(const program::Launch& launch, const program::Program& program,
           const Functions& functions);
  void add(const program::Copy& copy);
  void add(const program::HostCall& call, const HostCallable& function);
  void add_slot(const program::View& view);
  Status execute(const Record& record);
  Status failed(const Record& record, Error error) const;

  Device device_;
  const LinkedSection* section_;
  std::vector<Record> records_;
  std::vector<uint32_t> first_record_;       // by command, and the end
  std::vector<void*> slots_;                 // addresses that records point into
  std::vector<std::vector<Patch>> patches_;  // by buffer
  std::vector<HostRecord> hosts_;
  std::vector<int64_t> dims_;
  bool has_parallel_ = false;
};

}  // namespace heddle::runtime
