// A driver of a GPU that is none: its memory is the host's at addresses that the host cannot read,
// and a launch is one phase of a kernel in the kernel interpreter, which finds races, reads of what
// nobody wrote and accesses out of bounds. Kernels are known by the names of their functions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "captures.h"
#include "kernel/interp.h"
#include "kernel/text.h"
#include "program/program.h"
#include "runtime/cuda_driver.h"

namespace heddle {

class InterpCuda {
 public:
  using Driver = runtime::CudaDriver;

  // One a process: the driver's functions have no state of their own.
  static InterpCuda& get() {
    static InterpCuda one;
    return one;
  }

  std::shared_ptr<const Driver> driver() const { return driver_; }

  // The kernels of a program, from their texts.
  std::string know(const program::Program& program) {
    for (const program::Kernel& one : program.kernels) {
      auto parsed = kernel::parse_kernel(one.text);
      if (!parsed) return parsed.error().message;
      for (size_t p = 0; p < one.phases.size(); ++p)
        functions_[one.phases[p].symbol] = {one_phase(*parsed, p), one.phases[p].symbol};
    }
    return {};
  }

  int64_t launches = 0;  // those of graphs, too
  int64_t calls = 0;     // of cuLaunchKernel
  int64_t replays = 0;   // of cuGraphLaunch
  int64_t graphs = 0;    // that are not destroyed
  int64_t roots = 0;     // of the last graph: calls that are behind no other one
  bool captures = true;  // else the driver refuses to
  std::string fault;     // of the last launch that failed

 private:
  static constexpr Driver::Address kBias = Driver::Address{1} << 62;  // no address of a process
  struct Function {
    kernel::Kernel kernel;
    std::string name;
  };

  static kernel::Kernel one_phase(const kernel::Kernel& whole, size_t phase) {
    kernel::Kernel result = whole;
    result.phases = {whole.phases[phase]};
    // What an earlier phase stored is read, what a later one stores is not stored here.
    if (whole.phases.size() > 1)
      for (kernel::Buffer& buffer : result.buffers)
        if (buffer.space == kernel::Space::global && buffer.access == kernel::Access::out)
          buffer.access = kernel::Access::inout;
    return result;
  }

  static Driver::Code allocate(Driver::Address* at, size_t bytes) {
    if (const int code = Captures::get().refuse()) return code;
    auto& memory = get().memory_;
    auto block = std::make_unique<char[]>(bytes + 64);
    auto address = reinterpret_cast<Driver::Address>(block.get());
    address = (address + 63) / 64 * 64;
    std::memset(reinterpret_cast<void*>(address), 0xa5, bytes);
    *at = address | kBias;
    memory[address] = {std::move(block), bytes};
    return 0;
  }
  static Driver::Code release(Driver::Address at) {
    if (const int code = Captures::get().refuse()) return code;
    return get().memory_.erase(at & ~kBias) == 1 ? 0 : 1;
  }

  // Device memory of so many bytes, or null.
  char* usable(Driver::Address at, size_t bytes) const {
    if ((at & kBias) == 0) return nullptr;
    const Driver::Address real = at & ~kBias;
    auto block = memory_.upper_bound(real);
    if (block == memory_.begin()) return nullptr;
    --block;
    const bool inside = real + bytes <= block->first + block->second.bytes;
    return inside ? reinterpret_cast<char*>(real) : nullptr;
  }

  static Driver::Code copy(Driver::Address to, Driver::Address from, size_t bytes, void* stream) {
    return Captures::get().put(stream, (to & from & kBias) != 0,
                               [=] { return copy_now(to, from, bytes); });
  }
  static Driver::Code copy_now(Driver::Address to, Driver::Address from, size_t bytes) {
    const auto side = [&](Driver::Address at) {
      return at & kBias ? get().usable(at, bytes) : reinterpret_cast<char*>(at);
    };
    if (side(to) == nullptr || side(from) == nullptr) return 1;
    std::memmove(side(to), side(from), bytes);
    return 0;
  }

  static Driver::Code find(void** function, void*, const char* name) {
    // One that no program launches has no text here.
    *function = &get().functions_.try_emplace(name, Function{{}, name}).first->second;
    return 0;
  }

  static Driver::Code launch(void* function, unsigned blocks, unsigned, unsigned, unsigned threads,
                             unsigned, unsigned, unsigned, void* stream, void** arguments, void**) {
    const auto& one = *static_cast<const Function*>(function);
    ++get().calls;
    std::vector<Driver::Address> values;
    for (const kernel::Buffer& buffer : one.kernel.buffers)
      if (buffer.space == kernel::Space::global)
        values.push_back(*static_cast<const Driver::Address*>(arguments[values.size()]));
    return Captures::get().put(stream, true,
                               [=, &one] { return get().run(one, values, blocks, threads); });
  }

  Driver::Code run(const Function& one, const std::vector<Driver::Address>& values, unsigned blocks,
                   unsigned threads) {
    ++launches;
    if (one.kernel.phases.empty()) return fail(one, "its kernel is not known");
    const kernel::Phase& phase = one.kernel.phases[0];
    if (kernel::task_count(one.kernel, phase, {}) != blocks ||
        phase.groups[0].block_threads != static_cast<int>(threads))
      return fail(one, fmt::format("launched as {} blocks of {} threads", blocks, threads));
    std::vector<void*> memory;
    for (const kernel::Buffer& buffer : one.kernel.buffers) {
      if (buffer.space != kernel::Space::global) continue;
      int64_t bytes = tensor::type_bytes(buffer.type);
      for (int64_t extent : buffer.extents) bytes *= extent;
      char* place =
          bytes == 0 ? nullptr : usable(values[memory.size()], static_cast<size_t>(bytes));
      if (bytes > 0 && place == nullptr)
        return fail(one, fmt::format("{}: no {} bytes of the device", buffer.name, bytes));
      memory.push_back(place);
    }
    const kernel::InterpReport report = kernel::interpret(one.kernel, memory, {}, 1);
    return report.faults.empty() ? 0 : fail(one, report.faults[0]);
  }

  static void* new_handle() {  // no two the same
    static uintptr_t handles = 0;
    return reinterpret_cast<void*>(++handles);
  }

  Driver::Code fail(const Function& function, const std::string& what) {
    fault = function.name + ": " + what + "\n" + kernel::to_string(function.kernel);
    return 719;
  }

  static void add_graphs(Driver& d) {
    d.begin_capture = [](void* stream, int mode) {
      return get().captures ? Captures::get().begin(stream, mode) : Captures::kUnsupported;
    };
    d.end_capture = [](void* stream, void** graph) {
      const int code = Captures::get().end(stream, graph);
      return get().graphs += code == 0, code;
    };
    d.instantiate = [](void** executable, void* graph, unsigned long long flags) {
      const auto& calls = *static_cast<Captures::Graph*>(graph);
      get().roots = std::count_if(calls.begin(), calls.end(),
                                  [](const Captures::Node& node) { return node.behind.empty(); });
      *executable = new Captures::Graph(calls);
      return ++get().graphs, flags == 0 ? 0 : 1;
    };
    d.launch_graph = [](void* executable, void* stream) {
      ++get().replays;
      const auto& graph = *static_cast<Captures::Graph*>(executable);
      return Captures::get().put(stream, false, [&graph] { return Captures::run(graph); });
    };
    d.destroy_graph = d.destroy_executable = [](void* graph) {
      return delete static_cast<Captures::Graph*>(graph), --get().graphs, 0;
    };
  }

  InterpCuda() {
    auto d = std::make_shared<Driver>();
    d->error_text = [](int code, const char** text) {
      *text = code == 719 ? "the interpreter found a fault" : "invalid value";
      return 0;
    };
    d->device_count = [](int* count) { return *count = 1, 0; };
    d->device = [](int* device, int number) { return *device = number, 0; };
    d->device_name = [](char* name, int, int) { return std::strcpy(name, "interpreter"), 0; };
    d->device_attribute = [](int* value, int attribute, int) {
      return *value = attribute == 75 ? 9 : attribute == 16 ? 132 : 0, 0;
    };
    d->device_memory = [](size_t* bytes, int) { return *bytes = size_t{1} << 34, 0; };
    d->retain_context = [](void** context, int) { return *context = context, 0; };
    d->release_context = [](int) { return 0; };
    d->set_context = [](void*) { return 0; };
    d->current_context = [](void** context) { return *context = nullptr, 0; };
    d->allocate = allocate;
    d->release = release;
    d->copy_async = copy;
    d->load_module = [](void** module, const void* image) {
      return *module = module, image ? 0 : 1;
    };
    d->unload_module = [](void*) { return 0; };
    d->function = find;
    d->set_function_attribute = [](void*, int, int) { return 0; };
    d->launch = launch;
    d->create_stream =
        d->create_event = [](void** made, unsigned) { return *made = new_handle(), 0; };
    d->create_priority_stream = [](void** made, unsigned, int) { return *made = new_handle(), 0; };
    d->stream_priorities = [](int* least, int* greatest) { return *least = *greatest = 0; };
    // All has run when it was asked for.
    d->wait_all = [] { return Captures::get().refuse_to_all(); };
    d->stream_waits = [](void* stream, void* event, unsigned) {
      return Captures::get().wait(stream, event);
    };
    d->query_event = [](void*) { return Captures::get().refuse(); };
    d->call_on = [](void* stream, void (*function)(void*), void* argument) {
      return Captures::get().put(stream, false, [=] { return function(argument), 0; });
    };
    d->destroy_stream = d->destroy_event = d->wait_stream = d->wait_event = [](void*) { return 0; };
    d->record_event = [](void* event, void* stream) {
      return Captures::get().record(event, stream);
    };
    d->elapsed_ms = [](float* ms, void*, void*) { return *ms = 0, 0; };
    add_graphs(*d);
    driver_ = std::move(d);
  }

  struct Memory {
    std::unique_ptr<char[]> block;
    size_t bytes = 0;
  };
  std::shared_ptr<const Driver> driver_;
  std::map<Driver::Address, Memory> memory_;  // by real address
  std::map<std::string, Function> functions_;
};

}  // namespace heddle
