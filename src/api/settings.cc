#include "api/settings.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "api/tune.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "cache/object_cache.h"
#include "cache/tuning_store.h"
#include "import/mapped_file.h"
#include "library/library.h"
#include "precision/value_ranges.h"
#include "schedule/gemm.h"

namespace heddle::api {
namespace {

// `text` must be one of `words` ("O0|O1|O2"); empty text is allowed for an optional choice.
template <typename T>
Result<T> choose(const char* what, const std::string& text, std::string_view words) {
  const bool open = compiler::IsOptional<T>::value && text.empty();
  if (open || compiler::place_of_word(text, words) >= 0)
    return compiler::option_choice<T>(text, words);
  std::string list;
  for (const char letter : words) list += letter == '|' ? ", " : std::string(1, letter);
  return user_error("{} '{}': no such choice; use one of {}", what, text, list);
}

// The compiler options that callers choose.
Result<compiler::Options> read_choices(const CompileOptions& options) {
  compiler::Options result;
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  HEDDLE_ASSIGN_OR_RETURN(result.field,                      \
                          choose<decltype(result.field)>(#field, options.field, words));
#define HEDDLE_TEXT(part, Type, field, ...) HEDDLE_TAKE_##part(field)
#define HEDDLE_NUMBER(part, Type, field, ...) HEDDLE_TAKE_##part(field)
#define HEDDLE_TAKE_said(field) result.field = options.field;
#define HEDDLE_TAKE_told(field) result.field = options.field;
#define HEDDLE_TAKE_keyed(field) result.field = options.field;
#define HEDDLE_TAKE_target(field)
#define HEDDLE_TAKE_where(field)
#define HEDDLE_TAKE_none(field)
#include "compiler/options.def"
#undef HEDDLE_TAKE_said
#undef HEDDLE_TAKE_told
#undef HEDDLE_TAKE_keyed
#undef HEDDLE_TAKE_target
#undef HEDDLE_TAKE_where
#undef HEDDLE_TAKE_none
  return result;
}

// Steps of a compilation, in order; any other step counts as part of the one before it.
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

// The folder of compiled code; empty: none.
Result<std::string> cache_directory(const std::string& wanted) {
  const std::string directory = cache::chosen_directory(wanted);
  if (directory.empty() || directory == cache::default_directory()) return directory;
  // A folder given by name must be usable.
  HEDDLE_ASSIGN_OR_RETURN(const cache::ObjectCache opened, cache::ObjectCache::open(directory));
  return opened.directory();
}

Status read_ranges(const std::string& path, compiler::Options* options) {
  if (path.empty()) return {};
  const auto file = import::MappedFile::open(path);
  if (!file) return error_in("--ranges", file.error());
  auto ranges = precision::parse_ranges((*file)->bytes());
  if (!ranges) return user_error("--ranges {}: {}", path, ranges.error().message);
  options->value_ranges = std::make_shared<const precision::ValueRanges>(std::move(*ranges));
  options->ranges = hash128((*file)->bytes()).hex();
  return {};
}

}  // namespace

std::string level_name(const compiler::Options& options) {
  return compiler::choice_word(options.level, compiler::ChoiceWords::level);
}

Result<int> read_threads(int threads) {
  if (threads < 0 || threads > kMostThreads)
    return user_error("threads {}: wanted 1 to {}; leave it out for all cores", threads,
                      kMostThreads);
  return threads == 0 ? available_cores() : threads;
}

Result<Settings> read_settings(const CompileOptions& options) {
  Settings settings;
  // The device's text is checked first, then the number of threads.
  HEDDLE_ASSIGN_OR_RETURN(settings.device, open_device({options.device, 1, options.allocator}));
  HEDDLE_ASSIGN_OR_RETURN(settings.threads, read_threads(options.threads));
  settings.where = {options.device, settings.threads, options.allocator};
  HEDDLE_ASSIGN_OR_RETURN(settings.compiler, read_choices(options));
  HEDDLE_RETURN_IF_ERROR(read_ranges(options.ranges, &settings.compiler));
  HEDDLE_ASSIGN_OR_RETURN(settings.target,
                          settings.device->find_target(options.target, options.code));
  settings.tuning_device = tuning_device(settings.target);
  if (settings.compiler.numerics == compiler::Numerics::strict)
    settings.target = schedule::without_flushing(std::move(settings.target));
  // The target needs another device.
  if (!settings.device->runs(settings.target.kind)) {
    settings.where.text = "cuda";
    HEDDLE_ASSIGN_OR_RETURN(settings.device, open_device(settings.where));
  }
  compiler::Options& compiler = settings.compiler;
  compiler.streams = options.streams != 0 ? options.streams : settings.device->streams();
  compiler.own_memory = settings.device->own_memory();
  compiler.dump_directory = options.dump;
  compiler.compile_threads =
      options.compile_threads != 0 ? options.compile_threads : settings.threads;
  compiler.code = options.code;
  // A caller's allocator provides memory for prepared weights.
  compiler.keep_once =
      options.keep_prepared && settings.device->is_host() && options.allocator.allocate == nullptr;
  settings.explain = options.explain;
  if (options.progress) compiler.progress = progress_of(options.progress);
  if (!settings.device->interprets()) {
    HEDDLE_ASSIGN_OR_RETURN(compiler.object_cache_directory, cache_directory(options.cache));
  }
  if (settings.device->is_host()) {
    HEDDLE_ASSIGN_OR_RETURN(auto records, cache::TuningStore::load(compiler.object_cache_directory,
                                                                   settings.tuning_device));
    if (!records.empty())
      settings.target.records =
          std::make_shared<const std::map<std::string, std::string>>(std::move(records));
  }
  return settings;
}

Status check_limit(const std::string& program, int64_t pool_peak_bytes,
                   const compiler::Options& options) {
  if (options.memory_limit_bytes < 0 || pool_peak_bytes <= options.memory_limit_bytes) return {};
  return error_of(
      ErrorKind::memory,
      "{}: the pool of temporaries takes {} bytes, the limit is {}; raise --memory-limit or plan "
      "with --memory static",
      program, pool_peak_bytes, options.memory_limit_bytes);
}

}  // namespace heddle::api
