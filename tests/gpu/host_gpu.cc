// A stand-in for libcuda.so.1 and libnvrtc.so in one library, for machines without a GPU: set
// HEDDLE_CUDA_DRIVER and HEDDLE_NVRTC to it. Its compiler hands the CUDA text on, its driver has
// the host's compiler translate that over gpu_host.h, and launches run it block by block. Device
// memory lies at addresses that the host cannot read. It shows that whole programs find their way
// through driver, compiler and kernels; it measures nothing: every event says 0 ms.
#include "host_gpu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <vector>

#include "../captures.h"
#include "../host_text.h"
#include "host_gpu_text.h"

namespace {

namespace fs = std::filesystem;
using Address = unsigned long long;

constexpr Address kBias = Address{1} << 62;  // no address of a process
constexpr int kInvalid = 1, kNoMemory = 2, kNoImage = 200, kNotFound = 500, kLaunchFailed = 719;

struct Memory {
  std::mutex mutex;
  std::map<Address, size_t> blocks;  // by address without the bias
};
Memory& memory() {
  static Memory all;
  return all;
}
std::atomic<long long> crossed{0}, copied{0}, launches{0}, calls{0}, replays{0}, live{0};

using heddle::Captures;
struct Function {
  int (*run)(void** arguments, long long blocks, int threads);
  int arguments;  // of eight bytes each
};
struct Module {
  void* library;
  std::map<std::string, Function> functions;
};

// The host's address of so many bytes; null: device memory that is none.
char* usable(Address at, size_t bytes) {
  if ((at & kBias) == 0) return reinterpret_cast<char*>(at);
  const Address real = at & ~kBias;
  const std::lock_guard lock(memory().mutex);
  auto block = memory().blocks.upper_bound(real);
  if (block == memory().blocks.begin()) return nullptr;
  --block;
  return real + bytes <= block->first + block->second ? reinterpret_cast<char*>(real) : nullptr;
}

thread_local void* current = nullptr;  // context

std::string with_own_scratch(std::string text) {
  const std::string asked = "extern __shared__ __align__(16) unsigned char scratch[];";
  for (size_t at; (at = text.find(asked)) != std::string::npos;)
    text.replace(at, asked.size(), "__shared__ __align__(16) unsigned char scratch[1 << 18];");
  return text;
}

// The library that the host's compiler makes of a module's text; null: it said no, on stderr.
void* translated(const std::string& text) {
  static std::atomic<int> number{0};
  const fs::path folder = fs::temp_directory_path() / ("host-gpu-" + std::to_string(::getpid()) +
                                                       "-" + std::to_string(number++));
  std::error_code error;
  fs::create_directories(folder, error);
  std::ofstream file(folder / "kernels.cc");
  file << kHostText << kLaunchText << with_own_scratch(heddle::without_assembly(text));
  const std::regex kernel(R"(__global__\s+void\s+(?:__launch_bounds__\(\d+\)\s+)?(\w+)\()");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), kernel);
       at != std::sregex_iterator(); ++at)
    file << "extern \"C\" int run_" << (*at)[1]
         << "(void** a, long long blocks, int threads) { return host::launch_at(" << (*at)[1]
         << ", a, blocks, threads); }\n"
         << "extern \"C\" int count_" << (*at)[1] << "() { return host::count_of(" << (*at)[1]
         << "); }\n";
  file.close();
  const char* chosen = std::getenv("HEDDLE_HOST_COMPILER");
  const std::string command = std::string(chosen != nullptr ? chosen : HOST_COMPILER) +
                              " -std=c++20 -w -O0 -ffp-contract=off -shared -fPIC -o " +
                              (folder / "kernels.so").string() + " " +
                              (folder / "kernels.cc").string() + " 1>&2";
  void* library = nullptr;
  if (std::system(command.c_str()) == 0)
    library = ::dlopen((folder / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  fs::remove_all(folder, error);
  return library;
}

int new_handle(void** handle) { return *handle = new char, ++live, 0; }
int drop_handle(void* handle) { return delete static_cast<char*>(handle), --live, 0; }

int run(const Function& function, std::vector<Address> values, long long blocks, int threads) {
  // A module's threads and scratch are those of one launch at a time.
  static std::mutex one;
  const std::lock_guard lock(one);
  ++launches;
  std::vector<void*> arguments;
  for (Address& value : values) arguments.push_back(&value);
  return function.run(arguments.data(), blocks, threads) == 0 ? 0 : kLaunchFailed;
}

int copy_now(Address to, Address from, size_t bytes) {
  char *target = usable(to, bytes), *source = usable(from, bytes);
  if (target == nullptr || source == nullptr) return kInvalid;
  const bool crosses = (to & kBias) != (from & kBias);
  (crosses ? crossed : copied) += static_cast<long long>(bytes);
  return std::memmove(target, source, bytes), 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

long long host_gpu_crossed() { return crossed; }
long long host_gpu_copied() { return copied; }
long long host_gpu_launches() { return launches; }
long long host_gpu_calls() { return calls; }
long long host_gpu_replays() { return replays; }
long long host_gpu_live() { return live; }

// ---- the compiler ----

int nvrtcVersion(int* major, int* minor) { return *major = *minor = 0; }
const char* nvrtcGetErrorString(int) { return "stand-in"; }
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char* const*,
                       const char* const*) {
  return *program = new std::string(text), 0;
}
int nvrtcDestroyProgram(void** program) {
  return delete static_cast<std::string*>(*program), *program = nullptr, 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) { return 0; }
int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  return *bytes = static_cast<std::string*>(program)->size() + 1, 0;
}
int nvrtcGetCUBIN(void* program, char* to) {
  const std::string& text = *static_cast<std::string*>(program);
  return std::memcpy(to, text.c_str(), text.size() + 1), 0;
}
int nvrtcGetProgramLogSize(void*, size_t* bytes) { return *bytes = 1, 0; }
int nvrtcGetProgramLog(void*, char* to) { return *to = 0; }

// ---- the driver ----

int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 0; }
int cuGetErrorString(int code, const char** text) {
  *text = code == kNoMemory                ? "out of memory"
          : code == kNoImage               ? "the host's compiler said no"
          : code == kNotFound              ? "named symbol not found"
          : code == kLaunchFailed          ? "threads wait for others that never come"
          : code >= Captures::kUnsupported ? "operation not permitted when stream is capturing"
                                           : "invalid value";
  return 0;
}
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int number) { return *device = number, number == 0 ? 0 : kInvalid; }
int cuDeviceGetName(char* name, int size, int) {
  return std::strncpy(name, "stand-in GPU (host)", static_cast<size_t>(size)), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 9 : attribute == 16 ? 132 : 0, 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = size_t{16} << 30, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &live, 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSynchronize() { return Captures::get().refuse_to_all(); }

int cuMemAlloc_v2(Address* at, size_t bytes) {
  if (const int code = Captures::get().refuse()) return code;
  const size_t rounded = (bytes + 255) / 256 * 256;
  void* block = std::aligned_alloc(256, rounded);
  if (block == nullptr) return kNoMemory;
  std::memset(block, 0xa5, rounded);
  const auto real = reinterpret_cast<Address>(block);
  const std::lock_guard lock(memory().mutex);
  memory().blocks[real] = bytes;
  return *at = real | kBias, ++live, 0;
}
int cuMemFree_v2(Address at) {
  if (const int code = Captures::get().refuse()) return code;
  const std::lock_guard lock(memory().mutex);
  if ((at & kBias) == 0 || memory().blocks.erase(at & ~kBias) == 0) return kInvalid;
  return std::free(reinterpret_cast<void*>(at & ~kBias)), --live, 0;
}
int cuMemcpyAsync(Address to, Address from, size_t bytes, void* stream) {
  return Captures::get().put(stream, (to & from & kBias) != 0,
                             [=] { return copy_now(to, from, bytes); });
}

int cuModuleLoadData(void** module, const void* image) {
  if (const int code = Captures::get().refuse()) return code;
  void* library = translated(static_cast<const char*>(image));
  if (library == nullptr) return kNoImage;
  return *module = new Module{library, {}}, ++live, 0;
}
int cuModuleUnload(void* module) {
  ::dlclose(static_cast<Module*>(module)->library);
  return delete static_cast<Module*>(module), --live, 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  auto& [library, functions] = *static_cast<Module*>(module);
  const auto find = [&, l = library](const char* kind) {
    return ::dlsym(l, (kind + std::string(name)).c_str());
  };
  void *run = find("run_"), *count = find("count_");
  if (run == nullptr || count == nullptr) return kNotFound;
  functions[name] = {reinterpret_cast<int (*)(void**, long long, int)>(run),
                     reinterpret_cast<int (*)()>(count)()};
  return *function = &functions[name], 0;
}
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned, void* stream, void** arguments, void**) {
  ++calls;
  const Function& one = *static_cast<const Function*>(function);
  std::vector<Address> values;
  for (int i = 0; i < one.arguments; ++i)
    values.push_back(*static_cast<const Address*>(arguments[i]));
  return Captures::get().put(stream, true,
                             [=] { return run(one, values, blocks, static_cast<int>(threads)); });
}

int cuStreamBeginCapture_v2(void* stream, int mode) { return Captures::get().begin(stream, mode); }
int cuStreamEndCapture(void* stream, void** graph) {
  const int code = Captures::get().end(stream, graph);
  return live += code == 0, code;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  if (const int code = Captures::get().refuse()) return code;
  if (flags != 0) return kInvalid;
  return *executable = new Captures::Graph(*static_cast<Captures::Graph*>(graph)), ++live, 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  ++replays;
  const auto& graph = *static_cast<Captures::Graph*>(executable);
  return Captures::get().put(stream, false, [&graph] { return Captures::run(graph); });
}
int cuGraphDestroy(void* graph) { return delete static_cast<Captures::Graph*>(graph), --live, 0; }
int cuGraphExecDestroy(void* executable) { return cuGraphDestroy(executable); }

// All has run when it was asked for: waits and events pass.
int cuStreamCreate(void** stream, unsigned) { return new_handle(stream); }
int cuStreamCreateWithPriority(void** stream, unsigned, int) { return new_handle(stream); }
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0; }
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return Captures::get().wait(stream, event);
}
int cuEventQuery(void*) { return Captures::get().refuse(); }
int cuLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return Captures::get().put(stream, false, [=] { return function(argument), 0; });
}
int cuStreamDestroy_v2(void* stream) {
  return Captures::get().is_captured(stream) ? kInvalid : drop_handle(stream);
}
int cuStreamSynchronize(void*) { return Captures::get().refuse(); }
int cuEventCreate(void** event, unsigned) { return new_handle(event); }
int cuEventDestroy_v2(void* event) { return drop_handle(event); }
int cuEventRecord(void* event, void* stream) { return Captures::get().record(event, stream); }
int cuEventSynchronize(void*) { return Captures::get().refuse(); }
int cuEventElapsedTime(float* ms, void*, void*) { return *ms = 0, 0; }

}  // extern "C"
