// mask_padding: bounded symbols made right. A module whose dynamic dimensions are at their bound
// computes, in the first n elements of each of them, what the module of exact shapes would,
// whatever stands behind.
//
// The entry gets a parameter s32[] for the extent of each symbol (but for those that it computes
// itself), and what is reduced or contracted over a dynamic dimension is masked there with the
// neutral value, as early as the value is made, so that the mask is part of the operator that makes
// it; positions of a scatter with one that is nowhere. Values that are neutral in the padding
// already (exp(x - max x) behind a masked maximum) stay. Before it the symbols' extents are -1.
// What is joined along such a dimension is put in its place at run time (join_padded.h).
#include <algorithm>
#include <map>
#include <optional>

#include "hlo/builder.h"
#include "hlo/combiner.h"
#include "hlo/dim_classes.h"
#include "hlo/select_boxes.h"
#include "hlo/sort_order.h"
#include "opt/join_padded.h"
#include "opt/mask_padding.h"
#include "opt/merged_places.h"
#include "opt/padding_value.h"
#include "opt/passes.h"

namespace heddle::opt {
namespace {

using hlo::Instr;
using hlo::Opcode;

class Masker {
 public:
  Masker(hlo::Module* module, hlo::SymbolTable table, BehindInputs behind)
      : entry_(module->entry()),
        behind_(behind),
        b_(entry_),
        table_(std::move(table)),
        symbols_(table_.symbols),
        classes_(*module) {}

  Status run(const std::vector<Growing>& growing, const hlo::SliceExtents& slices) {
    HEDDLE_RETURN_IF_ERROR(classes_.derive(&table_, slices));
    for (hlo::Symbol& symbol : symbols_) {
      if (symbol.call) {
        extents_.push_back(symbol.call->operand(1));
        continue;
      }
      symbol.extent = static_cast<int64_t>(entry_->parameters().size());
      extents_.push_back(b_.parameter(symbol.extent, tensor::Shape::scalar(tensor::Type::s32),
                                      "extent_of_" + symbol.name));
    }
    find_sizes();
    const std::vector<Instr*> all = entry_->instrs();
    for (Instr* instr : all) {
      if (instr->is(Opcode::reduce)) HEDDLE_RETURN_IF_ERROR(mask_reduce(instr));
      if (instr->is(Opcode::dot)) mask_dot(instr);
      if (instr->is(Opcode::convolution) || instr->is(Opcode::reduce_window))
        HEDDLE_RETURN_IF_ERROR(mask_windows(instr));
      if (instr->is(Opcode::scatter)) mask_scatter(instr);
      if (instr->is(Opcode::sort)) mask_sort(instr);
      if (instr->is(Opcode::gather)) clamp_gather(instr);
      if (hlo::is_select_boxes(*instr)) count_boxes(instr);
    }
    grow(growing);
    join_padded(entry_, classes_.cuts(), extents_, &table_);
    b_.check();
    entry_->sort();
    std::vector<hlo::Symbol>& all_symbols = entry_->module()->symbols;
    all_symbols.clear();
    for (const hlo::Symbol& symbol : symbols_)
      if (!symbol.call) all_symbols.push_back(symbol);
    return {};
  }

 private:
  int symbol_of(const Instr* instr, int64_t d) const {
    const auto found = masked_.find(instr);
    return classes_.symbol_of(found == masked_.end() ? instr : found->second, d);
  }

  // What is there of a dimension.
  void find_sizes() {
    const std::vector<Instr*> all = entry_->instrs();
    for (Instr* instr : all) {
      if (!instr->is(Opcode::get_dimension_size)) continue;
      const Instr* x = instr->operand(0);
      const int64_t d = instr->attrs_as<hlo::DimensionAttrs>().dimension;
      const int symbol = symbol_of(x, d);
      drop_multiples(instr, symbol);
      entry_->replace_all_uses(
          instr, symbol >= 0
                     ? valid_elements(symbol, x->shape().dim(d))
                     : b_.scalar(tensor::Type::s32, static_cast<double>(x->shape().dim(d))));
    }
    for (size_t s = 0; s < symbols_.size(); ++s)
      if (symbols_[s].call) extents_[s] = symbols_[s].call->operand(1);
  }

  // Rows that are said to be as many as those of this dimension, where that is several to each of
  // its symbol's: nothing would say of which symbol they are.
  void drop_multiples(const Instr* size, int symbol) {
    const std::vector<Instr*> users = size->users();
    for (Instr* user : users)
      if (hlo::is_first_rows(*user) && hlo::counted_like(*user) &&
          (symbol < 0 || user->shape().dim(0) != symbols_[static_cast<size_t>(symbol)].bound))
        entry_->replace_all_uses(user, user->operand(0));
  }

  // All that an extent adds to one instruction is looked at together.
  void grow(const std::vector<Growing>& all) {
    std::map<Instr*, std::map<int64_t, Instr*>> more;  // by dimension, of s32
    for (const Growing& one : all) {
      const auto scalar = [&](int64_t value) {
        return b_.scalar(tensor::Type::s32, static_cast<double>(value));
      };
      Instr* part =
          b_.binary(Opcode::subtract, extents_[one.symbol], scalar(symbols_[one.symbol].bound));
      if (one.factor != 1) part = b_.binary(Opcode::multiply, part, scalar(one.factor));
      Instr*& sum = more[one.instr][one.dimension];
      sum = sum ? b_.binary(Opcode::add, sum, part) : part;
    }
    for (const auto& [instr, parts] : more)
      entry_->replace_all_uses(instr, instr->is(Opcode::slice)
                                          ? moved_slice(instr, parts)
                                          : grown_constant(instr, parts.at(-1)));
  }

  Instr* grown_constant(Instr* constant, Instr* more) {
    const tensor::Shape& shape = constant->shape();
    more = b_.broadcast(b_.convert(more, shape.type()), shape.extents(), {});
    return b_.binary(Opcode::add, constant, more);
  }

  Instr* moved_slice(Instr* slice, const std::map<int64_t, Instr*>& more) {
    const auto& attrs = slice->attrs_as<hlo::SliceAttrs>();
    std::vector<Instr*> starts;
    for (size_t d = 0; d < attrs.starts.size(); ++d) {
      Instr* start = b_.scalar(tensor::Type::s32, static_cast<double>(attrs.starts[d]));
      const auto found = more.find(static_cast<int64_t>(d));
      starts.push_back(found == more.end() ? start : b_.binary(Opcode::add, start, found->second));
    }
    return b_.dynamic_slice(slice->operand(0), starts, slice->shape().extents());
  }

  Status mask_reduce(Instr* reduce) {
    for (int64_t d : reduce->dimensions()) {
      if (symbol_of(reduce->operand(0), d) < 0) continue;
      const std::optional<Opcode> combiner = hlo::combiner_of(*reduce->called().at(0));
      if (reduce->operands().size() != 2 || !combiner)
        return user_error("{} reduces dimension '{}' in a way that has no neutral value",
                          reduce->name(),
                          symbols_[static_cast<size_t>(symbol_of(reduce->operand(0), d))].name);
      const tensor::Type type = reduce->operand(0)->shape().type();
      mask(reduce, 0, d, hlo::neutral_value(*combiner, type));
    }
    return {};
  }

  void mask_dot(Instr* dot) {
    const auto attrs = dot->attrs_as<hlo::DotAttrs>();
    for (size_t k = 0; k < attrs.lhs_contracting_dims.size(); ++k) {
      if (symbol_of(dot->operand(0), attrs.lhs_contracting_dims[k]) < 0) continue;
      for (size_t side = 0; side < 2; ++side)
        mask(dot, side, side == 0 ? attrs.lhs_contracting_dims[k] : attrs.rhs_contracting_dims[k],
             hlo::neutral_value(Opcode::add, dot->operand(side)->shape().type()));
    }
  }

  // Windows at the end of what is there see what stands behind it.
  Status mask_windows(Instr* instr) {
    const bool is_sum = instr->is(Opcode::convolution);
    for (const hlo::DimLink& link : hlo::index_map(*instr, 0).links) {
      const Instr* x = instr->operand(0);
      const int symbol = symbol_of(x, link.from);
      if (link.kind != hlo::DimKind::window || symbol < 0) continue;
      const int64_t numbers =
          x->shape().dim(link.from) / symbols_[static_cast<size_t>(symbol)].bound;
      if (hlo::seen_behind(link.window, numbers) == 0 ||
          hlo::runs_up(link.window, x->shape().dim(link.from)))
        continue;
      const std::optional<Opcode> combiner =
          is_sum ? Opcode::add : hlo::combiner_of(*instr->called().at(0));
      if (!combiner || instr->operands().size() > 2)
        return user_error(
            "{} combines windows of dimension '{}' in a way that has no neutral value",
            instr->name(), symbols_[static_cast<size_t>(symbol_of(x, link.from))].name);
      mask(instr, 0, link.from, hlo::neutral_value(*combiner, x->shape().type()));
    }
    return {};
  }

  // Scatters skip what is out of range.
  void mask_scatter(Instr* scatter) {
    const size_t positions = scatter->operands().size() / 2;
    const tensor::Shape& shape = scatter->operand(positions)->shape();
    tensor::Literal nowhere(tensor::Shape::scalar(shape.type()));
    nowhere.set_bits(0, ~uint64_t{0});
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (symbol_of(scatter->operand(positions), d) >= 0) mask(scatter, positions, d, nowhere);
  }

  // What is not there has the key that comes last, and as the sort is stable, it comes behind all
  // others of that key.
  void mask_sort(Instr* sort) {
    const std::optional<hlo::SortOrder> order = hlo::sort_order(*sort);
    const int64_t d = hlo::sorted_dimension(*sort);
    if (!order || symbol_of(sort->operand(order->key), d) < 0) return;
    mask(sort, order->key, d,
         hlo::neutral_value(order->descending ? Opcode::maximum : Opcode::minimum,
                            sort->operand(order->key)->shape().type()));
  }

  // It is told how many boxes there are.
  void count_boxes(Instr* call) {
    const int symbol = symbol_of(call->operand(0), 1);
    if (symbol < 0 || call->operands().size() != 5) return;
    std::vector<Instr*> operands = call->operands();
    operands.push_back(valid_elements(symbol, call->operand(0)->shape().dim(1)));
    const tensor::Shape shape = call->shape();
    Instr* counted = b_.make(Opcode::custom_call, std::move(operands), call->attrs(), {}, &shape);
    counted->add_notes(*call);
    entry_->replace_all_uses(call, counted);
  }

  // Positions behind the last element are those of the last element.
  void clamp_gather(Instr* gather) {
    if (read_places(gather->operand(1)) || read_in_packed(gather->operand(1))) return;
    const auto& attrs = gather->attrs_as<hlo::GatherAttrs>();
    Instr *x = gather->operand(0), *positions = gather->operand(1);
    const bool narrow = tensor::type_bits(positions->shape().type()) < 32;
    const tensor::Type type = narrow ? tensor::Type::s32 : positions->shape().type();
    std::vector<Instr*> limits;
    bool any = false;
    for (int64_t d : attrs.start_index_map) {
      const int symbol = symbol_of(x, d);
      any = any || symbol >= 0;
      Instr* limit = b_.scalar(tensor::Type::s32, static_cast<double>(x->shape().dim(d)));
      if (symbol >= 0) limit = valid_elements(symbol, x->shape().dim(d));
      limit = b_.binary(Opcode::subtract, limit, b_.scalar(tensor::Type::s32, 1));
      limits.push_back(b_.reshape(b_.convert(limit, type), {1}));
    }
    if (!any) return;
    const bool is_vector = attrs.index_vector_dim < positions->shape().rank();
    Instr* all = is_vector ? b_.concatenate(limits, 0) : b_.reshape(limits[0], {});
    all = b_.broadcast(
        all, positions->shape().extents(),
        is_vector ? std::vector<int64_t>{attrs.index_vector_dim} : std::vector<int64_t>{});
    entry_->replace_operand(gather, 1,
                            b_.binary(Opcode::minimum, b_.convert(positions, type), all));
  }

  // Of a dimension with so many at the bound, s32[].
  Instr* valid_elements(int symbol, int64_t at_bound) {
    Instr* extent = extents_[static_cast<size_t>(symbol)];
    const int64_t times = at_bound / symbols_[static_cast<size_t>(symbol)].bound;
    return times == 1 ? extent
                      : b_.binary(Opcode::multiply, extent,
                                  b_.scalar(tensor::Type::s32, static_cast<double>(times)));
  }

  // Operand i of the reader has `neutral` in the padding of dimension d.
  void mask(Instr* reader, size_t i, int64_t d, const tensor::Literal& neutral) {
    Instr* x = reader->operand(i);
    const double wanted = tensor::is_float(neutral.type())
                              ? neutral.get_f64(0)
                              : static_cast<double>(neutral.get_s64(0));
    const int symbol = symbol_of(x, d);
    known_.clear();
    if (padding(x, d).is(wanted)) return;
    // Where it is made: behind reshapes and transposes it would be an operator of its own.
    Instr* made = x;
    int64_t at = d;
    while (made->is(Opcode::reshape) || made->is(Opcode::transpose)) {
      const int64_t from = source_dimension(made, at);
      if (from < 0 || symbol_of(made->operand(0), from) != symbol) break;
      made = made->operand(0);
      at = from;
    }
    // What is known of this value's padding may be counted on elsewhere.
    if (padding(made, at).kind == Padding::Kind::number) {
      entry_->replace_operand(reader, i, masked(x, d, symbol, neutral));
      return;
    }
    if (made->is(Opcode::concatenate) && wanted == 0 && mask_parts(made, at, neutral)) return;
    Instr* instead = masked(made, at, symbol, neutral);
    // A joined array that is also a result may be an input's memory, with one part put in.
    if (!made->is(Opcode::concatenate)) {
      entry_->replace_all_uses(made, instead);  // but for the use in the mask itself
      return;
    }
    const std::vector<Instr*> users = made->users();
    for (Instr* user : users)
      for (size_t k = 0; user != instead && user != entry_->root() && k < user->operands().size();
           ++k)
        if (user->operand(k) == made) entry_->replace_operand(user, k, instead);
  }

  // Zeros behind the parts that are joined to an input with room, in place of a mask of all of the
  // longer array. False: it is not joined so.
  bool mask_parts(Instr* joined, int64_t d, const tensor::Literal& zero) {
    const hlo::DimClasses::Cut* cut = cut_with_room(joined, d);
    if (!cut) return false;
    const size_t parts = joined->operands().size();
    for (size_t k = 1; k < parts; ++k)
      if (!cut->parts[k].is_constant() && symbol_of(joined->operand(k), d) < 0) return false;
    for (size_t k = 1; k < parts; ++k) {
      known_.clear();
      Instr* part = joined->operand(k);
      if (!cut->parts[k].is_constant() && !padding(part, d).is(0))
        entry_->replace_operand(joined, k, masked(part, d, symbol_of(part, d), zero));
    }
    return true;
  }

  Instr* masked(Instr* x, int64_t d, int symbol, const tensor::Literal& neutral) {
    const int64_t extent = x->shape().dim(d);
    const tensor::Shape line = tensor::Shape::array(tensor::Type::s32, {extent});
    Instr* limit = valid_elements(symbol, extent);
    Instr* inside =
        b_.compare(hlo::Direction::lt, b_.iota(line, 0), b_.broadcast(limit, {extent}, {}));
    masks_.emplace(inside, symbol);
    const std::vector<int64_t> extents = x->shape().extents();
    if (x->shape().rank() != 1) inside = b_.broadcast(inside, extents, {d});
    Instr* result = b_.select(inside, x, b_.broadcast(b_.constant(neutral), extents, {}));
    masked_.emplace(result, masked_.count(x) ? masked_.at(x) : x);
    return result;
  }

  // Dimension of the operand whose padding is that of dimension d of a movement; -1: none.
  static int64_t source_dimension(const Instr* instr, int64_t d) {
    const hlo::IndexMap map = hlo::index_map(*instr, 0);
    const hlo::DimLink* link = map.of_result(d);
    return link && link->to == d ? link->from : -1;
  }

  Padding padding(const Instr* instr, int64_t d) {
    const auto [known, added] = known_.emplace(std::pair(instr, d), kUnknown);
    if (!added) return known->second;
    const Padding result = find_padding(instr, d);
    known_[std::pair(instr, d)] = result;
    return result;
  }

  const hlo::DimClasses::Cut* cut_with_room(const Instr* instr, int64_t d) const {
    for (const hlo::DimClasses::Cut& cut : classes_.cuts())
      if (cut.instr == instr && cut.dimension == d && gets_room(cut)) return &cut;
    return nullptr;
  }

  // Behind an input with room are zeros, and parts that are joined to it leave them where they are
  // of fixed extents, or have zeros behind themselves.
  bool has_zeros_behind(const Instr* instr, int64_t d) {
    const hlo::DimClasses::Cut* cut = cut_with_room(instr, d);
    for (size_t k = 1; cut && k < cut->parts.size(); ++k)
      if (!cut->parts[k].is_constant() && !padding(instr->operand(k), d).is(0)) return false;
    return cut != nullptr;
  }

  // An input behind whose elements the caller's zeros are still there.
  bool is_only_read(const Instr* parameter) const {
    const auto& aliases = entry_->module()->input_output_alias;
    return behind_ == BehindInputs::zeros &&
           std::none_of(aliases.begin(), aliases.end(),
                        [&](const auto& alias) {
                          return alias.parameter == parameter->parameter_number();
                        }) &&
           std::none_of(classes_.cuts().begin(), classes_.cuts().end(), [&](const auto& cut) {
             return gets_room(cut) && cut.instr->operand(0) == parameter;
           });
  }

  Padding find_padding(const Instr* instr, int64_t d) {
    if (const auto value = splat(instr)) return number(*value);
    if (instr->is(Opcode::concatenate) && has_zeros_behind(instr, d)) return number(0);
    if (instr->is(Opcode::parameter)) return is_only_read(instr) ? number(0) : kUnknown;
    switch (instr->opcode()) {
      case Opcode::broadcast: {
        const int64_t from = source_dimension(instr, d);
        return from < 0 ? kValid : padding(instr->operand(0), from);
      }
      case Opcode::transpose:
        return padding(instr->operand(0), source_dimension(instr, d));
      case Opcode::reshape: {
        const int64_t from = source_dimension(instr, d);
        return from < 0 ? kUnknown : padding(instr->operand(0), from);
      }
      case Opcode::select: {
        const Instr* predicate = instr->operand(0);
        int64_t at = d;
        while (predicate->is(Opcode::broadcast) && at >= 0) {
          at = source_dimension(predicate, at);
          predicate = predicate->operand(0);
        }
        if (at == 0 && masks_.count(predicate)) return padding(instr->operand(2), d);
        const Padding known = padding(instr->operand(0), d);
        if (known.kind == Padding::Kind::number)
          return padding(instr->operand(known.value != 0 ? 1 : 2), d);
        break;
      }
      default:
        break;
    }
    if (!hlo::has_trait(instr->opcode(), hlo::Trait::elementwise)) return kUnknown;
    std::vector<Padding> in;
    for (const Instr* operand : instr->operands())
      in.push_back(operand->shape().rank() == 0 ? kValid : padding(operand, d));
    return computed(instr, in);
  }

  hlo::Computation* entry_;
  BehindInputs behind_;
  hlo::Builder b_;
  hlo::SymbolTable table_;
  std::vector<hlo::Symbol>& symbols_;  // of table_
  hlo::DimClasses classes_;
  std::vector<Instr*> extents_;                  // by symbol: the parameter
  std::map<const Instr*, const Instr*> masked_;  // made here: of what
  std::map<const Instr*, int> masks_;            // made here
  std::map<std::pair<const Instr*, int64_t>, Padding> known_;
};

}  // namespace

Status mask_bounded(hlo::Module& module, hlo::SymbolTable table, BehindInputs behind,
                    const std::vector<Growing>& growing, const hlo::SliceExtents& slices) {
  return Masker(&module, std::move(table), behind).run(growing, slices);
}

Result<bool> mask_padding(hlo::Module& module, const PassContext&) {
  if (!module.symbols.empty() && module.symbols[0].extent >= 0) return false;
  std::vector<hlo::Symbol> symbols = hlo::symbols_of(module);
  if (symbols.empty()) return false;
  HEDDLE_RETURN_IF_ERROR(
      mask_bounded(module, hlo::SymbolTable(std::move(symbols)), BehindInputs::anything));
  return true;
}

}  // namespace heddle::opt
