#include "import/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hlo/builder.h"

namespace heddle::import {
namespace {

using hlo::Builder;
using hlo::Instr;
using hlo::Ints;
using hlo::Opcode;
using tensor::Shape;
using tensor::Type;

struct Cache {
  Instr* before = nullptr;  // the parameter
  Instr* after = nullptr;   // with the new rows: concatenate or dynamic-update-slice
  size_t output = 0;        // of the root
  int64_t row = 0;          // the dimension of a row
};

// The dimension along which `after` is longer, or only partly new; -1: none, or several.
int64_t growing(const Instr* after) {
  if (after->is(Opcode::concatenate)) return after->dimensions().at(0);
  int64_t found = -1;
  for (int64_t d = 0; d < after->shape().rank(); ++d)
    if (after->operand(1)->shape().dim(d) != after->shape().dim(d)) {
      if (found >= 0) return -1;
      found = d;
    }
  return found;
}

std::optional<Cache> cache_at(const hlo::Module& module, size_t output) {
  constexpr int64_t kLeastRank = 3;  // heads, positions, features
  Cache cache;
  cache.after = module.entry()->root()->operand(output);
  cache.output = output;
  const bool joins =
      cache.after->is(Opcode::concatenate) || cache.after->is(Opcode::dynamic_update_slice);
  if (!joins || cache.after->shape().type() != Type::f32 ||
      cache.after->shape().rank() < kLeastRank || !cache.after->shape().is_static())
    return std::nullopt;
  cache.before = cache.after->operand(0);
  const int64_t grows = growing(cache.after);
  if (!cache.before->is(Opcode::parameter) || grows < 0) return std::nullopt;
  const int64_t last = cache.after->shape().rank() - 1;
  cache.row = grows == last ? last - 1 : last;
  return cache;
}

class Narrower {
 public:
  Narrower(bool bytes, Imported* model)
      : bytes_(bytes), model_(*model), module_(*model->module), b_(module_.entry()) {}

  // Narrows all caches; returns their number.
  int64_t run() {
    if (!module_.entry()->root()->is(Opcode::tuple)) return 0;
    std::vector<Cache> caches;
    for (size_t i = 0; i < model_.output_names.size(); ++i) {
      const std::optional<Cache> cache = cache_at(module_, i);
      if (cache && std::none_of(caches.begin(), caches.end(), [&](const Cache& other) {
            return other.before == cache->before || other.after == cache->after;
          }))
        caches.push_back(*cache);
    }
    for (const Cache& cache : caches) narrow(cache);
    if (!caches.empty()) finish();
    return std::ssize(caches);
  }

 private:
  // An array, and (for s8) the scales of its rows.
  struct Narrow {
    Instr *numbers = nullptr, *scales = nullptr;
  };

  void narrow(const Cache& cache) {
    hlo::Computation& entry = *module_.entry();
    std::vector<Narrow> parts;
    const size_t more = cache.after->is(Opcode::concatenate) ? cache.after->operands().size() : 2;
    for (size_t i = 1; i < more; ++i) parts.push_back(narrowed(cache.after->operand(i), cache.row));
    const std::vector<Instr*> readers = cache.before->users();
    parts.insert(parts.begin(), narrow_parameter(cache));
    Instr* wide_before = widened(parts[0], cache.row);
    for (Instr* reader : readers)
      for (size_t i = 0; i < reader->operands().size(); ++i)
        if (reader->operand(i) == cache.before) entry.replace_operand(reader, i, wide_before);

    Narrow after{joined(cache, parts, &Narrow::numbers), nullptr};
    if (bytes_) after.scales = joined(cache, parts, &Narrow::scales);
    entry.replace_all_uses(cache.after, widened(after, cache.row));
    entry.remove(cache.after);
    outputs_.emplace_back(cache.output, after);
    if (bytes_) alias_scales(cache, parts[0].scales);
  }

  Narrow narrow_parameter(const Cache& cache) {
    const auto number = static_cast<size_t>(cache.before->parameter_number());
    const Ints extents = cache.before->shape().extents();
    cache.before->set_shape(Shape::array(bytes_ ? Type::s8 : Type::bf16, extents));
    if (!bytes_) return {cache.before, nullptr};
    Ints of_scales = extents;
    of_scales[static_cast<size_t>(cache.row)] = 1;
    Instr* scales =
        b_.parameter(std::ssize(module_.entry()->parameters()), Shape::array(Type::f32, of_scales),
                     cache.before->name() + "_scale");
    model_.input_names.push_back(model_.input_names[number] + ".scale");
    if (!model_.input_aliases.empty())
      model_.input_aliases.push_back(model_.input_aliases[number] + ".scale");
    return {cache.before, scales};
  }

  // Symmetric: the element of largest magnitude in a row maps to 127.
  Narrow narrowed(Instr* x, int64_t row) {
    if (!bytes_) return {b_.convert(x, Type::bf16), nullptr};
    constexpr double kMost = 127;
    Ints of_scales = x->shape().extents();
    of_scales[static_cast<size_t>(row)] = 1;
    Instr* most =
        b_.reshape(b_.reduce(Opcode::maximum, b_.unary(Opcode::abs, x), {row}), of_scales);
    Instr* scales = b_.binary(Opcode::multiply, most, b_.full(most->shape(), 1 / kMost));
    Instr* is_zero = b_.compare(hlo::Direction::eq, scales, b_.full(scales->shape(), 0));
    scales = b_.select(is_zero, b_.full(scales->shape(), 1), scales);
    Instr* steps = b_.unary(Opcode::round_nearest_even,
                            b_.binary(Opcode::divide, x, along(scales, x->shape(), row)));
    Instr* inside = b_.clamp(b_.scalar(Type::f32, -kMost), steps, b_.scalar(Type::f32, kMost));
    return {b_.convert(inside, Type::s8), scales};
  }

  Instr* widened(const Narrow& x, int64_t row) {
    Instr* wide = b_.convert(x.numbers, Type::f32);
    if (!bytes_) return wide;
    return b_.binary(Opcode::multiply, wide, along(x.scales, wide->shape(), row));
  }

  // Broadcasts scales [.., 1, ..] along the rows.
  Instr* along(Instr* scales, const Shape& shape, int64_t row) {
    Ints dimensions, extents;
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (d != row) {
        dimensions.push_back(d);
        extents.push_back(shape.dim(d));
      }
    return b_.broadcast(b_.reshape(scales, extents), shape.extents(), dimensions);
  }

  Instr* joined(const Cache& cache, const std::vector<Narrow>& parts, Instr* Narrow::* which) {
    std::vector<Instr*> arrays;
    for (const Narrow& part : parts) arrays.push_back(part.*which);
    if (cache.after->is(Opcode::concatenate))
      return b_.concatenate(arrays, cache.after->dimensions().at(0));
    const std::vector<Instr*>& operands = cache.after->operands();
    return b_.dynamic_update_slice(arrays[0], arrays[1], {operands.begin() + 2, operands.end()});
  }

  // Scales share memory if their cache does.
  void alias_scales(const Cache& cache, const Instr* before) {
    std::vector<hlo::Alias>& aliases = module_.input_output_alias;
    for (size_t i = 0; i < aliases.size(); ++i)
      if (aliases[i].output_index == Ints{static_cast<int64_t>(cache.output)}) {
        const auto output = static_cast<int64_t>(model_.output_names.size() + outputs_.size() - 1);
        aliases.push_back({{output}, before->parameter_number(), {}, aliases[i].must});
        return;
      }
  }

  // Makes the caches results, with their scales after all other visible ones.
  void finish() {
    Instr* root = module_.entry()->root();
    std::vector<Instr*> results = root->operands();
    const auto shown = static_cast<std::ptrdiff_t>(model_.output_names.size());
    std::vector<Instr*> scales;
    for (const auto& [output, after] : outputs_) {
      results[output] = after.numbers;
      if (!bytes_) continue;
      scales.push_back(after.scales);
      model_.output_names.push_back(model_.output_names[output] + ".scale");
    }
    results.insert(results.begin() + shown, scales.begin(), scales.end());
    module_.entry()->set_root(b_.tuple(results));
    module_.entry()->remove(root);
    module_.entry_layout.reset();
    b_.check();
    module_.entry()->sort();
    module_.entry()->remove_dead();
  }

  const bool bytes_;
  Imported& model_;
  hlo::Module& module_;
  Builder b_;
  std::vector<std::pair<size_t, Narrow>> outputs_;
};

}  // namespace

Status narrow_caches(const std::string& type, Imported* model) {
  if (type.empty() || type == "f32") return {};
  if (type != "bf16" && type != "int8")
    return user_error("--kv-cache {}: wanted f32, bf16 or int8", type);
  const int64_t count = Narrower(type == "int8", model).run();
  if (count == 0)
    return user_error(
        "--kv-cache {}: no cache: wanted an output that is an f32 input of three dimensions or "
        "more with something appended to it or put into it",
        type);
  model->notes.push_back(fmt::format(
      "{} caches in {}: {}", count, type,
      type == "int8" ? "inputs and outputs are s8, and a scale for each row (NAME.scale)"
                     : "inputs and outputs are bf16"));
  return {};
}

}  // namespace heddle::import
