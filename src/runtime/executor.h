// The executor: a loaded program (Executable) and the memory of one run of it (Context).
//
//   auto executable = Executable::load(std::move(program), device, host_functions);
//   auto context = (*executable)->make_context();
//   context->bind_input(0, x); context->bind_output(0, y); context->run();
//
// An Executable is immutable once its once section has run, and thread-safe; a Context is used by
// one thread at a time; contexts of one executable run concurrently. A steady run allocates nothing
// and takes no lock; only runs of a program with states wait for each other.
//
// Hidden ports (program/program.h) have memory of the executor: the caller does not bind them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/program.h"
#include "runtime/cancellation.h"
#include "runtime/command_list.h"
#include "runtime/device.h"
#include "runtime/host.h"
#include "runtime/state_arrays.h"

namespace heddle::runtime {

class Context;

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // Verifies the program, loads its code, resolves its kernels and prepares its host calls. The
  // device's HAL must outlive it. Errors: a program or an object that is damaged, a host function
  // that is not registered, code for an instruction set that this machine lacks (user); no memory
  // (machine). `library` prepares library calls; without it a program that contains any is refused.
  static Result<std::shared_ptr<Executable>> load(program::Program program, const Device& device,
                                                  const HostFunctions& host_functions = {},
                                                  const LibraryFunction& library = {});

  // After the once section has run, constants that only it used have been freed.
  const program::Program& program() const { return program_; }

  // From now on the program uses these state arrays, which another program may share. Must come
  // before the first context; without it the program has state arrays of its own. Errors: those of
  // StateArrays::begin().
  Status use_states(std::shared_ptr<StateArrays> states);

  // Runs the once section unless it has run; the first run of a context calls it, too.
  Status run_once();
  // Runs the once section if needed and returns its buffers: u8[once_bytes], then those in host
  // space. The result is a view that keeps the memory alive, or a copy if the device has its own
  // memory or the program has once buffers in host space.
  Result<tensor::Literal> once_results();
  // The program with these results as constants, ready to be saved.
  Result<program::Program> take_once();

  // `cancellation`: checked by its runs; null: the context makes its own.
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<Cancellation> cancellation = nullptr);

 private:
  friend class Context;
  Executable(program::Program program, const Device& device);
  Status link(const HostFunctions& host_functions, const LibraryFunction& library);
  Status link_section(LinkedSection& section, const std::vector<program::Command>& commands,
                      const std::vector<program::CommandInfo>& info,
                      const HostFunctions& host_functions, const LibraryFunction& library) const;
  Status link_library(const program::LibraryCall& call, const program::CommandInfo& about,
                      const LibraryFunction& library, std::shared_ptr<LibraryWork>* work) const;
  Status align_run_constants();
  Status do_once();
  void find_uses();
  char* fixed_base(program::BufferId id) const;  // constants and once buffers
  const char* host_constant(program::BufferId id) const;

  program::Program program_;
  Device device_;
  Code code_;
  Functions functions_;
  LinkedSection once_section_, run_section_;
  int64_t scratch_stride_bytes_ = 0;
  std::vector<bool> used_by_run_;                    // by buffer, including outputs that are copies
  std::vector<bool> used_by_host_, used_by_device_;  // in a program with spaces
  std::shared_ptr<Block> once_block_;
  std::shared_ptr<tensor::Literal> host_once_;  // the once buffers in host space
  // If the device has memory of its own: addresses of the run's constants there, by buffer.
  std::shared_ptr<Block> constant_block_;
  std::vector<char*> uploaded_;
  std::mutex once_mutex_;
  std::shared_ptr<StateArrays> states_;  // null: the program has none
  std::atomic<bool> once_done_{false};
  Status once_status_;  // valid once `once_done_`
};

// Wall time of one command over the profiled runs.
struct CommandProfile {
  const program::CommandInfo* info = nullptr;  // of the executable's program
  CommandTime time;
};

class Context {
 public:
  ~Context();

  // Memory of at least the port's bytes (program::stored_bytes), which must stay valid until it is
  // bound again; null only for ports of 0 bytes. Memory that is not 64-byte aligned works, at the
  // cost of one copy per run. An output may be bound to the memory of the input that it aliases;
  // otherwise the input is copied to the output first, so the caller's input is not changed. Other
  // overlaps are errors of the next run. Error: no such port.
  Status bind_input(int64_t number, const void* data);
  Status bind_output(int64_t number, void* data);

  // The same for 64-byte aligned memory of the device, if the device has its own memory: a run
  // copies within the device, or to and from the host if the host itself reads or writes the array.
  // Error: no such port; a device without its own memory; not aligned.
  Status bind_device_input(int64_t number, const void* data);
  Status bind_device_output(int64_t number, void* data);

  // Errors: a port that is not bound, overlapping memory, host functions; cancelled. After an error
  // the states may be partly updated.
  Status run();
  // run() that may return before work on the device's own stream is done: bound memory must not be
  // used until wait() has returned, or until a later copy on that stream has run. Another run may
  // be started before that.
  Status start();
  Status wait();
  // Address of hidden output `number`, counted from the first hidden one, after a run.
  const void* hidden_output(size_t number) const;
  // From any thread, also during a run: the current run ends before its next command; if none is
  // running, the next run ends before its first command. The contents of its outputs are then
  // unspecified.
  void cancel();

  // Times every command of the following runs (two more clock reads per command).
  void set_profile(bool on);
  std::vector<CommandProfile> profile() const;  // by command
  void reset_profile();

  int64_t arena_bytes() const;  // of temporaries; if memory is dynamic, bytes held by the pool

 private:
  friend class Executable;
  struct State;
  explicit Context(std::unique_ptr<State> state);
  Status bind(bool input, int64_t number, char* data, bool on_device);
  Status bind_hidden();
  std::unique_ptr<State> state_;
};

}  // namespace heddle::runtime
