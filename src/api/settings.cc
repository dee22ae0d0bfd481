#include "api/settings.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>

#include "api/gpu_device.h"
#include "api/tune.h"
#include "base/parallel.h"
#include "cache/object_cache.h"
#include "cache/tuning_store.h"
#include "library/library.h"
#include "program/streams.h"

namespace heddle::api {
namespace {

constexpr std::string_view kVirtual = "virtual:", kPlugin = "plugin:";

// `text` must be one of `words` ("O0|O1|O2"); an optional choice may be left open by no text.
template <typename T>
Result<T> choose(const char* what, const std::string& text, std::string_view words) {
  const bool open = compiler::IsOptional<T>::value && text.empty();
  if (open || compiler::place_of_word(text, words) >= 0)
    return compiler::option_choice<T>(text, words);
  std::string list;
  for (const char letter : words) list += letter == '|' ? ", " : std::string(1, letter);
  return user_error("{} '{}': there is no such choice; take one of {}", what, text, list);
}

// The members of the compiler's options that callers choose.
Result<compiler::Options> read_choices(const CompileOptions& options) {
  compiler::Options result;
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  HEDDLE_ASSIGN_OR_RETURN(result.field, choose<decltype(result.field)>(#field, options.field, words));
#define HEDDLE_TEXT(part, Type, field, ...) HEDDLE_TAKE_##part(field)
#define HEDDLE_NUMBER(part, Type, field, ...) HEDDLE_TAKE_##part(field)
#define HEDDLE_TAKE_said(field) result.field = options.field;
#define HEDDLE_TAKE_told(field) result.field = options.field;
#define HEDDLE_TAKE_keyed(field) result.field = options.field;
#define HEDDLE_TAKE_target(field)
#define HEDDLE_TAKE_none(field)
#include "compiler/options.def"
#undef HEDDLE_TAKE_said
#undef HEDDLE_TAKE_told
#undef HEDDLE_TAKE_keyed
#undef HEDDLE_TAKE_target
#undef HEDDLE_TAKE_none
  if (options.precision != "f32")
    return user_error("precision '{}': not built; there is f32", options.precision);
  return result;
}

// The steps of a compilation, in order; what is not among them is part of the one before.
constexpr const char* kSteps[] = {"optimize", "fuse", "stitch", "codegen", "plan", "load"};

std::function<bool(const char*)> progress_of(
    const std::function<bool(const CompileProgress&)>& asked) {
  const auto begin = std::chrono::steady_clock::now();
  return [asked, begin, done = 0](const char* step) mutable {
    for (int i = 0; i < static_cast<int>(std::size(kSteps)); ++i)
      if (std::string_view(step) == kSteps[i]) done = i;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return asked({step, done, static_cast<int>(std::size(kSteps)), took.count()});
  };
}

// The folder of compiled code, or nothing.
Result<std::string> cache_directory(const std::string& wanted) {
  const std::string directory = cache::chosen_directory(wanted);
  if (directory.empty() || directory == cache::default_directory()) return directory;
  // One that was asked for by name must work.
  HEDDLE_ASSIGN_OR_RETURN(const cache::ObjectCache opened, cache::ObjectCache::open(directory));
  return opened.directory();
}

}  // namespace

std::string level_name(const compiler::Options& options) {
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  if (std::string_view(#field) == "level") return compiler::choice_word(options.field, words);
#include "compiler/options.def"
  return "";
}

namespace {

// "cuda" is the first one, "cuda:1" the second. Nothing: the text says neither.
std::optional<int> read_cuda(const std::string& text) {
  if (text == "cuda") return 0;
  constexpr std::string_view kMark = "cuda:";
  const std::string digits = text.starts_with(kMark) ? text.substr(kMark.size()) : "";
  const bool number =
      !digits.empty() && digits.size() < 4 &&
      std::all_of(
          digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return number ? std::optional(std::stoi(digits)) : std::nullopt;
}

// The target that was named, or that of the device's own kind.
Result<target::Target> find_gpu_target(const std::string& name, int number) {
  if (name != "host") {
    HEDDLE_ASSIGN_OR_RETURN(target::Target target, target::find_target(name));
    if (target.kind != target::DeviceKind::gpu)
      return user_error("target '{}': a CPU's, and device cuda was asked for; take sm_80 or sm_90",
                        name);
    return target;
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto gpu, open_gpu(number));
  return gpu_target(gpu->info());
}

// The target that a virtual device is of, unless another one was named. Its code, where there is
// any, runs here.
Result<target::Target> find_virtual_target(const std::string& name, const std::string& device,
                                           bool code) {
  HEDDLE_ASSIGN_OR_RETURN(target::Target target,
                          target::find_target(name == "host" ? device : name));
  if (code && target.kind != target::DeviceKind::cpu)
    return user_error(
        "device virtual:{}: its code is a GPU's, which cannot run here; heddle dryrun and explain "
        "need none",
        device);
  return target;
}

}  // namespace

Result<Device> read_device(const std::string& text, int* cuda_number) {
  if (text.empty() || text == "cpu") return Device::cpu;
  if (const std::optional<int> number = read_cuda(text)) {
    if (cuda_number != nullptr) *cuda_number = *number;
    return Device::cuda;
  }
  if (text == "interp") return Device::interp;
  if (text == "interp:f64") return Device::interp_f64;
  if (text.starts_with(kVirtual)) return Device::virtual_device;
  if (!plugin_path(text).empty()) return Device::plugin;
  return user_error(
      "device '{}': unknown; there are cpu, cuda, cuda:N, virtual:NAME, plugin:FILE and interp",
      text);
}

std::string plugin_path(const std::string& device) {
  return device.starts_with(kPlugin) ? device.substr(kPlugin.size()) : "";
}

Result<runtime::VirtualOptions> read_virtual(const std::string& device) {
  HEDDLE_ASSIGN_OR_RETURN(runtime::VirtualOptions options,
                          runtime::parse_virtual(std::string_view(device).substr(kVirtual.size())));
  if (device.find("capacity=") != std::string::npos) return options;
  // A name that is no target's is told where the target is asked for.
  const Result<target::Target> target = target::find_target(options.name);
  if (target && target->memory_bytes > 0) options.capacity_bytes = target->memory_bytes;
  return options;
}

Result<int> read_threads(int threads) {
  if (threads < 0 || threads > kMostThreads)
    return user_error("threads {}: wanted 1 to {}; leave it out for all cores", threads,
                      kMostThreads);
  return threads == 0 ? available_cores() : threads;
}

namespace {

// That memory is planned for; -1: any number.
int64_t streams_of(int asked, const Settings& settings) {
  if (asked != 0) return asked;
  if (settings.device == Device::cuda) return program::StreamOptions().most_streams;
  if (settings.device != Device::virtual_device) return 1;
  return std::clamp<int64_t>(settings.simulated.streams, 1, program::StreamOptions().most_streams);
}

}  // namespace

Result<Settings> read_settings(const CompileOptions& options) {
  Settings settings;
  HEDDLE_ASSIGN_OR_RETURN(settings.device, read_device(options.device, &settings.cuda_number));
  HEDDLE_ASSIGN_OR_RETURN(settings.threads, read_threads(options.threads));
  HEDDLE_ASSIGN_OR_RETURN(settings.compiler, read_choices(options));
  const bool on_gpu = settings.device == Device::cuda;
  if (on_gpu) {
    HEDDLE_ASSIGN_OR_RETURN(settings.target, find_gpu_target(options.target, settings.cuda_number));
  } else if (settings.device == Device::virtual_device) {
    HEDDLE_ASSIGN_OR_RETURN(settings.simulated, read_virtual(options.device));
    HEDDLE_ASSIGN_OR_RETURN(
        settings.target,
        find_virtual_target(options.target, settings.simulated.name, options.code));
    if (settings.target.kind == target::DeviceKind::gpu) settings.device = Device::cuda;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(settings.target, target::find_target(options.target));
    const bool gpu = settings.target.kind == target::DeviceKind::gpu;
    if (gpu && options.code)
      return user_error("target '{}': a GPU's, which device cuda runs: ask for that",
                        options.target);
    if (gpu) settings.device = Device::cuda;
  }
  compiler::Options& compiler = settings.compiler;
  compiler.streams = streams_of(options.streams, settings);
  compiler.own_memory =
      settings.device == Device::virtual_device || settings.device == Device::cuda;
  compiler.dump_directory = options.dump;
  compiler.compile_threads = settings.threads;
  compiler.code = options.code;
  // An allocator of the caller's is where prepared weights go.
  compiler.keep_once = options.keep_prepared && settings.device == Device::cpu &&
                       options.allocator.allocate == nullptr;
  settings.plugin = plugin_path(options.device);
  settings.explain = options.explain;
  settings.allocator = options.allocator;
  if (options.progress) compiler.progress = progress_of(options.progress);
  if (settings.device != Device::interp && settings.device != Device::interp_f64) {
    HEDDLE_ASSIGN_OR_RETURN(compiler.object_cache_directory, cache_directory(options.cache));
  }
  if (settings.device == Device::cpu) {
    HEDDLE_ASSIGN_OR_RETURN(auto records, cache::TuningStore::load(compiler.object_cache_directory,
                                                                   tuning_device(settings.target)));
    if (!records.empty())
      settings.target.records =
          std::make_shared<const std::map<std::string, std::string>>(std::move(records));
  }
  return settings;
}

Status check_limit(const std::string& program, int64_t pool_peak_bytes,
                   const compiler::Options& options) {
  if (options.memory_limit_bytes < 0 || pool_peak_bytes <= options.memory_limit_bytes) return {};
  return machine_error(
      "{}: the pool of temporaries takes {} bytes, the limit is {}; raise --memory-limit or plan "
      "with --memory static",
      program, pool_peak_bytes, options.memory_limit_bytes);
}

}  // namespace heddle::api
