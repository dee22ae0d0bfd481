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
// Hidden ports (program/program.h) have memory of the executor's: nobody binds them.
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
  // (machine).
  // `library`: what makes library calls ready; without it a program that has some is refused.
  static Result<std::shared_ptr<Executable>> load(program::Program program, const Device& device,
                                                  const HostFunctions& host_functions = {},
                                                  const LibraryFunction& library = {});

  // After the once section has run, constants that only it needed are gone from here.
  const program::Program& program() const { return program_; }

  // From now on its states are these, which may be another program's, too. Before its first
  // context; without it they are its own. Errors: those of StateArrays::begin().
  Status use_states(std::shared_ptr<StateArrays> states);

  // Runs the once section if it has not run; the first run of a context does it too.
  Status run_once();
  // The block of once buffers when they have been made: u8[once_bytes] and the host's, in the
  // memory of this executable, which it keeps alive, or copied from the device.
  Result<tensor::Literal> once_results();
  // The program with these as constants: to be saved.
  Result<program::Program> take_once();

  // `cancellation`: that its runs look at; none: one of its own.
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
  std::vector<bool> used_by_run_;                    // by buffer
  std::vector<bool> used_by_host_, used_by_device_;  // of the run, where the program has spaces
  std::shared_ptr<Block> once_block_;
  std::shared_ptr<tensor::Literal> host_once_;  // the same in the host's space
  // Of a device with memory of its own: the constants of the run there, by buffer.
  std::shared_ptr<Block> constant_block_;
  std::vector<char*> uploaded_;
  std::mutex once_mutex_;
  std::shared_ptr<StateArrays> states_;  // null: it has none
  std::atomic<bool> once_done_{false};
  Status once_status_;  // valid once done
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
  // bound anew; null only for ports of no bytes. Memory that is not 64-byte aligned works, at the
  // price of a copy a run. An output may be bound to the memory of the input that it aliases; bound
  // elsewhere the input is copied there first, so the caller's input stays as it is. Other overlaps
  // are errors of the next run. Error: no such port.
  Status bind_input(int64_t number, const void* data);
  Status bind_output(int64_t number, void* data);

  // The same, of 64-byte aligned memory of the device, where that has a memory of its own: a run
  // copies it within the device. Where the host itself reads or writes the array, it crosses.
  // Error: no such port; no such device; not aligned.
  Status bind_device_input(int64_t number, const void* data);
  Status bind_device_output(int64_t number, void* data);

  // Errors: a port that is not bound, overlapping memory, host functions; cancelled. States are
  // then somewhere on the way of that run.
  Status run();
  // run() that need not wait for what it has put on the device's own stream: until wait() has
  // returned, or a copy behind it on that stream, bound memory is not the caller's. Another run may
  // be started meanwhile.
  Status start();
  Status wait();
  // What a run has left in the hidden output `number`: counted from the first hidden one.
  const void* hidden_output(size_t number) const;
  // From any thread, also while it runs: the run under way ends before its next command, or, where
  // there is none, the next one before its first. What its outputs hold is then unspecified.
  void cancel();

  // Times every command of the following runs (two clock readings each more).
  void set_profile(bool on);
  std::vector<CommandProfile> profile() const;  // by command
  void reset_profile();

  int64_t arena_bytes() const;  // of temporaries; where memory is dynamic, what its pool holds

 private:
  friend class Executable;
  struct State;
  explicit Context(std::unique_ptr<State> state);
  Status bind(bool input, int64_t number, char* data, bool on_device);
  Status bind_hidden();
  std::unique_ptr<State> state_;
};

}  // namespace heddle::runtime
