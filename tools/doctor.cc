// heddle doctor: what this machine is and what was found on it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/parallel.h"
#include "cache/object_cache.h"
#include "command_line.h"
#include "commands.h"
#include "emit/cuda/nvrtc.h"
#include "library/library.h"
#include "machine.h"
#include "peer.h"
#include "report.h"
#include "runtime/cuda_driver.h"
#include "target/target.h"

namespace heddle::tools {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

// Where one of the names can be opened; empty: nowhere.
std::string find_library(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    void* library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) continue;
    ::dlclose(library);
    return name;
  }
  return {};
}

std::string library_text(const library::Opened& opened) {
  if (!opened.library)
    return fmt::format("none ({}): {}", opened.decision.code(), opened.decision.reason());
  const library::Facts& facts = opened.library->facts();
  return fmt::format("{} from {} ({}), a candidate with --library auto", facts.version, facts.path,
                     facts.threading);
}

// "cuda:0 NVIDIA H100, sm_90, 132 multiprocessors, 80 GB".
std::vector<std::string> find_gpus() {
  std::vector<std::string> result;
  const auto driver = runtime::CudaDriver::open();
  if (!driver) return result;
  const auto devices = runtime::cuda_devices(**driver);
  if (!devices) return result;
  for (const runtime::CudaDeviceInfo& info : *devices)
    result.push_back(fmt::format("cuda:{} {}, sm_{}{}, {} multiprocessors, {}", result.size(),
                                 info.name, info.major, info.minor, info.multiprocessors,
                                 bytes_text(static_cast<int64_t>(info.memory_bytes))));
  return result;
}

struct FoundNvrtc {
  std::string version, path;  // or empty
  std::string text;           // either, or why there is none
};

FoundNvrtc find_nvrtc() {
  const auto nvrtc = emit::cuda::Nvrtc::open();
  if (!nvrtc) return {"", "", nvrtc.error().message};
  const std::string version = (*nvrtc)->version(), path = (*nvrtc)->path();
  return {version, path, fmt::format("{} from {}", version, path)};
}

// The code generator lies beside this binary, or where it is installed to.
std::string find_code_generator() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path folder = self.parent_path();
  for (const fs::path& path :
       {folder / "libheddle-llvm.so", folder.parent_path() / "libheddle-llvm.so",
        folder.parent_path() / "lib" / "heddle" / "libheddle-llvm.so"})
    if (fs::exists(path, error)) return path.string();
  return {};
}

std::string cache_folder() {
  const std::string directory = cache::chosen_directory({});
  return directory.empty() ? "off" : directory;
}

class Doctor : public Command {
 public:
  std::string_view name() const override { return "doctor"; }
  std::string_view summary() const override { return "shows the machine and what was found on it"; }

  void declare(CommandLine& line) override {
    json_.declare(line);
    line.group("What to show");
    line.flag(target_, "--target", "the target description of this machine, as JSON");
    line.examples("  heddle doctor\n  heddle doctor --target > here.json\n");
  }

  Result<int> run() override {
    const target::Target host = target::host_target();
    if (target_) {
      fmt::print("{}", target::to_string(host));
      return 0;
    }
    const std::string generator = find_code_generator();
    const std::string cuda = find_library({"libcuda.so.1"});
    const std::vector<std::string> gpus = find_gpus();
    const FoundNvrtc compiler = find_nvrtc();
    const library::Opened dnnl = library::open(library::kOneDnn, host);
    if (!json_.only_json()) {
      fmt::print("heddle {}\n", version_text());
      fmt::print("processor: {}\n", processor_name());
      fmt::print("isa: {} ({}-bit vectors, {} registers)\n", target::isa_name(host), host.simd_bits,
                 host.vector_registers);
      fmt::print("features: {}\n", fmt::join(host.features, " "));
      fmt::print("cores: {} usable, memory {}\n", available_cores(), bytes_text(memory_bytes()));
      for (size_t i = 0; i < host.caches.size(); ++i)
        fmt::print("L{}: {}, shared by {}\n", i + 1, bytes_text(host.caches[i].bytes),
                   host.caches[i].shared_by_cores);
      fmt::print(
          "peak: {:.0f} GFLOP/s f32 ({} cores), memory {:.0f} GB/s one core, {:.0f} all; "
          "from the nearest shipped target\n",
          host.peak_flops_per_ns(tensor::Type::f32), host.cores, host.memory_bandwidth_bytes_per_ns,
          host.memory_bandwidth_all_bytes_per_ns);
      fmt::print("targets: host, {}\n", fmt::join(target::shipped_targets(), ", "));
      fmt::print("devices: cpu, {}interp\n", gpus.empty() ? "" : "cuda, ");
      fmt::print("code generator: {}\n",
                 generator.empty() ? "libheddle-llvm.so was not found: only compiled and cached "
                                     "programs run"
                                   : generator);
      for (const std::string& gpu : gpus) fmt::print("GPU: {}\n", gpu);
      if (gpus.empty())
        fmt::print("GPU: none, CUDA driver {}\n", cuda.empty() ? "not found" : cuda);
      fmt::print("NVRTC: {}\n", compiler.text);
      fmt::print("oneDNN: {}\n", library_text(dnnl));
      fmt::print("cache: {}\n", cache_folder().empty() ? "none" : cache_folder());
      fmt::print("Python of peers: {}\n", Peer::python(""));
    }
    ordered_json json;
    json["schema"] = 1;
    json["version"] = version_text();
    json["processor"] = processor_name();
    json["isa"] = target::isa_name(host);
    json["features"] = host.features;
    json["cores"] = available_cores();
    json["memory_bytes"] = memory_bytes();
    json["targets"] = target::shipped_targets();
    json["devices"] = {"cpu", "interp"};
    if (!gpus.empty()) json["devices"].push_back("cuda");
    json["code_generator"] = generator;
    json["libcuda"] = cuda;
    json["gpus"] = gpus;
    json["nvrtc"] = compiler.version;
    json["nvrtc_path"] = compiler.path;
    json["libdnnl"] = dnnl.library ? dnnl.library->facts().path : "";
    json["onednn"] = library_text(dnnl);
    json["cache"] = cache_folder();
    json["target"] = ordered_json::parse(target::to_string(host));
    HEDDLE_RETURN_IF_ERROR(json_.write(json));
    return 0;
  }

 private:
  JsonChoice json_;
  bool target_ = false;
};

}  // namespace

std::unique_ptr<Command> make_doctor() { return std::make_unique<Doctor>(); }

}  // namespace heddle::tools
