#include "emit/cuda/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

#include "emit/cuda/nvrtc_places.h"

namespace heddle::emit::cuda {

// NVRTC's C interface, as its documentation describes it.
struct Nvrtc::Functions {
  using Program = void*;
  int (*version)(int*, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*create)(Program*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
};

namespace {

template <typename Function>
bool find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

// Every product and sum rounded separately, subnormals kept: the contract of docs/numerics.md.
std::vector<std::string> options(const std::string& architecture) {
  return {"--gpu-architecture=" + architecture,
          "--std=c++17",
          "--fmad=false",
          "--ftz=false",
          "--prec-div=true",
          "--prec-sqrt=true",
          "--ptxas-options=-v"};
}

}  // namespace

Result<std::shared_ptr<Nvrtc>> Nvrtc::open(const std::string& environment) {
  const NvrtcPlaces places = nvrtc_places(surroundings(), environment);
  for (const std::string& name : places.files) {
    void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    std::shared_ptr<Nvrtc> nvrtc(new Nvrtc);
    nvrtc->library_ = library;
    nvrtc->functions_ = std::make_unique<Functions>();
    Functions& f = *nvrtc->functions_;
    const bool all = find(library, "nvrtcVersion", &f.version) &&
                     find(library, "nvrtcGetErrorString", &f.error_text) &&
                     find(library, "nvrtcCreateProgram", &f.create) &&
                     find(library, "nvrtcDestroyProgram", &f.destroy) &&
                     find(library, "nvrtcCompileProgram", &f.compile) &&
                     find(library, "nvrtcGetCUBINSize", &f.cubin_size) &&
                     find(library, "nvrtcGetCUBIN", &f.cubin) &&
                     find(library, "nvrtcGetProgramLogSize", &f.log_size) &&
                     find(library, "nvrtcGetProgramLog", &f.log);
    int major = 0, minor = 0;
    if (!all || f.version(&major, &minor) != 0) continue;
    nvrtc->version_ = fmt::format("{}.{}", major, minor);
    Dl_info info{};
    const bool known = ::dladdr(reinterpret_cast<void*>(f.version), &info) != 0 && info.dli_fname;
    nvrtc->path_ = known ? info.dli_fname : name;
    return nvrtc;
  }
  return machine_error("NVRTC was not found; install it or set HEDDLE_NVRTC; tried: {}",
                       places.tried);
}

Nvrtc::~Nvrtc() {
  if (library_ != nullptr) ::dlclose(library_);
}

Result<Cubin> Nvrtc::compile(const std::string& text, const std::string& architecture) const {
  const Functions& f = *functions_;
  Functions::Program program = nullptr;
  if (int error = f.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr))
    return machine_error("NVRTC: {}", f.error_text(error));
  const std::vector<std::string> texts = options(architecture);
  std::vector<const char*> pointers;
  for (const std::string& option : texts) pointers.push_back(option.c_str());
  const int error = f.compile(program, static_cast<int>(pointers.size()), pointers.data());
  Cubin cubin;
  size_t bytes = 0;
  if (f.log_size(program, &bytes) == 0 && bytes > 1) {
    cubin.log.resize(bytes);
    f.log(program, cubin.log.data());
    cubin.log.resize(bytes - 1);  // without its last zero
  }
  if (error == 0 && f.cubin_size(program, &bytes) == 0) {
    cubin.code.resize(bytes);
    f.cubin(program, reinterpret_cast<char*>(cubin.code.data()));
  }
  f.destroy(&program);
  if (error != 0)
    return user_error("NVRTC for {}: {}: {}", architecture, f.error_text(error), cubin.log);
  cubin.functions = parse_use(cubin.log);
  return cubin;
}

// "ptxas info    : Function properties for f", "    0 bytes stack frame, 0 bytes spill stores, 0
// bytes spill loads", "ptxas info    : Used 10 registers, …, 16 bytes smem, …".
std::vector<FunctionUse> parse_use(const std::string& log) {
  std::vector<FunctionUse> result;
  std::istringstream lines(log);
  const auto before = [](const std::string& line, const std::string& what) -> int64_t {
    const size_t at = line.find(what);
    if (at == std::string::npos) return -1;
    size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1]))) --begin;
    return std::strtoll(line.c_str() + begin, nullptr, 10);
  };
  for (std::string line; std::getline(lines, line);) {
    const std::string mark = "Function properties for ";
    if (const size_t at = line.find(mark); at != std::string::npos) {
      result.push_back({});
      result.back().function = line.substr(at + mark.size());
    }
    if (result.empty()) continue;
    FunctionUse& use = result.back();
    if (line.find(" bytes stack frame") != std::string::npos) {
      use.stack_bytes = before(line, " bytes stack frame");
      use.spill_store_bytes = before(line, " bytes spill stores");
      use.spill_load_bytes = before(line, " bytes spill loads");
    }
    if (line.find("Used ") != std::string::npos) {
      use.registers = static_cast<int>(before(line, " registers"));
      use.shared_bytes = std::max<int64_t>(0, before(line, " bytes smem"));
    }
  }
  return result;
}

}  // namespace heddle::emit::cuda
