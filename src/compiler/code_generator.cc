#include "compiler/code_generator.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <thread>

#include "cache/build_id.h"
#include "cache/object_cache.h"

namespace heddle::compiler {

namespace {

// The one function of libheddle-llvm (emit/llvm/emit.h), by its C signature.
constexpr int kEmitAbi = 4;
using EmitFunction = int (*)(int abi, const char* const* kernels, size_t kernel_count,
                             const char* target, const char* dump_directory, int effort,
                             uint8_t** object, size_t* object_bytes, char** error);

constexpr size_t kObjectAlignment = 64;  // runtime/loader.h

// HEDDLE_CODE_GENERATOR if set; else beside this binary, in the folder above, or in lib/heddle
// there.
std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> result;
  if (const char* said = std::getenv("HEDDLE_CODE_GENERATOR"); said != nullptr && *said != '\0')
    return {said};
  Dl_info info;
  static const int anchor = 0;
  if (dladdr(&anchor, &info) && info.dli_fname) {
    std::error_code error;
    std::filesystem::path here = std::filesystem::canonical(info.dli_fname, error);
    if (error) here = std::filesystem::read_symlink("/proc/self/exe", error);
    std::filesystem::path directory = here.parent_path();
    result.push_back(directory / "libheddle-llvm.so");
    result.push_back(directory.parent_path() / "libheddle-llvm.so");
    result.push_back(directory.parent_path() / "lib" / "heddle" / "libheddle-llvm.so");
  }
  return result;
}

Result<EmitFunction> open_library() {
  static std::mutex mutex;
  static EmitFunction function = nullptr;
  std::lock_guard lock(mutex);
  if (function) return function;
  std::string tried, places;
  for (const std::filesystem::path& path : candidates()) {
    places += (places.empty() ? "" : ", ") + path.string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) function = reinterpret_cast<EmitFunction>(dlsym(library, "heddle_emit"));
    if (function) return function;
    tried += (tried.empty() ? "" : "; ") +
             (library ? path.string() + " has no heddle_emit" : std::string(dlerror()));
  }
  if (tried.empty())
    return machine_error(
        "code generator: it is missing: {}; is heddle installed whole? HEDDLE_CODE_GENERATOR=FILE "
        "says where it is",
        places);
  return machine_error(
      "code generator: libheddle-llvm.so cannot be opened ({}); HEDDLE_CODE_GENERATOR=FILE says "
      "where another is",
      tried);
}

}  // namespace

std::string code_generator_build_id() {
  static const int anchor = 0;
  std::string id = cache::build_id(&anchor);
  for (const std::filesystem::path& path : candidates()) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    id += "/" + cache::file_build_id(path.string());
    break;
  }
  return id;
}

namespace {

// Kernels that become one object: [begin, end) of the texts.
struct Part {
  size_t begin = 0, end = 0, bytes = 0;
  Result<std::vector<uint8_t>> object = std::vector<uint8_t>();
};

// Depends on the texts alone: consecutive kernels are grouped until they pay for LLVM's start-up.
std::vector<Part> split(const std::vector<std::string>& kernels) {
  constexpr size_t kPartBytes = 64 << 10;
  std::vector<Part> parts;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (parts.empty() || parts.back().bytes >= kPartBytes) parts.push_back({i, i});
    parts.back().end = i + 1;
    parts.back().bytes += kernels[i].size();
  }
  return parts;
}

// LLVM's effort, as heddle_emit() takes it: O0 is for a first result, O1 for a short compilation.
// Kernels of O1 run as often as those of O2, and quick instruction selection would double their
// time, so O1 omits only what gains little.
int effort_of(const Options& options) { return static_cast<int>(options.level); }

Result<std::vector<uint8_t>> emit_part(EmitFunction emit, const std::vector<std::string>& kernels,
                                       const Part& part, const std::string& target,
                                       const Options& options) {
  const std::string& dump = options.dump_directory;
  std::vector<const char*> texts;
  for (size_t i = part.begin; i < part.end; ++i) texts.push_back(kernels[i].c_str());
  uint8_t* object = nullptr;
  size_t bytes = 0;
  char* message = nullptr;
  if (emit(kEmitAbi, texts.data(), texts.size(), target.c_str(),
           dump.empty() ? nullptr : dump.c_str(), effort_of(options), &object, &bytes, &message)) {
    std::string text = message ? message : "unknown failure";
    std::free(message);
    return machine_error("code generator: {}", text);
  }
  std::vector<uint8_t> result(object, object + bytes);
  std::free(object);
  return result;
}

// The largest first, so that no thread is left with one at the end.
void emit_all(EmitFunction emit, const std::vector<std::string>& kernels, const std::string& target,
              const Options& options, std::vector<Part>* parts) {
  std::vector<Part*> order;
  for (Part& part : *parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(),
                   [](const Part* a, const Part* b) { return a->bytes > b->bytes; });
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  auto work = [&](bool asks) {
    for (size_t i = next++; i < order.size(); i = next++) {
      if (asks && options.progress && !options.progress("codegen")) stopped = true;
      order[i]->object = stopped ? cancelled_error("compilation cancelled in codegen")
                                 : emit_part(emit, kernels, *order[i], target, options);
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < std::min<int>(options.compile_threads, static_cast<int>(order.size())); ++t) {
    try {
      others.emplace_back(work, false);
    } catch (const std::system_error&) {  // no more threads: the existing ones do it
      break;
    }
  }
  work(true);
  for (std::thread& other : others) other.join();
}

}  // namespace

Result<std::vector<uint8_t>> generate_object(const std::vector<std::string>& kernels,
                                             const target::Target& target, const Options& options) {
  const std::string target_text = target::to_string(target);
  std::optional<cache::ObjectCache> cache;
  Hash128 key;
  cache::Lookup lookup;  // other processes wait until the object is stored
  if (!options.object_cache_directory.empty() && options.dump_directory.empty()) {
    std::vector<std::string_view> views(kernels.begin(), kernels.end());
    key = cache::object_key(
        views, target_text,
        fmt::format("{} effort {}", code_generator_build_id(), effort_of(options)));
    auto opened = cache::ObjectCache::open(options.object_cache_directory);
    if (opened) cache.emplace(std::move(*opened));
    if (cache) lookup = cache->find_or_make(key);
    if (lookup.object) return std::move(*lookup.object);
  }
  HEDDLE_ASSIGN_OR_RETURN(EmitFunction emit, open_library());
  std::vector<Part> parts = split(kernels);
  emit_all(emit, kernels, target_text, options, &parts);
  std::vector<uint8_t> result;
  for (Part& part : parts) {
    if (!part.object) return tl::unexpected(part.object.error());
    result.resize((result.size() + kObjectAlignment - 1) / kObjectAlignment * kObjectAlignment);
    result.insert(result.end(), part.object->begin(), part.object->end());
  }
  // A cache that cannot be written only costs time.
  if (cache) (void)cache->store(key, result);
  return result;
}

}  // namespace heddle::compiler
