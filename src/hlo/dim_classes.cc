#include "hlo/dim_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace heddle::hlo {
namespace {

constexpr std::string_view kKey = "heddle_symbols";

bool has(const Ints& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

}  // namespace

// {name bound extent least place.dimension ...; ...}
void set_symbols(Module* module, const std::vector<Symbol>& symbols) {
  std::erase_if(module->header, [](const auto& one) { return one.first == kKey; });
  if (symbols.empty()) return;
  std::string text;
  for (const Symbol& symbol : symbols) {
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : "; ", symbol.name, symbol.bound,
                        symbol.extent, symbol.least);
    for (const auto& [parameter, dimension] : symbol.places)
      text += fmt::format(" {}.{}", parameter, dimension);
  }
  module->header.emplace_back(kKey, "{" + text + "}");
}

std::vector<Symbol> symbols_of(const Module& module) {
  std::vector<Symbol> result;
  for (const auto& [key, value] : module.header) {
    if (key != kKey || value.size() < 2) continue;
    std::stringstream all(value.substr(1, value.size() - 2));
    for (std::string one; std::getline(all, one, ';');) {
      std::stringstream words(one);
      Symbol symbol;
      words >> symbol.name >> symbol.bound >> symbol.extent >> symbol.least;
      char dot = 0;
      for (std::pair<int64_t, int64_t> place; words >> place.first >> dot >> place.second;)
        symbol.places.push_back(place);
      result.push_back(std::move(symbol));
    }
  }
  return result;
}

int64_t reshape_source(const Shape& from, const Shape& to, int64_t d) {
  int64_t i = 0, j = 0;
  while (from.elems() > 0) {
    while (i < from.rank() && from.dim(i) == 1) ++i;
    while (j < to.rank() && to.dim(j) == 1) ++j;
    if (i >= from.rank() || j >= to.rank() || j > d) return -1;
    if (j == d) return i;
    int64_t left = from.dim(i++), right = to.dim(j++);
    while (left != right) left < right ? left *= from.dim(i++) : right *= to.dim(j++);
  }
  return -1;
}

bool runs_up(const WindowDim& window, int64_t extent) {
  WindowDim all;
  all.size = extent;
  all.pad_low = extent - 1;
  return window == all;
}

DimClasses::DimClasses(const Module& module) { look_at(*module.entry()); }
DimClasses::DimClasses(const Computation& computation) { look_at(computation); }

void DimClasses::look_at(const Computation& first) {
  std::vector<const Computation*> looked_at{&first};
  for (size_t c = 0; c < looked_at.size(); ++c)
    for (const Instr* instr : looked_at[c]->instrs())
      if (instr->is(Opcode::fusion)) looked_at.push_back(instr->called().at(0));
  for (const Computation* computation : looked_at) {
    for (const Instr* instr : computation->instrs()) {
      Arrays arrays;
      if (instr->shape().is_tuple())
        arrays.shapes = instr->shape().elements();
      else
        arrays.shapes = {instr->shape()};
      for (const Shape& shape : arrays.shapes) {
        arrays.first.push_back(shape.is_array() ? static_cast<int>(parent_.size()) : -1);
        if (!shape.is_array()) continue;
        for (const tensor::Dim& dim : shape.dims()) {
          parent_.push_back(static_cast<int>(parent_.size()));
          extents_.push_back(dim.size);
          owner_.push_back(instr);
          fixed_by_.push_back(nullptr);
        }
      }
      arrays_.emplace(instr, std::move(arrays));
    }
  }
  for (const Computation* computation : looked_at)
    for (const Instr* instr : computation->instrs()) relate(instr);
}

int DimClasses::at(const Instr* instr, int64_t d, size_t leaf) const {
  return arrays_.at(instr).first.at(leaf) + static_cast<int>(d);
}

int DimClasses::root(int i) const {
  while (parent_[static_cast<size_t>(i)] != i) i = parent_[static_cast<size_t>(i)];
  return i;
}

void DimClasses::join(int a, int b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  parent_[static_cast<size_t>(a)] = b;
  const Instr*& fixed = fixed_by_[static_cast<size_t>(b)];
  if (!fixed) fixed = fixed_by_[static_cast<size_t>(a)];
}

void DimClasses::join_all(const Instr* a, size_t a_leaf, const Instr* b, size_t b_leaf) {
  const Shape& shape = arrays_.at(a).shapes.at(a_leaf);
  const Shape& other = arrays_.at(b).shapes.at(b_leaf);
  if (!shape.is_array() || !other.is_array() || shape.rank() != other.rank()) return;
  for (int64_t d = 0; d < shape.rank(); ++d) join(at(a, d, a_leaf), at(b, d, b_leaf));
}

void DimClasses::fix(const Instr* instr, int64_t d, size_t leaf) {
  fixed_by_[static_cast<size_t>(root(at(instr, d, leaf)))] = relating_;
}

void DimClasses::fix_all(const Instr* instr) {
  const Arrays& arrays = arrays_.at(instr);
  for (size_t leaf = 0; leaf < arrays.shapes.size(); ++leaf)
    for (int64_t d = 0; arrays.first[leaf] >= 0 && d < arrays.shapes[leaf].rank(); ++d)
      fix(instr, d, leaf);
}

int DimClasses::of(const Instr* instr, int64_t dimension, size_t leaf) const {
  const auto found = arrays_.find(instr);
  if (found == arrays_.end() || leaf >= found->second.first.size() ||
      found->second.first[leaf] < 0 || dimension >= found->second.shapes[leaf].rank())
    return -1;
  return root(found->second.first[leaf] + static_cast<int>(dimension));
}

int DimClasses::symbol(int class_number) const {
  const auto found = symbol_of_root_.find(class_number);
  return class_number < 0 || found == symbol_of_root_.end() ? -1 : found->second;
}

Status DimClasses::assign(const std::vector<Symbol>& symbols) {
  symbol_of_root_.clear();
  if (symbols.empty()) return {};
  const Instr* some = owner_.empty() ? nullptr : owner_[0];
  for (size_t s = 0; s < symbols.size(); ++s) {
    for (const auto& [parameter, dimension] : symbols[s].places) {
      const Instr* instr =
          some->parent()->module()->entry()->parameters().at(static_cast<size_t>(parameter));
      const int one = of(instr, dimension);
      const auto [known, added] = symbol_of_root_.emplace(one, static_cast<int>(s));
      if (!added && known->second != static_cast<int>(s))
        return user_error("dimension '{}' and '{}' meet in one array; give one of them a number",
                          symbols[s].name, symbols[static_cast<size_t>(known->second)].name);
    }
  }
  for (size_t i = 0; i < parent_.size(); ++i) {
    const int s = symbol(root(static_cast<int>(i)));
    if (s < 0) continue;
    const Symbol& of = symbols[static_cast<size_t>(s)];
    if (extents_[i] % of.bound != 0)
      return user_error("dimension '{}' of bound {} reaches {} with an extent of {}", of.name,
                        of.bound, owner_[i]->name(), extents_[i]);
    if (const Instr* by = fixed_by_[static_cast<size_t>(root(static_cast<int>(i)))])
      return user_error("dimension '{}' reaches {} ({}), which wants numbers", of.name, by->name(),
                        opcode_text(by->opcode()));
  }
  return {};
}

void DimClasses::relate_reshape(const Instr* reshape) {
  const Instr* from = reshape->operand(0);
  const Shape &a = from->shape(), &b = reshape->shape();
  if (a.elems() <= 0) return fix_all(from), fix_all(reshape);
  int64_t i = 0, j = 0;
  const auto skip_ones = [](const Shape& shape, int64_t* d) {
    while (*d < shape.rank() && shape.dim(*d) == 1) ++*d;
  };
  while (true) {
    skip_ones(a, &i);
    skip_ones(b, &j);
    if (i >= a.rank() || j >= b.rank()) return;
    // The outermost of a group keeps its share; what stands further in has to be known.
    join(at(from, i), at(reshape, j));
    int64_t left = a.dim(i++), right = b.dim(j++);
    while (left != right) {
      if (left < right) {
        left *= a.dim(i);
        fix(from, i++);
      } else {
        right *= b.dim(j);
        fix(reshape, j++);
      }
    }
  }
}

void DimClasses::relate_dot(const Instr* dot) {
  const auto& attrs = dot->attrs_as<DotAttrs>();
  const Instr *a = dot->operand(0), *b = dot->operand(1);
  for (size_t k = 0; k < attrs.lhs_contracting_dims.size(); ++k)
    join(at(a, attrs.lhs_contracting_dims[k]), at(b, attrs.rhs_contracting_dims[k]));
  int64_t to = 0;
  for (size_t k = 0; k < attrs.lhs_batch_dims.size(); ++k, ++to) {
    join(at(dot, to), at(a, attrs.lhs_batch_dims[k]));
    join(at(dot, to), at(b, attrs.rhs_batch_dims[k]));
  }
  for (int64_t d = 0; d < a->shape().rank(); ++d)
    if (!has(attrs.lhs_contracting_dims, d) && !has(attrs.lhs_batch_dims, d))
      join(at(dot, to++), at(a, d));
  for (int64_t d = 0; d < b->shape().rank(); ++d)
    if (!has(attrs.rhs_contracting_dims, d) && !has(attrs.rhs_batch_dims, d))
      join(at(dot, to++), at(b, d));
}

void DimClasses::relate_gather(const Instr* gather) {
  const auto& attrs = gather->attrs_as<GatherAttrs>();
  const Instr *x = gather->operand(0), *indices = gather->operand(1);
  Ints kept;  // of x, that have a dimension of the result
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    const bool gone = has(attrs.collapsed_slice_dims, d) || has(attrs.operand_batching_dims, d);
    if (gone || attrs.slice_sizes[static_cast<size_t>(d)] != x->shape().dim(d) ||
        has(attrs.start_index_map, d))
      fix(x, d);
    if (!gone) kept.push_back(d);
  }
  int64_t batch = 0;
  size_t offset = 0;
  for (int64_t d = 0; d < gather->shape().rank(); ++d) {
    if (has(attrs.offset_dims, d)) {
      const int64_t from = kept.at(offset++);
      if (gather->shape().dim(d) == x->shape().dim(from))
        join(at(gather, d), at(x, from));
      else
        fix(gather, d);
      continue;
    }
    if (batch == attrs.index_vector_dim) ++batch;
    if (batch < indices->shape().rank()) join(at(gather, d), at(indices, batch++));
  }
  if (attrs.index_vector_dim < indices->shape().rank()) fix(indices, attrs.index_vector_dim);
}

void DimClasses::relate_convolution(const Instr* instr) {
  const auto& attrs = instr->attrs_as<ConvolutionAttrs>();
  const Instr* x = instr->operand(0);
  fix_all(instr->operand(1));
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (d != attrs.dims.input_batch || attrs.batch_group_count != 1) fix(x, d);
  for (int64_t d = 0; d < instr->shape().rank(); ++d)
    if (d != attrs.dims.output_batch) fix(instr, d);
  join(at(x, attrs.dims.input_batch), at(instr, attrs.dims.output_batch));
}

void DimClasses::relate_window(const Instr* instr) {
  const Window& window = instr->attrs_as<WindowAttrs>().window;
  if (instr->shape().is_tuple()) {
    for (const Instr* operand : instr->operands()) fix_all(operand);
    return fix_all(instr);
  }
  for (int64_t d = 0; d < instr->shape().rank(); ++d) {
    join(at(instr->operand(0), d), at(instr, d));
    const WindowDim& dim = window.dims[static_cast<size_t>(d)];
    if (dim != WindowDim{} && !runs_up(dim, instr->shape().dim(d))) fix(instr, d);
  }
}

void DimClasses::relate_called(const Instr* fusion) {
  const Computation* called = fusion->called().at(0);
  for (size_t i = 0; i < fusion->operands().size(); ++i) {
    const size_t leaves = arrays_.at(fusion->operand(i)).first.size();
    for (size_t leaf = 0; leaf < leaves; ++leaf)
      join_all(fusion->operand(i), leaf, called->parameters()[i], leaf);
  }
  for (size_t leaf = 0; leaf < arrays_.at(fusion).first.size(); ++leaf)
    join_all(fusion, leaf, called->root(), leaf);
}

void DimClasses::relate(const Instr* instr) {
  relating_ = instr;
  switch (instr->opcode()) {
    case Opcode::parameter:
    case Opcode::constant:
    case Opcode::iota:
      return;
    case Opcode::fusion:
      return relate_called(instr);
    case Opcode::broadcast:
      for (size_t i = 0; i < instr->dimensions().size(); ++i)
        join(at(instr, instr->dimensions()[i]), at(instr->operand(0), static_cast<int64_t>(i)));
      return;
    case Opcode::transpose:
      for (size_t i = 0; i < instr->dimensions().size(); ++i)
        join(at(instr, static_cast<int64_t>(i)), at(instr->operand(0), instr->dimensions()[i]));
      return;
    case Opcode::reshape:
      return relate_reshape(instr);
    case Opcode::copy:
      return join_all(instr, 0, instr->operand(0), 0);
    case Opcode::dot:
      return relate_dot(instr);
    case Opcode::gather:
      return relate_gather(instr);
    case Opcode::convolution:
      return relate_convolution(instr);
    case Opcode::reduce_window:
      return relate_window(instr);
    case Opcode::tuple:
      for (size_t i = 0; i < instr->operands().size(); ++i) {
        if (instr->operand(i)->shape().is_tuple())
          fix_all(instr->operand(i));
        else
          join_all(instr, i, instr->operand(i), 0);
      }
      return;
    case Opcode::get_tuple_element:
      if (instr->shape().is_tuple()) break;
      return join_all(instr, 0, instr->operand(0), static_cast<size_t>(instr->tuple_index()));
    case Opcode::reduce: {
      for (size_t leaf = 0; leaf < arrays_.at(instr).first.size(); ++leaf) {
        const Instr* x = instr->operand(leaf);
        for (int64_t d = 0, to = 0; d < x->shape().rank(); ++d)
          if (!has(instr->dimensions(), d)) join(at(x, d), at(instr, to++, leaf));
        join_all(x, 0, instr->operand(0), 0);
      }
      return;
    }
    case Opcode::slice: {
      const auto& attrs = instr->attrs_as<SliceAttrs>();
      const Instr* x = instr->operand(0);
      for (size_t d = 0; d < attrs.starts.size(); ++d) {
        const auto dim = static_cast<int64_t>(d);
        if (instr->shape().dim(dim) == x->shape().dim(dim))
          join(at(instr, dim), at(x, dim));
        else if (attrs.starts[d] != 0 || attrs.limits[d] != 1)
          fix(x, dim);  // the first element is always there
      }
      return;
    }
    case Opcode::concatenate:
      for (const Instr* part : instr->operands())
        for (int64_t d = 0; d < instr->shape().rank(); ++d)
          d == instr->dimensions().at(0) ? fix(part, d) : join(at(instr, d), at(part, d));
      return;
    case Opcode::pad: {
      const auto& attrs = instr->attrs_as<PadAttrs>();
      for (int64_t d = 0; d < instr->shape().rank(); ++d) {
        const auto i = static_cast<size_t>(d);
        if (attrs.low[i] == 0 && attrs.high[i] == 0 && attrs.interior[i] == 0)
          join(at(instr, d), at(instr->operand(0), d));
        else
          fix(instr->operand(0), d);
      }
      return;
    }
    default:
      if (has_trait(instr->opcode(), Trait::elementwise)) {
        for (const Instr* operand : instr->operands()) join_all(instr, 0, operand, 0);
        return;
      }
  }
  for (const Instr* operand : instr->operands()) fix_all(operand);
  fix_all(instr);
}

}  // namespace heddle::hlo
