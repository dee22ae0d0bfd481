#include "runtime/cpu_device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "runtime/loader.h"
#include "tensor/limits.h"

namespace heddle::runtime {
namespace {

constexpr size_t kAlignment = 64;
// Blocks of this size and more use 2 MiB pages where the system has them (cpu-codegen §2.4, 11).
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kParallelCopyBytes = int64_t{1} << 20;
constexpr int64_t kCopyTask = 64 << 10;

using Kernel = void (*)(void* const*, const int64_t*, int64_t, int64_t, void*);

thread_local std::string last_error_text;

int fail(std::string text) {
  last_error_text = std::move(text);
  return 1;
}

const char* cpu_last_error(void*) { return last_error_text.c_str(); }

int64_t huge_up(int64_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

int cpu_allocate(void*, int64_t bytes, void** memory) {
  if (bytes < 0) return fail(fmt::format("{} bytes", bytes));
  // The mapping below commits nothing, so it succeeds for any size, and writing would end the
  // process.
  if (Status fits = tensor::check_memory("a run", bytes); !fits) return fail(fits.error().message);
  if (bytes < kHugePage) {
    *memory = std::aligned_alloc(
        kAlignment, (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment);
    return *memory == nullptr ? fail(fmt::format("no memory for {} bytes", bytes)) : 0;
  }
  // One huge page more than needed; the unaligned ends are unmapped.
  const auto want = static_cast<size_t>(huge_up(bytes));
  const size_t mapped = want + static_cast<size_t>(kHugePage);
  void* raw = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return fail(fmt::format("no memory for {} bytes: {}", bytes, strerror(errno)));
  char* begin = static_cast<char*>(raw);
  const auto address = reinterpret_cast<uintptr_t>(raw);
  const size_t head = (static_cast<size_t>(kHugePage) - address % kHugePage) % kHugePage;
  if (head > 0) munmap(begin, head);
  if (mapped > head + want) munmap(begin + head + want, mapped - head - want);
  *memory = begin + head;
  madvise(*memory, want, MADV_HUGEPAGE);  // a hint: without it the pages are small
  return 0;
}

void cpu_release(void*, void* memory, int64_t bytes) {
  if (bytes < kHugePage) {
    std::free(memory);
  } else {
    munmap(memory, static_cast<size_t>(huge_up(bytes)));
  }
}

int cpu_load(void*, const uint8_t* object, size_t bytes, heddle_hal_program** program) {
  auto loaded = Object::load({object, bytes});
  if (!loaded) return fail(loaded.error().message);
  *program = reinterpret_cast<heddle_hal_program*>(loaded->release());
  return 0;
}

void cpu_unload(void*, heddle_hal_program* program) { delete reinterpret_cast<Object*>(program); }

int cpu_find(void*, heddle_hal_program* program, const char* symbol, const void** function) {
  *function = reinterpret_cast<Object*>(program)->find(symbol);
  return *function == nullptr ? fail(fmt::format("no function '{}'", symbol)) : 0;
}

int cpu_wait(void*) { return 0; }  // a launch returns when it has run

void run_part(void* context, int64_t begin, int64_t end, int worker) {
  const auto& launch = *static_cast<const heddle_hal_launch*>(context);
  reinterpret_cast<Kernel>(const_cast<void*>(launch.function))(
      launch.buffers, launch.dims, begin, end,
      launch.scratch + worker * launch.scratch_stride_bytes);
}

struct CopyJob {
  char* to;
  const char* from;
  int64_t bytes;
};

void copy_part(void* context, int64_t begin, int64_t end, int) {
  const auto& job = *static_cast<const CopyJob*>(context);
  const int64_t first = begin * kCopyTask, last = std::min(job.bytes, end * kCopyTask);
  std::memcpy(job.to + first, job.from + first, static_cast<size_t>(last - first));
}

}  // namespace

struct CpuDevice::State {
  State(Workers& workers, const HostAllocator& allocator)
      : workers(workers), allocator(allocator) {}
  Workers& workers;
  HostAllocator allocator;
  heddle_hal hal{};

  static State& of(void* device) { return *static_cast<State*>(device); }

  static int allocate_by_user(void* device, int64_t bytes, void** memory) {
    const HostAllocator& by = of(device).allocator;
    *memory = by.allocate(by.context, bytes);
    if (*memory == nullptr) return fail(fmt::format("the allocator has no {} bytes", bytes));
    if (reinterpret_cast<uintptr_t>(*memory) % kAlignment == 0) return 0;
    by.release(by.context, std::exchange(*memory, nullptr), bytes);
    return fail(fmt::format("what the allocator gave is not aligned to {} bytes", kAlignment));
  }
  static void release_by_user(void* device, void* memory, int64_t bytes) {
    const HostAllocator& by = of(device).allocator;
    by.release(by.context, memory, bytes);
  }

  static int launch(void* device, const heddle_hal_launch* launch) {
    if (launch->serial != 0) {
      if (launch->tasks > 0)
        reinterpret_cast<Kernel>(const_cast<void*>(launch->function))(
            launch->buffers, launch->dims, 0, launch->tasks, launch->scratch);
      return 0;
    }
    of(device).workers.parallel(launch->tasks, &run_part, const_cast<heddle_hal_launch*>(launch));
    return 0;
  }

  static int copy(void* device, void* to, const void* from, int64_t bytes) {
    if (bytes < kParallelCopyBytes) {
      if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
      return 0;
    }
    CopyJob job{static_cast<char*>(to), static_cast<const char*>(from), bytes};
    of(device).workers.parallel((bytes + kCopyTask - 1) / kCopyTask, &copy_part, &job);
    return 0;
  }

  static int64_t worker_count(void* device) { return of(device).workers.threads(); }
  static void begin_run(void* device) { of(device).workers.begin_run(); }
  static void end_run(void* device) { of(device).workers.end_run(); }

  const heddle_hal* fill() {
    hal.struct_bytes = sizeof(heddle_hal);
    hal.version = HEDDLE_HAL_VERSION;
    hal.name = "cpu";
    hal.device = this;
    hal.last_error = &cpu_last_error;
    const bool by_user = allocator.allocate != nullptr;
    hal.allocate = by_user ? &State::allocate_by_user : &cpu_allocate;
    hal.release = by_user ? &State::release_by_user : &cpu_release;
    hal.copy = &State::copy;
    hal.load = &cpu_load;
    hal.unload = &cpu_unload;
    hal.find = &cpu_find;
    hal.launch = &State::launch;
    hal.wait = &cpu_wait;
    hal.worker_count = &State::worker_count;
    hal.begin_run = &State::begin_run;
    hal.end_run = &State::end_run;
    return &hal;
  }
};

CpuDevice::CpuDevice(Workers& workers, const HostAllocator& allocator)
    : state_(std::make_unique<State>(workers, allocator)), device_([this] {
        auto device = Device::make(state_->fill());
        HEDDLE_CHECK(device, "{}", device.error().message);
        return *device;
      }()) {}

CpuDevice::~CpuDevice() = default;

}  // namespace heddle::runtime
