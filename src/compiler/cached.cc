#include "compiler/cached.h"

#include <chrono>

#include "compiler/code_generator.h"
#include "compiler/options.h"
#include "compiler/weight_hashes.h"
#include "hlo/text.h"
#include "program/image.h"

namespace heddle::compiler {
namespace {

using tensor::Literal;

// With more constants of the compiler's making a program is not cached.
constexpr int64_t kMostKeptBytes = int64_t{64} << 20;

// A vendor library may be replaced by another version; twins are for tuning, which measures code
// only.
bool is_cached(const target::Target& target, const Options& options) {
  return !options.object_cache_directory.empty() && target.kind == target::DeviceKind::cpu &&
         options.library == "none" && options.twins.empty() && options_key(options);
}

void append_arrays(const Literal& value, std::vector<Literal>& arrays) {
  if (value.shape().is_array()) arrays.push_back(value);
  for (const Literal& element : value.elements()) append_arrays(element, arrays);
}

// Every array of every constant, in order.
std::vector<Literal> weights_of(const hlo::Module& module) {
  std::vector<Literal> weights;
  for (const auto& computation : module.computations())
    for (const hlo::Instr* instr : computation->instrs())
      if (instr->is(hlo::Opcode::constant)) append_arrays(instr->literal(), weights);
  return weights;
}

cache::Key key_of(const hlo::Module& module, const Hash128& weights, const plan::Names& names,
                  const target::Target& target, const Options& options) {
  std::string records, ports;
  if (target.records)
    for (const auto& [name, record] : *target.records) records += name + "=" + record + "\n";
  for (const auto* list : {&names.inputs, &names.input_aliases, &names.outputs}) {
    for (const std::string& name : *list) ports += fmt::format("{}:{}", name.size(), name);
    ports += '\n';
  }
  return cache::make_key({"program", code_generator_build_id(), target::to_string(target), records,
                          options_key(options).value_or(""), ports,
                          hlo::to_string(module, {.max_constant_elems = 4, .max_nodes = SIZE_MAX}),
                          weights.hex()});
}

// Less than this is computed as fast as it is looked up.
constexpr int64_t kLeastOnceBytes = int64_t{4} << 20;

// `image`: of the program. The results of the once section depend on it and the weights only.
Cached with_once(program::Program program, std::span<const uint8_t> image, const Hash128& weights,
                 const Options& options, cache::ObjectCache& cache) {
  if (!options.keep_once || program.own_memory || program.once_bytes < kLeastOnceBytes ||
      program.once_bytes > cache.most_weight_bytes())
    return {std::move(program), std::nullopt};
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  const cache::Key key = cache::make_key({"once", hash128(text).hex(), weights.hex()});
  const auto mapped = cache.map_weights(key, options.compile_threads);
  if (!mapped || static_cast<int64_t>(mapped->bytes.size()) != program.once_bytes)
    return {std::move(program), key};
  const auto shape = tensor::Shape::array(tensor::Type::u8, {program.once_bytes});
  const Literal block = Literal::view(shape, mapped->bytes.data(), mapped->owner);
  return {program::fold_once(program, block), std::nullopt};
}

}  // namespace

Result<Cached> compile_cached(std::unique_ptr<hlo::Module> module, const plan::Names& names,
                              const target::Target& target, const Options& options,
                              Report* report) {
  const auto begin = std::chrono::steady_clock::now();
  std::optional<cache::ObjectCache> cache;
  if (is_cached(target, options)) {
    auto opened = cache::ObjectCache::open(options.object_cache_directory);
    if (opened) cache.emplace(std::move(*opened));
  }
  if (!cache) {
    HEDDLE_ASSIGN_OR_RETURN(program::Program program,
                            compile(std::move(module), names, target, options, report));
    return Cached{std::move(program), std::nullopt};
  }
  const std::vector<Literal> weights = weights_of(*module);
  const Hash128 content = hash_of_weights(weights, options.compile_threads, *cache);
  const cache::Key key = key_of(*module, content, names, target, options);
  const cache::Lookup lookup = cache->find_or_make(key);
  if (lookup.object) {
    auto program = program::from_image(*lookup.object, weights);
    if (program) {
      Cached result = with_once(std::move(*program), *lookup.object, content, options, *cache);
      const auto took = std::chrono::steady_clock::now() - begin;
      if (report)
        report->times_ms.emplace_back("cache",
                                      std::chrono::duration<double, std::milli>(took).count());
      return result;
    }
  }
  HEDDLE_ASSIGN_OR_RETURN(program::Program program,
                          compile(std::move(module), names, target, options, report));
  // A cache that cannot be written only costs time.
  const auto image = program::to_image(program, weights, kMostKeptBytes);
  if (!image) return Cached{std::move(program), std::nullopt};
  (void)cache->store(key, *image);
  return with_once(std::move(program), *image, content, options, *cache);
}

void store_once(const Options& options, const cache::Key& key, const Literal& once_block) {
  auto cache = cache::ObjectCache::open(options.object_cache_directory);
  if (cache)
    (void)cache->store_weights(key, {static_cast<const uint8_t*>(once_block.data()),
                                     static_cast<size_t>(once_block.bytes())});
}

}  // namespace heddle::compiler
